"""A memory document as parts: nothing a person wrote changes, wherever something of ours comes and goes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo import Entry
from ricordo.curation.memory_document import DocumentPart, parse_memory_document
from ricordo.workspace import parse_entries, render_entry

TITLES = ["Topics", "Preferences", "Facts"]
LINES = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            "# Mine", "## Facts", "## Other", "```", "~~~~", "- by hand", "* star", "    indented", "---", "", "",
            "1. [T](memory/topics/t.md)", "\ttab", "- [ ] a task", "## Preferences",
        ]
    ),
)  # fmt: skip
DOCUMENTS = st.lists(LINES, max_size=14).map("\n".join)


def bullet(number: int, section: str) -> DocumentPart:
    entry = Entry(content=f"Ours {number}", id=f"{number:026}", by="flush")
    return DocumentPart(data=render_entry(entry).encode(), section=section, entry=entry)


@given(DOCUMENTS)
def test_the_parts_of_a_document_are_the_document(text: str) -> None:
    data = text.encode("utf-8", "replace")
    assert parse_memory_document(data, "workspace/MEMORY.md").data == data


@given(text=DOCUMENTS, titles=st.lists(st.sampled_from(TITLES), min_size=1, max_size=4))
def test_what_is_put_in_is_read_back_and_what_was_there_stays(text: str, titles: list[str]) -> None:
    data = text.encode("utf-8", "replace")
    sheet = parse_memory_document(data, "workspace/MEMORY.md")
    before = [found.entry.content for found in parse_entries(data, "workspace/MEMORY.md")]
    lines = [line for line in data.split(b"\n") if line.strip()]
    for number, title in enumerate(titles):
        sheet = sheet.with_section(title, TITLES).insert(bullet(number, title), lambda _: False)
    entries = parse_entries(sheet.data, "workspace/MEMORY.md")
    ours = [found.entry.content for found in entries if found.entry.content.startswith("Ours")]
    assert sorted(ours) == [f"Ours {number}" for number in range(len(titles))]
    assert [found.entry.content for found in entries if not found.entry.content.startswith("Ours")] == before
    after = iter(sheet.data.split(b"\n"))
    assert all(line in after for line in lines), "the lines of a person, in their order"
    again = parse_memory_document(sheet.data, "workspace/MEMORY.md")
    assert {part.entry.id: part.section for part in again.parts if part.is_named and part.entry} == {
        f"{number:026}": title for number, title in enumerate(titles)
    }


@given(text=DOCUMENTS, title=st.sampled_from(TITLES))
def test_what_was_put_in_and_taken_out_leaves_every_line(text: str, title: str) -> None:
    data = text.encode("utf-8", "replace")
    sheet = (
        parse_memory_document(data, "workspace/MEMORY.md")
        .with_section(title, TITLES)
        .insert(bullet(1, title), lambda _: False)
    )
    left = sheet.without({f"{1:026}"})
    if f"## {title}".encode() not in data:
        left = left.without_section(title)
    assert [line for line in left.data.split(b"\n") if line.strip()] == [
        line for line in data.split(b"\n") if line.strip()
    ]


@pytest.mark.parametrize("ending", ["", "\n", "\n\n"])
def test_a_new_section_stands_between_blank_lines(ending: str) -> None:
    data = f"# Memory{ending}".encode()
    sheet = parse_memory_document(data, "workspace/MEMORY.md")
    for number, title in enumerate(("Facts", "Preferences")):
        sheet = sheet.with_section(title, TITLES).insert(bullet(number, title), lambda _: False)
    assert [line.split(b" [")[0] for line in sheet.data.split(b"\n")] == [
        b"# Memory", b"", b"## Preferences", b"", b"- Ours 1", b"", b"## Facts", b"", b"- Ours 0", b"",
    ]  # fmt: skip
