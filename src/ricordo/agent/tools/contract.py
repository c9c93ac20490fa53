"""The protocol of a tool, the context of a call, and approvals.

Any exception of a tool becomes an error result, so a tool can't end a turn. The result holds the message of a
`ToolFailed` or any other `RicordoError`.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, get_args

from ricordo.lazy import dataclass
from ricordo.messages import JsonValue, Media, Message, Text, ToolSpec, Unknown
from ricordo.scope import Scope

__all__ = ["Approval", "ApprovalHandler", "Tool", "ToolContext", "ToolEffect", "ToolOutput", "get_effect"]


ToolEffect: TypeAlias = Literal["reads", "organizes", "acts"]
"""What a tool changes: nothing; only the agent's own plan, todos and tasks; or anything else."""
ToolOutput: TypeAlias = "str | bytes | Sequence[Text | Media | Unknown] | JsonValue"
"""A text, raw bytes, parts of a message, or a JSON value, which the model sees as JSON text."""


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """The origin of a call. `approved` is True if a rule allows the call, so that no approval is requested.

    `messages` is the conversation before the call, in order.
    """

    call_id: str
    scope: Scope
    agent: str
    session: str
    approved: bool = False
    messages: Sequence[Message] = ()


@dataclass(frozen=True, kw_only=True)
class Approval:
    """A request for approval: `action` in words, such as `write`, on `target`, and the change as a diff.

    `agent` is the name of the sub-agent that asks, empty for the agent itself.
    """

    tool: str
    action: str
    target: str
    change: str = ""
    agent: str = ""


class ApprovalHandler(Protocol):
    """Asks a person or a policy for approval."""

    async def __call__(self, request: Approval, /) -> bool:
        """Return whether the call may run."""
        ...


class Tool(Protocol):
    """A tool that the model can call."""

    @property
    def spec(self) -> ToolSpec:
        """The name, description and parameters that the model sees."""
        ...

    async def __call__(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolOutput:
        """Run the tool. `arguments` is a parsed JSON object that may not match the schema. Raises `ToolFailed`."""
        ...


def get_effect(tool: Tool) -> ToolEffect:
    """Return the tool's `effect` attribute; `acts` if it is missing or invalid."""
    declared = getattr(tool, "effect", None)
    return next((effect for effect in get_args(ToolEffect) if effect == declared), "acts")
