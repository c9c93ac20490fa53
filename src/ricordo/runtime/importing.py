"""One import into an open memory: whatever it brings is one act, which one undo takes back.

Its record is written before anything else, so an import that is cut off can be undone too. Each message names it, and
where the message comes from; what is learned from the message names its origin as well. The entries that were learned
are recorded from time to time, since a record for each session would be thousands of files.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Protocol

from ricordo.errors import InvalidEntry
from ricordo.lazy import dataclass
from ricordo.messages import Message
from ricordo.messages.types import with_origin
from ricordo.runtime.extraction import IngestReport, SessionRecorder
from ricordo.runtime.workspace import Workspace
from ricordo.stores.contract import KeepsTombstones, LayeredMemory
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.change_sets import IMPORT_ACT
from ricordo.workspace.history.log import PERSON

__all__ = ["ImportRun", "RefusedEntry", "begin_import"]


_ENTRIES_TO_A_RECORD = 2_000


class _OpenMemory(Protocol):
    """The parts of an open `Memory` that an import writes to."""

    @property
    def _workspace(self) -> Workspace: ...

    @property
    def _layers(self) -> LayeredMemory: ...

    @property
    def _recorder(self) -> SessionRecorder: ...

    async def entries(self) -> list[Entry]: ...


@dataclass(frozen=True, kw_only=True)
class RefusedEntry:
    """An entry that was not saved, and why."""

    entry: Entry
    reason: str


@dataclass(kw_only=True)
class ImportRun:
    """A running import; `id` is that of its change, by which it is undone. It `is_empty` until it brings something."""

    id: str
    memory: _OpenMemory
    is_empty: bool = True
    _learned: list[str] = field(default_factory=list)
    _known_ids: set[str] | None = None

    async def ingest(
        self, messages: Iterable[Message], *, session: str, origin: str, known: Mapping[str, int] | None = None
    ) -> IngestReport:
        """Record messages and learn from them as `Memory.ingest` does; `origin` names their source in a few words."""
        report = await self.memory._recorder.ingest(
            self.memory._workspace,
            [with_origin(message, origin, self.id) for message in messages],
            session=session,
            known=known,
            actor="",
        )
        self.is_empty = self.is_empty and not report.added_count and not report.entries
        self._learned += [entry.id for entry in report.entries]
        if len(self._learned) >= _ENTRIES_TO_A_RECORD:
            await self._record_learned()
        return report

    async def remember(
        self, entries: Sequence[Entry], *, is_confirmed: bool = False
    ) -> tuple[list[Entry], list[RefusedEntry]]:
        """Save entries with ids of their own; return those that are new, and those that can't be saved.

        An entry whose id is there already is left out, and one that was forgotten is not saved again. With
        `is_confirmed` they count as confirmed by the person.
        """
        confirmed = self.memory._workspace.memory_root.clock.now() if is_confirmed else None
        if self._known_ids is None:
            self._known_ids = {entry.id for entry in await self.memory.entries()}
        new, refused = list[Entry](), list[RefusedEntry]()
        for entry in entries:
            if entry.id in self._known_ids:
                continue
            reason = await self._explain_refusal(entry)
            if reason:
                refused.append(RefusedEntry(entry=entry, reason=reason))
            else:
                self._known_ids.add(entry.id)
                new.append(replace(entry, confirmed=confirmed))
        saved = await self.memory._layers.write_many(new, part_of=self.id) if new else []
        self.is_empty = self.is_empty and not saved
        return saved, refused

    async def finish(self) -> None:
        """Record what was learned; an import that brought nothing leaves no record."""
        await self._record_learned()
        if self.is_empty:
            await self.memory._workspace.memory_root.changes.discard(self.id)

    async def _record_learned(self) -> None:
        if self._learned:
            entries, self._learned = self._learned, []
            changes = self.memory._workspace.memory_root.changes
            await changes.apply([], act=IMPORT_ACT, who=PERSON, entries=entries, part_of=self.id)

    async def _explain_refusal(self, entry: Entry) -> str:
        try:
            entry.validate()
        except InvalidEntry as error:
            return str(error)
        tombstones = self.memory._workspace.store.offers(KeepsTombstones)
        is_forgotten = tombstones is not None and await tombstones.tombstone_of(entry) is not None
        return "It was forgotten, and is not taken in again." if is_forgotten else ""


async def begin_import(memory: _OpenMemory, reason: str) -> ImportRun:
    """Begin an import into an open `Memory`; `reason` says in history what is imported. Raises: StorageError.

    Call `finish` at its end, also after an error. Without that everything is kept too, and can be undone.
    """
    change = await memory._workspace.memory_root.changes.apply([], act=IMPORT_ACT, who=PERSON, why=reason)
    return ImportRun(id=change.id, memory=memory)
