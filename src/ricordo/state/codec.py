"""The document of an agent's state: one versioned JSON object.

Version 1 had no `learns`, which is true then, and no `plan`, `todos`, `permissions` and `delivered`: nothing stands
in a document of that version. Each of them may also be absent from a newer one, and then says the same.

Invariants: `decode(encode(state), ...) == state` for every state, and the fields of a newer version survive in `extra`,
its number under `v`. What stands is read as it was written or not at all: nothing in it is mended.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import get_args

from ricordo.errors import InvalidMessage, InvalidSetting
from ricordo.guard.permissions import PermissionRule, parse_rule, render_rule
from ricordo.messages import JsonValue, codec
from ricordo.messages.jsontext import dumps, integer, loads, record, records, text
from ricordo.state.contract import AgentState, Plan, Standing, Todo, TodoStatus

__all__ = ["VERSION", "decode", "encode"]

VERSION = 2
"""The version of the documents that `encode` writes."""

_STANDING = ("plan", "todos", "permissions", "delivered")
_KNOWN = frozenset({"agent", "session", "user", "learns", "turns", "undone", "ratio", *_STANDING, "window", "last"})


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
        "learns": state.learns,
        "turns": state.turns,
        "undone": state.undone,
        "ratio": state.ratio,
        **_written(state.standing),
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
        last=text(fields.get("last", ""), "last"),
        user=text(fields.get("user", ""), "user"),
        learns=_truth(fields, "learns", "learns", default=True),
        turns=_count(fields, "turns"),
        undone=_count(fields, "undone"),
        ratio=_ratio(fields),
        standing=_read(fields),
        extra=extra,
    )


def _written(standing: Standing) -> dict[str, JsonValue]:
    _check_progress(standing.todos)
    plan: dict[str, JsonValue] = {
        "active": standing.plan.active,
        "path": standing.plan.path,
        "by": _one_of(standing.plan.by, ("user", "agent"), "plan.by"),
    }
    return {
        "plan": plan,
        "todos": [
            {"id": todo.id, "content": todo.content, "status": _one_of(todo.status, get_args(TodoStatus), "status")}
            for todo in standing.todos
        ],
        "permissions": [
            {"rule": _rule_text(rule), "why": rule.why, "source": rule.source} for rule in standing.permissions
        ],
        "delivered": list(standing.delivered),
    }


def _read(fields: Mapping[str, JsonValue]) -> Standing:
    todos = tuple(_todo(found, f"todos[{at}]") for at, found in enumerate(records(fields.get("todos", []), "todos")))
    _check_progress(todos)
    rules = records(fields.get("permissions", []), "permissions")
    delivered = fields.get("delivered", [])
    if not isinstance(delivered, list):
        raise InvalidMessage("delivered: a list is needed.")
    return Standing(
        plan=_plan(record(fields.get("plan", {}), "plan")),
        todos=todos,
        permissions=tuple(_rule(found, f"permissions[{at}]") for at, found in enumerate(rules)),
        delivered=tuple(text(found, f"delivered[{at}]") for at, found in enumerate(delivered)),
    )


def _plan(fields: Mapping[str, JsonValue]) -> Plan:
    by = text(fields.get("by", "agent"), "plan.by")
    return Plan(
        active=_truth(fields, "active", "plan.active", default=False),
        path=text(fields.get("path", ""), "plan.path"),
        by="user" if _one_of(by, ("user", "agent"), "plan.by") == "user" else "agent",
    )


def _todo(fields: Mapping[str, JsonValue], where: str) -> Todo:
    statuses: tuple[TodoStatus, ...] = get_args(TodoStatus)
    named = _one_of(text(fields.get("status", "pending"), f"{where}.status"), statuses, f"{where}.status")
    return Todo(
        id=text(fields.get("id"), f"{where}.id"),
        content=text(fields.get("content"), f"{where}.content"),
        status=next(status for status in statuses if status == named),
    )


def _rule(fields: Mapping[str, JsonValue], where: str) -> PermissionRule:
    line = text(fields.get("rule"), f"{where}.rule")
    why, source = (text(fields.get(name, ""), f"{where}.{name}") for name in ("why", "source"))
    try:
        return parse_rule(line, why=why, source=source)
    except InvalidSetting as error:
        raise InvalidMessage(f"{where}.rule: {error}") from error


def _rule_text(rule: PermissionRule) -> str:
    """Return the line of a rule, if it is read back as this rule: one that is not would lose the whole document."""
    try:
        line = render_rule(rule)
        if parse_rule(line, why=rule.why, source=rule.source) == rule:
            return line
    except InvalidSetting as error:
        raise InvalidMessage(f"A permission rule has no form: {error}") from error
    raise InvalidMessage(f"A permission rule is not read back from its line: {line}")


def _check_progress(todos: Sequence[Todo]) -> None:
    if Counter(todo.status for todo in todos)["in_progress"] > 1:
        raise InvalidMessage("todos: one at most is in progress.")


def _one_of(found: str, allowed: Sequence[str], where: str) -> str:
    if found not in allowed:
        raise InvalidMessage(f"{where}: one of {', '.join(allowed)} is needed, not {found}.")
    return found


def _truth(fields: Mapping[str, JsonValue], name: str, where: str, *, default: bool) -> bool:
    found = fields.get(name, default)
    if not isinstance(found, bool):
        raise InvalidMessage(f"{where}: true or false is needed.")
    return found


def _count(fields: Mapping[str, JsonValue], name: str) -> int:
    found = integer(fields.get(name, 0), name)
    if found < 0:
        raise InvalidMessage(f"{name}: a number from 0 up is needed, not {found}.")
    return found


def _ratio(fields: Mapping[str, JsonValue]) -> float:
    ratio = fields.get("ratio", 1.0)
    if not isinstance(ratio, int | float) or isinstance(ratio, bool) or not math.isfinite(ratio) or ratio <= 0:
        raise InvalidMessage("ratio: a finite number above 0 is needed.")
    return float(ratio)


def _is_newer(version: JsonValue) -> bool:
    return isinstance(version, int) and not isinstance(version, bool) and version > VERSION
