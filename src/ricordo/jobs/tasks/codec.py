"""The document of tasks: one versioned JSON object, with each task on a line of its own.

Invariants: decoding an encoded document gives the same document, if its times are whole milliseconds. Fields of a newer
version are preserved, and so are tasks of a newer version that can't be read here.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import TypeVar, get_args

from ricordo.clock import format_rfc3339, truncate_to_milliseconds
from ricordo.errors import DocumentInvalid, InvalidMessage
from ricordo.jobs.tasks.contract import Task, TaskProgress, TaskState, TaskType
from ricordo.lazy import dataclass
from ricordo.messages import JsonValue
from ricordo.messages.json_text import dumps, loads, require_integer, require_object, require_objects, require_text

__all__ = ["TASKS_VERSION", "TaskDocument", "decode_tasks", "encode_tasks"]


TASKS_VERSION = 1
"""The version of the documents that `encode_tasks` writes."""
_TYPES: dict[str, TaskType] = {each: each for each in get_args(TaskType)}
_STATES: dict[str, TaskState] = {each: each for each in get_args(TaskState)}
_TEXTS = ("worker", "agent", "session", "user", "result", "error")
_TASK_FIELDS = frozenset(
    {"id", "type", "title", "state", "created", "seen", "ended", "progress", "cancelling", *_TEXTS}
)
_DOCUMENT_FIELDS = frozenset({"v", "tasks"})
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class TaskDocument:
    """The tasks of a document in order, and the data of other versions.

    `version` is above 1 if a newer version wrote it; `unread` are tasks of a newer version that can't be decoded.
    """

    tasks: tuple[Task, ...] = ()
    version: int = TASKS_VERSION
    unread: tuple[Mapping[str, JsonValue], ...] = ()
    extra: Mapping[str, JsonValue] = field(default_factory=dict)


def encode_tasks(document: TaskDocument) -> bytes:
    """Encode the document as UTF-8. Raises: DocumentInvalid for a value that can't be encoded."""
    try:
        _check_document(document)
        head = dumps({"v": document.version, **document.extra})[:-1]
        lines = [dumps(_encode_task(task)) for task in document.tasks] + [dumps(dict(each)) for each in document.unread]
    except InvalidMessage as error:
        raise DocumentInvalid(f"These tasks can't be written: {error}") from error
    return (f'{head},"tasks":[\n' + ",\n".join(lines) + "\n]}\n").encode()


def decode_tasks(data: bytes) -> TaskDocument:
    """Decode the document. Raises: DocumentInvalid if it is not one, or two of its tasks have the same id."""
    try:
        return _decode_document(require_object(loads(data), "The document"))
    except InvalidMessage as error:
        raise DocumentInvalid(f"This is no document of tasks: {error}") from error


def _decode_document(fields: Mapping[str, JsonValue]) -> TaskDocument:
    version = require_integer(fields.get("v"), "v")
    if version < TASKS_VERSION:
        raise InvalidMessage(f"v: a document of tasks has a version from {TASKS_VERSION} up, not {version}.")
    tasks: list[Task] = []
    unread: list[Mapping[str, JsonValue]] = []
    for position, each in enumerate(require_objects(fields.get("tasks"), "tasks")):
        try:
            tasks.append(_decode_task(each))
        except InvalidMessage as error:
            if version == TASKS_VERSION:
                raise InvalidMessage(f"tasks[{position}].{error}") from error
            unread.append(each)
    _check_ids(tasks)
    extra = {key: value for key, value in fields.items() if key not in _DOCUMENT_FIELDS}
    return TaskDocument(tasks=tuple(tasks), version=version, unread=tuple(unread), extra=extra)


def _check_document(document: TaskDocument) -> None:
    if not _DOCUMENT_FIELDS.isdisjoint(document.extra) or document.version < TASKS_VERSION:
        raise InvalidMessage("The extra fields of a document of tasks have names that it uses itself.")
    _check_ids(document.tasks)


def _check_ids(tasks: tuple[Task, ...] | list[Task]) -> None:
    twice = [task_id for task_id, count in Counter(task.id for task in tasks).items() if count > 1 or not task_id]
    if twice:
        raise InvalidMessage(f"id: each task has its own, {twice[0][:60]!r} is none.")


def _encode_task(task: Task) -> dict[str, JsonValue]:
    if not _TASK_FIELDS.isdisjoint(task.extra) or task.type not in _TYPES or task.state not in _STATES:
        raise InvalidMessage("A task has a known type and state, and no extra field with a name that it uses itself.")
    fields: dict[str, JsonValue] = {
        "id": require_text(task.id, "id"),
        "type": task.type,
        "title": require_text(task.title, "title"),
        "state": task.state,
        "created": _encode_time(task.created_at),
        "seen": _encode_time(task.last_seen_at),
    }
    if task.ended_at is not None:
        fields["ended"] = _encode_time(task.ended_at)
    if task.progress != TaskProgress():
        fields["progress"] = _encode_progress(task.progress)
    texts: dict[str, JsonValue] = {
        name: require_text(getattr(task, name), name) for name in _TEXTS if getattr(task, name)
    }
    cancelling: dict[str, JsonValue] = {"cancelling": True} if task.cancelling else {}
    return fields | texts | cancelling | dict(task.extra)


def _encode_progress(progress: TaskProgress) -> JsonValue:
    fields: dict[str, JsonValue] = {"done": require_integer(progress.done, "progress.done")}
    if progress.total is not None:
        fields["total"] = require_integer(progress.total, "progress.total")
    if progress.text:
        fields["text"] = require_text(progress.text, "progress.text")
    return fields


def _decode_task(fields: Mapping[str, JsonValue]) -> Task:
    texts = {name: require_text(fields.get(name, ""), name) for name in _TEXTS}
    cancelling = fields.get("cancelling", False)
    if not isinstance(cancelling, bool):
        raise InvalidMessage("cancelling: true or false is needed.")
    return Task(
        id=require_text(fields.get("id"), "id"),
        type=_decode_choice(_TYPES, fields, "type"),
        title=require_text(fields.get("title"), "title"),
        state=_decode_choice(_STATES, fields, "state"),
        created_at=_decode_time(fields, "created"),
        last_seen_at=_decode_time(fields, "seen"),
        ended_at=None if fields.get("ended") is None else _decode_time(fields, "ended"),
        progress=_decode_progress(require_object(fields.get("progress", {}), "progress")),
        cancelling=cancelling,
        extra={key: value for key, value in fields.items() if key not in _TASK_FIELDS},
        **texts,
    )


def _decode_progress(fields: Mapping[str, JsonValue]) -> TaskProgress:
    total = fields.get("total")
    return TaskProgress(
        done=require_integer(fields.get("done", 0), "progress.done"),
        total=None if total is None else require_integer(total, "progress.total"),
        text=require_text(fields.get("text", ""), "progress.text"),
    )


def _decode_choice(known: Mapping[str, _T], fields: Mapping[str, JsonValue], name: str) -> _T:
    found = known.get(require_text(fields.get(name), name))
    if found is None:
        raise InvalidMessage(f"{name}: {' or '.join(known)} is needed.")
    return found


def _encode_time(time: datetime) -> str:
    try:
        return format_rfc3339(time)
    except OverflowError as error:
        raise InvalidMessage("A time is too near to the end of time.") from error


def _decode_time(fields: Mapping[str, JsonValue], name: str) -> datetime:
    written = require_text(fields.get(name), name)
    try:
        time = datetime.fromisoformat(written)
        cut = truncate_to_milliseconds(time)
    except (ValueError, OverflowError) as error:
        raise InvalidMessage(f"{name}: {error}.") from error
    if time.tzinfo is None:
        raise InvalidMessage(f"{name}: a time with its zone is needed.")
    return cut
