"""Which lines of MEMORY.md a prompt shows: within every bound, the newest always, and the file itself untouched."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo import Entry
from ricordo.context import compose_preamble
from ricordo.context.memory_excerpt import MemoryCut, excerpt_memory, memory_lines
from ricordo.guard import parse_fence
from ricordo.messages import Tokens, estimate_text
from ricordo.workspace import Author, render_entry, render_prompt_lines
from ricordo.workspace.documents import IndexBounds

pytestmark = pytest.mark.req("HE-C1-index", "CC-INDEXCAP")

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
BOUNDS = IndexBounds()
AMPLE = 1_000_000
TOPICS = "## Topics\n\n" + "".join(f"{n}. [Topic {n}](memory/topics/t{n}.md): what is in it\n" for n in range(1, 41))


def bullet(content: str, number: int, *, kind: str = "fact", by: Author = "flush", pinned: bool = False) -> str:
    at = NOW + timedelta(minutes=number)
    return render_entry(Entry(content=content, id=f"{number:026}", time=at, kind=kind, by=by, pinned=pinned))


def shown(document: str, bounds: IndexBounds = BOUNDS, room: int = AMPLE) -> tuple[list[str], MemoryCut | None]:
    found = excerpt_memory([document.encode()], bounds, room)
    return list(found.lines), found.cut


PARTS = st.one_of(
    st.builds(lambda text: f"{text}\n", st.text(max_size=40)),
    st.sampled_from(
        ["## Facts\n", "# Memory\n", "### More\n", "```\n", "---\n", "word " * 900 + "\n", "語" * 3_000 + "\n"]
    ),
    st.builds(
        lambda text, number, pinned: bullet(text, number, pinned=pinned),
        st.text(min_size=1, max_size=30).filter(lambda text: bool(text.strip())),
        st.integers(0, 99),
        st.booleans(),
    ),
)


@pytest.mark.req("CC-INDEXCAP", "AS-BUG-22")
@given(
    parts=st.lists(PARTS, max_size=25), times=st.integers(1, 30), room=st.one_of(st.integers(0, 1_500), st.just(AMPLE))
)
def test_no_prompt_shows_more_than_each_bound_allows_whatever_grew_the_file(
    parts: list[str], times: int, room: int
) -> None:
    document = "".join(parts * times).encode("utf-8", "replace")
    found = excerpt_memory([document], BOUNDS, room)
    text = "\n".join(found.lines)
    assert len(found.lines) <= 200
    assert len(text.encode("utf-8", "replace")) <= 25_000
    assert estimate_text(text) <= room
    assert all("\n" not in line for line in found.lines)
    assert found.cut is not None or list(found.lines) == render_prompt_lines(document) == memory_lines([document])
    assert (found.cut is None) == (list(found.lines) == memory_lines([document]))


@given(parts=st.lists(PARTS, max_size=25), times=st.integers(1, 30), budget=st.integers(1, 9_000))
def test_the_item_of_a_preamble_that_holds_the_index_is_within_its_bounds(
    parts: list[str], times: int, budget: int
) -> None:
    document = "".join(parts * times).encode("utf-8", "replace")
    made = compose_preamble(document, [], Tokens(budget))
    assert estimate_text(made.text) <= budget
    items = parse_fence(made.text) or ("",)
    assert len(items[0].split("\n")) <= 200
    assert len(items[0].encode()) <= 25_000


@pytest.mark.req("CC-INDEXCAP")
def test_what_takes_more_tokens_in_the_prompt_than_in_the_file_is_within_its_room_too() -> None:
    document = "".join(f"- <b>{number}</b> & so on.\n" for number in range(150)).encode()

    def escaped(text: str) -> int:
        return 3 * estimate_text(text)

    found = excerpt_memory([document], BOUNDS, 900, escaped)
    assert 300 < escaped("\n".join(found.lines)) <= 900
    assert found.cut is not None
    assert (found.cut.cap, found.cut.limit, found.cut.lines) == ("tokens", 900, 150 - len(found.lines))


def test_a_file_within_its_bounds_is_shown_as_it_is() -> None:
    document = "".join(f"- Line {number}.\n" for number in range(200))
    assert shown(document) == (document.splitlines(), None)


@pytest.mark.parametrize(
    ("line", "room", "cap", "most"),
    [
        ("- Thing {}.\n", AMPLE, "lines", 200),
        ("- Thing {} " + "and so on " * 60 + "\n", AMPLE, "bytes", 25_000),
        ("- Thing {}.\n", 300, "tokens", 300),
    ],
)
def test_the_bound_that_acted_is_named_and_what_it_left_out_is_counted(
    line: str, room: int, cap: str, most: int
) -> None:
    document = "# Memory\n\nThings.\n" + "".join(line.format(number) for number in range(400))
    lines, cut = shown(document, room=room)
    assert cut is not None
    assert (cut.cap, cut.limit) == (cap, most)
    assert cut.lines == cut.memories == 402 - len(lines)


@pytest.mark.req("CC-INDEXCAP")
def test_of_two_bounds_that_are_reached_at_once_that_of_the_lines_is_named() -> None:
    line = "- Thing.\n"
    for lines, most, cap in ((4, 4, "lines"), (5, 4, "bytes"), (4, 5, "lines")):
        found, cut = shown(line * 9, IndexBounds(max_lines=lines, max_bytes=most * len(line)))
        assert cut is not None
        assert (cut.cap, len(found)) == (cap, 4)


@pytest.mark.req("CC-INDEXCAP")
def test_the_newest_and_what_a_person_added_last_are_shown_wherever_they_stand() -> None:
    facts = [bullet(f"Fact {number} of the shop.", number, kind="preference", by="user") for number in range(300)]
    facts.insert(150, bullet("What was said last is of less use.", 999))
    by_hand = [f"- Rule {number} of mine.\n" for number in range(300)]
    document = "# Memory\n\n## Facts\n\n" + "".join(facts) + "\n## Mine\n\n" + "".join(by_hand)
    lines, cut = shown(document)
    assert "- What was said last is of less use." in lines
    assert "- Rule 299 of mine." in lines
    assert cut is not None
    assert cut.cap == "lines"
    assert len(lines) == 200


@pytest.mark.req("CC-INDEXCAP")
@pytest.mark.parametrize("before", ["", "- Of no section.\n"])
def test_a_line_that_brings_its_heading_along_goes_beyond_no_bound(before: str) -> None:
    lines, cut = shown(before + "".join(f"## Part {number}\n- Line {number}.\n" for number in range(150)))
    assert 198 <= len(lines) <= 200
    assert all(f"## Part {line.split()[2]}"[:-1] in lines for line in lines if line.startswith("- Line"))
    assert cut is not None
    assert cut.cap == "lines"


@pytest.mark.req("CC-INDEXCAP")
def test_the_newest_is_begun_where_it_is_too_long_for_the_index() -> None:
    document = bullet("An older fact.", 1) + bullet("The newest fact " + "goes on and on " * 4_000, 2)
    lines, cut = shown(document)
    assert lines[0] == "- An older fact."
    assert re.fullmatch(r"- The newest fact goes on [a-z ]{60,100}…", lines[1])
    assert cut == MemoryCut(cap="bytes", limit=25_000, lines=1)


@pytest.mark.req("CC-INDEXCAP")
def test_topics_come_before_what_is_pinned_and_that_before_what_is_of_less_use() -> None:
    rows = [bullet(f"Extracted {number}.", number) for number in range(100)]
    rows += [bullet(f"Preference {number}.", 200 + number, kind="preference", by="user") for number in range(100)]
    rows += [bullet(f"Pinned {number}.", 400 + number, pinned=True) for number in range(60)]
    document = f"# Memory\n\n{TOPICS}\n## Facts\n\n" + "".join(rows)
    lines, cut = shown(document)
    assert [line for line in lines if line[0].isdigit()] == [line for line in TOPICS.splitlines() if line[:1].isdigit()]
    assert sum(line.startswith("- Pinned") for line in lines) == 60
    preferences = [line for line in lines if line.startswith("- Preference")]
    assert preferences == [f"- Preference {number}." for number in range(100 - len(preferences), 100)], "the newer"
    assert len(preferences) > 90
    assert not any(line.startswith("- Extracted") for line in lines)
    assert cut is not None
    assert cut.topics == 0
    assert cut.memories == 200 - len(preferences)


def test_the_lines_that_state_long_memories_in_short_come_after_what_is_surer_and_are_no_persons_lines() -> None:
    pointers = "".join(f"   - The long story number {number} of the crew… →\n" for number in range(20))
    facts = "".join(bullet(f"Fact {number} is short.", number) for number in range(20))
    topics = "## Topics\n\n1. [Crew](memory/topics/crew.md): who is in it\n"
    lines, cut = shown(f"# Memory\n\n{topics}{pointers}\n## Facts\n\n{facts}", IndexBounds(max_lines=20))
    assert sum(line.startswith("- Fact") for line in lines) == 16
    assert not any("long story" in line for line in lines)
    assert cut is not None
    assert cut.memories == 4
    mine = "   - My own arrow -> stays\n"
    lines, _ = shown(f"{topics}{pointers}{mine}\n## Facts\n\n{facts}", IndexBounds(max_lines=9))
    assert any("My own arrow -> stays" in line for line in lines)


def test_a_list_of_topics_without_room_for_what_is_said_of_them_names_them_all_the_same() -> None:
    document = f"# Memory\n\n{TOPICS}\n" + "".join(bullet(f"Fact {number}.", number) for number in range(50))
    lines, cut = shown(document, room=700)
    assert sum("(memory/topics/t" in line for line in lines) == 40
    assert not any("what is in it" in line for line in lines)
    assert "- Fact 49." in lines
    assert cut is not None
    assert cut.topics == 0
    assert cut.lines >= 40, "what they say is counted as left out"


def test_under_a_small_budget_memories_stand_in_the_place_of_what_is_said_of_topics() -> None:
    facts = [f"The fact number {number} says more than the name of a topic." for number in range(30)]
    document = f"# Memory\n\n{TOPICS[: TOPICS.index('11. ')]}\n" + "".join(map(bullet, facts, range(30)))
    shares = {}
    for room in (350, 2_000):
        lines, _ = shown(document, room=room)
        assert sum("(memory/topics/t" in line for line in lines) == 10
        shares[room] = estimate_text("\n".join(line for line in lines if "fact number" in line)) / room
        assert any("what is in it" in line for line in lines) is (room == 2_000)
    assert shares[350] >= 0.4


def test_pinned_lines_leave_room_for_topics_and_topics_for_the_newest() -> None:
    pinned = [bullet(f"Pinned {number}.", number, pinned=True) for number in range(300)]
    many = "".join(f"{n}. [Topic {n}](memory/topics/t{n}.md)\n" for n in range(1, 301))
    lines, cut = shown(f"## Topics\n\n{many}\n## Facts\n\n" + "".join(pinned) + bullet("The newest.", 400))
    assert "- The newest." in lines
    assert sum("(memory/topics/" in line for line in lines) >= 90
    assert sum(line.startswith("- Pinned") for line in lines) >= 90
    assert cut is not None
    assert cut.topics == 300 - sum("(memory/topics/" in line for line in lines)


def test_the_lines_of_a_person_keep_their_order_among_themselves_and_stand_as_in_the_file() -> None:
    document = "".join(f"Mine {number}.\n{bullet(f'Ours {number}.', number)}" for number in range(300))
    lines, _ = shown(document)
    whole = render_prompt_lines(document.encode())
    assert lines == [line for line in whole if line in lines]
    mine = [int(line[5:-1]) for line in lines if line.startswith("Mine")]
    assert mine == [*range(len(mine) - 1), 299]


def test_a_heading_stands_over_what_is_shown_of_it_and_over_nothing_else() -> None:
    old = "".join(bullet(f"Old {number}.", number) for number in range(300))
    document = f"## Facts\n\n{old}\n## Goals\n\n" + bullet("Sail to Elba.", 900, kind="goal", by="user")
    lines, _ = shown(document, IndexBounds(max_lines=2))
    assert lines == ["## Goals", "- Sail to Elba."]


def test_two_places_share_the_bounds_and_each_shows_what_was_added_last() -> None:
    one, other = ("".join(f"- {name} {number}.\n" for number in range(150)).encode() for name in ("Shop", "Home"))
    found = excerpt_memory([one, other], BOUNDS, AMPLE)
    homes = [f"- Home {number}." for number in (*range(49), 149)]
    assert found.lines == (*(f"- Shop {number}." for number in range(150)), *homes)


@pytest.mark.parametrize(
    ("document", "words"), [("- Thing {}.\n", "200 lines"), ("- {} " + "a b " * 200 + "\n", "25,000 bytes")]
)
def test_the_preamble_says_in_a_line_what_is_not_shown_why_and_how_to_open_it(document: str, words: str) -> None:
    text = compose_preamble("".join(document.format(n) for n in range(300)).encode(), [], Tokens(20_000)).text
    told = text.split("\n", 1)[0]
    assert re.search(
        r"(\d+) more did not fit here: MEMORY.md and memory/ hold them\. \1 of them are lines of MEM", told
    )
    assert (
        f"no more than {words} are shown: &#x60;memory_get&#x60;" in told
        or f"no more than {words} are shown: `memory_get`" in told
    )


def test_a_budget_that_acts_is_named_with_its_tokens() -> None:
    made = compose_preamble("".join(f"- Thing {n}.\n" for n in range(150)).encode(), [], Tokens(600))
    assert made.cut is not None
    assert (made.cut.cap, made.cut.limit) == ("tokens", 600)
    assert "no more than 600 tokens are shown" in made.text
    assert estimate_text(made.text) <= 600
