"""What changes in a plain store while a session runs: seen without reading the store each time, and never quoted once
it is forgotten."""

from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings, spoken, system
from ricordo import Entry, HarnessAgent, MemoryConfig
from ricordo.agent.memory_context import folder_fingerprint
from ricordo.events import Event
from ricordo.runtime import open_store
from ricordo.stores import Forgets
from ricordo.testing import Call, Calls, Say, ScriptedModel

pytestmark = pytest.mark.req("GO-G26-cache", "DF-C69")

FACT = "Test fixtures live in tests/data."
OTHER = "Nadia owns the staging database."
SCHEMES = ("jsonl", "json", "kv", "markdown", "fulltext", "sessions", "folder")


def agent(folder: Path, model: ScriptedModel, scheme: str, heard: list[Event] | None = None) -> HarnessAgent:
    return HarnessAgent(
        model,
        memory=MemoryConfig(root=folder / ".ricordo", store=f"{scheme}:{folder / 'kept'}", closing_summary="off"),
        scope=SCOPE,
        settings=settings(folder / ".ricordo"),
        on_event=None if heard is None else heard.append,
    )


@pytest.mark.req("AS-CURATED-03")
@pytest.mark.anyio
@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_store_that_does_not_change_is_read_in_the_first_turn_alone(tmp_path: Path, scheme: str) -> None:
    async with open_store(
        f"{scheme}:{tmp_path / 'kept'}", scope=SCOPE, settings=settings(tmp_path / ".ricordo")
    ) as kept:
        await kept.save(Entry(content=FACT, kind="preamble"))
    read: list[int] = []
    heard: list[Event] = []
    model = ScriptedModel([Call("recall", {"query": "fixtures"}), Say("There."), *[Say("Hm.")] * 3])
    async with agent(tmp_path, model, scheme, heard) as one:
        for text in ("One.", "Two.", "Three.", "Four."):
            await one.send(text)
            read.append(sum(event.stage == "preamble" and event.status == "finished" for event in heard))
    assert read[0] > 0
    assert read == read[:1] * 4
    assert all(FACT in system(request) for request in model.requests)


@pytest.mark.req("AS-CURATED-03", "HE-O-audit-forget")
@pytest.mark.anyio
@pytest.mark.parametrize("scheme", SCHEMES)
async def test_what_somebody_else_forgets_opens_a_new_prompt_and_is_quoted_by_none(tmp_path: Path, scheme: str) -> None:
    address = f"{scheme}:{tmp_path / 'kept'}"
    async with open_store(address, scope=SCOPE, settings=settings(tmp_path / ".ricordo")) as kept:
        wrong = await kept.save(Entry(content=FACT, kind="preamble"))
        await kept.save(Entry(content=OTHER, kind="preamble"))
    model = ScriptedModel([Say("One."), Say("Two."), Say("Three.")])
    async with agent(tmp_path, model, scheme) as one:
        await one.send("First.")
        async with open_store(address, scope=SCOPE, settings=settings(tmp_path / ".ricordo")) as kept:
            forgets = kept.offers(Forgets)
            assert forgets is not None
            await forgets.forget(wrong.id, who="user")
        await one.send("Second.")
        await one.send("Third.")
    first, second, third = model.requests
    assert FACT in system(first)
    assert FACT not in system(second)
    assert OTHER in system(second)
    assert system(third) == system(second)
    assert not any(FACT in text for request in (second, third) for _, text in spoken(request.messages))


@pytest.mark.anyio
async def test_what_was_loaded_for_the_first_message_is_gone_too_once_it_is_forgotten(tmp_path: Path) -> None:
    # a key-value store shows what is pinned to the preamble; the rest comes in by what the session begins with
    async with open_store(f"kv:{tmp_path / 'kept'}", scope=SCOPE, settings=settings(tmp_path / ".ricordo")) as kept:
        wrong = await kept.save(Entry(content=FACT))
        await kept.save(Entry(content=OTHER, kind="preamble"))
    model = ScriptedModel([Say("In tests/data."), Say("Not known.")])
    async with agent(tmp_path, model, "kv") as one:
        await one.send("Where do the test fixtures live?")
        forgets = one.store.offers(Forgets)
        assert forgets is not None
        await forgets.forget(wrong.id, who="user")
        await one.send("Where do the test fixtures live now?")
    assert [FACT in system(request) for request in model.requests] == [True, False]


@pytest.mark.req("AS-CURATED-03")
@pytest.mark.anyio
async def test_saves_alone_leave_the_prompt_as_it_is_also_where_older_ones_give_way(tmp_path: Path) -> None:
    keeps = [Call("remember", {"content": f"Fact {number}: {'word ' * 90}"}) for number in range(60)]
    async with open_store(f"jsonl:{tmp_path / 'kept'}", scope=SCOPE, settings=settings(tmp_path / ".ricordo")) as kept:
        await kept.save(Entry(content=f"{FACT} {'word ' * 90}"))
    model = ScriptedModel([Calls(*keeps), Say("Kept."), Say("Bye.")])
    async with agent(tmp_path, model, "jsonl") as one:
        await one.send("Keep these.")
        await one.send("Bye.")
        assert FACT not in await one.store.preamble()
    assert len({system(request) for request in model.requests}) == 1
    assert FACT in system(model.requests[-1])


def test_files_are_told_apart_by_what_changes_with_every_write(tmp_path: Path) -> None:
    folder, file = tmp_path / "kept", tmp_path / "kept" / "deep" / "a.md"
    file.parent.mkdir(parents=True)
    file.write_text("one")
    seen = [folder_fingerprint(folder)]
    file.with_name("b.md").write_text("two")
    seen.append(folder_fingerprint(folder))
    file.write_text("four")
    seen.append(folder_fingerprint(folder))
    file.with_name("c.md").write_text("five")
    file.with_name("c.md").replace(file)
    seen.append(folder_fingerprint(folder))
    assert len({*seen}) == 4
    assert folder_fingerprint(folder) == seen[-1]
    assert folder_fingerprint(tmp_path / "nowhere") is None
