"""Change sets: each replacement of files is one reversible unit with its author, its reason and the previous content.

A change set is written in four durable steps: the contents before and after go to `history/objects/` under their
digest, the record goes to `history/pending/`, the files are replaced one after the other, and the record moves to
`history/changes/`. A process that dies in between leaves a pending record. The next process then restores the files and
keeps what others changed in them since. If both collide, the file stays unchanged and the record goes to
`history/changes/`. Appends to a ledger need no record, because the file itself shows them.
"""

import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from functools import partial
from secrets import randbelow
from typing import Protocol

import anyio

from ricordo.clock import Clock, IdSource, decode_id, format_rfc3339
from ricordo.concurrency import compute, run_in_thread, run_to_completion
from ricordo.errors import (
    AlreadyExists,
    ChangeNotFound,
    DocumentInvalid,
    FileMissing,
    InvalidSetting,
    PathRefused,
    StorageError,
    VersionConflict,
)
from ricordo.lazy import dataclass
from ricordo.messages.json_text import decode_json, escape_json
from ricordo.storage import ABSENT, FileStore, StoredFile, compute_version
from ricordo.storage.contract import safe_path
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.audit import MAY_DELETE, AuditLog, Contents
from ricordo.workspace.layout import is_memory, is_profile
from ricordo.workspace.ledger import read_newest_id
from ricordo.workspace.markdown import is_utf16

__all__ = [
    "CHANGES_FOLDER",
    "CHANGES_LOCK",
    "CURATION_LOCK",
    "IMPORT_ACT",
    "OBJECTS_FOLDER",
    "PENDING_FOLDER",
    "Change",
    "ChangeSets",
    "DeletionGuard",
    "Edit",
    "FileChange",
    "HistoryConfig",
    "count_pending",
    "decode_change",
    "encode_change",
    "iter_replaced_memory",
    "read_newest_change_id",
]


_OPTIONAL_KEYS = frozenset({"user", "entries", "part_of"})
_STORED_KEYS = {"actor": "who", "reason": "why", "action": "act"}


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """The change of one file: its version before and after, ABSENT if there was no file."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change set: `action` names the operation, `undoes` the change that it reverts.

    `user` is the id of the user who made it, empty if unknown. `entries` are the ids of entries that the operation
    appended to ledgers, which needs no change of a file here. `part_of` is the id of the first change of the same
    operation, if it made several.
    """

    id: str
    at: datetime
    actor: str
    reason: str
    action: str
    files: tuple[FileChange, ...]
    undoes: str | None = None
    user: str = ""
    entries: tuple[str, ...] = ()
    part_of: str = ""


def encode_change(change: Change) -> bytes:
    """Return the encoded record of a change."""
    fields = {
        _STORED_KEYS.get(name, name): value
        for name, value in asdict(change).items()
        if value or name not in _OPTIONAL_KEYS
    }
    written = json.dumps(fields | {"at": format_rfc3339(change.at)}, ensure_ascii=False, indent=1)
    return (escape_json(written) + "\n").encode()


def decode_change(data: bytes, change_id: str) -> Change:
    """Decode the record of a change. Raises: DocumentInvalid for a record that Ricordo did not write."""
    try:
        value = decode_json(data)
        files = tuple(FileChange(**changed) for changed in value.pop("files"))
        entries = tuple(value.pop("entries", ()))
        named = {name: value.pop(key) for name, key in _STORED_KEYS.items()}
        change = Change(files=files, at=datetime.fromisoformat(value.pop("at")), entries=entries, **named, **value)
        _check_change(change, change_id)
    except (ValueError, TypeError, KeyError, AttributeError, PathRefused) as error:
        raise DocumentInvalid(f"The record of the change {change_id} can't be read.") from error
    return change


def _check_change(change: Change, change_id: str) -> None:
    """Raise ValueError or PathRefused if a value has the wrong type, as JSON may hold any."""
    words = [change.id, change.actor, change.reason, change.action, change.undoes or "", change.user, change.part_of]
    words += [*change.entries, *(text for file in change.files for text in (file.path, file.before, file.after))]
    if not all(isinstance(word, str) for word in words):
        raise ValueError("A value is no text.")
    if change.id != change_id or change.at.tzinfo is None:
        raise ValueError("It is the record of another change, or its time has no zone.")
    if any(safe_path(file.path) != file.path or not file.path for file in change.files):
        raise ValueError("A path is not written as paths are here.")


CHANGES_FOLDER = "history/changes"
PENDING_FOLDER = "history/pending"
OBJECTS_FOLDER = "history/objects"
CHANGES_LOCK = "changes"
CURATION_LOCK = "consolidate"
"""Lock for writers that change memory based on earlier reads, and for `forget`; take it before CHANGES_LOCK."""
IMPORT_ACT = "import"
"""The act of an import. Its messages name the id of its change, so that an undo finds them."""
_MAX_TRIES = 24
_MAX_PAUSE_MS = 20
_AT_ONCE = 50_000
"""The number of bytes that are compressed in some milliseconds."""


@dataclass(frozen=True, kw_only=True)
class Edit:
    """A file to write: the version it is based on (ABSENT: no file) and its new bytes (None: delete it)."""

    path: str
    expected_hash: str
    data: bytes | None


@dataclass(frozen=True, kw_only=True)
class HistoryConfig:
    """How long history stays: `days`, or less if it exceeds `max_bytes`, but at least `least_days`."""

    days: int = 90
    least_days: int = 30
    max_bytes: int = 200_000_000

    def __post_init__(self) -> None:
        """Raise InvalidSetting if `least_days` is below 1, `days` below `least_days`, or `max_bytes` below 0."""
        if self.least_days < 1:
            raise InvalidSetting(f"least_days is a number of at least 1, not {self.least_days}.")
        if self.days < self.least_days:
            raise InvalidSetting(f"days is a number of at least least_days ({self.least_days}), not {self.days}.")
        if self.max_bytes < 0:
            raise InvalidSetting(f"max_bytes is a number of at least 0, not {self.max_bytes}.")


class DeletionGuard(Protocol):
    """What refuses changes that delete what has to be kept. Both methods raise LegalHold."""

    def require_free(self, entries: Iterable[Entry]) -> None:
        """Refuse if one of these entries may not be deleted."""
        ...

    def check(self, act: str, contents: Sequence[Contents]) -> None:
        """Refuse a change if it deletes what may not be deleted."""
        ...


class ChangeSets:
    """All change sets of a root, and the only way to create one."""

    def __init__(
        self, files: FileStore, *, clock: Clock, ids: IdSource, user: str = "", audit: AuditLog | None = None,
        guard: DeletionGuard | None = None,
    ) -> None:  # fmt: skip
        """Store the history in `files`, next to the workspace; `user` is the default author of changes.

        Each change of files is recorded in `audit` too. A change that `guard` refuses is not made.
        """
        self.clock = clock
        self.guard = guard
        self._audit = audit
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
        """Write all of `edits` or none, and return the record, whose id sorts after all earlier ones.

        Raises: VersionConflict if a file no longer has the version that its edit was based on; LegalHold; StorageFull
        and its siblings.
        """
        async with self._files.lock(CHANGES_LOCK):
            await self._recover()
            self._ids.follow(await read_newest_change_id(self._files))
            if self._ids.may_lag():
                with suppress(FileMissing, StorageError):
                    self._ids.follow(await read_newest_id(self._files))
            change = Change(
                id=self._ids.new(),
                at=self.clock.now(),
                actor=who,
                reason=why,
                action=act,
                files=tuple(_to_file_change(edit) for edit in edits),
                undoes=undoes,
                user=self.user if user is None else user,
                entries=tuple(entries),
                part_of=part_of,
            )
            contents = [(edit.path, await self._store_contents(edit), edit.data or b"") for edit in edits]
            if self.guard:
                await run_in_thread(partial(self.guard.check, act, contents))
            await run_to_completion(partial(self._execute, change, edits))
        if self._audit and contents and (self._audit.records_changes or act in MAY_DELETE):
            await self._audit.record_change(act, contents, by=who, change=change.id, entries=change.entries)
        return change

    async def rebase(
        self,
        plan: Callable[[], Awaitable[Sequence[Edit]]],
        *,
        act: str,
        who: str,
        why: str = "",
        undoes: str | None = None,
        part_of: str = "",
        planned: Sequence[Edit] = (),
    ) -> Change:
        """Apply the edits that `plan` returns, and plan again, a few times at most, if a file changed in between.

        `planned` are what `plan` returned already, for the first try. Raises what `apply` and `plan` raise.
        """
        for tried in range(_MAX_TRIES):
            with suppress(VersionConflict):
                edits = planned if planned and not tried else await plan()
                return await self.apply(edits, act=act, who=who, why=why, undoes=undoes, part_of=part_of)
            # a random pause, so that two writers do not collide again
            await anyio.sleep(randbelow(min(2 + tried, _MAX_PAUSE_MS)) / 1000)
        return await self.apply(await plan(), act=act, who=who, why=why, undoes=undoes, part_of=part_of)

    async def discard(self, change_id: str) -> None:
        """Remove the record of a change that turned out to have changed nothing. Raises: StorageError."""
        with suppress(FileMissing):
            await self._files.delete(f"{CHANGES_FOLDER}/{change_id}.json")

    async def recover(self) -> int:
        """Roll back interrupted change sets and return how many there were."""
        if not await self._files.list(PENDING_FOLDER):
            return 0
        async with self._files.lock(CHANGES_LOCK):
            return await self._recover()

    async def list_changes(self) -> list[Change]:
        """Return all change sets, newest first; records that can't be read are left out."""
        return await _read_changes(self._files)

    async def get_change(self, change_id: str) -> Change:
        """Return one change set. Raises: ChangeNotFound; DocumentInvalid for a record that can't be read."""
        try:
            return await _read_change(self._files, f"{CHANGES_FOLDER}/{change_id}.json")
        except FileMissing as error:
            raise ChangeNotFound(f"There is no change {change_id}: `ricordo history` shows the ids.") from error

    async def list_unreadable(self) -> list[str]:
        """Return the ids of the change sets whose records can't be read, newest first."""
        ids = []
        for info in reversed(await self._files.list(CHANGES_FOLDER)):
            try:
                await _read_change(self._files, info.path)
            except FileMissing:
                continue
            except StorageError:
                ids.append(_change_id(info.path))
        return ids

    async def read_content(self, version: str) -> bytes | None:
        """Return the bytes of a version that a change replaced or wrote; None for ABSENT.

        Raises: FileMissing, or DocumentInvalid if the stored content is damaged.
        """
        return await _read_content(self._files, version)

    async def _execute(self, change: Change, edits: Sequence[Edit]) -> None:
        await self._files.create(f"{PENDING_FOLDER}/{change.id}.json", encode_change(change))
        started = 0
        try:
            for edit in edits:
                started += 1
                await self._write(edit.path, edit.data, edit.expected_hash)
            await self._files.create(f"{CHANGES_FOLDER}/{change.id}.json", encode_change(change))
        except StorageError as error:
            # a conflict wrote nothing; any other error may have come after the rename
            written = started - isinstance(error, VersionConflict)
            # a failed change is not recorded, although its record may exist already
            with suppress(StorageError, FileMissing):
                await self._files.delete(f"{CHANGES_FOLDER}/{change.id}.json")
            with suppress(StorageError, FileMissing):
                await self._roll_back(change, change.files[:written])
            raise
        # the change is complete; the next recovery removes a remaining pending record
        with suppress(StorageError, FileMissing):
            await self._files.delete(f"{PENDING_FOLDER}/{change.id}.json")

    async def _store_contents(self, edit: Edit) -> bytes:
        """Store what an edit replaces and what it writes, and return the former."""
        stored = await self._read_if_exists(edit.path)
        if (stored.version if stored else ABSENT) != edit.expected_hash:
            raise VersionConflict(f"{edit.path} changed since it was read: read it again and repeat the edit.")
        if stored and edit.data is not None and is_memory(edit.path):
            _refuse_mixed_encodings(edit.path, stored.data, edit.data)
        contents = [stored.data] if stored else []
        for data in contents if edit.data is None else [edit.data, *contents]:
            path = _object_path(compute_version(data))
            # what an earlier change stored is not compressed again
            if await self._files.info(path) is None:
                with suppress(AlreadyExists):
                    await self._files.create(
                        path, await compute(partial(zlib.compress, data), size=len(data), at_once=_AT_ONCE)
                    )
        return stored.data if stored else b""

    async def _recover(self) -> int:
        recovered = 0
        for info in await self._files.list(PENDING_FOLDER):
            # a damaged record or content stays for `doctor` to show, and blocks no other change
            with suppress(DocumentInvalid, FileMissing, VersionConflict):
                change = await _read_change(self._files, info.path)
                await self._roll_back(change, change.files)
                recovered += 1
        return recovered

    async def _roll_back(self, change: Change, written: Sequence[FileChange]) -> None:
        """Restore the files of a change that is not recorded; record it if some file can't be fully restored."""
        record = f"{CHANGES_FOLDER}/{change.id}.json"
        if await self._files.info(record) is None:
            restored = [await self._restore_file(changed) for changed in reversed(written)]
            if not all(restored):
                await self._files.create(record, encode_change(change))
        await self._files.delete(f"{PENDING_FOLDER}/{change.id}.json")

    async def _restore_file(self, changed: FileChange) -> bool:
        """Restore a file that the change may have written, keeping later edits by others; False if they collide."""
        current = await self._read_if_exists(changed.path)
        version = current.version if current else ABSENT
        if version == changed.before:
            return True
        before, after = await self.read_content(changed.before), await self.read_content(changed.after)
        if version == changed.after:
            await self._write(changed.path, before, version)
            return True
        revert = _revert_profile if is_profile(changed.path) else _revert_lines
        restored = revert(before, after, current.data) if current else None
        if restored is None:
            return False
        if current and restored != current.data:
            await self._write(changed.path, restored, version)
        return True

    async def _read_if_exists(self, path: str) -> StoredFile | None:
        try:
            return await self._files.read(path)
        except FileMissing:
            return None

    async def _write(self, path: str, data: bytes | None, expected: str) -> None:
        if data is None:
            await self._files.delete(path, expected=expected)
        else:
            await self._files.replace(path, data, expected=expected)


async def count_pending(files: FileStore) -> int:
    """Return the number of interrupted change sets not yet rolled back; wait for a change set in progress."""
    if not await files.list(PENDING_FOLDER):
        return 0
    async with files.lock(CHANGES_LOCK):
        return len(await files.list(PENDING_FOLDER))


async def read_newest_change_id(files: FileStore) -> str:
    """Return the id of the newest recorded change set, or an empty string."""
    names = [info.path.rpartition("/")[2].removesuffix(".json") for info in await files.list(CHANGES_FOLDER)]
    return max((name for name in names if decode_id(name) is not None), default="")


async def iter_replaced_memory(
    files: FileStore, holds: Callable[[str], bool] = is_memory
) -> AsyncIterator[tuple[str, bytes]]:
    """Yield the path and content of each document that a change replaced, if history still holds both.

    `holds` chooses documents by their paths, by default those with entries.
    """
    for change in await _read_changes(files):
        for changed in change.files:
            if holds(changed.path):
                with suppress(FileMissing, DocumentInvalid):
                    yield changed.path, await _read_content(files, changed.before) or b""


async def _read_changes(files: FileStore) -> list[Change]:
    changes = []
    for info in reversed(await files.list(CHANGES_FOLDER)):
        with suppress(FileMissing, DocumentInvalid):
            changes.append(await _read_change(files, info.path))
    return changes


async def _read_change(files: FileStore, path: str) -> Change:
    return decode_change((await files.read(path)).data, _change_id(path))


def _change_id(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".json")


async def _read_content(files: FileStore, version: str) -> bytes | None:
    if version == ABSENT:
        return None
    try:
        data = zlib.decompress((await files.read(_object_path(version))).data)
    except FileMissing as error:
        raise FileMissing(
            f"The content {version} is not in the history any more: it was erased or given up."
        ) from error
    except zlib.error as error:
        raise DocumentInvalid(f"The content {version} that history kept can't be read.") from error
    if compute_version(data) != version:
        raise DocumentInvalid(f"The content {version} that history kept was changed.")
    return data


def _refuse_mixed_encodings(path: str, current: bytes, data: bytes) -> None:
    """Refuse to write UTF-8 into a UTF-16 document; replacing it with pure UTF-8 is allowed."""
    if is_utf16(current) and (is_utf16(data) or b"\0" in data):
        raise DocumentInvalid(f"{path} is in UTF-16 and was left as it is: save it as UTF-8 and try again.")


def _to_file_change(edit: Edit) -> FileChange:
    return FileChange(
        path=edit.path, before=edit.expected_hash, after=ABSENT if edit.data is None else compute_version(edit.data)
    )


def _revert_lines(before: bytes | None, after: bytes | None, current: bytes) -> bytes | None:
    """Revert the change from `before` to `after` in `current`; return None if others' edits can't be separated."""
    start = max((data for data in (before, after) if data and current.startswith(data)), key=len, default=b"")
    if start and start == before:
        return current
    removed = _line_set(before) - _line_set(after)
    if not start and removed & _line_set(current):
        # the change had not reached this file, or someone restored its lines
        untouched = removed <= _line_set(current) and _line_set(current).isdisjoint(
            _line_set(after) - _line_set(before)
        )
        return current if untouched else None
    if before and (start or after == b""):
        tail = current[len(start) :]
        closing = b"" if before.endswith(b"\n") or tail.startswith(b"\n") else b"\n"
        return before + closing + tail
    from ricordo.workspace.merge import merge_lines

    return merge_lines(after, current, before or b"") if after else None


def _revert_profile(before: bytes | None, after: bytes | None, current: bytes) -> bytes | None:
    """Revert the change from `before` to `after` in the profile `current`; return None if others changed the same."""
    from ricordo.workspace.merge import merge_profile_documents

    return merge_profile_documents(after or b"", current, before or b"")


def _line_set(data: bytes | None) -> set[bytes]:
    return {line for line in (data or b"").splitlines() if line.strip()}


def _object_path(version: str) -> str:
    return f"{OBJECTS_FOLDER}/{version[:2]}/{version}.z"
