"""A topic that grows says something else of itself, which rejects no run; nor do two small subjects in one topic."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from ricordo import Entry, Scope
from ricordo.curation import CandidateEntry, ConsolidationConfig, ConsolidationInput, find_faults, propose

pytestmark = pytest.mark.req("HE-C1b", "HE-C1-topic")

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
CONFIG = ConsolidationConfig()
NO_ROOM = ConsolidationConfig(max_lines=4)
TOPIC = "workspace/memory/topics/more-lessons.md"


def fresh(number: int, content: str, kind: str = "lesson") -> CandidateEntry:
    return CandidateEntry(
        entry=Entry(content=content, kind=kind, id=f"01jd{number:022d}", time=NOON + timedelta(minutes=number))
    )


def consolidated(documents: dict[str, bytes], new: list[CandidateEntry]) -> dict[str, bytes]:
    material = ConsolidationInput(documents=documents, fresh=new)
    proposal = propose(material, NO_ROOM)
    assert find_faults(material, proposal, NO_ROOM) == []
    return documents | {path: data for path, data in proposal.documents.items() if data is not None}


def test_a_topic_that_is_described_anew_as_it_grows_is_written() -> None:
    first = consolidated(
        {}, [fresh(1, "Small fonts hide the warnings."), fresh(2, "Long builds hide the broken tests.")]
    )
    before = next(line for line in first[TOPIC].splitlines() if line.startswith(b"description:"))
    more = [fresh(number, f"Broken builds hide warnings of kind {number}.") for number in range(3, 9)]
    second = consolidated(first, more)
    after = next(line for line in second[TOPIC].splitlines() if line.startswith(b"description:"))
    assert after != before
    assert all(one.entry.content.encode() in second[TOPIC] for one in more)


def test_a_description_that_a_person_wrote_still_may_not_be_lost() -> None:
    first = consolidated(
        {}, [fresh(1, "Small fonts hide the warnings."), fresh(2, "Long builds hide the broken tests.")]
    )
    lines = first[TOPIC].splitlines(keepends=True)
    mine = b"".join(
        b'description: "What I learned the hard way"\n' if b"description:" in line else line for line in lines
    )
    second = consolidated(first | {TOPIC: mine}, [fresh(3, "Broken builds hide warnings.")])
    assert b'description: "What I learned the hard way"\n' in second[TOPIC]


@pytest.mark.parametrize("turned", [False, True])
def test_a_name_that_begins_a_sentence_counts_for_its_subject_too(*, turned: bool) -> None:
    both = [f"Borealis and Aurora share room {number}." for number in range(4)]
    said = ["Everybody writes down what was learned.", *both, "Borealis has a red logo.", "Borealis has slow tests."]
    said = ["Aurora moved to the cellar.", *said] if turned else [*said, "Aurora moved to the cellar."]
    done = consolidated({}, [fresh(number, text) for number, text in enumerate(said)])
    assert b"moved to the cellar" in done["workspace/memory/topics/aurora.md"]
    assert b"writes down" in done[TOPIC]
    assert b"Everybody writes down" in done[TOPIC]
    placed = b"".join(done.values())
    assert all(text.encode() in placed for text in said)


HARBOUR = (
    "The boats of Kornelia are in the northern harbour now, next to the crane. Captains pay there by the week, which is"
    " half of what the marina took, and the coffee is better."
)
ARCHIVE = (
    "We carried the tax papers with Kornelia to the archive of the town. A clerk stamped each folder twice and put a"
    " yellow label on it, because the shelves are sorted by colour."
)
GARDEN = (
    "Two gates keep the goats of Kornelia out of the garden. Behind the second one grow beans, roses and an old plum"
    " tree, whose fruit her neighbours make into jam each September."
)


@pytest.mark.req("HE-C2", "HE-T2")
def test_a_long_memory_has_a_line_in_the_index_that_states_it_in_short() -> None:
    """Its topic says the rest; a forgotten or edited one leaves no line behind, and a line of a person stays."""
    said = [f"radek: Yes! {HARBOUR}", ARCHIVE, GARDEN]
    material = ConsolidationInput(fresh=[fresh(number, text, "fact") for number, text in enumerate(said)])
    config = ConsolidationConfig()
    made = propose(material, config)
    memory = (made.documents["workspace/MEMORY.md"] or b"").decode()
    lines = memory.split("<!--")[0].splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("1. "))
    assert lines[at : at + 3] == [
        "1. [Kornelia](memory/topics/kornelia.md): Two gates keep the goats of Kornelia out of the garden.",
        "   - We carried the tax papers with Kornelia to the archive of the town. →",
        "   - The boats of Kornelia are in the northern harbour now, next to the crane."
        " Captains pay there by the week… →",
    ]
    # a person removes one of the bullets and adds a line
    documents = {path: data for path, data in made.documents.items() if data is not None}
    topic = "workspace/memory/topics/kornelia.md"
    rest = b"".join(line for line in documents[topic].splitlines(keepends=True) if b"archive" not in line)
    documents |= {topic: rest, "workspace/MEMORY.md": f"{memory}\n   - My own arrow -> stays\n".encode()}
    changed = ConsolidationInput(documents=documents, fresh=[fresh(9, "We use uv.", "fact")])
    more = propose(changed, config)
    assert find_faults(changed, more, config) == []
    after = (more.documents["workspace/MEMORY.md"] or b"").decode()
    assert ("archive" in after, "My own arrow" in after, after.count(" →\n")) == (False, True, 1)


@pytest.mark.parametrize(
    ("said", "stated"),
    [
        (
            "Bad news on that: Parapet wrote on Monday, their handheld shelf only takes demos up to 650 MB, and we want"
            " that shelf, so from now on that is our ceiling, basta.",
            "Parapet wrote on Monday, their handheld shelf only takes demos up to 650 MB",
        ),
        (
            "“people behind some vpn can't join since yesterday, the log is on the box, have a look”: Players behind a"
            " VPN were lost with a datagram error; quinn needs initial_mtu(1200), a smaller snapshot was not enough.",
            "quinn needs initial_mtu(1200)",
        ),
        (
            "Honestly a van would be useful for all of us and for the dogs, as everybody says. Since Polpetta went to"
            " the breaker's, Cova takes bus 15 on each day of the week and reads.",
            "Since Polpetta went to the breaker's, Cova takes bus 15",
        ),
    ],
)
@pytest.mark.req("HE-C2")
def test_the_line_of_a_long_memory_states_its_names_and_numbers_and_not_its_opening(said: str, stated: str) -> None:
    """Also in place of a description of an earlier version, which stated the opening."""
    material = ConsolidationInput(fresh=[fresh(1, said, "fact"), fresh(2, GARDEN, "fact"), fresh(3, ARCHIVE, "fact")])
    made = propose(material, ConsolidationConfig())
    documents = {path: data for path, data in made.documents.items() if data is not None}
    (line,) = [line for line in documents["workspace/MEMORY.md"].decode().splitlines() if stated in line]
    assert line.endswith(" →")
    assert len(line) <= 150
    (topic,) = [path for path in documents if "topics" in path]
    earlier = re.sub(rb"(?m)^description: .*$", b'description: "Two gates keep the goats"', documents[topic])
    later = propose(
        ConsolidationInput(documents=documents | {topic: earlier}, fresh=[fresh(4, HARBOUR, "fact")]), CONFIG
    )
    assert b'"Two gates keep the goats"' not in b"".join(filter(None, later.documents.values()))


NUMBERS = count(100)
SHORT_LINES = ConsolidationConfig(index_characters=10)


def grown(documents: dict[str, bytes], *said: str) -> dict[str, bytes]:
    """Return the documents after facts that are too long for MEMORY.md were consolidated."""
    new = [fresh(next(NUMBERS), text, "fact") for text in said]
    made = propose(ConsolidationInput(documents=documents, fresh=new), SHORT_LINES)
    changed = {path: data for path, data in made.documents.items() if data is not None}
    return {path: data for path, data in (documents | changed).items() if made.documents.get(path, b"") is not None}


def topic_files(documents: dict[str, bytes]) -> list[str]:
    return sorted(path.rpartition("/")[2] for path in documents if "/topics/" in path)


@pytest.mark.parametrize(
    ("said", "file"),
    [
        (("The choir rehearses.", "Our choir is loud.", "We paid the choir.", "Each choir needs basses."), "choir.md"),
        (("Der Kran steht.", "Nachts ruht der Kran.", "Wer fährt den Kran?", "Zwei Leute am Kran."), "kran.md"),
        (("El taller es mío.", "Cierra el taller.", "Las llaves del taller.", "Cada taller cobra."), "taller.md"),
        (("Il cantiere è chiuso.", "Serve il cantiere.", "Le chiavi nel cantiere.", "Ogni cantiere."), "cantiere.md"),
        (
            ("La chorale de mon père.", "Nous allons à la chorale.", "Chaque chorale chante.", "Notre chorale."),
            "chorale.md",
        ),
        (("The whole yard came.", "The whole street sang.", "The whole night.", "The whole of it."), "more-facts.md"),
        (("The second is red.", "The second, too.", "Take the second.", "The second was it."), "more-facts.md"),
        (("One yard is ours.", "A yard is loud.", "Some yard, no?", "Two yard cats."), "more-facts.md"),
    ],
)
def test_a_noun_behind_an_article_that_several_share_names_a_topic(said: tuple[str, ...], file: str) -> None:
    assert topic_files(grown({}, *said)) == [file]


def test_a_topic_is_described_by_a_sentence_that_says_what_its_name_stands_for() -> None:
    said = [
        "We waited for Ilmari all day.",
        "Ilmari is the composer of all our songs.",
        "Nobody could reach Ilmari by phone.",
    ]
    (topic,) = [data.decode() for path, data in grown({}, *said).items() if "topics" in path]
    assert 'description: "Ilmari is the composer of all our songs."\n' in topic


def test_a_topic_whose_last_but_one_memory_is_gone_ends_and_comes_back_with_the_next_ones() -> None:
    said = ["Two boats of Kornelia leak.", "The papers lie at Kornelia's.", "We met Kornelia at noon."]
    first = grown({}, *said)
    assert topic_files(first) == ["kornelia.md"]
    topic = "workspace/memory/topics/kornelia.md"
    lines = first[topic].splitlines(keepends=True)
    gone = b"".join(line for line in lines if b"leak" not in line and b"lie at" not in line)
    second = grown(first | {topic: gone}, "Every winter the pipes freeze.")
    assert topic_files(second) == ["more-facts.md"]
    assert b"met Kornelia" in second["workspace/memory/topics/more-facts.md"]
    third = grown(second, "Kornelia's cat is old.", "The goats of Kornelia are back.")
    assert topic_files(third) == ["kornelia.md", "more-facts.md"]
    assert third[topic].count(b"\n- ") == 3


def test_a_topic_that_a_person_renamed_gets_what_is_said_later_of_its_subject() -> None:
    said = ["Two boats of Kornelia leak.", "The papers lie at Kornelia's.", "We met Kornelia at noon."]
    first = grown({}, *said)
    data = first.pop("workspace/memory/topics/kornelia.md").replace(b'name: "Kornelia"', b'name: "My neighbour"')
    renamed = "workspace/memory/topics/my-neighbour.md"
    second = grown(first | {renamed: data}, "Kornelia's cat is old.", "The goats of Kornelia are back.")
    assert topic_files(second) == ["my-neighbour.md"]
    assert second[renamed].count(b"\n- ") == 5
    assert b'name: "My neighbour"' in second[renamed]


def test_no_topic_has_the_name_of_the_user_whose_memory_it_is() -> None:
    said = [f"Ana keeps the {each} in the cellar." for each in ("skis", "jams", "tools", "lamps")]
    entries = [
        replace(one, entry=replace(one.entry, scope=Scope(user="ana")))
        for one in (fresh(at, text, "fact") for at, text in enumerate(said))
    ]
    made = propose(ConsolidationInput(fresh=entries), SHORT_LINES)
    assert "workspace/memory/topics/ana.md" not in made.documents
    assert "workspace/memory/topics/cellar.md" in made.documents


def test_memories_leave_the_topic_of_their_kind_when_they_have_a_subject() -> None:
    """Two notes that mention somebody are in the catch-all topic, until a third one makes it a subject."""
    config = ConsolidationConfig()
    said = [fresh(number, text, "fact") for number, text in enumerate([HARBOUR, ARCHIVE])]
    first = propose(ConsolidationInput(fresh=said), config)
    documents = {path: data for path, data in first.documents.items() if data is not None}
    assert "workspace/memory/topics/more-facts.md" in documents
    second = propose(ConsolidationInput(documents=documents, fresh=[fresh(5, GARDEN, "fact")]), config)
    assert second.documents["workspace/memory/topics/more-facts.md"] is None
    assert (second.documents["workspace/memory/topics/kornelia.md"] or b"").count(b"\n- ") == 3
