"""Ricordo: memory that lasts, and a context window that never overflows, for LLM agents.

The names below are loaded at their first use, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ricordo.agent import HarnessAgent
    from ricordo.agent.sub_agents import RemoteAgent, SubAgent
    from ricordo.context.config import (
        ClearResultsConfig,
        CompactionConfig,
        DedupeReadsConfig,
        ToolResultEvictionConfig,
        TruncateArgsConfig,
    )
    from ricordo.errors import RicordoError
    from ricordo.extraction.config import FlushConfig
    from ricordo.messages import Message
    from ricordo.runtime.memory import Memory
    from ricordo.scope import Scope
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
    "ClearResultsConfig": "ricordo.context.config",
    "CompactionConfig": "ricordo.context.config",
    "DedupeReadsConfig": "ricordo.context.config",
    "FlushConfig": "ricordo.extraction.config",
    "HarnessAgent": "ricordo.agent",
    "ToolResultEvictionConfig": "ricordo.context.config",
    "TruncateArgsConfig": "ricordo.context.config",
    "Entry": "ricordo.workspace.entry",
    "Memory": "ricordo.runtime.memory",
    "Message": "ricordo.messages",
    "RemoteAgent": "ricordo.agent.sub_agents",
    "SubAgent": "ricordo.agent.sub_agents",
    "RicordoError": "ricordo.errors",
    "Scope": "ricordo.scope",
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
