"""The same for programs that do not await: one blocking face, on an event loop in a thread of its own."""

from ricordo.sync.agent import SyncHarnessAgent, SyncTurnStream
from ricordo.sync.memory import SyncMemory

__all__ = ["SyncHarnessAgent", "SyncMemory", "SyncTurnStream"]
