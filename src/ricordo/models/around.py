"""A model around another one: people know it by the name of the one inside, and it has that one's window."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from ricordo.messages import Message, ToolSpec
from ricordo.models.contract import ChatModel
from ricordo.models.limits import declared_window, limited, most_messages
from ricordo.models.reached import base_url_of
from ricordo.models.shown import RequestBody, request_body

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

    @property
    def base_url(self) -> str | None:
        """The address of the model inside, as far as it is known."""
        return base_url_of(self.model)

    @property
    def declared_window(self) -> int | None:
        """The window with which a session with the model inside begins, in tokens."""
        return declared_window(self.model)

    @property
    def most_messages(self) -> int | None:
        """How many messages one request to the model inside may have."""
        return most_messages(self.model)

    async def request_body(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> RequestBody | None:
        """Return the request that the model inside would write; None where it can't show it."""
        return await request_body(self.model, messages, tools=tools)

    def limited(self, tokens: int) -> Self:
        """Return this model around the one inside with replies of at most so many tokens."""
        return replace(self, model=limited(self.model, tokens))
