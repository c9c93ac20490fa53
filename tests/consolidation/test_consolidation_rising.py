"""What was of use comes back from a topic to MEMORY.md, what was not makes room, and lines do not hop."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ricordo import Entry
from ricordo.curation import CandidateEntry, ConsolidationConfig, ConsolidationInput, find_faults, propose
from ricordo.curation.memory_document import MemoryDocument
from ricordo.curation.placement import place_entries
from ricordo.curation.topics import update_description
from ricordo.workspace import MEMORY_PATH, Author, parse_entries, render_entry
from ricordo.workspace.entry_codec import inline_fields, without_field_comment

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
LEDGER = "workspace/memory/2026-11-21.md"
FACTS = "workspace/memory/topics/more-facts.md"
SMALL = ConsolidationConfig(max_lines=16)
COLOURS = (
    "amber", "birch", "coral", "dune", "ember", "fern", "grape", "hazel", "ivory", "jade", "khaki", "lilac", "maroon",
    "navy", "olive", "pearl",
)  # fmt: skip


def entry(number: int, content: str = "", kind: str = "fact", by: Author = "flush", **more: object) -> Entry:
    said = content or f"{COLOURS[number % 16].title()} locker {number} keeps the {COLOURS[number // 16 % 16]} boots."
    given = {"confidence": 0.9, "time": NOW + timedelta(minutes=number), **more}
    return Entry(content=said, id=f"{number:026}", kind=kind, by=by, **given)  # type: ignore[arg-type]


def ledgers(entries: Sequence[Entry]) -> dict[str, bytes]:
    return {LEDGER: "".join(map(render_entry, entries)).encode()}


def curated(
    entries: Sequence[Entry], config: ConsolidationConfig = SMALL, used: Mapping[str, int] | None = None
) -> dict[str, bytes]:
    fresh = [CandidateEntry(entry=one) for one in entries]
    made = place_entries(MemoryDocument(), {}, fresh, (), config, originals={}, use_counts=used)
    return {path: sheet.data for path, sheet in made.documents.items()}


def dreamt(
    before: Mapping[str, bytes],
    entries: Sequence[Entry],
    used: Mapping[str, int],
    config: ConsolidationConfig = SMALL,
    *,
    new: Sequence[Entry] = (),
    deep: bool = True,
) -> dict[str, bytes]:
    """Return curated memory after a run that has no faults and leaves everything somewhere."""
    fresh = [CandidateEntry(entry=one) for one in new]
    material = ConsolidationInput(
        documents=before, ledgers=ledgers([*entries, *new]), fresh=fresh, used=used, deep=deep
    )
    made = propose(material, config)
    assert find_faults(material, made, config) == []
    after = {**before, **made.documents}
    kept = {path: data for path, data in after.items() if data is not None and path != LEDGER}
    assert sorted(name for path in kept for name in ids(kept, path)) == sorted(one.id for one in [*entries, *new])
    return kept


def ids(documents: Mapping[str, bytes], path: str = MEMORY_PATH) -> list[str]:
    return [found.entry.id for found in parse_entries(documents[path], path)]


@pytest.mark.req("CC-INDEXCAP")
def test_of_three_thousand_the_most_used_are_in_the_index_on_top_of_their_sections_also_when_use_came_later() -> None:
    config = ConsolidationConfig()
    kinds = ("fact", "decision", "preference", "lesson")
    entries = [
        entry(
            number, f"{COLOURS[number % 16].title()} {COLOURS[number // 256]} {number}: shelf {number * 7} is for it.",
            kinds[number % 4], "user" if number % 10 == 0 else "flush",
        )
        for number in range(3_000)
    ]  # fmt: skip
    first = place_entries(
        MemoryDocument(), {}, [CandidateEntry(entry=one) for one in entries], (), config, originals={}
    ).documents
    held = {one.id for one in first[MEMORY_PATH].entries}
    assert len(held) < 200
    below = [one for one in entries if one.id not in held]
    opened = below[:: len(below) // 90][:90]
    used = {one.id: 4 ** (1 + place % 4) for place, one in enumerate(opened)}
    topics = {path: sheet for path, sheet in first.items() if path != MEMORY_PATH}
    written = {path: sheet.data for path, sheet in topics.items()}
    placing = partial(
        place_entries, first[MEMORY_PATH], topics, filled=(), config=config, originals=written, use_counts=used
    )
    dreamt = placing([], deep=True).documents[MEMORY_PATH]
    assert used.keys() <= {one.id for one in dreamt.entries}
    assert config.bounds.find_exceeded(dreamt.data) is None
    for kind in kinds:
        counts = [used.get(one.id, 0) for one in dreamt.entries if one.kind == kind]
        assert counts == sorted(counts, reverse=True)
        assert counts[0] == 256
    later = placing([CandidateEntry(entry=entry(4_000))]).documents[MEMORY_PATH]
    assert {f"{4_000:026}", *used} <= {one.id for one in later.entries}


@pytest.mark.req("HE-C3")
def test_a_dream_brings_up_what_was_of_use_for_what_was_not_and_the_next_one_changes_nothing() -> None:
    entries = [entry(number) for number in range(20)]
    before = curated(entries)
    held, (worst, *_) = ids(before), sorted(ids(before))
    first, second = ids(before, FACTS)[:2]
    after = dreamt(before, entries, {first: 1, second: 5})
    assert ids(after)[:2] == [second, first]
    assert worst not in ids(after)
    assert ids(after, FACTS).count(worst) == 1
    assert ids(after)[2:] == [name for name in held if name in ids(after)]
    assert dreamt(after, entries, {first: 1, second: 5}) == after


@pytest.mark.req("CC-INDEXCAP")
def test_as_long_as_nothing_is_new_use_changes_nothing_and_then_it_does() -> None:
    entries = [entry(number) for number in range(20)]
    before = curated(entries)
    used = {ids(before, FACTS)[0]: 5}
    assert dreamt(before, entries, used, deep=False) == before
    after = dreamt(before, entries, used, new=[entry(30)], deep=False)
    assert set(used) < set(ids(after))
    assert f"{30:026}" in ids(after)


@pytest.mark.req("CC-INDEXCAP")
@pytest.mark.parametrize(("count", "rises"), [(7, False), (15, False), (16, True), (1_000, True)])
def test_a_line_gives_way_only_to_one_that_was_of_use_four_times_as_often(count: int, *, rises: bool) -> None:
    entries = [entry(number) for number in range(20)]
    before = curated(entries, used={one.id: 4 for one in entries[:12]})
    low = max(ids(before, FACTS))
    assert low > min(ids(before))
    used = {**dict.fromkeys(ids(before), 4), low: count}
    assert (low in ids(dreamt(before, entries, used))) is rises
    assert (low in ids(dreamt(before, entries, used, new=[entry(30, by="user")], deep=False))) is rises


@pytest.mark.req("HE-C1b")
def test_where_there_is_room_what_was_of_use_comes_up_and_a_topic_that_is_emptied_goes_with_its_line() -> None:
    entries = [entry(number) for number in range(20)]
    before = curated(entries)
    below = ids(before, FACTS)
    used = dict.fromkeys(below[1:], 1)
    roomy = dreamt(before, entries, used, ConsolidationConfig())
    assert ids(roomy, FACTS) == below[:1]
    gone = dreamt(roomy, entries, {**used, below[0]: 1}, ConsolidationConfig())
    assert list(gone) == [MEMORY_PATH]
    assert b"## Topics" not in gone[MEMORY_PATH]


@pytest.mark.req("CC-HALFLIFE")
def test_what_was_confirmed_once_counts_as_what_was_saved() -> None:
    saved = [entry(number, kind="preference", by="user") for number in range(10)]
    told = [entry(number) for number in range(10, 20)]
    before = curated([*saved, *told])
    below = ids(before, FACTS)
    after = dreamt(before, [*saved, *told], {below[0]: 4, below[1]: 2})
    assert below[0] in ids(after)
    assert below[1] not in ids(after)


@pytest.mark.req("HE-C3-guard", "CC-INDEXCAP")
def test_what_is_pinned_written_by_hand_under_a_heading_of_somebody_or_in_a_topic_of_theirs_stays() -> None:
    entries = [entry(number) for number in range(20)]
    before = curated(entries)
    pinned, hand = entry(40, pinned=True), entry(41, by="hand")
    headed, theirs = entry(42), entry(43)
    lines = f"{render_entry(pinned)}{render_entry(hand)}\n## Boots\n\n{render_entry(headed)}".encode()
    topic = f"---\nname: boots\ndescription: mine\n---\n# Boots\n\n{render_entry(theirs)}".encode()
    boots = "workspace/memory/topics/boots.md"
    before |= {FACTS: update_description(FACTS, before[FACTS], before[FACTS] + lines), boots: topic}
    everything = [*entries, pinned, hand, headed, theirs]
    used = {one.id: 64 for one in (pinned, hand, headed, theirs)}
    after = dreamt(before, everything, used, ConsolidationConfig())
    assert {pinned.id, hand.id, headed.id} <= set(ids(after, FACTS))
    assert after[FACTS].endswith(lines)
    assert after[boots] == topic
    assert ids(after) == ids(before)


@pytest.mark.req("HE-C2")
def test_what_is_too_long_for_the_index_stays_in_its_topic_and_edited_words_come_along() -> None:
    entries = [*(entry(number) for number in range(20)), entry(50, "long words " * 20)]
    before = curated(entries)
    name = next(name for name in ids(before, FACTS) if name != entries[-1].id)
    said = next(one.content for one in entries if one.id == name)
    before[FACTS] = before[FACTS].replace(said.encode(), b"Mine now, and otherwise.")
    after = dreamt(before, entries, {name: 4, entries[-1].id: 64})
    assert b"- Mine now, and otherwise. ^" in after[MEMORY_PATH]
    assert entries[-1].id in ids(after, FACTS)


def test_a_persons_lines_keep_their_places_between_those_that_a_dream_puts_in_order() -> None:
    entries = [entry(number) for number in range(6)]
    before = curated(entries, ConsolidationConfig())
    lines = before[MEMORY_PATH].splitlines(keepends=True)
    at = next(at for at, line in enumerate(lines) if line.startswith(b"- ")) + 2
    pinned = render_entry(entry(9, pinned=True)).encode()
    before[MEMORY_PATH] = b"".join([*lines[:at], b"Mine.\n", pinned, *lines[at:]])
    last = ids(before)[-1]
    after = dreamt(before, [*entries, entry(9)], {last: 1}, ConsolidationConfig())
    shown = inline_fields(after[MEMORY_PATH]).splitlines(keepends=True)
    assert (shown[at], shown[at + 1]) == (b"Mine.\n", pinned)
    assert ids(after)[0] == last


USED = st.dictionaries(st.integers(0, 29).map(lambda number: f"{number:026}"), st.integers(0, 300), max_size=20)


@settings(max_examples=15)
@given(used=USED, later=USED, lines=st.integers(10, 24))
def test_whatever_was_of_use_two_dreams_make_what_one_makes(
    used: dict[str, int], later: dict[str, int], lines: int
) -> None:
    config = ConsolidationConfig(max_lines=lines)
    entries = [entry(number, kind=("fact", "lesson")[number % 2]) for number in range(30)]
    once = dreamt(curated(entries, config), entries, used, config)
    assert dreamt(once, entries, used, config) == once
    assert without_field_comment(once[MEMORY_PATH]).count(b"\n") <= lines
    more = {name: used.get(name, 0) + later.get(name, 0) for name in {*used, *later}}
    twice = dreamt(once, entries, more, config)
    assert dreamt(twice, entries, more, config) == twice
