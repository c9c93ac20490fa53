"""For tests of agents: a scripted model, a server that speaks the real wire protocols, and checks of stores."""

from ricordo.testing.failures import OverflowShape, overflow, overloaded_error, rate_limit_error, server_error
from ricordo.testing.model import ScriptedModel
from ricordo.testing.own_stores import BUILT_IN_STORES
from ricordo.testing.script import (
    Call,
    Calls,
    Empty,
    Fail,
    Garbage,
    HalfStream,
    Hang,
    Hold,
    RecordedRequest,
    Respond,
    Say,
    ScriptItem,
    ScriptLike,
    ScriptUsedUp,
)
from ricordo.testing.server import LoopbackServer
from ricordo.testing.states import STATE_STORE_CHECKS, StateStoreCheck
from ricordo.testing.stores import STORE_CHECKS, StoreCheck, StoreConformance

__all__ = [
    "BUILT_IN_STORES",
    "STATE_STORE_CHECKS",
    "STORE_CHECKS",
    "Call",
    "Calls",
    "Empty",
    "Fail",
    "Garbage",
    "HalfStream",
    "Hang",
    "Hold",
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
    "StoreCheck",
    "StoreConformance",
    "overflow",
    "overloaded_error",
    "rate_limit_error",
    "server_error",
]
