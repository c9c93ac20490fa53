"""Consolidation never switches a rule off: it is placed with its rule, and nothing that is said takes its place."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ricordo import Entry
from ricordo.curation import CandidateEntry, ConsolidationConfig, ConsolidationInput, find_faults, propose
from ricordo.curation.types import Proposal
from ricordo.workspace import MEMORY_PATH, Author, parse_entries, render_entry

pytestmark = pytest.mark.req("CC-ENFORCE")

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
LEDGER = "workspace/memory/2026-11-21.md"
CONFIG = ConsolidationConfig()
RULE = "deny shell(git push --force*)"


def entry(number: int, content: str, *, rule: str | None = None, by: Author = "user", **more: object) -> Entry:
    moment = NOW + timedelta(minutes=number)
    return Entry(content=content, id=f"{number:026}", by=by, time=moment, rule=rule, **more)  # type: ignore[arg-type]


def run(fresh: list[Entry], curated: list[Entry] | None = None, config: ConsolidationConfig = CONFIG) -> Proposal:
    """Consolidate `fresh` beside entries that were curated before; all stand in one ledger."""
    before = b"# Memory\n\n## Facts\n\n" + "".join(map(render_entry, curated or ())).encode()
    ledger = "".join(map(render_entry, [*(curated or ()), *fresh])).encode()
    material = ConsolidationInput(
        documents={MEMORY_PATH: before} if curated else {},
        ledgers={LEDGER: ledger},
        fresh=[CandidateEntry(entry=one) for one in fresh],
    )
    made = propose(material, config)
    assert find_faults(material, made, config) == []
    return replace(made, documents={**material.documents, **made.documents})


def rules(made: Proposal) -> dict[str, str]:
    """Return the rules of curated memory by the ids of their entries."""
    curated = [(path, data) for path, data in made.documents.items() if path != LEDGER and data]
    found = [one.entry for path, data in curated for one in parse_entries(data, path) if one.entry.state == "active"]
    return {one.id: one.rule for one in found if one.rule}


def test_a_rule_is_curated_with_its_rule() -> None:
    assert rules(run([entry(1, "Never force-push.", rule=RULE)])) == {f"{1:026}": RULE}


def test_a_rule_that_has_no_room_keeps_its_rule_in_a_topic() -> None:
    fresh = [
        entry(number, f"Fact {number} is about shelf {number * 7}.", rule=f"ask t{number}") for number in range(40)
    ]
    made = run(fresh, config=ConsolidationConfig(max_lines=24, max_memory_tokens=160, max_bytes=2_400))
    assert len(made.documents) > 1
    assert rules(made) == {one.id: one.rule for one in fresh}


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
@pytest.mark.parametrize("by", ["user", "flush"])
def test_of_two_new_ones_that_say_the_same_the_rule_stays(order: tuple[int, int], by: Author) -> None:
    ruling, plain = order
    made = run([entry(ruling, "Never force-push.", rule=RULE), entry(plain, "Never force-push.", by=by)])
    assert rules(made) == {f"{ruling:026}": RULE}
    assert made.merged == (f"{plain:026}",)


def test_what_says_the_same_as_a_curated_rule_is_merged_into_it() -> None:
    made = run([entry(2, "Never force-push.", by="flush")], [entry(1, "Never force-push.", rule=RULE)])
    assert rules(made) == {f"{1:026}": RULE}
    assert made.merged == (f"{2:026}",)


def test_a_curated_memory_gives_way_to_the_rule_that_says_the_same() -> None:
    made = run([entry(2, "Never force-push.", rule=RULE)], [entry(1, "Never force-push.", by="flush")])
    assert rules(made) == {f"{2:026}": RULE}
    assert [(one.old, one.new) for one in made.superseded] == [(f"{1:026}", f"{2:026}")]
    memory = made.documents[MEMORY_PATH]
    assert memory
    assert memory.count(b"Never force-push.") == 1
    ledger = made.documents[LEDGER]
    assert ledger
    [old, _] = [located.entry for located in parse_entries(ledger, LEDGER)]
    assert (old.id, old.state, old.superseded_by) == (f"{1:026}", "superseded", f"{2:026}")


@pytest.mark.parametrize(
    "curated", [entry(1, "Never force-push.", pinned=True), entry(1, "Never force-push.", by="hand")]
)
def test_what_a_person_keeps_and_the_rule_that_says_the_same_stand_side_by_side(curated: Entry) -> None:
    made = run([entry(2, "Never force-push.", rule=RULE)], [curated])
    assert rules(made) == {f"{2:026}": RULE}
    assert (made.merged, made.superseded) == ((), ())


def test_two_rules_in_the_same_words_both_stand() -> None:
    made = run([entry(2, "Never force-push.", rule="ask shell(git*)")], [entry(1, "Never force-push.", rule=RULE)])
    assert rules(made) == {f"{1:026}": RULE, f"{2:026}": "ask shell(git*)"}


@pytest.mark.req("HE-O-conflict", "FC-CONFLICT")
@pytest.mark.parametrize("by", ["user", "agent", "flush"])
def test_no_correction_takes_the_place_of_a_rule(by: Author) -> None:
    fresh = entry(2, "We switched the orders from MySQL to PostgreSQL.", by=by, tags=("correction",))
    plain = run([fresh], [entry(1, "We use MySQL for the orders.")])
    assert [one.old for one in plain.superseded] == [f"{1:026}"]
    made = run([fresh], [entry(1, "We use MySQL for the orders.", rule="ask shell(mysql*)")])
    assert made.superseded == ()
    assert rules(made) == {f"{1:026}": "ask shell(mysql*)"}


def test_a_ledger_line_that_lost_its_rule_takes_none_from_curated_memory() -> None:
    before = b"# Memory\n\n## Facts\n\n" + render_entry(entry(1, "Never force-push.", rule=RULE)).encode()
    edited = entry(1, "Never force-push to main.")
    material = ConsolidationInput(
        documents={MEMORY_PATH: before},
        ledgers={LEDGER: render_entry(edited).encode()},
        fresh=[CandidateEntry(entry=edited, edited=True)],
    )
    made = propose(material, CONFIG)
    assert rules(made) == {f"{1:026}": RULE}
    assert b"Never force-push to main." in (made.documents[MEMORY_PATH] or b"")


@pytest.mark.req("AS-BUG-15")
@pytest.mark.parametrize("lost", [b"", render_entry(entry(1, "Never force-push.")).encode()])
def test_a_proposal_that_would_switch_a_rule_off_is_rejected(lost: bytes) -> None:
    before = b"# Memory\n\n## Facts\n\n" + render_entry(entry(1, "Never force-push.", rule=RULE)).encode()
    material = ConsolidationInput(documents={MEMORY_PATH: before})
    proposal = Proposal(documents={MEMORY_PATH: b"# Memory\n\n## Facts\n\n" + lost}, merged=(f"{1:026}",))
    assert find_faults(material, proposal, CONFIG) == ["1 rules would be switched off"]
    forgotten = replace(material, forgotten=(f"{1:026}",))
    assert find_faults(forgotten, proposal, CONFIG) == []
