"""The document of tasks: one versioned JSON object, each task on a line of its own.

Invariants: `decode(encode(document)) == document` for every document with times in whole milliseconds; what `encode`
writes, `decode` reads; the fields of a newer version survive, and so do tasks of a newer version that have a form which
is not known here, as they are. (Unknown fields inside a task's progress have no place in our types and are left out.)
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar, get_args

from ricordo.clock import milliseconds, rfc3339
from ricordo.errors import DocumentInvalid, InvalidMessage
from ricordo.messages import JsonValue
from ricordo.messages.jsontext import dumps, integer, loads, record, records, text
from ricordo.tasks.contract import Progress, Task, TaskState, TaskType

__all__ = ["VERSION", "TaskDocument", "decode", "encode"]

VERSION = 1
"""The version of the documents that `encode` writes."""

_TYPES: dict[str, TaskType] = {each: each for each in get_args(TaskType)}
_STATES: dict[str, TaskState] = {each: each for each in get_args(TaskState)}
_TEXTS = ("worker", "agent", "session", "user", "result", "error")
_KNOWN = frozenset({"id", "type", "title", "state", "created", "seen", "ended", "progress", "cancelling", *_TEXTS})
_DOCUMENT = frozenset({"v", "tasks"})
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class TaskDocument:
    """The tasks of a document in their order, and what it holds besides for other versions.

    `version` is above 1 where a newer version wrote it; `unread` are tasks of that one which have no form here.
    """

    tasks: tuple[Task, ...] = ()
    version: int = VERSION
    unread: tuple[Mapping[str, JsonValue], ...] = ()
    extra: Mapping[str, JsonValue] = field(default_factory=dict)


def encode(document: TaskDocument) -> bytes:
    """Write the document: UTF-8. Raises: DocumentInvalid for a value that it has no form for."""
    try:
        _check(document)
        head = dumps({"v": document.version, **document.extra})[:-1]
        lines = [dumps(_fields(task)) for task in document.tasks] + [dumps(dict(each)) for each in document.unread]
    except InvalidMessage as error:
        raise DocumentInvalid(f"These tasks can't be written: {error}") from error
    return (f'{head},"tasks":[\n' + ",\n".join(lines) + "\n]}\n").encode()


def decode(data: bytes) -> TaskDocument:
    """Read the document. Raises: DocumentInvalid if it is none, or two of its tasks have one id."""
    try:
        return _document(record(loads(data), "The document"))
    except InvalidMessage as error:
        raise DocumentInvalid(f"This is no document of tasks: {error}") from error


def _document(fields: Mapping[str, JsonValue]) -> TaskDocument:
    version = integer(fields.get("v"), "v")
    if version < VERSION:
        raise InvalidMessage(f"v: a document of tasks has a version from {VERSION} up, not {version}.")
    tasks: list[Task] = []
    unread: list[Mapping[str, JsonValue]] = []
    for position, each in enumerate(records(fields.get("tasks"), "tasks")):
        try:
            tasks.append(_task(each))
        except InvalidMessage as error:
            if version == VERSION:
                raise InvalidMessage(f"tasks[{position}].{error}") from error
            unread.append(each)
    _check_ids(tasks)
    extra = {key: value for key, value in fields.items() if key not in _DOCUMENT}
    return TaskDocument(tasks=tuple(tasks), version=version, unread=tuple(unread), extra=extra)


def _check(document: TaskDocument) -> None:
    if not _DOCUMENT.isdisjoint(document.extra) or document.version < VERSION:
        raise InvalidMessage("The extra fields of a document of tasks have names that it uses itself.")
    _check_ids(document.tasks)


def _check_ids(tasks: tuple[Task, ...] | list[Task]) -> None:
    twice = [task_id for task_id, count in Counter(task.id for task in tasks).items() if count > 1 or not task_id]
    if twice:
        raise InvalidMessage(f"id: each task has its own, {twice[0][:60]!r} is none.")


def _fields(task: Task) -> dict[str, JsonValue]:
    if not _KNOWN.isdisjoint(task.extra) or task.type not in _TYPES or task.state not in _STATES:
        raise InvalidMessage("A task has a known type and state, and no extra field with a name that it uses itself.")
    fields: dict[str, JsonValue] = {
        "id": text(task.id, "id"),
        "type": task.type,
        "title": text(task.title, "title"),
        "state": task.state,
        "created": _written(task.created),
        "seen": _written(task.seen),
    }
    if task.ended is not None:
        fields["ended"] = _written(task.ended)
    if task.progress != Progress():
        fields["progress"] = _progress_fields(task.progress)
    texts: dict[str, JsonValue] = {name: text(getattr(task, name), name) for name in _TEXTS if getattr(task, name)}
    cancelling: dict[str, JsonValue] = {"cancelling": True} if task.cancelling else {}
    return fields | texts | cancelling | dict(task.extra)


def _progress_fields(progress: Progress) -> JsonValue:
    fields: dict[str, JsonValue] = {"done": integer(progress.done, "progress.done")}
    if progress.total is not None:
        fields["total"] = integer(progress.total, "progress.total")
    if progress.text:
        fields["text"] = text(progress.text, "progress.text")
    return fields


def _task(fields: Mapping[str, JsonValue]) -> Task:
    texts = {name: text(fields.get(name, ""), name) for name in _TEXTS}
    cancelling = fields.get("cancelling", False)
    if not isinstance(cancelling, bool):
        raise InvalidMessage("cancelling: true or false is needed.")
    return Task(
        id=text(fields.get("id"), "id"),
        type=_one_of(_TYPES, fields, "type"),
        title=text(fields.get("title"), "title"),
        state=_one_of(_STATES, fields, "state"),
        created=_time(fields, "created"),
        seen=_time(fields, "seen"),
        ended=None if fields.get("ended") is None else _time(fields, "ended"),
        progress=_progress(record(fields.get("progress", {}), "progress")),
        cancelling=cancelling,
        extra={key: value for key, value in fields.items() if key not in _KNOWN},
        **texts,
    )


def _progress(fields: Mapping[str, JsonValue]) -> Progress:
    total = fields.get("total")
    return Progress(
        done=integer(fields.get("done", 0), "progress.done"),
        total=None if total is None else integer(total, "progress.total"),
        text=text(fields.get("text", ""), "progress.text"),
    )


def _one_of(known: Mapping[str, _T], fields: Mapping[str, JsonValue], name: str) -> _T:
    found = known.get(text(fields.get(name), name))
    if found is None:
        raise InvalidMessage(f"{name}: {' or '.join(known)} is needed.")
    return found


def _written(time: datetime) -> str:
    try:
        return rfc3339(time)
    except OverflowError as error:
        raise InvalidMessage("A time is too near to the end of time.") from error


def _time(fields: Mapping[str, JsonValue], name: str) -> datetime:
    written = text(fields.get(name), name)
    try:
        time = datetime.fromisoformat(written)
        cut = milliseconds(time)
    except (ValueError, OverflowError) as error:
        raise InvalidMessage(f"{name}: {error}.") from error
    if time.tzinfo is None:
        raise InvalidMessage(f"{name}: a time with its zone is needed.")
    return cut
