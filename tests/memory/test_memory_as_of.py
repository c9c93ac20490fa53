"""What was remembered then, what each write did, and what was done in the background: all without git."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agents_at_work import SCOPE, settings
from command_line import ricordo
from hand_clock import HandClock
from places import place_of
from ricordo import HarnessAgent, Memory
from ricordo.errors import ChangeNotFound, EntryNotFound, InvalidQuery
from ricordo.testing import Say, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

pytestmark = [pytest.mark.anyio, pytest.mark.req("FC-UNDO")]


def documents(root: Path) -> dict[str, bytes]:
    """Return the memory documents; an empty folder counts for nothing."""
    folder = place_of(root) / "workspace"
    found = [*folder.glob("MEMORY.md"), *(folder / "memory").rglob("*.md")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def contents(entries: list) -> set[str]:  # type: ignore[type-arg]
    return {entry.content for entry in entries}


@pytest.mark.req("FC-UNDO")
async def test_every_write_is_one_change_that_can_be_looked_at_dated_and_taken_back_to_the_byte(tmp_path: Path) -> None:
    root, clock = tmp_path / ".ricordo", HandClock()
    given = settings(root, consolidates=True)
    marks: list[datetime] = []

    def passing() -> datetime:
        clock.turn(hours=1)
        marks.append(clock.now())
        clock.turn(hours=1)
        return marks[-1]

    async with Memory.open(root, scope=SCOPE, settings=given, clock=clock) as memory:
        main = await memory.remember("We deploy only from main.", kind="decision")
        first = passing()
        await memory.remember("The retro is on Fridays.")
        second = passing()
    before = documents(root)
    model = ScriptedModel([Say("Good.")])
    async with HarnessAgent(model, memory=root, scope=SCOPE, settings=given, clock=clock) as agent:
        run = await agent.consolidate()
    assert run.change_id
    third = passing()
    async with Memory.open(root, scope=SCOPE, settings=given, clock=clock) as memory:
        curated = documents(root)
        await memory.forget(main.id)
        fourth = passing()
        assert contents(await memory.entries(as_of=first - timedelta(hours=2))) == set()
        assert contents(await memory.entries(as_of=first)) == {"We deploy only from main."}
        both = {"We deploy only from main.", "The retro is on Fridays."}
        assert contents(await memory.entries(as_of=second)) == both
        assert contents(await memory.entries(as_of=third)) == both
        assert contents(await memory.entries(as_of=fourth)) == {"The retro is on Fridays."}
        assert contents(await memory.entries()) == {"The retro is on Fridays."}
        assert (await memory.entry(main.id[-8:], as_of=second)).kind == "decision"
        with pytest.raises(EntryNotFound):
            await memory.entry(main.id, as_of=fourth)

        forgot = await memory.diff()
        assert forgot.item.action == "forget"
        assert any("-- We deploy only from main." in file.text for file in forgot.files)
        saved = (
            await memory.diff(main.id) if main.id in {i for h in await memory.history() for i in h.entries} else None
        )
        assert saved is None, "a save whose entry is forgotten stands in no ledger"
        made = await memory.diff(run.change_id)
        (listed,) = [file for file in made.files if file.path.endswith("/MEMORY.md")]
        assert listed.created
        assert (listed.removed_lines, listed.added_lines > 1) == (0, True)

        await memory.undo(forgot.item.id)
        assert documents(root) == curated
        await memory.undo(run.change_id)
        assert {path: data for path, data in documents(root).items() if path in before} == before
        assert "MEMORY.md" not in documents(root)
        acts = [item.action for item in await memory.history()]
        assert acts == ["undo", "undo", "forget", "consolidate", "save", "save"]
    assert not list(root.rglob(".git"))


def everything(root: Path) -> dict[str, bytes]:
    """Return what people read of a root: the documents, the profile and what is forgotten."""
    folder = place_of(root) / "workspace"
    found = [path for path in folder.rglob("*") if path.suffix in {".md", ".json"} and "agents" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.mark.req("FC-UNDO")
async def test_each_kind_of_write_is_one_change_and_undo_gives_back_every_byte(tmp_path: Path) -> None:
    root, clock = tmp_path / ".ricordo", HandClock()
    async with Memory.open(root, scope=SCOPE, settings=settings(root), clock=clock) as memory:
        entry, profile = await memory.remember("The retro is on Fridays."), memory.profile()
        fact = await profile.add_fact("Likes tea")
        writes: dict[str, Callable[[], Awaitable[object]]] = {
            "save": lambda: memory.remember("The shop has a red door. " + "It is old. " * 600),
            "pin": lambda: memory.pin(entry.id),
            "forget": lambda: memory.forget(entry.id),
            "add a fact": lambda: profile.add_fact("Likes milk"),
            "change a fact": lambda: profile.update_fact(fact.id, content="Likes coffee"),
            "summary": lambda: profile.set_summary("topOfMind", "The launch."),
            "remove a fact": lambda: profile.remove_fact(fact.id),
            "import": lambda: profile.import_document('{"facts": [{"content": "Sails"}]}', mode="replace"),
            "clear": profile.clear,
        }
        for name, write in writes.items():
            before, known = everything(root), {item.id for item in await memory.history()}
            clock.turn(60)
            await write()
            assert everything(root) != before, name
            (item,) = [item for item in await memory.history() if item.id not in known]
            clock.turn(60)
            assert (await memory.undo()).id == item.id
            assert everything(root) == before, name


async def test_a_moment_has_an_offset_and_what_history_gave_up_is_said_to_be_gone(tmp_path: Path) -> None:
    root, clock = tmp_path / ".ricordo", HandClock()
    async with Memory.open(root, scope=SCOPE, settings=settings(root), clock=clock) as memory:
        entry = await memory.remember("We deploy only from main.")
        clock.turn(hours=1)
        with pytest.raises(InvalidQuery, match="offset"):
            await memory.entries(as_of=datetime(2026, 11, 21))
        with pytest.raises(ChangeNotFound):
            await memory.diff("nothing-like-it")
        then = clock.now()
        clock.turn(hours=1)
        await memory.forget(entry.id)
        for path in (place_of(root) / "history" / "objects").rglob("*.z"):
            path.unlink()
        with pytest.raises(ChangeNotFound, match="not kept any more"):
            await memory.entries(as_of=then)
        with pytest.raises(ChangeNotFound, match="not kept any more"):
            await memory.diff()


@pytest.mark.req("FC-UNDO")
async def test_a_moment_before_several_changes_of_one_memory_shows_it_without_any_of_them(tmp_path: Path) -> None:
    root, clock = tmp_path / ".ricordo", HandClock()
    async with Memory.open(root, scope=SCOPE, settings=settings(root), clock=clock) as memory:
        entry = await memory.remember("We deploy only from main.")
        clock.turn(hours=1)
        then = clock.now()
        for change in (memory.pin, memory.forget):
            clock.turn(hours=1)
            await change(entry.id)
        (before,) = await memory.entries(as_of=then)
        assert (before.id, before.pinned) == (entry.id, False)
        (between,) = await memory.entries(as_of=then + timedelta(minutes=90))
        assert (between.id, between.pinned) == (entry.id, True)


async def test_runs_tell_what_was_done_in_the_background(tmp_path: Path) -> None:
    root, clock = tmp_path / ".ricordo", HandClock()
    model = ScriptedModel([Say("Good.")])
    async with HarnessAgent(
        model, memory=root, scope=SCOPE, session="one", settings=settings(root), clock=clock
    ) as agent:
        await agent.send("We deploy only from main.")
        assert await agent.flush()
    async with Memory.open(root, scope=SCOPE, settings=settings(root), clock=clock) as memory:
        (run, *_) = [run for run in await memory.background_runs() if run.kind == "flush"]
        assert (run.state, run.session, run.error) == ("done", "one", "")
        assert run.ended_at is not None
        assert run.phases["extract"]["entries"] == 1
        assert run.spent.requests == 0
        with pytest.raises(InvalidQuery):
            await memory.background_runs(limit=0)


@pytest.mark.req("FC-UNDO")
def test_the_command_line_shows_a_diff_the_runs_and_what_was_then() -> None:
    ricordo("remember", "We deploy only from main.")
    diff = ricordo("diff")
    assert diff.code == 0
    assert "+- We deploy only from main." in diff.out
    (file,) = ricordo("diff", "--json").document["files"]
    assert (file["added"], file["removed"]) == (1, 0)
    saved = ricordo("memory", "list", "--json").document["entries"][0]
    assert ricordo("memory", "list", "--as-of", "2020-01-01", "--json").document["entries"] == []
    ricordo("forget", saved["id"], "--yes")
    assert ricordo("memory", "list", "--json").document["entries"] == []
    shown = ricordo("memory", "show", saved["id"], "--as-of", saved["time"], "--json")
    assert shown.document["content"] == "We deploy only from main."
    assert "no change" in ricordo("diff", "nothing-like-it").err
    assert ricordo("history", "--runs").code == 0
    assert isinstance(ricordo("history", "--runs", "--json").document["runs"], list)
