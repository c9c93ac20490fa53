"""Whatever is done to a database of a root: each operation answers, and what waited in the inbox is found again."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_at_work import SCOPE
from agents_at_work import settings as settings_of
from command_line import ricordo
from hand_made_roots import begun
from places import place_of
from ricordo import HarnessAgent, Memory
from ricordo.testing import Say, ScriptedModel

pytestmark = [pytest.mark.may_block("it breaks and copies files"), pytest.mark.req("FC-STALE")]

INDEX, INBOX = "memory_index.db", "queue.db"
CITIES = ("Turin", "Oslo", "Leeds", "Porto", "Graz")
SESSIONS = len(CITIES)
ROOMS = [f"The printer {number} is in room {number * 7}." for number in range(12)]


async def _live(root: Path) -> None:
    """Leave a root with memories, and with five sessions that wait to be learned from, and one whose logs are full."""
    async with Memory.open(root, scope=SCOPE, settings=settings_of(root)) as memory:
        for room in ROOMS:
            await memory.remember(room)
    async with AsyncExitStack() as stack:
        for number in range(SESSIONS):
            agent = HarnessAgent(
                ScriptedModel([Say("Noted.")]),
                memory=root,
                scope=SCOPE,
                session=f"s{number}",
                settings=settings_of(root),
            )
            await (await stack.enter_async_context(agent)).send(f"My dentist in {CITIES[number]} is Dr. Ng.")
        # as a kill leaves it: the files are copied while everybody has them open
        shutil.copytree(root, root.with_name("killed"))
        shutil.copytree(root, root.with_name("logged"))
    for name in (INDEX, INBOX):
        with closing(sqlite3.connect(place_of(root.with_name("killed")) / name)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("root") / ".ricordo"
    anyio.run(_live, root)
    return root.with_name("killed")


@pytest.fixture
def root(killed: Path, tmp_path: Path) -> Path:
    return _copy(killed, tmp_path)


def _copy(root: Path, folder: Path) -> Path:
    """Return a copy of the root that counts as made here."""
    return begun(Path(shutil.copytree(root, folder / ".ricordo")), folder / "data")


async def _use(root: Path) -> int:
    """Use the memory with everything that it knew, and return how many sessions wait, are named or are learned from."""
    async with Memory.open(root, scope=SCOPE, settings=settings_of(root)) as memory:
        saved = await memory.remember("The lamp is on the desk.")
        assert {hit.entry.content for hit in await memory.recall("printer room", limit=len(ROOMS))} == set(ROOMS)
        assert [hit.entry.id for hit in await memory.recall("lamp desk", limit=1)] == [saved.id]
        checks = {check.name: check for check in await memory.doctor()}
        assert checks["inbox"].ok
        assert checks["index"].ok
        # in this order, as one may end meanwhile
        return checks["inbox"].count + checks["unlearned"].count + await _learned(memory)


async def _learned(memory: Memory) -> int:
    return sum("dentist" in entry.content for entry in await memory.entries())


async def _learn_all(root: Path) -> None:
    """Open and close the memory until every session is learned from, as closing works off what waits."""
    for _ in range(20):
        async with Memory.open(root, scope=SCOPE, settings=settings_of(root)) as memory:
            if await _learned(memory) >= SESSIONS:
                return
    raise AssertionError("some session was never learned from")


def _name_with_a_bad_byte(path: Path) -> None:
    _replaced(path, b"CREATE TABLE document", b"CREATE TABLE doc\xffment", b"CREATE TABLE job", b"CREATE TABLE j\xffb")


def _other_name(path: Path) -> None:
    _replaced(path, b" entry TEXT", b" extry TEXT", b"    agent TEXT", b"    aXent TEXT")


def _replaced(path: Path, *texts: bytes) -> None:
    data = path.read_bytes()
    for old, new in zip(texts[::2], texts[1::2], strict=True):
        data = data.replace(old, new, 1)
    assert data != path.read_bytes()
    path.write_bytes(data)


def _zeroed_page(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:8192] = bytes(4096)
    path.write_bytes(data)


def _zeroed_rows(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for end in range(8192, len(data), 4096):
        data[end - 512 : end] = bytes(512)
    path.write_bytes(data)


def _cut_off(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)


def _random_end(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] + bytes(number * 7 % 256 for number in range(len(data) // 2)))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "file").write_bytes(b"kept")


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder_as_log(path: Path) -> None:
    path.with_name(path.name + "-wal").mkdir()


def _other_types(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        if path.name == INBOX:
            connection.execute("UPDATE job SET created = 'soon', counts = x'00', session = 7")
        else:
            connection.execute("UPDATE chunk SET line = 'first', time = 'soon', content = x'ff'")


DAMAGES: list[Callable[[Path], None]] = [
    _name_with_a_bad_byte,
    _other_name,
    _zeroed_page,
    _zeroed_rows,
    _cut_off,
    _folder,
    _pipe,
    _folder_as_log,
    _other_types,
]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", [INDEX, INBOX])
def test_a_damaged_database_is_put_aside_and_everything_is_found_again(
    root: Path, name: str, damage: Callable[[Path], None]
) -> None:
    damage(place_of(root) / name)
    assert anyio.run(_use, root) >= SESSIONS
    assert list(place_of(root).glob(f"{name}.broken-*"))
    if name == INBOX:
        anyio.run(_learn_all, root)


@pytest.mark.parametrize("damage", [_cut_off, _random_end])
@pytest.mark.parametrize("name", [INDEX, INBOX])
def test_the_log_of_a_database_that_lost_its_end_hides_nothing_from_doctor_and_maintenance(
    killed: Path, tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    root = _copy(killed.with_name("logged"), tmp_path)
    for journal in place_of(root).glob("*-shm"):
        journal.unlink()
    damage(place_of(root) / f"{name}-wal")
    assert anyio.run(_use, root) >= SESSIONS
    ricordo("maintain", "--root", root, "--user", "me")
    anyio.run(_learn_all, root)


@pytest.mark.parametrize("name", [INDEX, INBOX])
def test_whatever_bytes_of_a_database_change_each_operation_answers(killed: Path, name: str, tmp_path: Path) -> None:
    size = (place_of(killed) / name).stat().st_size

    @settings(max_examples=5)
    @given(place=st.integers(0, size - 1), bytes_there=st.binary(min_size=1, max_size=40))
    def answers(place: int, bytes_there: bytes) -> None:
        shutil.rmtree(tmp_path / ".ricordo", ignore_errors=True)
        root = _copy(killed, tmp_path)
        data = bytearray((place_of(root) / name).read_bytes())
        data[place : place + len(bytes_there)] = bytes_there
        (place_of(root) / name).write_bytes(data[:size])
        assert anyio.run(_use, root) >= SESSIONS

    answers()
