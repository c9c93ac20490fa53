"""Drop: drops groups of messages, oldest first, until the rest fits; one notice says how to open them.

`SlidingWindow` keeps the newest messages and leaves no notice; `NoCompaction` changes nothing.

Invariants: calls and results stay together. Summaries, system messages, pinned messages and the newest request stay.
There is at most one notice. The remaining messages begin with a user's text, if there is any.
"""

from collections.abc import Sequence

from anyio.lowlevel import checkpoint

from ricordo.context.config import CompactionConfig
from ricordo.context.contract import Act, Reduction, Window
from ricordo.context.plan import (
    can_open_conversation,
    changed_reduction,
    count_excess_items,
    count_message_tokens,
    find_droppable,
    find_newest_request,
    find_tail_start,
    make_handle,
    resolve_thresholds,
    unchanged_reduction,
)
from ricordo.context.strategies.truncate import shorten_messages
from ricordo.errors import InvalidSetting
from ricordo.messages import (
    JsonValue,
    Message,
    Text,
    count_provider_items,
    find_cut_points,
    is_pinned,
    split_groups,
    with_ids,
    with_mark,
)

__all__ = ["DropGroups", "NoCompaction", "SlidingWindow"]


_DROPPED_KEY = "ricordo.dropped"
_MAX_HANDLES = 3
_NOTICE_SLACK = 16
_SHORTENED_NOTE = "messages that were too long were shortened"


class DropGroups:
    """Drops the oldest messages. See the module docstring."""

    action: Act = "drop"

    def __init__(self, config: CompactionConfig | None = None) -> None:
        """Drop by `config`; it uses `drop`, `window` and `reserved`."""
        self._config = config or CompactionConfig()

    async def reduce(self, window: Window) -> Reduction:
        """Return the window without its oldest messages if it exceeds its target or its model's window.

        The same applies if it has more messages than the provider accepts. Without a target and a known limit nothing
        is dropped.
        """
        await checkpoint()
        tokens = count_message_tokens(window.messages, window.ratio)
        total = sum(tokens)
        max_tokens, excess_count = _messages_room(window, self._config), count_excess_items(window)
        if max_tokens is None and excess_count:
            max_tokens = total
        hindrance = _find_hindrance(self._config, max_tokens, total, excess_count=excess_count)
        if hindrance or max_tokens is None:
            return unchanged_reduction(self.action, window, hindrance, total)
        dropped_indexes = _select_dropped(window, tokens, max_tokens, excess_count)
        dropped = tuple(window.messages[at] for at in sorted(dropped_indexes))
        remaining = _insert_notice(window, dropped_indexes) if dropped_indexes else window.messages
        messages = _shorten_to_fit(remaining, window, max_tokens) if window.may_truncate else remaining
        tokens_after = sum(count_message_tokens(messages, window.ratio))
        is_shortened = any(new is not old for new, old in zip(messages, remaining, strict=True))
        excess_note = (
            f"{tokens_after} tokens are left, more than the {max_tokens} that fit" if tokens_after > max_tokens else ""
        )
        note = "; ".join(filter(None, (_SHORTENED_NOTE if is_shortened else "", excess_note)))
        reason = f"{total} tokens are more than the {max_tokens} that fit"
        if excess_count and total <= max_tokens:
            reason = f"{len(tokens)} messages are more than the provider takes"
        if not is_shortened and not dropped:
            return unchanged_reduction(self.action, window, f"{reason}, but nothing may go", total, note=note)
        return changed_reduction(self.action, window, messages, reason, dropped=dropped, note=note)


def _messages_room(window: Window, config: CompactionConfig) -> int | None:
    """Return the maximum tokens of the messages: the smaller of target and model room; None if neither is known."""
    ceiling = resolve_thresholds(config, window.limit).max_request_tokens
    model_limit = None if ceiling is None else ceiling - window.overhead
    limits = [each for each in (window.target, model_limit) if each is not None]
    return max(0, min(limits)) if limits else None


def _find_hindrance(config: CompactionConfig, max_tokens: int | None, total: int, *, excess_count: int) -> str:
    if not config.drop:
        return "dropping is off"
    if max_tokens is None:
        return "it is not known what the messages may take"
    return "the messages fit" if total <= max_tokens and not excess_count else ""


def _select_dropped(window: Window, tokens: Sequence[int], max_tokens: int, excess_count: int) -> set[int]:
    """Return the indexes of the messages to drop; empty if a notice would take more tokens than they do.

    At least `excess_count` messages are dropped, by the provider's count.
    """
    messages = window.messages
    notices = [at for at, message in enumerate(messages) if _DROPPED_KEY in message.metadata]
    request = find_newest_request(messages)
    keep = {*notices, *(() if request is None else (request,))}
    last_start = split_groups(messages)[-1].start if messages else 0
    sample = _build_notice(window, (*messages[:last_start], *(messages[at] for at in notices)))
    cost = count_message_tokens([sample], window.ratio)[0] + _NOTICE_SLACK - sum(tokens[at] for at in notices)
    surplus = sum(tokens) + cost - max_tokens
    dropped: set[int] = set()
    freed_tokens, freed_items = 0, 0
    for group in find_droppable(messages, last_start, keep):
        if freed_tokens >= surplus and freed_items >= excess_count:
            break
        dropped.update(group)
        freed_tokens += sum(tokens[at] for at in group)
        freed_items += sum(count_provider_items(messages[at]) for at in group)
    is_worthwhile = freed_tokens > max(cost, 0) or freed_items > 1
    return (
        dropped.union(notices)
        if dropped and (is_worthwhile if excess_count else freed_tokens > max(cost, 0))
        else set()
    )


def _insert_notice(window: Window, dropped_indexes: set[int]) -> tuple[Message, ...]:
    """Return the messages with a notice in place of the first dropped one."""
    first = min(dropped_indexes)
    notice = _build_notice(window, [message for at, message in enumerate(window.messages) if at in dropped_indexes])
    remaining = [message for at, message in enumerate(window.messages[first:], first) if at not in dropped_indexes]
    return (*window.messages[:first], notice, *remaining)


def _build_notice(window: Window, dropped: Sequence[Message]) -> Message:
    """Return the notice that replaces `dropped`, including the earlier notices among them."""
    count = sum(_count_dropped(message) for message in dropped)
    earlier_handles = [handle for message in reversed(dropped) for handle in _dropped_handles(message)]
    handles = list(dict.fromkeys((make_handle(dropped), *earlier_handles)))[:_MAX_HANDLES]
    latest, *earlier = (f"`{handle}`" for handle in handles)
    earlier_note = f", with {' and '.join(earlier)} those that went before" if earlier else ""
    subject = f"{count:,} earlier {'message was' if count == 1 else 'messages were'}"
    text = f"[{subject} left out to make room. `expand` with {latest} opens them{earlier_note}.]"
    recorded_handles: list[JsonValue] = [*handles]
    message = Message(
        role="user",
        parts=(Text(text=text),),
        time=dropped[-1].time if dropped else None,
        metadata={_DROPPED_KEY: {"messages": count, "handles": recorded_handles}},
    )
    return with_mark(with_ids([message], session=window.session)[0], "notice")


def _count_dropped(message: Message) -> int:
    record = message.metadata.get(_DROPPED_KEY)
    count = record.get("messages") if isinstance(record, dict) else None
    return count if isinstance(count, int) else 1


def _dropped_handles(message: Message) -> list[str]:
    record = message.metadata.get(_DROPPED_KEY)
    handles = record.get("handles") if isinstance(record, dict) else None
    return [handle for handle in handles if isinstance(handle, str)] if isinstance(handles, list) else []


def _shorten_to_fit(messages: tuple[Message, ...], window: Window, max_tokens: int) -> tuple[Message, ...]:
    """Return the messages, with unpinned ones shortened as needed to fit."""
    pinned_tokens = sum(count_message_tokens([message for message in messages if is_pinned(message)], window.ratio))
    unpinned = [message for message in messages if not is_pinned(message)]
    shortened = iter(shorten_messages(unpinned, max(0, max_tokens - pinned_tokens), ratio=window.ratio))
    return tuple(message if is_pinned(message) else next(shortened) for message in messages)


class SlidingWindow:
    """Keeps the newest messages. See the module docstring."""

    action: Act = "slide"

    def __init__(self, *, keep_messages: int = 20, keep_tokens: int = 0) -> None:
        """Keep the last `keep_messages` messages, or those of the last `keep_tokens` tokens when that is not 0.

        More messages stay to keep a call with its results. Raises `InvalidSetting` if `keep_messages` is below 1 or
        `keep_tokens` below 0.
        """
        for name, value, minimum in (("keep_messages", keep_messages, 1), ("keep_tokens", keep_tokens, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
                raise InvalidSetting(f"{name} is a whole number of at least {minimum}, not {value!r}.")
        self._keep_messages = keep_messages
        self._keep_tokens = keep_tokens

    async def reduce(self, window: Window) -> Reduction:
        """Return the newest messages if there are more than the limit."""
        await checkpoint()
        tokens = count_message_tokens(window.messages, window.ratio)
        points = find_cut_points(window.messages)
        if self._keep_tokens:
            cut = find_tail_start(points, tokens, self._keep_tokens)
        else:
            cut = max((point for point in points if point <= len(tokens) - self._keep_messages), default=0)
        dropped_indexes = _select_before_cut(window.messages, cut)
        if not dropped_indexes:
            return unchanged_reduction(self.action, window, "there is no more than what stays", sum(tokens))
        messages = [message for at, message in enumerate(window.messages) if at not in dropped_indexes]
        dropped = [window.messages[at] for at in sorted(dropped_indexes)]
        reason = f"the last {len(tokens) - cut} messages stay"
        return changed_reduction(self.action, window, messages, reason, dropped=dropped)


def _select_before_cut(messages: tuple[Message, ...], cut: int) -> set[int]:
    """Return the indexes to drop. If possible, the remaining messages begin with a user's text."""
    keep = _find_opening(messages, cut)
    dropped_indexes = {at for group in find_droppable(messages, cut, keep) for at in group}
    first = next((at for at in range(len(messages)) if at not in dropped_indexes and messages[at].role != "system"), 0)
    if can_open_conversation(messages[first]) if messages else True:
        return dropped_indexes
    opening = next((at for at in range(first - 1, -1, -1) if can_open_conversation(messages[at])), None)
    if opening is None:
        return dropped_indexes
    return {at for group in find_droppable(messages, cut, (*keep, opening)) for at in group}


def _find_opening(messages: tuple[Message, ...], cut: int) -> tuple[int, ...]:
    """Return the indexes of the messages before the cut that must stay; empty if there are none."""
    if any(can_open_conversation(message) for message in messages[cut : cut + 1]):
        return ()
    request = find_newest_request(messages[:cut])
    if request is not None and can_open_conversation(messages[request]):
        return (request,)
    opening = next((at for at in range(cut - 1, -1, -1) if can_open_conversation(messages[at])), None)
    return tuple(at for at in (request, opening) if at is not None)


class NoCompaction:
    """Reduces nothing, even if forced."""

    action: Act = "none"

    async def reduce(self, window: Window) -> Reduction:
        """Return the unchanged window."""
        await checkpoint()
        return unchanged_reduction(
            self.action,
            window,
            "nothing is to be made smaller",
            sum(count_message_tokens(window.messages, window.ratio)),
        )
