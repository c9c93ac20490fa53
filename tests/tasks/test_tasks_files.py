"""Tasks in a file: no secret in it, nothing lost between processes, and a broken one is never written over."""

import errno
import json
import logging
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disks import FailingDisk, StepDisk
from ricordo.errors import DocumentInvalid, StorageBusy, StorageFull, StorageReadOnly, TaskNotFound, VersionConflict
from ricordo.guard import Redactor
from ricordo.jobs import FileTaskStore, Task, TaskDocument, TaskProgress, complete_task, encode_tasks
from ricordo.storage import Disk
from ricordo.storage.local import LocalFiles
from ricordo.testing import InMemoryFiles
from ricordo.workspace import tasks_path

pytestmark = pytest.mark.anyio

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
PATH = tasks_path("main", "s1")
LATER = NOON + timedelta(seconds=30)
SECRET = "sk-ant-api03-" + "Ab3dEf9hIjKlMn0pQrStUvWxYz12345678" * 2
BROKEN = [b"", b"{", b"[]", b"\xff\xfe", b'{"v":0,"tasks":[]}', b'{"v":1,"tasks":[{"id":"t1"', b'{"v":1,"tasks":[{}]}']


def task(task_id: str) -> Task:
    return Task(
        id=task_id, type="local_bash", title=f"Task {task_id}", state="running", created_at=NOON, last_seen_at=NOON
    )


def made(root: Path, disk: Disk | None = None) -> FileTaskStore:
    return FileTaskStore(LocalFiles(root, disk=disk), PATH, Redactor(bytes(32)))


def beat(found: Task) -> Task:
    return replace(found, last_seen_at=found.last_seen_at + timedelta(seconds=30))


def written(root: Path) -> list[str]:
    return [each["id"] for each in json.loads((root / PATH).read_bytes())["tasks"]]


def broken(root: Path, content: bytes) -> None:
    (root / PATH).parent.mkdir(parents=True, exist_ok=True)
    (root / PATH).write_bytes(content)


@pytest.mark.req("FC-SECRET")
async def test_no_secret_reaches_the_disk(tmp_path: Path) -> None:
    store = made(tmp_path)
    told = f"export KEY={SECRET}"
    await store.add(replace(task("t1"), title=told, worker=told, extra={"note": [told]}))
    await store.update("t1", lambda found: replace(found, progress=TaskProgress(text=told)))
    await store.add(task("t2"))
    await store.update("t2", lambda found: replace(found, state="failed", error=told))
    done = await store.update(
        "t1", lambda found: complete_task(found, told + "\n" + "word " * 19_970 + "\n" + told, NOON)
    )
    assert SECRET[:20] not in repr(done)
    assert SECRET[:20].encode() not in (tmp_path / PATH).read_bytes()


@pytest.mark.req("FC-SECRET")
@pytest.mark.parametrize(("name", "most"), [("title", 80), ("error", 2_000), ("result", 100_000)])
@settings(max_examples=20)
@given(st.integers(-60, 60), st.sampled_from(["", " ", "\n", "é"]))
async def test_no_piece_of_a_secret_at_a_cut_reaches_the_disk(name: str, most: int, around: int, after: str) -> None:
    files = InMemoryFiles()
    store = FileTaskStore(files, PATH, Redactor(bytes(32)))
    told = "word " * ((most + around) // 5) + SECRET + after * 40
    await store.add(replace(task("t1"), **{name: told}))  # type: ignore[arg-type]
    await store.update("t1", lambda found: replace(found, last_seen_at=LATER, **{name: told}))  # type: ignore[arg-type]
    kept = (await files.read(PATH)).data.decode()
    assert pieces(SECRET) & pieces(kept) == set()
    assert len(getattr((await store.all())[0], name)) <= most


def pieces(text: str) -> set[str]:
    return {text[at : at + 8] for at in range(len(text) - 7)}


@pytest.mark.parametrize("depth", [0, 1])
async def test_a_folder_in_the_place_of_the_document_is_no_record_without_tasks(tmp_path: Path, depth: int) -> None:
    folder = tmp_path / PATH
    folder.mkdir(parents=True)
    if depth:
        (folder / "x").write_text("x")
    store = made(tmp_path)
    for call in (store.all(), store.get("t1"), store.add(task("t1")), store.update("t1", beat)):
        with pytest.raises(DocumentInvalid, match="is no file"):
            await call
    assert folder.is_dir()


async def test_a_look_reads_the_document_only_when_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = LocalFiles(tmp_path)
    store, other = FileTaskStore(files, PATH, Redactor(bytes(32))), made(tmp_path)
    await store.add(task("t1"))
    await store.get("t1")
    with monkeypatch.context() as patched:
        patched.setattr(files, "read", None)
        assert await store.get("t1") == task("t1")
    await other.update("t1", lambda found: replace(found, cancelling=True))
    assert (await store.get("t1")).cancelling


@pytest.mark.req("AS-TASK-01")
@pytest.mark.parametrize("content", BROKEN)
async def test_a_document_that_cannot_be_read_is_kept_and_followed_by_what_is_known(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store, other = made(tmp_path), made(tmp_path)
    await store.add(task("t1"))
    await other.add(task("t2"))
    await store.all()
    broken(tmp_path, content)
    with pytest.raises(DocumentInvalid):
        await store.all()
    with pytest.raises(DocumentInvalid):
        await store.get("t1")
    assert (tmp_path / PATH).read_bytes() == content
    with caplog.at_level(logging.WARNING, logger="ricordo.tasks"):
        await store.add(task("t3"))
    assert store.quarantined_as == f"{PATH}.broken-1"
    assert store.quarantined_as in caplog.text
    assert (tmp_path / store.quarantined_as).read_bytes() == content
    assert written(tmp_path) == ["t1", "t2", "t3"]
    broken(tmp_path, content + b" ")
    await store.update("t1", beat)
    assert store.quarantined_as == f"{PATH}.broken-2"
    assert (tmp_path / f"{PATH}.broken-1").read_bytes() == content
    assert written(tmp_path) == ["t1", "t2", "t3"]


@pytest.mark.req("AS-TASK-01")
async def test_a_process_that_knows_nothing_of_a_broken_document_never_empties_it(tmp_path: Path) -> None:
    broken(tmp_path, b'{"v":1,"tas')
    store = made(tmp_path)
    with pytest.raises(DocumentInvalid):
        await store.update("t1", beat)
    assert [path.name for path in (tmp_path / PATH).parent.iterdir()] == ["s1.json"]
    await store.add(task("t1"))
    assert (tmp_path / f"{PATH}.broken-1").read_bytes() == b'{"v":1,"tas'
    assert written(tmp_path) == ["t1"]


@pytest.mark.req("AS-STATE-04", "AS-TASK-01")
async def test_every_process_brings_its_own_tasks_back(tmp_path: Path) -> None:
    store, other = made(tmp_path), made(tmp_path)
    await store.add(task("t1"))
    await other.add(task("t2"))
    broken(tmp_path, b"torn")
    await store.add(task("t3"))
    assert written(tmp_path) == ["t1", "t3"]
    assert await other.get("t2") == task("t2")
    await other.update("t2", beat)
    assert written(tmp_path) == ["t1", "t2", "t3"]
    (tmp_path / PATH).unlink()
    await store.update("t1", beat)
    await other.update("t2", lambda found: complete_task(found, "Done.", NOON))
    assert written(tmp_path) == ["t1", "t2", "t3"]


@pytest.mark.req("AS-TASK-01")
async def test_a_task_that_ended_is_not_brought_back(tmp_path: Path) -> None:
    store = made(tmp_path)
    await store.add(task("t1"))
    await store.update("t1", lambda found: complete_task(found, "Done.", NOON))
    (tmp_path / PATH).unlink()
    with pytest.raises(TaskNotFound):
        await store.get("t1")
    await store.add(task("t2"))
    assert written(tmp_path) == ["t2"]


@pytest.mark.req("AS-TASK-01")
async def test_a_root_that_can_only_be_read_says_so_and_loses_nothing(tmp_path: Path) -> None:
    await made(tmp_path).add(task("t1"))

    class ReadOnly(Disk):
        def make_file(self, path: str, flags: int = 0) -> int:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    store = made(tmp_path, ReadOnly())
    assert await store.all() == (task("t1"),)
    with pytest.raises(StorageReadOnly):
        await store.update("t1", beat)
    broken(tmp_path, b"torn")
    with pytest.raises(StorageReadOnly):
        await store.add(task("t2"))
    assert (tmp_path / PATH).read_bytes() == b"torn"
    assert store.quarantined_as == ""


@pytest.mark.req("AS-TASK-01")
async def test_a_full_disk_at_any_step_loses_no_record(tmp_path: Path) -> None:
    async def work(store: FileTaskStore) -> None:
        await store.add(task("t2"))
        await store.update("t2", lambda found: complete_task(found, "Done.", NOON))

    counting = StepDisk(lambda _: None)
    await made(tmp_path / "whole").add(task("t1"))
    await work(made(tmp_path / "whole", counting))
    for at in range(1, len(counting.steps) + 1):
        root = tmp_path / str(at)
        await made(root).add(task("t1"))
        with pytest.raises(StorageFull):
            await work(made(root, FailingDisk(at, errno.ENOSPC, halves=True)))
        found = {each.id: each for each in await made(root).all()}
        assert found.pop("t1") == task("t1")
        assert set(found) <= {"t2"}
        assert (await made(root).update("t1", beat)).last_seen_at > NOON


@pytest.mark.req("AS-TASK-01")
async def test_a_full_disk_while_a_broken_document_is_set_aside_keeps_its_bytes(tmp_path: Path) -> None:
    counting = StepDisk(lambda _: None)
    broken(tmp_path / "whole", b"torn")
    await made(tmp_path / "whole", counting).add(task("t1"))
    for at in range(1, len(counting.steps) + 1):
        root = tmp_path / str(at)
        broken(root, b"torn")
        store = made(root, FailingDisk(at, errno.ENOSPC))
        with pytest.raises(StorageFull):
            await store.add(task("t1"))
        again = made(root)
        if (root / PATH).read_bytes() == b"torn":
            await again.add(task("t1"))
        assert [path.name for path in sorted((root / PATH).parent.iterdir())] == ["s1.json", "s1.json.broken-1"]
        assert (root / f"{PATH}.broken-1").read_bytes() == b"torn"
        assert await again.all() == (task("t1"),)


async def test_a_document_that_others_change_without_end_is_given_up_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Busy(LocalFiles):
        async def replace(self, path: str, data: bytes, *, expected: str) -> str:
            raise VersionConflict

    monkeypatch.setattr("ricordo.jobs.tasks.store._MAX_TRIES", 3)
    await made(tmp_path).add(task("t1"))
    with pytest.raises(StorageBusy):
        await FileTaskStore(Busy(tmp_path), PATH, Redactor(bytes(32))).update("t1", beat)
    assert await made(tmp_path).all() == (task("t1"),)


@pytest.mark.req("AS-TASK-01")
async def test_the_oldest_ended_make_room_and_the_others_stay(tmp_path: Path) -> None:
    ended = [complete_task(task(f"t{number:03}"), "Done.", NOON + timedelta(seconds=number)) for number in range(205)]
    broken(tmp_path, encode_tasks(TaskDocument(tasks=(task("at work"), *ended))))
    await made(tmp_path).add(task("t999"))
    ids = written(tmp_path)
    assert len(ids) == 200
    assert (ids[0], ids[1], ids[-1]) == ("at work", "t007", "t999")
