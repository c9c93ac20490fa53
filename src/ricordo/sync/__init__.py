"""The same for programs that do not await: one blocking face, on an event loop in a thread of its own."""

from ricordo.sync.agent import HarnessAgent, TurnStream
from ricordo.sync.memory import Memory

__all__ = ["HarnessAgent", "Memory", "TurnStream"]
