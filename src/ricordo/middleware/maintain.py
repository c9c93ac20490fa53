"""Maintain: while a turn runs, upkeep of memory waits; after it, who works in the background is told to look."""

from collections.abc import Callable

from ricordo.maintenance.turns import TurnActivity
from ricordo.middleware.contract import Turn, TurnHandler, TurnResult

__all__ = ["MaintenanceMiddleware"]


class MaintenanceMiddleware:
    """Turn middleware that calls `wake` after each turn, a failed or cancelled one too; put it outside of the flush."""

    def __init__(self, wake: Callable[[], None], turns: TurnActivity | None = None) -> None:
        """Call `wake`, which returns at once and raises nothing, and count each turn among `turns`."""
        self._wake = wake
        self._turns = turns or TurnActivity()

    async def __call__(self, turn: Turn, handler: TurnHandler) -> TurnResult:
        """Carry the turn out."""
        try:
            with self._turns.turn(turn.session):
                return await handler(turn)
        finally:
            self._wake()
