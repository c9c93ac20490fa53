"""The agent: what users construct when they have none of their own."""

from ricordo.agent.agent import HarnessAgent
from ricordo.agent.stream import TurnStream

__all__ = ["HarnessAgent", "TurnStream"]
