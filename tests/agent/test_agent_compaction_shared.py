"""One session that two agents sum up at once, and a session that grows: nothing is lost, and no turn costs more."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from agents_at_work import is_valid, said, spoken, transcript
from compacting_agents import NOTED, compacting, decided, learned, summed_up
from dialect_validity import anthropic_faults, openai_faults
from named_disks import NamedDisk
from piped_processes import start_script
from ricordo import CompactionConfig
from ricordo.messages import get_mark
from ricordo.storage import StoredFile
from ricordo.storage.local import LocalFiles
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem

pytestmark = pytest.mark.anyio

_HERE = Path(__file__).parent


def answered(request: RecordedRequest) -> ScriptItem:
    """Sum up, or take note."""
    if not request.tools:
        return summed_up(request)
    assert not openai_faults(request.messages)
    assert not anthropic_faults(request.messages)
    return Say(NOTED)


async def checked(root: Path, count: int) -> None:
    """Check that all of `count` decisions were said once, are learned once, and that the session goes on."""
    logged = await transcript(root)
    asked = Counter(text for role, text in spoken(logged) if text.startswith("We"))
    assert asked == Counter(decided(number) for number in range(count))
    assert len({message.id for message in logged}) == len(logged) == 2 * count
    async with compacting(ScriptedModel(answered), root) as again:
        await again.send("And now?")
        assert is_valid(again.window)
        assert await again.drain() == 0
        assert again.memory is not None
        contents = "\n".join(entry.content for entry in await again.memory.entries())
        assert learned(contents, count) == [1] * count
        assert [check.name for check in await again.memory.doctor() if not check.ok] == []


@pytest.mark.req("AS-TRANS-03", "AS-CHAIN-03")
async def test_two_agents_that_sum_up_one_session_at_once_lose_nothing_and_learn_nothing_twice(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    async with compacting(ScriptedModel(answered), root) as one:
        await one.record([message for number in range(4) for message in (said(decided(number)), said(NOTED))])
        async with compacting(ScriptedModel(answered), root) as other:
            for number in range(4, 10, 2):
                async with anyio.create_task_group() as group:
                    group.start_soon(one.send, decided(number))
                    group.start_soon(other.send, decided(number + 1))
                assert is_valid(one.window)
                assert is_valid(other.window)
                async with anyio.create_task_group() as group:
                    group.start_soon(one.compact)
                    group.start_soon(other.compact)
            assert get_mark(one.window[0]) == get_mark(other.window[0]) == "summary"
            made = await one.compactions.all()
            assert made == await other.compactions.all()
            for each in made:
                assert len(await other.compactions.expand(each.handle)) == each.messages
            assert await one.drain() == 0
            assert await other.drain() == 0
    await checked(root, 10)


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count the bytes that are read from each file of the root."""
    found: Counter[str] = Counter()
    read, read_from = LocalFiles.read, LocalFiles.read_from

    async def whole(files: LocalFiles, path: str) -> StoredFile:
        stored = await read(files, path)
        found[path] += len(stored.data)
        return stored

    async def part(files: LocalFiles, path: str, offset: int, length: int | None = None) -> bytes:
        data = await read_from(files, path, offset, length)
        found[path] += len(data)
        return data

    with monkeypatch.context() as patched:
        patched.setattr(LocalFiles, "read", whole)
        patched.setattr(LocalFiles, "read_from", part)
        yield found


def _run_two(root: Path) -> None:
    """Let two processes say six decisions each in one session, at once."""
    running = [start_script(_HERE / "compaction_process.py", root, first) for first in (0, 6)]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in running:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert out.split() == ["acked"] * 6


@pytest.mark.req("AS-TRANS-03")
async def test_two_processes_that_sum_up_one_session_at_once_lose_nothing(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    await anyio.to_thread.run_sync(_run_two, root)
    await checked(root, 12)


class Written(NamedDisk):
    """A disk that counts the bytes that are written to it."""

    def __init__(self) -> None:
        """Count from now on."""
        super().__init__(lambda _: None)
        self.bytes = 0

    def write(self, descriptor: int, data: bytes) -> None:
        """Write and count."""
        self.bytes += len(data)
        super().write(descriptor, data)


@pytest.mark.req("AS-TRANS-01")
@pytest.mark.parametrize("many", [1_000, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_a_turn_reads_and_writes_no_more_in_a_long_session_than_in_a_short_one(
    tmp_path: Path, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cost(count: int) -> tuple[Counter[str], int]:
        def looking(request: RecordedRequest) -> ScriptItem:
            last = request.messages[-1]
            return Call("look_up", {"topic": "main"}) if last.role == "user" else Say(NOTED)

        disk = Written()
        config = CompactionConfig(trigger_messages=10, keep_messages=2, model="offline")
        async with compacting(ScriptedModel(looking), tmp_path / str(count), disk=disk, compaction=config) as one:
            talk = [said(f"Number {number} of what is said, and nothing that lasts.") for number in range(count)]
            await one.record(talk)
            await one.send("Begin.")
            assert await one.drain() == 0
            before = disk.bytes
            with counted(monkeypatch) as found:
                for number in range(6):
                    await one.send(f"Go on with {number}.")
                    assert await one.drain() == 0
            assert get_mark(one.window[0]) == "summary"
            return found, disk.bytes - before

    (few, little), (more, much) = await cost(400), await cost(many)
    # numbers and moments are written with a few digits more or less, and that is all
    assert abs(more.total() - few.total()) <= 100
    assert 0.99 * little <= much <= 1.01 * little
    assert few.keys() == more.keys()
    assert not [path for path in more if "/compactions/" in path or path.endswith("/s.json")]
