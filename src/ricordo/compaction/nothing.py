"""Nothing: the window as it came, for those who switch reductions off by swapping the strategy."""

from anyio.lowlevel import checkpoint

from ricordo.compaction.contract import Act, Reduction, Window
from ricordo.compaction.plan import measured
from ricordo.compaction.reports import unchanged

__all__ = ["Nothing"]


class Nothing:
    """Makes nothing smaller, whatever forces it."""

    act: Act = "none"

    async def reduce(self, window: Window) -> Reduction:
        """Return the window as it came."""
        await checkpoint()
        return unchanged(
            self.act, window, "nothing is to be made smaller", sum(measured(window.messages, window.ratio))
        )
