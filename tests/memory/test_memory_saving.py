"""What was remembered is there in the next session: whole, by kind, for whom it was meant, and for nobody else."""

import os
import runpy
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hand_clock import HandClock
from places import place_of
from ricordo import Entry, HarnessAgent, Memory, Message, Scope
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.errors import (
    EntryNotFound,
    InvalidEntry,
    InvalidQuery,
    ReasonRequired,
    ScopeMismatch,
    ScopeRequired,
)
from ricordo.events import Emitter
from ricordo.guard import Redactor
from ricordo.messages import Text, Tokens, estimate_text
from ricordo.stores import LayeredMemory, NoMemory, StoreParts

pytestmark = pytest.mark.anyio
Opened = Callable[..., AbstractAsyncContextManager[Memory]]


def said(text: str, role: str = "user") -> Message:
    return Message(role=role, parts=(Text(text=text),))  # type: ignore[arg-type]


@pytest.mark.req("HE-MEM-01", "GO-G1")
async def test_each_kind_is_saved_in_one_session_and_recalled_by_kind_in_the_next(opened: Opened) -> None:
    told = {
        "fact": "The warehouse of the shop is in Porto.",
        "decision": "The shop ships only by train.",
        "lesson": "Orders of the shop fail when the clock is wrong.",
        "preference": "The shop prefers short mails.",
        "convention": "Branches of the shop are named after trees.",
    }
    async with opened() as memory:
        saved = {kind: await memory.remember(text, kind=kind) for kind, text in told.items()}
    async with opened() as memory:
        for kind, text in told.items():
            hits = await memory.recall("shop", kinds=[kind], limit=10)
            assert [(hit.entry.content, hit.entry.kind, hit.entry.id) for hit in hits] == [(text, kind, saved[kind].id)]
        assert {hit.entry.kind for hit in await memory.recall("", limit=10)} == set(told)
        for query in ("shop", ""):
            hits = await memory.recall(query, kinds=["fact", "lesson", "convention"], limit=10)
            assert sorted(hit.entry.kind for hit in hits) == ["convention", "fact", "lesson"], "of several kinds too"


@pytest.mark.req("GO-G1", "HE-A6")
async def test_an_entry_has_time_kind_content_and_tags_and_a_missing_time_is_that_of_saving(opened: Opened) -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    kinds = ("fact", "decision", "session-summary", "preference", "recipe of the house", "Ключ #1 [x:: y]")
    async with opened() as memory:
        saved = [await memory.remember(f"About {kind}", kind=kind, tags=["one", "two words"]) for kind in kinds]
    after = datetime.now(UTC)
    async with opened() as memory:
        kept = {entry.id: entry for entry in await memory.entries()}
        for kind, entry in zip(kinds, saved, strict=True):
            found = kept[entry.id]
            assert (found.kind, found.content, found.tags) == (kind, f"About {kind}", ("one", "two words"))
            assert found.time is not None
            assert before <= found.time <= after
            assert found.time == entry.time
            assert [hit.entry.id for hit in await memory.recall("About", kinds=[kind])] == [entry.id]


@pytest.mark.req("GO-G1")
async def test_a_time_that_was_given_is_kept(opened: Opened) -> None:
    when = datetime(2020, 2, 29, 23, 59, 59, 999_000, tzinfo=UTC)
    async with opened() as memory:
        place = memory._workspace.store
        entry = await place.save(Entry(content="Leap day", time=when))
    async with opened() as memory:
        assert (await memory.entry(entry.id)).time == when


@pytest.mark.req("HE-C7", "HE-C7-ties", "HE-C7-keep", "HE-A4", "HE-T5")
@pytest.mark.parametrize("old", ["In the frontend we settled on jquery.", "In the frontend we migrated to react."])
async def test_the_newer_of_two_as_near_to_the_question_comes_first_and_no_age_hides_a_memory(
    opened: Opened, old: str
) -> None:
    texts = {"In the frontend we settled on jquery.", "In the frontend we migrated to react."}
    clock = HandClock()
    async with opened(clock=clock) as memory:
        await memory.remember("The well of the garden is deep.")
        clock.turn(days=365 * 20)
        await memory.remember(old)
        clock.turn(days=730 - 14)
        await memory.remember(*(texts - {old}))
        clock.turn(days=14)
        for text in ("A red door of the shop.", "A blue door of the shop.", "A green door of the shop."):
            await memory.pin((await memory.remember(text)).id)
            clock.turn(days=3)
        newer, older = await memory.recall("frontend")
        assert older.entry.content == old
        assert newer.score > older.score
        doors = await memory.recall("door")
        assert len({hit.score for hit in doors}) == 1
        assert [hit.entry.content.split()[1] for hit in doors] == ["green", "blue", "red"]
        assert [hit.entry.content for hit in await memory.recall("well")] == ["The well of the garden is deep."]
        assert "The well of the garden is deep." in {entry.content for entry in await memory.entries()}


@pytest.mark.req("HE-A6", "GO-G1")
async def test_every_write_is_an_entry_and_what_is_none_is_refused(opened: Opened, root: Path) -> None:
    async with opened() as memory:
        await memory.remember("A user's memory.", kind="decision")
        await memory.remember("An agent's memory.", kind="lesson", by="agent")
        learned = await memory.ingest([said("We decided to use PostgreSQL for the orders.")], session="s1")
        assert learned.entries
        for content in ("", " \n\t", "x" * (2 * 1024 * 1024 + 1), "é" * (1024 * 1024 + 1)):
            for by in ("user", "agent"):
                with pytest.raises(InvalidEntry):
                    await memory.remember(content, by=by)
        assert len(await memory.entries()) == 2 + len(learned.entries)
        largest = await memory.remember("é" * (1024 * 1024))
    async with opened() as memory:
        entries = await memory.entries()
        assert len(entries) == 3 + len(learned.entries)
        assert len({entry.id for entry in entries}) == len(entries)
        for entry in entries:
            assert entry.id
            assert entry.kind
            assert entry.time is not None
            assert entry.scope is not None
            assert entry.scope.project == "shop"
        by_content = {entry.content: entry for entry in entries}
        assert by_content["A user's memory."].by == "user"
        assert by_content["An agent's memory."].by == "agent"
        extracted = by_content[learned.entries[0].content]
        assert (extracted.by, extracted.source.session) == ("flush", "s1")
        assert extracted.source.messages == (learned.messages[0].id,)
        assert (await memory.entry(largest.id)).content == "é" * (1024 * 1024)
    written = [path for path in (place_of(root) / "workspace" / "memory").rglob("*") if path.is_file()]
    assert {path.suffix for path in written if not path.name.startswith(".")} == {".md"}


@pytest.mark.req("GO-I1", "GO-G1")
@pytest.mark.parametrize(
    "content",
    [
        "line one\n\n# A heading\n\n- a bullet ^id\n[kind:: x] #tag\n",
        "🦊 עברית 中文 \u202eabc",
        "tabs\tand  spaces  \n  indented\n\n\n",
        "windows\r\nlines\r\n",
        "surrogate \ud800 and \x00 and \x1b",
        "```python\ncode\n```",
        "word " * 1000,
        "crlf\r\n" * 1000,
        "\ud800" + "x" * 5000,
        "A megabyte. " * 90_000,
        "---\nname: like front matter\n---\n\n" + "y" * 5000,
    ],
    ids=lambda content: repr(content[:12]),
)
async def test_any_content_survives_closing_and_opening_again(content: str, opened: Opened) -> None:
    async with opened() as memory:
        entry = await memory.remember(content, tags=[])
        await memory.remember("A neighbour.")
    async with opened() as memory:
        found = await memory.entry(entry.id)
        assert (found.content, found.tags, found.kind, found.time) == (content, (), "fact", entry.time)
        assert len(await memory.entries()) == 2


async def test_of_a_long_memory_only_its_own_words_are_found(opened: Opened) -> None:
    long = "Notes of the gateway.\n\n" + "Restart it by hand. " * 300 + "\n\nThe magic word is xylophone."
    async with opened() as memory:
        entry = await memory.remember(long)
        for query in ("xylophone", "whole text of one memory", "memory told by the user", "fields of the ledger"):
            for hit in await memory.recall(query):
                assert hit.entry.id == entry.id
                assert hit.entry.content in long
        assert await memory.recall("xylophone")


@pytest.mark.req("HE-C5-required", "HE-A2", "HE-T4", "HE-A6")
async def test_nothing_is_read_or_written_without_a_scope_and_wider_needs_a_stored_reason(
    opened: Opened, root: Path
) -> None:
    with pytest.raises(ScopeRequired):
        async with Memory.open(root, scope=None):
            pass
    with pytest.raises(ScopeRequired):
        HarnessAgent("offline", memory=root, scope=None)
    assert root.name not in os.listdir(root.parent)
    clock = SystemClock()
    parts = StoreParts(redactor=Redactor(bytes(32)), clock=clock, ids=MonotonicIds(clock), emitter=Emitter(clock, ()))
    backend = NoMemory(parts)
    with pytest.raises(ScopeRequired):
        backend.bind(None)
    assert not any(hasattr(backend, verb) for verb in ("save", "recall", "preamble"))
    async with opened() as memory:
        assert memory.scope == Scope(user="me", project="shop")
        for reason in (None, "", "  "):
            with pytest.raises(ReasonRequired):
                await memory.remember("Everywhere.", scope=Scope(user="me"), reason=reason)
        assert await memory.entries() == []
        await memory.remember("I live in Porto.", scope=Scope(user="me"), reason="holds in every project")
    async with opened(Scope(user="me", project="garden"), root.parent / "garden") as memory:
        [entry] = await memory.entries()
        assert (entry.content, entry.reason) == ("I live in Porto.", "holds in every project")


@pytest.mark.req("HE-C5-project")
async def test_a_root_serves_one_project_only(opened: Opened, root: Path) -> None:
    async with opened() as memory:
        await memory.remember("Ours.")
    for scope in (
        Scope(user="me", project="other"),
        Scope(user="me", project="Shop"),
        Scope(tenant="t", user="me", project="shop"),
        Scope(user="me"),
    ):
        with pytest.raises(ScopeMismatch):
            async with opened(scope):
                pass
    async with opened(Scope(user="another", project="shop")) as memory:
        assert await memory.entries() == []
        entry = await memory.remember("From another.")
        assert entry.scope == Scope(user="another", project="shop")
        with pytest.raises(ScopeMismatch):
            await memory.remember("Not mine.", scope=Scope(user="me", project="shop"))
        with pytest.raises(ScopeMismatch):
            await memory.remember("Not mine.", scope=Scope(user="me"), reason="no")
    async with opened() as memory:
        users = {entry.content: entry.scope and entry.scope.user for entry in await memory.entries()}
        assert users == {"Ours.": "me"}


@pytest.mark.req("HE-C5-user")
async def test_what_holds_for_a_user_is_seen_in_their_other_projects_and_by_nobody_else(
    opened: Opened, root: Path
) -> None:
    garden = root.parent / "garden"
    async with opened() as memory:
        await memory.remember("The shop has a red door.")
        await memory.remember("I am allergic to walnuts.", scope=Scope(user="me"), reason="holds everywhere")
        assert {hit.source for hit in await memory.recall("", limit=9)} == {"project", "user"}
    async with opened(Scope(user="me", project="garden"), garden) as memory:
        assert [entry.content for entry in await memory.entries()] == ["I am allergic to walnuts."]
        assert [hit.entry.content for hit in await memory.recall("allergic walnuts")] == ["I am allergic to walnuts."]
        assert "walnuts" in await memory.preamble()
        assert "red door" not in await memory.preamble()
        assert (await memory.entries())[0].scope == Scope(user="me")
    for stranger in (Scope(user="Me", project="garden"), Scope(user="you", project="garden"), Scope(project="garden")):
        async with opened(stranger, garden) as memory:
            assert await memory.entries() == []
            assert await memory.recall("allergic walnuts") == []
            assert "walnuts" not in await memory.preamble()
    async with opened(Scope(user="me", project="garden"), garden) as memory:
        await memory.forget((await memory.entries())[0].id)
    async with opened() as memory:
        assert [entry.content for entry in await memory.entries()] == ["The shop has a red door."]
        assert (await memory.undo()).action == "forget"
        assert len(await memory.entries()) == 2


async def test_the_users_own_root_is_opened_once_when_many_ask_at_once(opened: Opened) -> None:
    async with opened() as memory:
        await memory.remember("I am allergic to walnuts.", scope=Scope(user="me"), reason="holds everywhere")
    async with opened() as memory:
        driver = memory._workspace.store.offers(LayeredMemory)
        assert driver is not None
        seen: list[int] = []

        async def look() -> None:
            seen.append(id((await driver.places())[1]))

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(look)
        assert len(set(seen)) == 1


@pytest.mark.req("HE-A6")
async def test_unknown_ids_short_ids_and_bad_limits_are_typed_errors(opened: Opened) -> None:
    async with opened() as memory:
        entry = await memory.remember("One.")
        assert (await memory.entry(entry.id[:24])).content == "One."
        for wrong in ("none", "", entry.id[:3], "0" * 26, "../x"):
            with pytest.raises(EntryNotFound):
                await memory.entry(wrong)
            with pytest.raises(EntryNotFound):
                await memory.forget(wrong)
        for limit in (0, -1):
            with pytest.raises(InvalidQuery):
                await memory.recall("one", limit=limit)


@pytest.mark.req("AS-LEDGER-03", "HE-C1")
async def test_the_preamble_holds_what_was_remembered_at_once_and_not_what_was_only_extracted(opened: Opened) -> None:
    async with opened() as memory:
        await memory.remember("We deploy only from main.", kind="decision")
        assert "We deploy only from main." in await memory.preamble()
        learned = await memory.ingest([said("We decided to serve oolong and no coffee.")], session="s1")
        assert learned.entries
        assert "oolong" not in await memory.preamble()
        assert [hit.entry.by for hit in await memory.recall("oolong coffee")] == ["flush"]
        assert await memory.preamble() == await memory.preamble()
        await memory.remember("I read on trains.", scope=Scope(user="me"), reason="it holds in every project")
        for number in range(12):
            await memory.remember(f"Shelf {number} holds tea.")
    async with opened() as memory:
        shown = await memory.preamble()
    everywhere = ["I read on trains."]
    saved = ["We deploy only from main.", *everywhere, *(f"Shelf {number} holds tea." for number in range(12))]
    assert [each for each in saved if each not in shown] == []


@pytest.mark.req("AS-BUG-22", "GO-G4-scale", "HE-C1")
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(1, 3000), max_size=25),
    curated=st.integers(0, 400),
    budget=st.integers(1, 6000),
    script=st.sampled_from(["word ", "語", "🦊", "a.b/c"]),
)
async def test_the_preamble_stays_within_its_budget_whatever_is_kept(
    sizes: list[int], curated: int, budget: int, script: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("budget")
    async with Memory.open(root, scope=Scope(user="me", project="shop")) as memory:
        for size in sizes:
            await memory.remember((script * size)[:size] + "x")
        if curated:
            target = place_of(root) / "workspace" / "MEMORY.md"
            await anyio.Path(target).write_text("".join(f"- {script * 5} {line}\n" for line in range(curated)))
        assert estimate_text(await memory.preamble(Tokens(budget))) <= budget
        assert estimate_text(await memory.preamble()) <= 4000


@pytest.mark.req("HE-O-audit-forget", "GO-I10")
async def test_a_forgotten_thing_is_not_learned_again_from_the_same_words(opened: Opened) -> None:
    fact = "I prefer oolong over any coffee."
    async with opened() as memory:
        learned = await memory.ingest([said(fact)], session="s1")
        [entry] = learned.entries
        await memory.forget(entry.id, reason="not true any more")
        assert await memory.recall("oolong coffee") == []
        again = await memory.ingest([said(fact), said("i prefer OOLONG, over any coffee!")], session="s2")
        assert [found for found in again.entries if "oolong" in found.content.lower()] == []
    async with opened() as memory:
        assert (await memory.ingest([said(fact)], session="s3")).entries == ()
        await memory.undo()
        assert [found.content for found in await memory.entries()] == [entry.content]
        assert (await memory.ingest([said(fact)], session="s4")).entries != ()


@pytest.mark.req("HE-A6")
async def test_what_was_ingested_before_is_not_added_again(opened: Opened) -> None:
    conversation = [said("We deploy only from main."), said("Fine.", "assistant"), said("I prefer tea over coffee.")]
    async with opened() as memory:
        first = await memory.ingest(conversation, session="s1", known={})
    async with opened() as memory:
        second = await memory.ingest(conversation, session="s1", known={})
        assert (second.added_count, second.entries) == (0, ())
        third = await memory.ingest([*conversation, said("Our office is in Porto.")], session="s1", known={})
        assert third.added_count == 1
        assert len((await memory.session("s1")).messages) == 4
        assert len(await memory.entries()) == len(first.entries) + len(third.entries)


SNIPPET = """
import asyncio
from ricordo import Memory, Scope

async def main() -> None:
    async with Memory.open(".ricordo", scope=Scope(user="me", project="shop")) as memory:
        await memory.remember("We deploy only from main.", kind="decision")
        for hit in await memory.recall("deployment branch"):
            print(hit.entry.content, hit.explanation)
        print(await memory.preamble())

asyncio.run(main())
"""


@pytest.mark.req("FC-NOKEY")
@pytest.mark.parametrize("runs", [1, 2])
def test_the_first_five_minutes_work_as_written(
    runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "first.py").write_text(SNIPPET)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    for _ in range(runs):
        runpy.run_path(str(tmp_path / "first.py"))
    shown = capsys.readouterr().out
    assert shown.startswith("We deploy only from main. ")
    assert shown.count("<memory ") == runs
    assert (place_of(tmp_path / "work" / ".ricordo") / "workspace" / "memory").is_dir()
