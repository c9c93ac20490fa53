"""read_file: any file can be read to its end in small pages, and each page says where it stands."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desks import CONTEXT, Desks
from ricordo.agent.tools.file_roots import FileRoots
from ricordo.agent.tools.files import read_file_tool
from ricordo.agent.tools.paging import cut_page, decode_text
from ricordo.guard import Redactor
from ricordo.testing import InMemoryFiles

pytestmark = pytest.mark.anyio
_READ_ON = re.compile(r"Read on with offset=(\d+)(?:, character=(\d+))?\]$")


@pytest.mark.req("AS-EVICT-06", "AS-BUG-09")
async def test_a_page_says_what_it_shows_and_how_to_read_on(desks: Desks) -> None:
    desk = desks()
    desks.put("notes.txt", "".join(f"line {number}\n" for number in range(1, 11)))
    desks.put("empty.txt", "")
    assert await desk.use("read_file", path="notes.txt", offset=3, limit=2) == (
        "[notes.txt: lines 3 to 4 of 10. Read on with offset=5]\nline 3\nline 4\n"
    )
    whole = await desk.use("read_file", path="notes.txt")
    assert whole.startswith("[notes.txt: lines 1 to 10 of 10, to the end of the file]\nline 1\n")
    assert await desk.use("read_file", path="notes.txt", offset=10) == (
        "[notes.txt: line 10 of 10, to the end of the file]\nline 10\n"
    )
    assert await desk.use("read_file", path="empty.txt") == "[empty.txt: the file is empty]\n"
    past = "failed: notes.txt has 10 lines: there is nothing at line 11, character 0."
    assert await desk.use("read_file", path="notes.txt", offset=11) == past
    for wrong in ({"offset": 0}, {"limit": 0}, {"character": -1}):
        assert (await desk.use("read_file", path="notes.txt", **wrong)).startswith("failed: Lines count from 1")
    assert (await desk.use("read_file", path="none.txt")) == "failed: There is no file none.txt."


@pytest.mark.req("AS-BUG-09", "AS-EVICT-06")
async def test_one_line_of_five_megabytes_is_read_to_its_end_in_pages() -> None:
    text = json.dumps([{"id": number, "name": "è" * 40} for number in range(50_000)], ensure_ascii=False)
    assert len(text.encode()) > 5_000_000
    files = InMemoryFiles()
    await files.create("workspace/large_tool_results/s1/search-1.txt", text.encode())
    read_file = read_file_tool(FileRoots(files), Redactor(bytes(32)))
    pieces, offset, character = [], 1, 0
    while True:
        path = "/large_tool_results/s1/search-1.txt"
        shown = await read_file({"path": path, "offset": offset, "character": character}, CONTEXT)
        head, _, piece = str(shown).partition("\n")
        assert len(piece) <= 20_000
        pieces.append(piece)
        if head.endswith("to the end of the file]"):
            break
        found = _READ_ON.search(head)
        assert found, head
        offset, character = int(found[1]), int(found[2] or 0)
    assert "".join(pieces) == text


@pytest.mark.req("AS-BUG-09", "AS-EVICT-06")
async def test_a_call_never_shows_more_than_its_cap(desks: Desks) -> None:
    desk = desks(most_characters=100)
    desks.put("a.txt", "x" * 60 + "\n" + "y" * 60 + "\n")
    shown = await desk.use("read_file", path="a.txt", limit=1_000)
    assert shown == f"[a.txt: line 1 of 2. Read on with offset=2]\n{'x' * 60}\n"


@pytest.mark.req("AS-BUG-09")
async def test_a_binary_file_is_described_and_not_shown(desks: Desks) -> None:
    desk = desks()
    desks.put("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    desks.put("b.bin", bytes(range(128, 256)) * 4)
    shown = await desk.use("read_file", path="a.png")
    assert shown == ("[a.png: not a text, 16 bytes, a PNG picture. It begins with 89 50 4e 47 0d 0a 1a 0a.]")
    assert "of an unknown format" in await desk.use("read_file", path="b.bin")
    desks.put("c.bin", "SQLite format 3" + "\0" * 100)
    assert "an SQLite database" in await desk.use("read_file", path="c.bin")


@pytest.mark.req("AS-EVICT-06")
async def test_a_text_with_a_zero_byte_in_it_is_still_read(desks: Desks) -> None:
    desks.put("log.txt", "started\0 and ended\n" * 20)
    assert "ended" in await desks().use("read_file", path="log.txt")


@pytest.mark.req("AS-BUG-09", "AS-EVICT-06")
@given(
    text=st.text(alphabet=st.sampled_from("ab\n\r\té漢👩\u200d\u0301&;\\u"), max_size=120),
    most=st.integers(1, 25),
    lines=st.one_of(st.none(), st.integers(1, 4)),
)
def test_the_pages_of_a_text_are_the_whole_text(text: str, most: int, lines: int | None) -> None:
    pieces: list[str] = []
    line, character = 1, 0
    while True:
        found = cut_page(text, line=line, character=character, lines=lines, max_chars=most)
        assert found is not None
        assert len(found.text) <= most
        assert found.text or not text
        pieces.append(found.text)
        if found.next_line is None:
            break
        line, character = found.next_line, found.next_character
    assert "".join(pieces) == text
    assert cut_page(text, line=text.count("\n") + 2) is None


@given(st.binary(max_size=200))
def test_bytes_are_a_text_or_they_are_none_and_never_an_error(data: bytes) -> None:
    text = decode_text(data)
    assert text is None or text == data.decode("utf-8", "replace")
    assert decode_text(data.decode("utf-8", "replace").replace("\0", "").encode()) is not None
