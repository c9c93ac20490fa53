"""One JSON document: what others wrote into it stays, and nobody's save takes away another's."""

import errno
import json
import logging
from pathlib import Path
from typing import Any

import anyio
import pytest

from disks import FailingDisk
from plain_stores import SHOP, Shelves
from ricordo import Entry
from ricordo.errors import DocumentInvalid, EntryNotFound, StorageFull
from ricordo.storage import Disk
from ricordo.stores import Forgets, Store
from ricordo.stores.json_document import JsonStore

pytestmark = pytest.mark.anyio


async def contents(store: Store) -> list[str]:
    return [hit.entry.content for hit in await store.recall("", limit=99)]


def written(folder: Path, document: object) -> Path:
    """Write a document by hand and return its file."""
    file = folder / "notes" / "memory.json"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
    return file


async def test_a_new_document_says_its_version_and_has_a_line_for_each_entry(tmp_path: Path) -> None:
    async with Shelves(folder=tmp_path).open("json:notes") as backend:
        for content in ("One.", "Two."):
            await backend.bind(SHOP).save(Entry(content=content))
    text = (tmp_path / "notes" / "memory.json").read_text(encoding="utf-8")
    document = json.loads(text)
    assert document["version"] == 1
    assert [entry["content"] for entry in document["entries"]] == ["One.", "Two."]
    assert len(text.splitlines()) == 5


@pytest.mark.req("GO-I5", "HE-O-audit-forget")
async def test_what_is_not_understood_survives_saving_and_forgetting(tmp_path: Path) -> None:
    kept: dict[str, Any] = {
        "content": "Theirs.",
        "kind": "their own",
        "x": {"y": [1, None]},
        "at": "x",
        "my field": 2.5,
    }
    others = [{"nothing": "here"}, "a text", None]
    gone = {"id": "gone", "content": "Gone."}
    file = written(tmp_path, {"$schema": "x", "version": 1, "entries": [kept, gone, *others], "owner": {"a": 1}})
    async with Shelves(folder=tmp_path).open("json:notes") as backend:
        store = backend.bind(SHOP)
        await store.save(Entry(content="Ours."))
        forgets = store.offers(Forgets)
        assert forgets is not None
        await forgets.forget("gone", who="me")
        assert await contents(store) == ["Ours.", "Theirs."]
        assert (await store.recall("theirs"))[0].entry.kind == "their own"
        assert isinstance(backend, JsonStore)
        assert backend.damaged_count == 3
    document = json.loads(file.read_bytes())
    assert [*document] == ["$schema", "version", "entries", "owner"]
    assert (document["$schema"], document["owner"]) == ("x", {"a": 1})
    assert document["entries"][:-1] == [kept, *others]


@pytest.mark.req("DF-B14")
@pytest.mark.parametrize(
    "broken",
    [b'{"version":1,"entries":[{"content":"cut', b"\xff\xfe\x00", b"[]", b'{"entries":{}}', b'{"version":"1"}'],
)
async def test_a_document_that_cannot_be_read_is_kept_aside_and_a_new_one_begun(
    broken: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = written(tmp_path, broken)
    aside = file.with_name("memory.json.broken-1")
    async with Shelves(folder=tmp_path).open("json:notes") as backend:
        store = backend.bind(SHOP)
        with caplog.at_level(logging.WARNING, logger="ricordo.stores"):
            assert await contents(store) == []
            assert aside.read_bytes() == file.read_bytes() == broken
            assert await contents(store) == []
            await store.save(Entry(content="One."))
        assert await contents(store) == ["One."]
        messages = [record.getMessage() for record in caplog.records]
        assert len(messages) == 2
        assert messages[0].startswith("memory.json can't be read as entries: ")
        why = messages[0].removeprefix("memory.json can't be read as entries: ").rstrip(".")
        assert why
        assert messages[1] == f"memory.json can't be read ({why}) and is kept as memory.json.broken-1."
    assert aside.read_bytes() == broken
    assert [path.name for path in file.parent.glob("*broken*")] == [aside.name]


async def test_a_broken_document_that_cannot_be_kept_aside_is_left_as_it_is(tmp_path: Path) -> None:
    class Full(Disk):
        def write(self, descriptor: int, data: bytes) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    file = written(tmp_path, b"{")
    async with Shelves(folder=tmp_path, disk=Full()).open("json:notes") as backend:
        store = backend.bind(SHOP)
        assert await contents(store) == []
        with pytest.raises(StorageFull):
            await store.save(Entry(content="One."))
    assert file.read_bytes() == b"{"


@pytest.mark.req("GO-I5")
async def test_a_document_of_a_newer_version_is_neither_read_nor_written(tmp_path: Path) -> None:
    file = written(tmp_path, {"version": 2, "entries": {"new": "form"}} | {"entries": []})
    before = file.read_bytes()
    async with Shelves(folder=tmp_path).open("json:notes") as backend:
        store = backend.bind(SHOP)
        with pytest.raises(DocumentInvalid, match="newer Ricordo"):
            await store.recall("")
        with pytest.raises(DocumentInvalid, match="newer Ricordo"):
            await store.save(Entry(content="One."))
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.glob("*broken*")] == []


@pytest.mark.req("GO-I6", "GO-D9")
async def test_saves_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    shelves = Shelves(folder=tmp_path)
    async with (
        shelves.open("json:notes") as one,
        shelves.open("json:notes") as other,
        anyio.create_task_group() as tasks,
    ):
        for number in range(12):
            entry = Entry(content=f"{number}")
            tasks.start_soon((one, other)[number % 2].bind(SHOP).save, entry)
    async with shelves.open("json:notes") as backend:
        assert sorted(await contents(backend.bind(SHOP)), key=int) == [str(number) for number in range(12)]


@pytest.mark.req("GO-I5")
async def test_edits_by_hand_are_seen_at_once(tmp_path: Path) -> None:
    async with Shelves(folder=tmp_path).open("json:notes") as backend:
        store = backend.bind(SHOP)
        await store.save(Entry(content="The port is 8080."))
        assert await contents(store) == ["The port is 8080."]
        file = tmp_path / "notes" / "memory.json"
        file.write_bytes(file.read_bytes().replace(b"8080", b"8443"))
        assert await contents(store) == ["The port is 8443."]
        written(tmp_path, {"entries": [{"content": "By hand."}, {"content": "By hand."}]})
        hits = await store.recall("hand")
        assert len({hit.entry.id for hit in hits}) == 2
        file.unlink()
        assert await contents(store) == []


@pytest.mark.req("GO-D9", "GO-I7", "GO-I9")
async def test_a_save_or_forgetting_that_fails_leaves_the_old_document_or_the_new_one(tmp_path: Path) -> None:
    one, two = '{"kind":"fact","content":"One.","by":"hand"}', '{"id":"two","kind":"fact","content":"Two.","by":"hand"}'
    before = f'{{"version":1,\n"entries":[\n{one},\n{two}\n]}}\n'.encode()
    after = f'{{"version":1,\n"entries":[\n{one}\n]}}\n'.encode()
    for step in range(1, 99):
        (tmp_path / str(step)).mkdir()
        file = written(tmp_path / str(step), before)
        disk = FailingDisk(step, errno.ENOSPC, halves=True)
        async with Shelves(folder=tmp_path / str(step), disk=disk).open("json:notes") as backend:
            forgets = backend.bind(SHOP).offers(Forgets)
            assert forgets is not None
            try:
                await forgets.forget("two", who="me")
            except StorageFull:
                assert file.read_bytes() in {before, after}
            else:
                break
            with pytest.raises(EntryNotFound):
                await forgets.forget("nobody", who="me")
    assert file.read_bytes() == after
    assert step > 3
