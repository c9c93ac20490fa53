"""Ricordo: memory that lasts, and a context window that never overflows, for LLM agents.

The names below are loaded at their first use, so that importing the package costs next to nothing.
"""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.agent import BuiltinTools, HarnessAgent, MemoryConfig, TurnLimits
    from ricordo.agent.options import RemoteAgent, SubAgent
    from ricordo.context.config import (
        ClearResultsConfig,
        CompactionConfig,
        DedupeReadsConfig,
        ToolResultEvictionConfig,
        TruncateArgsConfig,
    )
    from ricordo.errors import RicordoError
    from ricordo.extraction.config import FlushConfig
    from ricordo.importers import read_history
    from ricordo.messages import Message
    from ricordo.runtime.memory import Memory
    from ricordo.runtime.pool import MemoryPool
    from ricordo.scope import Scope
    from ricordo.workspace.entry import Entry

__all__ = [
    "BuiltinTools",
    "ClearResultsConfig",
    "CompactionConfig",
    "DedupeReadsConfig",
    "Entry",
    "FlushConfig",
    "HarnessAgent",
    "Memory",
    "MemoryConfig",
    "MemoryPool",
    "Message",
    "RemoteAgent",
    "RicordoError",
    "Scope",
    "SubAgent",
    "ToolResultEvictionConfig",
    "TruncateArgsConfig",
    "TurnLimits",
    "__version__",
    "read_history",
]

__version__ = "0.1.0"


__getattr__ = lazy_exports(
    __name__,
    {
        ".agent.agent": "HarnessAgent",
        ".agent.loop": "TurnLimits",
        ".agent.options": "BuiltinTools MemoryConfig RemoteAgent SubAgent",
        ".context.config": "ClearResultsConfig CompactionConfig DedupeReadsConfig ToolResultEvictionConfig "
        "TruncateArgsConfig",
        ".errors": "RicordoError",
        ".extraction.config": "FlushConfig",
        ".importers.reader": "read_history",
        ".messages.types": "Message",
        ".runtime.memory": "Memory",
        ".runtime.pool": "MemoryPool",
        ".scope": "Scope",
        ".workspace.entry": "Entry",
    },
)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
