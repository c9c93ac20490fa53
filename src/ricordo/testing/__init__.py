"""Tools for testing agents: scripted models, a server that speaks the wire protocols, store checks, files in memory."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.storage.in_memory import InMemoryFiles
    from ricordo.testing.model import ScriptedModel
    from ricordo.testing.script import (
        Call,
        Calls,
        Empty,
        Fail,
        Garbage,
        HalfStream,
        Hang,
        Hold,
        OverflowShape,
        RecordedRequest,
        Respond,
        Say,
        ScriptItem,
        ScriptLike,
        ScriptUsedUp,
        overflow,
        overloaded_error,
        rate_limit_error,
        server_error,
    )
    from ricordo.testing.server import LoopbackServer
    from ricordo.testing.store_conformance import (
        BUILT_IN_STORES,
        STATE_STORE_CHECKS,
        STORE_CHECKS,
        StateStoreCheck,
        StoreCheck,
        StoreConformance,
    )

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
    "InMemoryFiles",
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

__getattr__ = lazy_exports(
    __name__,
    {
        ".model": "ScriptedModel",
        ".script": (
            "Call Calls Empty Fail Garbage HalfStream Hang Hold OverflowShape RecordedRequest Respond "
            "Say ScriptItem ScriptLike ScriptUsedUp overflow overloaded_error rate_limit_error server_error"
        ),
        ".server": "LoopbackServer",
        "ricordo.storage.in_memory": "InMemoryFiles",
        ".store_conformance": (
            "BUILT_IN_STORES STATE_STORE_CHECKS STORE_CHECKS StateStoreCheck StoreCheck StoreConformance"
        ),
    },
)
