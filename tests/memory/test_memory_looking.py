"""Looking into memory: what is asked decides what is read, and every way of asking says no in the same words."""

import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from places import place_of
from ricordo import Entry, Memory, Message, Scope
from ricordo.errors import ChangeNotFound, EntryNotFound, InvalidEntry, InvalidQuery, InvalidScope
from ricordo.messages import Text
from ricordo.workspace import render_entry

pytestmark = pytest.mark.anyio
Opened = Callable[..., AbstractAsyncContextManager[Memory]]


def said(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


class Later:
    """A clock that is ten years ahead."""

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(days=3653)

    def today(self) -> date:
        return self.now().date()


@pytest.mark.req("HE-O-audit-forget")
async def test_a_copy_of_a_forgotten_memory_is_recalled_no_more_from_any_visible_root(opened: Opened) -> None:
    async with opened() as memory:
        entry = await memory.remember("The wombat sleeps.", scope=Scope(user="me"), reason="holds everywhere")
        curated = place_of(memory.root) / "workspace" / "MEMORY.md"
        curated.parent.mkdir(exist_ok=True)
        curated.write_text("# Memory\n\n" + render_entry(entry) + "- Kept.\n")
        assert len(await memory.recall("wombat")) >= 1
        await memory.forget(entry.id)
        assert await memory.recall("wombat") == []
        assert [found.content for found in await memory.entries()] == ["Kept."]
        assert [item.action for item in await memory.history()].count("forget") == 2


async def test_looking_for_less_than_one_is_refused_everywhere(opened: Opened) -> None:
    async with opened() as memory:
        await memory.remember("One.")
        for limit in (0, -1):
            for ask in (memory.recall, memory.search):
                with pytest.raises(InvalidQuery):
                    await ask("one", limit=limit)
            with pytest.raises(InvalidQuery):
                await memory.history(limit=limit)


@pytest.mark.req("HE-O-audit-list", "CC-AGE")
async def test_ages_are_counted_from_the_clock_that_was_given(opened: Opened) -> None:
    async with opened() as memory:
        await memory.remember("The wombat sleeps.")
    async with opened(clock=Later()) as memory:
        for hits in (await memory.recall("wombat"), await memory.search("wombat")):
            assert "today" not in hits[0].explanation
            assert hits[0].explanation != ""
        answered = await memory.answer("What does the wombat do?")
        assert all("today" not in hit.explanation for hit in [answered.hit, *answered.others] if hit)


@pytest.mark.req("HE-O-audit-list")
async def test_the_sessions_of_an_agent_are_found_whatever_its_name(opened: Opened) -> None:
    for agent in ("Claude Code", "coder", "Großer Agent/1"):
        async with opened(Scope(user="me", project="shop", agent=agent)) as memory:
            await memory.ingest([said("Hello there.")], session="s-of-it")
            assert [info.session for info in await memory.sessions()] == ["s-of-it"]
            assert [message.text for message in (await memory.session("s-of-it")).messages] == ["Hello there."]


@pytest.mark.req("HE-A6")
async def test_what_was_saved_is_read_back_with_the_scope_and_session_it_was_returned_with(opened: Opened) -> None:
    async with opened(Scope(user="me", project="shop", session="S1")) as memory:
        for scope in (None, Scope(user="me", session="S1")):
            entry = await memory.remember("Now.", scope=scope)
            assert entry.source.session == "S1"
            assert await memory.entry(entry.id) == entry


async def test_undoing_what_was_forgotten_says_so(opened: Opened) -> None:
    async with opened() as memory:
        entry = await memory.remember("One.")
        await memory.forget(entry.id)
        with pytest.raises(ChangeNotFound, match="was forgotten"):
            await memory.undo(entry.id)
        with pytest.raises(EntryNotFound, match=rf"{entry.id} was forgotten at 20.*Z by user\."):
            await memory.entry(entry.id)
        await memory.undo()
        assert (await memory.undo(entry.id)).entries == (entry.id,)


async def test_tags_are_several_texts(opened: Opened) -> None:
    async with opened() as memory:
        with pytest.raises(InvalidEntry):
            await memory.remember("One.", tags="abc")
        assert await memory.entries() == []


async def test_a_scope_with_a_secret_in_it_opens_nothing(tmp_path: Path) -> None:
    secret = "AKIA" + "Q7ZP4MX2WT6RB3KD"
    for scope in (Scope(user="me", project=secret), Scope(user="me", agent=secret)):
        with pytest.raises(InvalidScope):
            async with Memory.open(tmp_path / "root", scope=scope):
                pass
    assert os.listdir(tmp_path) == []


async def test_the_preamble_of_many_shows_the_newest_and_counts_the_rest(opened: Opened) -> None:
    async with opened() as memory:
        folder = place_of(memory.root) / "workspace" / "memory"
        folder.mkdir(parents=True, exist_ok=True)
        for day in range(1, 10):
            bullets = [
                render_entry(
                    Entry(
                        content=f"Fact {day}-{number}.",
                        id=f"{day:010}-{number:015}",
                        time=datetime(2026, 1, day, tzinfo=UTC),
                    )
                )
                for number in range(150)
            ]
            (folder / f"2026-01-{day:02}.md").write_text(f"# 2026-01-{day:02}\n\n{''.join(bullets)}")
        text = await memory.preamble()
        assert "Fact 9-149." in text
        assert "Fact 7-" not in text
        shown = text.count("Fact ")
        assert f"{9 * 150 - shown} more did not fit" in text
