"""Gate: what is decided before a tool is called, whatever the model remembers.

Invariant: a call that a gate could not decide on is not made.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ricordo.messages import JsonValue
from ricordo.tools import Tool, ToolContext

__all__ = ["PermissionGate", "GateDecision"]


@dataclass(frozen=True, kw_only=True)
class GateDecision:
    """Whether a call may be made: `refusal` is why not, in words for the model; empty when it may.

    `approved` tells that a rule lets it through, or that a person just did: the tool asks nobody again.
    """

    refusal: str = ""
    approved: bool = False


class PermissionGate(Protocol):
    """Stands before every tool."""

    async def __call__(self, tool: Tool, arguments: Mapping[str, JsonValue], context: ToolContext) -> GateDecision:
        """Decide on a call whose arguments are a JSON object; calls that are made together are decided together.

        It may take as long as a person takes to answer: the time limit of the tool begins after it. Whatever it raises
        refuses the call.
        """
        ...
