"""Rereading: how a compaction reads again what was read before, by the agent's own tool and within its rules."""

from collections.abc import Mapping, Sequence

from ricordo.compaction.compact import RereadFile
from ricordo.compaction.evict import READ_TOOL
from ricordo.errors import RicordoError
from ricordo.harness.permissions import RuleGate
from ricordo.messages import JsonValue
from ricordo.tools import Tool, ToolContext

__all__ = ["create_rereader"]


def create_rereader(tools: Sequence[Tool], gate: RuleGate, context: ToolContext) -> RereadFile | None:
    """Return what reads a page of a file again; None without the tool for that.

    What a rule forbids, or wants a person to be asked for, is not read, and neither is what can't be.
    """
    reader = next((tool for tool in tools if tool.spec.name == READ_TOOL), None)
    if reader is None:
        return None

    async def reread_file(arguments: Mapping[str, JsonValue]) -> str:
        if not await gate.allows(reader, arguments):
            return ""
        try:
            return str(await reader(arguments, context))
        except RicordoError:
            return ""

    return reread_file
