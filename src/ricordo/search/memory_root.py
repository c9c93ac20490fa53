"""An open memory root with its stores, and the clock for the times of its entries.

The clock never runs backwards: until the system clock has caught up, each entry is a millisecond later than the one
before. A system clock that is more than a day behind is trusted.

An outline of a document has the id, time, position and marks of each bullet, without its text. It depends only on the
bytes of the document. The index stores it with a fingerprint; a document that may have changed since is outlined again.
No text of a document is stored, and no id that may be a secret.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, lru_cache, partial
from time import time_ns
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from anyio.to_thread import run_sync

from ricordo.clock import Clock, IdSource, decode_id, truncate_to_milliseconds
from ricordo.concurrency import compute
from ricordo.errors import FileMissing, StorageError
from ricordo.guard import Redactor, has_secret
from ricordo.lazy import copy_with, dataclass, lazy_compile, lazy_property
from ricordo.scope import Scope
from ricordo.search.config import DEFAULT_RECALL, RecallConfig
from ricordo.search.contract import Hit, KnowsDocuments, SearchIndex, SearchSource
from ricordo.search.documents import Checksum, DocumentFingerprint, classify_document
from ricordo.search.tables import CacheDatabase
from ricordo.storage import FileStore
from ricordo.storage.contract import FileInfo, SupportsBlockingList
from ricordo.storage.sqlite import Connection
from ricordo.workspace.entry import CONTRADICTS_FIELD, Entry
from ricordo.workspace.entry_codec import (
    PINNED_FIELD,
    LocatedEntry,
    iter_bullets,
    parse_entries,
    without_field_comment,
)
from ricordo.workspace.history.audit import AuditLog
from ricordo.workspace.history.change_sets import ChangeSets
from ricordo.workspace.history.log import find_newest_time, may_be_saved
from ricordo.workspace.history.tombstones import ForgottenStatements, read_tombstones
from ricordo.workspace.history.usage import UsageLog
from ricordo.workspace.layout import (
    LEDGERS,
    PROJECT_PREFIX,
    TOMBSTONES,
    WORKSPACE,
    is_ledger,
    ledger_date,
    profile_path_for,
)
from ricordo.workspace.markdown import to_utf8
from ricordo.workspace.redaction import guarded_length, redact_for_display

if TYPE_CHECKING:
    from ricordo.workspace.team import TeamAccess

__all__ = [
    "SHARED_LABEL",
    "BulletOutline",
    "DocumentOutline",
    "MemoryRoot",
    "MonotonicClock",
    "OutlineCache",
    "OutlineIndex",
    "hits_outward",
    "outline_document",
    "read_outlines",
]


SHARED_LABEL = "shared"
"""The label of a project's shared root when a user also has a root of their own that is searched before it."""
_AT_ONCE = 20_000
"""The redactor scans so many characters in some milliseconds."""


@dataclass(frozen=True, kw_only=True)
class MemoryRoot:
    """An open root: `label` is its name for people, `scope` is the scope of all its memory.

    `key` is the root's secret for digests. `folder` is its location, for people. `usage` records when a memory was
    shown, used and confirmed; None if this is not recorded. `audit` is its audit log; None if it has none. With
    `includes_profile` the facts of profiles are found. `index_path` is the path of the index database. `recall` has the
    weights of recall. `team` says what the user may do in the memory of a team; None for any other place.
    """

    label: str
    scope: Scope
    folder: str
    files: FileStore
    index: SearchIndex
    changes: ChangeSets
    redactor: Redactor
    key: bytes
    clock: Clock
    ids: IdSource
    usage: UsageLog | None = None
    audit: AuditLog | None = None
    includes_profile: bool = True
    index_path: str = ""
    recall: RecallConfig = DEFAULT_RECALL
    team: "TeamAccess | None" = None
    _visible: dict[int, tuple[Entry, Entry]] = field(default_factory=dict, compare=False)
    _forgotten: "list[tuple[FileInfo | None, ForgottenStatements]]" = field(default_factory=list, compare=False)

    async def source(self, scope: Scope, *, said: bool = True) -> SearchSource:
        """Return the search source of this root for `scope`, with the facts of its own profile only.

        Messages with forgotten statements are left out. The forgotten statements are read only if `said` is true, for
        searches of what was said in sessions.
        """
        forgotten = await self.read_forgotten() if said else ForgottenStatements()
        return self._make_source(scope, forgotten)

    async def quick_source(self, scope: Scope) -> SearchSource:
        """Return what `source` does, with the forgotten statements that were read last.

        After a search, `has_forgotten_more` tells whether they were out of date.
        """
        if not self._forgotten or self._listing is None:
            return await self.source(scope)
        return self._make_source(scope, self._forgotten[0][1])

    def _make_source(self, scope: Scope, forgotten: ForgottenStatements) -> SearchSource:
        profile = _profile_path(self.scope, scope) if self.includes_profile else ""
        return SearchSource(label=self.label, index=self.index, forgotten=forgotten, profile=profile)

    @property
    def has_forgotten_more(self) -> bool:
        """Whether statements were forgotten between the last time that they were read and the last search."""
        if self._listing is None:
            return False
        return not self._forgotten or self._forgotten[0][0] != self._listing.file_info(TOMBSTONES)

    @lazy_property
    def _lister(self) -> SupportsBlockingList | None:
        """The files, if they can be listed without a switch to a thread."""
        return self.files if isinstance(self.files, SupportsBlockingList) else None

    @lazy_property
    def _listing(self) -> KnowsDocuments | None:
        """The index, if it knows which files there are."""
        return self.index if isinstance(self.index, KnowsDocuments) else None

    def has_documents(self) -> bool:
        """Return whether there is any document; also true if that can't be determined. It blocks on the disk."""
        if self._lister is None:
            return True
        try:
            return any(classify_document(info.path, WORKSPACE) for info in self._lister.list_blocking(WORKSPACE))
        except StorageError:
            return True

    async def read_forgotten(self) -> ForgottenStatements:
        """Return the matcher for the statements that were forgotten here."""
        info = self._listing.file_info(TOMBSTONES) if self._listing is not None else None
        forgotten = ForgottenStatements.from_tombstones(await read_tombstones(self.files), self.key)
        self._forgotten[:] = [(info, forgotten)]
        return forgotten

    def display_path(self, path: str) -> str:
        """Return the path to show for a workspace path such as `MEMORY.md`; shared files get the prefix `project/`."""
        return f"{PROJECT_PREFIX}/{path}" if self.label == SHARED_LABEL else path

    def rewrite_links(self, document: bytes) -> bytes:
        """Return a MEMORY.md whose links to topics use the paths that prompts show."""
        return document.replace(b"](memory/", f"]({self.display_path('memory/')}".encode())

    def to_visible_entry(self, entry: Entry) -> Entry:
        """Return `entry` with the scope of its root added, and without secrets."""
        # the same entries are shown again and again, and a look at their texts takes longer than all else
        known = self._visible.get(id(entry))
        if known is None or known[0] is not entry:
            scoped = copy_with(entry, scope=_merge_scopes(self.scope, entry.scope))
            known = entry, redact_for_display(scoped, self.redactor)
            if len(self._visible) >= _VISIBLE_ENTRIES:
                self._visible.clear()
            if len(entry.content) <= _AT_ONCE:
                self._visible[id(entry)] = known
        return known[1]

    async def outward_async(self, entry: Entry) -> Entry:
        """Return `to_visible_entry(entry)`, computed in a thread if the entry is long."""
        return await compute(partial(self.to_visible_entry, entry), size=len(entry.content), at_once=_AT_ONCE)

    def to_stored_entry(self, entry: Entry) -> Entry:
        """Return `entry` as it is written to a file: without the parts of the scope that its root has."""
        own = self.scope.parts()
        rest = {name: value for name, value in (entry.scope.parts() if entry.scope else {}).items() if name not in own}
        rest.pop("session", None)
        rest.pop("team", None)
        stored = replace(entry, scope=Scope(**rest) if rest else None)
        return self.team.sign(stored) if self.team else stored


_profile_path = lru_cache(maxsize=64)(profile_path_for)
_VISIBLE_ENTRIES = 1_024


@lru_cache(maxsize=256)
def _merge_scopes(own: Scope, requested: Scope | None) -> Scope:
    """Return the scope of a root combined with the parts that an entry has."""
    return Scope(**own.parts() | (requested.parts() if requested else {}))


_STEP = timedelta(milliseconds=1)
_MAX_LEAD = timedelta(days=1)


class MonotonicClock:
    """A clock that never returns a time before its last one, or before the newest entry of a document."""

    def __init__(self, clock: Clock) -> None:
        """Start without a last time."""
        self._clock = clock
        self._last = self._last_read = datetime.min.replace(tzinfo=UTC)
        self._day = date.min

    async def catch_up(self, files: FileStore) -> None:
        """Advance past the newest ledger of a workspace; a ledger that can't be read is ignored."""
        with suppress(FileMissing, StorageError):
            ledgers = {ledger_date(info.path): info.path for info in await files.list(LEDGERS) if is_ledger(info.path)}
            days = [day for day in ledgers if day and day <= self._clock.today() + _MAX_LEAD]
            if days:
                self._day = max(days)
                self.advance_past((await files.read(ledgers[self._day])).data)

    def advance_past(self, document: bytes) -> None:
        """Advance past a document with entries: later times are after each of its entries."""
        self._last_read = max(self._last_read, find_newest_time(document))
        self._last = max(self._last, self._last_read)

    def now(self) -> datetime:
        """Return the time, never before the last one, unless that is more than a day ahead."""
        time = truncate_to_milliseconds(self._clock.now())
        if (time < self._last or time == self._last_read) and self._last <= time + _MAX_LEAD:
            time = self._last + _STEP
        self._last = time
        return time

    def today(self) -> date:
        """Return the local date, never before the last one, unless that is more than a day ahead."""
        day = self._clock.today()
        self._day = self._day if day < self._day <= day + _MAX_LEAD else day
        return self._day


async def hits_outward(hits: Sequence[Hit], by_label: Mapping[str, MemoryRoot]) -> list[Hit]:
    """Return hits with their entries as shown by their places; long ones are computed in a thread."""

    def show_all() -> list[Hit]:
        return [copy_with(hit, entry=by_label[hit.source].to_visible_entry(hit.entry)) for hit in hits]

    return await compute(show_all, size=guarded_length(hit.entry for hit in hits), at_once=_AT_ONCE)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SAVED, _PINNED, _CONTRADICTING = "s", "p", "c"
_CONTRADICTS = f"[{CONTRADICTS_FIELD}:: ".encode()
_TIME_FIELD = b" [at:: "
_WRITTEN_END = lazy_compile(
    rb" \[at:: (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\]"
    rb"(?: \[[A-Za-z][\w-]*:: (?:\\.|[^\[\]\\\r\n])*\])* \^([A-Za-z0-9-]+)\n?"
)


@dataclass(frozen=True, kw_only=True)
class BulletOutline:
    """One bullet with an entry: its id, its time in milliseconds since 1970 (0 for none), and its bytes.

    `marks` say what it may be: saved by a person or an agent, pinned, or contradicting another entry.
    """

    id: str
    time: int
    offset: int
    length: int
    marks: str

    @property
    def is_contradicting(self) -> bool:
        """Whether the entry may contradict another one."""
        return _CONTRADICTING in self.marks

    @property
    def key(self) -> tuple[float, str]:
        """The sort key of the entry; the newest entry has the greatest key."""
        return self.time / 1000, self.id


@dataclass(frozen=True, kw_only=True)
class DocumentOutline:
    """The outline of the document with this fingerprint.

    `text` has a line for each bullet, `newest` is the greatest time in milliseconds, 0 for none, and `saved_count` the
    number of entries that may have been saved. `is_sound` tells that a check found no damage in it.
    """

    fingerprint: DocumentFingerprint
    text: str
    newest: int
    saved_count: int
    is_sound: bool = False

    @property
    def path(self) -> str:
        """The path of the document."""
        return self.fingerprint.path

    @property
    def has_pinned(self) -> bool:
        """Whether an entry may be pinned."""
        return _PINNED in self._marks

    @property
    def has_contradicting(self) -> bool:
        """Whether an entry may contradict another one."""
        return _CONTRADICTING in self._marks

    @cached_property
    def _marks(self) -> frozenset[str]:
        return frozenset("".join({line.rpartition(" ")[2] for line in self.text.splitlines()}))

    @cached_property
    def ids(self) -> list[str]:
        """The id of each entry, in order."""
        return [line.partition(" ")[0] for line in self.text.splitlines()]

    @cached_property
    def bullets(self) -> list[BulletOutline]:
        """The outline of each bullet, in order."""
        rows = (line.split(" ") for line in self.text.splitlines())
        return [
            BulletOutline(id=name, time=int(at), offset=int(offset), length=int(length), marks=marks)
            for name, at, offset, length, marks in rows
        ]


def outline_document(path: str, data: bytes, info: FileInfo) -> DocumentOutline:
    """Return the outline of a document with these bytes, listed with the metadata `info`."""
    text = to_utf8(data)
    has_comment = without_field_comment(text) is not text
    written, unclear = list[_Row](), list[bool]()
    for _, _, offset, block in iter_bullets(text):
        row = None if has_comment else _read_written(block)
        unclear.append(row is None)
        if row is not None:
            written.append((*row, offset, len(block), _marks(block)))
    # other bullets are parsed, such as those that a person wrote
    turns = iter(unclear)
    located = parse_entries(data, path, only=lambda _: next(turns)) if any(unclear) else []
    rows = sorted([*written, *(_parsed_row(one, text) for one in located)], key=lambda row: row[2])
    fingerprint = DocumentFingerprint(
        path=path,
        document_type="note",
        size=len(data),
        # the file grew between listing and reading
        modified_ns=info.modified_ns if info.size == len(data) else 0,
        checked_ns=time_ns(),
        checksum=Checksum().extend(data),
        lines=0,
        changed_ns=info.changed_ns,
    )
    return DocumentOutline(
        fingerprint=fingerprint,
        text="\n".join(" ".join(map(str, row)) for row in rows),
        newest=max((row[1] for row in rows), default=0),
        saved_count=sum(_SAVED in row[4] for row in rows),
    )


_Row: TypeAlias = tuple[str, int, int, int, str]
"""The id, time, offset, length and marks of a bullet."""


def _parsed_row(located: LocatedEntry, text: bytes) -> _Row:
    entry = located.entry
    marks = _marks(text[located.offset : located.offset + located.length])
    return entry.id, _to_milliseconds(entry.time), located.offset, located.length, marks


def _read_written(block: bytes) -> tuple[str, int] | None:
    """Return id and time of a bullet that ends as `render_entry` writes it; None for any other."""
    at = block.find(_TIME_FIELD)
    # without text of its own it is no entry, and of two times the first would count
    if at < 0 or block.find(_TIME_FIELD, at + 1) >= 0 or block[2:3] in b"#[^ ":
        return None
    match = _WRITTEN_END.fullmatch(block, at)
    if match is None or not block.startswith(b"- "):
        return None
    try:
        moment = datetime.fromisoformat(match[1].decode("ascii"))
    except ValueError:
        return None
    return match[2].decode("ascii"), _to_milliseconds(moment)


def _to_milliseconds(moment: datetime | None) -> int:
    return 0 if moment is None else (moment - _EPOCH) // timedelta(milliseconds=1)


def _marks(block: bytes) -> str:
    saved = _SAVED if may_be_saved(block) else ""
    pinned = _PINNED if PINNED_FIELD in block else ""
    return f"-{saved}{pinned}{_CONTRADICTING if _CONTRADICTS in block else ''}"


@runtime_checkable
class OutlineIndex(Protocol):
    """An optional capability of an index: it stores outlines of memory documents."""

    async def outlines(self, documents: Sequence[FileInfo]) -> list[DocumentOutline]:
        """Return the outlines of all memory documents of the workspace, in this order.

        A document that can't be read is left out.
        """
        ...

    async def note_sound(self, outline: DocumentOutline, data: bytes) -> None:
        """Remember that a check found no damage in these bytes, if they are those of the outline."""
        ...


async def read_outlines(files: FileStore, documents: Iterable[FileInfo]) -> list[DocumentOutline]:
    """Return the outlines of documents, made from their files; one that can't be read is left out."""
    outlines = []
    for info in documents:
        with suppress(FileMissing, StorageError):
            data = await files.read_from(info.path, 0)
            outlines.append(await run_sync(outline_document, info.path, data, info))
    return outlines


class OutlineCache:
    """The outlines of one workspace, in the database of its index."""

    def __init__(self, file: CacheDatabase, files: FileStore) -> None:
        """Store the outlines of documents of `files` in the database `file`."""
        self._file = file
        self._files = files
        self._known: dict[str, DocumentOutline] | None = None

    async def outlines(self, documents: Sequence[FileInfo]) -> list[DocumentOutline]:
        """Return what `OutlineIndex.outlines` returns."""
        if self._known is None:
            loaded = await self._file.run(lambda database: database.read(_load_outlines))
            self._known = loaded or {}
        known, current = self._known, dict[str, DocumentOutline]()
        for info in documents:
            if info.path in known and known[info.path].fingerprint.matches(info):
                current[info.path] = known[info.path]
        changed = await read_outlines(self._files, [info for info in documents if info.path not in current])
        current |= {each.path: each for each in changed}
        removed = known.keys() - current.keys()
        storable = [each for each in changed if not _may_hold_secret(each)]
        if removed or storable:
            await self._file.run(lambda database: database.write(lambda to: _store_outlines(to, storable, removed)))
        self._known = current
        return [current[info.path] for info in documents if info.path in current]

    async def note_sound(self, outline: DocumentOutline, data: bytes) -> None:
        """Do what `OutlineIndex.note_sound` does."""
        checksum = outline.fingerprint.checksum
        if Checksum().extend(data) != checksum:
            return
        if self._known and outline.path in self._known:
            self._known[outline.path] = replace(outline, is_sound=True)
        await self._file.run(
            lambda database: database.write(
                lambda to: (
                    to.execute(
                        "UPDATE outline SET sound = 1 WHERE path = ? AND checksum = ?", (outline.path, str(checksum))
                    ).rowcount
                )
            )
        )


def _may_hold_secret(outline: DocumentOutline) -> bool:
    """Return whether an id that a person wrote may be a secret."""
    return any(decode_id(name) is None and not name.startswith("h") and has_secret(name) for name in outline.ids)


def _load_outlines(connection: Connection) -> dict[str, DocumentOutline]:
    rows = connection.execute(
        "SELECT path, size, modified, changed, checked, checksum, newest, saved, sound, bullets FROM outline"
    )
    return {
        path: DocumentOutline(
            fingerprint=DocumentFingerprint(
                path=path, document_type="note", size=size, modified_ns=modified, changed_ns=changed,
                checked_ns=checked, checksum=Checksum.parse(checksum), lines=0,
            ),
            text=bullets,
            newest=newest,
            saved_count=saved,
            is_sound=bool(sound),
        )
        for path, size, modified, changed, checked, checksum, newest, saved, sound, bullets in rows
    }  # fmt: skip


def _store_outlines(connection: Connection, outlines: Iterable[DocumentOutline], removed: Iterable[str]) -> None:
    connection.executemany("DELETE FROM outline WHERE path = ?", [(path,) for path in removed])
    connection.executemany(
        "INSERT OR REPLACE INTO outline VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                each.path, each.fingerprint.size, each.fingerprint.modified_ns, each.fingerprint.changed_ns,
                each.fingerprint.checked_ns, str(each.fingerprint.checksum), each.newest, each.saved_count,
                int(each.is_sound), each.text,
            )
            for each in outlines
        ],
    )  # fmt: skip
