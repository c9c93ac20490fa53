"""When the disk fails, the old content stays, the error is typed, and the next write works."""

import errno
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from disks import FailingDisk, StepDisk
from piped_processes import start_code
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.errors import (
    AlreadyExists,
    EditRefused,
    FileMissing,
    RicordoError,
    StorageBusy,
    StorageFailed,
    StorageFull,
    StorageReadOnly,
)
from ricordo.guard import Redactor
from ricordo.storage import Disk
from ricordo.storage.local import LocalFiles
from ricordo.workspace import ChangeSets
from ricordo.workspace.documents import TextReplacement, create_document, edit_document

pytestmark = pytest.mark.anyio
Act = Callable[[LocalFiles], Awaitable[object]]

OLD = b"old line\n"
NEW = b"a new line that is long enough to be torn in the middle\n"


async def _version(files: LocalFiles) -> str:
    return (await files.read("file")).version


async def _replace(files: LocalFiles) -> object:
    return await files.replace("file", NEW, expected=await _version(files))


async def _append(files: LocalFiles) -> object:
    return await files.append("file", NEW)


async def _first_append(files: LocalFiles) -> object:
    return await files.append("sub/new", NEW, header=b"# head\n")


async def _create(files: LocalFiles) -> object:
    return await files.create("sub/new", NEW)


ACTS: dict[str, Act] = {"replace": _replace, "append": _append, "first append": _first_append, "create": _create}


async def _prepared(root: Path) -> None:
    await LocalFiles(root, locks=root.parent / "locks").create("file", OLD)


def _with(disk: Disk, root: Path) -> LocalFiles:
    return LocalFiles(root, locks=root.parent / "locks", disk=disk)


async def _steps_of(act: Act, root: Path) -> list[str]:
    await _prepared(root)
    disk = StepDisk(lambda _: None)
    await act(_with(disk, root))
    return disk.steps


def _contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.req("DF-UPD-atomic")
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS.keys())
@pytest.mark.parametrize("halves", [False, True], ids=["whole", "half-written"])
@pytest.mark.parametrize(
    ("code", "error"),
    [
        (errno.ENOSPC, StorageFull),
        (errno.EDQUOT, StorageFull),
        (errno.EROFS, StorageReadOnly),
        (errno.EIO, StorageFailed),
    ],
    ids=["full", "quota", "read-only", "broken"],
)
async def test_a_disk_that_fails_at_any_step_keeps_the_old_content_and_says_so(
    act: Act, halves: bool, code: int, error: type[RicordoError], tmp_path: Path
) -> None:
    steps = await _steps_of(act, tmp_path / "whole" / "root")
    for at in range(1, len(steps) + 1):
        if steps[at - 1] == "sync_folder" and steps[at - 2] == "rename":
            continue  # the new file is in its place by then, whole
        root = tmp_path / str(at) / "root"
        await _prepared(root)
        with pytest.raises(error):
            await act(_with(FailingDisk(at, code, halves=halves), root))
        left = _contents(root)
        assert left.pop("file") == OLD, steps[at - 1]
        assert left.pop("sub/new", b"# head\n") == b"# head\n"
        assert left == {}
        await act(_with(Disk(), root))
        assert any(NEW in data for data in _contents(root).values())


async def test_an_append_whose_bytes_can_not_be_taken_back_is_closed_by_the_next_one(tmp_path: Path) -> None:
    class Stuck(FailingDisk):
        def truncate(self, descriptor: int, size: int) -> None:
            raise OSError(errno.EIO, "stuck")

    root = tmp_path / "root"
    await _prepared(root)
    with pytest.raises(StorageFull):
        await _with(Stuck(1, errno.ENOSPC, halves=True), root).append("file", NEW)
    await _with(Disk(), root).append("file", b"next\n")
    lines = (root / "file").read_bytes().split(b"\n")
    assert lines[0] + b"\n" == OLD
    assert lines[2] == b"next"


@pytest.mark.req("GO-I9")
async def test_reading_goes_on_when_nothing_can_be_written(tmp_path: Path) -> None:
    class ReadOnly(Disk):
        def make_file(self, path: str, flags: int = 0) -> int:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

        def open(self, path: str, flags: int) -> int:
            if flags & (os.O_WRONLY | os.O_RDWR):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS))
            return super().open(path, flags)

        def unlink(self, path: str) -> None:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    root = tmp_path / "root"
    await _prepared(root)
    files = _with(ReadOnly(), root)
    for act in (_replace, _append, _create, lambda files: files.delete("file")):
        with pytest.raises(StorageReadOnly):
            await act(files)
    assert (await files.read("file")).data == OLD
    assert [info.path for info in await files.list()] == ["file"]


async def test_a_file_that_can_not_be_read_is_an_error_of_its_own(tmp_path: Path) -> None:
    class Unreadable(Disk):
        def open(self, path: str, flags: int) -> int:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    root = tmp_path / "root"
    await _prepared(root)
    with pytest.raises(StorageFailed, match="can't be read"):
        await _with(Unreadable(), root).read("file")


async def test_a_file_where_a_folder_should_be_is_a_typed_error(tmp_path: Path) -> None:
    files = _with(Disk(), tmp_path / "root")
    await files.create("a", b"x")
    with pytest.raises(FileMissing):
        await files.read("a/b")
    with pytest.raises(StorageFailed):
        await files.create("a/b", b"x")
    assert (await files.read("a")).data == b"x"


async def test_a_pipe_is_no_file_and_nobody_waits_for_it(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    os.mkfifo(tmp_path / "root" / "pipe")
    files = _with(Disk(), tmp_path / "root")
    with anyio.fail_after(20):
        with pytest.raises(FileMissing):
            await files.read("pipe")
        assert await files.list() == []


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="descriptors are listed on Linux")
async def test_reading_a_folder_leaves_no_descriptor_open(tmp_path: Path) -> None:
    (tmp_path / "root" / "folder").mkdir(parents=True)
    files = _with(Disk(), tmp_path / "root")

    async def read() -> None:
        with pytest.raises(FileMissing):
            await files.read("folder")

    await read()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        await read()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.req("FC-LOCKED")
async def test_a_lock_that_stays_taken_is_an_error_after_its_time(tmp_path: Path) -> None:
    first = LocalFiles(tmp_path / "root")
    second = LocalFiles(tmp_path / "root", busy_seconds=0.05)
    async with first.lock("name"):
        with pytest.raises(StorageBusy):
            async with second.lock("name"):
                pass


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    old = os.umask(mask)
    try:
        yield
    finally:
        os.umask(old)


@pytest.mark.req("GO-D13")
@pytest.mark.parametrize("mask", [0, 0o022, 0o777], ids=oct)
async def test_files_are_private_whatever_the_umask(mask: int, tmp_path: Path) -> None:
    with _umask(mask):
        files = LocalFiles(tmp_path / "root")
        await files.create("a/b/c.md", b"x")
        await files.append("a/log", b"x\n", header=b"#\n")
        await files.replace("a/b/c.md", b"y", expected=(await files.read("a/b/c.md")).version)
        async with files.lock("name"):
            pass
    found = [tmp_path / "root", *(tmp_path / "root").rglob("*")]
    assert {oct(path.stat().st_mode & 0o777) for path in found if path.is_dir()} == {"0o700"}
    assert {oct(path.stat().st_mode & 0o777) for path in found if path.is_file()} == {"0o600"}


async def test_what_a_killed_process_left_is_swept_after_an_hour_and_nothing_else(tmp_path: Path) -> None:
    root = tmp_path / "root"
    files = LocalFiles(root)
    await files.create("a/file", b"x")
    old, young = root / "a" / ".~file.0123456789ab", root / "a" / ".~file.ba9876543210"
    foreign = root / "a" / ".~lock.file#"
    for path in (old, young, foreign):
        path.write_bytes(b"half")
    for path in (old, foreign):
        os.utime(path, (1, 1))
    assert await files.sweep() == 1
    assert not old.exists()
    assert young.exists()
    assert foreign.exists()
    assert [info.path for info in await files.list("a")] == ["a/.~lock.file#", "a/file"]


async def test_sweeping_does_not_stumble_over_files_that_vanish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = LocalFiles(tmp_path / "root")
    await files.create("file", b"x")
    (tmp_path / "root" / ".~file.0123456789ab").write_bytes(b"half")

    def gone(path: str) -> float:
        raise FileNotFoundError(errno.ENOENT, "gone", path)

    monkeypatch.setattr("os.path.getmtime", gone)
    assert await files.sweep() == 0


_CREATOR = """
import sys, anyio
from pathlib import Path
from ricordo.errors import AlreadyExists
from ricordo.storage.local import LocalFiles
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.guard import Redactor
from ricordo.workspace.history.change_sets import ChangeSets
from ricordo.workspace.documents import create_document

async def main():
    files = LocalFiles(Path(sys.argv[1]))
    clock = SystemClock()
    changes = ChangeSets(files, clock=clock, ids=MonotonicIds(clock))
    redactor = Redactor(bytes(32))
    won = []
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(sys.argv[3])):
        try:
            await create_document(
                files, changes, f"plans/{number}.md", sys.argv[2] * 2000, redactor=redactor, who="user"
            )
            won.append(number)
        except AlreadyExists:
            pass
    print(*won)

anyio.run(main)
"""


def _won_by(names: list[str], rounds: int, root: Path) -> dict[str, list[int]]:
    running = [start_code(_CREATOR, root, name, rounds) for name in names]
    won = {}
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.close()
    for name, process in zip(names, running, strict=True):
        won[name] = [int(number) for number in process.stdout.read().split()]
        assert process.wait(timeout=30) == 0
        process.close()
    return won


def _change_sets(files: LocalFiles) -> ChangeSets:
    clock = SystemClock()
    return ChangeSets(files, clock=clock, ids=MonotonicIds(clock))


async def _create_document(files: LocalFiles, path: str, content: str) -> None:
    await create_document(files, _change_sets(files), path, content, redactor=Redactor(bytes(32)), who="user")


async def _edit(files: LocalFiles, old: str, new: str, *, every: bool = False) -> int:
    edit = TextReplacement(old=old, new=new, every=every)
    changes = _change_sets(files)
    return await edit_document(files, changes, "plans/edit.md", edit, redactor=Redactor(bytes(32)), who="user")


async def _refused_edits(files: LocalFiles) -> None:
    await _create_document(files, "plans/edit.md", "one two one")
    with pytest.raises(EditRefused, match="2 times"):
        await _edit(files, "one", "three")
    for missing in ("four", ""):
        with pytest.raises(EditRefused):
            await _edit(files, missing, "x", every=True)


@pytest.mark.req("AS-FS-02")
async def test_creating_and_editing_refuse_rather_than_guess(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "root")
    document = tmp_path / "root" / "workspace" / "plans" / "edit.md"
    await _refused_edits(files)
    assert document.read_text() == "one two one"
    with pytest.raises(AlreadyExists):
        await _create_document(files, "/plans/edit.md", "another")
    assert document.read_text() == "one two one"
    assert await _edit(files, "two", "and") == 1
    assert await _edit(files, "one", "1", every=True) == 2
    assert document.read_text() == "1 and 1"
    names, rounds = ["a", "b"], 25
    won = await anyio.to_thread.run_sync(_won_by, names, rounds, tmp_path / "race")
    assert sorted(number for numbers in won.values() for number in numbers) == list(range(rounds))
    for name, numbers in won.items():
        for number in numbers:
            written = tmp_path / "race" / "workspace" / "plans" / f"{number}.md"
            assert written.read_text() == name * 2000
