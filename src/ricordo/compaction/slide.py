"""Slide: the newest messages stay, whatever was said before goes; no summary, no model.

Invariants: calls and results stay together. System messages, summaries and what a person pinned stay; where what is
left does not begin with a user's words, the newest of those before it stay too, so that every provider takes it.
"""

from anyio.lowlevel import checkpoint

from ricordo.compaction.contract import Act, Reduction, Window
from ricordo.compaction.plan import count_message_tokens, find_tail_start
from ricordo.compaction.reports import changed_reduction, unchanged_reduction
from ricordo.compaction.stays import find_droppable, find_newest_request, can_open_conversation
from ricordo.errors import InvalidSetting
from ricordo.messages import Message, find_cut_points

__all__ = ["SlidingWindow"]


class SlidingWindow:
    """Keeps the newest messages; see the module."""

    act: Act = "slide"

    def __init__(self, *, keep_messages: int = 20, keep_tokens: int = 0) -> None:
        """Keep the last `keep_messages` messages, or those of the last `keep_tokens` tokens when that is not 0.

        More stays to keep a call with its results. Raises `InvalidSetting` for no message, and for less than none.
        """
        for name, value, least in (("keep_messages", keep_messages, 1), ("keep_tokens", keep_tokens, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InvalidSetting(f"{name} is a whole number of at least {least}, not {value!r}.")
        self._keep_messages = keep_messages
        self._keep_tokens = keep_tokens

    async def reduce(self, window: Window) -> Reduction:
        """Return the newest messages, whenever there are more."""
        await checkpoint()
        tokens = count_message_tokens(window.messages, window.ratio)
        points = find_cut_points(window.messages)
        if self._keep_tokens:
            cut = find_tail_start(points, tokens, self._keep_tokens)
        else:
            cut = max((point for point in points if point <= len(tokens) - self._keep_messages), default=0)
        going = _select_before_cut(window.messages, cut)
        if not going:
            return unchanged_reduction(self.act, window, "there is no more than what stays", sum(tokens))
        messages = [message for at, message in enumerate(window.messages) if at not in going]
        dropped = [window.messages[at] for at in sorted(going)]
        reason = f"the last {len(tokens) - cut} messages stay"
        return changed_reduction(self.act, window, messages, reason, dropped=dropped)


def _select_before_cut(messages: tuple[Message, ...], cut: int) -> set[int]:
    """Return the indexes that go, so that what stays begins with a user's words where there are any before."""
    keep = _find_opening(messages, cut)
    going = {at for group in find_droppable(messages, cut, keep) for at in group}
    first = next((at for at in range(len(messages)) if at not in going and messages[at].role != "system"), 0)
    if can_open_conversation(messages[first]) if messages else True:
        return going
    opening = next((at for at in range(first - 1, -1, -1) if can_open_conversation(messages[at])), None)
    if opening is None:
        return going
    return {at for group in find_droppable(messages, cut, (*keep, opening)) for at in group}


def _find_opening(messages: tuple[Message, ...], cut: int) -> tuple[int, ...]:
    """Return the index of the message that has to stay before the cut; empty when none has to."""
    if any(can_open_conversation(message) for message in messages[cut : cut + 1]):
        return ()
    request = find_newest_request(messages[:cut])
    if request is not None and can_open_conversation(messages[request]):
        return (request,)
    opening = next((at for at in range(cut - 1, -1, -1) if can_open_conversation(messages[at])), None)
    return tuple(at for at in (request, opening) if at is not None)
