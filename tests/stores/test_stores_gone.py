"""A store whose folder is gone says so, and does not say that nothing is kept."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings
from ricordo import Entry, HarnessAgent, MemoryConfig
from ricordo.errors import StorageError
from ricordo.runtime import open_store
from ricordo.stores import Lists
from ricordo.testing import Call, Say, ScriptedModel

pytestmark = pytest.mark.anyio

ENTRY = Entry(content="The door is red.")
PLAIN = ("markdown", "sessions", "jsonl", "json", "kv", "fulltext", "vector", "folder")


def address_of(scheme: str, folder: Path) -> str:
    return f"{scheme}:{folder}{'?embedder=hashing' if scheme == 'vector' else ''}"


@pytest.mark.parametrize("scheme", PLAIN)
async def test_what_was_kept_in_a_folder_that_is_gone_is_not_said_to_be_nothing(scheme: str, tmp_path: Path) -> None:
    folder, away = tmp_path / "notes", tmp_path / "away"
    async with open_store(address_of(scheme, folder), scope=SCOPE, settings=settings(tmp_path / "r")) as store:
        assert await store.recall("door") == []
        await store.save(ENTRY)
        lists = store.offers(Lists)
        assert lists is not None
        folder.rename(away)
        for ask in (lambda: store.recall("door"), store.preamble, lists.entries, lambda: store.save(ENTRY)):
            with pytest.raises(StorageError, match="notes is gone"):
                await ask()
        assert not folder.exists()
        away.rename(folder)
        assert [hit.entry.content for hit in await store.recall("door")] == [ENTRY.content]


@pytest.mark.parametrize("scheme", PLAIN)
async def test_a_folder_that_was_emptied_is_told_and_a_new_one_is_empty(scheme: str, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    async with open_store(address_of(scheme, folder), scope=SCOPE, settings=settings(tmp_path / "r")) as store:
        assert (await store.recall(""), await store.preamble()) == ([], "")
        shutil.rmtree(folder, ignore_errors=True)
        if scheme == "folder":
            # nothing of ours is in a folder that is the user's own, until something is saved
            assert await store.recall("") == []
            return
        folder.mkdir()
        with pytest.raises(StorageError, match="notes is gone"):
            await store.recall("")
    async with open_store(address_of(scheme, folder), scope=SCOPE, settings=settings(tmp_path / "r")) as store:
        assert await store.recall("") == []
        await store.save(ENTRY)
        assert len(await store.recall("")) == 1


async def test_a_folder_that_can_not_be_read_any_more_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, scandir = tmp_path / "notes", os.scandir

    def closed(path: str) -> Iterator[os.DirEntry[str]]:
        if path == str(folder):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    async with open_store(f"jsonl:{folder}", scope=SCOPE) as store:
        monkeypatch.setattr(os, "scandir", closed)
        with pytest.raises(StorageError, match="notes can't be read: Permission denied"):
            await store.recall("door")


async def test_the_tools_of_an_agent_say_that_the_folder_is_gone(tmp_path: Path) -> None:
    calls = [Call("recall", {"query": "door"}), Call("remember", {"content": "It is red.", "kind": "fact"})]
    model = ScriptedModel([*calls, Say("Memory is away.")])
    root, folder = tmp_path / "r", tmp_path / "notes"
    async with HarnessAgent(
        model, memory=MemoryConfig(root=root, store=f"jsonl:{folder}"), scope=SCOPE, settings=settings(root)
    ) as agent:
        await agent.store.save(ENTRY)
        shutil.rmtree(folder)
        assert str(await agent.send("Which colour has the door?")) == "Memory is away."
    told = [result.text for message in model.requests[-1].messages for result in message.tool_results]
    assert len(told) == 2
    assert all("notes is gone" in each for each in told)
