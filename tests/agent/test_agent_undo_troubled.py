"""Undoing where other things happened: other strategies, files that are lost, a root that can only be read."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from agents_at_work import SCOPE, said, settings, transcript
from places import place_of
from ricordo import CompactionConfig, HarnessAgent
from ricordo.context import SlidingWindow, Strategy
from ricordo.errors import StorageReadOnly, UndoRefused
from ricordo.messages import get_mark
from ricordo.testing import Say, ScriptedModel
from ricordo.workspace import DEFAULT_AGENT, state_path, transcript_path

pytestmark = [pytest.mark.anyio, pytest.mark.req("CC-UNDO")]

LONG = "some more words to fill a line, " * 5


def agent(root: Path, *, keep: int | None = None, strategies: Sequence[Strategy] | None = None) -> HarnessAgent:
    compaction = None if keep is None else CompactionConfig(trigger_messages=0, trigger_tokens=0, keep_messages=keep)
    return HarnessAgent(
        ScriptedModel(lambda request: Say(f"Yes. {LONG}")),
        memory=root,
        scope=SCOPE,
        session="s",
        settings=settings(root),
        compaction=compaction,
        strategies=strategies,
    )


async def compacted(root: Path, *, keep: int = 2) -> str:
    """Let a session be summed up once, and return the handle."""
    async with agent(root, keep=keep) as one:
        await one.record([said(f"Number {number}. {LONG}") for number in range(12)])
        await one.compact()
        (made,) = await one.compactions.all()
        return made.handle


@pytest.mark.parametrize("older_first", [True, False])
async def test_undoing_an_older_one_and_then_a_newer_one_keeps_the_order_of_the_conversation(
    tmp_path: Path, older_first: bool
) -> None:
    root = tmp_path / ".ricordo"
    first = await compacted(root, keep=1)
    async with agent(root) as one:
        await one.compactions.pin(one.window[-1].id)
        for number in range(4):
            await one.send(f"Turn {number}.")
    async with agent(root, strategies=[SlidingWindow(keep_messages=3)]) as again:
        await again.send("One more.")
        slide = next(made.handle for made in await again.compactions.all() if made.action == "slide")
        for handle in (first, slide) if older_first else (slide, first):
            made = await again.compactions.undo(handle)
            assert made.missing == 0
        while not all(made.is_undone for made in await again.compactions.all()):
            await again.compactions.undo()
        assert [message.id for message in again.window] == [message.id for message in await transcript(root)]
        assert not any(get_mark(message) for message in again.window)


async def test_a_root_that_can_only_be_read_lists_and_opens_what_is_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / ".ricordo"
    handle = await compacted(root)
    monkeypatch.setattr("ricordo.agent.session_factory._is_writable", lambda root: False)
    before = {path: path.read_bytes() for path in (place_of(root) / "workspace").rglob("*") if path.is_file()}
    async with agent(root, keep=1) as one:
        assert not one.is_recorded
        assert [made.handle for made in await one.compactions.all()] == [handle]
        opened = await one.compactions.expand(handle)
        assert [message.text.split(".")[0] for message in opened] == [f"Number {number}" for number in range(10)]
        await one.send("And now?")
        (done,) = [report for report in await one.compact() if report.action == "compact"]
        assert (done.status, done.handle) == ("done", "")
        assert [made.handle for made in await one.compactions.all()] == [handle]
        with pytest.raises(StorageReadOnly):
            await one.compactions.undo(handle)
    assert before == {path: path.read_bytes() for path in (place_of(root) / "workspace").rglob("*") if path.is_file()}


@pytest.mark.req("AS-BUG-29")
async def test_after_a_state_was_set_aside_no_summary_stands_beside_the_conversation(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    await compacted(root, keep=6)
    async with agent(root, keep=1) as one:
        await one.compact()
    (place_of(root) / state_path(DEFAULT_AGENT, "s")).write_bytes(b"{")
    async with agent(root) as again:
        newest, oldest = await again.compactions.all()
        with pytest.raises(UndoRefused, match=f"{newest.handle}.*not in the window any more"):
            await again.compactions.undo()
        await again.compactions.undo(oldest.handle)
        assert again.window == await transcript(root)


async def test_what_is_lost_is_told_and_a_clear_is_not_undone(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    handle = await compacted(root)
    (place_of(root) / transcript_path(DEFAULT_AGENT, "s")).unlink()
    async with agent(root, strategies=[SlidingWindow(keep_messages=1)]) as one:
        before = one.window
        with pytest.raises(UndoRefused, match="10 in all"):
            await one.compactions.undo(handle)
        opened = await one.compactions.expand(handle)
        assert (len(opened), opened.missing, one.window) == (0, 10, before)
        await one.compact()
        await one.clear()
        with pytest.raises(UndoRefused, match="emptied since"):
            await one.compactions.undo()
        assert one.window == ()
