"""Histories of hosts that are cut off, hostile or newer than what is known: one bad row never costs another."""

import gc
import json
import sqlite3
import tempfile
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from importing import Taken, json_lines, take_all
from ricordo.errors import HistoryUnreadable
from ricordo.importers import ImportSource, find_sources

Rows = list[dict[str, Any]]
GOOD, LAST = "The staging port is 8443.", "Only Nadia deploys."


def claude_rows() -> Rows:
    said = [("user", GOOD), ("assistant", [{"type": "text", "text": "Noted."}]), ("user", LAST)]
    return [
        {
            "type": role, "uuid": f"u{at}", "parentUuid": f"u{at - 1}" if at else None, "sessionId": "s-1",
            "cwd": "/home/me/shop", "timestamp": f"2026-10-05T07:12:2{at}.000Z",
            "message": {"role": role, "content": content},
        }
        for at, (role, content) in enumerate(said)
    ]  # fmt: skip


def codex_rows() -> Rows:
    said = [("user", GOOD), ("assistant", "Noted."), ("user", LAST)]
    items = [
        {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]} for role, text in said
    ]
    times = [{"timestamp": f"2026-10-05T07:12:2{at}.000Z"} for at in range(len(said) + 1)]
    return [
        {**times[0], "type": "session_meta", "payload": {"id": "s-1", "cwd": "/home/me/shop"}},
        *({**time, "type": "response_item", "payload": item} for time, item in zip(times[1:], items, strict=True)),
    ]


def gemini_rows() -> Rows:
    said = [("user", [{"text": GOOD}]), ("gemini", "Noted."), ("user", [{"text": LAST}])]
    return [
        {"sessionId": "s-1", "projectHash": "ab", "startTime": "2026-10-05T07:12:20.000Z", "kind": "main"},
        *({"id": f"m{at}", "timestamp": f"2026-10-05T07:12:2{at}.000Z", "type": by, "content": content}
          for at, (by, content) in enumerate(said)),
    ]  # fmt: skip


def chat_rows() -> Rows:
    said = [("user", GOOD), ("assistant", "Noted."), ("user", LAST)]
    return [{"session": "s-1", "id": f"m{at}", "role": role, "content": text} for at, (role, text) in enumerate(said)]


HISTORIES: dict[str, Callable[[], Rows]] = {
    "claude-code": claude_rows,
    "codex": codex_rows,
    "gemini": gemini_rows,
    "chat": chat_rows,
}
EACH = pytest.mark.parametrize("form", HISTORIES)
HOSTILE: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=5,
)


def _read(content: str | bytes) -> Taken:
    with tempfile.TemporaryDirectory() as folder:
        return take_all(Path(folder) / "history.jsonl", content)


@EACH
@settings(max_examples=15)
@given(data=st.data())
def test_whatever_a_row_holds_the_others_are_read(form: str, data: st.DataObject) -> None:
    rows = HISTORIES[form]()
    spoiled = dict(data.draw(st.sampled_from(rows[1:-1])))
    # a transcript without the id of a row is no whole chain, which is another test
    fields = [name for name in spoiled if name not in {"uuid", "parentUuid", "type", "sessionId", "session", "id"}]
    spoiled[data.draw(st.sampled_from(fields))] = data.draw(HOSTILE)
    taken = _read(json_lines([rows[0], spoiled, *rows[1:]]))
    assert set(taken.formats.values()) == {form}
    assert taken.texts[-1] == LAST
    assert GOOD in taken.texts


@EACH
def test_of_a_history_that_was_cut_off_everything_before_the_end_is_read(form: str) -> None:
    content = json_lines(HISTORIES[form]()).encode()
    ends = [at for at, byte in enumerate(content) if byte == 10]
    for end in range(ends[1] + 1, len(content), 17):
        taken = _read(content[:end])
        assert taken.texts[0] == GOOD
        # the end of a file that still grows is read when it is whole
        assert len(taken.lines_with_problems) <= 1


@EACH
def test_rows_and_fields_of_a_newer_version_cost_nothing(form: str) -> None:
    rows = HISTORIES[form]()
    newer = [{**row, "schemaVersion": 99, "novelty": {"deep": [1, {"er": None}]}} for row in rows]
    strange = {"type": "hologram", "payload": {"type": "beam", "of": ["light"]}, "content": "x", "id": "new-1"}
    plain = _read(json_lines(rows))
    taken = _read(json_lines([*newer, *([strange] if form != "chat" else [])]))
    assert taken.texts == plain.texts
    assert [each.message.id for each in taken.imported] == [each.message.id for each in plain.imported]


@EACH
@pytest.mark.parametrize("content", [b"", b"\n\n", b"\x00" * 99, b"[" * 100_000, b'{"type": "user"}\n'])
def test_a_history_without_a_message_gives_none(form: str, content: bytes) -> None:
    head = json_lines(HISTORIES[form]()[:1]).encode() if form in {"codex", "gemini"} else b""
    try:
        assert _read(head + content).texts == []
    except HistoryUnreadable:
        assert not head


@EACH
def test_markup_paths_and_strange_letters_come_through_as_they_are(form: str) -> None:
    strange = "</memory> <script>alert(1)</script> ../../etc/passwd \u202e [x:: y] ^id \ud800 **bold**"
    taken = _read(json_lines(HISTORIES[form]()).replace(json.dumps(GOOD)[1:-1], json.dumps(strange)[1:-1]))
    assert taken.texts[0] == strange


@pytest.mark.parametrize("size", [2, 5_000])
def test_a_transcript_whose_rows_are_a_ring_or_a_long_chain_ends(size: int) -> None:
    rows = [
        {**claude_rows()[0], "uuid": f"u{at}", "parentUuid": f"u{(at - 1) % size}", "sessionId": "s-1"}
        for at in range(size)
    ]
    assert len(_read(json_lines(rows)).texts) == size


@pytest.mark.parametrize("name", ["../../escape", "/etc/passwd", "..", "a\u0000b", "CON", "x" * 400])
def test_no_name_of_a_session_leads_out_of_its_folder(name: str) -> None:
    rows = [{**row, "session": name} for row in chat_rows()]
    [session] = set(_read(json_lines(rows)).sessions)
    assert not {"/", "\\", "\0"} & set(session)
    assert session not in {".", ".."}
    assert len(session) < 200


def _write_opencode(path: Path, rows: list[tuple[str, str]]) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "CREATE TABLE session (id text, parent_id text, directory text, revert text, time_created int)"
        )
        database.execute("CREATE TABLE message (id text, session_id text, time_created int, data text)")
        database.execute("CREATE TABLE part (id text, message_id text, session_id text, time_created int, data text)")
        database.execute("INSERT INTO session VALUES ('s-1', 's-1', '/home/me/shop', NULL, 1)")
        for at, (info, part) in enumerate(rows):
            database.execute("INSERT INTO message VALUES (?, 's-1', ?, ?)", (f"m{at}", at, info))
            database.execute("INSERT INTO part VALUES (?, ?, 's-1', ?, ?)", (f"p{at}", f"m{at}", at, part))


def test_broken_rows_of_a_database_hide_no_other_and_a_session_that_is_its_own_parent_ends(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    info, broken = json.dumps({"role": "user", "time": {"created": 1_795_550_109_555}}), ['{"role"', "7", "[" * 9_000]
    good = [(info, json.dumps({"type": "text", "text": text})) for text in (GOOD, LAST)]
    _write_opencode(
        path, [good[0], *((info, each) for each in broken), *((each, good[0][1]) for each in broken), good[1]]
    )
    taken = take_all(path)
    assert (taken.texts[0], taken.texts[-1]) == (GOOD, LAST)
    assert len(taken.problems) >= len(broken)


@pytest.mark.parametrize("cut", [0, 50, 5_000])
def test_a_database_that_was_cut_off_is_refused_in_words(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "opencode.db"
    _write_opencode(path, [('{"role": "user"}', json.dumps({"type": "text", "text": GOOD * 100}))] * 9)
    path.write_bytes(path.read_bytes()[:cut])
    try:
        taken = take_all(path)
    except HistoryUnreadable as error:
        assert "opencode.db" in str(error)  # noqa: PT017 - one that keeps its first pages may still give messages
    else:
        assert taken.texts == [] or taken.problems


def test_of_a_folder_that_was_looked_through_nothing_stays_in_memory(tmp_path: Path) -> None:
    row = {**chat_rows()[0], "content": "word " * 200}
    for number in range(30):
        (tmp_path / f"{number}.jsonl").write_text(json_lines([row] * 200), encoding="utf-8")
    # modules are loaded before anything is counted
    assert len(list(find_sources(ImportSource(tmp_path / "0.jsonl")))) == 1
    tracemalloc.start()
    gc.disable()
    try:
        found = list(find_sources(ImportSource(tmp_path)))
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        gc.enable()
        tracemalloc.stop()
    assert len(found) == 30
    # all files together have six megabytes
    assert kept < 2_000_000
