"""A history that is damaged: doctor sees it, the rest of it is shown, and what can't be undone says so."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from places import place_of
from ricordo import Memory, Scope
from ricordo.errors import ChangeNotFound, DocumentInvalid, UndoRefused

pytestmark = [pytest.mark.anyio, pytest.mark.req("DF-B14")]
SCOPE = Scope(user="me", project="shop")


def _with(**values: object) -> Callable[[bytes], bytes]:
    return lambda data: json.dumps({**json.loads(data), **values}).encode()


def _without(name: str) -> Callable[[bytes], bytes]:
    return lambda data: json.dumps({key: value for key, value in json.loads(data).items() if key != name}).encode()


def _in_file(**values: object) -> Callable[[bytes], bytes]:
    def changed(data: bytes) -> bytes:
        record: dict[str, Any] = json.loads(data)
        record["files"][0].update(values)
        return json.dumps(record).encode()

    return changed


RECORDS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut off": lambda data: data[: len(data) // 2],
    "zeros": lambda data: bytes(len(data)),
    "no text": lambda data: b"\xff" + data,
    "a list": lambda _: b"[]",
    "null": lambda _: b"null",
    "a number": lambda _: b"7",
    "a text": lambda _: b'"change"',
    "another program's": lambda _: b'{"name": "ricordo", "version": 3}',
    "nested deeply": lambda _: b"[" * 100_000,
    "a field more": _with(colour="red"),
    **{f"no {name}": _without(name) for name in ("id", "at", "who", "why", "act", "files")},
    **{f"{name} as a number": _with(**{name: 7}) for name in ("id", "at", "who", "why", "act", "files", "undoes")},
    **{f"{name} as a list": _with(**{name: ["x"]}) for name in ("who", "act", "files")},
    "a time without a zone": _with(at="2026-11-21T08:00:00"),
    "another id": _with(id="01m831pw9xab91zf6mbv9p5bnf"),
    "entries as numbers": _with(entries=[7]),
    "a path as a number": _in_file(path=7),
    "a path that leads out": _in_file(path="../../secret"),
    "a version as a list": _in_file(before=["x"]),
    "a file with a field more": _in_file(colour="red"),
}
CONTENTS: dict[str, Callable[[bytes], bytes | None]] = {
    "gone": lambda _: None,
    "empty": lambda _: b"",
    "cut off": lambda data: data[: len(data) // 2],
    "zeros": lambda data: bytes(len(data)),
    "another content": lambda _: zlib.compress(b"something else"),
}


async def lived(root: Path) -> tuple[str, str]:
    """Leave two changes, and return the ids of the older and the newer one."""
    async with Memory.open(root, scope=SCOPE) as memory:
        for text in ("The printer is in room 4.", "The lamp is on the desk."):
            await memory.forget((await memory.remember(text)).id)
        newer, older = [item.id for item in await memory.history() if item.action == "forget"]
    return older, newer


@pytest.mark.req("FC-DOCTOR", "FC-UNDO")
@pytest.mark.parametrize("damage", RECORDS)
async def test_a_damaged_record_is_seen_and_hides_no_other(tmp_path: Path, damage: str) -> None:
    root = tmp_path / ".ricordo"
    older, newer = await lived(root)
    record = place_of(root) / "history" / "changes" / f"{newer}.json"
    record.write_bytes(RECORDS[damage](record.read_bytes()))
    async with Memory.open(root, scope=SCOPE) as memory:
        [check] = [check for check in await memory.doctor() if check.name == "history"]
        assert not check.ok
        assert newer in check.detail
        assert {item.id: item.action for item in await memory.history()}.items() >= {
            newer: "unreadable", older: "forget"
        }.items()  # fmt: skip
        with pytest.raises(DocumentInvalid, match=newer):
            await memory.undo(newer)
        # an older act is not taken for the last one
        with pytest.raises(ChangeNotFound, match=newer):
            await memory.undo()
        await memory.undo(older)
        assert [entry.content for entry in await memory.entries()] == ["The printer is in room 4."]


@pytest.mark.req("FC-DOCTOR", "FC-UNDO")
@pytest.mark.parametrize("damage", CONTENTS)
async def test_a_damaged_content_is_seen_and_what_needs_it_says_so(tmp_path: Path, damage: str) -> None:
    root = tmp_path / ".ricordo"
    older, newer = await lived(root)
    [changed] = [
        file
        for file in json.loads((place_of(root) / "history" / "changes" / f"{newer}.json").read_bytes())["files"]
        if file["path"].startswith("workspace/memory/2")
    ]
    content = place_of(root) / "history" / "objects" / changed["before"][:2] / f"{changed['before']}.z"
    broken = CONTENTS[damage](content.read_bytes())
    if broken is None:
        content.unlink()
    else:
        content.write_bytes(broken)
    async with Memory.open(root, scope=SCOPE) as memory:
        [check] = [check for check in await memory.doctor() if check.name == "history"]
        # what is gone may have been erased
        assert check.ok is (broken is None)
        assert (newer in check.detail) is (broken is not None)
        assert [item.id for item in await memory.history() if item.action == "forget"] == [newer, older]
        with pytest.raises((DocumentInvalid, UndoRefused)):
            await memory.undo(newer)
        await memory.undo(older)
