"""Tools: what a model may call, each its own file, each usable without a harness."""

from ricordo.tools.contract import Approval, ApprovalHandler, ToolEffect, Tool, ToolContext, ToolOutput, get_effect
from ricordo.tools.file_tools import file_tools
from ricordo.tools.function import FunctionTool, tool
from ricordo.tools.memory_tools import memory_tools
from ricordo.tools.session_tools import session_tools

__all__ = [
    "Approval",
    "ApprovalHandler",
    "ToolEffect",
    "FunctionTool",
    "Tool",
    "ToolContext",
    "ToolOutput",
    "get_effect",
    "file_tools",
    "memory_tools",
    "session_tools",
    "tool",
]
