"""Tools: what a model may call, each its own file, each usable without a harness."""

from ricordo.tools.contract import Approval, Approve, Tool, ToolContext, ToolOutput
from ricordo.tools.memory import memory_get

__all__ = ["Approval", "Approve", "Tool", "ToolContext", "ToolOutput", "memory_get"]
