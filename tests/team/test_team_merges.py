"""Documents that git merged become whole again, and clones that went their own ways for a month come together."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hand_clock import HandClock
from ricordo import Entry, Memory
from ricordo.errors import DocumentInvalid
from ricordo.workspace import (
    Tombstone,
    Tombstones,
    heal_document,
    note_edit,
    parse_entries,
    parse_members,
    render_entry,
    render_members,
)
from team_clones import clone, commit, create_clone, ledger_lines, member, pull

KEY = b"k" * 32
PATH = "workspace/memory/2026-11-24.md"
WORDS = st.sampled_from(["heron", "main", "at noon", "on Monday", "never"])


def version(name: str, *contents: str) -> Entry:
    """Return an entry that was edited to each of the contents in turn."""
    entry = Entry(content=contents[0], id=name)
    for content in contents[1:]:
        entry = note_edit(entry, Entry(content=content, id=name), KEY)
    return entry


def document(*entries: Entry) -> bytes:
    return ("# 2026-11-24\n\n" + "".join(map(render_entry, entries))).encode()


def healed(data: bytes, *forgotten: str) -> list[tuple[str, str]]:
    rows = tuple(Tombstone(id=name, digest="") for name in forgotten)
    whole = heal_document(data, PATH, Tombstones(ids=frozenset(forgotten), rows=rows), KEY)
    assert heal_document(whole, PATH, Tombstones(ids=frozenset(forgotten), rows=rows), KEY) == whole
    return [(located.entry.id, located.entry.content) for located in parse_entries(whole, PATH)]


@pytest.mark.req("CC-TEAMSYNC")
def test_a_line_that_stands_there_twice_stays_once_and_the_rest_as_it_is() -> None:
    data = document(version("a1", "One."), version("b1", "Two.")) + b"- Written by hand.\n"
    assert heal_document(data, PATH, Tombstones(), KEY) == data
    doubled = data + render_entry(version("a1", "One.")).encode()
    assert [content for _, content in healed(doubled)] == ["Two.", "Written by hand.", "One."] or [
        content for _, content in healed(doubled)
    ] == ["One.", "Two.", "Written by hand."]


@pytest.mark.req("CC-TEAMSYNC")
def test_of_an_edit_and_what_it_was_made_of_the_edit_stays() -> None:
    first, third = version("a1", "One."), version("a1", "One.", "Two.", "Three.")
    for pair in ((first, third), (third, first)):
        assert healed(document(*pair)) == [("a1", "Three.")]


@pytest.mark.req("CC-TEAMSYNC")
def test_what_was_forgotten_does_not_come_back_whatever_it_was_edited_to() -> None:
    data = document(version("a1", "One.", "Two."), version("b1", "Else."), version("a1", "One."))
    assert healed(data, "a1") == [("b1", "Else.")]


@pytest.mark.req("CC-TEAMSYNC")
@given(st.permutations([("One.", "Two."), ("One.", "Three."), ("One.", "Two.", "Four.")]))
def test_edits_at_the_same_time_are_healed_alike_in_every_clone(order: list[tuple[str, ...]]) -> None:
    """In whatever order the lines come: the same ids, each with the other's."""
    found = healed(document(*(version("a1", *contents) for contents in order)))
    assert {content for _, content in found} == {"Three.", "Four."}
    assert dict(found) == dict(healed(document(*(version("a1", *contents) for contents in reversed(order)))))
    assert len({name for name, _ in found}) == 2


@pytest.mark.req("CC-TEAMSYNC")
@given(st.lists(st.tuples(st.sampled_from("abc"), WORDS, st.lists(WORDS, max_size=3)), max_size=8))
@settings(max_examples=200)
def test_no_last_version_of_anything_is_lost_and_no_id_stands_there_twice(
    rows: list[tuple[str, str, list[str]]],
) -> None:
    entries = [version(name, first, *rest) for name, first, rest in rows]
    found = healed(document(*entries))
    ids = [name for name, _ in found]
    assert len(set(ids)) == len(ids)
    assert {name[0] for name in ids} == {entry.id for entry in entries}
    versions = [(name, [first, *rest]) for name, first, rest in rows]
    kept = {(name[0], content) for name, content in found}
    for name, contents in versions:
        if not any(contents[-1] in others[:-1] for other, others in versions if other == name):
            assert (name, contents[-1]) in kept


NAMES = st.text(alphabet="abcäß -_.@", min_size=1).map(str.strip).filter(bool)


@pytest.mark.req("HE-C6-boundary")
@given(st.dictionaries(NAMES, st.sampled_from(["reader", "writer", "curator"])))
def test_members_are_read_as_they_were_written(members: dict[str, str]) -> None:
    assert parse_members(render_members(members)) == members  # type: ignore[arg-type]


@pytest.mark.req("HE-C6-boundary")
@pytest.mark.parametrize("line", ["owner ann", "curator", "<<<<<<< HEAD", "curator\tann"])
def test_a_line_that_names_no_role_lets_nobody_in(line: str) -> None:
    with pytest.raises(DocumentInvalid):
        parse_members(f"curator ann\n{line}\n".encode())


@pytest.mark.req("HE-C6-boundary")
def test_the_lesser_of_two_roles_holds() -> None:
    assert parse_members(b"curator ann\n\n# people\nreader ann\nwriter ben\n") == {"ann": "reader", "ben": "writer"}


async def _live(folder: Path, user: str, clock: HandClock, choice: Random, told: dict[str, str]) -> None:
    """Let one member save, edit and forget for a day; `told` has what is there for all, by id."""
    async with Memory.open(folder / ".ricordo", scope=member(user), clock=clock) as memory:
        for number in range(choice.randint(1, 3)):
            act = choice.choice(["save", "save", "edit", "forget"])
            own = [entry for entry in await memory.entries() if entry.shared_by == user]
            if act == "save" or not own:
                text = f"The {choice.choice(['red', 'blue', 'green'])} server {user}{clock.now():%d}{number} is up."
                told[(await memory.remember(text, scope="team", reason="r")).id] = text
            elif act == "edit":
                entry = choice.choice(own)
                text = f"{entry.content} Since day {clock.now():%d}."
                told[(await memory.update(entry.id, content=text)).id] = text
            else:
                entry = choice.choice(own)
                told.pop((await memory.forget(entry.id)).entry.id)


@pytest.mark.anyio
@pytest.mark.may_block("the test runs git")
@pytest.mark.req("CC-TEAMSYNC")
@pytest.mark.parametrize("days", [4, pytest.param(30, marks=[pytest.mark.soak, pytest.mark.timeout(900)])])
async def test_two_clones_that_went_their_own_ways_say_the_same_after_a_merge(days: int, tmp_path: Path) -> None:
    one = await create_clone(tmp_path / "a")
    await commit(one)
    two = await clone(one, tmp_path / "b")
    clock, choice, told = HandClock(datetime(2026, 11, 1, 9, tzinfo=UTC)), Random(7), dict[str, str]()
    for _ in range(days):
        for folder, user in ((one, "ann"), (two, "ben")):
            await _live(folder, user, clock, choice, told)
        clock.time += timedelta(days=1)
    for folder in (one, two):
        await commit(folder)
    await pull(two, one)
    found = dict[str, dict[str, str]]()
    for folder, user in ((two, "ben"), (one, "ann")):
        async with Memory.open(folder / ".ricordo", scope=member(user), clock=clock) as memory:
            found[user] = {entry.id: entry.content for entry in await memory.entries()}
        await commit(two)
        await pull(one, two)
    assert found == {"ann": told, "ben": told}
    assert sorted(ledger_lines(one)) == sorted(ledger_lines(two))
