"""An open memory root with everything that reads and writes it, and the clock of what is saved in it.

The clock never runs backwards: until a machine's clock has caught up, each entry is a millisecond later than the one
before. A clock that is behind by more than a day is believed.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache, partial

from ricordo.clock import Clock, IdSource, truncate_to_milliseconds
from ricordo.concurrency import compute
from ricordo.errors import FileMissing, StorageError
from ricordo.guard import Redactor
from ricordo.scope import Scope
from ricordo.search.contract import SearchIndex
from ricordo.search.documents import classify_document
from ricordo.search.results import SearchSource
from ricordo.storage import FileStore
from ricordo.storage.contract import SupportsBlockingList
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.change_sets import ChangeSets
from ricordo.workspace.history.log import find_newest_time
from ricordo.workspace.history.tombstones import ForgottenStatements, read_tombstones
from ricordo.workspace.history.usage import UsageLog
from ricordo.workspace.layout import LEDGERS, PROJECT_PREFIX, WORKSPACE, is_ledger, ledger_date, profile_path_for
from ricordo.workspace.redaction import redact_for_display

__all__ = ["AT_ONCE", "SHARED_LABEL", "MemoryRoot", "MonotonicClock"]


SHARED_LABEL = "shared"
"""The label of the place that a project shares, where one of its users has a place of their own before it."""
AT_ONCE = 20_000
"""Characters of which the guard finds the secrets in some milliseconds."""


@dataclass(frozen=True, kw_only=True)
class MemoryRoot:
    """A root that is open: `label` names it to people, `scope` is whose memory all of it is.

    `key` is the root's secret for digests. `folder` is where it lies, for people. `usage` is where it is noted when
    a memory was shown, used and confirmed; None where that is not noted. With `finds_profile` the facts of profiles
    are found. `index_path` is where the database of its index lies.
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
        """Return what recall searches here for `scope`: of profiles its own alone.

        Messages whose teaching was forgotten are left out; what they are is only read where what was `said` is asked.
        """
        forgotten = await self.read_forgotten() if said else ForgottenStatements()
        profile = profile_path_for(self.scope, scope) if self.finds_profile else ""
        return SearchSource(label=self.label, index=self.index, forgotten=forgotten, profile=profile)

    def has_documents(self) -> bool:
        """Tell whether anything here may be found; also where that can't be told. It blocks on the disk."""
        if not isinstance(self.files, SupportsBlockingList):
            return True
        try:
            return any(classify_document(info.path, WORKSPACE) for info in self.files.list_blocking(WORKSPACE))
        except StorageError:
            return True

    async def read_forgotten(self) -> ForgottenStatements:
        """Return what recognises what was forgotten here."""
        return ForgottenStatements.from_tombstones(await read_tombstones(self.files), self.key)

    def display_path(self, path: str) -> str:
        """Return how a path in the workspace, such as `MEMORY.md`, is shown: what is shared begins with `project/`."""
        return f"{PROJECT_PREFIX}/{path}" if self.label == SHARED_LABEL else path

    def rewrite_links(self, document: bytes) -> bytes:
        """Return a MEMORY.md whose links to topics lead there from where prompts show it."""
        return document.replace(b"](memory/", f"]({self.display_path('memory/')}".encode())

    def to_visible_entry(self, entry: Entry) -> Entry:
        """Return `entry` with the scope that its root adds to what its line says, and without secrets."""
        return redact_for_display(replace(entry, scope=_merge_scopes(self.scope, entry.scope)), self.redactor)

    async def outward_async(self, entry: Entry) -> Entry:
        """Return what `to_visible_entry` returns, computed in a thread where the entry is long."""
        return await compute(partial(self.to_visible_entry, entry), size=len(entry.content), at_once=AT_ONCE)

    def to_stored_entry(self, entry: Entry) -> Entry:
        """Return `entry` as its line says it: without the parts of the scope that the root says for all."""
        own = self.scope.parts()
        rest = {name: value for name, value in (entry.scope.parts() if entry.scope else {}).items() if name not in own}
        rest.pop("session", None)
        return replace(entry, scope=Scope(**rest) if rest else None)


@lru_cache(maxsize=256)
def _merge_scopes(own: Scope, said: Scope | None) -> Scope:
    """Return the scope of a root with the parts that an entry says."""
    return Scope(**own.parts() | (said.parts() if said else {}))


_STEP = timedelta(milliseconds=1)
_MAX_LEAD = timedelta(days=1)


class MonotonicClock:
    """Another clock, held at the latest time that it, or a document, has told."""

    def __init__(self, clock: Clock) -> None:
        """Know of no time yet."""
        self._clock = clock
        self._last = self._last_read = datetime.min.replace(tzinfo=UTC)
        self._day = date.min

    async def catch_up(self, files: FileStore) -> None:
        """Take up where the newest ledger of a workspace ends; one that can't be read tells nothing."""
        with suppress(FileMissing, StorageError):
            listed = {ledger_date(info.path): info.path for info in await files.list(LEDGERS) if is_ledger(info.path)}
            days = [day for day in listed if day and day <= self._clock.today() + _MAX_LEAD]
            if days:
                self._day = max(days)
                self.advance_past((await files.read(listed[self._day])).data)

    def advance_past(self, document: bytes) -> None:
        """Take up where a document with entries ends: what is saved from now on is later than each of them."""
        self._last_read = max(self._last_read, find_newest_time(document))
        self._last = max(self._last, self._last_read)

    def now(self) -> datetime:
        """Return the time, never one before the last that was told, unless that is more than a day ahead."""
        time = truncate_to_milliseconds(self._clock.now())
        if (time < self._last or time == self._last_read) and self._last <= time + _MAX_LEAD:
            time = self._last + _STEP
        self._last = time
        return time

    def today(self) -> date:
        """Return the local date, never one before the last that was told, unless that is more than a day ahead."""
        day = self._clock.today()
        self._day = self._day if day < self._day <= day + _MAX_LEAD else day
        return self._day
