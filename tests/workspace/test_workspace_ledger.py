"""Ledgers: appended to, never rewritten; what is too long for a line keeps every character elsewhere."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from places import place_of
from ricordo import Entry, Memory, Message, Scope
from ricordo.errors import StorageFailed
from ricordo.guard import Redactor
from ricordo.messages import Text
from ricordo.storage import FileStore, StoredFile
from ricordo.testing import InMemoryFiles
from ricordo.workspace import MEMORY_PATH, append_entries, ledger_path, parse_entries, read_all_entries, render_entry
from ricordo.workspace.layout import ledger_date
from ricordo.workspace.ledger import LONG_ENTRY_BYTES
from watched_files import WatchedFiles

pytestmark = pytest.mark.anyio

DAY = date(2026, 11, 21)
NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
REDACTOR = Redactor(bytes(32))


def entry(content: str, name: str = "a" * 26) -> Entry:
    return Entry(content=content, id=name, time=NOW)


async def contents(files: FileStore) -> list[str]:
    return [found.entry.content for found in await read_all_entries(files)]


def said(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


class LocalDay:
    """A clock that stands where the local date is another one than in UTC."""

    def now(self) -> datetime:
        return datetime(2026, 11, 21, 23, 30, tzinfo=UTC)

    def today(self) -> date:
        return date(2026, 11, 22)


@pytest.mark.req("AS-LEDGER-01")
async def test_flushing_appends_to_the_local_days_ledger_and_changes_no_earlier_byte(tmp_path: Path) -> None:
    root = tmp_path / "root"
    ledger = place_of(root) / "workspace" / "memory" / "2026-11-22.md"
    told = ["We deploy only from main.", "I prefer tea over coffee.", "We decided to use PostgreSQL for the orders."]
    before = b""
    async with Memory.open(root, scope=Scope(user="me", project="shop"), clock=LocalDay()) as memory:
        for number, text in enumerate(told):
            learned = await memory.ingest([said(text)], session=f"s{number % 2}")
            assert learned.entries
            after = ledger.read_bytes()
            assert after.startswith(before)
            added = parse_entries(after[len(before) :], "")
            assert [found.entry.id for found in added] == [found.id for found in learned.entries]
            before = after
            await memory.remember(f"Saved by hand {number}.")
            assert ledger.read_bytes().startswith(before)
            before = ledger.read_bytes()
        ledger.write_bytes(before := before + b"- typed by a person, without a newline")
        await memory.ingest([said("I prefer trains over planes.")], session="s9")
        assert ledger.read_bytes().startswith(before + b"\n- ")
    assert [path.name for path in ledger.parent.glob("*.md")] == [ledger.name]
    assert before.count(b"# 2026-11-22\n") == 1


@pytest.mark.req("AS-LEDGER-02")
async def test_the_same_words_saved_twice_stand_there_twice() -> None:
    files = InMemoryFiles()
    for name in ("a", "b"):
        await append_entries(files, DAY, [entry("Same.", name * 26)], REDACTOR)
    assert await contents(files) == ["Same.", "Same."]
    await append_entries(files, DAY, [entry("Again.", name * 26) for name in "cd"], REDACTOR)
    assert await contents(files) == ["Same.", "Same.", "Again.", "Again."]


LENGTHS = st.sampled_from([1, LONG_ENTRY_BYTES - 1, LONG_ENTRY_BYTES, LONG_ENTRY_BYTES + 1, 3 * LONG_ENTRY_BYTES])
FILLERS = st.sampled_from(["x", "é", "line\n", "crlf\r\n", "\n\n  ", "# h\n", "- b\n", "```\n", "\x00", "🦊 "])


@pytest.mark.req("GO-I1")
@given(length=LENGTHS, filler=FILLERS, start=st.sampled_from(["", "---\n", "\ufeff", "<!-- ", "  "]))
async def test_content_of_any_length_and_kind_reads_back_the_same(length: int, filler: str, start: str) -> None:
    files = InMemoryFiles()
    text = start + "w" + filler * (length // len(filler.encode("utf-8", "surrogatepass"))) + "."
    await append_entries(files, DAY, [entry(text), entry("After it.", "b" * 26)], REDACTOR)
    assert await contents(files) == [text, "After it."]


@pytest.mark.req("GO-I1")
async def test_a_long_memory_is_one_readable_line_and_a_file() -> None:
    files = InMemoryFiles()
    await append_entries(files, DAY, [entry("A title.\n" + "word " * 2000)], REDACTOR)
    ledger = (await files.read(ledger_path(DAY))).data.decode()
    assert ledger.count("\n- ") == 1
    assert "A title.…" in ledger
    assert "[long:: memory/long/" in ledger
    assert max(map(len, ledger.splitlines())) < 400
    [info] = await files.list("workspace/memory/long")
    assert (await files.read(info.path)).data == b"A title.\n" + b"word " * 2000


async def test_a_long_memory_whose_file_is_gone_still_shows_its_first_line() -> None:
    files = InMemoryFiles()
    await append_entries(files, DAY, [entry("A title.\n" + "word " * 2000)], REDACTOR)
    [info] = await files.list("workspace/memory/long")
    await files.delete(info.path)
    assert await contents(files) == ["A title.…"]


@pytest.mark.req("GO-I7")
async def test_a_block_written_again_after_a_crash_finds_its_long_file_there() -> None:
    files = InMemoryFiles()
    long = entry("word " * 2000)
    await append_entries(files, DAY, [long], REDACTOR)
    await files.delete(ledger_path(DAY))
    await append_entries(files, DAY, [long], REDACTOR)
    assert await contents(files) == [long.content]


async def test_bytes_that_are_no_text_hide_no_other_memory() -> None:
    files = InMemoryFiles()
    await files.create(MEMORY_PATH, b"\xff\xfe# Memory\n\n- good one\n- bad \xff\xfe one\n\n- last one\n")
    assert await contents(files) == ["good one", "bad \ufffd\ufffd one", "last one"]
    await append_entries(files, DAY, [entry("New.")], REDACTOR)
    assert (await contents(files))[-1] == "New."


async def test_a_document_that_can_not_be_read_takes_no_other_down() -> None:
    inner = InMemoryFiles()
    await inner.create(MEMORY_PATH, b"- curated\n")
    await append_entries(inner, DAY, [entry("Saved.")], REDACTOR)

    async def fail(verb: str, path: str) -> None:
        if path == MEMORY_PATH:
            raise StorageFailed("The disk can't read this.")

    assert await contents(WatchedFiles(inner, fail)) == ["Saved."]
    assert (await inner.read(MEMORY_PATH)) == StoredFile(
        data=b"- curated\n", version=(await inner.read(MEMORY_PATH)).version
    )


@pytest.mark.parametrize("tag", ["a" * 60_000 + "!", "#" * 60_000, "1" * 60_000, "/-" * 30_000])
async def test_a_tag_of_any_length_is_written_and_read_at_once(tag: str) -> None:
    files = InMemoryFiles()
    await append_entries(files, DAY, [Entry(content="x", id="a" * 26, time=NOW, tags=(tag,))], REDACTOR)
    [found] = await read_all_entries(files)
    assert found.entry.tags == (tag,)
    assert parse_entries(f"- hand written #{tag}", "")[0].entry.content.startswith("hand written")


def test_a_field_named_long_is_kept_and_points_nowhere() -> None:
    [found] = parse_entries(b"- text [long:: ../x] ^abc\n", "")
    assert found.long_path is None
    assert found.entry.extra == (("long", "../x"),)
    assert "[long:: ../x]" in render_entry(found.entry)


@pytest.mark.req("AS-MAINT-03")
@pytest.mark.parametrize(
    ("path", "day"),
    [
        ("workspace/memory/2026-11-21.md", DAY),
        ("workspace/memory/archive/2026-11-21.md", DAY),
        ("workspace/memory/2026-02-30.md", None),
        ("workspace/memory/notes.md", None),
        ("workspace/memory/2026-11-21.md.bak", None),
        ("memory/2026-11-21.md", None),
    ],
)
def test_only_a_real_day_names_a_ledger(path: str, day: date | None) -> None:
    assert ledger_date(path) == day
