"""What is remembered for one session is seen in it alone, and is gone from files and index when it ends."""

import signal
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from agents_at_work import settings
from command_line import ricordo
from hand_clock import HandClock
from places import place_of
from ricordo import Entry, HarnessAgent, Memory, MemoryConfig, Scope
from ricordo.errors import InvalidScope, ScopeMismatch
from ricordo.messages import Message, Text
from ricordo.testing import Call, Say, ScriptedModel, ScriptItem

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-C5-local"), pytest.mark.may_block("the test looks at files")]

PORT = "The test server of today listens on port heron8123."
WORD = "heron8123"


def of(session: str | None, user: str = "me") -> Scope:
    return Scope(user=user, project="shop", session=session)


def holding(root: Path, word: str = WORD) -> list[str]:
    """Return the files below the root, databases too, that hold the word."""
    return [str(path) for path in root.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


async def die(script: str) -> int | None:
    """Return how a process that runs `script` ended."""
    return (await anyio.run_process([sys.executable, "-c", script], check=False)).returncode


async def seen(memory: Memory) -> str:
    """Return all that a memory tells of what it holds."""
    told = [await memory.entries(), await memory.recall(WORD, limit=20), await memory.search(WORD, limit=20)]
    told += [await memory.preamble(), await memory.history(), await memory.explain(WORD)]
    return "\n".join(map(repr, told))


async def test_a_memory_of_a_session_is_found_in_it_and_in_no_other(tmp_path: Path) -> None:
    root = tmp_path / "r"
    async with Memory.open(root, scope=of("s1")) as memory:
        saved = await memory.remember(PORT, scope="session")
        await memory.remember("We deploy only from main.")
        assert saved.scope == of("s1")
        assert saved.source.session == "s1"
        assert [hit.entry.id for hit in await memory.recall(WORD, limit=1)] == [saved.id]
        assert WORD in await memory.preamble()
        for other in (of("s2"), of(None), of("S1"), of("s1", user="ben"), Scope(project="shop", session="s1")):
            async with Memory.open(root, scope=other) as beside:
                assert WORD not in await seen(beside), other
        async with Memory.open(root, scope=of("s1")) as again:
            assert WORD in await seen(again)
    assert holding(root) != []


async def test_the_end_of_a_session_leaves_nothing_of_it_in_files_and_index(tmp_path: Path) -> None:
    root = tmp_path / "r"
    async with Memory.open(root, scope=of("s1")) as memory:
        kept = await memory.remember("We deploy only from main.")
        await memory.remember(PORT, scope="session")
        await memory.remember("x " * 3000 + WORD, scope="session")
        await memory.recall(WORD)
        await memory.end_session()
        assert WORD not in await seen(memory)
        assert [entry.id for entry in await memory.entries()] == [kept.id]
        await memory.end_session()
    assert holding(root) == []
    assert list((place_of(root) / "local").iterdir()) == []


async def test_an_index_in_a_folder_of_its_own_ends_with_the_session_too(tmp_path: Path) -> None:
    root = tmp_path / "r"
    apart = replace(settings(root), index=tmp_path / "indexes")
    async with Memory.open(root, scope=of("s1"), settings=apart) as memory:
        await memory.remember(PORT, scope="session")
        assert holding(tmp_path / "indexes") != []
        await memory.end_session()
    assert holding(tmp_path) == []


async def test_what_was_learned_from_the_conversation_in_the_same_words_goes_with_it(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "r", scope=of("s1")) as memory:
        await memory.ingest([Message(role="user", parts=(Text(text=f"{PORT} We always use it."),))], session="s1")
        await memory.remember(PORT, scope="session")
        await memory.end_session()
        assert WORD not in repr(await memory.entries())
        assert WORD not in repr(await memory.recall(WORD))


async def test_a_session_of_which_a_process_died_is_erased_by_the_next_one(tmp_path: Path) -> None:
    root = tmp_path / "r"
    script = (
        "import anyio, os, signal\nfrom ricordo import Memory, Scope\n"
        "async def main():\n"
        f"    scope = Scope(user='me', project='shop', session='s1')\n"
        f"    memory = await Memory.open({str(root)!r}, scope=scope)\n"
        f"    await memory.remember({PORT!r}, scope='session')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "anyio.run(main)\n"
    )
    assert await die(script) == -signal.SIGKILL
    assert holding(root) != []
    # the process that continues the session has what it remembered
    async with Memory.open(root, scope=of("s1")) as memory:
        assert WORD in repr(await memory.entries())
    assert await die(script) == -signal.SIGKILL
    async with Memory.open(root, scope=of("s2")):
        assert holding(root) == []


async def test_a_session_that_nobody_uses_for_a_day_has_ended(tmp_path: Path) -> None:
    root, clock = tmp_path / "r", HandClock(datetime.now(UTC))
    async with Memory.open(root, scope=of("s1"), clock=clock) as memory:
        await memory.remember(PORT, scope="session")
    clock.turn(hours=23)
    async with Memory.open(root, scope=of("s2"), clock=clock):
        assert holding(root) != []
    clock.turn(hours=2)
    async with Memory.open(root, scope=of("s2"), clock=clock):
        assert holding(root) == []


async def test_a_session_ends_when_the_last_process_that_uses_it_ends_it(tmp_path: Path) -> None:
    root = tmp_path / "r"
    async with Memory.open(root, scope=of("s1")) as one, Memory.open(root, scope=of("s1")) as two:
        await one.remember(PORT, scope="session")
        assert WORD in repr(await two.recall(WORD))
        await one.end_session()
        assert WORD in repr(await two.recall(WORD))
        await two.end_session()
        assert WORD not in repr([*await one.recall(WORD), *await two.recall(WORD), *await one.entries()])
        # it goes on if something is remembered for it again
        await one.remember(PORT, scope="session")
        assert WORD in repr(await two.recall(WORD))


async def test_an_end_that_was_interrupted_is_finished_by_the_next_process(tmp_path: Path) -> None:
    root = tmp_path / "r"
    async with Memory.open(root, scope=of("s1")) as memory:
        await memory.remember(PORT, scope="session")
    folder = place_of(root) / "local"
    (folder / "s1").rename(folder / ".ended-1")
    async with Memory.open(root, scope=of("s1")) as memory:
        assert WORD not in await seen(memory)
    assert holding(root) == []


async def test_an_agent_that_is_left_ends_its_session(tmp_path: Path) -> None:
    root = tmp_path / "r"
    lines: list[ScriptItem] = [
        Call("remember", {"content": PORT, "scope": "session"}),
        Say("Done."),
        Call("recall", {"query": WORD}),
        Say("Yes."),
    ]
    model = ScriptedModel(lines)
    async with HarnessAgent(model, memory=root, scope=of(None), session="s1") as agent:
        await agent.send("Remember the port for today.")
        await agent.send("Which port was it?")
        assert WORD in repr(model.requests[-1].messages[-1].tool_results)
        async with Memory.open(root, scope=of("s2")) as beside:
            assert WORD not in repr(await beside.entries())
    async with Memory.open(root, scope=of("s1")) as memory:
        assert WORD not in repr([*await memory.entries(), *await memory.recall(WORD)])
    assert [path for path in holding(root) if "/agents/" not in path and "memory_index" not in path] == []


async def test_an_agent_that_keeps_its_session_is_continued_by_the_next_one(tmp_path: Path) -> None:
    config = MemoryConfig(root=tmp_path / "r", keeps_session=True)
    saving: list[ScriptItem] = [Call("remember", {"content": PORT, "scope": "session"}), Say("Done.")]
    for script, expected in ((saving, False), ([Say("Hi.")], True)):
        model = ScriptedModel(script)
        async with HarnessAgent(model, memory=config, scope=of(None), session="s1") as agent:
            await agent.send("Hello.")
            assert (WORD in repr(model.requests[0].messages[0])) is expected


async def test_nothing_is_saved_for_a_session_that_is_not_this_one(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "r", scope=of(None)) as memory:
        with pytest.raises(InvalidScope, match="open for no session"):
            await memory.remember(PORT, scope="session")
        with pytest.raises(ScopeMismatch):
            await memory.remember(PORT, scope=of("s1"))
    async with Memory.open(tmp_path / "r", scope=of("s1")) as memory:
        with pytest.raises(ScopeMismatch):
            await memory.remember_many([Entry(content=PORT, scope=of("s2"))])
        with pytest.raises(InvalidScope, match="one of"):
            await memory.remember(PORT, scope="everyone")  # type: ignore[arg-type]
        assert await memory.entries() == []


def test_commands_remember_for_a_session_and_end_it(tmp_path: Path) -> None:
    root = ["--root", str(tmp_path / "r")]
    saved = ricordo("remember", PORT, "--session", "s1", "--json", *root).document
    assert WORD in Path(saved["file"]).read_text(encoding="utf-8")
    for command in (["recall", WORD], ["ask", f"Which port is {WORD}?"]):
        assert WORD in repr(ricordo(*command, "--session", "s1", "--json", *root).document)
        assert "listens" not in repr(ricordo(*command, "--session", "s2", "--json", *root).document)
        assert "listens" not in repr(ricordo(*command, "--json", *root).document)
    assert ricordo("session", "end", "s1", "--json", *root).document == {"ended": "s1"}
    assert "listens" not in repr(ricordo("recall", WORD, "--session", "s1", "--json", *root).document)
    assert holding(tmp_path) == []
    assert ricordo("remember", PORT, "--session", "s1", "--shared", *root).code == 2
