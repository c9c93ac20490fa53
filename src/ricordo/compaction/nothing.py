"""Nothing: the window as it came, for those who switch reductions off by swapping the strategy."""

from anyio.lowlevel import checkpoint

from ricordo.compaction.contract import Act, Reduction, Window
from ricordo.compaction.plan import count_message_tokens
from ricordo.compaction.reports import unchanged_reduction

__all__ = ["NoCompaction"]


class NoCompaction:
    """Makes nothing smaller, whatever forces it."""

    act: Act = "none"

    async def reduce(self, window: Window) -> Reduction:
        """Return the window as it came."""
        await checkpoint()
        return unchanged_reduction(
            self.act, window, "nothing is to be made smaller", sum(count_message_tokens(window.messages, window.ratio))
        )
