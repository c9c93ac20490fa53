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

_KNOWN = frozenset({"agent", "session", "turns", "ratio", "window", "last"})


def encode(state: AgentState) -> bytes:
    """Write the document: UTF-8, one line. Raises: InvalidMessage for a value that the document has no form for."""
    extra = dict(state.extra)
    version = extra.pop("v", VERSION)
    if not _KNOWN.isdisjoint(extra) or ("v" in state.extra and not _is_newer(version)):
        raise InvalidMessage("The extra fields of a state have names that the document uses itself.")
    if state.turns < 0 or not state.ratio > 0:
        raise InvalidMessage("A state has counted no turn or more, and a ratio above 0.")
    known: dict[str, JsonValue] = {
        "v": version,
        "agent": state.agent,
        "session": state.session,
        "turns": state.turns,
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
    turns = integer(fields.get("turns", 0), "turns")
    if turns < 0:
        raise InvalidMessage(f"turns: a number from 0 up is needed, not {turns}.")
    last = fields.get("last", "")
    if not isinstance(last, str):
        raise InvalidMessage("last: the id of a message is a text.")
    window = records(fields.get("window", []), "window")
    return AgentState(
        agent=agent,
        session=session,
        window=tuple(codec.decode(dumps(message)) for message in window),
        last=last,
        turns=turns,
        ratio=_ratio(fields),
        extra=extra,
    )


def _ratio(fields: Mapping[str, JsonValue]) -> float:
    ratio = fields.get("ratio", 1.0)
    if not isinstance(ratio, int | float) or isinstance(ratio, bool) or not math.isfinite(ratio) or ratio <= 0:
        raise InvalidMessage("ratio: a finite number above 0 is needed.")
    return float(ratio)


def _is_newer(version: JsonValue) -> bool:
    return isinstance(version, int) and not isinstance(version, bool) and version > VERSION
