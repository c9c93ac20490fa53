"""Whatever is asked of a large memory, the event loop is never blocked for more than 50 ms."""

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from hand_made_roots import begun
from loop_guard import LeavesLoopFree
from ricordo import Entry, FlushConfig, Memory, Scope
from ricordo.messages import Message, Text
from ricordo.models import OFFLINE
from ricordo.runtime import Settings
from ricordo.workspace import render_entry

pytestmark = pytest.mark.anyio

SCOPE = Scope(project="harbour")
BEGUN = datetime(2026, 11, 1, tzinfo=UTC)


def settings(folder: Path) -> Settings:
    learning = FlushConfig(model=OFFLINE)
    return Settings(root=None, user="me", data=folder / "data", cache=folder / "cache", flush=learning)


def filled(folder: Path, contents: list[str], document: str = "memory/2026-11-01.md") -> Path:
    """Return a root that holds these memories, in one document."""
    root = begun(folder / "root", folder / "data")
    bullets = (
        render_entry(
            Entry(content=content, kind="fact", id=f"01jd{number:022d}", time=BEGUN + timedelta(seconds=number))
        )
        for number, content in enumerate(contents)
    )
    path = root / "workspace" / document
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("# 2026-11-01\n\n" + "".join(f"{bullet.rstrip()}\n" for bullet in bullets), encoding="utf-8")
    return root


@pytest.mark.req("DF-B19")
async def test_reading_and_changing_a_memory_of_thousands_leaves_the_loop_free(
    tmp_path: Path, leaves_loop_free: LeavesLoopFree
) -> None:
    root = filled(
        tmp_path, [f"The gull {number} sits on crane {number * 7} of quay {number % 9}." for number in range(2_000)]
    )
    async with Memory.open(root, scope=SCOPE, settings=settings(tmp_path)) as memory:
        ids = iter([entry.id for entry in await memory.entries()])
        for act in (
            partial(memory.recall, "Where does gull 77 sit?"),
            partial(memory.recall, "gull crane quay", limit=1_000),
            partial(memory.recall, "", limit=5_000),
            partial(memory.explain, "gull crane", limit=400),
            partial(memory.answer, "Where does gull 77 sit?"),
            memory.preamble,
            memory.entries,
            partial(memory.entries, as_of=BEGUN + timedelta(seconds=1_000)),
            memory.history,
            memory.doctor,
            lambda: memory.pin(next(ids)),
            lambda: memory.forget(next(ids)),
            memory.undo,
            partial(memory.remember, "A new crane is here."),
        ):
            await leaves_loop_free(act)


@pytest.mark.req("DF-B19")
async def test_checking_thousands_of_curated_memories_leaves_the_loop_free(
    tmp_path: Path, leaves_loop_free: LeavesLoopFree
) -> None:
    root = filled(tmp_path, [f"The depth of basin {number} is {number % 7} m." for number in range(2_500)], "MEMORY.md")
    async with Memory.open(root, scope=SCOPE, settings=settings(tmp_path)) as memory:
        await leaves_loop_free(memory.doctor)
        await leaves_loop_free(memory.review)


@pytest.mark.req("DF-B19")
async def test_ranking_hundreds_of_nearly_equal_memories_leaves_the_loop_free(
    tmp_path: Path, leaves_loop_free: LeavesLoopFree
) -> None:
    root = filled(tmp_path, [f"The number of {name} is {number}." for name in ("one", "two") for number in range(300)])
    async with Memory.open(root, scope=SCOPE, settings=settings(tmp_path)) as memory:
        await leaves_loop_free(partial(memory.recall, "the number of two is 77", limit=600))
        assert len(await memory.recall("the number of two is 77", limit=600)) == 600


@pytest.mark.req("DF-B19")
async def test_ingesting_and_learning_from_hundreds_of_messages_leaves_the_loop_free(
    tmp_path: Path, leaves_loop_free: LeavesLoopFree
) -> None:
    said = [
        Message(
            role=role, parts=(Text(text=f"Remember that crane {number} of quay {number % 9} lifts {number} tons."),)
        )
        for number in range(150)
        for role in ("user", "assistant")
    ]
    async with Memory.open(tmp_path / "root", scope=SCOPE, settings=settings(tmp_path)) as memory:
        await leaves_loop_free(partial(memory.ingest, said, session="s"))
        assert len(await memory.entries()) > 100
        await leaves_loop_free(partial(memory.session, "s"))
