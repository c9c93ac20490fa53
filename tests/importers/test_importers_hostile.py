"""Files that are empty, cut off, huge, hostile or newer than what is known: one bad record never costs another."""

import io
import json
import os
import random
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exports import (
    bio_note,
    chatgpt_conversation,
    chatgpt_node,
    claude_conversation,
    claude_files,
    langchain_dict,
    langchain_dumped,
    mem0_memory,
    memory_graph,
    saved_memories,
    write_zip,
)
from importing import Taken, take_all
from ricordo import read_history
from ricordo.errors import HistoryUnreadable, RicordoError
from ricordo.messages import JsonValue

FORMATS: dict[str, tuple[Any, ...]] = {
    "chatgpt": (
        chatgpt_conversation(chatgpt_node("a", "root", "The good one."), name="good"),
        chatgpt_conversation(
            saved_memories("s", "root", "Likes oak."),
            chatgpt_node("a", "s", "How old is it?", metadata={"attachments": [{"id": "f", "name": "x.txt"}]}),
            bio_note("b", "a", "Has a lathe."),
            name="bad",
        ),
    ),
    "claude.ai": (
        claude_conversation("The good one.", name="good"),
        claude_conversation("One.", "Two.", name="bad", parents=[None, 0], summary="Short."),
        claude_files("**Work**\n\nMakes tables.", "A table.")["memories.json"][0],
        claude_files()["projects.json"][0],
        claude_files()["users.json"][0],
    ),
    "mem0": (mem0_memory("The good one.", "good"), mem0_memory("Likes oak.", categories=["wood"], expires=None)),
    "mcp-memory": ({"type": "entity", "name": "good", "observations": ["The good one."]}, *memory_graph()),
    "langchain": (
        langchain_dict("user", "The good one.", id="good"),
        langchain_dumped("assistant", "x", tool_calls=[{"name": "f", "args": {}, "id": "c"}]),
        langchain_dict("tool", "y", tool_call_id="c", status="error"),
    ),
}  # fmt: skip
EACH = pytest.mark.parametrize("form", FORMATS)
_KEYS = (
    "content",
    "parts",
    "text",
    "id",
    "parent",
    "message",
    "type",
    "metadata",
    "results",
    "mapping",
    "uuid",
    "name",
)
_ANY: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.sampled_from(_KEYS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=3),
    max_leaves=8,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from _places(child, (*path, key))


def _replaced(value: Any, path: tuple[Any, ...], new: JsonValue) -> Any:
    """Return a copy of `value` that has something else in one place."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _replaced(copy[path[0]], path[1:], new)
    return copy


def _take(content: object, name: str = "export.json") -> Taken:
    with tempfile.TemporaryDirectory() as folder:
        return take_all(Path(folder) / name, content)


def _says(taken: Taken, text: str) -> bool:
    return any(text in each for each in (*taken.texts, *taken.told))


@EACH
@given(data=st.data())
def test_whatever_stands_in_one_place_the_record_before_it_is_read(form: str, data: st.DataObject) -> None:
    good, *others = FORMATS[form]
    victim = data.draw(st.sampled_from(others))
    place = data.draw(st.sampled_from([path for path in _places(victim) if path]))
    taken = _take([good, _replaced(victim, place, data.draw(_ANY)), good])
    assert _says(taken, "The good one.")
    assert set(taken.formats.values()) == {form}


@EACH
@pytest.mark.parametrize("lines", [False, True], ids=["list", "lines"])
def test_of_a_file_that_was_cut_off_everything_before_the_end_is_read(form: str, lines: bool) -> None:
    records = [json.dumps(each) for each in FORMATS[form]]
    content = "\n".join(records) if lines else f"[{', '.join(records)}]"
    whole = _take(content, "export.jsonl" if lines else "export.json")
    for end in random.Random(4).sample(range(len(records[0]) + 3, len(content) - 1), 12):
        taken = _take(content[:end], "export.jsonl" if lines else "export.json")
        assert _says(taken, "The good one."), end
        assert set(taken.told) <= set(whole.told)
        assert taken.lines_with_problems or len(taken.told + taken.texts) < len(whole.told + whole.texts)


@EACH
def test_a_record_that_is_no_json_is_reported_with_its_number_and_the_next_ones_are_read(form: str) -> None:
    good = json.dumps(FORMATS[form][0])
    broken = (
        '{"a": undefined, "b": "]"}',
        '{"a" 1}',
        '{"a": [1, 2,]}',
        "{" * 3 + "}" * 3,
        f"{'[' * 9_000}{']' * 9_000}",
    )
    taken = _take(f"[{good},\n{','.join(broken)},\n{good.replace('good', 'better')}]")
    assert _says(taken, "The good one.")
    assert _says(taken, "The better one.")
    assert [problem.record for problem in taken.problems] == [2, 3, 4, 5, 6]
    assert set(taken.lines_with_problems) == {2}


@EACH
def test_fields_and_kinds_of_a_newer_version_cost_nothing(form: str) -> None:
    plain = _take(list(FORMATS[form]))
    newer = [{**each, "schema_version": 9, "novelty": {"deep": [1, {"er": None}]}} for each in FORMATS[form]]
    taken = _take(newer)
    assert (taken.texts, taken.told) == (plain.texts, plain.told)
    assert taken.lines_with_problems == []


@EACH
def test_the_same_id_many_times_loses_no_message(form: str) -> None:
    taken = _take([FORMATS[form][0]] * 5)
    assert len(taken.texts) + len(taken.told) >= (1 if form == "chatgpt" else 5)


@EACH
def test_markup_and_strange_letters_come_through_as_they_are(form: str) -> None:
    strange = "</memory><script>alert(1)</script> \u202e\u0000 [x:: y] ^id \ud800 **bold**"
    texts = json.dumps(FORMATS[form][0]).replace("The good one.", json.dumps(strange)[1:-1])
    assert _says(_take(f"[{texts}]"), strange)


@pytest.mark.parametrize("content", [b"", b" \n ", b"[]", b"{}", b"null", b"7", b"[[[[[[]]]]]]", b"\x00" * 99])
def test_a_file_with_nothing_in_it_gives_nothing(content: bytes, tmp_path: Path) -> None:
    try:
        taken = take_all(tmp_path / "export.json", content)
    except HistoryUnreadable:
        return
    assert (taken.texts, taken.told) == ([], [])


@pytest.mark.parametrize("size", [3, 5_000])
def test_a_tree_that_is_a_ring_or_a_long_chain_ends(size: int) -> None:
    nodes = [chatgpt_node(f"n{at}", f"n{(at - 1) % size}", f"Text {at}.") for at in range(size)]
    taken = _take([chatgpt_conversation(*nodes)])
    assert sorted(taken.texts) == sorted(f"Text {at}." for at in range(size))
    talk = claude_conversation(*["Text."] * size, parents=[size - 1, *range(size - 1)])
    assert len(_take([talk]).texts) == size


HOSTILE_NAMES = (
    "../../escape.json",
    "/etc/escape.json",
    "C:\\escape.json",
    "a/../../b.json",
    "con\u202e.json",
    "\x01.json",
)


def test_names_in_an_archive_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    archive = tmp_path / "inner" / "export.zip"
    good = FORMATS["mem0"][0]
    with zipfile.ZipFile(archive, "w") as file:
        for number, name in enumerate(HOSTILE_NAMES):
            file.writestr(name, json.dumps([{**good, "memory": f"Number {number}."}]))
        link = zipfile.ZipInfo("link.json")
        link.external_attr = 0o120777 << 16
        file.writestr(link, "/etc/passwd")
    before = sorted(tmp_path.rglob("*"))
    taken = take_all(archive)
    assert sorted(taken.told) == [f"Number {number}." for number in range(len(HOSTILE_NAMES))]
    assert sorted(tmp_path.rglob("*")) == before


def _bomb(path: Path) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file,
        file.open("bomb.json", "w", force_zip64=True) as member,
    ):
        member.write(b'[{"memory": "')
        for _ in range(200):
            member.write(b"0" * 1_000_000)


def _cut(path: Path) -> None:
    write_zip(path, {"a.json": [mem0_memory(os.urandom(9_999).hex())]})
    path.write_bytes(path.read_bytes()[:-40])


def _spoil(path: Path) -> None:
    write_zip(path, {"a.json": [mem0_memory(f"Number {number}.") for number in range(9_999)]})
    data = bytearray(path.read_bytes())
    data[2_000:2_100] = b"\xff" * 100
    path.write_bytes(data)


def _encrypt(path: Path) -> None:
    write_zip(path, {"a.json": [mem0_memory("Secret.")]})
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)


def _nest(path: Path) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        file.writestr("inner.json", "[]")
    write_zip(path, {"inner.zip": data.getvalue()})


@pytest.mark.parametrize("spoil", [_bomb, _cut, _spoil, _encrypt, _nest])
def test_an_archive_that_is_a_bomb_or_broken_is_refused_and_hides_no_other(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(tmp_path / "a-bad.zip")
    write_zip(tmp_path / "good.zip", {"mem0.json": [FORMATS["mem0"][0]]})
    tracemalloc.start()
    try:
        try:
            take_all(tmp_path / "a-bad.zip")
        except RicordoError as error:
            assert "a-bad.zip" in str(error)  # noqa: PT017 - some are refused, others only skipped
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()
    assert _says(take_all(tmp_path / "good.zip"), "The good one.")


def test_a_long_export_is_read_as_it_is_given(tmp_path: Path) -> None:
    path, pieces, done = tmp_path / "conversations.json", 40, [0]
    talk = json.dumps(chatgpt_conversation(*[chatgpt_node(f"n{at}", f"n{at - 1}", "word " * 400) for at in range(40)]))
    path.write_text("[" + ",".join([talk.replace("c-1", f"c-{number}") for number in range(pieces)]) + "]")
    size = path.stat().st_size
    sessions: dict[str, int] = {}
    for each in read_history(path, on_problem=print, on_progress=lambda read, _: done.append(read)):
        sessions.setdefault(each.session, done[-1])
    assert len(sessions) == pieces
    # a piece of a megabyte is read at a time
    assert all(read < size * (number + 1) / pieces + 1_200_000 for number, read in enumerate(sessions.values()))
    assert next(iter(sessions.values())) < size / 2
