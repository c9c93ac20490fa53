"""The agent: its loop, its middleware, its tools, and the state of its sessions."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.agent.agent import HarnessAgent
    from ricordo.agent.compaction_middleware import CompactionMiddleware
    from ricordo.agent.contract import ModelRequest, ModelResponse, ToolFinished, Turn, TurnResult, TurnStream, compose
    from ricordo.agent.loop import AgentLoop, TurnLimits
    from ricordo.agent.options import BuiltinTools, MemoryConfig
    from ricordo.agent.reminder import build_reminder_message
    from ricordo.agent.session_state import SessionState
    from ricordo.agent.tools import ToolOutput
    from ricordo.agent.tools.contract import Approval, Tool, ToolContext, get_effect
    from ricordo.agent.tools.function import tool
    from ricordo.agent.tools.memory import memory_tools

__all__ = [
    "AgentLoop",
    "Approval",
    "BuiltinTools",
    "CompactionMiddleware",
    "HarnessAgent",
    "MemoryConfig",
    "ModelRequest",
    "ModelResponse",
    "SessionState",
    "Tool",
    "ToolContext",
    "ToolFinished",
    "ToolOutput",
    "Turn",
    "TurnLimits",
    "TurnResult",
    "TurnStream",
    "build_reminder_message",
    "compose",
    "get_effect",
    "memory_tools",
    "tool",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".agent": "HarnessAgent",
        ".compaction_middleware": "CompactionMiddleware",
        ".contract": "ModelRequest ModelResponse ToolFinished Turn TurnResult TurnStream compose",
        ".loop": "AgentLoop TurnLimits",
        ".options": "BuiltinTools MemoryConfig",
        ".reminder": "build_reminder_message",
        ".session_state": "SessionState",
        ".tools": "ToolOutput",
        ".tools.contract": "Approval Tool ToolContext get_effect",
        ".tools.function": "tool",
        ".tools.memory": "memory_tools",
    },
)
