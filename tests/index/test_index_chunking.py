"""Documents to chunks: nothing left out, lines that are true, and tails that read like the whole."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo import Entry, Message
from ricordo.guard import Redactor
from ricordo.messages import Mark, Text, Thinking, ToolCall, ToolResult, encode_message, with_mark
from ricordo.search.chunking import (
    MAX_PIECE_CHARS,
    ChunkRow,
    TailContext,
    build_rows,
    build_tail_rows,
    following_terms,
    is_self_contained,
    speaker_line,
    split_text,
)
from ricordo.search.documents import SearchDocument, classify_document
from ricordo.workspace import render_entry

REDACTOR = Redactor(bytes(32))
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LEDGER = SearchDocument(path="workspace/memory/2026-11-21.md", document_type="ledger")
CURATED = SearchDocument(path="workspace/MEMORY.md", document_type="curated")
LOG = SearchDocument(path="workspace/agents/main/sessions/s1.log.jsonl", document_type="transcript", session="s1")


def said(text: str, *, minute: int = 0, role: str = "user") -> bytes:
    time = NOON + timedelta(minutes=minute)
    assert role in {"user", "assistant", "system"}
    return encode_message(
        Message(
            role="assistant" if role == "assistant" else "system" if role == "system" else "user",
            id=f"m{minute}",
            time=time,
            parts=(Text(text=text),),
        )
    )


def contents(rows: list[ChunkRow]) -> list[tuple[int, int, str]]:
    return [(row.chunk.line_number, row.chunk.end_line, row.chunk.content) for row in rows]


@pytest.mark.req("AS-INDEX-01")
@pytest.mark.parametrize(
    ("path", "sort"),
    [
        ("workspace/MEMORY.md", "curated"),
        ("workspace/memory/topics/deploy.md", "curated"),
        ("workspace/memory/2026-11-21.md", "ledger"),
        ("workspace/memory/archive/2026-08-01.md", "ledger"),
        ("workspace/memory/long/01jd.md", "long"),
        ("workspace/sessions/2026-11-21-08h00.md", "session"),
        ("workspace/agents/main/sessions/s1.log.jsonl", "transcript"),
        ("workspace/large_tool_results/s1/grep-1a2b.txt", "result"),
        ("workspace/plans/release.md", "note"),
        ("workspace/memory/.tombstones.jsonl", None),
        ("workspace/profile.json", "profile"),
        ("workspace/users/ada/profile.json", "profile"),
        ("workspace/users/ada/agents/coder/profile.json", "profile"),
        ("workspace/agents/coder/profile.json", "profile"),
        ("workspace/users/ada/profile.backup-0123456789ab.json", None),
        ("workspace/teams/ada/profile.json", None),
        ("workspace/sessions/.draft-s1.jsonl", None),
        ("project.json", None),
        ("elsewhere/MEMORY.md", None),
    ],
)
def test_the_name_of_a_file_says_whether_and_how_it_is_searched(path: str, sort: str | None) -> None:
    document = classify_document(path, "workspace")
    assert (document.document_type if document else None) == sort


def test_a_root_that_is_its_own_workspace_has_the_same_documents() -> None:
    document = classify_document("memory/long/01jd.md", "")
    assert document == SearchDocument(path="memory/long/01jd.md", document_type="long", entry_id="01jd")


@pytest.mark.req("AS-INDEX-04")
def test_each_entry_is_one_chunk_and_the_prose_between_them_is_found_too() -> None:
    text = (
        "# Memory\n\nHow we work, in\ntwo lines.\n\n## Deployment\n"
        "- We deploy only from main. #deploy [kind:: decision]\n"
        "- Rollbacks take\n  five minutes.\n\n| a | b |\n|---|---|\n"
    )
    rows = build_rows(CURATED, text.encode(), REDACTOR)
    assert contents(rows) == [
        (3, 4, "How we work, in\ntwo lines."),
        (7, 7, "We deploy only from main."),
        (8, 9, "Rollbacks take\nfive minutes."),
        (11, 12, "| a | b |\n|---|---|"),
    ]
    decision = rows[1].chunk
    assert (decision.kind, decision.tags, decision.heading) == ("decision", ("deploy",), "Deployment")


def test_invalid_bytes_spoil_their_own_entry_only() -> None:
    rows = build_rows(CURATED, b"- First.\n- Br\xff\xfeken.\n- Third, wholly sound.\n", REDACTOR)
    assert [row.chunk.line_number for row in rows] == [1, 2, 3]
    assert rows[2].chunk.content == "Third, wholly sound."


@pytest.mark.req("AS-TRANS-02")
def test_a_torn_or_foreign_line_of_a_transcript_hides_no_other() -> None:
    data = said("first") + b'{"role": "user", "par\n' + b"\xff\xfe\n" + b"[" * 5000 + b"\n" + said("last", minute=1)
    assert contents(build_rows(LOG, data, REDACTOR)) == [(1, 1, "first"), (5, 5, "last")]


@pytest.mark.req("AS-INDEX-01")
def test_what_tools_were_asked_and_answered_is_found_and_what_was_thought_is_not() -> None:
    call = Message(
        role="assistant",
        id="m1",
        parts=(
            Thinking(text="secret musing"),
            Text(text="Looking."),
            ToolCall(id="c1", name="grep", arguments='{"pattern": "zebra"}'),
        ),
    )
    answered = ToolResult(call_id="c1", parts=(Text(text="src/app.py:3: zebra"),))
    result = Message(role="tool", id="m2", parts=(answered,))
    rows = build_rows(
        LOG, said("You are an agent.", role="system") + encode_message(call) + encode_message(result), REDACTOR
    )
    assert contents(rows) == [
        (2, 2, 'Looking.\ngrep {"pattern": "zebra"}'),
        (3, 3, "src/app.py:3: zebra"),
    ]
    assert "src/app.py" in rows[1].text.split()


def test_messages_know_who_spoke_when_and_what_was_said_beside_them() -> None:
    rows = build_rows(LOG, said("Where is the kangaroo?") + said("In the zoo.", minute=1, role="assistant"), REDACTOR)
    assert (rows[1].chunk.speaker, rows[1].chunk.session, rows[1].chunk.message) == ("assistant", "s1", "m1")
    assert {"2026", "2026-11", "2026-11-21"} <= set(rows[0].text.split())
    assert "21" not in rows[0].text.split()
    assert "kangaroo" in rows[1].context_text.split()
    assert "zoo" in rows[0].context_text.split()


def test_what_nobody_said_is_not_searched_and_the_beginning_of_a_reply_is() -> None:
    words: dict[Mark, str] = {"summary": "zebra", "memory": "kangaroo", "notice": "ostrich", "cut": "penguin"}
    lines = [said("Before."), *(marked_line(word, mark) for mark, word in words.items()), said("After.", minute=9)]
    rows = build_rows(LOG, b"".join(lines), REDACTOR)
    assert contents(rows) == [(1, 1, "Before."), (5, 5, "penguin"), (6, 6, "After.")]
    assert "zebra" not in " ".join(row.context_text for row in rows)
    tail = build_tail_rows(LOG, b"".join(lines[1:]), TailContext(lines=1, before="user: Before."), REDACTOR)
    assert contents(tail) == contents(rows)[1:]


def marked_line(text: str, mark: Mark) -> bytes:
    return encode_message(with_mark(Message(role="user", id=mark, time=NOON, parts=(Text(text=text),)), mark))


def test_an_evicted_picture_is_not_searched_and_an_evicted_text_is() -> None:
    picture = SearchDocument(path="workspace/large_tool_results/s1/camera-1a.png", document_type="result", session="s1")
    text = SearchDocument(path="workspace/large_tool_results/s1/bash-1a.txt", document_type="result", session="s1")
    data = b"a zebra\0 in the noise"
    assert build_rows(picture, data, REDACTOR) == []
    assert len(build_rows(text, data, REDACTOR)) == 1


@pytest.mark.req("AS-INDEX-04")
def test_a_long_result_is_cut_into_pieces_that_know_their_lines() -> None:
    lines = [f"line {number} of the build log, nothing special here" for number in range(1, 201)]
    document = SearchDocument(path="workspace/large_tool_results/s1/build-1.txt", document_type="result", session="s1")
    rows = build_rows(document, "\n".join(lines).encode(), REDACTOR)
    assert len(rows) > 5
    for row in rows:
        first, last = row.chunk.line_number, row.chunk.end_line
        assert row.chunk.content == "\n".join(lines[first - 1 : last])
    assert sum(row.chunk.end_line - row.chunk.line_number + 1 for row in rows) == 200


@given(st.text(max_size=5000))
def test_the_pieces_of_a_text_join_to_it_again(text: str) -> None:
    pieces = [*split_text(text)]
    assert "".join(pieces) == text
    assert all(len(piece) <= MAX_PIECE_CHARS for piece in pieces)


@pytest.mark.req("AS-INDEX-02")
@given(st.lists(st.text(max_size=1500), min_size=2, max_size=5), st.integers(min_value=1, max_value=4))
def test_the_tail_of_a_transcript_reads_like_the_whole(texts: list[str], at: int) -> None:
    lines = [said(text, minute=minute) for minute, text in enumerate(texts)]
    at = min(at, len(lines) - 1)
    head, tail = build_rows(LOG, b"".join(lines[:at]), REDACTOR), b"".join(lines[at:])
    before = speaker_line(head[-1].chunk) if head else ""
    rows = build_tail_rows(LOG, tail, TailContext(lines=at, before=before), REDACTOR)
    whole = build_rows(LOG, b"".join(lines), REDACTOR)
    assert contents(head) + contents(rows) == contents(whole)
    assert [row.digest for row in rows] == [row.digest for row in whole[len(head) :]]
    if head and rows:
        joined = f"{head[-1].context_text} {following_terms(rows)}".split()
        assert joined == whole[len(head) - 1].context_text.split()


@pytest.mark.req("AS-INDEX-02")
@given(st.lists(st.text(min_size=1, max_size=80).filter(str.strip), min_size=1, max_size=5))
def test_bullets_appended_to_a_ledger_read_like_the_whole(texts: list[str]) -> None:
    head = b"# 2026-11-21\n\n- By hand.\n"
    tail = "".join(
        render_entry(Entry(content=text, id=f"0{number}jd{'0' * 22}", time=NOON)) for number, text in enumerate(texts)
    ).encode()
    whole = build_rows(LEDGER, head + tail, REDACTOR)
    if is_self_contained(LEDGER, tail):
        rows = build_tail_rows(LEDGER, tail, TailContext(lines=3, heading="2026-11-21"), REDACTOR)
        assert contents(rows) == contents(whole)[1:]
        assert [row.digest for row in rows] == [row.digest for row in whole[1:]]


def test_a_bullet_without_an_id_is_not_read_alone() -> None:
    assert is_self_contained(LEDGER, b"- Saved. [by:: user] ^01jd0000000000000000000000\n")
    assert not is_self_contained(LEDGER, b"- By hand.\n")
    assert not is_self_contained(LEDGER, b"  still the last bullet ^01jd0000000000000000000000\n")
    assert not is_self_contained(CURATED, b"- Saved. ^01jd0000000000000000000000\n")
