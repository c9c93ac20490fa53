"""The review of old facts."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import nan

import pytest

from ricordo.curation import ProfileConfig, ProfileUpdate, UpdateLabels, UpdateResult
from ricordo.curation.profile.apply import apply_update
from ricordo.curation.profile.facts import lifetime_days, select_for_review
from ricordo.curation.profile.updates import FactConfirmation, FactExtension, FactRemoval
from ricordo.workspace import Fact, FactSource, Profile, format_profile_time

pytestmark = pytest.mark.req("DF-C43")

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
DEFAULT = ProfileConfig()
LABELS = UpdateLabels(scope="user")


def aged(number: int, *, days: float = 100, confidence: float = 0.8, **further: object) -> Fact:
    moment = format_profile_time(NOW - timedelta(days=days))
    one = Fact(id=f"fact_{number:08x}", content=f"Fact {number}", confidence=confidence, created_at=moment)
    return replace(one, **further)  # type: ignore[arg-type]


def asked_about(*facts: Fact, config: ProfileConfig = DEFAULT, now: datetime = NOW) -> set[str]:
    return {fact.id for fact in select_for_review(Profile(facts=facts), now=now, config=config)}


def update(
    facts: tuple[Fact, ...],
    removals: tuple[str, ...] = (),
    extensions: tuple[FactExtension, ...] = (),
    *,
    shown: set[str] | None = None,
    config: ProfileConfig = DEFAULT,
) -> UpdateResult:
    profile = Profile(facts=facts)
    asked = ProfileUpdate(
        removals=tuple(FactRemoval(id=each, reason="over", stale=True) for each in removals), extensions=extensions
    )
    seen = asked_about(*facts, config=config) if shown is None else shown
    return apply_update(profile, asked, now=NOW, config=config, reviewed_ids=seen)


@pytest.mark.req("DF-C43", "DF-C44", "DF-C45")
def test_unprotected_facts_beyond_their_lifetime_are_reviewed() -> None:
    old = tuple(aged(at) for at in range(3))
    assert asked_about(*old) == {fact.id for fact in old}
    assert asked_about(*old[:2]) == set(), "two are too few"
    assert asked_about(*old, now=NOW - timedelta(days=11)) == set()
    others = (
        aged(9, days=90),
        aged(10, days=89),
        aged(11, category="correction"),
        aged(12, pinned=True),
        aged(13, source=FactSource(thread="manual")),
        aged(14, valid_days=101),
        aged(15, confirmed_at=format_profile_time(NOW - timedelta(days=5))),
        aged(16, reviewed_at=format_profile_time(NOW - timedelta(days=5))),
        aged(17, created_at="last year"),
        aged(18, created_at=""),
        aged(19, created_at="9999-12-31T23:59:59+00:00"),
        aged(20, confirmed_at="never", created_at="0001-01-01T00:00:00+14:00"),
    )
    assert asked_about(*old, *others) == {fact.id for fact in old}
    due = (
        aged(30, days=3, valid_days=2),
        aged(31, created_at=(NOW - timedelta(days=91)).replace(tzinfo=None).isoformat()),
        aged(32, confirmed_at="never"),
        aged(33, reviewed_at="2001-01-01"),
        aged(34, days=500, confirmed_at=format_profile_time(NOW - timedelta(days=91))),
    )
    assert asked_about(*due) == {fact.id for fact in due}
    assert asked_about(*due, config=ProfileConfig(staleness_review_enabled=False)) == set()
    for wrong in (0, -4, True, nan, 1.5):
        assert lifetime_days(aged(1, valid_days=wrong), DEFAULT) == 90
    assert lifetime_days(aged(1, valid_days=10**30), DEFAULT) == 36_500
    _at_most_ten_go_the_least_sure_first()


def _at_most_ten_go_the_least_sure_first() -> None:
    facts = tuple(aged(at, confidence=0.5 + at / 100) for at in range(14))
    done = update(tuple(reversed(facts)), tuple(fact.id for fact in reversed(facts)))
    assert set(done.removed) == {fact.id for fact in facts[:10]}
    assert {fact.id for fact in done.profile.facts} == {fact.id for fact in facts[10:]}
    assert [each.reason for each in done.rejections] == ["too many"] * 4


@pytest.mark.req("DF-B13")
def test_a_long_list_is_asked_about_in_parts() -> None:
    facts = tuple(aged(at) for at in range(40))
    assert len(asked_about(*facts)) == 30


@pytest.mark.req("DF-C43", "DF-C46", "DF-FACTS")
def test_only_what_was_shown_and_has_a_reason_goes() -> None:
    facts = (*(aged(at) for at in range(4)), aged(9, days=1))
    for wrong in ("fact_00000009", "fact_ffffffff"):
        done = update(facts, (wrong,))
        assert [each.reason for each in done.rejections] == ["not reviewed"]
        assert len(done.profile.facts) == 5
    unshown = update(facts, (facts[0].id,), shown=set())
    assert unshown.profile.facts == facts
    off = update(facts, (facts[0].id,), shown={facts[0].id}, config=ProfileConfig(staleness_review_enabled=False))
    assert off.profile.facts == facts, "the guard holds when the review is off"
    bare = ProfileUpdate(removals=(FactRemoval(id=facts[0].id, stale=True),))
    done = apply_update(Profile(facts=facts), bare, now=NOW, config=DEFAULT, reviewed_ids={facts[0].id})
    assert [each.reason for each in done.rejections] == ["reason"]


@pytest.mark.req("DF-B13")
def test_a_verdict_to_keep_is_written_down_for_all_that_were_shown() -> None:
    facts = tuple(aged(at) for at in range(4))
    done = update(facts, (facts[0].id,), (FactExtension(id=facts[1].id, reason="so"),))
    assert done.removed == (facts[0].id,)
    assert [fact.reviewed_at for fact in done.profile.facts] == [format_profile_time(NOW)] * 3
    assert asked_about(*done.profile.facts, now=NOW + timedelta(days=89)) == set()
    assert len(asked_about(*done.profile.facts, now=NOW + timedelta(days=91))) == 3


@pytest.mark.req("DF-C47", "DF-B20")
def test_an_extension_counts_from_the_last_confirmation_and_has_an_end() -> None:
    confirmed = aged(0, days=900, confirmed_at=format_profile_time(NOW - timedelta(days=100)))
    facts = (confirmed, aged(1), aged(2), aged(3))
    done = update(
        facts,
        (facts[3].id,),
        (
            FactExtension(id=facts[0].id, days=30),
            FactExtension(id=facts[1].id, days=10**9),
            FactExtension(id=facts[2].id, days=0),
            FactExtension(id=facts[3].id, days=30),
            FactExtension(id="fact_ffffffff", days=30),
        ),
    )
    assert [fact.valid_days for fact in done.profile.facts] == [130, 3_650, None]
    assert sorted(each.reason for each in done.rejections) == ["days", "not reviewed", "unwanted"]
    assert done.removed == (facts[3].id,), "what somebody wants removed is not extended"


@pytest.mark.req("DF-C43", "DF-C48", "DF-B13")
def test_a_confirmation_starts_the_clock_anew() -> None:
    facts = tuple(aged(at) for at in range(3))
    confirmations = tuple(FactConfirmation(id=fact.id, reason="said so", labels=LABELS) for fact in facts)
    done = apply_update(
        Profile(facts=facts),
        ProfileUpdate(confirmations=confirmations),
        now=NOW,
        config=DEFAULT,
        confirmed_by_signal=True,
    )
    assert asked_about(*done.profile.facts, now=NOW + timedelta(days=89)) == set()
