"""Tools that a model may call, each usable without the agent loop."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.agent.tools.contract import (
        Approval,
        ApprovalHandler,
        Tool,
        ToolContext,
        ToolEffect,
        ToolOutput,
        get_effect,
    )
    from ricordo.agent.tools.files import file_tools
    from ricordo.agent.tools.function import FunctionTool, tool
    from ricordo.agent.tools.memory import forget_tool, memory_tools
    from ricordo.agent.tools.memory_files import memory_files_tool
    from ricordo.agent.tools.sessions import session_tools

__all__ = [
    "Approval",
    "ApprovalHandler",
    "FunctionTool",
    "Tool",
    "ToolContext",
    "ToolEffect",
    "ToolOutput",
    "file_tools",
    "forget_tool",
    "get_effect",
    "memory_files_tool",
    "memory_tools",
    "session_tools",
    "tool",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".contract": "Approval ApprovalHandler Tool ToolContext ToolEffect ToolOutput get_effect",
        ".files": "file_tools",
        ".function": "FunctionTool tool",
        ".memory": "forget_tool memory_tools",
        ".memory_files": "memory_files_tool",
        ".sessions": "session_tools",
    },
)
