"""What a person does to a profile, and how a profile is taken out and in."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from hand_clock import HandClock
from profile_strategies import profiles
from ricordo.clock import MonotonicIds
from ricordo.curation import FileProfileStore, InMemoryProfileStore
from ricordo.curation.profile.importing import plan_import
from ricordo.curation.profile.request import MEMORY_UPDATE_PROMPT
from ricordo.curation.profile.storage import ProfileStore
from ricordo.curation.profile.user_profile import UserProfile
from ricordo.errors import DocumentInvalid, DuplicateFact, FactNotFound, InvalidFact, InvalidQuery, VersionConflict
from ricordo.guard import Redactor
from ricordo.storage.local import LocalFiles
from ricordo.workspace import ChangeSets, Fact, FactSource, Profile, ProfileSummary, profile_path, render_profile
from ricordo.workspace.history.tombstones import read_tombstones
from ricordo.workspace.merge import has_same_content, stamp_changes
from ricordo.workspace.profile import CATEGORIES, profile_to_document

pytestmark = pytest.mark.anyio
KEY = bytes(32)


def _of_files(folder: Path) -> ProfileStore:
    files, clock = LocalFiles(folder), HandClock()
    changes = ChangeSets(files, clock=clock, ids=MonotonicIds(clock))
    return FileProfileStore(files, changes, path=profile_path(), redactor=Redactor(KEY), key=KEY, clock=clock)


@pytest.fixture(params=["memory", "files"])
def managed(request: pytest.FixtureRequest, tmp_path: Path) -> UserProfile:
    store = InMemoryProfileStore(HandClock()) if request.param == "memory" else _of_files(tmp_path)
    return UserProfile(store, clock=HandClock())


@pytest.fixture
def quick() -> UserProfile:
    return UserProfile(InMemoryProfileStore(HandClock()), clock=HandClock())


@pytest.mark.req("DF-C31", "DF-FACT")
async def test_a_fact_that_is_added_by_hand_is_there_with_all_it_needs(managed: UserProfile) -> None:
    fact = await managed.add_fact("  Likes tea ", category=" preference ", source_error="coffee", valid_days=30)
    assert fact == replace(
        Fact(id=fact.id, content="Likes tea", category="preference", confidence=1.0, source_error="coffee"),
        valid_days=30, created_at="2026-11-21T08:00:00.000Z", source=FactSource(thread="manual"),
    )  # fmt: skip
    assert fact.is_protected
    assert await managed.fact(fact.id) == fact
    assert (await managed.show()).facts == (fact,)


@pytest.mark.req("DF-FACTS-find", "DF-B4")
async def test_facts_are_found_by_category_and_words_and_changed_by_id(managed: UserProfile) -> None:
    tea = await managed.add_fact("Likes green tea", category="preference")
    ship = await managed.add_fact("Builds ships in Genoa", category="knowledge")
    bike = await managed.add_fact("Rides a bike to the tea house", category="preference")
    assert (await managed.facts(category="knowledge")).facts == (ship,)
    assert {fact.id for fact in (await managed.facts(query="tea")).facts} == {tea.id, bike.id}
    assert (await managed.facts(query="ship", category="preference")).facts == ()
    assert (await managed.facts(query="een TE")).facts == (tea,), "no word, but written so"
    assert (await managed.facts()).facts == (tea, ship, bike)
    changed = await managed.update_fact(ship.id, content="Builds boats in Genoa")
    assert (changed.id, changed.category, changed.confidence) == (ship.id, "knowledge", 1.0)
    assert (await managed.facts(query="boats")).facts == (changed,)
    assert (await managed.facts(query="ships")).facts == ()
    assert (await managed.show()).facts == (tea, changed, bike)


@pytest.mark.req("DF-B4", "DF-FACTS", "DF-FACTS-find")
async def test_a_category_is_the_same_wherever_it_is_seen(managed: UserProfile) -> None:
    told = MEMORY_UPDATE_PROMPT.partition("`category` is ")[2].partition(".")[0]
    assert {*re.findall(r"\w+", told)} - {"or"} == {*CATEGORIES}
    fact = await managed.add_fact("Knows Rust", category="knowledge")
    assert (await managed.facts(category="knowledge")).facts == (fact,)
    assert (await managed.facts(category="other")).total == 0
    assert "[knowledge | 1.00] Knows Rust" in (await managed.render()).text
    assert json.loads(await managed.export_document())["facts"][0]["category"] == "knowledge"
    mine = await managed.update_fact(fact.id, category="my craft")
    assert (await managed.facts(category="My Craft")).facts == (mine,)
    yours = await managed.update_fact(fact.id, category="your craft")
    assert yours.category == "your craft"
    assert (await managed.facts(category="my craft")).total == 0
    assert "[your craft | 1.00]" in (await managed.render()).text
    exported = json.loads(await managed.export_document())
    assert "categoryExtension" not in exported["facts"][0]
    await managed.clear()
    await managed.import_document(json.dumps(exported))
    assert (await managed.facts(category="your craft")).total == 1


@pytest.mark.req("DF-C56", "DF-FACTS-find")
async def test_what_is_not_named_in_a_change_stays(quick: UserProfile) -> None:
    fact = await quick.add_fact("Likes tea", confidence=0.7, source_error="coffee", valid_days=9, pinned=True)
    changed = await quick.update_fact(fact.id, confidence=0.0)
    assert changed == replace(fact, confidence=0.0, revision=2, updated_at="2026-11-21T08:00:00.000Z")
    bare = await quick.update_fact(fact.id, source_error="", valid_days=0)
    assert (bare.source_error, bare.valid_days, bare.confidence, bare.pinned) == (None, None, 0.0, True)
    assert not (await quick.pin(fact.id, on=False)).pinned


@pytest.mark.req("DF-FACTS-find")
async def test_a_page_of_facts_says_how_many_there_are(quick: UserProfile) -> None:
    for number in range(5):
        await quick.add_fact(f"Knows {number}")
    page = await quick.facts(limit=2, offset=3)
    assert ([fact.content for fact in page.facts], page.total, page.offset) == (["Knows 3", "Knows 4"], 5, 3)
    assert (await quick.facts(offset=9)).facts == ()
    with pytest.raises(InvalidQuery):
        await quick.facts(limit=0)
    with pytest.raises(InvalidQuery):
        await quick.facts(offset=-1)


@pytest.mark.req("DF-C31")
@pytest.mark.parametrize(
    "bad",
    [
        {"content": ""}, {"content": "  "}, {"content": "x" * 10_001}, {"content": 5}, {"category": " "},
        {"confidence": 1.1}, {"confidence": float("nan")}, {"confidence": True}, {"confidence": "high"},
        {"valid_days": -1}, {"valid_days": 1.5}, {"source_error": 5},
    ],
)  # fmt: skip
async def test_what_can_be_no_fact_is_refused_and_changes_nothing(quick: UserProfile, bad: dict[str, Any]) -> None:
    fact = await quick.add_fact("Likes tea")
    with pytest.raises(InvalidFact):
        await quick.add_fact(**{"content": "Rides", **bad})
    with pytest.raises(InvalidFact):
        await quick.update_fact(fact.id, **bad)
    assert (await quick.show()).facts == (fact,)


@pytest.mark.req("DF-C54", "DF-FACTS-find")
async def test_unknown_known_and_outdated_facts_have_errors_of_their_own(quick: UserProfile) -> None:
    fact = await quick.add_fact("Likes tea")
    other = await quick.add_fact("Rides")
    for act in (quick.fact("no"), quick.update_fact("no", content="x"), quick.remove_fact("no"), quick.pin("no")):
        with pytest.raises(FactNotFound):
            await act
    with pytest.raises(DuplicateFact, match=fact.id):
        await quick.add_fact("likes  TEA.", merge=False)
    with pytest.raises(DuplicateFact, match=fact.id):
        await quick.update_fact(other.id, content="Likes tea", merge=False)
    await quick.update_fact(fact.id, content="Likes tea!", revision=1)
    with pytest.raises(VersionConflict):
        await quick.update_fact(fact.id, content="Likes tea?", revision=1)


@pytest.mark.req("DF-C31", "DF-C32", "DF-B6")
async def test_what_the_profile_says_already_becomes_one_with_it_by_every_road(quick: UserProfile) -> None:
    fact = await quick.add_fact("Likes green tea", confidence=0.8)
    again = await quick.add_fact("likes  GREEN tea.", confidence=0.9, pinned=True)
    assert (again.id, again.content, again.confirmations) == (fact.id, "Likes green tea", 2)
    assert (again.confidence, again.pinned) == (0.9, True)
    other = await quick.add_fact("Rides")
    one = await quick.update_fact(other.id, content="Likes green tea!")
    assert one.id == fact.id
    assert [each.id for each in (await quick.show()).facts] == [fact.id]
    document = json.loads(await quick.export_document())
    facts = [{"id": f"fact_0000000{number}", "content": content, "confidence": 0.9}
             for number, content in enumerate(("LIKES green tea", "Sails", "sails.", "  ", ""))]  # fmt: skip
    await quick.import_document(json.dumps({**document, "facts": facts}), mode="merge", prefer="profile")
    assert sorted(each.content for each in (await quick.show()).facts) == ["Likes green tea", "Sails"]
    with pytest.raises(InvalidFact):
        await quick.add_fact("   ")
    edited = await quick.show()
    twice = replace(edited.facts[-1], id="fact_00000009", content="SAILS!")
    with pytest.raises(DuplicateFact):
        await quick.replace_all(replace(edited, facts=(*edited.facts, twice)), base=edited)
    assert await quick.show() == edited


@pytest.mark.req("DF-B8", "DF-C69")
async def test_a_fact_that_is_removed_is_not_learned_again_and_says_nothing_of_itself(tmp_path: Path) -> None:
    managed = UserProfile(_of_files(tmp_path), clock=HandClock())
    fact = await managed.add_fact("Likes tea")
    assert await managed.remove_fact(fact.id, why="no longer") == fact
    assert (await managed.show()).facts == ()
    assert "tea" not in (await managed.render()).text
    stones = await read_tombstones(LocalFiles(tmp_path))
    assert stones.ids == {fact.id}
    assert b"tea" not in stones.data


@pytest.mark.req("DF-C56")
async def test_a_summary_is_written_and_its_siblings_stay(managed: UserProfile) -> None:
    await managed.set_summary("workContext", "Builds ships")
    section = await managed.set_summary("topOfMind", " The launch ")
    assert section == ProfileSummary(summary="The launch", updated_at="2026-11-21T08:00:00.000Z")
    assert (await managed.show()).summaries["workContext"].summary == "Builds ships"
    assert (await managed.set_summary("topOfMind", "")).summary == ""
    with pytest.raises(InvalidFact, match="mood"):
        await managed.set_summary("mood", "good")


@pytest.mark.req("DF-C56", "DF-C67", "DF-FACTS-find")
async def test_one_change_touches_nothing_else(tmp_path: Path) -> None:
    managed = UserProfile(_of_files(tmp_path), clock=HandClock())
    clock = HandClock()
    files = LocalFiles(tmp_path)
    changes = ChangeSets(files, clock=clock, ids=MonotonicIds(clock))
    other = FileProfileStore(files, changes, path=profile_path("ann"), redactor=Redactor(KEY), key=KEY, clock=clock)
    await other.save(Profile(facts=(Fact(id="f", content="Is Ann"),)), base=Profile(), by="test")
    first = await managed.add_fact("Likes tea")
    await managed.add_fact("Rides")
    await managed.set_summary("workContext", "Builds ships")

    def state() -> tuple[dict[str, Any], bytes]:
        return json.loads((tmp_path / profile_path()).read_bytes()), (tmp_path / profile_path("ann")).read_bytes()

    grown = state()[0]
    grown["user"]["workContext"]["mood"] = {"of": ["others", 1]}
    grown["history"]["recentMonths"]["mood"] = "calm"
    grown["facts"][1]["mood"] = {"deep": [None]}
    (tmp_path / profile_path()).write_text(json.dumps(grown))
    before, ann = state()
    await managed.set_summary("topOfMind", "The launch")
    after, same = state()
    changed = {"summary": "The launch", "updatedAt": "2026-11-21T08:00:00.000Z"}
    assert after == {**before, "revision": 4, "user": {**before["user"], "topOfMind": changed}}
    await managed.update_fact(first.id, content="Likes coffee")
    last, same = state()
    assert last["facts"][1] == after["facts"][1]
    assert {**last, "facts": [], "revision": 4} == {**after, "facts": []}
    assert same == ann
    (tmp_path / profile_path()).write_text(
        json.dumps({**last, "user": {"workContext": 5, "topOfMind": {"summary": []}}})
    )
    assert "Likes coffee" in (await managed.render()).text
    assert "Work" not in (await managed.render()).text


@pytest.mark.req("DF-B5")
async def test_a_change_by_hand_leaves_out_what_is_not_learned_again(tmp_path: Path) -> None:
    managed = UserProfile(_of_files(tmp_path), clock=HandClock())
    await managed.add_fact("Likes tea")
    await managed.add_fact("Rides")
    base = await managed.show()
    twice = (*base.facts, Fact(id="f9", content="rides"))
    with pytest.raises(DuplicateFact):
        await managed.replace_all(replace(base, facts=twice), base=base)
    with pytest.raises(InvalidFact):
        await managed.replace_all(replace(base, facts=(replace(base.facts[0], content=""),)), base=base)
    await managed.replace_all(replace(base, facts=base.facts[1:]), base=base)
    assert [fact.content for fact in (await managed.show()).facts] == ["Rides"]
    assert len((await read_tombstones(LocalFiles(tmp_path))).ids) == 1


@pytest.mark.req("DF-B5", "DF-C31")
@given(profiles(), profiles())
def test_what_is_taken_out_comes_in_again_whatever_is_there(profile: Profile, now: Profile) -> None:
    found = plan_import(now, render_profile(profile), mode="replace")
    saved = stamp_changes(found.profile, now, HandClock().now())
    sections = {name: replace(each, updated_at="") for name, each in saved.summaries.items()}
    assert sections == {name: replace(each, updated_at="") for name, each in profile.summaries.items()}
    assert replace(saved, summaries={}, facts=()) == replace(
        profile, summaries={}, facts=(), revision=now.revision + 1, last_updated=saved.last_updated
    )
    bare = [replace(fact, revision=1, updated_at="") for fact in saved.facts]
    assert bare == [replace(fact, revision=1, updated_at="") for fact in profile.facts]
    assert not plan_import(profile, render_profile(profile), mode="replace").changes_something


@pytest.mark.req("DF-B5")
@pytest.mark.req("DF-C56", "DF-FACTS")
async def test_an_export_restores_the_profile_after_it_was_changed(managed: UserProfile) -> None:
    document = {
        "version": "1.0", "lastUpdated": "2026-01-01T00:00:00Z", "theme": "dark",
        "user": {"workContext": {"summary": "Builds ships", "updatedAt": "2026-01-02T00:00:00Z"}},
        "facts": [
            {"id": "fact_1", "content": "Likes tea", "category": "my own", "confidence": 0.9, "createdAt": "",
             "source": "t-1", "sourceError": "coffee", "expected_valid_days": 40, "confirmationCount": 3,
             "lastConfirmedAt": "2026-02-01T00:00:00Z", "consolidatedFrom": ["a", "b"], "title": "Tea"},
            {"id": "fact_2", "content": "Rides", "category": "habit", "confidence": 0.5, "createdAt": "x",
             "source": "manual", "pinned": True, "revision": 4},
        ],
    }  # fmt: skip
    await managed.import_document(json.dumps(document), mode="replace")
    before = await managed.show()
    exported = await managed.export_document()
    assert json.loads(exported)["facts"] == document["facts"]
    await managed.update_fact("fact_1", content="Likes coffee", source_error="", valid_days=3)
    await managed.update_fact("fact_2", confidence=0.1)
    await managed.update_fact("fact_2", confidence=0.5)
    assert (await managed.add_fact("rides")).confirmations == 2
    await managed.remove_fact("fact_1")
    await managed.add_fact("Swims")
    await managed.set_summary("workContext", "Builds boats")
    dry = await managed.import_document(exported, mode="replace", dry_run=True)
    assert (dry.added, dry.changed, len(dry.removed), dry.summaries) == (
        ("fact_1",), ("fact_2",), 1, ("workContext",),
    )  # fmt: skip
    assert not dry.is_saved
    assert "Swims" in (await managed.render()).text
    done = await managed.import_document(exported, mode="replace")
    assert done.is_saved
    assert has_same_content(await managed.show(), before)
    assert done.profile.revision > before.revision
    again = await managed.import_document(exported, mode="replace")
    assert not again.changes_something
    assert (await managed.show()).revision == done.profile.revision
    await managed.clear()
    assert (await managed.show()).is_empty
    assert (await managed.import_document(exported, mode="merge")).is_saved
    assert has_same_content(await managed.show(), before)
    assert (await managed.show()).extra == before.extra


@pytest.mark.req("DF-B5", "DF-C31")
async def test_a_merge_adds_what_is_missing_and_names_what_differs(quick: UserProfile) -> None:
    tea = await quick.add_fact("Likes tea")
    await quick.set_summary("workContext", "Builds ships")
    document = profile_to_document(
        Profile(
            facts=(
                replace(tea, content="Likes coffee"),
                Fact(id="f2", content="likes TEA"),
                Fact(id="f3", content="Rides"),
            ),
            summaries={
                "workContext": ProfileSummary(summary="Builds boats"),
                "topOfMind": ProfileSummary(summary="Tax"),
            },
        )
    )
    text = json.dumps(document)
    dry = await quick.import_document(text, dry_run=True)
    assert (dry.added, dry.changed, dry.known, dry.summaries) == (("f3",), (), 1, ("topOfMind",))
    assert dry.conflicts == (tea.id, "workContext")
    with pytest.raises(VersionConflict, match=f"{tea.id}, workContext"):
        await quick.import_document(text)
    assert [fact.content for fact in (await quick.show()).facts] == ["Likes tea"]
    await quick.import_document(text, prefer="profile")
    assert [fact.content for fact in (await quick.show()).facts] == ["Likes tea", "Rides"]
    assert (await quick.show()).summaries["workContext"].summary == "Builds ships"
    await quick.import_document(text, prefer="document")
    assert [fact.content for fact in (await quick.show()).facts] == ["Likes coffee", "Rides"]
    assert (await quick.show()).summaries["workContext"].summary == "Builds boats"


@pytest.mark.req("DF-B5")
async def test_a_document_of_which_something_would_be_lost_is_refused(quick: UserProfile) -> None:
    for bad in ("", "[]", '{"facts": [5]}', '{"user": 3}', '{"facts": [{"content": 5}]}'):
        with pytest.raises(DocumentInvalid):
            await quick.import_document(bad, mode="replace")
    done = await quick.import_document('{"facts": [{"id": "f", "content": "Rides", "confidence": "high"}]}')
    assert done.repaired == ("facts[0]",)
    assert done.added == ("f",)
