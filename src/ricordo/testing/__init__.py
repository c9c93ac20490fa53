"""For tests of agents: a scripted model, a server that speaks the real wire protocols, and checks of state stores."""

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
from ricordo.testing.states import STATE_STORE_CHECKS, StateStoreCheck

__all__ = [
    "STATE_STORE_CHECKS",
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
    "StateStoreCheck",
    "overflow",
    "overloaded",
    "rate_limited",
    "server_error",
]
