"""The cursor of a session: how far its messages were extracted, its recovery after a crash, and overdue work.

Overdue work are waiting jobs, permanently failed jobs, and lagging sessions without a job. Finding it changes nothing,
and resuming it requests no work that is waiting already.

The cursor also holds the block that may be half written. Bullets are appended in order, so a bullet in the ledger
proves that those before it were written. A damaged cursor is set aside and rebuilt from the ledger entries.

Invariants: a bullet known to have been in memory is not written again. A session that must not be extracted, or whose
state cannot be read, is never listed as lagging.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from anyio.to_thread import run_sync

from ricordo.errors import AlreadyExists, FileMissing, InvalidMessage, StorageError
from ricordo.jobs import Job, JobQueue, JobRecord
from ricordo.jobs.contract import find_unresolved_failures, is_same_work
from ricordo.lazy import dataclass
from ricordo.messages.json_text import decode_json
from ricordo.messages.types import JsonValue
from ricordo.storage import ABSENT, FileStore
from ricordo.workspace.agent_state import decode_state
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry, parse_entries
from ricordo.workspace.history.change_sets import CURATION_LOCK, iter_replaced_memory
from ricordo.workspace.history.checks import Check
from ricordo.workspace.history.tombstones import content_digest, read_tombstones
from ricordo.workspace.layout import WORKSPACE, agent_from_folder, cursor_path_for, parse_transcript_path, state_path
from ricordo.workspace.ledger import read_all_entries
from ricordo.workspace.transcript import TranscriptContents, read_transcript, read_transcript_from

__all__ = [
    "ExtractionCursor",
    "OverdueWork",
    "check_unlearned",
    "find_overdue_work",
    "find_unextracted_sessions",
    "load_cursor",
    "load_extracted_entries",
    "read_log_from_cursor",
    "recover_cursor",
    "resume_overdue_work",
    "save_cursor",
]


_MAX_DONE_IDS = 32
_MAX_OFFSET = 2**62


@dataclass(frozen=True, kw_only=True)
class ExtractionCursor:
    """The progress of extraction. `done` are the ids of the last extracted messages, newest last.

    There are several because a message may be erased. If `next` is set, it is the coming value of `done`, and `block`
    is being written to the ledger at `path`, which had `offset` bytes before. The message `anchor` is at byte `place`
    of the log; earlier messages are not needed again. `damaged` says that the file holds no cursor, `rebuilt` that some
    messages after `done` may have been extracted already.
    """

    file_path: str
    done: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    path: str = ""
    block: str = ""
    offset: int = 0
    place: int = 0
    anchor: str = ""
    rebuilt: bool = False
    damaged: bool = False
    version: str = ABSENT

    def position(self, messages: Iterable[str]) -> int:
        """Return how many of these ids, in the order of the log, were extracted."""
        done_ids = frozenset(self.done)
        return max((number for number, name in enumerate(messages, start=1) if name in done_ids), default=0)

    def advance(self, messages: Sequence[str], *, place: int, anchor: str) -> "ExtractionCursor":
        """Return the cursor that is about to move past `messages`."""
        return replace(self, next=(*self.done, *messages)[-_MAX_DONE_IDS:], place=place, anchor=anchor, rebuilt=False)

    def complete(self) -> "ExtractionCursor":
        """Return the cursor after its block was written."""
        return ExtractionCursor(
            file_path=self.file_path, done=self.next, place=self.place, anchor=self.anchor, version=self.version
        )


async def load_cursor(files: FileStore, path: str) -> ExtractionCursor:
    """Return the cursor stored at `path`. A missing one has extracted nothing, an unreadable one is `damaged`."""
    try:
        stored = await files.read(path)
    except FileMissing:
        return ExtractionCursor(file_path=path)
    try:
        return _decode_cursor(path, stored.version, decode_json(stored.data))
    except (ValueError, TypeError, KeyError, AttributeError):
        return ExtractionCursor(file_path=path, version=stored.version, damaged=True)


async def save_cursor(files: FileStore, cursor: ExtractionCursor) -> ExtractionCursor:
    """Replace the cursor durably and return it with its new version. Raises `VersionConflict`."""
    value = {
        "done": cursor.done,
        "next": cursor.next,
        "path": cursor.path,
        "block": cursor.block,
        "offset": cursor.offset,
        "place": cursor.place,
        "anchor": cursor.anchor,
        "rebuilt": cursor.rebuilt,
    }
    data = json.dumps(value).encode() + b"\n"
    return replace(cursor, version=await files.replace(cursor.file_path, data, expected=cursor.version), damaged=False)


def _decode_cursor(file_path: str, version: str, value: Mapping[str, JsonValue]) -> ExtractionCursor:
    return ExtractionCursor(
        file_path=file_path,
        version=version,
        done=_parse_ids(value["done"]),
        next=_parse_ids(value["next"]),
        path=str(value["path"]),
        block=str(value["block"]),
        offset=_parse_offset(value["offset"]),
        place=_parse_offset(value["place"]),
        anchor=str(value["anchor"]),
        rebuilt=bool(value["rebuilt"]),
    )


def _parse_ids(value: JsonValue) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("ids are a list")
    return tuple(str(name) for name in value)


def _parse_offset(value: JsonValue) -> int:
    if not isinstance(value, int) or not 0 <= value < _MAX_OFFSET:
        raise TypeError("an offset is a number")
    return value


_ENTRY_FIELDS = b" [at:: "


async def recover_cursor(files: FileStore, path: str, session: str, *, key: bytes) -> ExtractionCursor:
    """Complete the cursor's block in the ledger and return the cursor; the caller holds the lock of the session.

    A damaged cursor is set aside as `<name>.broken-<n>` and rebuilt. `key` identifies entries forgotten in the
    meantime.
    """
    cursor = await load_cursor(files, path)
    if cursor.damaged:
        return await _rebuild_cursor(files, cursor, session)
    if not cursor.next:
        return cursor
    async with files.lock(CURATION_LOCK):
        missing = await _missing_bullets(files, cursor)
        if missing:
            await _remove_torn_bullet(files, cursor, missing[0])
            heading = cursor.path.rpartition("/")[2].removesuffix(".md")
            remaining = await _drop_forgotten(files, missing, key)
            if remaining:
                await files.append(cursor.path, b"".join(remaining), header=f"# {heading}\n\n".encode())
    return await save_cursor(files, cursor.complete())


async def load_extracted_entries(files: FileStore, session: str) -> list[Entry]:
    """Return all entries extracted from a session, oldest first, including entries undone since."""
    entries = [located.entry for located in await _load_all_entries(files)]
    session_entries = {entry.id: entry for entry in entries if entry.by == "flush" and entry.source.session == session}
    return [session_entries[name] for name in sorted(session_entries)]


async def _rebuild_cursor(files: FileStore, damaged: ExtractionCursor, session: str) -> ExtractionCursor:
    with suppress(FileMissing):
        await _back_up_file(files, damaged.file_path)
    entries = await load_extracted_entries(files, session)
    done_ids = dict.fromkeys(name for entry in entries for name in reversed(entry.source.messages))
    return await save_cursor(files, replace(damaged, done=tuple(done_ids), rebuilt=True))


async def _back_up_file(files: FileStore, path: str) -> None:
    data = (await files.read(path)).data
    number = 1
    while True:
        with suppress(AlreadyExists):
            await files.create(f"{path}.broken-{number}", data)
            return
        number += 1


async def _missing_bullets(files: FileStore, cursor: ExtractionCursor) -> list[bytes]:
    data = cursor.block.encode("utf-8", "surrogatepass")
    bullets = [(item.entry.id, data[item.offset : item.offset + item.length]) for item in parse_entries(data, "")]
    known_ids = {located.entry.id for located in await _load_entries(files, cursor.path)}
    if bullets and bullets[-1][0] not in known_ids:
        known_ids |= {located.entry.id for located in await _load_all_entries(files)}
        known_ids |= (await read_tombstones(files)).ids
    written = max((number for number, (name, _) in enumerate(bullets, start=1) if name in known_ids), default=0)
    return [bullet for _, bullet in bullets[written:]]


async def _drop_forgotten(files: FileStore, bullets: list[bytes], key: bytes) -> list[bytes]:
    digests = (await read_tombstones(files)).digests
    bullet_digests = [
        content_digest(located.entry.content, key) for bullet in bullets for located in parse_entries(bullet, "")
    ]
    return [bullet for bullet, digest in zip(bullets, bullet_digests, strict=True) if digest not in digests]


async def _load_all_entries(files: FileStore) -> list[LocatedEntry]:
    """Return the current entries of memory and those replaced by change sets."""
    entries = await read_all_entries(files)
    async for path, data in iter_replaced_memory(files):
        entries += await run_sync(parse_entries, data, path)
    return entries


async def _load_entries(files: FileStore, path: str) -> list[LocatedEntry]:
    try:
        return parse_entries((await files.read(path)).data, path)
    except FileMissing:
        return []


async def _remove_torn_bullet(files: FileStore, cursor: ExtractionCursor, bullet: bytes) -> None:
    """Remove the beginning of `bullet` that a crash left behind.

    It is at or after the end of the ledger before the write, and is the torn end of the file or has fields that no
    person types. Any other text may be a person's own bullet.
    """
    try:
        stored = await files.read(cursor.path)
    except FileMissing:
        return
    for located in reversed(parse_entries(stored.data, cursor.path)):
        start, end = located.offset, located.offset + located.length
        piece = stored.data[start:end]
        is_torn = bullet.startswith(piece.rstrip(b"\n")) and piece.rstrip(b"\n") != bullet.rstrip(b"\n")
        if is_torn and start >= cursor.offset and (_ENTRY_FIELDS in piece or not stored.data.endswith(b"\n")):
            await files.replace(cursor.path, stored.data[:start] + stored.data[end:], expected=stored.version)
            return


async def find_unextracted_sessions(files: FileStore) -> list[tuple[str, str]]:
    """Return the agent and session of each transcript with messages that were not extracted, by path.

    Sessions that must not be extracted are left out, and so are sessions whose folder does not tell the agent's name;
    the next flush of such a session extracts everything.
    """
    sessions = []
    for info in await files.list(f"{WORKSPACE}/agents"):
        parsed_path = parse_transcript_path(info.path)
        agent = agent_from_folder(parsed_path[0]) if parsed_path else None
        if (
            parsed_path
            and agent is not None
            and await _is_behind(files, info.path)
            and await _may_learn(files, agent, parsed_path[1])
        ):
            sessions.append((agent, parsed_path[1]))
    return sessions


async def read_log_from_cursor(files: FileStore, path: str, cursor: ExtractionCursor) -> TranscriptContents:
    """Return the log from the cursor's position on, or the whole log if that position is no longer valid."""
    if cursor.anchor:
        logged = await read_transcript_from(files, path, offset=cursor.place, message_id=cursor.anchor)
        if logged is not None and cursor.position(message.id for message in logged.messages):
            return logged
    return await read_transcript(files, path)


async def _may_learn(files: FileStore, agent: str, session: str) -> bool:
    """Return whether a session may be extracted. A session without a state, such as an imported one, may be."""
    try:
        path = state_path(agent, session)
        try:
            data = (await files.read(path)).data
        except FileMissing:
            return await files.info(f"{path}.broken-1") is None
        return (await run_sync(partial(decode_state, data, agent=agent, session=session))).learns
    except (InvalidMessage, StorageError):
        return False


async def _is_behind(files: FileStore, path: str) -> bool:
    cursor = await load_cursor(files, cursor_path_for(path))
    if cursor.damaged or cursor.next:
        return True
    logged = await read_log_from_cursor(files, path, cursor)
    return cursor.position(message.id for message in logged.messages) < len(logged.messages)


_MAX_JOBS = 1_000
_MAX_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class OverdueWork:
    """Jobs that wait or run, and jobs that failed too often without a later success, each newest first.

    `behind` are jobs for sessions with messages that were not extracted and no waiting job, such as after the inbox was
    deleted.
    """

    waiting: Sequence[JobRecord] = ()
    failed: Sequence[JobRecord] = ()
    behind: Sequence[Job] = ()


async def find_overdue_work(queue: JobQueue, files: FileStore) -> OverdueWork:
    """Return the overdue work. Raises: StorageError if the inbox or a transcript cannot be read."""
    newest_first = await queue.jobs(limit=_MAX_JOBS)
    waiting = [record for record in newest_first if record.state in {"waiting", "running"}]
    failed = find_unresolved_failures(newest_first)
    existing_jobs = [record.job for record in (*waiting, *failed)]
    sessions = [
        Job(kind="flush", agent=agent, session=session) for agent, session in await find_unextracted_sessions(files)
    ]
    behind = [job for job in sessions if not any(is_same_work(job, each) for each in existing_jobs)]
    return OverdueWork(waiting=waiting, failed=failed, behind=behind)


async def check_unlearned(queue: JobQueue, files: FileStore) -> Check:
    """Return the check for sessions with messages that were not extracted and no waiting job.

    A session with a running turn is among them until the turn ends. Another check reports an unreadable inbox.
    """
    try:
        behind = [job.session for job in (await find_overdue_work(queue, files)).behind]
    except StorageError:
        behind = []
    detail = "sessions that were not learned from to their end, for which no job waits"
    if behind:
        suffix = f" and {len(behind) - _MAX_NAMED} more" if len(behind) > _MAX_NAMED else ""
        detail += f"; `ricordo maintain` asks for them again: {', '.join(behind[:_MAX_NAMED])}{suffix}"
    return Check(name="unlearned", ok=True, count=len(behind), detail=detail)


async def resume_overdue_work(queue: JobQueue, overdue: OverdueWork, *, retry: bool = False) -> None:
    """Make all overdue work due at once; with `retry` also failed jobs, with a new count of attempts."""
    retried = [
        Job(kind=job.kind, agent=job.agent, session=job.session, user=job.user)
        for job in (record.job for record in overdue.failed)
    ]
    for job in (*overdue.behind, *(retried if retry else ())):
        await queue.put(job)
    await queue.make_due()
