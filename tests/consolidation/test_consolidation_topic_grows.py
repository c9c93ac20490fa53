"""A topic that grows says something else of itself, which rejects no run; nor do two small subjects in one topic."""

from datetime import UTC, datetime, timedelta

import pytest

from ricordo import Entry
from ricordo.curation import CandidateEntry, ConsolidationConfig, ConsolidationInput, find_faults, propose

pytestmark = pytest.mark.req("HE-C1b", "HE-C1-topic")

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
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
def test_what_is_alone_of_its_subject_joins_what_is_alone_of_its_kind(*, turned: bool) -> None:
    both = [f"Borealis and Aurora share room {number}." for number in range(4)]
    said = ["Everybody writes down what was learned.", *both, "Borealis has a red logo.", "Borealis has slow tests."]
    said = ["Aurora moved to the cellar.", *said] if turned else [*said, "Aurora moved to the cellar."]
    done = consolidated({}, [fresh(number, text) for number, text in enumerate(said)])
    assert b"moved to the cellar" in done[TOPIC]
    assert b"Everybody writes down" in done[TOPIC]
    placed = b"".join(done.values())
    assert all(text.encode() in placed for text in said)
