"""Tally: what the turns of a session took in this process, for whoever tells of it at the end."""

from decimal import Decimal

from ricordo.messages import Message, Usage
from ricordo.middleware.contract import Turn, TurnHandler, TurnResult

__all__ = ["UsageTotals"]


class UsageTotals:
    """Turn middleware that adds up. `cost` is None once a reply had no price; `messages` are the messages of all turns."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.turns = 0
        self.usage = Usage()
        self.cost: Decimal | None = Decimal(0)
        self.messages: tuple[Message, ...] = ()

    async def __call__(self, turn: Turn, handler: TurnHandler) -> TurnResult:
        """Carry the turn out; one that fails counts as a turn too."""
        self.turns += 1
        self.messages += turn.messages
        result = await handler(turn)
        self.messages += tuple(message for message in result.messages if message not in turn.messages)
        self.usage += result.usage
        self.cost = None if self.cost is None or result.cost is None else self.cost + result.cost
        return result
