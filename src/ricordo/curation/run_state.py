"""State between runs, one file each: the cursor, the last dream, the lease of a long run, and a pending proposal.

The cursor records the lines of ledgers that were read, by digests of bullets, never by modification times. It is not
part of a change set, so an undone run is not repeated. A dream reads all curated memory again.

Invariants: with a damaged cursor everything is unread, and without a dream state a dream is due. Correctness does not
depend on the lease: writes are checked against the versions that were read. A pending proposal is carried out only if
its input did not change.
"""

import json
import os
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import field
from datetime import datetime, timedelta
from functools import partial
from hashlib import blake2b

import anyio

from ricordo.clock import Clock, format_rfc3339
from ricordo.concurrency import background_task, run_even_if_cancelled
from ricordo.curation.config import ConsolidationConfig
from ricordo.curation.types import RETIREMENT_REASONS, Advice, LineMerge, Retirement, Supersession
from ricordo.errors import FileMissing, StorageError, VersionConflict
from ricordo.lazy import dataclass
from ricordo.messages.json_text import decode_json
from ricordo.messages.types import JsonValue
from ricordo.storage import ABSENT, FileStore, compute_version
from ricordo.workspace.entry_codec import LocatedEntry, parse_entries
from ricordo.workspace.layout import LEDGERS, WORKSPACE, parse_transcript_path

__all__ = [
    "CURSOR_PATH",
    "DREAM_STATE_PATH",
    "LEASE_EXPIRY",
    "LEASE_PATH",
    "PROPOSAL_PATH",
    "ConsolidationCursor",
    "DreamState",
    "LedgerPosition",
    "PendingProposal",
    "compute_basis",
    "delete_pending_proposal",
    "find_reason_to_wait",
    "find_unread_entries",
    "hold_lease",
    "id_digest",
    "line_digests",
    "load_cursor",
    "load_dream_state",
    "load_pending_proposal",
    "save_cursor",
    "save_dream_state",
    "save_pending_proposal",
    "session_fingerprints",
]


CURSOR_PATH = f"{LEDGERS}/.consolidation_state"
_DIGEST_LENGTH = 8


@dataclass(frozen=True, kw_only=True)
class LedgerPosition:
    """The read part of one ledger: its length in bytes, its digest, and the digests of its bullets and of their ids."""

    offset: int
    digest: str
    lines: frozenset[str]
    ids: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class ConsolidationCursor:
    """What the last run, at `at`, has read; empty, with `at` None, for a root that was never consolidated.

    `stated` are the ids of the entries that it left to the profile, `uncurated` those of the newest entries that runs
    left in the ledgers, which later ones may repeat or replace.
    """

    at: datetime | None = None
    ledgers: Mapping[str, LedgerPosition] = field(default_factory=dict)
    stated: frozenset[str] = frozenset()
    uncurated: frozenset[str] = frozenset()
    version: str = ABSENT

    @property
    def bullet_digests(self) -> frozenset[str]:
        """The digests of all bullets that were read."""
        return frozenset[str]().union(*(position.lines for position in self.ledgers.values()))

    @property
    def id_digests(self) -> frozenset[str]:
        """The digests of the ids of all bullets that were read."""
        return frozenset[str]().union(*(position.ids for position in self.ledgers.values()))


def id_digest(entry_id: str) -> str:
    """Return the short digest of an id, 32 bits of BLAKE2b in hex."""
    return blake2b(entry_id.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_LENGTH // 2).hexdigest()


def line_digests(bullets: Iterable[bytes]) -> frozenset[str]:
    """Return the short digest of each bullet, 32 bits of BLAKE2b in hex."""
    return frozenset(blake2b(bullet.rstrip(), digest_size=_DIGEST_LENGTH // 2).hexdigest() for bullet in bullets)


def find_unread_entries(
    path: str, data: bytes, cursor: ConsolidationCursor, seen: frozenset[str]
) -> list[LocatedEntry]:
    """Return the entries of a ledger that no run has read, in its order; `seen` are the digests of read bullets."""
    position = cursor.ledgers.get(path)
    is_fully_read = position is not None and position.offset == len(data) and position.digest == compute_version(data)
    if is_fully_read and position is not None and position.lines <= seen:
        return []
    return [
        located
        for located in parse_entries(data, path)
        if not line_digests([data[located.offset : located.offset + located.length]]) <= seen
    ]


async def load_cursor(files: FileStore) -> ConsolidationCursor:
    """Return the cursor of the workspace; an empty one if it is missing or damaged."""
    try:
        stored = await files.read(CURSOR_PATH)
    except FileMissing:
        return ConsolidationCursor()
    try:
        return _parse_cursor(stored.data, stored.version)
    except (ValueError, TypeError, KeyError, AttributeError):
        return ConsolidationCursor(version=stored.version)


async def save_cursor(files: FileStore, cursor: ConsolidationCursor) -> None:
    """Replace the cursor durably. Raises `VersionConflict`."""
    rows = {
        path: {
            "offset": position.offset,
            "digest": position.digest,
            "lines": "".join(sorted(position.lines)),
            "ids": "".join(sorted(position.ids)),
        }
        for path, position in sorted(cursor.ledgers.items())
    }
    value: dict[str, object] = {"at": format_rfc3339(cursor.at) if cursor.at else None, "ledgers": rows}
    if cursor.stated:
        value["stated"] = sorted(cursor.stated)
    if cursor.uncurated:
        value["uncurated"] = sorted(cursor.uncurated)
    await files.replace(CURSOR_PATH, json.dumps(value, indent=0).encode() + b"\n", expected=cursor.version)


def _parse_cursor(data: bytes, version: str) -> ConsolidationCursor:
    value = decode_json(data)
    at = value["at"]
    return ConsolidationCursor(
        at=datetime.fromisoformat(at) if at else None,
        ledgers={str(path): _parse_position(row) for path, row in value["ledgers"].items()},
        stated=frozenset(map(str, value.get("stated", ()))),
        uncurated=frozenset(map(str, value.get("uncurated", ()))),
        version=version,
    )


def _parse_position(row: Mapping[str, JsonValue]) -> LedgerPosition:
    offset = row["offset"]
    if not isinstance(offset, int):
        raise TypeError("a position is a number of bytes")
    return LedgerPosition(
        offset=offset,
        digest=str(row["digest"]),
        lines=_split_digests(row["lines"]),
        ids=_split_digests(row.get("ids", "")),
    )


def _split_digests(digests: JsonValue) -> frozenset[str]:
    if not isinstance(digests, str) or len(digests) % _DIGEST_LENGTH:
        raise TypeError("digests are of equal length")
    return frozenset(digests[start : start + _DIGEST_LENGTH] for start in range(0, len(digests), _DIGEST_LENGTH))


DREAM_STATE_PATH = f"{LEDGERS}/.dream_state"
_AGENTS_FOLDER = f"{WORKSPACE}/agents"


@dataclass(frozen=True, kw_only=True)
class DreamState:
    """The last dream that succeeded: its time, and the fingerprints of the sessions at that time.

    `refused` counts the runs in a row since then with unusable answers from a model.
    """

    at: datetime | None = None
    sessions: frozenset[str] = frozenset()
    refused: int = 0
    version: str = ABSENT


def find_reason_to_wait(
    last_dream: DreamState, *, now: datetime, changed: int, quiet_seconds: float, config: ConsolidationConfig
) -> str:
    """Return why a dream should not start now; empty when it may.

    `changed` is the number of other sessions that changed since the last dream, `quiet_seconds` the seconds since the
    last turn.
    """
    if last_dream.at is not None and timedelta(0) <= now - last_dream.at < timedelta(hours=config.dream_hours):
        return "the last dream is not long ago"
    if changed < config.dream_sessions:
        return "few sessions changed"
    return "a session is at work" if quiet_seconds < config.idle_seconds else ""


async def load_dream_state(files: FileStore) -> DreamState:
    """Return the state of the last dream; an empty one if its file is missing or damaged."""
    try:
        stored = await files.read(DREAM_STATE_PATH)
    except FileMissing:
        return DreamState()
    try:
        row = decode_json(stored.data)
        at, fingerprints = row["at"], str(row["sessions"])
        return DreamState(
            at=datetime.fromisoformat(at) if at else None,
            sessions=frozenset(
                fingerprints[start : start + _DIGEST_LENGTH] for start in range(0, len(fingerprints), _DIGEST_LENGTH)
            ),
            refused=int(row["refused"]),
            version=stored.version,
        )
    except (ValueError, TypeError, KeyError):
        return DreamState(version=stored.version)


async def save_dream_state(files: FileStore, dreams: DreamState) -> None:
    """Replace the dream state durably. Raises `VersionConflict`."""
    row = {
        "at": format_rfc3339(dreams.at) if dreams.at else None,
        "sessions": "".join(sorted(dreams.sessions)),
        "refused": dreams.refused,
    }
    await files.replace(DREAM_STATE_PATH, json.dumps(row).encode() + b"\n", expected=dreams.version)


async def session_fingerprints(files: FileStore, *, excluded: Collection[str] = ()) -> frozenset[str]:
    """Return a fingerprint of each session, which changes when it grows; sessions in `excluded` are left out."""
    return frozenset(
        blake2b(
            f"{info.path} {info.size}".encode("utf-8", "surrogatepass"), digest_size=_DIGEST_LENGTH // 2
        ).hexdigest()
        for info in await files.list(_AGENTS_FOLDER)
        if (session := parse_transcript_path(info.path)) is not None and session[1] not in excluded
    )


LEASE_PATH = f"{LEDGERS}/.dream_lock"
LEASE_EXPIRY = timedelta(hours=1)
"""The time without a heartbeat after which the lease can be taken over."""
_HEARTBEAT_SECONDS = 60.0
_HELD_TOKENS: set[str] = set()
"""The lease tokens of this process."""


@asynccontextmanager
async def hold_lease(files: FileStore, clock: Clock, *, heartbeat: float = _HEARTBEAT_SECONDS) -> AsyncIterator[bool]:
    """Hold the lease while the block runs and yield True; False when another run holds it. Raises: StorageError."""
    token = secrets.token_hex(8)
    version = await _acquire_lease(files, clock, token)
    if version is None:
        yield False
        return
    versions = [version]

    async def renew() -> None:
        while True:
            await anyio.sleep(heartbeat)
            try:
                versions[0] = await files.replace(LEASE_PATH, _render_lease(clock, token), expected=versions[0])
            except VersionConflict:
                return
            except StorageError:
                continue

    _HELD_TOKENS.add(token)
    try:
        async with background_task(renew):
            yield True
    finally:
        _HELD_TOKENS.discard(token)
        with suppress(StorageError, FileMissing):
            await run_even_if_cancelled(partial(files.delete, LEASE_PATH, expected=versions[0]))


async def _acquire_lease(files: FileStore, clock: Clock, token: str) -> str | None:
    """Take the lease and return its version; None when its holder is alive."""
    expected = ABSENT
    with suppress(FileMissing):
        stored = await files.read(LEASE_PATH)
        if _is_alive(stored.data, clock.now()):
            return None
        expected = stored.version
    try:
        return await files.replace(LEASE_PATH, _render_lease(clock, token), expected=expected)
    except VersionConflict:
        return None


def _render_lease(clock: Clock, token: str) -> bytes:
    row = {"pid": os.getpid(), "host": socket.gethostname(), "run": token, "at": format_rfc3339(clock.now())}
    return json.dumps(row).encode() + b"\n"


def _is_alive(data: bytes, now: datetime) -> bool:
    """Tell whether the holder lives: its heartbeat is less than an hour old, and its process exists as far as known."""
    try:
        row = decode_json(data)
        heartbeat, pid, host, run = datetime.fromisoformat(row["at"]), int(row["pid"]), row["host"], row["run"]
        if abs(now - heartbeat) >= LEASE_EXPIRY:
            return False
    except (ValueError, TypeError, KeyError, OverflowError):
        return False
    if host != socket.gethostname():
        return True
    return run in _HELD_TOKENS if pid == os.getpid() else _is_running(pid)


def _is_running(pid: int) -> bool:
    if sys.platform == "win32":
        # Windows has no harmless signal, so the heartbeat decides
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return pid > 0


PROPOSAL_PATH = f"{LEDGERS}/.consolidation_proposal"


@dataclass(frozen=True, kw_only=True)
class PendingProposal:
    """A proposal that waits for approval: its advice, the basis it was made on, and whether it is a dream's."""

    basis: str
    advice: Advice | None = None
    deep: bool = False


def compute_basis(versions: Mapping[str, str], *, deep: bool) -> str:
    """Return a digest of the versions of the documents that a run has read."""
    return compute_version(json.dumps([deep, *sorted(versions.items())]).encode("utf-8", "surrogatepass"))


async def load_pending_proposal(files: FileStore) -> PendingProposal | None:
    """Return the pending proposal; None when it is missing or can't be read."""
    try:
        row = decode_json((await files.read(PROPOSAL_PATH)).data)
        advice = None if row["advice"] is None else _parse_stored_advice(row["advice"])
        return PendingProposal(basis=str(row["basis"]), advice=advice, deep=bool(row["deep"]))
    except (FileMissing, ValueError, TypeError, KeyError):
        return None


async def save_pending_proposal(files: FileStore, proposal: PendingProposal) -> None:
    """Save this proposal as the pending one, replacing another. Raises `VersionConflict`."""
    version = ABSENT
    with suppress(FileMissing):
        version = (await files.read(PROPOSAL_PATH)).version
    advice = proposal.advice
    advice_row = None
    if advice:
        advice_row = {
            "merges": [[[*merge.parents], merge.content] for merge in advice.merges],
            "superseded": [[one.old, one.new] for one in advice.superseded],
            "retired": [[one.id, one.reason] for one in advice.retired],
            "topics": dict(advice.topics),
            "shown": [sorted(ids) for ids in advice.shown],
            "note": advice.note,
        }
    row = {"basis": proposal.basis, "deep": proposal.deep, "advice": advice_row}
    await files.replace(PROPOSAL_PATH, json.dumps(row, ensure_ascii=False).encode("utf-8", "replace"), expected=version)


async def delete_pending_proposal(files: FileStore) -> None:
    """Delete the pending proposal, if there is one."""
    with suppress(FileMissing):
        await files.delete(PROPOSAL_PATH)


def _parse_stored_advice(row: Mapping[str, object]) -> Advice:
    merges, superseded, retired, topics = (row[name] for name in ("merges", "superseded", "retired", "topics"))
    if not (isinstance(merges, list) and isinstance(superseded, list) and isinstance(retired, list)):
        raise TypeError("advice is made of lists")
    shown = row.get("shown", [])
    if not isinstance(topics, dict) or not isinstance(shown, list):
        raise TypeError("topics are named by ids, and ids are listed")
    return Advice(
        merges=tuple(LineMerge(parents=tuple(map(str, parents)), content=str(content)) for parents, content in merges),
        superseded=tuple(Supersession(old=str(old), new=str(new)) for old, new in superseded),
        retired=tuple(
            Retirement(id=str(name), reason=reason)
            for name, stored_reason in retired
            for reason in RETIREMENT_REASONS
            if reason == stored_reason
        ),
        topics={str(name): str(topic) for name, topic in topics.items()},
        shown=tuple(frozenset(map(str, ids)) for ids in shown if isinstance(ids, list)),
        note=str(row["note"]),
    )
