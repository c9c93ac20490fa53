"""The document of an agent's state: one versioned JSON object.

Invariant: `decode(encode(state), ...) == state` for every state, and the fields of a newer version survive in `extra`,
its number under `v`.
"""

import math
from collections.abc import Mapping

from ricordo.errors import InvalidMessage
from ricordo.messages import JsonValue, codec
from ricordo.messages.jsontext import dumps, integer, loads, record, records
from ricordo.state.contract import AgentState

__all__ = ["VERSION", "decode", "encode"]

VERSION = 1
"""The version of the documents that `encode` writes."""

_KNOWN = frozenset({"agent", "session", "user", "turns", "undone", "ratio", "window", "last"})


def encode(state: AgentState) -> bytes:
    """Write the document: UTF-8, one line. Raises: InvalidMessage for a value that the document has no form for."""
    extra = dict(state.extra)
    version = extra.pop("v", VERSION)
    if not _KNOWN.isdisjoint(extra) or ("v" in state.extra and not _is_newer(version)):
        raise InvalidMessage("The extra fields of a state have names that the document uses itself.")
    if state.turns < 0 or state.undone < 0 or not state.ratio > 0:
        raise InvalidMessage("A state has counted no turn or more, and a ratio above 0.")
    known: dict[str, JsonValue] = {
        "v": version,
        "agent": state.agent,
        "session": state.session,
        "user": state.user,
        "turns": state.turns,
        "undone": state.undone,
        "ratio": state.ratio,
        "last": state.last,
        "window": [loads(codec.encode(message)) for message in state.window],
    }
    return (dumps(known | extra) + "\n").encode()


def decode(data: bytes, *, agent: str, session: str) -> AgentState:
    """Read the document of `agent` in `session`. Raises: InvalidMessage if it is none."""
    fields = record(loads(data), "The state")
    version = integer(fields.get("v"), "v")
    if version < 1:
        raise InvalidMessage(f"v: a state has a version from 1 up, not {version}.")
    extra = {key: value for key, value in fields.items() if key not in _KNOWN and (key != "v" or version > VERSION)}
    window = records(fields.get("window", []), "window")
    return AgentState(
        agent=agent,
        session=session,
        window=tuple(codec.decode(dumps(message)) for message in window),
        last=_text(fields, "last"),
        user=_text(fields, "user"),
        turns=_count(fields, "turns"),
        undone=_count(fields, "undone"),
        ratio=_ratio(fields),
        extra=extra,
    )


def _count(fields: Mapping[str, JsonValue], name: str) -> int:
    found = integer(fields.get(name, 0), name)
    if found < 0:
        raise InvalidMessage(f"{name}: a number from 0 up is needed, not {found}.")
    return found


def _text(fields: Mapping[str, JsonValue], name: str) -> str:
    found = fields.get(name, "")
    if not isinstance(found, str):
        raise InvalidMessage(f"{name}: a text is needed.")
    return found


def _ratio(fields: Mapping[str, JsonValue]) -> float:
    ratio = fields.get("ratio", 1.0)
    if not isinstance(ratio, int | float) or isinstance(ratio, bool) or not math.isfinite(ratio) or ratio <= 0:
        raise InvalidMessage("ratio: a finite number above 0 is needed.")
    return float(ratio)


def _is_newer(version: JsonValue) -> bool:
    return isinstance(version, int) and not isinstance(version, bool) and version > VERSION
