"""Agent state: where an agent stands in a session, kept for the process that goes on with it."""

from ricordo.state.contract import AgentState, Stated, StateStore

__all__ = ["AgentState", "StateStore", "Stated"]
