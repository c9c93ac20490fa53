"""Ricordo: memory that lasts, and a context window that never overflows, for LLM agents.

The names below are loaded at their first use, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ricordo.agent import HarnessAgent
    from ricordo.compaction.config import (
        ClearResultsConfig,
        CompactionConfig,
        DedupeReadsConfig,
        ToolResultEvictionConfig,
        TruncateArgsConfig,
    )
    from ricordo.errors import RicordoError
    from ricordo.flush.config import FlushConfig
    from ricordo.harness.sub_agents import RemoteAgent, SubAgent
    from ricordo.memory import Memory
    from ricordo.messages import Message
    from ricordo.scopes import Scope
    from ricordo.workspace.entry import Entry

__all__ = [
    "ClearResultsConfig",
    "CompactionConfig",
    "DedupeReadsConfig",
    "Entry",
    "FlushConfig",
    "HarnessAgent",
    "Memory",
    "Message",
    "RemoteAgent",
    "RicordoError",
    "Scope",
    "SubAgent",
    "ToolResultEvictionConfig",
    "TruncateArgsConfig",
    "__version__",
]

__version__ = "0.1.0"

_EXPORTS = {
    "ClearResultsConfig": "ricordo.compaction.config",
    "CompactionConfig": "ricordo.compaction.config",
    "DedupeReadsConfig": "ricordo.compaction.config",
    "FlushConfig": "ricordo.flush.config",
    "HarnessAgent": "ricordo.agent",
    "ToolResultEvictionConfig": "ricordo.compaction.config",
    "TruncateArgsConfig": "ricordo.compaction.config",
    "Entry": "ricordo.workspace.entry",
    "Memory": "ricordo.memory",
    "Message": "ricordo.messages",
    "RemoteAgent": "ricordo.harness.sub_agents",
    "SubAgent": "ricordo.harness.sub_agents",
    "RicordoError": "ricordo.errors",
    "Scope": "ricordo.scopes",
}


def __getattr__(name: str) -> object:
    """Load a public name at its first use."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'ricordo' has no attribute {name!r}")
    value: object = getattr(import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
