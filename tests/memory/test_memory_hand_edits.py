"""What a person corrects by hand in a consolidated root: where an edit counts at once, and where only later."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from places import place_of
from ricordo import Memory, Message
from ricordo.messages import Text

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-C1b")]
Opened = Callable[..., AbstractAsyncContextManager[Memory]]

OLD, NEW = "deploy only from main", "deploy only from release"


def edit(root: Path, pattern: str) -> None:
    [path] = [path for path in (place_of(root) / "workspace").glob(pattern) if OLD in path.read_text(encoding="utf-8")]
    path.write_text(path.read_text(encoding="utf-8").replace(OLD, NEW), encoding="utf-8")


async def learn(opened: Opened, text: str, session: str) -> None:
    async with opened() as memory:
        await memory.ingest([Message(role="user", parts=(Text(text=text),))], session=session)


async def seen(opened: Opened) -> tuple[str, str, str]:
    """Return the memory as recall, the list and the preamble have it."""
    async with opened() as memory:
        hit = (await memory.recall("where do we deploy from"))[0].entry
        return hit.content, (await memory.entry(hit.id)).content, await memory.preamble()


async def test_an_edit_of_curated_memory_counts_at_once_and_stays(root: Path, opened: Opened) -> None:
    await learn(opened, f"We decided to {OLD}.", "monday")
    edit(root, "MEMORY.md")
    for _ in range(2):
        assert all(NEW in text and OLD not in text for text in await seen(opened))
        await learn(opened, "We decided to use uv, not conda.", "tuesday")


async def test_an_edit_of_the_ledger_line_of_a_curated_memory_counts_from_the_next_consolidation(
    root: Path, opened: Opened
) -> None:
    await learn(opened, f"We decided to {OLD}.", "monday")
    edit(root, "memory/2*.md")
    assert all(OLD in text and NEW not in text for text in await seen(opened))
    await learn(opened, "We decided to use uv, not conda.", "tuesday")
    assert all(NEW in text and OLD not in text for text in await seen(opened))


async def test_a_bullet_deleted_from_curated_memory_stays_deleted_there_and_is_found_in_its_ledger(
    root: Path, opened: Opened
) -> None:
    await learn(opened, f"We decided to {OLD}.", "monday")
    clear(root)
    await learn(opened, "We decided to use uv, not conda.", "tuesday")
    content, _, preamble = await seen(opened)
    assert OLD in content
    assert OLD not in preamble
    assert "uv" in preamble


def clear(root: Path) -> None:
    path = place_of(root) / "workspace" / "MEMORY.md"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if OLD not in line), encoding="utf-8")
