"""Memory: the façade for agents that are not ours. Delegation only."""

from ricordo.memory.facade import Memory
from ricordo.memory.results import IngestReport, RecordedSession

__all__ = ["IngestReport", "Memory", "RecordedSession"]
