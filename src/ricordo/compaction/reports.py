"""What a strategy hands back, with its report counted the same way by each of them.

Pure. Invariant: a window that stayed as it was is reported as skipped, one that changed as done.
"""

from collections.abc import Sequence

from ricordo.compaction.contract import Act, Reduction, StrategyReport, Window
from ricordo.compaction.handles import make_handle
from ricordo.compaction.plan import count_message_tokens
from ricordo.messages import Message

__all__ = ["changed_reduction", "unchanged_reduction"]


def unchanged_reduction(act: Act, window: Window, reason: str, tokens: int, *, note: str = "") -> Reduction:
    """Return the window as it came; `tokens` are those of its messages."""
    return Reduction(
        messages=window.messages,
        report=StrategyReport(
            act=act,
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
    """Return the smaller window; the handle is that of what was dropped."""
    return Reduction(
        messages=tuple(messages),
        dropped=tuple(dropped),
        report=StrategyReport(
            act=act,
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
