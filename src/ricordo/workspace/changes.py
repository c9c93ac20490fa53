"""Change sets: every replacement of a file is one reversible unit, with who made it, why, and what was there before.

A change set is written in four durable steps: the contents before and after go to `history/objects/` under their
digest, the record goes to `history/pending/`, the files are replaced one after the other, the record moves to
`history/changes/`. A process that dies in between leaves a pending record; the next one to look puts the files back
as they were, with what others did to them since. Where that collides, the file stays as it is and the record goes to
`history/changes/`, so that nothing half-made is out of sight. Appends to a ledger need no record here: the file tells
them.
"""

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from secrets import randbelow

import anyio

from ricordo.clock import Clock, Ids, decode_id
from ricordo.errors import (
    AlreadyExists,
    ChangeNotFound,
    DocumentInvalid,
    FileMissing,
    StorageError,
    VersionConflict,
)
from ricordo.files import ABSENT, FileStore, Stored, version_of
from ricordo.uncut import uncut
from ricordo.workspace.change_records import Change, FileChange, decoded_change, encoded_change
from ricordo.workspace.document_text import is_utf_16
from ricordo.workspace.layout import is_memory, is_profile
from ricordo.workspace.ledger import newest_saved
from ricordo.workspace.merge import merged
from ricordo.workspace.profile_merge import merged_document

__all__ = [
    "CHANGES",
    "CHANGES_LOCK",
    "CURATION_LOCK",
    "OBJECTS",
    "PENDING",
    "Change",
    "ChangeSets",
    "Edit",
    "FileChange",
    "cut_off",
    "newest_change",
    "replaced_memory",
]

CHANGES = "history/changes"
PENDING = "history/pending"
OBJECTS = "history/objects"
CHANGES_LOCK = "changes"
CURATION_LOCK = "consolidate"
"""Held by what writes memory from what it read before, and by what forgets; it is taken before CHANGES_LOCK."""
_TRIES = 24
_LONGEST_PAUSE_MS = 20


@dataclass(frozen=True, kw_only=True)
class Edit:
    """A file to be written: the version it is based on (ABSENT: there is none) and its new bytes (None: delete it)."""

    path: str
    expected: str
    data: bytes | None


class ChangeSets:
    """The record of all change sets of a root, and the one way to make a new one."""

    def __init__(self, files: FileStore, *, clock: Clock, ids: Ids, user: str = "") -> None:
        """Keep the history in `files`, beside the workspace; `user` is whose acts these are unless told otherwise."""
        self.clock = clock
        self._files = files
        self._ids = ids
        self.user = user

    async def apply(
        self,
        edits: Sequence[Edit],
        *,
        act: str,
        who: str,
        why: str = "",
        undoes: str | None = None,
        user: str | None = None,
        entries: Sequence[str] = (),
        part_of: str = "",
    ) -> Change:
        """Write all of `edits` or none, and return the record, whose id sorts after those of all records before.

        Raises: VersionConflict if a file is not the version an edit was based on; StorageFull and its siblings.
        """
        async with self._files.lock(CHANGES_LOCK):
            await self._recover()
            self._ids.follow(await newest_change(self._files))
            if self._ids.may_lag():
                with suppress(FileMissing, StorageError):
                    self._ids.follow(await newest_saved(self._files))
            change = Change(
                id=self._ids.new(),
                at=self.clock.now(),
                who=who,
                why=why,
                act=act,
                files=tuple(_file_change(edit) for edit in edits),
                undoes=undoes,
                user=self.user if user is None else user,
                entries=tuple(entries),
                part_of=part_of,
            )
            for edit in edits:
                await self._keep(edit)
            await uncut(partial(self._carry_out, change, edits))
        return change

    async def rebase(
        self,
        plan: Callable[[], Awaitable[Sequence[Edit]]],
        *,
        act: str,
        who: str,
        why: str = "",
        undoes: str | None = None,
    ) -> Change:
        """Apply what `plan` returns, and plan again when a file changed in between, a few times at most.

        Raises what `apply` and `plan` raise.
        """
        for tried in range(_TRIES):
            with suppress(VersionConflict):
                return await self.apply(await plan(), act=act, who=who, why=why, undoes=undoes)
            # whoever waits by chance does not meet the same one again
            await anyio.sleep(randbelow(min(2 + tried, _LONGEST_PAUSE_MS)) / 1000)
        return await self.apply(await plan(), act=act, who=who, why=why, undoes=undoes)

    async def recover(self) -> int:
        """Put back what change sets that were cut off had written; return how many there were."""
        if not await self._files.list(PENDING):
            return 0
        async with self._files.lock(CHANGES_LOCK):
            return await self._recover()

    async def records(self) -> list[Change]:
        """Return all change sets, newest first; a record that can't be read is left out."""
        return await _records(self._files)

    async def record(self, change_id: str) -> Change:
        """Return one change set. Raises: ChangeNotFound; DocumentInvalid for a record that can't be read."""
        try:
            return await _record(self._files, f"{CHANGES}/{change_id}.json")
        except FileMissing as error:
            raise ChangeNotFound(f"There is no change {change_id}: `ricordo history` shows the ids.") from error

    async def unreadable(self) -> list[str]:
        """Return the ids of the change sets whose records can't be read, newest first."""
        found = []
        for info in reversed(await self._files.list(CHANGES)):
            try:
                await _record(self._files, info.path)
            except FileMissing:
                continue
            except StorageError:
                found.append(_id_of(info.path))
        return found

    async def content(self, version: str) -> bytes | None:
        """Return the bytes of a version that a change replaced or wrote; None for ABSENT.

        Raises: FileMissing, or DocumentInvalid when what was kept is damaged.
        """
        return await _content(self._files, version)

    async def _carry_out(self, change: Change, edits: Sequence[Edit]) -> None:
        await self._files.create(f"{PENDING}/{change.id}.json", encoded_change(change))
        reached = 0
        try:
            for edit in edits:
                reached += 1
                await self._write(edit.path, edit.data, edit.expected)
            await self._files.create(f"{CHANGES}/{change.id}.json", encoded_change(change))
        except StorageError as error:
            # a conflict wrote nothing; any other error may have come after the rename
            written = reached - isinstance(error, VersionConflict)
            # nor is it on record then, although its record may be there
            with suppress(StorageError, FileMissing):
                await self._files.delete(f"{CHANGES}/{change.id}.json")
            with suppress(StorageError, FileMissing):
                await self._roll_back(change, change.files[:written])
            raise
        # the change is made; who recovers next removes what is left of its pending record
        with suppress(StorageError, FileMissing):
            await self._files.delete(f"{PENDING}/{change.id}.json")

    async def _keep(self, edit: Edit) -> None:
        found = await self._found(edit.path)
        if (found.version if found else ABSENT) != edit.expected:
            raise VersionConflict(f"{edit.path} changed since it was read: read it again and repeat the edit.")
        if found and edit.data is not None and is_memory(edit.path):
            _refuse_mixed_encodings(edit.path, found.data, edit.data)
        contents = [found.data] if found else []
        for data in contents if edit.data is None else [edit.data, *contents]:
            with suppress(AlreadyExists):
                await self._files.create(_object(version_of(data)), zlib.compress(data))

    async def _recover(self) -> int:
        recovered = 0
        for info in await self._files.list(PENDING):
            # a record or a content that is damaged stays for `doctor` to show, and stops no other change
            with suppress(DocumentInvalid, FileMissing, VersionConflict):
                change = await _record(self._files, info.path)
                await self._roll_back(change, change.files)
                recovered += 1
        return recovered

    async def _roll_back(self, change: Change, written: Sequence[FileChange]) -> None:
        """Put the files of a change back that is not on record; one that can't be put back throughout goes there."""
        record = f"{CHANGES}/{change.id}.json"
        if await self._files.info(record) is None:
            whole = [await self._put_back(changed) for changed in reversed(written)]
            if not all(whole):
                await self._files.create(record, encoded_change(change))
        await self._files.delete(f"{PENDING}/{change.id}.json")

    async def _put_back(self, changed: FileChange) -> bool:
        """Restore a file that the change may have written, with what others did to it since; False if they collide."""
        found = await self._found(changed.path)
        version = found.version if found else ABSENT
        if version == changed.before:
            return True
        before, after = await self.content(changed.before), await self.content(changed.after)
        if version == changed.after:
            await self._write(changed.path, before, version)
            return True
        undone = _without if is_profile(changed.path) else _restored
        restored = undone(before, after, found.data) if found else None
        if restored is None:
            return False
        if found and restored != found.data:
            await self._write(changed.path, restored, version)
        return True

    async def _found(self, path: str) -> Stored | None:
        try:
            return await self._files.read(path)
        except FileMissing:
            return None

    async def _write(self, path: str, data: bytes | None, expected: str) -> None:
        if data is None:
            await self._files.delete(path, expected=expected)
        else:
            await self._files.replace(path, data, expected=expected)


async def cut_off(files: FileStore) -> int:
    """Return how many change sets were cut off and not put back; one that is being made is waited for."""
    if not await files.list(PENDING):
        return 0
    async with files.lock(CHANGES_LOCK):
        return len(await files.list(PENDING))


async def newest_change(files: FileStore) -> str:
    """Return the id of the change set that was recorded last, empty for none."""
    listed = [info.path.rpartition("/")[2].removesuffix(".json") for info in await files.list(CHANGES)]
    return max((name for name in listed if decode_id(name) is not None), default="")


async def replaced_memory(files: FileStore) -> AsyncIterator[tuple[str, bytes]]:
    """Yield the path and the content of each memory document that a change replaced, as far as both are kept."""
    for change in await _records(files):
        for changed in change.files:
            if is_memory(changed.path):
                with suppress(FileMissing, DocumentInvalid):
                    yield changed.path, await _content(files, changed.before) or b""


async def _records(files: FileStore) -> list[Change]:
    found = []
    for info in reversed(await files.list(CHANGES)):
        with suppress(FileMissing, DocumentInvalid):
            found.append(await _record(files, info.path))
    return found


async def _record(files: FileStore, path: str) -> Change:
    return decoded_change((await files.read(path)).data, _id_of(path))


def _id_of(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".json")


async def _content(files: FileStore, version: str) -> bytes | None:
    if version == ABSENT:
        return None
    try:
        data = zlib.decompress((await files.read(_object(version))).data)
    except FileMissing as error:
        raise FileMissing(
            f"The content {version} is not in the history any more: it was erased or given up."
        ) from error
    except zlib.error as error:
        raise DocumentInvalid(f"The content {version} that history kept can't be read.") from error
    if version_of(data) != version:
        raise DocumentInvalid(f"The content {version} that history kept was changed.")
    return data


def _refuse_mixed_encodings(path: str, found: bytes, data: bytes) -> None:
    """Refuse to write UTF-8 into a document in UTF-16; a document that is UTF-8 throughout may take its place."""
    if is_utf_16(found) and (is_utf_16(data) or b"\0" in data):
        raise DocumentInvalid(f"{path} is in UTF-16 and was left as it is: save it as UTF-8 and try again.")


def _file_change(edit: Edit) -> FileChange:
    return FileChange(
        path=edit.path, before=edit.expected, after=ABSENT if edit.data is None else version_of(edit.data)
    )


def _restored(before: bytes | None, after: bytes | None, found: bytes) -> bytes | None:
    """Return `found` without the change from `before` to `after`; None when what others did can't be told from it."""
    start = max((data for data in (before, after) if data and found.startswith(data)), key=len, default=b"")
    if start and start == before:
        return found
    removed = _lines(before) - _lines(after)
    if not start and removed & _lines(found):
        # the change had not come this far, or somebody took its lines back
        untouched = removed <= _lines(found) and _lines(found).isdisjoint(_lines(after) - _lines(before))
        return found if untouched else None
    if before and (start or after == b""):
        tail = found[len(start) :]
        closing = b"" if before.endswith(b"\n") or tail.startswith(b"\n") else b"\n"
        return before + closing + tail
    return merged(after, found, before or b"") if after else None


def _without(before: bytes | None, after: bytes | None, found: bytes) -> bytes | None:
    """Return the profile `found` without the change from `before` to `after`; None where others changed the same."""
    return merged_document(after or b"", found, before or b"")


def _lines(data: bytes | None) -> set[bytes]:
    return {line for line in (data or b"").splitlines() if line.strip()}


def _object(version: str) -> str:
    return f"{OBJECTS}/{version[:2]}/{version}.z"
