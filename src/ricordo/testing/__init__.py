"""For tests of agents: a scripted model and a server that speaks the real wire protocols."""

from ricordo.testing.failures import OverflowShape, overflow, overloaded, rate_limited, server_error
from ricordo.testing.model import ScriptedModel
from ricordo.testing.script import (
    Call,
    Calls,
    Empty,
    Fail,
    Garbage,
    HalfStream,
    Hang,
    Held,
    RecordedRequest,
    Respond,
    Say,
    ScriptItem,
    ScriptLike,
    ScriptUsedUp,
)
from ricordo.testing.server import LoopbackServer

__all__ = [
    "Call",
    "Calls",
    "Empty",
    "Fail",
    "Garbage",
    "HalfStream",
    "Hang",
    "Held",
    "LoopbackServer",
    "OverflowShape",
    "RecordedRequest",
    "Respond",
    "Say",
    "ScriptItem",
    "ScriptLike",
    "ScriptUsedUp",
    "ScriptedModel",
    "overflow",
    "overloaded",
    "rate_limited",
    "server_error",
]
