"""The state of an agent in a session, stored for the process that resumes it, as one versioned JSON document.

The transcript holds what was said. The state holds the window as it was last sent, and the work state (plan, todos,
permission rules, delivered results), which no compaction changes. Version 1 of the document had neither `learns` nor
the work state.

Invariants: decoding an encoded state returns the same state, and fields of newer versions survive in `extra`. Of a
damaged document the intact parts are salvaged; if rules or the plan are lost, every tool call needs approval.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Literal, Protocol, TypeAlias, TypeVar, get_args

from ricordo.errors import InvalidMessage, InvalidSetting
from ricordo.guard.permissions import PermissionRule, ToolPattern, parse_rule, render_rule
from ricordo.lazy import dataclass
from ricordo.messages import JsonValue, Message, codec
from ricordo.messages.json_text import dumps, loads, require_integer, require_object, require_objects, require_text

__all__ = [
    "STATE_VERSION",
    "UNKNOWN_RULES",
    "AgentState",
    "PlanState",
    "StateStore",
    "StoredState",
    "Todo",
    "TodoStatus",
    "WorkState",
    "WorkStateHolder",
    "decode_state",
    "encode_state",
    "salvage_state",
]


TodoStatus: TypeAlias = Literal["pending", "in_progress", "completed"]


@dataclass(frozen=True, kw_only=True)
class Todo:
    """One thing to do; its `id` stays the same while its content does."""

    id: str
    content: str
    status: TodoStatus = "pending"


@dataclass(frozen=True, kw_only=True)
class PlanState:
    """Whether the agent is in plan mode (`active`), and the plan file, as a path in the workspace.

    With a path and not active the plan is in force; without a path there is no plan. `author` is who started plan mode.
    `approved` means that a person allowed the plan in this file to be carried out.
    """

    active: bool = False
    path: str = ""
    author: Literal["user", "agent"] = "agent"
    approved: bool = False


@dataclass(frozen=True, kw_only=True)
class WorkState:
    """The part of the state that does not depend on the window.

    `todos` are in order, at most one of them in progress. `permissions` are the rules granted or imposed in this
    session, oldest first. `delivered_results` names the results of background tasks that were reported to the model.
    """

    plan: PlanState = field(default_factory=PlanState)
    todos: tuple[Todo, ...] = ()
    permissions: tuple[PermissionRule, ...] = ()
    delivered_results: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AgentState:
    """The state of `agent` in `session`.

    `window` holds the messages that begin the next request, without the system prompt. `last` is the id of the newest
    message recorded at that time: later messages in the transcript are not in the window yet. `user` is the owner of
    the session, empty if none was named. `learns` says whether its messages may be learned from. `turns` counts
    finished turns. `messages_at_undo` is the number of messages in the window when a person last undid a compaction, or
    0. `ratio` is the factor for token estimates, learned from reported usage. `work_state` is not changed by
    compaction. `extra` preserves fields of other versions.
    """

    agent: str
    session: str
    window: tuple[Message, ...] = ()
    last: str = ""
    user: str = ""
    learns: bool = True
    turns: int = 0
    messages_at_undo: int = 0
    ratio: float = 1.0
    work_state: WorkState = field(default_factory=WorkState)
    extra: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class StoredState:
    """A stored state, and its version for the next replacement; `set_aside` names an unreadable document.

    If the document was set aside, `state` is the salvaged part, and `version` is that of a missing file.
    """

    state: AgentState
    version: str
    set_aside: str = ""


class StateStore(Protocol):
    """Where states are stored."""

    async def load(self, agent: str, session: str) -> StoredState:
        """Return the stored state, or an empty one if there is none.

        A document that can't be parsed is kept under another name, never overwritten, and named in `set_aside`; the
        state is then its salvaged part. If its rules or its plan can't be read, the first rule asks for approval of
        every tool call.
        """
        ...

    async def save(self, state: AgentState, *, expected: str) -> str:
        """Replace the version `expected` durably and return the new version. Raises `VersionConflict`."""
        ...


class WorkStateHolder(Protocol):
    """An object that holds the work state of a session; see `SessionState` of the harness."""

    @property
    def work_state(self) -> WorkState:
        """The current work state."""
        ...

    async def update_work_state(self, change: Callable[[WorkState], WorkState]) -> WorkState:
        """Replace the work state by the result of `change`, durably, and return it.

        Raises: StorageError, and then nothing has changed; what `change` raises.
        """
        ...


STATE_VERSION = 2
"""The version of the documents that `encode_state` writes."""
UNKNOWN_RULES = PermissionRule(
    decision="ask",
    pattern=ToolPattern(tool="*"),
    reason="the state of this session could not be read, so its rules are not known",
    source="damaged state",
)
"""The first rule of a session whose rules or plan mode could not be read, until a person removes it."""
_WORK_STATE_KEYS = ("plan", "todos", "permissions", "delivered")
_KNOWN_KEYS = frozenset(
    {"agent", "session", "user", "learns", "turns", "undone", "ratio", *_WORK_STATE_KEYS, "window", "last"}
)
_T = TypeVar("_T")


def encode_state(state: AgentState, window_lines: Iterable[bytes] | None = None) -> bytes:
    """Write the document: UTF-8, one line. Raises: InvalidMessage for a value that the document can't represent.

    `window_lines` are the messages of the window as `encode_message` writes them, without the line end, in place of
    `state.window`.
    """
    extra = dict(state.extra)
    version = extra.pop("v", STATE_VERSION)
    if not _KNOWN_KEYS.isdisjoint(extra) or ("v" in state.extra and not _is_newer_version(version)):
        raise InvalidMessage("The extra fields of a state have names that the document uses itself.")
    if state.turns < 0 or state.messages_at_undo < 0 or not state.ratio > 0:
        raise InvalidMessage("A state has counted no turn or more, and a ratio above 0.")
    fields: dict[str, JsonValue] = {
        "v": version,
        "agent": state.agent,
        "session": state.session,
        "user": state.user,
        "learns": state.learns,
        "turns": state.turns,
        "undone": state.messages_at_undo,
        "ratio": state.ratio,
        **_render_work_state(state.work_state),
        "last": state.last,
    }
    if window_lines is None:
        window_lines = (codec.encode_message(message).rstrip() for message in state.window)
    # The lines are JSON already: parsing and writing them again would be most of the work of a long window.
    window = b",".join(window_lines)
    end = "," + dumps(extra).removeprefix("{") if extra else "}"
    return b'%b,"window":[%b]%b\n' % (dumps(fields).removesuffix("}").encode(), window, end.encode())


def decode_state(data: bytes, *, agent: str, session: str) -> AgentState:
    """Read the document of `agent` in `session`. Raises: InvalidMessage if it is invalid."""
    fields = require_object(loads(data), "The state")
    version = require_integer(fields.get("v"), "v")
    if version < 1:
        raise InvalidMessage(f"v: a state has a version from 1 up, not {version}.")
    extra = {
        key: value
        for key, value in fields.items()
        if key not in _KNOWN_KEYS and (key != "v" or version > STATE_VERSION)
    }
    window = require_objects(fields.get("window", []), "window")
    return AgentState(
        agent=agent,
        session=session,
        window=tuple(map(codec.decode_message_fields, window)),
        last=require_text(fields.get("last", ""), "last"),
        user=require_text(fields.get("user", ""), "user"),
        learns=_require_bool(fields, "learns", "learns", default=True),
        turns=_require_count(fields, "turns"),
        messages_at_undo=_require_count(fields, "undone"),
        ratio=_require_ratio(fields),
        work_state=_parse_work_state(fields),
        extra=extra,
    )


def salvage_state(data: bytes, *, agent: str, session: str) -> AgentState:
    """Return the readable parts of a damaged document: its user, whether it is learned from, and its work state.

    Each part is as written, or as in a new state if it can't be read; each valid rule is kept. If a rule, all of them
    or the plan can't be read, `UNKNOWN_RULES` comes first. The window is in the transcript.
    """
    try:
        fields = require_object(loads(data), "The state")
    except InvalidMessage:
        fields = {"permissions": None}
    is_complete, rules = _read_rules(fields)
    plan = _read_or(None, lambda: _parse_plan(require_object(_salvage_field(fields, "plan", {}), "plan")))
    unknown = () if is_complete and plan is not None else (UNKNOWN_RULES,)
    return AgentState(
        agent=agent,
        session=session,
        user=_read_or("", lambda: require_text(fields.get("user", ""), "user")),
        learns=_read_or(True, lambda: _require_bool(fields, "learns", "learns", default=True)),
        work_state=WorkState(
            plan=plan or PlanState(),
            todos=_read_or((), lambda: _parse_todos(fields)),
            permissions=(*unknown, *(rule for rule in rules if rule not in unknown)),
            delivered_results=_read_or((), lambda: _parse_delivered(fields)),
        ),
    )


def _read_rules(fields: Mapping[str, JsonValue]) -> tuple[bool, list[PermissionRule]]:
    """Return whether all rules can be read, and those that can be."""
    items = _salvage_field(fields, "permissions", [])
    if not isinstance(items, list):
        return False, []
    rules: list[PermissionRule] = []
    for item in items:
        with suppress(InvalidMessage):
            rules.append(_parse_rule_record(require_object(item, "permissions"), "permissions"))
    return len(rules) == len(items), rules


def _salvage_field(fields: Mapping[str, JsonValue], name: str, absent: JsonValue) -> JsonValue:
    """Return a field of a damaged document, or `absent` for version 1; later versions always have the field."""
    is_first = _read_or(0, lambda: require_integer(fields.get("v"), "v")) == 1
    return fields.get(name, absent if is_first else None)


def _read_or(otherwise: _T, read: Callable[[], _T]) -> _T:
    try:
        return read()
    except InvalidMessage:
        return otherwise


def _render_work_state(work_state: WorkState) -> dict[str, JsonValue]:
    _check_progress(work_state.todos)
    plan: dict[str, JsonValue] = {
        "active": work_state.plan.active,
        "path": work_state.plan.path,
        "by": _require_one_of(work_state.plan.author, ("user", "agent"), "plan.by"),
    }
    if work_state.plan.approved:
        plan["approved"] = True
    return {
        "plan": plan,
        "todos": [
            {
                "id": todo.id,
                "content": todo.content,
                "status": _require_one_of(todo.status, get_args(TodoStatus), "status"),
            }
            for todo in work_state.todos
        ],
        "permissions": [
            {"rule": _render_rule_line(rule), "why": rule.reason, "source": rule.source}
            for rule in work_state.permissions
        ],
        "delivered": list(work_state.delivered_results),
    }


def _parse_work_state(fields: Mapping[str, JsonValue]) -> WorkState:
    rules = require_objects(fields.get("permissions", []), "permissions")
    return WorkState(
        plan=_parse_plan(require_object(fields.get("plan", {}), "plan")),
        todos=_parse_todos(fields),
        permissions=tuple(_parse_rule_record(item, f"permissions[{index}]") for index, item in enumerate(rules)),
        delivered_results=_parse_delivered(fields),
    )


def _parse_todos(fields: Mapping[str, JsonValue]) -> tuple[Todo, ...]:
    todos = tuple(
        _parse_todo(item, f"todos[{index}]")
        for index, item in enumerate(require_objects(fields.get("todos", []), "todos"))
    )
    _check_progress(todos)
    return todos


def _parse_delivered(fields: Mapping[str, JsonValue]) -> tuple[str, ...]:
    delivered = fields.get("delivered", [])
    if not isinstance(delivered, list):
        raise InvalidMessage("delivered: a list is needed.")
    return tuple(require_text(item, f"delivered[{index}]") for index, item in enumerate(delivered))


def _parse_plan(fields: Mapping[str, JsonValue]) -> PlanState:
    author = require_text(fields.get("by", "agent"), "plan.by")
    return PlanState(
        active=_require_bool(fields, "active", "plan.active", default=False),
        path=require_text(fields.get("path", ""), "plan.path"),
        author="user" if _require_one_of(author, ("user", "agent"), "plan.by") == "user" else "agent",
        approved=_require_bool(fields, "approved", "plan.approved", default=False),
    )


def _parse_todo(fields: Mapping[str, JsonValue], path: str) -> Todo:
    statuses: tuple[TodoStatus, ...] = get_args(TodoStatus)
    status_name = _require_one_of(
        require_text(fields.get("status", "pending"), f"{path}.status"), statuses, f"{path}.status"
    )
    return Todo(
        id=require_text(fields.get("id"), f"{path}.id"),
        content=require_text(fields.get("content"), f"{path}.content"),
        status=next(status for status in statuses if status == status_name),
    )


def _parse_rule_record(fields: Mapping[str, JsonValue], path: str) -> PermissionRule:
    line = require_text(fields.get("rule"), f"{path}.rule")
    reason, source = (require_text(fields.get(name, ""), f"{path}.{name}") for name in ("why", "source"))
    try:
        return parse_rule(line, reason=reason, source=source)
    except InvalidSetting as error:
        raise InvalidMessage(f"{path}.rule: {error}") from error


def _render_rule_line(rule: PermissionRule) -> str:
    """Return the line of a rule, if it parses back to the same rule; any other line would make the document invalid."""
    try:
        line = render_rule(rule)
        if parse_rule(line, reason=rule.reason, source=rule.source) == rule:
            return line
    except InvalidSetting as error:
        raise InvalidMessage(f"A permission rule has no form: {error}") from error
    raise InvalidMessage(f"A permission rule is not read back from its line: {line}")


def _check_progress(todos: Sequence[Todo]) -> None:
    if Counter(todo.status for todo in todos)["in_progress"] > 1:
        raise InvalidMessage("todos: one at most is in progress.")


def _require_one_of(value: str, allowed: Sequence[str], path: str) -> str:
    if value not in allowed:
        raise InvalidMessage(f"{path}: one of {', '.join(allowed)} is needed, not {value}.")
    return value


def _require_bool(fields: Mapping[str, JsonValue], name: str, path: str, *, default: bool) -> bool:
    value = fields.get(name, default)
    if not isinstance(value, bool):
        raise InvalidMessage(f"{path}: true or false is needed.")
    return value


def _require_count(fields: Mapping[str, JsonValue], name: str) -> int:
    value = require_integer(fields.get(name, 0), name)
    if value < 0:
        raise InvalidMessage(f"{name}: a number from 0 up is needed, not {value}.")
    return value


def _require_ratio(fields: Mapping[str, JsonValue]) -> float:
    ratio = fields.get("ratio", 1.0)
    if not isinstance(ratio, int | float) or isinstance(ratio, bool) or not math.isfinite(ratio) or ratio <= 0:
        raise InvalidMessage("ratio: a finite number above 0 is needed.")
    return float(ratio)


def _is_newer_version(version: JsonValue) -> bool:
    return isinstance(version, int) and not isinstance(version, bool) and version > STATE_VERSION
