"""Drafts: what the running sessions have saved so far, one JSON line for each entry, durable before `save` returns.

`sessions/.draft-<session>.jsonl` begins with a line that names the session and its start. Whoever writes one holds a
lock meanwhile, so a draft whose lock is free was left by a process that is gone.

Invariants: a torn line hides no other one; a draft is removed only in the version that was read.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from zlib import crc32

import anyio
from anyio.to_thread import run_sync

from ricordo.clock import Clock, format_rfc3339
from ricordo.errors import DocumentInvalid, FileMissing, InvalidMessage, StorageError, VersionConflict
from ricordo.files import FileStore, StoredFile
from ricordo.files.broken import quarantine_document
from ricordo.files.contract import FileInfo
from ricordo.messages import JsonValue
from ricordo.messages.jsontext import dumps, loads
from ricordo.scopes import encode_folder_name
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_json import entry_from_json, entry_to_json

__all__ = ["SessionDraft", "RunningSessions", "SessionDrafts"]

_PREFIX, _SUFFIX = ".draft-", ".jsonl"
_LOCK_COUNT = 256
_LOCK_SECONDS = 0.2
_MAX_TRIES = 20


@dataclass(frozen=True, kw_only=True)
class SessionDraft:
    """What one session has saved, the oldest first; `broken` tells whether something in it could not be read."""

    path: str
    session: str
    started: datetime
    stored: StoredFile
    entries: tuple[Entry, ...] = ()
    broken: bool = False


class RunningSessions:
    """Knows which sessions run: holds a lock for each of this process, and tries those of the others.

    A lock stands for several sessions, so one that is gone may seem to run until the next try. Never the other way.
    """

    def __init__(self, files: FileStore) -> None:
        """Hold no session."""
        self._files = files
        self._locks: dict[str, tuple[AsyncExitStack, set[str]]] = {}
        self._mutex = anyio.Lock()

    async def acquire(self, name: str) -> None:
        """Let the session `name` run in this process; one that runs in another one too is left to that one."""
        async with self._mutex:
            lock = _lock_name(name)
            if lock in self._locks:
                self._locks[lock][1].add(name)
            elif stack := await self._try_lock(lock):
                self._locks[lock] = (stack, {name})

    async def release(self, name: str) -> None:
        """Let the session `name` run no more."""
        async with self._mutex:
            lock = _lock_name(name)
            stack, names = self._locks.get(lock, (None, set()))
            names.discard(name)
            if stack and not names:
                del self._locks[lock]
                await stack.aclose()

    @asynccontextmanager
    async def lock_if_orphaned(self, name: str) -> AsyncIterator[bool]:
        """Tell whether nobody runs the session `name`, and keep it so during the block."""
        async with self._mutex:
            lock = _lock_name(name)
            if lock in self._locks:
                yield name not in self._locks[lock][1]
                return
            stack = await self._try_lock(lock)
            try:
                yield stack is not None
            finally:
                if stack:
                    await stack.aclose()

    async def _try_lock(self, lock: str) -> AsyncExitStack | None:
        """Return the lock that was taken, or None when somebody else has it."""
        stack = AsyncExitStack()
        with anyio.move_on_after(_LOCK_SECONDS):
            await stack.enter_async_context(self._files.lock(lock))
            return stack
        return None


class SessionDrafts:
    """The drafts of one folder."""

    def __init__(self, files: FileStore, folder: str, clock: Clock) -> None:
        """Keep them in `<folder>sessions/`."""
        self._files = files
        self._folder = f"{folder}sessions"
        self._clock = clock
        self._cache: dict[str, tuple[FileInfo, SessionDraft]] = {}

    def path(self, session: str) -> str:
        """Return where the draft of a session lies."""
        return f"{self._folder}/{_PREFIX}{encode_folder_name(session)}{_SUFFIX}"

    async def append(self, session: str, entry: Entry, started: datetime) -> None:
        """Add `entry`, durably; `started` is when the session began, for a draft that begins with it."""
        head: dict[str, JsonValue] = {"draft": session, "started": format_rfc3339(started)}
        await self._files.append(self.path(session), _encode_line(entry_to_json(entry)), header=_encode_line(head))

    async def read_all(self) -> list[SessionDraft]:
        """Return the drafts, the newest first."""
        listed = [info for info in await self._files.list(self._folder) if self._is_draft(info.path)]
        known = {info.path: self._cache.get(info.path) for info in listed}
        self._cache = {path: read for path, read in known.items() if read}
        drafts = []
        for info in listed:
            # one that can't be read hides no other
            with suppress(StorageError, FileMissing):
                drafts.append(await self._read_draft(info))
        return sorted(drafts, key=lambda draft: draft.entries[-1].id if draft.entries else "", reverse=True)

    async def find(self, session: str) -> SessionDraft | None:
        """Return the draft of a session, or None when there is none."""
        info = await self._files.info(self.path(session))
        try:
            return await self._read_draft(info) if info else None
        except FileMissing:
            return None

    async def remove(self, draft: SessionDraft) -> bool:
        """Remove a draft whose entries stand elsewhere; False when it was added to meanwhile.

        What could not be read of it is kept under another name.
        """
        try:
            if draft.broken:
                await quarantine_document(self._files, draft.path, draft.stored)
            await self._files.delete(draft.path, expected=draft.stored.version)
        except VersionConflict:
            return False
        except FileMissing:
            return True
        return True

    async def forget(self, entry_id: str) -> None:
        """Take the entry out of every draft that has it."""
        for _ in range(_MAX_TRIES):
            drafts = [one for one in await self.read_all() if any(entry.id == entry_id for entry in one.entries)]
            try:
                for draft in drafts:
                    rest = await run_sync(_remove_lines, draft, entry_id)
                    await self._files.replace(draft.path, rest, expected=draft.stored.version)
            except VersionConflict:
                continue
            return
        raise VersionConflict("A draft changed each time that an entry was to be taken out of it: try again.")

    def _is_draft(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return folder == self._folder and name.startswith(_PREFIX) and name.endswith(_SUFFIX)

    async def _read_draft(self, info: FileInfo) -> SessionDraft:
        read = self._cache.get(info.path)
        if read and read[0] == info:
            return read[1]
        stored = await self._files.read(info.path)
        draft = await run_sync(self._parse, info.path, stored, read[1] if read else None)
        self._cache[info.path] = (info, draft)
        return draft

    def _parse(self, path: str, stored: StoredFile, before: SessionDraft | None) -> SessionDraft:
        """Return what was read; of a draft that only grew, the new lines alone are parsed."""
        if before and before.stored.data.endswith(b"\n") and stored.data.startswith(before.stored.data):
            entries, broken = _parse_entries(stored.data[len(before.stored.data) :])
            return SessionDraft(
                path=path,
                session=before.session,
                started=before.started,
                stored=stored,
                entries=(*before.entries, *entries),
                broken=before.broken or broken,
            )
        head, _, rest = stored.data.partition(b"\n")
        session, started = _parse_header(head)
        entries, broken = _parse_entries(rest if session else stored.data)
        name = path.rpartition("/")[2].removeprefix(_PREFIX).removesuffix(_SUFFIX)
        times = [entry.time for entry in entries if entry.time]
        return SessionDraft(
            path=path,
            session=session or name,
            started=started or (times[0] if times else self._clock.now()),
            stored=stored,
            entries=tuple(entries),
            broken=broken,
        )


def _lock_name(name: str) -> str:
    return f"session-{crc32(name.encode('utf-8', 'surrogatepass')) % _LOCK_COUNT:02x}"


def _encode_line(value: dict[str, JsonValue]) -> bytes:
    return f"{dumps(value)}\n".encode()


def _decode_line(line: bytes) -> dict[str, JsonValue]:
    value = loads(line)
    if not isinstance(value, dict):
        raise DocumentInvalid("A line of a draft is an object.")
    return value


def _parse_header(line: bytes) -> tuple[str, datetime | None]:
    """Return the session and its start of the first line; "" where it does not tell them."""
    try:
        record = _decode_line(line)
        started = datetime.fromisoformat(str(record.get("started")))
    except (InvalidMessage, DocumentInvalid, ValueError):
        return "", None
    session = record.get("draft")
    return (session, started) if isinstance(session, str) and started.tzinfo else ("", None)


def _parse_entries(data: bytes) -> tuple[list[Entry], bool]:
    """Return the entries of these lines, and whether one could not be read; one that was torn off was never saved."""
    entries, broken = [], False
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entries.append(entry_from_json(_decode_line(line)))
        except (InvalidMessage, DocumentInvalid):
            broken = broken or number < len(lines)
    return entries, broken


def _remove_lines(draft: SessionDraft, entry_id: str) -> bytes:
    kept = []
    for line in draft.stored.data.split(b"\n"):
        try:
            if _decode_line(line).get("id") == entry_id:
                continue
        except (InvalidMessage, DocumentInvalid):
            pass
        kept.append(line)
    return b"\n".join(kept)
