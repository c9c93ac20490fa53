"""Maintain: after a turn, whoever works in the background is told that there may be something to do."""

from collections.abc import Callable

from ricordo.middleware.contract import Turn, TurnHandler, TurnResult

__all__ = ["Maintain"]


class Maintain:
    """Turn middleware that calls `wake` after each turn, a failed or cancelled one too; put it outside of the flush."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """Call `wake`, which returns at once and raises nothing."""
        self._wake = wake

    async def __call__(self, turn: Turn, handler: TurnHandler) -> TurnResult:
        """Carry the turn out."""
        try:
            return await handler(turn)
        finally:
            self._wake()
