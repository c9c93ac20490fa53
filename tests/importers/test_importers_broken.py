"""Broken files: what can be read is read, what can't is named, and nothing else happens."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from importing import json_lines, take
from ricordo import read_history
from ricordo.errors import FileMissing, HistoryUnreadable
from ricordo.importers import ImportProblem, records
from ricordo.importers import records as lines
from ricordo.messages import decode_message, encode_message

GOOD = b'{"role":"user","content":"We deploy only from main."}'


@pytest.mark.parametrize(
    "broken",
    [
        GOOD[:-9],
        b"\0" * 40,
        b'{"role":"user","content":"a\0b"}',
        b"[" * 100_000,
        b'{"role":"user","content":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b'{"content":"nobody said this"}',
        b'{"role":"user","content":7}',
        b'{"role":"user","content":""}',
        b'{"role":["user"],"content":"x"}',
        b'{"role":"user","content":NaN}',
        b'{"role":"user","content":"x","time":' + b"9" * 5_000 + b"}",
        b'"just a text"',
        b"42",
        b"null",
        b"Traceback (most recent call last):",
    ],
)
def test_a_broken_line_is_reported_with_its_number_and_hides_no_other(tmp_path: Path, broken: bytes) -> None:
    taken = take(tmp_path / "chat.jsonl", b"\n".join([GOOD, b"", broken, GOOD]))
    assert taken.texts == ["We deploy only from main."] * 2
    assert taken.lines_with_problems == [3]


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_a_torn_last_line_is_one_problem(tmp_path: Path, newline: bytes) -> None:
    taken = take(tmp_path / "chat.jsonl", GOOD + newline + GOOD + newline + GOOD[:20])
    assert len(taken.imported) == 2
    assert taken.lines_with_problems == [3]


def test_a_torn_first_line_is_one_problem(tmp_path: Path) -> None:
    taken = take(tmp_path / "chat.jsonl", GOOD[:20] + b"\n" + GOOD)
    assert len(taken.imported) == 1
    assert taken.lines_with_problems == [1]


def test_of_a_key_that_comes_twice_the_last_one_counts(tmp_path: Path) -> None:
    taken = take(tmp_path / "chat.jsonl", '{"role":"user","role":"assistant","content":"a","content":"b"}')
    assert [(each.message.role, each.message.text) for each in taken.imported] == [("assistant", "b")]


def test_a_broken_message_in_a_list_hides_no_other(tmp_path: Path) -> None:
    chat = [json.loads(GOOD), 5, {"role": "moderator", "content": "hush"}, json.loads(GOOD)]
    taken = take(tmp_path / "chat.json", json.dumps({"messages": chat}, indent=1))
    assert len(taken.imported) == 2
    assert taken.lines_with_problems == [1, 1]


def test_no_report_quotes_what_the_record_says(tmp_path: Path) -> None:
    secret = "kestrel-kestrel-9"
    broken = [
        '{"role":"user","content":"' + secret,
        '{"role":"' + secret + '","content":"x"}',
        '{"role":"user","content":{"' + secret + '":1}}',
        '{"role":"user","content":[{"type":"' + secret + '"}],"tool_calls":"' + secret + '"}',
        secret,
        '{"' + secret + '":1}',
    ]
    taken = take(tmp_path / "chat.jsonl", GOOD.decode() + "\n" + "\n".join(broken))
    assert len(taken.problems) >= 4
    assert not any(secret in problem.reason for problem in taken.problems)


def test_a_line_above_the_limit_is_skipped_without_being_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "LINE_LIMIT", 1_000)
    monkeypatch.setattr(records, "LINE_LIMIT", 1_000)
    long = b'{"role":"user","content":"' + b"x" * 50_000 + b'"}'
    taken = take(tmp_path / "chat.jsonl", b"\n".join([GOOD, long, GOOD, long]))
    assert len(taken.imported) == 2
    assert taken.lines_with_problems == [2, 4]


def test_one_line_that_is_a_whole_document_may_be_longer_than_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "LINE_LIMIT", 100)
    taken = take(tmp_path / "chat.json", b'{"messages":[' + b",".join([GOOD] * 50) + b"]}")
    assert len(taken.imported) == 50


def test_a_document_above_its_limit_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "DOCUMENT_LIMIT", 100)
    with pytest.raises(HistoryUnreadable):
        take(tmp_path / "chat.json", b'{\n"messages":[' + b",\n".join([GOOD] * 50) + b"]}")


@pytest.mark.parametrize("content", ['{\n "messages": [\n  {"role":\n' * 30, "Dear diary,\n" * 500])
def test_a_file_that_is_no_json_is_one_problem_and_not_one_a_line(tmp_path: Path, content: str) -> None:
    found: list[ImportProblem] = []
    (tmp_path / "torn.json").write_text(content)
    with pytest.raises(HistoryUnreadable):
        list(read_history(tmp_path / "torn.json", on_problem=found.append))
    assert len(found) <= 2


def test_noise_before_the_first_record_is_reported_and_hides_nothing(tmp_path: Path) -> None:
    taken = take(tmp_path / "run.log", b"warming up\n[x] ready\n" + GOOD)
    assert len(taken.imported) == 1
    assert taken.lines_with_problems == [1, 2]


@pytest.mark.parametrize("form", [b"[\n%b,\n%b]", b"%b\n%b\n"], ids=["document", "lines"])
def test_bytes_that_are_no_utf8_are_replaced_and_counted_once_for_the_file(tmp_path: Path, form: bytes) -> None:
    latin = '{"role":"user","content":"Größe"}'.encode("latin-1")
    taken = take(tmp_path / "chat.json", form % (latin, latin))
    assert taken.texts == ["Gr\ufffd\ufffde"] * 2
    assert taken.lines_with_problems == []
    assert taken.notes == ["read all the same: bytes that were no UTF-8 and are replaced by U+FFFD: 4"]


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity"])
@pytest.mark.parametrize("form", [b"[\n%b,\n%b]", b"%b\n%b\n"], ids=["document", "lines"])
def test_a_number_that_json_does_not_know_costs_nothing_else(tmp_path: Path, form: bytes, number: bytes) -> None:
    taken = take(tmp_path / "chat.json", form % (b'{"role":"user","content":"a","score":' + number + b"}", GOOD))
    assert taken.texts == ["a", "We deploy only from main."]
    assert taken.lines_with_problems == []
    assert taken.notes == ["read all the same: numbers that were NaN or infinite and are taken as null: 1"]


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("form", ["[\n%s,\n%s]", "%s\r\n%s\r\n"], ids=["document", "lines"])
def test_a_file_with_the_mark_of_utf16_is_read(tmp_path: Path, form: str, order: str) -> None:
    said = '{"role":"user","content":"Größe 猫 \U0001f600"}'
    taken = take(tmp_path / "chat.json", ("\ufeff" + form % (said, said)).encode(order))
    assert taken.texts == ["Größe 猫 \U0001f600"] * 2
    assert taken.problems == []


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf", b"\xff\xfe"])
def test_an_empty_file_is_said_to_be_empty(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(HistoryUnreadable, match="is empty"):
        take(tmp_path / "chat.json", content)


def test_the_place_in_a_broken_line_is_said_in_plain_words(tmp_path: Path) -> None:
    taken = take(tmp_path / "chat.jsonl", GOOD + b'\n{"role":"user","content":"a\x01b"}\n{"role":"user" 7}')
    reasons = [problem.reason for problem in taken.problems]
    assert reasons[0] == "This is not JSON: Invalid control character at column 28."
    assert reasons[1].endswith(" at column 16.")


@pytest.mark.parametrize(
    "content",
    [b"[]", b"{}", b"null", b"hello", b'{"messages":[]}', b'{"a":1}\n{"b":2}', b"\xff\xfe{\0}\0"],
)
def test_a_file_without_any_conversation_says_what_is_understood(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(HistoryUnreadable, match="Claude Code"):
        take(tmp_path / "notes.txt", content)


def test_a_file_that_is_not_there_is_missing_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(FileMissing):
        read_history(tmp_path / "none.json", on_problem=lambda _: None)


def test_a_folder_without_a_history_says_so(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text('{"a":1}')
    with pytest.raises(HistoryUnreadable, match="holds no conversation"):
        list(read_history(tmp_path, on_problem=lambda _: None))


def test_progress_only_grows_and_ends_at_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text(json_lines([json.loads(GOOD)] * 5_000))
    steps: list[tuple[int, int]] = []
    found = read_history(path, on_problem=lambda _: None, on_progress=lambda done, total: steps.append((done, total)))
    assert sum(1 for _ in found) == 5_000
    assert steps == sorted(steps)
    assert len(steps) > 2
    assert steps[-1] == (path.stat().st_size, path.stat().st_size)


_KEYS = [
    "role",
    "content",
    "messages",
    "conversation",
    "speaker_a",
    "session_1",
    "session_1_date_time",
    "speaker",
    "text",
    "blip_caption",
    "img_url",
    "uuid",
    "parentUuid",
    "type",
    "message",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "id",
    "tool_call_id",
    "time",
    "session",
    "sender",
    "attachments",
    "isMeta",
    "logicalParentUuid",
    "sessionId",
    "tool_use_id",
    "input",
    "source",
    "thinking",
    "file_name",
]
_atoms = st.sampled_from(
    [
        b"\n",
        b"\r\n",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"null",
        b'"role"',
        b'"user"',
        b'"content"',
        b'"messages"',
        b'"speaker_a"',
        b'"session_1"',
        b'"uuid"',
        b'"parentUuid"',
        b'"type"',
        b'"message"',
        b'"tool_calls"',
        b'"time"',
        b"1e999",
        b"-1",
        b'"\\ud800"',
        b"\xff",
        b"\0",
        b"\xef\xbb\xbf",
        GOOD,
    ]
)
_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.sampled_from(["user", "text", "tool_use", "\ud800", "a/b"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(_KEYS),
            inner,
            max_size=6,
        ),
    ),
    max_leaves=25,
)
_bytes = st.one_of(
    st.binary(max_size=200),
    st.lists(_atoms, max_size=25).map(b"".join),
    st.lists(_values, max_size=4).map(lambda found: "\n".join(map(json.dumps, found)).encode()),
    _values.map(lambda value: json.dumps(value, indent=1).encode()),
)


@settings(max_examples=max(100, settings().max_examples))
@given(content=_bytes)
@example(content=b'{"role":"user","content":"x","time":1e999}')
@example(content=b'{"role":"user","content":"x","id":"\\ud800","session":"\\ud800"}')
@example(content=b'{"type":[],"payload":{},"uuid":"a","parentUuid":{}}')
@example(content=b'{"role":"user","content":[{"type":[]}]}')
def test_no_bytes_raise_anything_but_that_there_is_no_conversation(content: bytes) -> None:
    found: list[ImportProblem] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any"
        path.write_bytes(content)
        try:
            imported = list(read_history(path, on_problem=found.append))
        except HistoryUnreadable:
            return
    count = content.count(b"\n") + 1
    assert imported
    assert all(decode_message(encode_message(each.message)) == each.message for each in imported)
    assert all(1 <= each.line <= count for each in imported)
    assert all(1 <= problem.line <= count for problem in found)
    assert all(each.session.isascii() and not set(each.session) & set("/\\ \0") for each in imported)
