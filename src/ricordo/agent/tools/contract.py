"""The protocol of a tool, the context of a call, and approvals.

`ToolFailed`, and any other `RicordoError`, is an error result with that message. Any other exception becomes an error
result too, so no tool can end a turn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, get_args

from ricordo.messages import JsonValue, Media, Text, ToolSpec, Unknown
from ricordo.scope import Scope

__all__ = ["Approval", "ApprovalHandler", "Tool", "ToolContext", "ToolEffect", "ToolOutput", "get_effect"]


ToolEffect: TypeAlias = Literal["reads", "organizes", "acts"]
"""What a tool changes: nothing; only what the agent itself stands by, as its plan, its todos and its tasks; anything
else."""
ToolOutput: TypeAlias = "str | bytes | Sequence[Text | Media | Unknown] | JsonValue"
"""A text, raw bytes, parts of a message, or a JSON value, which is told as JSON text."""


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """Where a call comes from. `approved` tells that a rule lets it through, so that nobody is asked again."""

    call_id: str
    scope: Scope
    agent: str
    session: str
    approved: bool = False


@dataclass(frozen=True, kw_only=True)
class Approval:
    """What is asked of a person: `act` in words, such as `write`, on `target`, and the change itself, as a diff.

    `agent` names the sub-agent that asks, empty for the agent itself.
    """

    tool: str
    act: str
    target: str
    change: str = ""
    agent: str = ""


class ApprovalHandler(Protocol):
    """Asks a person, or a policy."""

    async def __call__(self, asked: Approval) -> bool:
        """Tell whether it may be done."""
        ...


class Tool(Protocol):
    """One tool."""

    @property
    def spec(self) -> ToolSpec:
        """The tool as the model sees it."""
        ...

    async def __call__(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolOutput:
        """Do it. `arguments` are a parsed JSON object that need not fit the schema; raises `ToolFailed`."""
        ...


def get_effect(tool: Tool) -> ToolEffect:
    """Return what a tool changes, by its attribute `effect`; one that does not say is taken to act."""
    said = getattr(tool, "effect", None)
    return next((effect for effect in get_args(ToolEffect) if effect == said), "acts")
