"""The one list: every task of a root, whoever runs it; reading changes nothing, and one bad file hides no other."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ricordo.errors import InvalidQuery, TaskNotFound
from ricordo.guard import Redactor
from ricordo.jobs import FileTaskStore, Task, TaskState
from ricordo.jobs.tasks import find_task, list_tasks, request_stop
from ricordo.storage.local import LocalFiles
from ricordo.workspace import state_path, tasks_path, transcript_path
from ricordo.workspace.layout import ROOT_TASKS

pytestmark = pytest.mark.anyio

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
LATER = NOON + timedelta(minutes=10)
REDACTOR = Redactor(bytes(32))


@pytest.fixture
def files(tmp_path: Path) -> LocalFiles:
    return LocalFiles(tmp_path)


def task(task_id: str, *, minutes: int = 0, user: str = "", state: TaskState = "running") -> Task:
    made = NOON + timedelta(minutes=minutes)
    return Task(id=task_id, type="dream", title="Dream", state=state, user=user, created_at=made, last_seen_at=made)


async def add(files: LocalFiles, path: str, *tasks: Task) -> None:
    store = FileTaskStore(files, path, REDACTOR)
    for each in tasks:
        await store.add(each)


def contents(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*.json")}


async def filled(files: LocalFiles) -> None:
    await add(files, tasks_path("main", "s1"), task("main-s1-a", minutes=1, user="me"), task("main-s1-b", minutes=4))
    await add(files, tasks_path("main", "s2"), task("main-s2-a", minutes=2, user="you"))
    await add(files, tasks_path("a/b", "s1"), task("other-s1-a", minutes=3))
    await add(files, ROOT_TASKS, task("root-a", minutes=5, state="completed"))


async def listed(files: LocalFiles, **wanted: str) -> list[str]:
    return [each.id for each in (await list_tasks(files, now=NOON, **wanted)).tasks]


@pytest.mark.req("HE-C3-task")
async def test_all_tasks_of_a_root_are_in_one_list_the_newest_first(files: LocalFiles) -> None:
    assert (await list_tasks(files, now=NOON)).tasks == ()
    await filled(files)
    assert await listed(files) == ["root-a", "main-s1-b", "other-s1-a", "main-s2-a", "main-s1-a"]


@pytest.mark.req("AS-STATE-04")
async def test_the_list_is_narrowed_by_agent_session_and_user(files: LocalFiles) -> None:
    await filled(files)
    assert await listed(files, agent="a/b") == ["other-s1-a"]
    assert await listed(files, agent="main") == ["main-s1-b", "main-s2-a", "main-s1-a"]
    assert await listed(files, session="s1") == ["main-s1-b", "other-s1-a", "main-s1-a"]
    assert await listed(files, agent="main", session="s2") == ["main-s2-a"]
    assert await listed(files, user="me") == ["root-a", "main-s1-b", "other-s1-a", "main-s1-a"]
    assert await listed(files, agent="nobody", user="me") == []


@pytest.mark.req("AS-TASK-01")
async def test_what_shows_no_life_is_shown_as_orphaned_and_left_as_it_is(files: LocalFiles, tmp_path: Path) -> None:
    await filled(files)
    before = contents(tmp_path)
    shown = {each.id: each.state for each in (await list_tasks(files, now=NOON + timedelta(minutes=12))).tasks}
    assert [task_id for task_id, state in shown.items() if state == "orphaned"] == ["main-s2-a", "main-s1-a"]
    assert contents(tmp_path) == before


@pytest.mark.req("AS-TASK-01")
@pytest.mark.parametrize(
    ("path", "seen"),
    [
        (tasks_path("main", "s1"), state_path("main", "s1")),
        (tasks_path("main", "s1"), transcript_path("main", "s1")),
        (tasks_path("main", "s1"), f"{tasks_path('main', 's1')}/x"),
        (ROOT_TASKS, state_path("main", "s1")),
    ],
)
async def test_a_folder_in_the_place_of_a_document_is_named_as_unreadable(
    files: LocalFiles, tmp_path: Path, path: str, seen: str
) -> None:
    await add(files, tasks_path("main", "s2"), task("main-s2-a"))
    (tmp_path / path).mkdir(parents=True)
    await files.create(seen, b"{}")
    found = await list_tasks(files, now=NOON)
    assert ([each.id for each in found.tasks], found.unreadable) == (["main-s2-a"], (path,))
    wanted = (path,) if path != ROOT_TASKS else ()
    assert (await list_tasks(files, session="s1", now=NOON)).unreadable == wanted
    assert (await list_tasks(files, session="s2", now=NOON)).unreadable == ()


@pytest.mark.req("AS-TASK-01")
@pytest.mark.parametrize("path", [tasks_path("main", "s1"), ROOT_TASKS])
async def test_a_document_that_cannot_be_read_is_named_and_hides_no_other(
    files: LocalFiles, tmp_path: Path, path: str
) -> None:
    await filled(files)
    (tmp_path / path).write_bytes(b'{"v":1,"tas')
    (tmp_path / f"{path}.broken-1").write_bytes(b"older")
    found = await list_tasks(files, now=NOON)
    assert found.unreadable == (path,)
    assert len(found.tasks) == (3 if "s1" in path else 4)
    with pytest.raises(TaskNotFound, match=r"1 of the documents can't be read\."):
        await find_task(files, "main-s9-a")


async def test_a_task_is_found_by_a_part_of_its_id(files: LocalFiles) -> None:
    await filled(files)
    assert await find_task(files, "root-a") == (ROOT_TASKS, task("root-a", minutes=5, state="completed"))
    assert (await find_task(files, "n-s2-a"))[0] == tasks_path("main", "s2")
    for unknown in ("s2-a", "nothing", ""):
        with pytest.raises(TaskNotFound):
            await find_task(files, unknown)
    with pytest.raises(InvalidQuery):
        await find_task(files, "main-s")


async def test_a_task_is_asked_to_stop_as_far_as_somebody_runs_it(files: LocalFiles) -> None:
    await filled(files)
    asked = await request_stop(files, REDACTOR, "main-s1-b", now=NOON)
    assert (asked.state, asked.cancelling) == ("running", True)
    assert await FileTaskStore(files, tasks_path("main", "s1"), REDACTOR).get("main-s1-b") == asked
    ended = await request_stop(files, REDACTOR, "root-a", now=LATER)
    assert ended == task("root-a", minutes=5, state="completed")
    lost = await request_stop(files, REDACTOR, "main-s2-a", now=NOON + timedelta(minutes=12))
    assert (lost.state, lost.ended_at) == ("cancelled", NOON + timedelta(minutes=12))
    with pytest.raises(TaskNotFound):
        await request_stop(files, REDACTOR, "nothing-like-it", now=NOON)


async def test_an_older_orphan_can_be_cancelled_through_the_list(files: LocalFiles) -> None:
    await add(files, ROOT_TASKS, replace(task("root-b"), state="orphaned", error="Lost."))
    assert (await request_stop(files, REDACTOR, "root-b", now=NOON)).state == "cancelled"


async def test_a_closed_folder_is_named_where_it_may_hide_tasks(tmp_path: Path) -> None:
    agents = "workspace/agents"

    class Closed(LocalFiles):
        async def list_unreadable(self, prefix: str = "") -> tuple[str, ...]:
            assert prefix == agents
            return (f"{agents}/a/sessions", f"{agents}/a/tasks", f"{agents}/b")

    found = await list_tasks(Closed(tmp_path), now=NOON)
    assert found.unreadable == (f"{agents}/a/tasks", f"{agents}/b")
