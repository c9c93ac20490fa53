"""The ledger, an append-only daily log of entries; and reading entries of all memory documents, or finding them by id.

The writer adds bullets to the file of the local day and never changes an earlier byte. An entry over 4 KB gets a
separate file, which is durable before the line that points to it. An id is found by its full text, or by six or more
leading or trailing characters, without parsing documents that can't contain it.
"""

import re
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from functools import partial
from weakref import WeakKeyDictionary

from anyio.to_thread import run_sync

from ricordo.concurrency import compute
from ricordo.errors import AlreadyExists, EntryNotFound, FileMissing, StorageError
from ricordo.guard.redact import Redactor
from ricordo.language.words import split_words
from ricordo.lazy import dataclass, lazy_compile
from ricordo.storage import FileInfo, FileStore, SupportsAppend
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry, parse_entries, render_entry
from ricordo.workspace.layout import (
    FACT_ID_PREFIX,
    LEDGERS,
    MEMORY_PATH,
    TOPICS,
    WORKSPACE,
    is_ledger,
    is_memory,
    ledger_date,
    ledger_path,
    long_entry_path,
)
from ricordo.workspace.markdown import find_marked_ids, find_written_id
from ricordo.workspace.redaction import all_redacted_beside

__all__ = [
    "LONG_ENTRY_BYTES",
    "MIN_ID_PART",
    "LedgerBlock",
    "append_block",
    "append_entries",
    "find_entries",
    "find_entry",
    "find_extracted_or_similar",
    "find_fact_copies",
    "find_ledger_copies",
    "find_newest_id",
    "is_curated",
    "is_long",
    "list_documents_with",
    "load_long_entry",
    "matches_id",
    "read_all_entries",
    "read_curated_entries",
    "read_document_with",
    "read_entries",
    "read_newest_id",
    "render_block",
    "resolve_id",
]


_LAST_ID_PATTERN = lazy_compile(rb"\^([0-7][0-9a-hjkmnp-tv-z]{25})[ \t]*\r?$", re.MULTILINE)
_TAIL_BYTES = 65_536
LONG_ENTRY_BYTES = 4096
"""The maximum size, in UTF-8 bytes, of content stored in the ledger itself."""


@dataclass(frozen=True, kw_only=True)
class LedgerBlock:
    """The data of one append: its bytes, its place (`offset` is -1 before the append), and the entries as stored."""

    path: str
    data: bytes
    entries: tuple[Entry, ...]
    offset: int = -1


def is_curated(path: str) -> bool:
    """Return whether `path` is a document of curated memory: MEMORY.md or a topic."""
    return path == MEMORY_PATH or path.startswith(f"{TOPICS}/")


async def append_entries(
    files: FileStore, day: date, entries: Sequence[Entry], redactor: Redactor, *, through: SupportsAppend | None = None
) -> LedgerBlock:
    """Append `entries`, which have ids and times, to the ledger of `day` as one block, durably.

    The block is appended by `through`, or by `files` if it is None. Raises: StorageFull, StorageReadOnly, StorageBusy;
    then no bullet of the block is written.
    """
    return await append_block(through or files, await render_block(files, day, entries, redactor))


async def render_block(files: FileStore, day: date, entries: Sequence[Entry], redactor: Redactor) -> LedgerBlock:
    """Return the block of `entries` for the ledger of `day`, and write the files of long entries."""
    stored = await all_redacted_beside(entries, redactor)
    bullets = [await _render_bullet(files, entry) for entry in stored]
    data = "".join(bullets).encode("utf-8", "surrogatepass")
    return LedgerBlock(path=ledger_path(day), data=data, entries=stored)


async def append_block(files: SupportsAppend, block: LedgerBlock) -> LedgerBlock:
    """Append a rendered block to its ledger, durably, and return it with its offset."""
    day = block.path.rpartition("/")[2].removesuffix(".md")
    appended = await files.append(block.path, block.data, header=f"# {day}\n\n".encode())
    return replace(block, offset=appended.offset)


async def read_entries(
    files: FileStore, path: str, *, only: Callable[[bytes], bool] | None = None
) -> list[LocatedEntry]:
    """Return the entries of one document in order, with the full content of long ones; `only` is as in `parse_entries`.

    Raises: FileMissing.
    """
    stored = await files.read(path)
    located = await run_sync(partial(parse_entries, stored.data, path, only=only))
    return [await load_long_entry(files, item) for item in located]


async def read_curated_entries(files: FileStore) -> list[LocatedEntry]:
    """Return the entries of MEMORY.md and the topics; a file that disappears or can't be read is left out."""
    entries: list[LocatedEntry] = []
    for path in [MEMORY_PATH, *(info.path for info in await files.list(TOPICS) if info.path.endswith(".md"))]:
        with suppress(FileMissing, StorageError):
            entries += await read_entries(files, path)
    return entries


async def read_all_entries(files: FileStore, *, only: Callable[[bytes], bool] | None = None) -> list[LocatedEntry]:
    """Return the entries of every memory document of the workspace: curated memory first, then by path.

    `only` is as in `parse_entries`. A file that disappears or can't be read is left out; `doctor` names the latter.
    """
    paths = [info.path for info in await files.list(LEDGERS) if is_memory(info.path)]
    entries: list[LocatedEntry] = []
    for path in [MEMORY_PATH, *(path for path in paths if not path.startswith(f"{LEDGERS}/long/"))]:
        try:
            entries += await read_entries(files, path, only=only)
        except (FileMissing, StorageError):
            continue
    return entries


def find_newest_id(data: bytes) -> str:
    """Return the greatest id assigned by Ricordo in a document; empty if there is none."""
    return max(_LAST_ID_PATTERN.findall(data), default=b"").decode("ascii")


async def read_newest_id(files: FileStore) -> str:
    """Return the greatest id at the end of the last ledger; empty if there is none. Raises `StorageError`."""
    ledgers = [info for info in await files.list(LEDGERS) if is_ledger(info.path)]
    if not ledgers:
        return ""
    last = max(ledgers, key=lambda info: info.path)
    return find_newest_id(await files.read_from(last.path, max(0, last.size - _TAIL_BYTES)))


async def _render_bullet(files: FileStore, entry: Entry) -> str:
    # a file of its own would be searched
    if not is_long(entry.content) or entry.state == "quarantined":
        return render_entry(entry)
    path, content = long_entry_path(entry.id), entry.content.encode()
    try:
        await files.create(path, content)
    except AlreadyExists:
        if (await files.read(path)).data != content:
            raise
    return render_entry(entry, long=path.removeprefix(f"{WORKSPACE}/"))


def is_long(content: str) -> bool:
    """Return whether content gets a file of its own; lone surrogates need the escapes of a bullet."""
    try:
        return len(content.encode("utf-8")) > LONG_ENTRY_BYTES
    except UnicodeEncodeError:
        return False


async def load_long_entry(files: FileStore, located: LocatedEntry) -> LocatedEntry:
    """Return an entry with its full content, if the file with the content can be read."""
    if located.long_path is None:
        return located
    try:
        stored = await files.read(f"{WORKSPACE}/{located.long_path}")
    except (FileMissing, StorageError):
        return located
    return replace(located, entry=replace(located.entry, content=stored.data.decode("utf-8", "replace")))


MIN_ID_PART = 6
"""The minimum number of characters of a partial id."""
_DERIVED_PREFIX = "h"
_ID_LENGTH = 26
_PLAIN_WORD = lazy_compile("[a-z0-9]+")
_EXTRACTED_FIELD = b"[by:: flush]"
_MANY_WORDS = 16


def may_contain_id(document: bytes, entry_id: str) -> bool:
    """Return whether the document may contain this id, or an id that begins or ends with it."""
    return _may_be_derived(entry_id) or f"^{entry_id}".encode("utf-8", "replace") in document


def _may_be_derived(entry_id: str) -> bool:
    """Return whether an id, or a part of one, may belong to a bullet in which no id is written."""
    return entry_id.startswith(_DERIVED_PREFIX) or len(entry_id) < _ID_LENGTH


def matches_id(requested: str, entry_id: str) -> bool:
    """Return whether `requested` is this id, or six or more leading or trailing characters of it."""
    part = len(requested) >= MIN_ID_PART and (entry_id.startswith(requested) or entry_id.endswith(requested))
    return part or entry_id == requested


def _may_match_id(requested: str, bullet: bytes) -> bool:
    """Return whether the entry of this bullet may have the id; a bullet without a written id may."""
    written_id = find_written_id(bullet)
    return not written_id or matches_id(requested, written_id)


async def find_entries(files: FileStore, entry_id: str) -> list[LocatedEntry]:
    """Return the entries with this id, and those whose id begins or ends with these six or more characters.

    Curated memory comes first, then by path. A document that disappears or can't be read is left out.
    """
    entries: list[LocatedEntry] = []
    for info in await list_documents_with(files, entry_id) if entry_id else ():
        data = await read_document_with(files, info, entry_id)
        if data is not None:
            only = partial(_may_match_id, entry_id)
            located = await run_sync(partial(parse_entries, data, info.path, only=only))
            entries += [await load_long_entry(files, item) for item in located if matches_id(entry_id, item.entry.id)]
    return entries


async def list_documents_with(files: FileStore, entry_id: str) -> list[FileInfo]:
    """Return the memory documents that may contain an id, curated memory first, then by path.

    Without those that `read_document_with` read for any id, and that have not changed since, if they lack this one.
    """
    infos = {info.path: info for info in await files.list(LEDGERS) if is_memory(info.path)}
    known = _known_marks.setdefault(files, {})
    for path in known.keys() - infos.keys():
        del known[path]
    possible = [
        info
        for path, info in infos.items()
        if path not in known or known[path].info != info or known[path].may_contain(entry_id)
    ]
    memory = FileInfo(path=MEMORY_PATH, size=0, modified_ns=0)
    return [memory, *(info for info in possible if not info.path.startswith(f"{LEDGERS}/long/"))]


async def read_document_with(files: FileStore, info: FileInfo, entry_id: str) -> bytes | None:
    """Return a document of `list_documents_with`; None if `may_contain_id` is false, or it can't be read or is gone."""
    known, now = _known_marks.setdefault(files, {}), time.time_ns()
    try:
        data = (await files.read(info.path)).data
    except (FileMissing, StorageError):
        return None
    if 0 < info.changed_ns < now - _SETTLED_NS and (info.path not in known or known[info.path].info != info):
        known[info.path] = await compute(partial(_DocumentMarks, info, data), size=len(data), at_once=_AT_ONCE)
    return data if may_contain_id(data, entry_id) else None


class _DocumentMarks:
    """The ids in a document, as it was when its file had these times and this size; each id takes eight bytes."""

    def __init__(self, info: FileInfo, document: bytes) -> None:
        self.info = info
        self._hashes = array("q", sorted({hash(mark[:_ID_LENGTH]) for mark in find_marked_ids(document)}))

    def may_contain(self, entry_id: str) -> bool:
        """Return whether `may_contain_id` may be true for the document."""
        if _may_be_derived(entry_id):
            return True
        wanted = hash(entry_id[:_ID_LENGTH])
        place = bisect_left(self._hashes, wanted)
        return place < len(self._hashes) and self._hashes[place] == wanted


_SETTLED_NS = 2_000_000_000
"""A file can change twice within one tick of the clock of its times; one that was changed longer ago can't."""
_AT_ONCE = 20_000
"""The number of bytes in which ids are found in some milliseconds."""
_known_marks: WeakKeyDictionary[FileStore, dict[str, _DocumentMarks]] = WeakKeyDictionary()


async def find_extracted_or_similar(files: FileStore, contents: Collection[str]) -> list[LocatedEntry]:
    """Return entries extracted from messages, and entries sharing the longest word of one of `contents`, by path.

    A document that disappears or can't be read is left out.
    """
    entries: list[LocatedEntry] = []
    longest = {max(_PLAIN_WORD.findall(content.casefold()), key=len, default="").encode() for content in contents}

    def is_candidate(bullet: bytes) -> bool:
        # to search a bullet for many words takes longer than to parse it
        return (
            len(longest) > _MANY_WORDS or _EXTRACTED_FIELD in bullet or any(word in bullet.lower() for word in longest)
        )

    for info in await files.list(LEDGERS):
        if is_memory(info.path) and not info.path.startswith(f"{LEDGERS}/long/"):
            with suppress(FileMissing, StorageError):
                entries += await read_entries(files, info.path, only=is_candidate)
    return entries


def resolve_id(ids: Sequence[str], requested: str) -> str:
    """Return `requested` if it is one of these ids, else the only id that begins or ends with it.

    Raises: EntryNotFound if no id matches, if several do, or for a blank text.
    """
    if not requested.strip():
        raise EntryNotFound("No id was given: `ricordo memory list` shows the ids.")
    matching = {requested} if requested in ids else {one for one in ids if matches_id(requested, one)}
    if len(matching) > 1:
        raise EntryNotFound(
            f"{len(matching)} memories have ids that begin or end with {requested}: write more of the id."
        )
    if not matching and requested.startswith(FACT_ID_PREFIX):
        raise EntryNotFound(
            f"No profile that is seen here has the fact {requested}: `ricordo profile show` shows the ids."
        )
    if not matching:
        raise EntryNotFound(f"No memory has the id {requested}: `ricordo memory list` shows the ids.")
    return matching.pop()


async def find_entry(files: FileStore, entry_id: str) -> LocatedEntry:
    """Return the entry with this id, or the only one whose id begins or ends with these six or more characters.

    Raises: EntryNotFound if no id matches, or several do.
    """
    located = await find_entries(files, entry_id)
    full_id = resolve_id([item.entry.id for item in located], entry_id)
    return next(item for item in located if item.entry.id == full_id)


_FIRST_MESSAGE = lazy_compile(rb"\[from:: [^\]#]*#([^\],]+)")


async def find_ledger_copies(files: FileStore, facts: Sequence[Entry]) -> dict[str, str]:
    """Return the ids of the entries that only ledgers hold and for which one of the `facts` stands, with its id."""
    messages = {fact.source.messages[0].encode() for fact in facts if fact.source.messages}
    texts = [fact.content.strip(" .!?…。").encode() for fact in facts if not fact.source.messages]

    def may_be_copy(bullet: bytes) -> bool:
        first = _FIRST_MESSAGE.search(bullet)
        return (first is not None and first[1] in messages) or any(text in bullet for text in texts)

    candidates = await read_all_entries(files, only=may_be_copy)
    learned = [one.entry for one in candidates if ledger_date(one.path) is not None]
    copies = find_fact_copies(facts, learned)
    if not copies:
        return {}
    marks = {f"^{name}".encode(): name for name in copies}
    curated = await read_all_entries(files, only=lambda bullet: any(mark in bullet for mark in marks))
    for name in {one.entry.id for one in curated if is_curated(one.path)} & copies.keys():
        del copies[name]
    return copies


def find_fact_copies(facts: Sequence[Entry], entries: Iterable[Entry]) -> dict[str, str]:
    """Return which of `entries` were learned as the same statement as one of `facts`: the id of the fact by their ids.

    An entry and a fact that extraction made of one statement have the same words, or the same source and quote.
    """
    by_text = {_text_key(fact.content): fact.id for fact in facts}
    by_message: dict[tuple[str | None, str], list[Entry]] = {}
    for fact in facts:
        if fact.source.messages:
            by_message.setdefault((fact.source.session, fact.source.messages[0]), []).append(fact)
    copies = {}
    for entry in entries if facts else ():
        if entry.by == "flush" and entry.state == "active" and not entry.pinned:
            fact_id = by_text.get(_text_key(entry.content))
            first_message = (entry.source.session, next(iter(entry.source.messages), ""))
            for fact in by_message.get(first_message, ()) if fact_id is None else ():
                fact_id = fact.id if _quoted_words(fact) == _quoted_words(entry) else fact_id
            if fact_id is not None:
                copies[entry.id] = fact_id
    return copies


def _text_key(content: str) -> str:
    return content.strip(" .!?…。").casefold()


def _quoted_words(entry: Entry) -> tuple[str, ...]:
    return split_words(entry.source.quote or entry.content)
