"""What an update makes of a profile."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.curation import NewFact, ProfileConfig, ProfileUpdate, UpdateLabels, UpdateResult
from ricordo.curation.profile.apply import EVICTIONS_FIELD, apply_update, shorten
from ricordo.curation.profile.facts import fact_sources
from ricordo.curation.profile.updates import FactConfirmation, FactRemoval, SummaryEdit, count_rejections
from ricordo.workspace import (
    HISTORY_SUMMARIES,
    USER_SUMMARIES,
    Fact,
    FactSource,
    Profile,
    ProfileSummary,
    format_profile_time,
)
from ricordo.workspace.profile import parse_profile_time

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
GOOD = UpdateLabels(scope="user", durability="durable", authority="descriptive")
DEFAULT = ProfileConfig()
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def new(content: str, *, confidence: float = 0.9, category: str = "context", thread: str = "t1") -> NewFact:
    source = FactSource(thread=thread, messages=(f"{thread}-m",))
    return NewFact(content=content, confidence=confidence, category=category, labels=GOOD, source=source)


def known(number: int, *, confidence: float = 0.9, days: float = 0, **further: object) -> Fact:
    """A fact that is like no other with another number."""
    word = "".join(LETTERS[(number * 7 + at * (number + 3)) % 26] for at in range(9))
    moment = format_profile_time(NOW - timedelta(days=days))
    fact = Fact(id=f"fact_{number:08x}", content=f"Owns a {word}{number}", confidence=confidence, created_at=moment)
    return replace(fact, **further)  # type: ignore[arg-type]


def update(
    profile: Profile,
    *facts: NewFact,
    now: datetime = NOW,
    config: ProfileConfig = DEFAULT,
    removals: tuple[FactRemoval, ...] = (),
    summaries: tuple[SummaryEdit, ...] = (),
    confirmations: tuple[FactConfirmation, ...] = (),
    signal: bool = False,
    forgotten: str = "",
) -> UpdateResult:
    asked = ProfileUpdate(facts=facts, removals=removals, summaries=summaries, confirmations=confirmations)
    return apply_update(
        profile,
        asked,
        now=now,
        config=config,
        confirmed_by_signal=signal,
        is_forgotten=lambda content: content == forgotten,
    )


def reasons(done: UpdateResult) -> list[str]:
    return [each.reason for each in done.rejections]


def removal(fact: str, replacement: int | None = None) -> FactRemoval:
    return FactRemoval(id=fact, reason="the user said so", labels=GOOD, replacement=replacement)


@pytest.mark.req("DF-FACT")
def test_a_new_fact_is_normalised_and_appended() -> None:
    done = update(Profile(facts=(known(1),)), NewFact(content="  Plays \n chess ", confidence=0.8, labels=GOOD))
    fact = done.profile.facts[-1]
    assert len(done.profile.facts) == 2
    assert fact.id.startswith("fact_")
    assert len(fact.id) == 13
    assert int(fact.id.removeprefix("fact_"), 16) >= 0
    assert (fact.content, fact.category, fact.confidence) == ("Plays chess", "context", 0.8)
    assert (fact.created_at, fact.source.thread) == (format_profile_time(NOW), "unknown")
    assert done.added == (fact.id,)
    assert NewFact(content="x").category == "context"
    for category, held in ((" ", "context"), (" Diet ", "diet")):
        assert update(Profile(), new("Plays chess", category=category)).profile.facts[0].category == held
    assert Fact(id="x").content == ""
    for thread, kept in (("s-7", "s-7"), (" ", "unknown")):
        assert update(Profile(), new("Plays chess", thread=thread)).profile.facts[0].source.thread == kept


@pytest.mark.req("DF-FACTS", "DF-B4")
def test_five_years_remove_no_fact_and_an_own_category_is_kept() -> None:
    names = ("preference", "knowledge", "context", "behavior", "goal", "food and drink on long journeys")
    facts = tuple(new(known(at).content, category=name) for at, name in enumerate(names))
    profile = update(Profile(), *facts).profile
    assert [fact.category for fact in profile.facts] == list(names)
    later = NOW + timedelta(days=5 * 365)
    assert [fact.content for fact in update(profile, now=later).profile.facts] == [fact.content for fact in facts]
    grown = update(profile, new("Plays chess"), now=later).profile
    assert grown.facts[:6] == profile.facts


@pytest.mark.req("DF-USER")
def test_the_user_level_is_written_anew_each_time() -> None:
    profile = Profile()
    for minute in range(3):
        for name in USER_SUMMARIES:
            moment = NOW + timedelta(minutes=minute)
            edit = SummaryEdit(name=name, summary=f"Turn {minute} of {name}.", labels=GOOD)
            profile = update(profile, summaries=(edit,), now=moment).profile
            assert profile.summaries[name] == ProfileSummary(
                summary=f"Turn {minute} of {name}.", updated_at=format_profile_time(moment)
            )
    assert all(not profile.summaries[name].summary for name in HISTORY_SUMMARIES)


@pytest.mark.req("DF-HISTORY")
@pytest.mark.parametrize(("name", "days"), [("recentMonths", 30), ("earlierContext", 90), ("longTermBackground", 90)])
def test_history_waits_for_its_interval(name: str, days: int) -> None:
    def written_after(age: timedelta, config: ProfileConfig = DEFAULT) -> bool:
        old = ProfileSummary(summary="Before.", updated_at=format_profile_time(NOW))
        edit = SummaryEdit(name=name, summary="After.", labels=GOOD)
        done = update(Profile(summaries={name: old}), summaries=(edit,), now=NOW + age, config=config)
        assert ("interval" in reasons(done)) == (done.profile.summaries[name] == old)
        return done.profile.summaries[name].summary == "After."

    assert not written_after(timedelta(minutes=1))
    assert not written_after(timedelta(days=days, minutes=-1))
    assert written_after(timedelta(days=days))
    assert written_after(timedelta(days=-2)), "the clock had been wrong"
    assert written_after(timedelta(), ProfileConfig(summary_interval_days={name: 0}))
    assert written_after(timedelta(), ProfileConfig(summary_interval_days={}))


@pytest.mark.req("DF-HISTORY")
def test_a_first_history_is_written_at_once_and_a_blank_one_erases_nothing() -> None:
    edit = SummaryEdit(name="recentMonths", summary="Moved.", labels=GOOD)
    profile = update(Profile(), summaries=(edit,)).profile
    assert profile.summaries["recentMonths"].summary == "Moved."
    emptied = {"recentMonths": ProfileSummary(summary="", updated_at=format_profile_time(NOW))}
    assert update(Profile(summaries=emptied), summaries=(edit,)).profile.summaries["recentMonths"].summary == "Moved."
    blank = update(profile, summaries=(SummaryEdit(name="topOfMind", summary=" ", labels=GOOD),))
    assert reasons(blank) == ["blank"]
    assert blank.profile == profile


@pytest.mark.req("DF-STRUCT", "DF-USER")
def test_a_long_summary_is_cut_after_a_sentence_and_a_long_fact_is_not_learned() -> None:
    text = "One two three. " * 10
    assert shorten(text, 60) == "One two three. One two three. One two three. One two three."
    assert shorten("word " * 30, 22) == "word word word word…"
    assert len(shorten("x" * 90, 20)) == 20
    sizes = dict(zip((*USER_SUMMARIES, *HISTORY_SUMMARIES), (600, 600, 900, 2_000, 1_500, 1_000), strict=True))
    edits = [SummaryEdit(name=name, summary=text * 30, labels=GOOD) for name in sizes]
    long = apply_update(Profile(), ProfileUpdate(summaries=tuple(edits)), now=NOW, config=ProfileConfig()).profile
    assert all(size - 20 <= len(long.summaries[name].summary) <= size for name, size in sizes.items())
    edit = SummaryEdit(name="topOfMind", summary=text, labels=GOOD)
    config = ProfileConfig(summary_characters={"topOfMind": 20})
    assert (
        update(Profile(), summaries=(edit,), config=config).profile.summaries["topOfMind"].summary == "One two three."
    )
    facts = [new("Plays " + "x" * 20), new("Sails " + "y" * 21)]
    done = update(Profile(), *facts, config=ProfileConfig(max_fact_characters=26))
    assert ([fact.content for fact in done.profile.facts], reasons(done)) == ([facts[0].content], ["length"])


@pytest.mark.req("DF-C31", "DF-STRUCT")
@pytest.mark.parametrize("again", ["plays  CHESS.", "Plays chess", "plays chess!", " Plays\tchess "])
def test_a_fact_that_is_said_again_is_merged_and_keeps_where_it_was_said(again: str) -> None:
    first = update(Profile(), new("Plays chess", confidence=0.8))
    second = update(first.profile, new(again, thread="t2", confidence=0.95), now=NOW + timedelta(days=1))
    (fact,) = second.profile.facts
    assert (fact.id, fact.content, fact.confirmations) == (first.added[0], "Plays chess", 2)
    assert fact.confidence == 0.95
    assert [each.thread for each in fact_sources(fact)] == ["t1", "t2"]
    assert second.confirmed == (fact.id,)
    assert parse_profile_time(fact.confirmed_at) == NOW + timedelta(days=1)
    profile = second.profile
    for number in range(3, 40):
        profile = update(profile, new(again, thread=f"t{number}")).profile
    assert profile.facts[0].confirmations == 39
    kept = [each.thread for each in fact_sources(profile.facts[0])]
    assert kept == ["t1", *(f"t{number}" for number in range(20, 40))], "the first source and the newest 20 stay"
    both = update(Profile(), new("Plays chess"), new(again, thread="t2"), new("  \n "))
    assert len(both.profile.facts) == 1
    assert reasons(both) == ["blank"]


@pytest.mark.req("DF-C31")
def test_a_paraphrase_is_merged_and_another_number_is_not() -> None:
    profile = update(Profile(), new("The user lives in a house in Berlin")).profile
    assert len(update(profile, new("User resides in a home in Berlin", thread="t2")).profile.facts) == 1
    children = update(Profile(), new("User has two children"), new("User has three children", thread="t2"))
    assert len(children.profile.facts) == 2


@pytest.mark.req("DF-C31")
def test_the_same_messages_read_again_confirm_nothing() -> None:
    profile = update(Profile(), new("Plays chess")).profile
    again = update(profile, new("Plays chess"), now=NOW + timedelta(days=9))
    assert again.profile == profile
    assert again.confirmed == ()


@pytest.mark.req("DF-C33", "DF-STRUCT")
def test_what_is_not_sure_enough_is_not_stored_and_the_cap_holds_in_a_fixed_order() -> None:
    done = update(Profile(), new("Plays chess", confidence=0.69), new("Owns a boat", confidence=0.7))
    assert [fact.content for fact in done.profile.facts] == ["Owns a boat"]
    assert reasons(done) == ["threshold"]
    crowd = tuple(known(at, confidence=0.7 + at / 1_000) for at in range(120))
    full = update(Profile(facts=crowd))
    assert full.profile.facts == crowd[20:]
    assert full.archived == tuple(fact.id for fact in crowd[:20])
    turned = update(Profile(facts=tuple(reversed(crowd))))
    assert turned.profile.facts == tuple(reversed(crowd[20:]))
    audit = full.profile.extra[EVICTIONS_FIELD]
    assert isinstance(audit, list)
    assert [row["id"] for row in audit if isinstance(row, dict)] == list(full.archived)
    assert all(isinstance(row, dict) and set(row) == {"id", "category", "score", "at"} for row in audit)
    assert audit[0] == {
        "id": crowd[0].id, "category": "context", "score": round(0.65 * 0.7 + 0.25, 4), "at": format_profile_time(NOW),
    }  # fmt: skip
    scores = [row["score"] for row in audit if isinstance(row, dict) and isinstance(row["score"], float)]
    assert (len(scores), scores) == (20, sorted(scores))
    assert not any(fact.content in str(audit) for fact in crowd)
    bounded = update(Profile(facts=crowd), config=ProfileConfig(eviction_audit_max_entries=5))
    assert len(str(bounded.profile.extra[EVICTIONS_FIELD]).split("'id'")) == 6
    later = update(replace(full.profile, facts=(*full.profile.facts, *crowd[:3])), now=NOW + timedelta(days=1))
    held = later.profile.extra[EVICTIONS_FIELD]
    assert isinstance(held, list)
    assert (held[:20], len(held)) == (audit, 23), "what earlier updates evicted stays on record"
    assert (
        EVICTIONS_FIELD
        not in update(Profile(facts=crowd), config=ProfileConfig(eviction_audit_max_entries=0)).profile.extra
    )


@pytest.mark.req("DF-B7", "DF-C33")
def test_a_new_fact_enters_a_full_store_of_old_ones_unless_confidence_alone_counts() -> None:
    crowd = tuple(known(at, confidence=0.9, days=400) for at in range(100))
    done = update(Profile(facts=crowd), new("Plays chess", confidence=0.75))
    assert done.profile.facts[-1].content == "Plays chess"
    assert done.archived == (crowd[99].id,)
    plain = update(
        Profile(facts=crowd),
        new("Plays chess", confidence=0.75),
        config=ProfileConfig(fact_eviction_policy="confidence"),
    )
    assert plain.profile.facts == crowd
    assert plain.added == ()
    assert plain.left[0].content == "Plays chess", "what finds no room goes to the archive"
    pair = (known(1, confidence=0.8, days=400), known(2, confidence=0.8, days=1))
    for facts in (pair, pair[::-1]):
        one = update(Profile(facts=facts), config=ProfileConfig(fact_eviction_policy="confidence", max_facts=1))
        assert one.profile.facts == pair[1:], "of equals the one that was confirmed last stays"


@pytest.mark.req("DF-B7", "DF-C34")
def test_at_capacity_corrections_manual_and_pinned_facts_stand() -> None:
    crowd = [known(at, confidence=1.0) for at in range(100)]
    crowd[3] = replace(crowd[3], source=FactSource(thread="manual"), confidence=0.1)
    crowd[4] = replace(crowd[4], pinned=True, confidence=0.1)
    correction = replace(new("Uses tabs", confidence=0.7, category="correction"), source_error=" spaces ")
    done = update(Profile(facts=tuple(crowd)), correction, removals=(removal(crowd[9].id, 0),))
    ids = {fact.id for fact in done.profile.facts}
    assert (len(ids), done.archived) == (100, ()), "the removal made room before anything was trimmed"
    assert {crowd[3].id, crowd[4].id, *done.added} <= ids
    assert crowd[9].id not in ids
    assert done.profile.facts[-1].source_error == "spaces"
    assert update(Profile(), replace(correction, source_error="  ")).profile.facts[0].source_error is None
    over = update(Profile(facts=(*crowd, known(200, confidence=0.1, pinned=True))))
    assert over.profile.find_fact("fact_000000c8") is not None
    (lowest,) = over.left
    assert lowest.content not in {fact.content for fact in over.profile.facts}
    assert over.archived == (lowest.id,)
    assert lowest in crowd, "it leaves with all that it holds, for the archive"


@pytest.mark.req("DF-B7", "DF-C40", "DF-C41")
def test_what_takes_a_facts_place_stays_though_it_ranks_lowest() -> None:
    crowd = tuple(known(at, confidence=1.0, days=2) for at in range(100))
    weak, strong = new("Uses tabs", confidence=0.7), new("Keeps bees", confidence=1.0)
    old = replace(crowd[9], created_at=format_profile_time(NOW - timedelta(days=900)))
    crowd = tuple(old if fact.id == old.id else fact for fact in crowd)
    done = update(Profile(facts=crowd), weak, strong, removals=(removal(old.id, 0),))
    assert {"Uses tabs", "Keeps bees"} <= {fact.content for fact in done.profile.facts}
    assert len(done.archived) == 1


@pytest.mark.req("DF-B7", "DF-C33")
def test_what_was_confirmed_often_ranks_higher() -> None:
    crowd = tuple(known(at, confidence=0.8, confirmations=8 if at == 50 else 1) for at in range(101))
    done = update(Profile(facts=crowd), config=ProfileConfig(max_facts=1))
    assert [fact.id for fact in done.profile.facts] == [crowd[50].id]


@pytest.mark.req("DF-B7", "DF-C31")
def test_saying_it_again_less_surely_takes_nothing_away_and_may_say_what_was_wrong() -> None:
    profile = update(Profile(), new("Plays chess", confidence=0.9)).profile
    again = replace(new("Plays chess", confidence=0.7, thread="t2"), source_error="plays go")
    said_again = update(profile, again)
    (fact,) = said_again.profile.facts
    assert (fact.confidence, fact.source_error) == (0.9, "plays go")
    (fact,) = update(said_again.profile, new("Plays chess", confidence=0.7, thread="t3")).profile.facts
    assert fact.source_error == "plays go"


@pytest.mark.req("DF-B7")
def test_a_confirmed_fact_that_goes_counts_as_gone() -> None:
    profile = Profile(facts=(known(1),))
    done = update(profile, new(known(1).content, thread="t2"), new("Plays chess"), removals=(removal(known(1).id, 1),))
    assert (done.removed, done.confirmed) == ((known(1).id,), ())


@pytest.mark.req("DF-B7")
def test_corrections_have_places_of_their_own_and_give_them_back() -> None:
    assert len(update(Profile(facts=tuple(known(at, category="correction") for at in range(120)))).profile.facts) == 100
    weak = tuple(known(at, confidence=0.5, category="correction") for at in range(12))
    strong = tuple(known(at, confidence=0.9) for at in range(100, 200))
    kept = update(Profile(facts=(*weak, *strong))).profile.facts
    assert len(kept) == 100
    assert sum(fact.category == "correction" for fact in kept) == 10
    without = update(Profile(facts=(*weak[:2], *strong))).profile.facts
    assert sum(fact.category == "correction" for fact in without) == 2


@pytest.mark.req("DF-C39")
def test_only_what_is_about_the_user_lasts_and_describes_passes() -> None:
    words = {
        "scope": ("user", "thread", ""),
        "durability": ("durable", "temporary", ""),
        "authority": ("descriptive", "order", ""),
    }
    every = [
        UpdateLabels(scope=scope, durability=durability, authority=authority)
        for scope in words["scope"]
        for durability in words["durability"]
        for authority in words["authority"]
    ]
    facts = tuple(replace(new(known(at).content), labels=labels) for at, labels in enumerate(every))
    done = update(Profile(), *facts)
    assert [fact.content for fact in done.profile.facts] == [facts[0].content]
    assert count_rejections(done.rejections) == {
        ("fact", "scope"): 18,
        ("fact", "durability"): 6,
        ("fact", "authority"): 2,
    }
    assert not any(fact.content in str(done.rejections) for fact in facts)
    edits = tuple(SummaryEdit(name="topOfMind", summary=f"{at}.", labels=labels) for at, labels in enumerate(every))
    passed = [edit for edit in edits if not reasons(update(Profile(), summaries=(edit,)))]
    assert {(edit.labels.scope, edit.labels.authority) for edit in passed} == {("user", "descriptive")}
    assert len(passed) == 3, "a summary of the moment need not last"


@pytest.mark.req("DF-C40", "DF-C41", "DF-C42", "DF-C39")
def test_a_removal_needs_its_scope_its_reason_and_a_replacement_that_stands() -> None:
    old = known(1)
    profile = Profile(facts=(old, known(2), known(3, pinned=True)))

    def after(*facts: NewFact, one: FactRemoval) -> UpdateResult:
        return update(profile, *facts, removals=(one,))

    bare = FactRemoval(id=old.id, reason="", labels=UpdateLabels())
    for refused, reason in (
        (bare, "scope"),
        (replace(removal(old.id), labels=UpdateLabels(scope="thread")), "scope"),
        (replace(removal(old.id), reason="  "), "reason"),
        (removal("fact_ffffffff"), "unknown"),
        (removal("fact_00000003"), "kept"),
        (removal(old.id, 0), "replacement"),
        (removal(old.id, 9), "replacement"),
    ):
        done = after(one=refused)
        assert done.profile == profile
        assert count_rejections(done.rejections) == {("removal", reason): 1}
    unsure, thread = (
        new("Plays chess", confidence=0.2),
        replace(new("Plays chess"), labels=UpdateLabels(scope="thread")),
    )
    for flawed in (unsure, thread, new(old.content, thread="t2")):
        assert after(flawed, one=removal(old.id, 0)).profile.find_fact(old.id) is not None
    done = after(new("Plays chess"), one=removal(old.id, 0))
    assert done.removed == (old.id,)
    assert [fact.content for fact in done.profile.facts][-1] == "Plays chess"
    merged = after(new(known(2).content, thread="t2"), one=removal(old.id, 0))
    assert merged.removed == (old.id,), "the replacement stands under another id"
    assert after(one=removal(old.id)).removed == (old.id,)


@pytest.mark.req("DF-C40")
def test_a_replacement_can_not_be_removed_by_the_same_update() -> None:
    profile = Profile(facts=(known(1), known(2)))
    again = new(known(2).content, thread="t2")
    done = update(profile, again, removals=(removal(known(1).id, 0), removal(known(2).id)))
    assert [fact.id for fact in done.profile.facts] == [known(2).id]
    assert reasons(done) == ["new"]


@pytest.mark.req("DF-B7")
def test_a_correction_says_what_was_wrong_when_nobody_did() -> None:
    done = update(
        Profile(facts=(known(1),)), new("Plays chess", category="correction"), removals=(removal(known(1).id, 0),)
    )
    assert done.profile.facts[0].source_error == known(1).content


@pytest.mark.req("DF-C25")
@pytest.mark.parametrize("confidence", [nan, inf, -inf, True, None, "high", 10**400])
def test_a_confidence_that_is_none_drops_its_fact_alone(confidence: float) -> None:
    done = update(Profile(), new("Plays chess", confidence=confidence), new("Owns a boat"))
    assert [fact.content for fact in done.profile.facts] == ["Owns a boat"]
    assert len(done.rejections) == 1
    crowd = (known(0, confidence=confidence), *(known(at) for at in range(1, 101)))
    assert update(Profile(facts=crowd)).archived == (crowd[0].id,)


@pytest.mark.req("DF-C39")
def test_a_confirmation_needs_a_signal_a_scope_and_a_reason() -> None:
    profile = Profile(facts=(known(1),))
    good = FactConfirmation(id=known(1).id, reason="the user said exactly", labels=GOOD)
    done = update(profile, confirmations=(good, good), signal=True, now=NOW + timedelta(days=3))
    assert done.profile.facts[0].confirmations == 2
    assert parse_profile_time(done.profile.facts[0].confirmed_at) == NOW + timedelta(days=3)
    assert reasons(done) == ["used"]
    flawed = (
        replace(good, reason=" "),
        replace(good, labels=UpdateLabels(scope="thread")),
        replace(good, id="fact_ffffffff"),
    )
    assert reasons(update(profile, confirmations=flawed, signal=True)) == ["reason", "scope", "unknown"]
    unheard = update(profile, confirmations=(good,))
    assert unheard.profile == profile
    assert reasons(unheard) == ["signal"]


@pytest.mark.req("DF-B8")
def test_what_was_forgotten_is_not_learned_again() -> None:
    done = update(Profile(), new("Plays chess"), new("Owns a boat"), forgotten="Plays chess")
    assert [fact.content for fact in done.profile.facts] == ["Owns a boat"]
    assert reasons(done) == ["forgotten"]


@pytest.mark.req("FC-SECRET")
def test_no_secret_becomes_a_fact_or_a_summary() -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    edit = SummaryEdit(name="topOfMind", summary=f"Uses {key[:40]}.", labels=GOOD)
    done = update(Profile(), new(f"The user's token is {key[:40]}"), summaries=(edit,))
    assert reasons(done) == ["secret", "secret"]
    assert done.profile == Profile()


@pytest.mark.req("DF-C33")
def test_one_update_learns_at_most_a_hundred_facts() -> None:
    facts = tuple(new(known(at).content) for at in range(103))
    done = update(Profile(), *facts, config=ProfileConfig(max_facts=500))
    assert len(done.profile.facts) == 100
    assert reasons(done) == ["too many"] * 3


@pytest.mark.req("DF-C31")
def test_what_was_confirmed_since_is_not_confirmed_again_by_the_same_words() -> None:
    asked = ProfileUpdate(confirmations=(FactConfirmation(id=known(1).id, reason="exactly", labels=GOOD),))

    def again(profile: Profile, said: datetime | None) -> Profile:
        return apply_update(
            profile, asked, now=NOW + timedelta(hours=1), config=DEFAULT, confirmed_by_signal=True, last_message_at=said
        ).profile

    once = again(Profile(facts=(known(1),)), NOW)
    assert once.facts[0].confirmations == 2
    assert again(once, NOW) == once, "a replay counts nothing twice"
    assert again(once, NOW + timedelta(hours=2)).facts[0].confirmations == 3
    assert again(once, None).facts[0].confirmations == 3


def test_an_update_that_asks_for_nothing_changes_nothing() -> None:
    profile = Profile(facts=(known(1),), last_updated="yesterday", extra={"mine": 1})
    assert update(profile).profile == profile


@pytest.mark.req("DF-B7", "DF-C33", "DF-STRUCT")
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["Plays chess", "plays chess.", "Owns a boat", "", "Lives in Rome", "Lives in Oslo"]),
            st.floats(),
            st.sampled_from(["user", "thread"]),
            st.integers(-1, 8),
        ),
        max_size=8,
    )
)
def test_whatever_is_asked_for_the_profile_keeps_its_bounds(items: list[tuple[str, float, str, int]]) -> None:
    held = tuple(known(at, pinned=at == 0) for at in range(3))
    facts = tuple(
        NewFact(content=text, confidence=confidence, labels=replace(GOOD, scope=scope))
        for text, confidence, scope, _ in items
    )
    removals = tuple(removal(held[at % 3].id, pair) for at, (*_, pair) in enumerate(items))
    done = update(Profile(facts=held), *facts, removals=removals, config=ProfileConfig(max_facts=4))
    ids = [fact.id for fact in done.profile.facts]
    assert len(ids) == len(set(ids)) <= 4
    assert held[0] in done.profile.facts
    for fact in held:
        assert fact.id in {*ids, *done.removed, *done.archived}
    again = update(Profile(facts=held), *facts, removals=removals, config=ProfileConfig(max_facts=4))
    assert again == done
