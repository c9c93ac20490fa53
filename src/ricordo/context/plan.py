"""Plans a compaction: sizes, thresholds, the cut, droppable messages, and the report. Pure functions.

Tokens are counted as the provider is expected to count them: our estimate multiplied by the window's ratio.

Invariants: a cut never separates a call from its result. A window that is not forced to shrink is cut only when that
removes at least two messages, and at least five were added since the last summary. A window cut for its tokens alone
must lose a fifth of them. A window that a person restored is not compacted again at once. System messages, summaries
and pinned messages are never dropped.
"""

from collections.abc import Callable, Collection, Sequence
from hashlib import blake2b
from itertools import accumulate
from math import ceil
from typing import Literal

from ricordo.context.config import CompactionConfig
from ricordo.context.contract import Act, Reduction, StrategyReport, Window
from ricordo.context.summary_message import count_kept_messages, count_leading_system, is_carried_whole
from ricordo.lazy import dataclass
from ricordo.messages import Media, Message, count_provider_items, find_cut_points, get_mark, is_pinned, split_groups
from ricordo.messages.tokens.budget import Budget, resolve_budget
from ricordo.messages.tokens.estimate import estimate_message

__all__ = [
    "MIN_ADDED_MESSAGES",
    "CompactionPlan",
    "Thresholds",
    "can_open_conversation",
    "changed_reduction",
    "count_excess_items",
    "count_message_tokens",
    "find_droppable",
    "find_newest_request",
    "find_tail_start",
    "make_handle",
    "max_request_tokens",
    "overflow_target",
    "plan_compaction",
    "resolve_thresholds",
    "trigger_reason",
    "unchanged_reduction",
]


_DEFAULT_TRIGGER = 160_000
_DEFAULT_WINDOW = 180_000
_MIN_REMOVED = 2
MIN_ADDED_MESSAGES = 5
"""The minimum number of messages between two summaries when nothing forces the window to shrink."""
_DEFAULT_RESERVED = 20_000
_GAIN_FACTOR = 4
_MIN_GAIN_DIVISOR = 5
_MAX_ITEMS_SHARE = 0.9
_TARGET_ITEMS_SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """A configuration resolved for one window size, in messages and tokens; 0 means off.

    `tokens` is the lower of the enabled triggers: a token count and a share of the window. `max_request_tokens` is the
    maximum size of a request that leaves room for the reply, None if the window is unknown. `is_clamped` says that
    `reserved` is not smaller than the window, so half of the window is used instead.
    """

    messages: int
    tokens: int
    keep_messages: int
    keep_tokens: int
    max_request_tokens: int | None = None
    is_clamped: bool = False

    @property
    def is_active(self) -> bool:
        """Whether any trigger is enabled."""
        return bool(self.messages or self.tokens)


@dataclass(frozen=True, kw_only=True)
class CompactionPlan:
    """The planned compaction: a summary replaces the messages before `cut`; 0 changes nothing.

    System messages at the start stay. `trigger` says whether the message count or the token count triggered it.
    `reason` says why it starts or does not. `must_shrink` means that the window must get smaller whatever is lost;
    `max_tokens` is then the maximum tokens of its messages, None for no limit. `min_gain` is the minimum number of
    tokens that the summary must save.
    """

    cut: int = 0
    reason: str = ""
    trigger: Literal["messages", "tokens"] = "tokens"
    must_shrink: bool = False
    max_tokens: int | None = None
    min_gain: int = 0


def count_message_tokens(messages: Sequence[Message], ratio: float) -> tuple[int, ...]:
    """Return the tokens of each message."""
    return tuple(ceil(estimate_message(message) * ratio) for message in messages)


def resolve_thresholds(config: CompactionConfig, limit: int | None) -> Thresholds:
    """Return the thresholds of `config` for a model with a window of `limit` tokens, None if unknown."""
    window = config.window or limit
    is_clamped = config.trigger_tokens is None and window is not None and config.reserved >= window
    share = 0 if window is None or not config.trigger_share else max(1, int(window * config.trigger_share))
    trigger = min(filter(None, (_resolve_trigger(config, window), share)), default=0)
    return Thresholds(
        messages=config.trigger_messages,
        tokens=trigger,
        keep_messages=config.keep_messages,
        keep_tokens=_resolve_keep(config, window, trigger),
        max_request_tokens=None if window is None else max_request_tokens(window, config.reserved),
        is_clamped=is_clamped,
    )


def max_request_tokens(window: int, reserved: int = _DEFAULT_RESERVED) -> int:
    """Return the maximum tokens of a request to a model with this `window`, in tokens.

    Room for the reply is `reserved` tokens, but at most a quarter of the window."""
    return max(1, window - min(reserved, window // 4))


def plan_compaction(window: Window, config: CompactionConfig, tokens: Sequence[int]) -> CompactionPlan:
    """Return the plan for `window`, whose messages have these `tokens`."""
    excess_count = count_excess_items(window)
    if window.target is not None and sum(tokens) <= window.target and not excess_count:
        return CompactionPlan(reason="the steps before were enough")
    limits = resolve_thresholds(config, window.limit)
    reason, must_shrink = _find_trigger(window, limits, sum(tokens) + window.overhead, excess_count=excess_count)
    if not reason:
        return CompactionPlan(reason="below the thresholds")
    if not must_shrink and len(window.messages) * _MIN_GAIN_DIVISOR < window.messages_at_undo * (_MIN_GAIN_DIVISOR + 1):
        return CompactionPlan(reason=f"{reason}, but the last one was undone: it waits for a fifth more messages")
    points = find_cut_points(window.messages)
    cut = _configured_cut(points, tokens, limits)
    max_tokens = _messages_room(window, limits, sum(tokens)) if must_shrink else None
    if must_shrink:
        summary_tokens = config.summary_tokens + config.carry_tokens
        cut = _deepen_cut(points, tokens, cut, _tail_room(window, limits, tokens, cut, summary_tokens))
    if excess_count and window.max_messages is not None:
        items = [count_provider_items(message) for message in window.messages]
        cut = _deepen_cut(points, items, cut, int(window.max_messages * _TARGET_ITEMS_SHARE))
    is_count_trigger = bool(limits.messages) and len(tokens) >= limits.messages
    min_gain = 0 if must_shrink or is_count_trigger else ceil(sum(tokens) / _MIN_GAIN_DIVISOR)
    expected_gain = _estimate_gain(window, config, tokens, cut)
    is_heavy = bool(limits.tokens) and expected_gain * _GAIN_FACTOR >= limits.tokens
    hindrance = _find_hindrance(window.messages, cut, must_shrink=must_shrink, is_heavy=is_heavy)
    if not hindrance and expected_gain < min_gain:
        hindrance = f"{reason}, but a summary would take off less than a fifth of what was said"
    exceeds_tokens = bool(limits.tokens) and sum(tokens) + window.overhead >= limits.tokens
    return CompactionPlan(
        cut=0 if hindrance else cut,
        reason=hindrance or reason,
        trigger="messages"
        if (is_count_trigger and not must_shrink and not exceeds_tokens) or excess_count
        else "tokens",
        must_shrink=must_shrink,
        max_tokens=max_tokens,
        min_gain=min_gain,
    )


def trigger_reason(window: Window, total: int, *, messages: int, tokens: int) -> str:
    """Return why a step runs on `window`, which has `total` tokens including its overhead; empty if it does not run.

    The reason is `window.forced`, at least `messages` messages, or at least `tokens` tokens. 0 disables a threshold.
    """
    if window.forced:
        return window.forced
    if messages and len(window.messages) >= messages:
        return f"{len(window.messages)} messages"
    return f"{total} tokens" if tokens and total >= tokens else ""


def count_excess_items(window: Window) -> int:
    """Return by how many messages `window` exceeds the provider's limit; 0 if it does not.

    A tenth of the provider's limit stays free, for the system prompt and for the messages of a turn.
    """
    if window.max_messages is None:
        return 0
    return max(0, sum(map(count_provider_items, window.messages)) - int(window.max_messages * _MAX_ITEMS_SHARE))


def overflow_target(window: Window, tokens: int, *, is_limit_reported: bool) -> int:
    """Return the maximum tokens of the messages of a rejected window; they took `tokens`, as far as is known.

    If the provider reported its window, this is the room that the window leaves after the reply and the
    overhead, if that is less than `tokens`. Otherwise it is also at most half of `tokens`.
    """
    max_tokens = None if window.limit is None else max(0, max_request_tokens(window.limit) - window.overhead)
    if max_tokens is None:
        return tokens // 2
    return max_tokens if is_limit_reported and max_tokens < tokens else min(max_tokens, tokens // 2)


def find_tail_start(points: Sequence[int], tokens: Sequence[int], limit: int) -> int:
    """Return the first cut point with at most `limit` tokens after it; the start of the last group if there is none."""
    cumulative = [0, *accumulate(tokens)]
    candidates = [point for point in points if point < len(tokens)]
    return next(
        (point for point in candidates if cumulative[-1] - cumulative[point] <= limit),
        candidates[-1] if candidates else 0,
    )


def _resolve_trigger(config: CompactionConfig, window: int | None) -> int:
    if config.trigger_tokens is None:
        if window is None:
            return _DEFAULT_TRIGGER
        return window - config.reserved if config.reserved < window else max(1, window // 2)
    return _resolve_budget(config.trigger_tokens, window)


def _resolve_keep(config: CompactionConfig, window: int | None, trigger: int) -> int:
    if config.keep_tokens is None:
        if window is None:
            return 0
        share = min(max(int(trigger * config.keep_tokens_ratio), config.keep_tokens_min), config.keep_tokens_max)
        return max(1, min(share, trigger // 2)) if trigger else share
    return _resolve_budget(config.keep_tokens, window)


def _resolve_budget(budget: int | Budget, window: int | None) -> int:
    return budget if isinstance(budget, int) else resolve_budget(budget, window or _DEFAULT_WINDOW)


def _find_trigger(window: Window, limits: Thresholds, total: int, *, excess_count: int) -> tuple[str, bool]:
    """Return why the window shrinks, and whether it must; `excess_count` is the number of excess messages."""
    if excess_count and not window.forced and limits.is_active:
        return f"{len(window.messages)} messages are nearly more than the provider takes", True
    if (
        not window.forced
        and limits.is_active
        and limits.max_request_tokens is not None
        and total > limits.max_request_tokens
    ):
        return f"{total} tokens are more than the model's window takes", True
    return trigger_reason(window, total, messages=limits.messages, tokens=limits.tokens), bool(window.forced)


def _configured_cut(points: Sequence[int], tokens: Sequence[int], limits: Thresholds) -> int:
    if limits.keep_tokens:
        return find_tail_start(points, tokens, limits.keep_tokens)
    max_cut = len(tokens) - limits.keep_messages
    return max((point for point in points if point <= max_cut), default=0)


def _messages_room(window: Window, limits: Thresholds, total: int) -> int | None:
    """Return the maximum tokens of all messages afterwards. A window that the provider rejected loses at least half."""
    bounds = [] if limits.max_request_tokens is None else [max(0, limits.max_request_tokens - window.overhead)]
    if window.target is not None:
        bounds.append(window.target)
    elif window.forced and window.forced != "asked":
        bounds.append(total // 2)
    return min(bounds, default=None)


def _tail_room(window: Window, limits: Thresholds, tokens: Sequence[int], cut: int, summary_tokens: int) -> int:
    """Return the maximum tokens of the messages that stay next to a summary of `summary_tokens` tokens."""
    total = sum(tokens)
    max_tokens = _messages_room(window, limits, total)
    if window.forced == "asked" and not cut:
        max_tokens = total // 2 if max_tokens is None else min(max_tokens, total // 2)
    return total if max_tokens is None else max(0, max_tokens - min(summary_tokens, max_tokens // 4))


def _deepen_cut(points: Sequence[int], tokens: Sequence[int], cut: int, max_tokens: int) -> int:
    return max(cut, find_tail_start(points, tokens, max_tokens))


def _estimate_gain(window: Window, config: CompactionConfig, tokens: Sequence[int], cut: int) -> int:
    """Estimate the tokens saved by a summary of the messages before `cut`.

    The summary is expected to take half of their tokens, at least the tokens of earlier summaries, at most its limit.
    """
    removed = [
        (message, size)
        for message, size in zip(window.messages[:cut], tokens, strict=False)
        if not is_carried_whole(message)
    ]
    total = sum(size for _, size in removed)
    earlier = sum(size for message, size in removed if get_mark(message) == "summary")
    max_summary_tokens = ceil((config.summary_tokens + config.carry_tokens) * window.ratio)
    return total - min(max_summary_tokens, max(earlier, total // 2))


def _find_hindrance(messages: Sequence[Message], cut: int, *, must_shrink: bool, is_heavy: bool) -> str:
    """Return why a summary of the messages before `cut` is not worth a request; empty if it is.

    A heavy cut (`is_heavy`) is worth it however few messages were added.
    """
    removed = [message for message in messages[count_leading_system(messages) : cut] if not is_carried_whole(message)]
    summaries = _count_matching(removed, lambda message: get_mark(message) == "summary")
    others = len(removed) - summaries
    if not removed:
        return "nothing to sum up: what there is stays"
    if summaries < _MIN_REMOVED and others < (1 if must_shrink else _MIN_REMOVED):
        return f"it would remove fewer than {_MIN_REMOVED} messages"
    added = _count_added(messages)
    if not must_shrink and not is_heavy and added is not None and added < MIN_ADDED_MESSAGES:
        return f"fewer than {MIN_ADDED_MESSAGES} messages since the last summary"
    return ""


def _count_added(messages: Sequence[Message]) -> int | None:
    """Count the messages since the last summary; None if there is no summary."""
    last_summary = max((at for at, message in enumerate(messages) if get_mark(message) == "summary"), default=None)
    return (
        None if last_summary is None else len(messages) - last_summary - 1 - count_kept_messages(messages[last_summary])
    )


def _count_matching(messages: Sequence[Message], predicate: Callable[[Message], bool]) -> int:
    return sum(predicate(message) for message in messages)


def find_droppable(messages: Sequence[Message], stop: int, keep: Collection[int]) -> tuple[tuple[int, ...], ...]:
    """Return the indexes of droppable messages before the cut point `stop`, by group, oldest first.

    `keep` are the indexes of further messages that stay.
    """
    kept_indexes = {at for at, message in enumerate(messages[:stop]) if _is_protected(message)} | set(keep)
    groups = []
    for group in split_groups(messages):
        if group.stop > stop:
            break
        indexes = range(group.start, group.stop)
        has_kept_call = any(
            at in kept_indexes and (messages[at].tool_calls or messages[at].tool_results) for at in indexes
        )
        droppable = () if has_kept_call else tuple(at for at in indexes if at not in kept_indexes)
        if droppable:
            groups.append(droppable)
    return tuple(groups)


def find_newest_request(messages: Sequence[Message]) -> int | None:
    """Return the index of the newest request of a user; None if there is none."""
    indexes = (at for at in range(len(messages) - 1, -1, -1) if _is_request(messages[at]))
    return next(indexes, None)


def can_open_conversation(message: Message) -> bool:
    """Return whether every provider accepts this message as the first one: it is a user message with text."""
    return message.role == "user" and bool(message.text.strip()) and not message.tool_results


def _is_request(message: Message) -> bool:
    has_content = bool(message.text.strip()) or any(isinstance(part, Media) for part in message.parts)
    return message.role == "user" and get_mark(message) is None and has_content


def _is_protected(message: Message) -> bool:
    return message.role == "system" or is_pinned(message) or get_mark(message) == "summary"


_HANDLE_BYTES = 5


def make_handle(dropped: Sequence[Message]) -> str:
    """Return the handle of these messages, from their ids and order: `c` and ten hex digits; empty for none."""
    if not dropped:
        return ""
    joined_ids = "\0".join(message.id or message.text for message in dropped)
    return "c" + blake2b(joined_ids.encode("utf-8", "surrogatepass"), digest_size=_HANDLE_BYTES).hexdigest()


def unchanged_reduction(act: Act, window: Window, reason: str, tokens: int, *, note: str = "") -> Reduction:
    """Return the unchanged window; `tokens` are the tokens of its messages."""
    return Reduction(
        messages=window.messages,
        report=StrategyReport(
            action=act,
            status="skipped",
            reason=reason,
            messages_before=len(window.messages),
            messages_after=len(window.messages),
            tokens_before=tokens,
            tokens_after=tokens,
            note=note,
        ),
    )


def changed_reduction(
    act: Act,
    window: Window,
    messages: Sequence[Message],
    reason: str,
    *,
    dropped: Sequence[Message] = (),
    note: str = "",
) -> Reduction:
    """Return the reduced window; its handle is the handle of `dropped`."""
    return Reduction(
        messages=tuple(messages),
        dropped=tuple(dropped),
        report=StrategyReport(
            action=act,
            status="done",
            reason=reason,
            messages_before=len(window.messages),
            messages_after=len(messages),
            tokens_before=sum(count_message_tokens(window.messages, window.ratio)),
            tokens_after=sum(count_message_tokens(messages, window.ratio)),
            note=note,
            handle=make_handle(dropped),
        ),
    )
