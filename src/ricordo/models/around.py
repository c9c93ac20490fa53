"""A model around another one: people know it by the name of the one inside, and it has that one's window."""

from dataclasses import dataclass

from ricordo.models.contract import ChatModel

__all__ = ["Around"]


@dataclass(frozen=True, kw_only=True)
class Around:
    """What every `ChatModel` around another one has in common."""

    model: ChatModel

    @property
    def name(self) -> str:
        """The name of the model inside."""
        return self.model.name

    @property
    def window(self) -> int | None:
        """The window of the model inside, in tokens."""
        return self.model.window
