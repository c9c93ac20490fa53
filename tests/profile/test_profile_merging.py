"""Facts that a model makes one of."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from hand_clock import HandClock
from ricordo.curation import NewFact, ProfileConfig, ProfileUpdate, UpdateLabels, UpdateResult
from ricordo.curation.profile.apply import apply_update
from ricordo.curation.profile.facts import fact_sources, find_merge_groups
from ricordo.curation.profile.storage import LedgerArchive
from ricordo.curation.profile.updates import FactMerge
from ricordo.guard import Redactor
from ricordo.scope import Scope
from ricordo.testing import InMemoryFiles
from ricordo.workspace import Fact, FactSource, Profile, format_profile_time, read_all_entries
from ricordo.workspace.ledger import read_entries
from ricordo.workspace.profile import parse_profile_time

pytestmark = pytest.mark.req("DF-C49")

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
ON = ProfileConfig(consolidation_enabled=True)
GOOD = UpdateLabels(scope="user", durability="durable", authority="descriptive")


def held(number: int, **further: object) -> Fact:
    fact = Fact(
        id=f"fact_{number:08x}",
        content=f"Has been to city {number}",
        confidence=0.7 + number / 100,
        created_at=format_profile_time(NOW - timedelta(days=20 - number)),
        source=FactSource(thread=f"s-{number}", messages=(f"m{number}",), quote="been"),
    )
    return replace(fact, **further)  # type: ignore[arg-type]


FACTS = tuple(held(at) for at in range(9))


def merging(
    *numbers: int, content: str = "Has been to nine cities", confidence: float = 0.99, labels: UpdateLabels = GOOD
) -> FactMerge:
    fact = NewFact(content=content, confidence=confidence, labels=labels)
    return FactMerge(sources=tuple(f"fact_{at:08x}" for at in numbers), fact=fact)


def update(*mergings: FactMerge, facts: Sequence[Fact] = FACTS, config: ProfileConfig = ON) -> UpdateResult:
    return apply_update(Profile(facts=tuple(facts)), ProfileUpdate(mergings=mergings), now=NOW, config=config)


@pytest.mark.anyio
@pytest.mark.req("DF-C49")
async def test_facts_of_one_category_become_one_and_stay_to_be_found() -> None:
    facts = (replace(FACTS[0], source_error="seven"), replace(FACTS[1], valid_days=25), *FACTS[2:])
    done = update(merging(0, 1, 2), facts=facts)
    one = done.profile.facts[-1]
    assert len(done.profile.facts) == 7
    assert one.content == "Has been to nine cities"
    assert one.confidence == 0.72, "it is never surer than the surest of them"
    assert (one.category, one.source.thread) == ("context", "consolidation")
    assert one.merged_from == done.merged == tuple(fact.id for fact in facts[:3])
    assert one.created_at == facts[2].created_at
    assert one.valid_days == 25 - 19, "it is due when the first of them is"
    assert one.source_error == "seven"
    assert one.confirmations == 3
    assert {each.thread for each in fact_sources(one)} == {"consolidation", "s-0", "s-1", "s-2"}
    assert done.left == facts[:3]
    assert done.added == (one.id,)
    await _restorable(done.left)
    for refused, reason in (
        ((merging(0),), "number"),
        ((merging(*range(9)),), "number"),
        ((merging(0, 99),), "unknown"),
        ((merging(0, 0),), "used"),
        ((merging(0, 1, labels=UpdateLabels(scope="user")),), "durability"),
        ((merging(0, 1, content=" "),), "content"),
        ((merging(0, 1, confidence=0.6),), "threshold"),
        ((merging(0, 1, confidence=float("nan")),), "threshold"),
    ):
        bad = update(*refused)
        assert bad.profile.facts == FACTS
        assert [each.reason for each in bad.rejections] == [reason]
    test_merging_is_off_unless_it_is_asked_for()
    test_a_source_is_used_once_and_a_cycle_has_three_groups()
    test_protected_facts_other_categories_and_small_groups_stay()


async def _restorable(facts: Sequence[Fact]) -> None:
    clock = HandClock(NOW)
    files = InMemoryFiles()
    archive = LedgerArchive(files=files, clock=clock, redactor=Redactor(bytes(32)), scope=Scope(user="ana"))
    await archive(facts)
    await archive(facts)
    path = "workspace/memory/archive/2026-11-21.md"
    entries = [each.entry for each in await read_entries(files, path)]
    assert [entry.content for entry in entries] == [fact.content for fact in facts], "twice writes once"
    assert entries[0].id == "fact-00000000"
    assert (entries[0].source.session, entries[0].source.messages) == ("s-0", ("m0",))
    assert entries[0].since == parse_profile_time(facts[0].created_at)
    assert entries[0].scope == Scope(user="ana")
    assert {each.entry.content for each in await read_all_entries(files)} == {fact.content for fact in facts}
    assert clock.today() == date(2026, 11, 21)


@pytest.mark.req("DF-C49")
def test_merging_is_off_unless_it_is_asked_for() -> None:
    assert find_merge_groups(FACTS, ProfileConfig()) == ()
    off = update(merging(0, 1), config=ProfileConfig())
    assert off.profile.facts == FACTS
    assert [each.reason for each in off.rejections] == ["off"]


@pytest.mark.req("DF-C49")
def test_a_source_is_used_once_and_a_cycle_has_three_groups() -> None:
    twice = update(merging(0, 1), merging(1, 2, content="Twice"))
    assert [each.reason for each in twice.rejections] == ["used"]
    assert len(twice.profile.facts) == 8
    many = tuple(held(at) for at in range(30))
    pairs = [merging(2 * at, 2 * at + 1, content=f"Pair {at}", confidence=0.9) for at in range(4)]
    four = update(*pairs, facts=many)
    assert [each.reason for each in four.rejections] == ["too many"]
    assert len(four.added) == 3


@pytest.mark.req("DF-C49")
def test_protected_facts_other_categories_and_small_groups_stay() -> None:
    for facts, reason in (
        ((replace(FACTS[0], pinned=True), *FACTS[1:]), "protected"),
        ((replace(FACTS[0], source=FactSource(thread="manual")), *FACTS[1:]), "protected"),
        ((replace(FACTS[0], category="goal"), *FACTS[1:]), "category"),
        (tuple(replace(fact, category="correction") for fact in FACTS), "protected"),
        (FACTS[:7], "few"),
        ((*FACTS[:7], *(replace(fact, category="goal") for fact in FACTS[7:])), "few"),
    ):
        done = update(merging(0, 1), facts=facts)
        assert done.profile.facts == facts
        assert [each.reason for each in done.rejections] == [reason]


@pytest.mark.req("DF-C39")
@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (replace(GOOD, scope="project"), "scope"),
        (replace(GOOD, durability="session"), "durability"),
        (replace(GOOD, authority="directive"), "authority"),
    ],
)
def test_what_facts_become_passes_the_same_gate_and_stops_no_other(labels: UpdateLabels, reason: str) -> None:
    done = update(merging(0, 1, labels=labels), merging(2, 3, content="Has been to two cities", confidence=0.9))
    assert [each.reason for each in done.rejections] == [reason]
    assert {fact.content for fact in FACTS[:2]} < {fact.content for fact in done.profile.facts}
    assert len(done.added) == 1


def test_the_largest_groups_come_first_and_small_ones_not_at_all() -> None:
    facts = [held(at, category="goal") for at in range(8)]
    facts += [held(20 + at, category="context") for at in range(10)]
    facts += [held(40 + at, category="behavior") for at in range(7)]
    facts += [held(60 + at, category="correction") for at in range(9)]
    assert [group[0].category for group in find_merge_groups(facts, ON)] == ["context", "goal"]


@pytest.mark.req("DF-B7")
def test_merging_comes_after_the_trim() -> None:
    config = replace(ON, max_facts=8)
    done = update(merging(1, 2), config=config)
    assert done.archived == (FACTS[0].id,)
    assert len(done.profile.facts) == 7
    gone = update(merging(0, 1), config=config)
    assert [each.reason for each in gone.rejections] == ["unknown"], "what was trimmed is no source"
