"""Many processes on one root: what was acknowledged is there, once, and nobody is told that something is locked."""

import random
import re
import time
from collections import Counter
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync

from piped_processes import PipedProcess, start_script
from ricordo import Entry, Memory, Scope
from ricordo.errors import VersionConflict
from ricordo.runtime.extraction import RecordedSession
from ricordo.storage import local as path_lock
from ricordo.storage.local import LocalFiles

WRITER = Path(__file__).parent / "writer.py"
SCOPE = Scope(user="me", project="shop")

pytestmark = [pytest.mark.anyio, pytest.mark.req("FC-LOCKED")]


def start(root: Path, name: str, what: str, amount: float) -> PipedProcess:
    return start_script(WRITER, root, name, what, amount)


def all_told(running: dict[str, PipedProcess]) -> dict[str, list[str]]:
    """Let all of them go at once, and return what each told; a process that fails fails the test."""
    for process in running.values():
        assert process.stdout.readline() == "ready\n"
    for process in running.values():
        process.stdin.write("\n")
        process.stdin.flush()
    told = {}
    for name, process in running.items():
        out, trouble = process.communicate()
        told[name] = out.splitlines()
        assert process.returncode == 0, trouble[-2000:]
        assert "locked" not in trouble
    return told


async def left(root: Path) -> tuple[list[Entry], dict[str, RecordedSession]]:
    async with Memory.open(root, scope=SCOPE) as memory:
        sessions = {info.session: await memory.session(info.session) for info in await memory.sessions()}
        checks = {check.name: check for check in await memory.doctor()}
        assert [name for name, check in checks.items() if not check.ok and name != "lines"] == []
        return await memory.entries(), sessions


def saves(root: Path, count: int) -> dict[str, list[str]]:
    return all_told({name: start(root, name, "save", count) for name in ("one", "two")})


@pytest.mark.req("GO-I6", "GO-D9")
async def test_two_processes_that_save_200_times_each_leave_400_memories(tmp_path: Path) -> None:
    root = tmp_path / "root"
    told = await run_sync(saves, root, 200)
    assert all(len(lines) == 200 for lines in told.values())
    shared = re.compile(r"files-[0-9a-f]{2}\.lock")
    assert all(shared.fullmatch(path.name) for path in root.rglob("files-*.lock")), "no process has a lock of its own"
    entries, _ = await left(root)
    wanted = sorted(f"The number of {name} is {number}." for name in told for number in range(200))
    assert sorted(entry.content for entry in entries) == wanted
    assert len({entry.id for entry in entries}) == 400
    assert {entry.by for entry in entries} == {"user"}
    async with Memory.open(root, scope=SCOPE) as memory:
        for number in (0, 77, 199):
            found = [hit.entry.content for hit in await memory.recall(f"the number of two is {number}", limit=400)]
            assert f"The number of two is {number}." in found
        assert len(await memory.recall("", limit=1000)) == 400


@pytest.mark.req("GO-I6", "GO-D9")
async def test_a_write_waits_for_whoever_holds_its_lock_and_looks_again_inside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    files, path, tries = LocalFiles(tmp_path), tmp_path / "memory.md", list[int]()
    before = await files.create("memory.md", b"old\n")
    take = path_lock._lock_file

    def tried(descriptor: int, operation: int) -> None:
        tries.append(operation)
        take(descriptor, operation)

    async def replaced() -> None:
        with pytest.raises(VersionConflict):
            await files.replace("memory.md", b"new\n", expected=before)

    monkeypatch.setattr(path_lock, "_lock_file", tried)
    (lock,) = (tmp_path / "locks").glob("files-*.lock")
    with lock.open("r+b") as held, anyio.fail_after(20):
        fcntl.flock(held, fcntl.LOCK_EX)
        async with anyio.create_task_group() as group:
            group.start_soon(files.append, "memory.md", b"appended\n")
            group.start_soon(replaced)
            while len(tries) < 4:  # noqa: ASYNC110  (a lock tells nobody that it is waited for)
                await anyio.sleep(0.001)
            assert path.read_bytes() == b"old\n"
            path.write_bytes(b"by another\n")
            fcntl.flock(held, fcntl.LOCK_UN)
    assert path.read_bytes() == b"by another\nappended\n"


def hard_life(root: Path, seconds: float) -> dict[str, list[str]]:
    return all_told({f"w{number}": start(root, f"w{number}", "everything", seconds) for number in range(8)})


async def check_hard_life(root: Path, seconds: float) -> None:
    told = await run_sync(hard_life, root, seconds)
    lines = [line for lines in told.values() for line in lines]
    assert [line for line in lines if line.startswith(("trouble", "not found"))] == []
    assert all(any(line.startswith("saved") for line in lines) for lines in told.values())
    entries, sessions = await left(root)
    kept = Counter(entry.content for entry in entries)
    wanted = {
        f"The number of {name} is {line.removeprefix('saved ')}."
        for name, lines in told.items()
        for line in lines
        if line.startswith("saved")
    }
    assert [content for content in wanted if kept[content] != 1] == []
    assert len({entry.id for entry in entries}) == len(entries)
    said = Counter(message.text for session in sessions.values() for message in session.messages)
    ingested = [line.removeprefix("ingested ") for line in lines if line.startswith("ingested")]
    assert [text for text in ingested if said[text] != 1] == []
    assert [
        text for text in ingested if not any(text in (entry.source.quote or entry.content) for entry in entries)
    ] == []


@pytest.mark.req("FC-LOCKED", "GO-I6", "GO-D9")
async def test_eight_processes_on_one_root_lock_nobody_out_and_lose_nothing(tmp_path: Path) -> None:
    await check_hard_life(tmp_path / "root", 0.4)


@pytest.mark.req("GO-I6", "GO-D9")
@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_eight_processes_on_one_root_for_thirty_seconds_lose_nothing(tmp_path: Path) -> None:
    await check_hard_life(tmp_path / "root", 30)


def killed_at_random(root: Path, times: int) -> list[list[str]]:
    chance = random.Random(7)
    told = []
    for number in range(times):
        process = start(root, f"w{number}", "ingest", 10_000)
        assert process.stdout.readline() == "ready\n", process.told()
        first = process.stdout.readline() if number % 3 else ""
        time.sleep(chance.uniform(0.05, 0.4))
        process.kill()
        told.append((first + process.communicate()[0]).splitlines())
    return told


async def check_random_kills(root: Path, times: int) -> None:
    told = await run_sync(killed_at_random, root, times)
    # each third one may be killed before it said anything; the others were killed after
    assert all(lines for number, lines in enumerate(told) if number % 3)
    entries, sessions = await left(root)
    kept = Counter(entry.content for entry in entries)
    said = Counter(message.text for message in sessions["shared"].messages)
    for number, lines in enumerate(told):
        for line in lines:
            act, _, rest = line.partition(" ")
            if act == "saved":
                assert kept[f"The number of w{number} is {rest}."] == 1
            elif act == "ingested" and rest.endswith("."):
                assert said[rest] == 1
                assert sum(rest in (entry.source.quote or "") for entry in entries) == 1
    assert max(kept.values()) == 1


@pytest.mark.req("GO-I7", "GO-G6")
async def test_two_kills_at_random_moments_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    await check_random_kills(tmp_path / "root", 2)


@pytest.mark.req("GO-I7", "GO-G6")
@pytest.mark.soak
async def test_fifty_kills_at_random_moments_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    await check_random_kills(tmp_path / "root", 50)
