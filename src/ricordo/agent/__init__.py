"""The agent: its loop, its middleware, its tools, and the state of its sessions."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.agent.agent import HarnessAgent
    from ricordo.agent.compaction_middleware import CompactionMiddleware
    from ricordo.agent.contract import ModelRequest, ModelResponse, ToolFinished, Turn, TurnStream, compose
    from ricordo.agent.loop import TurnLimits

__all__ = [
    "CompactionMiddleware",
    "HarnessAgent",
    "ModelRequest",
    "ModelResponse",
    "ToolFinished",
    "Turn",
    "TurnLimits",
    "TurnStream",
    "compose",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".agent": "HarnessAgent",
        ".compaction_middleware": "CompactionMiddleware",
        ".contract": "ModelRequest ModelResponse ToolFinished Turn TurnStream compose",
        ".loop": "TurnLimits",
    },
)
