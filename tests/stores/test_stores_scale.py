"""A store that grew: its preamble keeps its budget, and what is known of its files is not read or parsed again."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings
from hand_clock import HandClock
from ricordo import Entry
from ricordo.guard import parse_fence
from ricordo.messages import Tokens, estimate_text
from ricordo.runtime import open_store
from ricordo.storage import Disk
from ricordo.storage.local import LocalFiles
from ricordo.stores import SCHEMES, KeepsSessions, SessionNotes
from ricordo.stores.ledgers import DailyLedgers
from ricordo.stores.parsed_files import ParsedFile
from ricordo.workspace import render_entry
from watched_files import WatchedFiles

pytestmark = pytest.mark.anyio

KINDS = ("preamble", "fact", "preference", "decision")
BUDGETS = (Tokens(120), Tokens(1_000), Tokens(4_000))
TAGS = ("harbour", "quay", "anchor", "mole", "buoy")
SHOWN_TAGS = dict.fromkeys(["jsonl", "fanout"], " ".join(f"#{tag}" for tag in TAGS)) | {"sessions": ", ".join(TAGS)}


class QuickDisk(Disk):
    """A disk that does not wait for the medium."""

    def sync(self, descriptor: int) -> None:
        """Do not wait."""

    def sync_folder(self, path: str) -> None:
        """Do not wait."""


def address(scheme: str, folder: Path) -> str:
    if scheme == "fanout":
        return f"fanout:jsonl:{folder / 'one'},json:{folder / 'two'}"
    return f"{scheme}:{folder / scheme}{'?embedder=hashing' if scheme == 'vector' else ''}"


@pytest.mark.req("GO-G4-scale", "GO-I4", "AS-BUG-23")
@pytest.mark.parametrize("turns", [2, pytest.param(50, marks=[pytest.mark.soak, pytest.mark.timeout(600)])])
@pytest.mark.parametrize("scheme", [scheme for scheme in SCHEMES if scheme not in {"none", "ring", "mock"}])
async def test_after_thirty_sessions_a_preamble_is_within_its_budget_and_the_same_each_time(
    tmp_path: Path, scheme: str, turns: int
) -> None:
    clock, disk, given = HandClock(), QuickDisk(), settings(tmp_path / "r" / ".ricordo")
    place = address(scheme, tmp_path)
    for number in range(30):
        clock.turn(days=1)
        scope = replace(SCOPE, session=f"s{number}")
        async with open_store(place, scope=scope, settings=given, clock=clock, disk=disk) as store:
            for turn in range(turns):
                clock.turn(minutes=5)
                said = f"In session {number}, turn {turn}, the harbour and its ships were talked about at some length."
                await store.save(Entry(content=said, kind=KINDS[turn % 4], by="user", tags=TAGS))
            sessions = store.offers(KeepsSessions)
            if sessions:
                told = f"Session {number} was about the harbour. {'It went on for a while. ' * 40}"
                await sessions.close_session(SessionNotes(session=f"s{number}", summary=told, tags=TAGS))
    if scheme in {"layered", "folder"}:
        curated = tmp_path / scheme / ("users/me/workspace/MEMORY.md" if scheme == "layered" else "MEMORY.md")
        curated.write_text("".join(f"- The harbour has a pier {number} of its own.\n" for number in range(400)))
    texts: dict[int, set[str]] = {}
    for _ in range(2):
        async with open_store(place, scope=SCOPE, settings=given, clock=clock, disk=disk) as store:
            for budget in BUDGETS:
                for _ in range(2):
                    texts.setdefault(budget.count, set()).add(await store.preamble(budget))
            assert estimate_text(await store.preamble()) <= 4_000, "the default"
    for most, shown in texts.items():
        (text,) = shown
        assert estimate_text(text) <= most
        assert "harbour" in text or most == BUDGETS[0].count
        # in the order of a set they would be other bytes in another process
        assert SHOWN_TAGS.get(scheme, "") in text or most == BUDGETS[0].count
    if scheme == "markdown":
        (text,) = texts[1_000]
        assert "did not fit here" in text
        assert "session 29" in "".join(parse_fence(text) or ()).lower()


class CountingDisk(QuickDisk):
    """A quick disk that names the files that were opened only to be read."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def open(self, path: str, flags: int) -> int:
        if flags == os.O_RDONLY:
            self.read.append(path)
        return super().open(path, flags)


def rest(folder: Path) -> None:
    """Let every file be so old that its time of modification says whether it changed."""
    for path in folder.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))


@pytest.mark.parametrize("scheme", ["sessions", "markdown", "jsonl", "json", "fulltext", "vector", "folder", "fanout"])
async def test_what_did_not_change_is_not_read_again(tmp_path: Path, scheme: str) -> None:
    disk, given = CountingDisk(), settings(tmp_path / "r" / ".ricordo")
    async with open_store(address(scheme, tmp_path), scope=SCOPE, settings=given, disk=disk) as store:
        for number in range(12):
            await store.save(Entry(content=f"Ship {number} lies in the harbour.", by="user"))
        rest(tmp_path)
        found = await store.recall("harbour", 20)
        shown = await store.preamble()
        disk.read.clear()
        assert [hit.entry for hit in await store.recall("harbour", 20)] == [hit.entry for hit in found]
        assert await store.preamble() == shown
        await store.recall("lighthouse")
        assert disk.read == []
        assert len(found) == 12


async def test_a_long_memory_of_a_ledger_is_read_once_until_its_file_changes(tmp_path: Path) -> None:
    files = WatchedFiles(LocalFiles(tmp_path))
    ledgers, entry = DailyLedgers(files, ""), Entry(id="01abc", content="The harbour.\nAll of its ships.", by="user")
    long = tmp_path / "memory" / "long" / "01abc.md"
    long.parent.mkdir(parents=True)
    long.write_text(entry.content)
    (tmp_path / "memory" / "2026-11-21.md").write_text(render_entry(entry, long="memory/long/01abc.md"))
    rest(tmp_path)
    assert [one.content for one in await ledgers.entries()] == [entry.content]
    read = files.bytes_read
    assert [one.content for one in await ledgers.entries()] == [entry.content]
    assert files.bytes_read == read
    long.write_text("The lighthouse.")
    assert [one.content for one in await ledgers.entries()] == ["The lighthouse."]
    long.unlink()
    assert [one.content.strip("…") for one in await ledgers.entries()] == ["The harbour."]


@pytest.mark.req("GO-G4-scale")
@pytest.mark.parametrize("scheme", ["sessions", "markdown", "jsonl", "fulltext", "vector"])
async def test_a_save_reads_nothing_of_what_was_saved_before(tmp_path: Path, scheme: str) -> None:
    disk, given = CountingDisk(), settings(tmp_path / "r" / ".ricordo")
    async with open_store(address(scheme, tmp_path), scope=SCOPE, settings=given, disk=disk) as store:
        for number in range(3):
            await store.save(Entry(content=f"Ship {number} lies in the harbour.", by="user"))
        disk.read.clear()
        for number in range(3):
            await store.save(Entry(content=f"Boat {number} lies in the harbour.", by="user"))
        assert disk.read == []


async def test_what_was_read_again_and_says_the_same_is_not_parsed_again(tmp_path: Path) -> None:
    path, parsed = tmp_path / "notes.txt", []

    def parse(data: bytes) -> str:
        parsed.append(data)
        return data.decode()

    held = ParsedFile(LocalFiles(tmp_path), "notes.txt", parse)
    for text in ("one", "one", "two", "two", "one\n", "one\ntwo"):
        path.write_text(text)
        assert await held.value() == text
    assert parsed == [b"one", b"two", b"one\n", b"one\ntwo"]


@pytest.mark.req("GO-G4-scale")
@pytest.mark.parametrize("scheme", ["ring", "mock"])
async def test_what_lives_in_a_process_keeps_its_budget_too(tmp_path: Path, scheme: str) -> None:
    given = settings(tmp_path / "r" / ".ricordo")
    async with open_store(f"{scheme}:", scope=SCOPE, settings=given) as store:
        for number in range(400):
            await store.save(Entry(content=f"Turn {number} was about the harbour and its ships.", by="user"))
        for budget in BUDGETS:
            text = await store.preamble(budget)
            assert estimate_text(text) <= budget.count
            assert text == await store.preamble(budget)
