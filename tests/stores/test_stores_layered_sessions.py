"""Session files of a root: written when a session ends, shown and found, and nothing that was forgotten stays there."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings
from hand_clock import HandClock
from kept_session_files import keeps, notes
from places import place_of
from ricordo import Entry, HarnessAgent, MemoryConfig
from ricordo.messages import Tokens, estimate_text
from ricordo.runtime import Dependencies, open_workspace
from ricordo.stores import LayeredMemory, Store
from ricordo.testing import Call, Fail, RecordedRequest, Say, ScriptedModel, ScriptItem

pytestmark = pytest.mark.anyio

GOLDEN = "Fixtures live in testdata/golden."


@asynccontextmanager
async def opened(folder: Path, clock: HandClock) -> AsyncIterator[Store]:
    async with open_workspace(
        folder / "r", SCOPE, Dependencies.create(settings=settings(folder / "r"), clock=clock)
    ) as workspace:
        yield workspace.store


def layers(store: Store) -> LayeredMemory:
    found = store.offers(LayeredMemory)
    assert found is not None
    return found


def told(folder: Path) -> str:
    """Return everything that session files and their index say."""
    workspace = place_of(folder / "r") / "workspace"
    files = [*sorted((workspace / "sessions").glob("*.md")), workspace / "index.json"]
    return "\n".join(path.read_text(encoding="utf-8") for path in files if path.is_file())


@pytest.mark.req("GO-G23", "GO-G17")
async def test_a_closed_session_is_a_file_is_found_and_the_last_five_are_shown(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as store:
        empty = await store.preamble()
        assert await keeps(store).close_session(notes("s", " ")) == ""
        paths = []
        for number in range(7):
            clock.turn(3_600)
            about = replace(notes(f"s{number}", f"We moved harbour {number}.", "move", started=clock.now()),
                            open_threads=(f"Paint harbour {number}.",))  # fmt: skip
            paths.append(await keeps(store).close_session(about))
            assert f"We moved harbour {number}." in await store.preamble()
        shown = await store.preamble()
        assert empty == ""
        assert [number for number in range(7) if f"harbour {number}" in shown] == [2, 3, 4, 5, 6]
        assert shown.index("harbour 6") < shown.index("harbour 2")
        assert "Paint harbour 6." in shown
        (hit, *_) = await store.recall("harbour 3")
        assert (hit.path, hit.entry.kind) == (paths[3], "session-summary")
        await store.save(Entry(content="It rains.", by="flush"))
        assert await store.preamble() == shown, "only a closed session changes what is shown of them"
    index = json.loads((place_of(tmp_path / "r") / "workspace" / "index.json").read_text(encoding="utf-8"))
    assert [row["path"] for row in index["sessions"]] == [path.removeprefix("workspace/") for path in paths]
    async with opened(tmp_path, clock) as store:
        assert await store.preamble() == shown
        file = place_of(tmp_path / "r") / paths[6]
        file.write_text(file.read_text(encoding="utf-8").replace("moved", "sold"), encoding="utf-8")
        (place_of(tmp_path / "r") / "workspace" / "index.json").unlink()
        assert await store.preamble() == shown.replace("moved harbour 6", "sold harbour 6")


@pytest.mark.req("GO-G17-size")
async def test_sessions_take_their_share_of_the_budget_and_nothing_from_what_is_pinned(tmp_path: Path) -> None:
    async with opened(tmp_path, HandClock()) as store:
        for number in range(5):
            await keeps(store).close_session(notes(f"s{number}", f"Harbour {number}. " + "They talked on. " * 60))
        pinned = await store.save(Entry(content="Mind the tide. " * 40))
        await layers(store).mark_entry(pinned.id, "pin", who="me")
        for budget in (*range(120, 400, 20), 4_000):
            shown = await store.preamble(Tokens(budget))
            assert estimate_text(shown) <= budget
            assert ("Mind the tide." in shown) or not shown
        assert "Harbour 0" in shown
        assert "Harbour 4" in await store.preamble(Tokens(600))


@pytest.mark.req("HE-O-audit-forget")
async def test_what_is_forgotten_leaves_session_files_and_undo_brings_it_back(tmp_path: Path) -> None:
    async with opened(tmp_path, HandClock()) as store:
        saved = await store.save(Entry(content=GOLDEN, kind="fact"))
        about = notes("s", f"Nadia asked. In testdata/golden the fixtures do live. {GOLDEN} It rained.")
        await keeps(store).close_session(
            replace(about, open_threads=("Move what lives in testdata/golden: fixtures.",))
        )
        before = told(tmp_path)
        await layers(store).forget(saved.id, who="me")
        left = told(tmp_path)
        assert "golden" not in left
        assert "Nadia asked. (forgotten) (forgotten). It rained." in left
        assert "golden" not in await store.preamble()
        assert not [hit for hit in await store.recall("golden") if "golden" in hit.entry.content]
        newest = (await layers(store).history(limit=1))[0]
        await layers(store).undo(newest.id, who="me")
        assert told(tmp_path).partition("modified_ns")[0] == before.partition("modified_ns")[0]
        assert {hit.entry.kind for hit in await store.recall("golden")} == {"fact", "session-summary"}


@pytest.mark.req("FC-UNDO")
async def test_what_is_taken_back_leaves_session_files_too_and_the_summary_is_nobody_s_last_write(
    tmp_path: Path,
) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as store:
        saved = await store.save(Entry(content=GOLDEN))
        clock.turn(60)
        await keeps(store).close_session(notes("s", f"Nadia asked. {GOLDEN}"))
        assert (await layers(store).history(limit=1))[0].action == "summarize"
        taken = await layers(store).undo(None, who="me")
        assert taken.id == saved.id
        assert "golden" not in told(tmp_path)
        assert "Nadia asked." in told(tmp_path)
        await keeps(store).close_session(notes("t", "They sold the boat."))
        written = (await layers(store).history(limit=1))[0]
        await layers(store).undo(written.id, who="me")
        assert "boat" not in told(tmp_path) + await store.preamble()


@pytest.mark.req("HE-O-audit-forget", "GO-D10")
async def test_a_summary_that_failed_is_made_by_the_next_agent_without_what_was_forgotten(tmp_path: Path) -> None:
    asked: list[str] = []
    closing: list[ScriptItem] = [Fail(500)]

    def answer(request: RecordedRequest) -> ScriptItem:
        if request.tools:
            last = request.messages[-1]
            remembers = last.role == "user" and "Remember:" in last.text
            return Call("remember", {"content": GOLDEN}) if remembers else Say("Good.")
        asked.append(request.messages[0].text)
        return closing[0]

    def agent(session: str) -> HarnessAgent:
        return HarnessAgent.with_recommended_settings(
            ScriptedModel(answer),
            memory=MemoryConfig(root=tmp_path / "r", hooks=False, closing_summary="sync"),
            scope=SCOPE,
            session=session,
            settings=settings(tmp_path / "r"),
        )

    async with agent("one") as first:
        await first.send("Please look after Nadia's harbour.")
        await first.send("Remember: the fixtures live in testdata/golden.")
    assert asked
    assert "golden" in asked[0]
    assert "pending" in told(tmp_path)
    async with opened(tmp_path, HandClock()) as store:
        (entry,) = await layers(store).entries()
        await layers(store).forget(entry.id, who="me")
        assert await keeps(store).pending_sessions() == ("one",)
    asked.clear()
    closing[0] = Say("They looked after a harbour.\nTAGS: harbour")
    async with agent("two") as second:
        while not asked:
            await second.send("Hello.")
    assert "Nadia's harbour" in asked[0]
    assert "golden" not in asked[0]
    assert "They looked after a harbour." in told(tmp_path)
    assert "golden" not in told(tmp_path)


@pytest.mark.req("HE-O-audit-forget")
async def test_a_summary_that_was_made_before_a_forget_says_nothing_of_it_afterwards(tmp_path: Path) -> None:
    async with opened(tmp_path, HandClock()) as store:
        saved = await store.save(Entry(content=GOLDEN, by="agent"))
        about = replace(notes("s", f"A talk. {GOLDEN}"), open_threads=(GOLDEN, "Paint the harbour."))
        await layers(store).forget(saved.id, who="user")
        await keeps(store).close_session(about)
    assert "golden" not in told(tmp_path)
    assert "A talk." in told(tmp_path)
    assert "Paint the harbour." in told(tmp_path)
