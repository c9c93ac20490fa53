"""Agent state: where an agent stands in a session, kept for the process that goes on with it."""

from ricordo.state.contract import AgentState, KeepsStanding, Plan, Standing, Stated, StateStore, Todo, TodoStatus

__all__ = ["AgentState", "KeepsStanding", "Plan", "Standing", "StateStore", "Stated", "Todo", "TodoStatus"]
