"""The document of tasks: what was written is read, strictly, and nothing of another version is lost."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from message_strategies import any_text, json_values
from ricordo.errors import DocumentInvalid
from ricordo.jobs import Task, TaskDocument, TaskProgress, decode_tasks, encode_tasks
from task_strategies import tasks

NOON = datetime(2026, 11, 21, 12, 0, 0, 123000, tzinfo=UTC)
TASK = Task(id="t1", type="local_bash", title="Build", created_at=NOON, last_seen_at=NOON)


def documents() -> st.SearchStrategy[TaskDocument]:
    extra = st.dictionaries(any_text(6).filter(lambda name: name not in {"v", "tasks"}), json_values(), max_size=2)
    listed = st.lists(tasks(), max_size=3, unique_by=lambda task: task.id).map(tuple)
    return st.builds(TaskDocument, tasks=listed, version=st.integers(1, 9), extra=extra)


def fields(**changed: object) -> dict[str, Any]:
    known = {"id": "t1", "type": "dream", "title": "x", "state": "running"}
    return known | {"created": "2026-11-21T12:00:00.123Z", "seen": "2026-11-21T12:00:00.123Z"} | changed


@pytest.mark.req("AS-STATE-04")
@settings(max_examples=25)
@given(documents())
def test_any_tasks_are_read_as_they_were_written(document: TaskDocument) -> None:
    assert decode_tasks(encode_tasks(document)) == document


@pytest.mark.req("AS-TASK-01")
@given(st.one_of(st.binary(max_size=40), json_values().map(lambda value: json.dumps(value).encode())))
def test_any_bytes_are_tasks_or_named_as_none(data: bytes) -> None:
    try:
        document = decode_tasks(data)
    except DocumentInvalid:
        return
    assert decode_tasks(encode_tasks(document)) == document


@pytest.mark.req("AS-STATE-04")
def test_each_task_has_a_line_with_its_times_as_elsewhere() -> None:
    lines = encode_tasks(TaskDocument(tasks=(TASK, replace(TASK, id="t2", ended_at=NOON)))).decode().splitlines()
    assert lines[0] == '{"v":1,"tasks":['
    assert json.loads(lines[1].rstrip(","))["created"] == "2026-11-21T12:00:00.123Z"
    assert json.loads(lines[2])["ended"] == "2026-11-21T12:00:00.123Z"
    assert len(lines) == 4


@pytest.mark.req("AS-TASK-01")
def test_a_document_of_a_newer_version_keeps_all_that_it_holds() -> None:
    odd = fields(id="t2", type="moon_shot", power=9)
    newer = {"v": 2, "mood": {"calm": True}, "tasks": [fields(colour="red"), odd]}
    document = decode_tasks(json.dumps(newer).encode())
    assert [task.id for task in document.tasks] == ["t1"]
    changed = replace(document, tasks=(replace(document.tasks[0], title="y"),))
    assert json.loads(encode_tasks(changed)) == {**newer, "tasks": [fields(colour="red", title="y"), odd]}


@pytest.mark.req("AS-TASK-01")
@pytest.mark.parametrize(
    "tasks",
    [
        [fields(), fields()],
        [fields(id="")],
        [fields(id=None)],
        [fields(type="moon_shot")],
        [fields(state="odd")],
        [fields(state=["running"])],
        [fields(title=3)],
        [fields(created="yesterday")],
        [fields(created="2026-11-21T12:00:00")],
        [fields(seen="0001-01-01T00:00:00+14:00")],
        [fields(seen=None)],
        [fields(cancelling=1)],
        [fields(progress=[])],
        [fields(progress={"done": 1.5})],
        [fields(result=None)],
        ["t1"],
        {},
        None,
    ],
)
def test_a_document_with_a_task_that_is_none_is_refused(tasks: object) -> None:
    with pytest.raises(DocumentInvalid):
        decode_tasks(json.dumps({"v": 1, "tasks": tasks}).encode())


@pytest.mark.req("AS-TASK-01")
@pytest.mark.parametrize("version", [None, 0, True, "1", -1])
def test_a_document_of_no_version_is_refused(version: object) -> None:
    with pytest.raises(DocumentInvalid):
        decode_tasks(json.dumps({"v": version, "tasks": []}).encode())


@pytest.mark.parametrize(
    "broken",
    [
        lambda: TaskDocument(tasks=(TASK, TASK)),
        lambda: TaskDocument(tasks=(replace(TASK, extra={"title": "y"}),)),
        lambda: TaskDocument(tasks=(replace(TASK, extra={"x": float("nan")}),)),
        lambda: TaskDocument(tasks=(replace(TASK, type="moon"),)),  # type: ignore[arg-type]
        lambda: TaskDocument(tasks=(replace(TASK, result=object()),)),  # type: ignore[arg-type]
        lambda: TaskDocument(tasks=(replace(TASK, progress=TaskProgress(done=1.5)),)),  # type: ignore[arg-type]
        lambda: TaskDocument(extra={"v": 3}),
        lambda: TaskDocument(version=0),
    ],
)
def test_what_could_not_be_read_again_is_not_written(broken: Callable[[], TaskDocument]) -> None:
    with pytest.raises(DocumentInvalid):
        encode_tasks(broken())
