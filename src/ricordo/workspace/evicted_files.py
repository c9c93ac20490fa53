"""Cleanup of evicted result files that nothing refers to any more.

A file stays while its name occurs in a session's state or in its journal of compactions, and while the session is in
use. Nothing is lost with a file: the transcript holds every whole result.

Invariant: only old files are removed, and only those of sessions with both a state and a transcript.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta

from anyio.to_thread import run_sync

from ricordo.clock import Clock
from ricordo.errors import FileMissing
from ricordo.lazy import dataclass, lazy_compile
from ricordo.scope import encode_folder_name
from ricordo.storage import FileInfo, FileStore
from ricordo.workspace.layout import LARGE_RESULTS, WORKSPACE, parse_record_path

__all__ = [
    "GRACE_PERIOD",
    "CleanupResult",
    "SessionReferences",
    "evicted_folder",
    "find_references",
    "reference_suffix",
    "remove_unreferenced",
    "select_unreferenced",
]


GRACE_PERIOD = timedelta(days=1)
"""How long a file stays, and a session counts as in use, after the last change."""
_FILE_NAME = lazy_compile(r"[A-Za-z0-9_-]+-[0-9a-f]{16,32}\.[A-Za-z0-9]{1,16}")
# the digest identifies a file; matching a whole name would take quadratic time on a long word
_REFERENCE = lazy_compile(rb"-[0-9a-f]{16,32}\.[A-Za-z0-9]{1,16}")


_REFERRING_KINDS = frozenset({"state", "compactions"})


@dataclass(frozen=True, kw_only=True)
class CleanupResult:
    """The number of removed files, and their total size in bytes."""

    count: int = 0
    bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class SessionReferences:
    """The references of one session: its states and journals, and when its state and transcript last changed.

    `documents` are the paths of files that may refer to evicted files, including states that were set aside.
    """

    documents: list[str] = field(default_factory=list)
    modified_ns: dict[str, int] = field(default_factory=dict)


def select_unreferenced(
    files: Iterable[FileInfo], references: SessionReferences, mentioned: Collection[str], *, before: int
) -> list[FileInfo]:
    """Return the removable files of one session; files, state and transcript must be older than `before` (nanoseconds).

    `mentioned` are the ends of names, digest and type, that its documents refer to.
    """
    if not {"state", "transcript"} <= references.modified_ns.keys() or max(references.modified_ns.values()) >= before:
        return []
    return [info for info in files if info.modified_ns < before and reference_suffix(info.path) not in mentioned]


async def remove_unreferenced(
    files: FileStore, clock: Clock, *, eviction_path: str | None = None, grace: timedelta = GRACE_PERIOD
) -> CleanupResult:
    """Remove the unreferenced files of all sessions of the workspace in `files`.

    `eviction_path` is that of the `ToolResultEvictionConfig`; None means its default. Raises `StorageError`.
    """
    folder = evicted_folder(eviction_path)
    by_session = _group_by_session(folder, await files.list(folder))
    before = _to_nanoseconds(clock.now() - grace)
    if not any(info.modified_ns < before for evicted in by_session.values() for info in evicted):
        return CleanupResult()
    references_by_folder = _sessions_by_folder(await files.list(f"{WORKSPACE}/agents"))
    removed: list[FileInfo] = []
    for part, evicted in by_session.items():
        references = references_by_folder.get(part, SessionReferences())
        if not select_unreferenced(evicted, references, (), before=before):
            continue
        mentioned = await find_references(files, references.documents)
        removed += [
            info
            for info in select_unreferenced(evicted, references, mentioned, before=before)
            if await _delete_file(files, info)
        ]
    return CleanupResult(count=len(removed), bytes=sum(info.size for info in removed))


def evicted_folder(eviction_path: str | None) -> str:
    """Return the folder of evicted results, grouped by session, for this `eviction_path`."""
    return f"{WORKSPACE}/{eviction_path.strip('/')}" if eviction_path else LARGE_RESULTS


def _group_by_session(folder: str, evicted: Sequence[FileInfo]) -> Mapping[str, list[FileInfo]]:
    """Return the evicted files by the folder of their session, leaving out other files."""
    groups: defaultdict[str, list[FileInfo]] = defaultdict(list)
    for info in evicted:
        session, slash, name = info.path.removeprefix(f"{folder}/").partition("/")
        if slash and _FILE_NAME.fullmatch(name):
            groups[session].append(info)
    return groups


def _sessions_by_folder(documents: Iterable[FileInfo]) -> Mapping[str, SessionReferences]:
    """Return the references of each session, by the folder of its evicted files."""
    references_by_folder: defaultdict[str, SessionReferences] = defaultdict(SessionReferences)
    for info in documents:
        record = parse_record_path(info.path)
        if record is None or record.kind not in _REFERRING_KINDS | {"transcript"}:
            continue
        references = references_by_folder[encode_folder_name(record.session)]
        if record.kind in _REFERRING_KINDS:
            references.documents.append(info.path)
        if record.kind != "compactions" and not record.is_set_aside:
            references.modified_ns[record.kind] = max(info.modified_ns, references.modified_ns.get(record.kind, 0))
    return references_by_folder


async def find_references(files: FileStore, paths: Iterable[str]) -> frozenset[str]:
    """Return the end of every name in these documents that could belong to an evicted file."""
    names: set[str] = set()
    for path in paths:
        try:
            data = (await files.read(path)).data
        except FileMissing:
            continue
        names.update(name.decode() for name in await run_sync(_REFERENCE.findall, data))
    return frozenset(names)


def reference_suffix(path: str) -> str:
    """Return the end of an evicted file's name, with which documents refer to it."""
    return f"-{path.rpartition('-')[2]}"


async def _delete_file(files: FileStore, info: FileInfo) -> bool:
    try:
        await files.delete(info.path)
    except FileMissing:
        return False
    return True


def _to_nanoseconds(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000_000)
