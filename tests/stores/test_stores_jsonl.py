"""JSON lines: nothing in the file hides anything else in it, and nobody's line is touched."""

import errno
import json
import logging
import os
from pathlib import Path

import pytest

from disks import FailingDisk
from plain_stores import SHOP, Shelves
from ricordo import Entry
from ricordo.errors import StorageFull, StorageReadOnly
from ricordo.guard import parse_fence
from ricordo.storage import Disk
from ricordo.stores import Forgets, Lists, Store
from ricordo.stores.jsonl import JsonlStore

pytestmark = [pytest.mark.anyio, pytest.mark.req("GO-BK-jsonl")]


async def contents(store: Store) -> list[str]:
    return [hit.entry.content for hit in await store.recall("", limit=99)]


async def test_each_entry_is_one_line_of_json(tmp_path: Path) -> None:
    async with Shelves(folder=tmp_path).open("jsonl:notes") as backend:
        store = backend.bind(SHOP)
        await store.save(Entry(content="One\nand more.\u2028", kind="fact", tags=("ops",)))
        await store.save(Entry(content="Two."))
        hits = await store.recall("")
    lines = (tmp_path / "notes" / "memory.jsonl").read_text(encoding="utf-8").split("\n")
    assert [json.loads(line)["content"] for line in lines[:-1]] == ["One\nand more.\u2028", "Two."]
    assert lines[-1] == ""
    assert [(hit.path, hit.line_number) for hit in hits] == [("memory.jsonl", 2), ("memory.jsonl", 1)]


@pytest.mark.req("GO-BK-jsonl")
async def test_lines_are_found_by_content_and_tags_and_shown_as_markdown_beside_a_torn_one(tmp_path: Path) -> None:
    file = tmp_path / "notes" / "memory.jsonl"
    async with Shelves(folder=tmp_path).open("jsonl:notes") as backend:
        store = backend.bind(SHOP)
        await store.save(Entry(content="We deploy\nonly from main.", tags=("release",)))
        await store.save(Entry(content="The release is weekly.", kind="decision", tags=("ops", "ci")))
        lines = file.read_bytes().splitlines()
        assert [json.loads(line)["tags"] for line in lines] == [["release"], ["ops", "ci"]]
        file.write_bytes(file.read_bytes()[:-1] + b'\n{"id":"x","content":"Tor')
        found = {query: [hit.entry.content[:3] for hit in await store.recall(query)] for query in ("RELEASE", "ci", "")}
        assert found == {"RELEASE": ["The", "We "], "ci": ["The"], "": ["The", "We "]}
        shown = parse_fence(await store.preamble())
        assert shown == ("- The release is weekly. #ops #ci", "- We deploy\n  only from main. #release")


@pytest.mark.parametrize("torn", [b'{"id":"x","content":"Tor', b"\xff\xfe", b"{", b'{"content":"\xf0\x9f'])
async def test_a_torn_last_line_hides_no_entry_and_is_closed_by_the_next(torn: bytes, tmp_path: Path) -> None:
    shelves = Shelves(folder=tmp_path)
    file = tmp_path / "notes" / "memory.jsonl"
    async with shelves.open("jsonl:notes") as backend:
        await backend.bind(SHOP).save(Entry(content="One."))
    file.write_bytes(file.read_bytes() + torn)
    async with shelves.open("jsonl:notes") as backend:
        store = backend.bind(SHOP)
        assert await contents(store) == ["One."]
        await store.save(Entry(content="Two."))
        assert await contents(store) == ["Two.", "One."]
        assert isinstance(backend, JsonlStore)
        assert backend.damaged_count == 1
    assert torn + b"\n" in file.read_bytes()


@pytest.mark.req("GO-I5")
async def test_lines_that_are_none_are_counted_reported_once_and_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "notes" / "memory.jsonl"
    file.parent.mkdir()
    foreign = b'# a comment\n[1]\n\n{"content": ""}\n{"content":"x","confidence":"high"}\n'
    file.write_bytes(b'\xef\xbb\xbf{"content": "By hand.", "stars": 5}\r\n' + foreign)
    async with Shelves(folder=tmp_path).open("jsonl:notes") as backend:
        store = backend.bind(SHOP)
        with caplog.at_level(logging.WARNING, logger="ricordo.stores"):
            await store.save(Entry(content="Ours."))
            assert await contents(store) == ["Ours.", "By hand."]
            assert await contents(store) == ["Ours.", "By hand."]
        assert [record.getMessage() for record in caplog.records] == [
            "memory.jsonl has 4 lines that are no entries; they are left in it."
        ]
        lists = store.offers(Lists)
        assert lists is not None
        _, mine = await lists.entries()
        assert (mine.by, mine.extra, len(mine.id)) == ("hand", (("stars", "json:5"),), 26)
        assert await lists.get(mine.id) == mine


@pytest.mark.req("GO-I5", "HE-O-audit-forget")
async def test_forgetting_takes_one_line_out_and_leaves_every_other_byte(tmp_path: Path) -> None:
    file = tmp_path / "notes" / "memory.jsonl"
    file.parent.mkdir()
    before = b'  {"content": "Spaced", "x": {"y": [1, 2.50]}, "kind": "their own"}\r\n\n'
    gone = b'{"content":"Gone.","id":"gone"}\n'
    after = b'not json\n{"content":"\\u0041 escaped","id":"esc"}\n{"content":"torn'
    file.write_bytes(before + gone + after)
    async with Shelves(folder=tmp_path).open("jsonl:notes") as backend:
        store = backend.bind(SHOP)
        forgets = store.offers(Forgets)
        assert forgets is not None
        assert (await forgets.forget("gone", who="me")).content == "Gone."
        assert file.read_bytes() == before + after
        spaced = (await store.recall("spaced"))[0].entry
        assert (spaced.kind, dict(spaced.extra)["x"]) == ("their own", 'json:{"y":[1,2.5]}')
        await forgets.forget(spaced.id, who="me")
        assert file.read_bytes() == b"\n" + after


async def test_equal_lines_without_an_id_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "notes" / "memory.jsonl"
    file.parent.mkdir()
    file.write_bytes(b'{"content":"Same."}\n{"content":"Same."}\n')
    async with Shelves(folder=tmp_path).open("jsonl:notes") as backend:
        store = backend.bind(SHOP)
        first = {hit.entry.id for hit in await store.recall("")}
        with file.open("ab") as stream:
            stream.write(b'{"content":"Same."}\n')
        ids = [hit.entry.id for hit in await store.recall("")]
        assert len({*ids}) == 3
        assert first < {*ids}


async def test_edits_by_hand_are_seen_at_once_also_beside_what_was_appended(tmp_path: Path) -> None:
    file = tmp_path / "notes" / "memory.jsonl"
    async with Shelves(folder=tmp_path).open("jsonl:notes") as backend:
        store = backend.bind(SHOP)
        for port in ("8080", "9090"):
            await store.save(Entry(content=f"The port is {port}."))
        assert len(await contents(store)) == 2
        file.write_bytes(file.read_bytes().replace(b"8080", b"8443"))
        assert await contents(store) == ["The port is 9090.", "The port is 8443."]
        file.write_bytes(file.read_bytes().replace(b"8443", b"8444") + b'{"content":"Appended."}\n')
        assert await contents(store) == ["Appended.", "The port is 9090.", "The port is 8444."]
        file.unlink()
        assert await contents(store) == []


async def test_two_backends_see_what_the_other_saved(tmp_path: Path) -> None:
    shelves = Shelves(folder=tmp_path)
    async with shelves.open("jsonl:notes") as one, shelves.open("jsonl:notes") as other:
        for number in range(4):
            await (one, other)[number % 2].bind(SHOP).save(Entry(content=f"{number}"))
            assert await contents(one.bind(SHOP)) == await contents(other.bind(SHOP))
        assert await contents(one.bind(SHOP)) == ["3", "2", "1", "0"]


@pytest.mark.req("GO-I9")
@pytest.mark.parametrize(("code", "expected"), [(errno.ENOSPC, StorageFull), (errno.EROFS, StorageReadOnly)])
async def test_a_disk_that_takes_nothing_more_still_gives_what_it_has(
    code: int, expected: type[Exception], tmp_path: Path
) -> None:
    async with Shelves(folder=tmp_path).open("jsonl:notes") as backend:
        await backend.bind(SHOP).save(Entry(content="One."))

    class Full(Disk):
        def write(self, descriptor: int, data: bytes) -> None:
            os.write(descriptor, data[: len(data) // 2])
            raise OSError(code, os.strerror(code))

    async with Shelves(folder=tmp_path, disk=Full()).open("jsonl:notes") as backend:
        store = backend.bind(SHOP)
        with pytest.raises(expected):
            await store.save(Entry(content="Two."))
        assert await contents(store) == ["One."]
        assert "One." in await store.preamble()


@pytest.mark.req("GO-D9", "GO-I7", "GO-I9")
async def test_a_forgetting_that_fails_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    lines = b'{"content":"One.","id":"one"}\n', b'{"content":"Two.","id":"two"}\n'
    for step in range(1, 99):
        file = tmp_path / str(step) / "memory.jsonl"
        file.parent.mkdir()
        file.write_bytes(b"".join(lines))
        disk = FailingDisk(step, errno.ENOSPC, halves=True)
        async with Shelves(folder=tmp_path, disk=disk).open(f"jsonl:{step}") as backend:
            forgets = backend.bind(SHOP).offers(Forgets)
            assert forgets is not None
            try:
                await forgets.forget("one", who="me")
            except StorageFull:
                assert file.read_bytes() in {b"".join(lines), lines[1]}
            else:
                break
    assert file.read_bytes() == lines[1]
    assert step > 3
