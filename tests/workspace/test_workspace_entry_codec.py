"""Entries in Markdown: what is written is what is read, whatever it says and whoever wrote it."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from entry_strategies import ENTRIES
from ricordo import Entry
from ricordo.workspace import parse_entries, parse_entry, render_entry
from ricordo.workspace.entry_codec import collect_fields, inline_fields, remove_entries, without_field_comment

pytestmark = pytest.mark.req("GO-I1", "GO-I5")


@pytest.mark.req("GO-I5")
@given(ENTRIES)
@example(Entry(content="a\\ "))
@example(Entry(content="\n\nlast", tags=("1", "two")))
@example(Entry(content="ends\n"))
@example(Entry(content="    code\n\n      more\n   \n"))
def test_reading_a_written_entry_gives_the_same_entry(entry: Entry) -> None:
    """Any content, tags and fields survive the way through Markdown."""
    assert parse_entry(render_entry(entry)) == entry


@given(ENTRIES)
@example(Entry(content="a\r\n\r\nb\r", tags=("one",), pinned=True, id="01m7zz"))
def test_line_ends_of_another_system_change_no_entry(entry: Entry) -> None:
    """An editor, or git, may end every line by a carriage return too: fields, tags and ids are still read."""
    assert parse_entry(render_entry(entry).replace("\n", "\r\n")) == entry


@given(st.lists(ENTRIES.map(lambda entry: replace(entry, id="")), max_size=6))
def test_a_document_of_many_entries_gives_each_of_them_at_its_place(entries: list[Entry]) -> None:
    """The offsets cut exactly the bullet that was written, so one can be removed without touching its neighbours."""
    bullets = [render_entry(entry).encode() for entry in entries]
    head = b"# 2026-11-21\n\nSome prose - with a dash.\n\n"
    data = head + b"".join(bullets)
    located = parse_entries(data, "workspace/memory/2026-11-21.md")
    assert [replace(found.entry, id="") for found in located] == entries
    assert [data[found.offset : found.offset + found.length] for found in located] == bullets
    assert all(data[: found.offset].count(b"\n") + 1 == found.line for found in located)


@given(st.binary(max_size=400))
def test_no_bytes_make_reading_fail(data: bytes) -> None:
    """A document can hold anything: reading gives what entries there are."""
    for found in parse_entries(data, "x.md"):
        assert found.entry.content.strip()
        assert 0 <= found.offset < found.offset + found.length <= len(data)


def test_a_megabyte_of_content_survives() -> None:
    """Size is no reason to lose anything."""
    entry = Entry(content="#tag [kind:: x] \\ ```\n" * 48_000)
    assert parse_entry(render_entry(entry)) == entry


def test_a_bullet_written_by_hand_is_an_entry_with_a_stable_id() -> None:
    """No field is needed; equal lines get different ids, and other lines don't change them."""
    document = "# Notes\n- We use pnpm #tools\n* Port is 8443 [due:: friday]\n- We use pnpm #tools\n"
    first, second, third = parse_entries(document, "workspace/MEMORY.md")
    assert (first.entry.content, first.entry.tags, first.entry.by) == ("We use pnpm", ("tools",), "hand")
    assert second.entry.extra == (("due", "friday"),)
    assert len({first.entry.id, second.entry.id, third.entry.id}) == 3
    assert len(first.entry.id) == 26
    moved = parse_entries("- another line\n" + document, "workspace/MEMORY.md")
    assert moved[1].entry.id == first.entry.id


def test_prose_headings_front_matter_and_fenced_code_are_no_entries() -> None:
    """Only bullets at the left margin count."""
    document = "---\ntags:\n- no\n---\n# Title\n- yes\n\n```\n- no\n```\nprose\n1. no\n- - -x\n"
    assert [found.entry.content for found in parse_entries(document, "a.md")] == ["yes", "- -x"]


def test_an_unreadable_field_is_kept_as_it_is() -> None:
    """A value that a person broke is not thrown away by the next rewrite."""
    bullet = "- x [kind:: fact] [by:: user] [at:: yesterday] [confidence:: high] [mood:: good] ^abc\n"
    entry = parse_entry(bullet)
    assert entry.extra == (("at", "yesterday"), ("confidence", "high"), ("mood", "good"))
    assert render_entry(entry) == bullet


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("Use C:\\users and a_b", "Use C:\\users and a_b"),
        ("see #tag", "see \\#tag"),
        ("# Title", "\\# Title"),
        ("a [kind:: b]", "a \\[kind:: b]"),
        ("2 ^ 3 and ^id", "2 ^ 3 and \\^id"),
        ("日本語 `code` *bold* [link](x)", "日本語 `code` *bold* [link](x)"),
    ],
)
def test_escapes_are_rare_and_legible(content: str, shown: str) -> None:
    """Only what would be misread carries a backslash."""
    assert render_entry(Entry(content=content)) == f"- {shown} [kind:: fact] [by:: user]\n"


IDS = st.integers(0, 9).map("01m7z{}".format)


@given(st.lists(st.tuples(ENTRIES, IDS), max_size=6), st.sampled_from([b"", b"\n", b"- By hand\n", b"A last line."]))
def test_fields_move_to_a_comment_and_back_without_a_change_of_any_entry(
    rows: list[tuple[Entry, str]], tail: bytes
) -> None:
    """Curated memory is text for people: the entries, their order and their ids are the same in both forms."""
    data = b"# Memory\n\n" + "".join(render_entry(replace(entry, id=name)) for entry, name in rows).encode() + tail
    entries = [found.entry for found in parse_entries(data, "x.md")]
    collected = collect_fields(data)
    assert [found.entry for found in parse_entries(collected, "x.md")] == entries
    assert [found.entry for found in parse_entries(inline_fields(collected), "x.md")] == entries
    assert collect_fields(collected) == collected


def test_curated_memory_shows_text_and_ids_and_loses_nothing_with_its_comment() -> None:
    """What a person reads is the memory; its origin is in a comment, and a lost comment costs only that."""
    entry = Entry(content="We deploy from main.", kind="decision", tags=("ops",), by="user", pinned=True, id="01m7z1")
    data = f"# Memory\n\n{render_entry(entry)}".encode()
    collected = collect_fields(data)
    assert collected.startswith(
        b"# Memory\n\n- We deploy from main. #ops [pinned:: yes] ^01m7z1\n\n<!-- ricordo-fields"
    )
    rest = parse_entries(without_field_comment(collected), "x.md")
    assert [(found.entry.id, found.entry.content, found.entry.pinned) for found in rest] == [
        ("01m7z1", entry.content, True)
    ]
    # a person edits the text, overrides a field, and writes a line below the comment
    edited = collected.replace(b"main. #ops", b"the main branch. #ops [kind:: fact]") + b"- A line of mine\n"
    first, second = [found.entry for found in parse_entries(edited, "x.md")]
    assert (first.id, first.content, first.kind, first.by) == (
        "01m7z1",
        "We deploy from the main branch.",
        "fact",
        "user",
    )
    assert second.content == "A line of mine"
    assert collect_fields(b"```\n" + data) == b"```\n" + data


def test_fields_of_people_and_of_other_tools_stay_in_the_line() -> None:
    """A line that a person wrote, or a field that we do not know, does not move."""
    by_hand = b"- Call Ann [kind:: goal] ^ann\n"
    foreign = b"- Pay [kind:: goal] [by:: user] [due:: 2026-01-01] [merged:: a] ^01m7z1\n"
    assert collect_fields(by_hand) == by_hand
    assert b"- Pay [due:: 2026-01-01] [merged:: a] ^01m7z1\n" in collect_fields(foreign)


def test_a_removed_entry_leaves_no_fields_behind() -> None:
    """Where a forgotten memory came from is forgotten with it."""
    entries = [Entry(content=name, by="user", id=f"01m7z{name}") for name in "ab"]
    data = collect_fields("".join(map(render_entry, entries)).encode())
    rest = remove_entries(data, "x.md", {"01m7za"})
    assert b"01m7za" not in rest
    assert [found.entry for found in parse_entries(rest, "x.md")] == entries[1:]
