"""Undo as a user meets it: what a session taught is out of memory, curated memory too, and can be brought back."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from places import place_of
from ricordo import FlushConfig, Memory, Message
from ricordo.curation import ConsolidationConfig
from ricordo.errors import ChangeNotFound
from ricordo.messages import Text
from ricordo.runtime import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-O-audit-forget", "FC-UNDO")]

Opened = Callable[..., AbstractAsyncContextManager[Memory]]


def said(text: str) -> list[Message]:
    return [Message(role="user", parts=(Text(text=text),))]


def documents(root: Path) -> dict[str, str]:
    """Return MEMORY.md, the topics and the ledgers by path."""
    found = [
        place_of(root) / "workspace" / "MEMORY.md",
        *sorted((place_of(root) / "workspace" / "memory").rglob("*.md")),
    ]
    return {str(path.relative_to(place_of(root))): path.read_text(encoding="utf-8") for path in found}


async def remembered(memory: Memory) -> list[str]:
    """Return what recall finds in memory about the owner of staging, transcripts left out."""
    hits = await memory.recall("Who owns staging?")
    return [hit.entry.content for hit in hits if "/sessions/" not in hit.path]


@pytest.mark.req("HE-O-conflict")
async def test_what_was_extracted_and_curated_is_out_of_memory_after_one_undo(opened: Opened, root: Path) -> None:
    async with opened() as memory:
        await memory.ingest(said("Nadia owns staging."), session="s")
    assert "Nadia" in documents(root)["workspace/MEMORY.md"]
    async with opened() as memory:
        assert "Nadia owns staging." in await remembered(memory)
        assert (await memory.undo()).action == "ingest"
        assert await remembered(memory) == []
        assert await memory.preamble() == ""
        assert await memory.entries() == []
        with pytest.raises(ChangeNotFound):
            await memory.undo()
    async with opened() as memory:
        await memory.ingest(said("Paul owns the billing of Hamburg."), session="t")
    assert "Paul" in documents(root)["workspace/MEMORY.md"]
    assert not any("Nadia" in text for text in documents(root).values())


async def test_a_save_that_is_taken_back_answers_no_more_and_does_again_when_that_is_taken_back(
    opened: Opened, root: Path
) -> None:
    async with opened() as memory:
        saved = await memory.remember("Nadia owns staging.")
        await memory.ingest(said("Paul owns the billing of Hamburg."), session="t")
    before = documents(root)
    async with opened() as memory:
        assert "Nadia" in (await memory.answer("Who owns staging?")).text
        await memory.undo(saved.id)
        assert "Nadia" not in (await memory.answer("Who owns staging?")).text
        assert "Nadia" not in await memory.preamble()
        taken_back = next(item for item in await memory.history() if item.action == "undo")
        await memory.undo(taken_back.id)
        assert "Nadia" in (await memory.answer("Who owns staging?")).text
    assert documents(root) == before


@pytest.mark.req("HE-C1b")
async def test_a_save_whose_curated_line_is_in_a_topic_is_taken_out_of_it(opened: Opened, root: Path) -> None:
    config = ConsolidationConfig(max_lines=8)
    settings = replace(Settings.from_environment(), consolidation=config, flush=FlushConfig(closing_seconds=40.0))
    async with opened(settings=settings) as memory:
        saved = [await memory.remember(f"Porto harbour {number} is closed.") for number in range(6)]
        await memory.ingest(said("Paul owns the billing of Hamburg."), session="t")
    before = documents(root)
    [topic] = [path for path in before if "/topics/" in path]
    entry = next(each for each in saved if each.id in before[topic])
    async with opened(settings=settings) as memory:
        await memory.undo(entry.id)
        assert not any(entry.id in text for text in documents(root).values())
        assert entry.id not in {hit.entry.id for hit in await memory.recall(entry.content)}
        newest = next(item for item in await memory.history() if item.action == "undo")
        await memory.undo(newest.id)
    assert documents(root) == before
