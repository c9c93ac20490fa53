"""Damage in Markdown: what is cut off or no text is told with its line, and what people write is not."""

import pytest

from ricordo import Entry
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.workspace import parse_entries, render_entry
from ricordo.workspace.history.checks import find_damage

pytestmark = pytest.mark.req("DF-B14")


def found(data: bytes) -> tuple[str, ...]:
    return find_damage(data, parse_entries(data, "memory.md"))


def written(*contents: str) -> bytes:
    clock = SystemClock()
    ids = MonotonicIds(clock)
    entries = [Entry(content=each, id=ids.new(), time=clock.now(), by="user") for each in contents]
    return b"# Memory\n\n" + b"".join(render_entry(entry).encode() for entry in entries)


@pytest.mark.req("AS-TRANS-02")
def test_what_was_cut_off_in_the_middle_of_an_entry_is_told() -> None:
    whole, before = written("The ochre door.", "A cobalt door"), len(written("The ochre door."))
    assert found(whole) == found(whole[:before]) == found(whole[:-1]) == ()
    untold = [whole[before:end] for end in range(before + 3, len(whole) - 1) if not found(whole[:end])]
    assert all(each.endswith((b":", b"[kind:: fact]")) for each in untold), "which a person may write"
    assert found(whole[: before + 9]) == ("line 4: it ends in the middle of a line",)


@pytest.mark.req("AS-TRANS-02")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"- One.\n\xff\xfe\n", "line 2: bytes that are no text"),
        (b"- One.\n- Two\0.\n", "line 2: bytes that are no text"),
        (b"- One. [kind:: fa\n- Two.\n", "line 1: a field is cut off"),
        (b"- One. [at:: yesterday] ^abc\n", "line 1: the field at can't be read"),
    ],
)
def test_what_can_not_be_read_is_told_with_its_line(text: bytes, told: str) -> None:
    assert found(text) == (told,)


@pytest.mark.parametrize(
    "text",
    ["", "- By hand", "Prose without an end", "- [ ] a task", "- see [a page", "- 2026: x [by:: Nadia]\n", "```\n- a"],
)
def test_what_a_person_writes_is_no_damage(text: str) -> None:
    assert found(text.encode()) == ()
    assert found(written("Ours.") + text.encode() + b"\n") == ()
