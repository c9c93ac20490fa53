"""An open memory root with its stores, and the clock for the times of its entries.

The clock never runs backwards: until the system clock has caught up, each entry is a millisecond later than the one
before. A system clock that is more than a day behind is trusted.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache, partial

from ricordo.clock import Clock, IdSource, truncate_to_milliseconds
from ricordo.concurrency import compute
from ricordo.errors import FileMissing, StorageError
from ricordo.guard import Redactor
from ricordo.lazy import dataclass
from ricordo.scope import Scope
from ricordo.search.contract import Hit, SearchIndex, SearchSource
from ricordo.search.documents import classify_document
from ricordo.storage import FileStore
from ricordo.storage.contract import SupportsBlockingList
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.change_sets import ChangeSets
from ricordo.workspace.history.log import find_newest_time
from ricordo.workspace.history.tombstones import ForgottenStatements, read_tombstones
from ricordo.workspace.history.usage import UsageLog
from ricordo.workspace.layout import LEDGERS, PROJECT_PREFIX, WORKSPACE, is_ledger, ledger_date, profile_path_for
from ricordo.workspace.redaction import guarded_length, redact_for_display

__all__ = ["SHARED_LABEL", "MemoryRoot", "MonotonicClock", "hits_outward"]


SHARED_LABEL = "shared"
"""The label of a project's shared root when a user also has a root of their own that is searched before it."""
_AT_ONCE = 20_000
"""The redactor scans so many characters in some milliseconds."""


@dataclass(frozen=True, kw_only=True)
class MemoryRoot:
    """An open root: `label` is its name for people, `scope` is the scope of all its memory.

    `key` is the root's secret for digests. `folder` is its location, for people. `usage` records when a memory was
    shown, used and confirmed; None if this is not recorded. With `finds_profile` the facts of profiles are found.
    `index_path` is the path of the index database.
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
    finds_profile: bool = True
    index_path: str = ""

    async def source(self, scope: Scope, *, said: bool = True) -> SearchSource:
        """Return the search source of this root for `scope`, with the facts of its own profile only.

        Messages with forgotten statements are left out. The forgotten statements are read only if `said` is true, for
        searches of what was said in sessions.
        """
        forgotten = await self.read_forgotten() if said else ForgottenStatements()
        profile = profile_path_for(self.scope, scope) if self.finds_profile else ""
        return SearchSource(label=self.label, index=self.index, forgotten=forgotten, profile=profile)

    def has_documents(self) -> bool:
        """Return whether there is any document; also true if that can't be determined. It blocks on the disk."""
        if not isinstance(self.files, SupportsBlockingList):
            return True
        try:
            return any(classify_document(info.path, WORKSPACE) for info in self.files.list_blocking(WORKSPACE))
        except StorageError:
            return True

    async def read_forgotten(self) -> ForgottenStatements:
        """Return the matcher for the statements that were forgotten here."""
        return ForgottenStatements.from_tombstones(await read_tombstones(self.files), self.key)

    def display_path(self, path: str) -> str:
        """Return the path to show for a workspace path such as `MEMORY.md`; shared files get the prefix `project/`."""
        return f"{PROJECT_PREFIX}/{path}" if self.label == SHARED_LABEL else path

    def rewrite_links(self, document: bytes) -> bytes:
        """Return a MEMORY.md whose links to topics use the paths that prompts show."""
        return document.replace(b"](memory/", f"]({self.display_path('memory/')}".encode())

    def to_visible_entry(self, entry: Entry) -> Entry:
        """Return `entry` with the scope of its root added, and without secrets."""
        return redact_for_display(replace(entry, scope=_merge_scopes(self.scope, entry.scope)), self.redactor)

    async def outward_async(self, entry: Entry) -> Entry:
        """Return `to_visible_entry(entry)`, computed in a thread if the entry is long."""
        return await compute(partial(self.to_visible_entry, entry), size=len(entry.content), at_once=_AT_ONCE)

    def to_stored_entry(self, entry: Entry) -> Entry:
        """Return `entry` as it is written to a file: without the parts of the scope that its root has."""
        own = self.scope.parts()
        rest = {name: value for name, value in (entry.scope.parts() if entry.scope else {}).items() if name not in own}
        rest.pop("session", None)
        return replace(entry, scope=Scope(**rest) if rest else None)


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
        return [replace(hit, entry=by_label[hit.source].to_visible_entry(hit.entry)) for hit in hits]

    return await compute(show_all, size=guarded_length(hit.entry for hit in hits), at_once=_AT_ONCE)
