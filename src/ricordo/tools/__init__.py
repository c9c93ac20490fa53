"""Tools: what a model may call, each its own file, each usable without a harness."""

from ricordo.tools.contract import Approval, Approve, Effect, Tool, ToolContext, ToolOutput, effect_of
from ricordo.tools.file_tools import file_tools
from ricordo.tools.function import FunctionTool, tool
from ricordo.tools.memory_tools import memory_tools
from ricordo.tools.session_tools import session_tools

__all__ = [
    "Approval",
    "Approve",
    "Effect",
    "FunctionTool",
    "Tool",
    "ToolContext",
    "ToolOutput",
    "effect_of",
    "file_tools",
    "memory_tools",
    "session_tools",
    "tool",
]
