"""Erase: permanently remove the content of an entry from every file of a root, and check that nothing is left.

Tombstones are added first. Then every file that contains it is rewritten, the copies in history are deleted, and the
index is rebuilt from the files. A record without content stays in `history/erasing/` until all of this is done; erasing
the same entry again after an interruption finishes it.
"""

import json
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from anyio.to_thread import run_sync

from ricordo.clock import Clock, format_rfc3339
from ricordo.errors import (
    AlreadyExists,
    DocumentInvalid,
    EraseIncomplete,
    FileMissing,
    PathRefused,
    StorageFailed,
    VersionConflict,
)
from ricordo.lazy import dataclass
from ricordo.messages.json_text import decode_json
from ricordo.storage import FileStore
from ricordo.storage.erase_rows import SQLITE_MAGIC, erase_rows, read_values
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import parse_entries
from ricordo.workspace.history.change_sets import (
    CHANGES_LOCK,
    CURATION_LOCK,
    OBJECTS_FOLDER,
    ChangeSets,
    iter_replaced_memory,
)
from ricordo.workspace.history.copies import find_copies
from ricordo.workspace.history.repetition import ErasePatterns
from ricordo.workspace.history.tombstones import ForgottenStatements, Tombstone, content_digest, read_tombstones
from ricordo.workspace.layout import TOMBSTONES, WORKSPACE, is_profile
from ricordo.workspace.ledger import find_entries
from ricordo.workspace.titles import DESCRIPTION_CHARS, POINTER_CHARS, shorten_statement

__all__ = [
    "ERASING_FOLDER",
    "EraseResult",
    "EraseTarget",
    "collect_erase_texts",
    "erase_texts",
    "find_entry_versions",
    "finish_erasing",
    "list_unfinished",
]


ERASING_FOLDER = "history/erasing"
"""The folder for the records of unfinished erasures, by id."""
_SKIPPED_FOLDERS = frozenset({"users", "tenants"})
_MAX_PASSES = 4
_MOST_NAMED = 20
_MIN_SHORT_CHARS = 40


@dataclass(frozen=True, kw_only=True)
class EraseResult:
    """The result of erasing: the ids, and how many files were changed, deleted, and searched at the end.

    `inside_words` are the sorted paths of files that still contain the text as a part of longer words.
    """

    ids: tuple[str, ...] = ()
    changed: int = 0
    deleted: int = 0
    scanned: int = 0
    inside_words: tuple[str, ...] = ()

    def merge(self, other: "EraseResult") -> "EraseResult":
        """Return the sum of two results."""
        return EraseResult(
            ids=tuple(dict.fromkeys((*self.ids, *other.ids))),
            changed=self.changed + other.changed,
            deleted=self.deleted + other.deleted,
            scanned=self.scanned + other.scanned,
            inside_words=tuple(sorted({*self.inside_words, *other.inside_words})),
        )


@dataclass(frozen=True, kw_only=True)
class EraseTarget:
    """A root to erase from: its `folder`, and `index`, the path of its rebuildable index database."""

    files: FileStore
    changes: ChangeSets
    folder: Path
    index: Path
    key: bytes
    clock: Clock


async def find_entry_versions(root: EraseTarget, entry_id: str) -> list[Entry]:
    """Return the current and earlier versions of the entry or profile fact with this id, each once."""
    versions = [one.entry for one in await find_entries(root.files, entry_id) if one.entry.id == entry_id]
    name = f"^{entry_id}".encode()
    async for path, data in iter_replaced_memory(root.files):
        if name in data:
            versions += [one.entry for one in await run_sync(parse_entries, data, path) if one.entry.id == entry_id]
    versions += await _find_fact_versions(root.files, entry_id)
    return [*{(entry.content, entry.source): entry for entry in versions}.values()]


async def _find_fact_versions(files: FileStore, fact_id: str) -> list[Entry]:
    from ricordo.workspace.profile import locate_facts

    paths = [info.path for info in await files.list(WORKSPACE) if is_profile(info.path)]
    documents = [(path, (await files.read(path)).data) for path in paths]
    documents += [row async for row in iter_replaced_memory(files, is_profile)]
    name = f'"{fact_id}"'.encode()
    return [
        one.entry
        for path, data in documents
        if name in data
        for one in await run_sync(locate_facts, data, path)
        if one.entry.id == fact_id
    ]


async def collect_erase_texts(root: EraseTarget, entries: Sequence[Entry], entry_id: str) -> set[str]:
    """Return all texts to erase from a root for these versions of an entry."""
    texts = {entry.content for entry in entries} | {entry.source.quote for entry in entries if entry.source.quote}
    # earlier versions of MEMORY.md may state a long one in short
    short_texts = {
        shorten_statement(entry.content, limit).strip("…")
        for entry in entries
        for limit in (DESCRIPTION_CHARS, POINTER_CHARS)
    }
    texts |= {text for text in short_texts if len(text) >= _MIN_SHORT_CHARS}
    if entries:
        texts |= {*(await find_copies(root.files, entries, key=root.key)).texts}
    tombstones = await read_tombstones(root.files)
    digests = frozenset(each.digest for each in tombstones.rows if each.id == entry_id and each.digest)
    if digests:
        texts |= await run_sync(_find_forgotten_texts, root.folder, ForgottenStatements(digests, frozenset(), root.key))
    return texts


async def add_tombstones(root: EraseTarget, entries: Sequence[Entry], entry_id: str, *, with_copies: bool) -> None:
    """Add tombstones for the entries to erase, unless forgetting has added them.

    With `with_copies`, statements in records that say the same get tombstones too.
    """
    copies = await find_copies(root.files, entries, key=root.key) if entries and with_copies else None
    tombstones = await read_tombstones(root.files)
    digests = {content_digest(entry.content, root.key) for entry in entries}
    existing = {(row.id, row.digest) for row in tombstones.rows}
    now = format_rfc3339(root.clock.now())
    new = [Tombstone(id=entry_id, digest=digest, at=now, by="user") for digest in sorted(digests)]
    new = [row for row in new if (row.id, row.digest) not in existing]
    rows = [row for row in [*new, *(copies.tombstones if copies else ())] if row not in tombstones.rows]
    if rows:
        await root.files.replace(TOMBSTONES, tombstones.render_with(rows), expected=tombstones.version)


async def begin_erasing(root: EraseTarget, entry_id: str, text: str = "") -> None:
    """Create the record, without content, that this entry or this `text` is being erased."""
    record = {"id": entry_id, "at": format_rfc3339(root.clock.now())}
    if text:
        record["text"] = content_digest(text, root.key)
    with suppress(AlreadyExists):
        await root.files.create(f"{ERASING_FOLDER}/{entry_id}.json", (json.dumps(record) + "\n").encode())


async def finish_erasing(root: EraseTarget, entry_id: str) -> None:
    """Delete the record of an erasure."""
    with suppress(FileMissing):
        await root.files.delete(f"{ERASING_FOLDER}/{entry_id}.json")


async def list_unfinished(files: FileStore) -> dict[str, str]:
    """Return the ids of unfinished erasures, each with the digest of its text, or an empty string."""
    digests: dict[str, str] = {}
    for info in await files.list(ERASING_FOLDER):
        name = info.path.rpartition("/")[2].removesuffix(".json")
        with suppress(FileMissing):
            try:
                digest = decode_json((await files.read(info.path)).data).get("text", "")
            except (ValueError, AttributeError):
                digest = ""
            digests[name] = digest if isinstance(digest, str) else ""
    return digests


async def erase_texts(root: EraseTarget, needles: ErasePatterns) -> EraseResult:
    """Remove `needles` from every file of a root, then search all files for them.

    Raises: EraseIncomplete, which names the files that still contain one.
    """
    result = EraseResult()
    for _ in range(_MAX_PASSES):
        async with root.files.lock(CURATION_LOCK), root.files.lock(CHANGES_LOCK):
            result = result.merge(await _run_pass(root, needles))
        await run_sync(_drop_index, root)
        scan = await run_sync(_scan_files, root, needles)
        if not scan.left:
            return result.merge(EraseResult(scanned=scan.searched, inside_words=scan.inside_words))
    raise _incomplete(scan)


async def _run_pass(root: EraseTarget, needles: ErasePatterns) -> EraseResult:
    changed = deleted = 0
    for path in await run_sync(lambda: sorted({*_iter_files(root.folder)}.difference(_index_files(root)))):
        name = path.relative_to(root.folder).as_posix()
        act = await run_sync(_choose_step, path, needles)
        if act == "delete":
            await run_sync(partial(path.unlink, missing_ok=True))
            deleted += 1
        elif act == "rows":
            # one that can't be changed is reported at the end
            with suppress(StorageFailed, DocumentInvalid):
                await run_sync(erase_rows, path, needles.erase)
                changed += 1
        elif act == "text":
            # a file changed meanwhile waits for the next pass; one with a refused name is reported at the end
            with suppress(VersionConflict, FileMissing, PathRefused):
                await _rewrite_file(root.files, name, needles)
                changed += 1
    return EraseResult(changed=changed, deleted=deleted)


async def _rewrite_file(files: FileStore, name: str, needles: ErasePatterns) -> None:
    stored = await files.read(name)
    rest = await run_sync(partial(needles.erase, stored.data, in_place=name.endswith(".jsonl")))
    await files.replace(name, rest, expected=stored.version)


def _choose_step(path: Path, needles: ErasePatterns) -> str:
    """Return how to erase from a file: "delete" it, change its "rows" or its "text"; empty for nothing."""
    data = _read_bytes(path)
    if data.startswith(SQLITE_MAGIC):
        # nothing separates the columns of a row, so a text in one may look like a part of a longer word
        return "rows" if needles.occur_anywhere_in(data) else ""
    if OBJECTS_FOLDER in path.as_posix():
        return "delete" if needles.occur_in(_decompress(data)) else ""
    if not needles.occur_in(data):
        return ""
    return "delete" if path.name.startswith(".~") else "text"


def _drop_index(root: EraseTarget) -> None:
    """Delete the index, its vectors and damaged copies; a process that has it open rebuilds it."""
    for path in _index_files(root):
        with suppress(FileNotFoundError):
            path.unlink()


def _index_files(root: EraseTarget) -> Iterator[Path]:
    """Yield the files of the index, which are rebuilt, not edited: an edit would corrupt their full-text tables."""
    for folder in {root.folder, root.index.parent}:
        yield from folder.glob(f"{root.index.stem}*")


@dataclass(frozen=True, kw_only=True)
class _ScanResult:
    """How many files were searched, which contain an erased text, and which only inside longer words."""

    searched: int
    left: tuple[str, ...]
    inside_words: tuple[str, ...]
    databases: tuple[str, ...] = ()
    """The paths in `left` that are databases."""


def _incomplete(scan: _ScanResult) -> EraseIncomplete:
    """Return the error that names the files that still contain a text, with advice for each kind."""
    files = [path for path in scan.left if path not in scan.databases]
    sentences = []
    if files:
        subject = f"{len(files)} files still hold" if len(files) > 1 else "1 file still holds"
        sentences.append(
            f"{subject} some of it: {', '.join(files[:_MOST_NAMED])}. End what writes to it and erase it again."
        )
    if scan.databases:
        sentences.append(
            f"{', '.join(scan.databases[:_MOST_NAMED])} still holds some of it, and is a database with tables that "
            "can't be changed from here. Take it out with the program that the database belongs to, or move the file "
            "out of this folder or delete it, and erase it again."
        )
    return EraseIncomplete(" ".join(sentences))


def _scan_files(root: EraseTarget, needles: ErasePatterns) -> _ScanResult:
    paths = [*_iter_files(root.folder), *_index_files(root)]
    matches = [path for path in paths if needles.occur_anywhere_in(_decompress(_read_bytes(path)))]
    remaining = [str(path) for path in matches if _is_left(path, needles)]
    return _ScanResult(
        searched=len(paths),
        left=tuple(remaining),
        databases=tuple(path for path in remaining if _read_bytes(Path(path)).startswith(SQLITE_MAGIC)),
        inside_words=tuple(sorted(str(path) for path in matches if str(path) not in remaining)),
    )


def _is_left(path: Path, needles: ErasePatterns) -> bool:
    """Return whether a file contains a text as whole words or, in a database, outside of its rows."""
    data = _read_bytes(path)
    if not data.startswith(SQLITE_MAGIC):
        return needles.occur_in(_decompress(data))
    try:
        values = read_values(path)
    except (StorageFailed, DocumentInvalid):
        return True
    return any(map(needles.occur_in, values)) or not any(map(needles.occur_anywhere_in, values))


def _find_forgotten_texts(folder: Path, forgotten: ForgottenStatements) -> set[str]:
    texts: set[str] = set()
    for path in _iter_files(folder):
        data = _decompress(_read_bytes(path))
        if not data.startswith(SQLITE_MAGIC):
            texts |= forgotten.find_in_file(data)
    return texts


def _iter_files(folder: Path) -> Iterator[Path]:
    """Yield every file of a root except links and files in the folders of its users."""
    for parent, folders, names in os.walk(folder):
        if Path(parent) == folder:
            folders[:] = [name for name in folders if name not in _SKIPPED_FOLDERS]
        yield from (path for name in sorted(names) if not (path := Path(parent, name)).is_symlink())


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise StorageFailed(f"{path} can't be read: {error.strerror or error}.") from error


def _decompress(data: bytes) -> bytes:
    """Return decompressed content, or other bytes unchanged."""
    try:
        return zlib.decompress(data) if data[:1] == b"x" else data
    except zlib.error:
        return data
