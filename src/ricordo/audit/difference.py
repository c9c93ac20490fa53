"""Difference: what one write did to each of its files, as lines that went and lines that came."""

import difflib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from anyio.to_thread import run_sync

from ricordo.audit.history import HistoryItem, iter_appends
from ricordo.errors import ChangeNotFound, DocumentInvalid, FileMissing
from ricordo.files import FileStore
from ricordo.guard import Redactor
from ricordo.workspace.changes import ChangeSets

__all__ = ["ChangeDiff", "FileDiff", "diff_change"]

_CONTEXT_LINES = 3


@dataclass(frozen=True, kw_only=True)
class FileDiff:
    """What a write did to one file, as a unified diff; `text` is empty where it left the file as it was.

    `created` and `deleted` tell of a file that was not there before, or is not there after it.
    """

    path: str
    text: str
    created: bool = False
    deleted: bool = False

    @property
    def added_lines(self) -> int:
        """How many lines came."""
        return sum(line.startswith("+") and not line.startswith("+++") for line in self.text.split("\n"))

    @property
    def removed_lines(self) -> int:
        """How many lines went."""
        return sum(line.startswith("-") and not line.startswith("---") for line in self.text.split("\n"))


@dataclass(frozen=True, kw_only=True)
class ChangeDiff:
    """A write and what it did to each of its files."""

    item: HistoryItem
    files: tuple[FileDiff, ...]


async def diff_change(files: FileStore, changes: ChangeSets, item: HistoryItem, *, redactor: Redactor) -> ChangeDiff:
    """Return what the write `item` did, without the secrets that `redactor` finds in it.

    Raises: ChangeNotFound when what it replaced is not kept any more.
    """
    found = await _diff_files(files, changes, item)
    return await run_sync(
        lambda: ChangeDiff(
            item=replace(item, why=redactor.clean(item.why)),
            files=tuple(replace(each, text=redactor.clean_keeping_lines(each.text)) for each in found),
        )
    )


async def _diff_files(files: FileStore, changes: ChangeSets, item: HistoryItem) -> list[FileDiff]:
    if item.entries:
        return [await _diff_append(files, path, item) for path in item.paths]
    found: list[FileDiff] = []
    for changed in (await changes.get_change(item.id)).files:
        try:
            before, after = await changes.read_content(changed.before), await changes.read_content(changed.after)
        except (FileMissing, DocumentInvalid) as error:
            raise ChangeNotFound(f"What the change {item.id} replaced is not kept any more.") from error
        text = await run_sync(_unified_diff, changed.path, before, after)
        found.append(FileDiff(path=changed.path, text=text, created=before is None, deleted=after is None))
    return found


async def _diff_append(files: FileStore, path: str, item: HistoryItem) -> FileDiff:
    """Return what an append gave to a ledger, as it stands there."""
    data = b""
    with suppress(FileMissing):
        data = (await files.read(path)).data
    block = [one async for found in iter_appends(files, path) for one in found if one.entry.id in item.entries]
    lines = [line for one in block for line in _decode_lines(data[one.offset : one.offset + one.length])]
    head = [f"--- {path}", f"+++ {path}"] if lines else []
    return FileDiff(path=path, text="\n".join([*head, *(f"+{line}" for line in lines)]))


def _unified_diff(path: str, before: bytes | None, after: bytes | None) -> str:
    names = ("/dev/null" if before is None else path, "/dev/null" if after is None else path)
    return "\n".join(
        difflib.unified_diff(_decode_lines(before), _decode_lines(after), *names, lineterm="", n=_CONTEXT_LINES)
    )


def _decode_lines(data: bytes | None) -> Sequence[str]:
    return (data or b"").decode("utf-8", "replace").splitlines()
