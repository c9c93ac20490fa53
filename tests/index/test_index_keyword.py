"""Searching a workspace: what is found, in which order, through which filters, and after which changes of the files."""

import os
import sqlite3
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ricordo import Entry, Message
from ricordo.errors import StorageFailed
from ricordo.messages import Text, encode_message
from ricordo.search import Chunk, Match, Query, tables
from ricordo.search.index import WorkspaceIndex
from ricordo.storage import Connection, StoredFile
from ricordo.storage.local import LocalFiles
from ricordo.testing import InMemoryFiles
from ricordo.workspace import INDEX_FILE, render_entry

pytestmark = pytest.mark.anyio

MEMORY = "workspace/MEMORY.md"
LEDGER = "workspace/memory/2026-11-21.md"
LOG = "workspace/agents/main/sessions/s1.log.jsonl"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def place(root: Path, path: str, content: str | bytes) -> None:
    """Write a file by hand, as an editor would."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content.encode() if isinstance(content, str) else content)


def bullet(content: str, number: int = 0, *, kind: str = "fact", tags: tuple[str, ...] = (), day: int = 21) -> bytes:
    entry = Entry(
        content=content, kind=kind, tags=tags, id=f"01jd{number:022d}", time=datetime(2026, 11, day, 12, tzinfo=UTC)
    )
    return render_entry(entry).encode()


def said(text: str, number: int = 0, name: str | None = None) -> bytes:
    return encode_message(Message(role="user", name=name, id=f"m{number}", time=NOON, parts=(Text(text=text),)))


async def opened(root: Path) -> WorkspaceIndex:
    return await WorkspaceIndex.open(root / INDEX_FILE, LocalFiles(root))


def places(matches: list[Match]) -> list[tuple[str, int]]:
    return [(match.path, match.line_number) for match in matches]


@pytest.mark.req("AS-INDEX-01")
async def test_after_opening_curated_memory_and_old_ledgers_are_found(tmp_path: Path) -> None:
    place(tmp_path, MEMORY, "# Memory\n\n- The mascot is a wombat.\n")
    place(tmp_path, "workspace/memory/2025-01-02.md", b"# 2025-01-02\n\n" + bullet("The printer is called Quill."))
    place(tmp_path, LOG, said("The kettle is a Stagg."))
    others = {
        "Marta": "workspace/memory/topics/people.md", "Ferry": "workspace/plans/move.md",
        "Zagreb": "workspace/sessions/2026-11-20-10h00.md", "Lisbon": "workspace/large_tool_results/s1/grep-1.txt",
    }  # fmt: skip
    for word, path in others.items():
        place(tmp_path, path, f"{word} is named here alone.\n")
    wanted = {"wombat": [(MEMORY, 3)], "Quill": [("workspace/memory/2025-01-02.md", 3)], "Stagg": [(LOG, 1)]}
    wanted |= {word: [(path, 1)] for word, path in others.items()}
    for queries in (list(wanted), [*reversed(wanted)]):
        index = await WorkspaceIndex.open(tmp_path / f"{queries[0]}.db", LocalFiles(tmp_path))
        assert {query: places(await index.search(query)) for query in queries} == wanted
        assert index.freshness().state == "fresh"
        await index.close()


@pytest.mark.req("AS-INDEX-01")
async def test_a_search_of_some_documents_first_leaves_out_none_of_the_others_later(tmp_path: Path) -> None:
    place(tmp_path, MEMORY, "- The mascot is a wombat.\n")
    place(tmp_path, LEDGER, bullet("The printer is called Quill."))
    place(tmp_path, LOG, said("The kettle is a Stagg."))
    index = await opened(tmp_path)
    for _ in range(3):
        assert places(await index.search(Query(text="Quill", document_types=("ledger",)))) == [(LEDGER, 1)]
    for word, path in (("wombat", MEMORY), ("Stagg", LOG), ("Quill", LEDGER)):
        assert [match.path for match in await index.search(word)] == [path]
    await index.close()


@pytest.mark.req("AS-INDEX-01")
async def test_the_first_search_after_opening_waits_for_no_refresh(tmp_path: Path) -> None:
    place(tmp_path, MEMORY, "- The mascot is a wombat.\n")
    index = await opened(tmp_path)
    assert index.freshness().state == "stale"
    assert places(await index.search("wombat")) == [(MEMORY, 1)]
    assert index.freshness().state == "fresh"
    await index.close()


@pytest.mark.req("AS-INDEX-03")
async def test_the_index_is_one_full_text_database_where_it_is_told_to_be(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "cache" / "of" / "root.db"
    place(root, MEMORY, "- The mascot is a wombat.\n")
    beside = await opened(root)
    await beside.search("wombat")
    await beside.close()
    assert sorted(os.listdir(root)) == ["memory_index.db", "workspace"]
    assert b"fts5" in (root / "memory_index.db").read_bytes()
    away = await WorkspaceIndex.open(elsewhere, LocalFiles(root))
    assert places(await away.search("wombat")) == [(MEMORY, 1)]
    await away.close()
    assert os.listdir(elsewhere.parent) == ["root.db"]


@pytest.mark.req("AS-INDEX-04")
async def test_a_search_returns_at_most_so_many_matches_best_first_with_their_places(tmp_path: Path) -> None:
    lines = [f"- Note {number} says a database was seen.\n" for number in range(30)]
    lines[17] = "- The database migration runs on Sunday.\n"
    place(tmp_path, MEMORY, "".join(lines))
    index = await opened(tmp_path)
    matches = await index.search("database migration", 10)
    assert len(matches) == 10
    assert [match.rank for match in matches] == list(range(1, 11))
    best = matches[0]
    assert (best.path, best.line_number, best.content) == (MEMORY, 18, "The database migration runs on Sunday.")
    scores = [match.score for match in matches]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    assert best.matched_words == ("database", "migration")
    assert await index.search("database", 0) == []
    for number in (1, 2):
        await index.append(LEDGER, bullet(f"Migration {number} was tried.", number), header=b"# 2026-11-21\n\n")
    assert sorted(places(await index.search("tried", 10))) == [(LEDGER, 3), (LEDGER, 4)]
    await index.close()


@pytest.mark.req("AS-BUG-25")
@pytest.mark.parametrize("broken", [False, True])
async def test_two_chinese_characters_inside_a_sentence_find_it(tmp_path: Path, *, broken: bool) -> None:
    place(tmp_path, MEMORY, "- 我们昨天在东京讨论了数据库的迁移计划。\n- Nothing else.\n")
    index = await WorkspaceIndex.open(
        tmp_path / (f"{MEMORY}/{INDEX_FILE}" if broken else INDEX_FILE), LocalFiles(tmp_path)
    )
    for query in ("东京", "迁移", "数据", "猫", "昨"):
        assert places(await index.search(query)) == ([] if query == "猫" else [(MEMORY, 1)]), query
    await index.close()


@pytest.mark.req("AS-BUG-25")
async def test_a_bare_number_finds_text_with_that_number_and_no_line_or_day_or_size(tmp_path: Path) -> None:
    place(tmp_path, MEMORY, "".join(f"- Line {word}.\n" for word in "abcdefghijklmnopqrstuvwxyz"))
    place(tmp_path, "workspace/memory/2026-11-17.md", b"# 2026-11-17\n\n" + bullet("Written in 2017.", day=17))
    place(tmp_path, "workspace/memory/2026-11-18.md", b"# 2026-11-18\n\n" + bullet("There are 17 of them.", 1, day=18))
    place(tmp_path, LOG, b"".join(said(f"Message {word}.") for word in "abcdefghijklmnopqrstuvwxyz"))
    place(tmp_path, "workspace/memory/topics/prose.md", "# Prose\n\nThe ferry leaves early,\nand it\nis often late.\n")
    index = await opened(tmp_path)
    assert [match.content for match in await index.search("17")] == ["There are 17 of them."]
    assert [(match.line_number, match.end_line) for match in await index.search("ferry")] == [(3, 5)]
    for number in ("3", "5"):
        assert await index.search(number) == []
    await index.close()


AWKWARD = [
    '"', "'", '"unbalanced', "a AND", "NEAR(", "NEAR(a b, 5)", "col:umn", "own : wombat", "{own} : wombat", "wombat*",
    "^wombat", "-wombat", "wombat OR", "NOT wombat", "(wombat", "wombat)", "\0", "wombat\0", "%", "_", "\\",
    "; DROP TABLE chunk; --", "\ud800", "\u202e", "🦘", "'' OR 1=1", "a\nb\tc", "+", "++", "C++", "...",
]  # fmt: skip


@pytest.mark.req("AS-BUG-25")
@pytest.mark.parametrize("text", [*AWKWARD, "wombat " * 150_000, "x" * 1_000_000])
async def test_no_text_of_a_query_is_an_error_and_plain_words_in_it_are_still_found(tmp_path: Path, text: str) -> None:
    place(tmp_path, MEMORY, "- The mascot is a wombat.\n- Nothing else.\n")
    index = await opened(tmp_path)
    matches = await index.search(text)
    assert index.freshness().state == "fresh"
    assert places(matches) == ([(MEMORY, 1)] if "wombat" in text else [])
    await index.close()


@pytest.mark.req("AS-BUG-25")
@settings(max_examples=20)
@given(st.text(max_size=60))
def test_any_text_can_be_written_and_looked_for(text: str) -> None:
    async def look(folder: str) -> None:
        files = InMemoryFiles()
        await files.append(MEMORY, b"- wombat\n" + bullet(f"The text {text}"))
        index = await WorkspaceIndex.open(Path(folder) / INDEX_FILE, files)
        assert places(await index.search("wombat"))[:1] == [(MEMORY, 1)]
        await index.search(text)
        assert index.freshness().state == "fresh"
        await index.close()

    with tempfile.TemporaryDirectory() as folder:
        anyio.run(look, folder)


@pytest.mark.req("AS-BUG-25")
async def test_what_is_typed_is_found_where_it_holds_no_word(tmp_path: Path) -> None:
    place(tmp_path, MEMORY, "- To be or not to be.\n- Use => for lambdas.\n- At 2:30 pm.\n")
    index = await opened(tmp_path)
    assert places(await index.search("=>")) == [(MEMORY, 2)]
    assert places(await index.search("not to be")) == [(MEMORY, 1)]
    await index.close()


async def test_an_empty_query_lists_the_newest(tmp_path: Path) -> None:
    place(tmp_path, LEDGER, bullet("older", 1, day=19) + bullet("newest", 2, day=21) + bullet("newer", 3, day=20))
    index = await opened(tmp_path)
    assert [match.content for match in await index.search(" ", 2)] == ["newest", "newer"]
    await index.close()


async def filtered(index: WorkspaceIndex, **filters: object) -> list[str]:
    query = Query(text="wombat", **filters)  # type: ignore[arg-type]
    return sorted(match.content.split()[1] for match in await index.search(query))


@pytest.mark.req("AS-INDEX-04")
@pytest.mark.parametrize("broken", [False, True])
async def test_filters_let_through_what_they_say(tmp_path: Path, *, broken: bool) -> None:
    place(tmp_path, LEDGER, bullet("wombat one", 1, kind="decision", day=19) + bullet("wombat two", 2, tags=("zoo",)))
    place(
        tmp_path,
        "workspace/memory/topics/animals.md",
        bullet("wombat three", 3, kind="lesson", tags=("zoo", "x"), day=20),
    )
    place(tmp_path, LOG, said("wombat four"))
    place(tmp_path, "workspace/large_tool_results/s1/grep-1.txt", "wombat five")
    index = await WorkspaceIndex.open(
        tmp_path / (f"{LEDGER}/{INDEX_FILE}" if broken else INDEX_FILE), LocalFiles(tmp_path)
    )
    assert await filtered(index) == ["five", "four", "one", "three", "two"]
    assert await filtered(index, kinds=("decision", "lesson")) == ["one", "three"]
    assert await filtered(index, tags=("zoo",)) == ["three", "two"]
    assert await filtered(index, session="s1") == ["five", "four"]
    assert await filtered(index, path="workspace/memory/") == ["one", "three", "two"]
    assert await filtered(index, document_types=("transcript", "result")) == ["five", "four"]
    first, second = datetime(2026, 11, 19, 12, tzinfo=UTC), datetime(2026, 11, 20, 12, tzinfo=UTC)
    assert await filtered(index, since=first, until=second) == ["one"]
    assert await filtered(index, since=second) == ["four", "three", "two"]
    await index.close()


async def test_a_filter_that_lets_one_of_a_thousand_through_finds_it_however_low_it_ranks(tmp_path: Path) -> None:
    crowd = b"".join(bullet("wombat", number) for number in range(1000))
    rare = bullet("It was long ago that anybody here has seen a wombat in the wild.", 2000, kind="decision")
    place(tmp_path, LEDGER, crowd + rare)
    index = await opened(tmp_path)
    found = await index.search(Query(text="wombat", kinds=("decision",)))
    assert places(found) == [(LEDGER, 1001)]
    await index.close()


@pytest.mark.req("AS-INDEX-01")
async def test_a_long_entry_is_found_by_all_of_its_text_with_the_kind_of_its_bullet(tmp_path: Path) -> None:
    entry = Entry(content="The story of the wombat.", kind="lesson", id="01jd0000000000000000000007", time=NOON)
    pointer = "workspace/memory/long/01jd0000000000000000000007.md"
    place(tmp_path, LEDGER, render_entry(entry, long=pointer))
    place(tmp_path, pointer, "The story of the wombat.\n\n" + "Filler text.\n\n" * 400 + "It ends with a quokka.\n")
    index = await opened(tmp_path)
    found = (await index.search(Query(text="quokka", kinds=("lesson",))))[0]
    assert (found.path, found.line_number, found.content) == (pointer, 803, "It ends with a quokka.")
    assert (found.chunk.kind, found.chunk.entry_id, found.chunk.time) == ("lesson", entry.id, NOON)
    assert await index.search(Query(text="quokka", kinds=("decision",))) == []
    await index.close()


async def test_neighbours_are_found_only_when_asked_for_and_behind_the_words_themselves(tmp_path: Path) -> None:
    place(tmp_path, LOG, said("Where did the wombat go?") + said("Home.", 1) + said("Good.", 2))
    index = await opened(tmp_path)
    assert places(await index.search("wombat")) == [(LOG, 1)]
    assert places(await index.search(Query(text="wombat", neighbours=True))) == [(LOG, 1), (LOG, 2)]
    await index.close()


@pytest.mark.req("AS-BUG-26")
async def test_rows_of_deleted_and_renamed_files_disappear(tmp_path: Path) -> None:
    place(tmp_path, MEMORY, "- The wombat.\n")
    place(tmp_path, "workspace/memory/topics/a.md", "- A wombat too.\n")
    place(tmp_path, "workspace/plans/zoo.md", "A wombat for the zoo.\n")
    index = await opened(tmp_path)
    assert len(await index.search("wombat")) == 3
    os.unlink(tmp_path / MEMORY)
    os.unlink(tmp_path / "workspace/plans/zoo.md")
    os.rename(tmp_path / "workspace/memory/topics/a.md", tmp_path / "workspace/memory/topics/b.md")
    report = await index.refresh()
    assert report.removed == (MEMORY, "workspace/memory/topics/a.md", "workspace/plans/zoo.md")
    assert places(await index.search("wombat")) == [("workspace/memory/topics/b.md", 1)]
    await index.close()


class SometimesBroken(LocalFiles):
    """Files of which one can't be read for a while."""

    broken = ""
    reads = 0

    async def read(self, path: str) -> StoredFile:
        self.reads += 1
        if path == self.broken:
            raise StorageFailed("Input/output error.")
        return await super().read(path)


@pytest.mark.req("AS-BUG-26", "FC-STALE")
async def test_a_file_that_fails_to_be_read_keeps_its_rows_and_takes_no_other_down(tmp_path: Path) -> None:
    place(tmp_path, MEMORY, "- The wombat sleeps.\n")
    place(tmp_path, LEDGER, bullet("A quokka."))
    files = SometimesBroken(tmp_path)
    index = await WorkspaceIndex.open(tmp_path / INDEX_FILE, files)
    await index.refresh()
    place(tmp_path, MEMORY, "- The wombat wakes up.\n")
    place(tmp_path, LEDGER, bullet("A numbat."))
    files.broken = MEMORY
    report = await index.refresh()
    assert report.failed == {MEMORY: "Input/output error."}
    assert (await index.search("wombat"))[0].content == "The wombat sleeps."
    assert (await index.search("numbat"))[0].path == LEDGER
    assert (index.freshness().state, index.freshness().stale_files) == ("stale", 1)
    files.broken = ""
    assert (await index.search("wombat"))[0].content == "The wombat wakes up."
    assert index.freshness().state == "fresh"
    await index.close()


def rows(database: Path, path: str) -> list[str]:
    """Return the rows that an index holds of a file, as another process would read them."""
    select = "SELECT content FROM chunk JOIN document ON document.id = document WHERE path = ? ORDER BY line"
    with closing(sqlite3.connect(database)) as connection:
        return [row[0] for row in connection.execute(select, (path,))]


OLD = ["The wombat sleeps.", "The quokka eats.", "The numbat digs."]
NEW = ["The wombat wakes.", "The quokka drinks.", "The numbat hides.", "The bilby jumps."]


@pytest.mark.may_block("the check reads the database itself")
@pytest.mark.req("AS-BUG-26")
@pytest.mark.parametrize("at", range(4))
async def test_a_re_index_that_fails_in_the_middle_of_writing_leaves_the_previous_rows(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(tmp_path, MEMORY, "".join(f"- {line}\n" for line in OLD))
    index = await opened(tmp_path)
    await index.refresh()
    place(tmp_path, MEMORY, "".join(f"- {line}\n" for line in NEW))

    def failing(chunk: Chunk) -> tuple[int | str | None, ...]:
        if chunk.content == NEW[at]:
            raise ValueError("This row can't be written.")
        return columns(chunk)

    columns = tables._columns
    with monkeypatch.context() as broken:
        broken.setattr(tables, "_columns", failing)
        report = await index.refresh()
        assert report.failed == {MEMORY: f"{MEMORY}: This row can't be written."}
        assert rows(tmp_path / INDEX_FILE, MEMORY) == OLD
        assert places(await index.search("sleeps")) == [(MEMORY, 1)]
    await index.refresh()
    assert rows(tmp_path / INDEX_FILE, MEMORY) == NEW
    await index.close()


@pytest.mark.may_block("the check reads the database itself")
@pytest.mark.req("AS-BUG-26")
async def test_whichever_commit_fails_a_file_has_all_of_its_previous_rows_or_all_of_its_new_ones(
    tmp_path: Path,
) -> None:
    left = 1_000

    def commit(connection: Connection) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        connection.execute("COMMIT")

    place(tmp_path, MEMORY, "".join(f"- {line}\n" for line in OLD))
    index = await WorkspaceIndex.open(tmp_path / INDEX_FILE, LocalFiles(tmp_path), commit=commit)
    await index.refresh()
    before, after = OLD, NEW
    for left_now in range(4):
        place(tmp_path, MEMORY, "".join(f"- {line}\n" for line in after))
        left = left_now
        await index.refresh()
        assert rows(tmp_path / INDEX_FILE, MEMORY) in (before, after)
        left = 1_000
        await index.refresh()
        assert rows(tmp_path / INDEX_FILE, MEMORY) == after
        before, after = after, before
    await index.close()


@pytest.mark.req("FC-STALE")
async def test_an_edit_by_hand_is_found_by_the_very_next_search(tmp_path: Path) -> None:
    index = await opened(tmp_path)
    for number, animal in enumerate(("wombat", "quokka", "numbat")):
        place(tmp_path, MEMORY, "\n" * number + f"- The {animal}.\n")
        assert places(await index.search(animal)) == [(MEMORY, number + 1)]
    assert await index.search("wombat") == []
    await index.close()


@pytest.mark.req("AS-BUG-26")
async def test_an_edit_that_changes_neither_size_nor_time_within_a_tick_is_found(tmp_path: Path) -> None:
    place(tmp_path, MEMORY, "- The wombat.\n")
    index = await opened(tmp_path)
    stamp = (tmp_path / MEMORY).stat().st_mtime_ns
    assert await index.search("wombat")
    place(tmp_path, MEMORY, "- The quokka.\n")
    os.utime(tmp_path / MEMORY, ns=(stamp, stamp))
    assert places(await index.search("quokka")) == [(MEMORY, 1)]
    await index.close()


@pytest.mark.req("AS-INDEX-02", "AS-BUG-26")
async def test_rows_that_did_not_change_stay_and_move_with_their_lines(tmp_path: Path) -> None:
    place(tmp_path, MEMORY, "- The wombat.\n- The quokka.\n")
    index = await opened(tmp_path)
    await index.refresh()
    place(tmp_path, MEMORY, "# Animals\n\nSome prose.\n\n- The quokka.\n- The wombat.\n- The numbat.\n")
    assert places(await index.search("wombat")) == [(MEMORY, 6)]
    assert places(await index.search("quokka")) == [(MEMORY, 5)]
    assert places(await index.search("numbat")) == [(MEMORY, 7)]
    await index.close()


@pytest.mark.req("AS-INDEX-02")
async def test_a_block_just_appended_is_found_without_reading_the_file(tmp_path: Path) -> None:
    files = SometimesBroken(tmp_path)
    index = await WorkspaceIndex.open(tmp_path / INDEX_FILE, files)
    first = bullet("The wombat.", 1)
    appended = await files.append(LEDGER, first, header=b"# 2026-11-21\n\n")
    await index.index_appended(LEDGER, appended.offset, first)
    second = bullet("The quokka.", 2)
    appended = await files.append(LEDGER, second)

    files.reads = 0
    await index.index_appended(LEDGER, appended.offset, second)
    assert files.reads == 0
    assert places(await index.search("quokka")) == [(LEDGER, 4)]
    assert places(await index.search("wombat")) == [(LEDGER, 3)]
    await index.close()


@pytest.mark.req("AS-BUG-26")
async def test_messages_appended_one_by_one_are_indexed_as_if_read_at_once(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    live = await WorkspaceIndex.open(tmp_path / INDEX_FILE, files)
    for number, text in enumerate(("Where did the wombat go?", "Home.", "When?", "At noon.")):
        line = said(text, number)
        appended = await files.append(LOG, line)
        await live.index_appended(LOG, appended.offset, line)
    late = await WorkspaceIndex.open(tmp_path / "late.db", files)
    for query in ("wombat", "noon", "home", "when did the wombat go home"):
        asked = Query(text=query, neighbours=True)
        assert await live.search(asked) == await late.search(asked), query
    await live.close()
    await late.close()


@pytest.mark.req("AS-INDEX-02")
async def test_a_block_appended_by_another_process_meanwhile_is_not_missed(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    index = await WorkspaceIndex.open(tmp_path / INDEX_FILE, files)
    ours, theirs, last = said("wombat", 1), said("quokka", 2), said("numbat", 3)
    for line in (ours, theirs, last):
        appended = await files.append(LOG, line)
        if line is not theirs:
            await index.index_appended(LOG, appended.offset, line)
    for number, animal in enumerate(("wombat", "quokka", "numbat"), 1):
        assert places(await index.search(animal)) == [(LOG, number)]
    await index.close()


async def test_a_line_seen_half_written_is_found_once_it_is_whole(tmp_path: Path) -> None:
    whole = said("The wombat wakes up.", 2)
    place(tmp_path, LOG, said("Good morning.", 1) + whole[:40])
    index = await opened(tmp_path)
    assert await index.search("wombat") == []
    place(tmp_path, LOG, said("Good morning.", 1) + whole + said("Where?", 3))
    assert places(await index.search("wombat")) == [(LOG, 2)]
    await index.close()


async def test_an_appended_block_that_is_no_document_is_passed_over(tmp_path: Path) -> None:
    index = await opened(tmp_path)
    await index.index_appended("workspace/usage.jsonl", 0, b'{"seen": "wombat"}\n')
    await index.index_appended("workspace/memory/2026-11-21.md", 0, b"- Gone again. ^01jd0000000000000000000000\n")
    assert await index.search("wombat") == []
    await index.close()


@pytest.mark.req("HE-C1-transcript")
async def test_searching_memory_reads_no_transcript(tmp_path: Path) -> None:
    place(tmp_path, MEMORY, "- The wombat.\n")
    place(tmp_path, LOG, said("The wombat."))
    files = SometimesBroken(tmp_path)
    files.broken = LOG
    index = await WorkspaceIndex.open(tmp_path / INDEX_FILE, files)
    assert places(await index.search(Query(text="wombat", document_types=("curated", "ledger")))) == [(MEMORY, 1)]
    assert index.freshness().state == "fresh"
    await index.close()
