"""`undo` without an id: the newest act of the person who asks, by the order of writing."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from agents_at_work import SCOPE
from hand_clock import HandClock
from places import place_of
from ricordo import HarnessAgent, Memory, Message, Scope
from ricordo.errors import ChangeNotFound
from ricordo.messages import Text

pytestmark = [pytest.mark.anyio, pytest.mark.req("FC-UNDO")]

Opened = Callable[..., AbstractAsyncContextManager[Memory]]
ANN, BOB = Scope(user="ann", project="shop"), Scope(user="bob", project="shop")


def said(*texts: str) -> list[Message]:
    return [Message(role="user", parts=(Text(text=text),)) for text in texts]


async def contents(memory: Memory) -> set[str]:
    return {entry.content for entry in await memory.entries()}


async def test_it_passes_over_what_an_agent_saved_and_the_background_learned(opened: Opened, root: Path) -> None:
    async with opened() as memory:
        await memory.remember("We use uv.")
    async with HarnessAgent("offline", memory=root, scope=SCOPE, session="s") as agent:
        await agent.send("My sister Ana lives in Porto.")
        await agent.send("We decided to deploy only from main.")
    async with opened() as memory:
        noted = await memory.remember("Tests run in CI.", by="agent")
        before = [(item.action, item.actor) for item in await memory.history()]
        assert {("extract", "flush"), ("profile", "profile"), ("save", "agent")} <= {*before}
        assert [(done := await memory.undo()).action, done.actor] == ["save", "user"]
        left = await contents(memory)
        assert "We use uv." not in left
        assert len(left) > 1, "what was learned stays"
        with pytest.raises(ChangeNotFound):
            await memory.undo()
        assert (await memory.undo(noted.id)).actor == "agent"
        assert await contents(memory) == left - {"Tests run in CI."}


async def test_it_takes_back_the_acts_of_its_own_user_and_shows_no_private_ones_of_others(opened: Opened) -> None:
    async with opened(ANN) as ann, opened(BOB) as bob:
        anns = await ann.remember("Ann's fact is here.")
        bobs = await bob.remember("Bob's fact is here.")
        pinned = await bob.pin(bobs.id)
        shown = {item.id for item in await ann.history()}
        assert anns.id in shown
        assert bobs.id not in shown
        assert not any(item.action == "pin" for item in await ann.history())
        assert [item.action for item in await bob.history()] == ["pin", "save"]
        with pytest.raises(ChangeNotFound):
            await ann.undo(bobs.id)
        with pytest.raises(ChangeNotFound):
            await ann.undo((await bob.history())[0].id)
        assert (await ann.undo()).id == anns.id
        with pytest.raises(ChangeNotFound):
            await ann.undo()
        assert (await ann.diff()).item.action == "undo"
        assert pinned.pinned
        assert (await bob.undo()).action == "pin"
        assert (await bob.undo()).id == bobs.id


async def test_what_users_of_a_project_share_stays_the_act_of_who_saved_it(opened: Opened) -> None:
    shared = Scope(project="shop")
    async with opened(ANN) as ann, opened(BOB) as bob:
        first = await ann.remember("We deploy only from main.", scope=shared)
        second = await bob.remember("The retro is on Fridays.", scope=shared)
        agents = await bob.remember("Tests run in CI.", scope=shared, by="agent")
        assert len(await ann.entries()) == 3
        told = [("save", "agent", "bob"), ("save", "user", "bob"), ("save", "user", "ann")]
        for memory in (ann, bob):
            assert [(item.action, item.actor, item.user) for item in await memory.history()] == told
            assert [item.entries for item in await memory.history()] == [(agents.id,), (second.id,), (first.id,)]
        assert (await ann.undo()).entries == (first.id,)
        with pytest.raises(ChangeNotFound):
            await ann.undo()
        with pytest.raises(ChangeNotFound, match="act of bob, who alone can undo it"):
            await ann.undo(second.id)
        assert "+- The retro" in (await ann.diff(second.id)).files[0].text
        assert (await bob.undo()).entries == (second.id,)
        assert (await bob.undo(agents.id)).actor == "agent"
        assert await ann.entries() == []
        third = await ann.remember("The demo is on Mondays.", scope=shared)
        await bob.forget(third.id)
        newest = (await ann.history())[0]
        assert (newest.action, newest.actor, newest.user) == ("forget", "user", "bob")
        with pytest.raises(ChangeNotFound, match="act of bob"):
            await ann.undo(newest.id)
        assert (await bob.undo()).id == newest.id
        assert [entry.id for entry in await ann.entries()] == [third.id]


async def test_the_reason_for_forgetting_a_private_memory_is_told_to_nobody_else(opened: Opened) -> None:
    words = "The harbour pilot lives in the lighthouse."
    async with opened(Scope(project="shop")) as shared:
        await shared.ingest(said(f"Please note: {words}"), session="s1")
    async with opened(ANN) as ann, opened(BOB) as bob:
        private = await bob.remember(words)
        await bob.forget(private.id, reason="I was told in confidence.")
        assert any(item.action == "forget" and item.user == "bob" for item in await ann.history())
        assert "confidence" not in repr(await ann.history())
        assert "confidence" in repr(await bob.history())


@pytest.mark.req("GO-I12")
@pytest.mark.parametrize("at_once", [True, False])
async def test_a_clock_that_is_set_back_changes_no_order(opened: Opened, at_once: bool) -> None:
    clock = HandClock()
    done: list[str] = []

    async def act(memory: Memory, number: int) -> None:
        saved = await memory.remember(f"The harbour {number} is closed.")
        done.append(saved.id)
        clock.turn(seconds=-2)
        await memory.confirm(saved.id)
        done.append((await memory.history(limit=1))[0].id)
        clock.turn(seconds=-2)

    if at_once:
        async with opened(clock=clock) as memory:
            for number in range(3):
                await act(memory, number)
    else:
        for number in range(3):
            async with opened(clock=clock) as memory:
                await act(memory, number)
    clock.turn(days=-3)
    async with opened(clock=clock) as memory:
        assert [item.id for item in await memory.history()] == done[::-1]
        assert [item.id for item in await memory.history(limit=2)] == done[::-1][:2]
    for expected in reversed(done):
        async with opened(clock=clock) as memory:
            assert (await memory.undo()).id == expected
        clock.turn(seconds=-2)


async def test_of_two_that_are_open_at_once_the_last_to_write_is_undone_first_also_after_a_step_back_of_the_clock(
    opened: Opened,
) -> None:
    done: list[str] = []
    one_clock, other_clock = HandClock(), HandClock()
    async with opened(clock=one_clock) as one, opened(clock=other_clock) as other:
        for number, memory in enumerate([one, other, one, one, other, other, one]):
            saved = await memory.remember(f"The harbour {number} is closed.")
            done.append(saved.id)
            for clock in (one_clock, other_clock):
                clock.turn(seconds=-2)
            if number % 2:
                await memory.confirm(saved.id)
                done.append((await memory.history(limit=1))[0].id)
        assert done == sorted(done)
        for expected in reversed(done):
            assert (await other.undo()).id == expected


async def test_an_act_for_all_projects_is_taken_back_in_its_turn(opened: Opened) -> None:
    wide = Scope(user="me")
    clock = HandClock()
    async with opened(clock=clock) as memory:
        await memory.remember("The first is here.")
    clock.turn(seconds=-2)
    async with opened(clock=clock) as memory:
        await memory.remember("I prefer tea.", scope=wide, reason="It holds everywhere.")
    clock.turn(seconds=-2)
    async with opened(clock=clock) as memory:
        await memory.remember("The third is here.")
    async with opened(clock=clock) as memory:
        for left in ({"The first is here.", "I prefer tea."}, {"The first is here."}, set()):
            await memory.undo()
            assert await contents(memory) == left


async def test_what_is_taken_in_is_one_act_and_can_be_taken_in_again(opened: Opened) -> None:
    first, second = said("Nadia owns staging."), said("Paul owns billing.")
    async with opened() as memory:
        done = await memory.ingest(first, session="s")
        await memory.ingest(second, session="t", part_of=done.change_id)
        learned = await contents(memory)
        assert len(learned) == 2
        item = (await memory.history(limit=1))[0]
        assert (item.action, len(item.entries), len(item.paths)) == ("ingest", 2, 1)
        assert "+- Nadia owns staging." in (await memory.diff()).files[0].text
        assert (await memory.undo()).id == done.change_id
        assert await contents(memory) == set()
        assert (await memory.ingest(second, session="t", known={})).entries
        assert await contents(memory) == {"Paul owns billing."}
        assert not (await memory.ingest(second, session="t", known={})).entries, "it is learned once"
    async with opened() as memory:
        assert (await memory.ingest(first, session="s", known={})).entries
        assert await contents(memory) == learned
        await memory.undo()
        assert await contents(memory) == {"Paul owns billing."}


async def test_nothing_in_the_background_learns_again_what_was_taken_back(opened: Opened, root: Path) -> None:
    async with opened() as memory:
        await memory.ingest(said("Nadia owns staging."), session="s")
        await memory.undo()
    (place_of(root) / "queue.db").unlink()
    async with opened() as memory:
        await memory.ingest(said("Nadia owns staging.", "Paul owns billing."), session="other")
        await memory.undo()
        await memory.ingest(said("Paul owns billing."), session="s", known={})
        assert await contents(memory) == {"Paul owns billing."}


async def test_of_a_session_only_what_was_taken_back_is_learned_again(opened: Opened) -> None:
    async with opened() as memory:
        done = await memory.ingest(said("Nadia owns staging."), session="s")
        await memory.ingest(said("Paul owns billing."), session="s")
        await memory.undo(done.change_id)
        again = await memory.ingest(said("Nadia owns staging."), session="s", known={})
        assert [entry.content for entry in again.entries] == ["Nadia owns staging."]
        assert await contents(memory) == {"Nadia owns staging.", "Paul owns billing."}
