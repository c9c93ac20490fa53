"""What every keeper of profiles does: it loads what was saved, brings changes together and refuses what collides."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from hand_clock import HandClock
from ricordo.agent.prompt_builder import ProfileView
from ricordo.clock import MonotonicIds
from ricordo.curation import (
    FileProfileStore,
    InjectionConfig,
    InMemoryProfileStore,
    NewFact,
    ProfileUpdater,
    UpdateLabels,
)
from ricordo.curation.profile.storage import ProfileStore
from ricordo.curation.profile.user_profile import UserProfile
from ricordo.errors import InvalidInput, VersionConflict
from ricordo.guard import Redactor
from ricordo.messages import Message, Text, with_ids
from ricordo.storage.local import LocalFiles
from ricordo.testing import InMemoryFiles
from ricordo.workspace import ChangeSets, Fact, FactSource, Profile, ProfileSummary, profile_path
from ricordo.workspace.profile import create_profile

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.anyio, pytest.mark.req("DF-STORE")]
KEY = bytes(32)
TEA, COFFEE = Fact(id="f1", content="Likes tea"), Fact(id="f2", content="Likes coffee")


def _of_files(files: InMemoryFiles | LocalFiles) -> ProfileStore:
    clock = HandClock()
    changes = ChangeSets(files, clock=clock, ids=MonotonicIds(clock))
    return FileProfileStore(files, changes, path=profile_path(), redactor=Redactor(KEY), key=KEY, clock=clock)


@pytest.fixture(params=["memory", "files", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ProfileStore:
    makers: dict[str, Callable[[], ProfileStore]] = {
        "memory": lambda: InMemoryProfileStore(HandClock()),
        "files": lambda: _of_files(InMemoryFiles()),
        "disk": lambda: _of_files(LocalFiles(tmp_path)),
    }
    return makers[request.param]()


async def _saved(store: ProfileStore, *facts: Fact) -> Profile:
    base = await store.load()
    return (await store.save(replace(base, facts=facts), base=base, by="test")).profile


async def _at_once(store: ProfileStore, base: Profile, facts: list[Fact]) -> None:
    """Save each fact from one base, all at once."""

    async def save(fact: Fact) -> None:
        await store.save(replace(base, facts=(fact,)), base=base, by="test")

    async with anyio.create_task_group() as group:
        for fact in facts:
            group.start_soon(save, fact)


@pytest.mark.req("DF-EMPTY")
async def test_what_was_never_saved_is_a_new_empty_profile_each_time(store: ProfileStore) -> None:
    assert await store.load() == create_profile(HandClock().now())
    assert await store.reload() == await store.load()
    assert (await store.load()).extra is not (await store.load()).extra


@pytest.mark.req("DF-C54")
async def test_what_is_saved_is_loaded_as_the_next_revision(store: ProfileStore) -> None:
    base = await store.load()
    sections = {**base.summaries, "workContext": ProfileSummary(summary="Builds ships")}
    saved = await store.save(replace(base, facts=(TEA,), summaries=sections), base=base, by="test")
    assert saved.profile == await store.load() == await store.reload()
    assert (saved.profile.revision, saved.profile.last_updated) == (1, "2026-11-21T08:00:00.000Z")
    assert saved.profile.summaries["workContext"] == ProfileSummary(
        summary="Builds ships", updated_at="2026-11-21T08:00:00.000Z"
    )
    assert [(fact.id, fact.content) for fact in saved.profile.facts] == [("f1", "Likes tea")]


@pytest.mark.req("DF-C54", "DF-STORE")
async def test_a_save_that_changes_nothing_is_no_new_revision(store: ProfileStore) -> None:
    first = await _saved(store, TEA)
    assert (await store.save(first, base=first, by="test")).profile == first


@pytest.mark.req("DF-EMPTY", "DF-HOT")
async def test_nobody_changes_what_is_kept_through_what_was_loaded(store: ProfileStore) -> None:
    await _saved(store, replace(TEA, extra={"tags": ["a"]}))
    loaded = await store.load()
    tags = loaded.facts[0].extra["tags"]
    assert isinstance(tags, list)
    tags.append("b")
    assert (await store.load()).facts[0].extra["tags"] == ["a"]


@pytest.mark.req("DF-C54")
async def test_a_save_from_an_old_base_is_brought_together_where_it_is_apart(store: ProfileStore) -> None:
    base = await _saved(store, TEA, COFFEE)
    tea, coffee = base.facts
    await store.save(replace(base, facts=(replace(tea, confidence=0.9), coffee)), base=base, by="one")
    other = replace(base, facts=(tea, replace(coffee, category="habit"), Fact(id="f3", content="Rides")))
    saved = (await store.save(other, base=base, by="two")).profile
    assert [(fact.id, fact.confidence, fact.category, fact.revision) for fact in saved.facts] == [
        ("f1", 0.9, "context", 2), ("f2", 0.5, "habit", 2), ("f3", 0.5, "context", 1),
    ]  # fmt: skip
    assert saved.revision == 3


@pytest.mark.req("DF-C54")
async def test_a_save_from_an_old_base_is_refused_where_it_collides(store: ProfileStore) -> None:
    base = await _saved(store, TEA)
    first = await store.save(replace(base, facts=(replace(base.facts[0], confidence=0.9),)), base=base, by="one")
    with pytest.raises(VersionConflict, match="f1"):
        await store.save(replace(base, facts=(replace(base.facts[0], confidence=0.1),)), base=base, by="two")
    assert await store.load() == first.profile


@pytest.mark.req("DF-C54")
async def test_ten_that_create_the_same_fact_at_once_create_one(store: ProfileStore) -> None:
    base = await store.load()
    facts = [Fact(id=f"f{number}", content="Likes  Tea" if number % 2 else "likes tea") for number in range(10)]
    await _at_once(store, base, facts)
    assert len((await store.load()).facts) == 1


@pytest.mark.req("DF-C54")
async def test_changes_of_many_at_once_are_all_kept(store: ProfileStore) -> None:
    base = await store.load()
    facts = [Fact(id=f"f{number}", content=f"Knows {number}") for number in range(10)]
    await _at_once(store, base, facts)
    loaded = await store.load()
    assert {fact.id for fact in loaded.facts} == {f"f{number}" for number in range(10)}
    assert loaded.revision == 10


@pytest.mark.req("DF-C56")
async def test_one_change_leaves_its_siblings_as_they_were(store: ProfileStore) -> None:
    base = await _saved(store, TEA, COFFEE)
    saved = (await store.save(replace(base, facts=(replace(base.facts[0], pinned=True), base.facts[1])), base=base,
                              by="test")).profile  # fmt: skip
    assert saved.facts[1] == base.facts[1]
    assert saved.summaries == base.summaries


@pytest.mark.req("DF-EMPTY", "DF-B8")
async def test_a_cleared_profile_is_empty_goes_on_counting_and_is_not_learned_again(store: ProfileStore) -> None:
    await _saved(store, TEA)
    cleared = (await store.clear(by="test")).profile
    assert cleared.is_empty
    assert cleared.revision == 2
    assert await store.load() == cleared
    is_forgotten = await store.load_forgotten_filter()
    assert (is_forgotten(TEA.content), is_forgotten("Likes milk")) == (True, False)


@pytest.mark.req("DF-B14")
async def test_a_profile_that_has_no_document_is_refused(store: ProfileStore) -> None:
    base = await _saved(store, TEA)
    with pytest.raises(InvalidInput):
        await store.save(replace(base, summaries={"mood": ProfileSummary()}), base=base, by="test")
    assert await store.load() == base


async def test_only_what_a_person_removed_counts_as_forgotten(store: ProfileStore) -> None:
    base = await _saved(store, TEA, COFFEE)
    after = await store.save(replace(base, facts=base.facts[:1]), base=base, by="flush")
    assert not (await store.load_forgotten_filter())("Likes coffee")
    await store.save(replace(after.profile, facts=()), base=after.profile, by="user", forget=True)
    forgotten = await store.load_forgotten_filter()
    assert forgotten("likes  TEA.")
    assert not forgotten("Likes coffee")
    assert not forgotten("Likes green tea")


@pytest.mark.req("DF-STORE", "DF-LAYERS")
async def test_what_learns_and_what_shows_works_on_any_store(store: ProfileStore) -> None:
    clock = HandClock()
    said = with_ids([Message(role="user", parts=(Text(text="I prefer tabs over spaces in Python."),))], session="s")
    source = FactSource(thread="s", messages=(said[0].id,), quote="I prefer tabs over spaces")
    labels = UpdateLabels(scope="user", durability="durable", authority="descriptive")
    facts = [
        NewFact(
            content="User prefers tabs over spaces", category="preference", confidence=0.9, source=source, labels=labels
        )
    ]
    updater = ProfileUpdater(store, clock=clock, forgotten_filter=store.load_forgotten_filter)
    shown, managed = ProfileView(store, InjectionConfig(), Redactor(bytes(32))), UserProfile(store, clock=clock)
    await updater.update(said, thread="s", facts=facts)
    assert "[preference | 0.90] User prefers tabs over spaces" in await shown.render(2_000)
    assert await store.reload() == await store.load()
    (fact,) = (await managed.facts(query="tabs")).facts
    await managed.remove_fact(fact.id)
    assert "tabs" not in await shown.render(2_000)
    await updater.update(said, thread="s", facts=facts)
    assert (await store.load()).facts == ()
