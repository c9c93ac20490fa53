"""What a strategy hands back, with its report counted the same way by each of them.

Pure. Invariant: a window that stayed as it was is reported as skipped, one that changed as done.
"""

from collections.abc import Sequence

from ricordo.compaction.contract import Act, Reduction, Report, Window
from ricordo.compaction.handles import handle_of
from ricordo.compaction.plan import measured
from ricordo.messages import Message

__all__ = ["changed", "unchanged"]


def unchanged(act: Act, window: Window, reason: str, tokens: int, *, note: str = "") -> Reduction:
    """Return the window as it came; `tokens` are those of its messages."""
    return Reduction(
        messages=window.messages,
        report=Report(
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


def changed(
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
        report=Report(
            act=act,
            status="done",
            reason=reason,
            messages_before=len(window.messages),
            messages_after=len(messages),
            tokens_before=sum(measured(window.messages, window.ratio)),
            tokens_after=sum(measured(messages, window.ratio)),
            note=note,
            handle=handle_of(dropped),
        ),
    )
