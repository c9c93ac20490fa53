"""Middleware: one thin file for each thing that surrounds a turn or a request."""

from ricordo.middleware.contract import (
    TurnEnding,
    Recorder,
    ModelRequest,
    ModelResponse,
    StepHandler,
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
    "TurnEnding",
    "Recorder",
    "ModelRequest",
    "ModelResponse",
    "StepHandler",
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
