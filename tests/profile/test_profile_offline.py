"""Updating a profile without a model."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from conversation_strategies import said
from hand_clock import HandClock
from ricordo.curation import InMemoryProfileStore, NewFact, ProfileConfig, ProfileUpdater, UpdateResult
from ricordo.messages import Message
from ricordo.workspace import HISTORY_SUMMARIES, USER_SUMMARIES, Fact, FactSource, Profile
from ricordo.workspace.profile import CATEGORIES, category_for_kind, kind_for_category, parse_profile_time

pytestmark = pytest.mark.anyio
PLACES = ("Rome", "Oslo", "Lima", "Cairo", "Quito", "Turin", "Perth", "Osaka", "Leeds", "Minsk")


def turn(text: str, at: int = 0) -> list[Message]:
    return [
        replace(said(text, role="user"), id=f"m{at}"),
        replace(said("I see.", role="assistant"), id=f"a{at}"),
    ]


def found(content: str, *, at: int = 0, category: str = "context", quote: str = "", confidence: float = 0.9) -> NewFact:
    source = FactSource(messages=(f"m{at}",), quote=quote or content)
    return NewFact(content=content, category=category, confidence=confidence, source=source)


class Person:
    """Somebody who talks, and whose profile is written without a model."""

    def __init__(self, config: ProfileConfig | None = None) -> None:
        self.clock = HandClock()
        self.store = InMemoryProfileStore(self.clock)
        self.updater = ProfileUpdater(self.store, config=config, clock=self.clock)
        self.turns = 0

    async def says(self, text: str, *categories: str, content: str = "") -> UpdateResult:
        at = self.turns = self.turns + 1
        facts = [found(content or text, at=at, category=category, quote=text) for category in categories]
        done = await self.updater.update(turn(text, at), facts=facts, thread="s-1")
        assert done is not None
        return done

    async def profile(self) -> Profile:
        return await self.store.load()


def texts(profile: Profile, names: Sequence[str] = (*USER_SUMMARIES, *HISTORY_SUMMARIES)) -> list[str]:
    return [profile.summaries[name].summary for name in names]


@pytest.mark.req("DF-B10")
async def test_what_a_person_builds_for_uploads_is_a_fact_like_any_other() -> None:
    ana = Person()
    text = "User builds a file upload microservice"
    assert (await ana.says("I build a file upload microservice", "context", content=text)).rejections == ()
    assert [fact.content for fact in (await ana.profile()).facts] == [text]


@pytest.mark.req("DF-B22", "DF-FACT", "DF-USER")
async def test_what_rules_find_becomes_facts_and_summaries() -> None:
    ana = Person()
    await ana.says(
        "I work at the shipping company Maersk", "context", content="User works at the shipping company Maersk"
    )
    await ana.says("I prefer trains to planes", "preference", content="User prefers trains to planes")
    await ana.says("I want to learn Dutch", "goal", content="User wants to learn Dutch")
    profile = await ana.profile()
    assert [fact.category for fact in profile.facts] == ["context", "preference", "goal"]
    work, personal, mind, recent, earlier, background = texts(profile)
    assert work == "User works at the shipping company Maersk."
    assert personal == "User prefers trains to planes."
    assert mind.startswith("User wants to learn Dutch.")
    assert "Dutch" in mind.rpartition("(")[2]
    assert recent == "User works at the shipping company Maersk."
    assert (earlier, background) == ("", "")
    assert profile.facts[0].source == FactSource(
        thread="s-1", messages=("m1",), quote="I work at the shipping company Maersk"
    )


@pytest.mark.req("DF-HISTORY")
async def test_history_follows_the_age_of_facts() -> None:
    ana = Person()
    await ana.says("I keep bees", "context", content="User keeps bees")
    ana.clock.turn(days=120)
    await ana.says("I own a boat", "context", content="User owns a boat")
    ana.clock.turn(days=400)
    await ana.says("I play chess", "context", content="User plays chess")
    recent, earlier, background = texts(await ana.profile(), HISTORY_SUMMARIES)
    assert recent == "User plays chess."
    assert earlier == "User keeps bees."
    assert background == "User owns a boat. User keeps bees."


@pytest.mark.req("DF-C40")
async def test_a_correction_takes_the_place_of_what_it_contradicts() -> None:
    ana = Person()
    await ana.says("I live in Berlin", "context", content="User lives in Berlin")
    await ana.says("I keep bees", "context", content="User keeps bees")
    done = await ana.says("No, I live in Hamburg", "correction", content="User lives in Hamburg")
    profile = await ana.profile()
    assert [fact.content for fact in profile.facts] == ["User keeps bees", "User lives in Hamburg"]
    assert len(done.removed) == 1
    corrected = profile.facts[-1]
    assert (corrected.category, corrected.source_error) == ("correction", "User lives in Berlin")
    assert "Berlin" not in " ".join(texts(profile, USER_SUMMARIES))
    await ana.says("No, I don't keep bees", "correction", content="User does not keep bees")
    assert [fact.content for fact in (await ana.profile()).facts] == [
        "User lives in Hamburg",
        "User does not keep bees",
    ]


@pytest.mark.req("DF-STRUCT", "DF-USER")
async def test_a_correction_answers_the_newest_statement_and_a_summary_says_a_thing_once() -> None:
    ana = Person()
    base = await ana.profile()
    twins = tuple(
        Fact(id=f"fact_0000000{at}", content=f"User lives in {place}") for at, place in enumerate(("Rome", "Oslo"))
    )
    twice = tuple(
        Fact(id=f"fact_0000001{at}", content="User keeps bees", created_at=f"2026-11-0{at + 1}") for at in range(2)
    )
    await ana.store.save(replace(base, facts=(*twins, *twice)), base=base, by="import")
    done = await ana.says("No, I live in Lima", "correction", content="User lives in Lima")
    assert done.removed == (twins[1].id,)
    assert (await ana.profile()).summaries["personalContext"].summary.count("User keeps bees.") == 1


@pytest.mark.req("DF-C31")
async def test_without_a_correction_two_statements_stand_side_by_side() -> None:
    ana = Person()
    await ana.says("I like Rome", "preference", content="User likes Rome")
    await ana.says("I like Oslo", "preference", content="User likes Oslo")
    assert len((await ana.profile()).facts) == 2


@pytest.mark.req("DF-C40")
async def test_a_change_takes_the_place_of_what_it_changes_on_a_later_day() -> None:
    ana = Person()
    await ana.says("Each singer pays twelve euros a month.", "context")
    await ana.says("Each actor pays twenty euros a month.", "context")
    ana.clock.turn(hours=24 * 30)
    await ana.says("Each singer pays fifteen euros a month now.", "context")
    assert [fact.content for fact in (await ana.profile()).facts] == [
        "Each actor pays twenty euros a month.",
        "Each singer pays fifteen euros a month now.",
    ]


@pytest.mark.req("DF-B7")
async def test_a_correction_leaves_what_a_person_wrote() -> None:
    ana = Person()
    base = await ana.profile()
    manual = Fact(id="fact_00000001", content="User lives in Berlin", source=FactSource(thread="manual"))
    await ana.store.save(replace(base, facts=(manual,)), base=base, by="ana")
    await ana.says("No, I live in Hamburg", "correction", content="User lives in Hamburg")
    assert len((await ana.profile()).facts) == 2


@pytest.mark.req("DF-C39")
async def test_what_was_not_said_is_not_learned() -> None:
    ana = Person()
    done = await ana.updater.update(turn("Hello there", 1), facts=[found("User owns a yacht", at=1)])
    assert done is not None
    assert [each.reason for each in done.rejections] == ["unsupported"]
    assert (await ana.profile()).facts == ()


@pytest.mark.req("DF-C33", "DF-USER")
async def test_an_unsure_finding_stands_in_no_summary() -> None:
    ana = Person()
    unsure = found("User owns a yacht", at=1, quote="I own a yacht", confidence=0.4)
    await ana.updater.update(turn("I own a yacht", 1), facts=[unsure])
    assert (await ana.profile()).facts == ()
    assert not any("yacht" in text for text in texts(await ana.profile()))


async def _grown(turns: int) -> tuple[Profile, str]:
    """A person who tells something else in each turn, over a year."""
    ana = Person(ProfileConfig(max_facts=20))
    whole = ""
    for at in range(turns):
        text = f"I visited number {at} in {PLACES[at % 10]} and it was a long and lovely day with many things to see"
        await ana.says(text, ("context", "preference", "goal", "behavior")[at % 4])
        ana.clock.turn(seconds=timedelta(days=400).total_seconds() / turns)
        whole += text
    return await ana.profile(), whole


@pytest.mark.req("DF-STRUCT")
async def test_a_profile_keeps_its_size_while_the_turns_grow_tenfold() -> None:
    config = ProfileConfig()
    (few, short), (many, long) = await _grown(12), await _grown(120)
    for profile, whole in ((few, short), (many, long)):
        for name in (*USER_SUMMARIES, *HISTORY_SUMMARIES):
            assert len(profile.summaries[name].summary) <= config.summary_characters[name]
        assert len(profile.facts) <= 20
        assert sum(map(len, texts(profile))) < len(whole) // 2 or whole is short
        assert parse_profile_time(profile.summaries["topOfMind"].updated_at) is not None
    assert len(few.facts) == 12
    assert len(many.facts) == 20
    sizes = [sum(map(len, texts(profile))) for profile in (few, many)]
    assert sizes[1] <= 2 * sizes[0]
    assert len(long) > 9 * len(short)
    newest = "I visited number 119"
    assert newest in many.summaries["topOfMind"].summary
    assert not any("number 3 " in text for text in texts(many, USER_SUMMARIES)), "what is old is no longer the present"


@pytest.mark.req("DF-C33")
async def test_the_same_words_and_times_give_the_same_profile() -> None:
    assert (await _grown(8))[0] == (await _grown(8))[0]


@pytest.mark.req("DF-B4", "DF-FACTS")
def test_kinds_and_categories_are_told_in_both_directions() -> None:
    assert [category_for_kind(kind) for kind in ("fact", "preference", "convention", "goal", "lesson", "diet")] == [
        "context", "preference", "behavior", "goal", "knowledge", "diet",
    ]  # fmt: skip
    assert {kind_for_category(category) for category in CATEGORIES} <= {"fact", "preference", "convention", "goal"}
    assert kind_for_category("diet") == "fact"
