"""Middleware: one thin file for each thing that surrounds a turn or a request."""

from ricordo.middleware.contract import (
    Ending,
    Record,
    Request,
    Response,
    Step,
    StepMiddleware,
    ToolFinished,
    ToolStarted,
    Turn,
    TurnEvent,
    TurnHandler,
    TurnListener,
    TurnMiddleware,
    TurnResult,
    TypedResult,
    compose,
)

__all__ = [
    "Ending",
    "Record",
    "Request",
    "Response",
    "Step",
    "StepMiddleware",
    "ToolFinished",
    "ToolStarted",
    "Turn",
    "TurnEvent",
    "TurnHandler",
    "TurnListener",
    "TurnMiddleware",
    "TurnResult",
    "TypedResult",
    "compose",
]
