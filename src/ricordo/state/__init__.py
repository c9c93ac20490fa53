"""Agent state: where an agent stands in a session, kept for the process that goes on with it."""

from ricordo.state.contract import (
    AgentState,
    WorkStateHolder,
    PlanState,
    WorkState,
    StoredState,
    StateStore,
    Todo,
    TodoStatus,
)

__all__ = ["AgentState", "WorkStateHolder", "PlanState", "WorkState", "StateStore", "StoredState", "Todo", "TodoStatus"]
