"""Facts of the profile and entries are one memory: the same ids, the same operations, and one forgetting."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from places import place_of
from ricordo import Memory, Scope
from ricordo.curation import Consolidator
from ricordo.errors import EntryNotFound, InvalidEntry
from ricordo.messages import Message, Text
from ricordo.search.memory_root import MemoryRoot

pytestmark = pytest.mark.anyio
Opened = Callable[..., AbstractAsyncContextManager[Memory]]

SHOP = Scope(user="me", project="shop")
TEA = "Mara drinks green tea from a tin mug."


def said(text: str, name: str | None = None) -> Message:
    return Message(role="user", name=name, parts=(Text(text=text),), time=datetime(2026, 11, 2, 9, tzinfo=UTC))


def tellers(root: Path, text: str) -> list[str]:
    """Return the files that say a text, without transcripts and history, which are masked and kept for undo."""
    files = [path for path in root.rglob("*") if path.is_file() and path.suffix in {".md", ".json", ".txt"}]
    return sorted(
        path.relative_to(root).as_posix()
        for path in files
        if not {"history", "agents"} & set(path.relative_to(root).parts) and text.encode() in path.read_bytes()
    )


async def consolidate(place: MemoryRoot) -> None:
    parts = {"files": place.files, "changes": place.changes, "redactor": place.redactor, "clock": place.clock}
    await Consolidator(**parts, key=place.key).consolidate(force=True)  # type: ignore[arg-type]
    await place.index.refresh()


async def everything_found(memory: Memory, query: str) -> str:
    hits = [*await memory.recall(query, limit=20), *await memory.search(query, limit=20)]
    return json.dumps([hit.entry.content for hit in hits]) + await memory.preamble()


@pytest.mark.req("DF-FACTS-find")
async def test_the_id_of_a_fact_is_accepted_wherever_the_id_of_an_entry_is(opened: Opened) -> None:
    async with opened() as memory:
        fact = await memory.profile().add_fact("Mara drinks tea.", category="preference")
        saved = await memory.remember("We deploy only from main.")
        assert [entry.id for entry in await memory.entries()] == [saved.id, fact.id]
        assert [entry.id for entry in await memory.entries(limit=1)] == [saved.id]
        assert [entry.id for entry in await memory.entries(limit=1, after=saved.id)] == [fact.id]
        assert await memory.entries(limit=1, after=fact.id) == []
        assert [entry.id for entry in await memory.entries(kinds=["preference"])] == [fact.id]
        entry = await memory.entry(fact.id[:10])
        assert (entry.id, entry.content, entry.kind, entry.tags) == (fact.id, fact.content, "preference", ("profile",))
        assert entry.scope == SHOP
        [hit] = await memory.recall("what does Mara drink", limit=1)
        assert hit.entry == replace(entry, id=fact.id)
        assert (await memory.pin(fact.id)).pinned
        assert (await memory.profile().fact(fact.id)).pinned
        assert (await memory.confirm(fact.id)).confirmed
        assert (await memory.mark_used(fact.id)).id == fact.id
        assert (await memory.usage(fact.id)).used.count == 1
        changed = await memory.update(fact.id, content="Mara drinks coffee.", kind="goal")
        assert (changed.id, changed.content, changed.kind, changed.pinned) == (
            fact.id,
            "Mara drinks coffee.",
            "goal",
            True,
        )
        assert (await memory.profile().fact(fact.id)).category == "goal"
        with pytest.raises(InvalidEntry, match="no tags"):
            await memory.update(fact.id, tags=["drink"])
        with pytest.raises(InvalidEntry):
            await memory.update(fact.id, content=" ")
        assert {each.content for each in await memory.versions(fact.id)} == {"Mara drinks tea.", "Mara drinks coffee."}
        assert [item.action for item in await memory.history(fact.id)] == ["update", "confirm", "pin", "profile"]
        await memory.undo()
        assert (await memory.entry(fact.id)).content == "Mara drinks tea."
        assert (await memory.forget(fact.id)).entry.content == "Mara drinks tea."
        with pytest.raises(EntryNotFound):
            await memory.entry(fact.id)
        assert (await memory.profile().show()).facts == ()
        await memory.undo()
        assert (await memory.entry(fact.id)).pinned
        await memory.erase(fact.id)
        assert [entry.id for entry in await memory.entries()] == [saved.id]
    assert tellers(memory.root, "drinks tea") == []


@pytest.mark.req("FC-UNDO")
async def test_a_fact_of_the_past_is_among_the_entries_of_the_past(opened: Opened) -> None:
    async with opened() as memory:
        fact = await memory.profile().add_fact("Mara drinks tea.")
        then = datetime.now(UTC)
        await memory.update(fact.id, content="Mara drinks coffee.")
        assert [entry.content for entry in await memory.entries(as_of=then)] == ["Mara drinks tea."]
        assert (await memory.entry(fact.id, as_of=then)).content == "Mara drinks tea."
        assert await memory.entries(as_of=then - timedelta(days=1)) == []


@pytest.mark.req("DF-B8")
async def test_deleting_everything_takes_the_facts_too(opened: Opened) -> None:
    async with opened() as memory:
        fact = await memory.profile().add_fact("Mara drinks tea.")
        saved = await memory.remember("We deploy only from main.")
        done = await memory.delete_all()
        assert {entry.id for entry in done.entries} == {fact.id, saved.id}
        assert await memory.entries() == []
        await memory.undo(done.change_id)
        assert {entry.id for entry in await memory.entries()} == {fact.id, saved.id}


async def learn(opened: Opened, scope: Scope, session: str, text: str = f"Remember: {TEA}") -> None:
    """Let rules learn a statement in a scope."""
    async with opened(scope) as memory:
        await memory.ingest([said(text, "Mara"), said("We sail on Sundays.", "Mara")], session=session)


async def save_everywhere(opened: Opened) -> None:
    async with opened() as memory:
        await memory.remember(TEA, scope=Scope(user="me"), reason="it is so in all projects", by="agent")


PLACES = {
    "another session": lambda opened: learn(opened, SHOP, "s2"),
    "another agent": lambda opened: learn(opened, replace(SHOP, agent="researcher"), "s2"),
    "the shared project": lambda opened: learn(opened, Scope(project="shop"), "s2"),
    "all projects": save_everywhere,
}


@pytest.mark.req("HE-O-audit-forget")
@pytest.mark.parametrize("consolidated", [False, True])
@pytest.mark.parametrize("where", PLACES)
async def test_what_was_learned_in_another_scope_is_forgotten_too_and_one_undo_brings_it_back(
    opened: Opened, root: Path, where: str, consolidated: bool
) -> None:
    await learn(opened, SHOP, "s1")
    await PLACES[where](opened)
    async with opened() as memory:
        await memory.profile().add_fact(TEA, category="preference")
        if consolidated:
            for place in await memory._layers.places():
                await consolidate(place)
        before = {entry.content for entry in await memory.entries()}
        told = tellers(root, "tin mug")
        named = next(entry for entry in await memory.entries() if "tin mug" in entry.content)
        await memory.forget(named.id)
        assert tellers(root, "tin mug") == []
        assert "tin mug" not in await everything_found(memory, "Mara green tea tin mug")
        assert not [entry for entry in await memory.entries() if "tin mug" in entry.content]
    # neither the transcript nor the same words in a new session bring it back
    for scope, session in ((SHOP, "s1"), (SHOP, "s9"), (replace(SHOP, agent="researcher"), "s10")):
        await learn(opened, scope, session)
    async with opened() as memory:
        for place in await memory._layers.places():
            await consolidate(place)
        assert tellers(root, "tin mug") == []
        assert "tin mug" not in await everything_found(memory, "Mara green tea tin mug")
        forget = next(item for item in await memory.history() if item.action == "forget")
        await memory.undo(forget.id)
        assert {entry.content for entry in await memory.entries()} >= before
        assert {*tellers(root, "tin mug")} >= {*told}


@pytest.mark.req("HE-O-audit-forget")
async def test_what_another_user_learned_or_saved_stays(opened: Opened) -> None:
    other = Scope(user="ola", project="shop")
    await learn(opened, SHOP, "s1")
    await learn(opened, other, "s1")
    async with opened(other) as memory:
        await memory.remember(TEA)
        before = await memory.entries()
    async with opened() as memory:
        await memory.forget(next(entry.id for entry in await memory.entries() if "tin mug" in entry.content))
    async with opened(other) as memory:
        assert await memory.entries() == before
        assert "tin mug" in await everything_found(memory, "Mara green tea tin mug")


@pytest.mark.req("AS-MEM-01")
async def test_what_is_said_of_the_person_stands_in_the_profile_alone_and_the_prompt_shows_it_once(
    opened: Opened, root: Path
) -> None:
    async with opened() as memory:
        await memory.ingest([said("My sister Ana lives in Porto."), said("We decided to use uv.")], session="s1")
        for place in await memory._layers.places():
            await consolidate(place)
        entries = [entry for entry in await memory.entries() if "Ana" in entry.content]
        assert [entry.tags for entry in entries] == [("profile",)]
        curated = (place_of(root) / "workspace" / "MEMORY.md").read_text(encoding="utf-8")
        assert "Ana" not in curated
        assert "uv" in curated
        assert (await memory.preamble()).count("Ana") == 1
        assert (await memory.preamble()).count("uv") == 1
        # a line that only says who spoke is no fact of that person
        await memory.ingest([said("The staging server runs in Porto.", "Ana")], session="s2")
        assert len((await memory.profile().show()).facts) == 1
        # what a person saves has its place in curated memory, and the profile gives way
        saved = await memory.remember(entries[0].content)
        for place in await memory._layers.places():
            await consolidate(place)
        active = [entry.id for entry in await memory.entries() if "Ana" in entry.content and entry.state == "active"]
        assert saved.id in active
        assert (await memory.profile().show()).facts == ()
        assert (await memory.preamble()).count("sister Ana") == 1


_ROOMS = ("attic", "cellar", "garage", "kitchen", "library", "pantry", "shed", "studio", "vault", "stable")


async def test_what_the_profile_says_since_marks_the_memory_that_it_makes_outdated(opened: Opened) -> None:
    rules = [f"Always lock the {thing} before {hour} o'clock." for hour, thing in enumerate(_ROOMS, 1)]
    async with opened() as memory:
        for session, texts in {
            "s1": ["All lamps of the house together stay under 140 a month, always.", *rules],
            "s2": [
                "My sister did the sums, we can go to two hundred a month now. So that's the new ceiling, all lamps."
            ],
        }.items():
            later = timedelta(days=int(session[1:]))
            messages = [replace(message, time=message.time + later) for message in map(said, texts) if message.time]
            await memory.ingest(messages, session=session)
            for place in await memory._layers.places():
                await consolidate(place)
        lamps = {entry.tags: entry for entry in await memory.entries() if "lamps" in entry.content}
        old, new = lamps[()], lamps["profile",]
        assert (await memory.entry(old.maybe_outdated_by)).content == new.content
        hits = await memory.recall("all lamps under 140 a month")
        assert [hit.entry.content for hit in hits[:2]] == [new.content, old.content]


@pytest.mark.req("HE-O-conflict")
async def test_a_changed_fact_leaves_its_old_statement_superseded(opened: Opened) -> None:
    async with opened() as memory:
        for session, text in (("s1", "My dentist is Dr. Wieland."), ("s2", "My dentist is Dr. Okoye now.")):
            await memory.ingest([said(text)], session=session)
            for place in await memory._layers.places():
                await consolidate(place)
        states = {entry.content: entry.state for entry in await memory.entries()}
        assert [text for text, state in states.items() if state == "active"] == ["User's dentist is Dr. Okoye now."]


@pytest.mark.req("FC-UNDO")
async def test_a_learned_fact_is_unlearned_by_undo_with_its_id(opened: Opened) -> None:
    async with opened() as memory:
        await memory.ingest([said("My sister Ana lives in Porto.")], session="s1")
        [fact] = await memory.entries()
        [found] = await memory.recall("Where does Ana live?", as_of=datetime.now(UTC))
        assert found.entry.id == fact.id
        await memory.undo(fact.id)
        assert await memory.entries() == []
        assert (await memory.profile().show()).facts == ()


@pytest.mark.parametrize(
    ("text", "is_fact"),
    [
        ("I hate comments that repeat the code.", True),
        ("I've lived in Porto since 2011.", True),
        ("I'm allergic to hazelnuts.", True),
        ("I ate a whole cake at the office party of Rui in Faro.", False),
        ("I've taken the chair of Rui's mother to pavilion C, whose front is all stairs.", False),
        ("I saw a number in the draft of the billing export that Rui wrote.", False),
        ("I found the spare key of the Faro office.", False),
    ],
)
async def test_what_somebody_once_did_is_no_fact_of_their_profile(opened: Opened, text: str, *, is_fact: bool) -> None:
    async with opened() as memory:
        report = await memory.ingest([said(text)], session="s")
        assert report.entries
        assert (await memory.profile().facts()).total == is_fact
