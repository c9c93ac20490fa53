"""One import into an open memory: whatever it brings is one act, which one undo takes back.

Its record is written before anything else, so an import that is cut off can be undone too. Each message names it, and
where the message comes from; what is learned from the message names its origin as well. The entries that were learned
are recorded from time to time, since a record for each session would be thousands of files.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Protocol

from ricordo.lazy import dataclass
from ricordo.messages import Message
from ricordo.messages.types import with_origin
from ricordo.runtime.entry_import import EntryImport, EntryImporter
from ricordo.runtime.extraction import IngestReport, SessionRecorder
from ricordo.runtime.workspace import Workspace
from ricordo.stores.contract import LayeredMemory
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.change_sets import IMPORT_ACT
from ricordo.workspace.history.log import PERSON

__all__ = ["ImportRun", "OpenMemory", "begin_import"]


_ENTRIES_TO_A_RECORD = 2_000


class OpenMemory(Protocol):
    """The parts of an open `Memory` that an import writes to."""

    @property
    def _workspace(self) -> Workspace: ...

    @property
    def _layers(self) -> LayeredMemory: ...

    @property
    def _recorder(self) -> SessionRecorder: ...


@dataclass(kw_only=True)
class ImportRun:
    """A running import; `id` is that of its change, by which it is undone. It `is_empty` until it brings something.

    If it is `trusted`, entries of another system count as confirmed by the person who imports them. Those that were
    known are confirmed at the end, `confirmed_count` in the changes `confirmation_ids`, which are undone alone.
    """

    id: str
    memory: OpenMemory
    trusted: bool = False
    is_empty: bool = True
    confirmed_count: int = 0
    confirmation_ids: list[str] = field(default_factory=list)
    _learned: list[str] = field(default_factory=list)
    _importers: dict[OpenMemory, EntryImporter] = field(default_factory=dict)
    _unconfirmed: defaultdict[OpenMemory, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))

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
            only_new=True,
        )
        self.is_empty = self.is_empty and not report.added_count and not report.entries
        self._learned += [entry.id for entry in report.entries]
        if len(self._learned) >= _ENTRIES_TO_A_RECORD:
            await self._record_learned()
        return report

    async def import_entries(self, entries: Sequence[Entry], memory: OpenMemory | None = None) -> EntryImport:
        """Save entries of another system as `Memory.import_entries` does, in another open memory if one is given.

        An undo of this import takes back those of the other memory too where it sees them.
        """
        memory = memory or self.memory
        importer = self._importers.get(memory)
        if importer is None:
            importer = EntryImporter(memory._workspace, memory._layers, change_id=self.id, trusted=self.trusted)
            self._importers[memory] = importer
        result = await importer.save(entries)
        if self.trusted:
            self._unconfirmed[memory].update(dict.fromkeys(result.external_ids))
        self.is_empty = self.is_empty and not result.change_id
        return result

    async def finish(self) -> None:
        """Record what was learned, and confirm what is trusted; an import that brought nothing leaves no record."""
        await self._record_learned()
        for memory, ids in self._unconfirmed.items():
            if ids:
                self.confirmation_ids.append(await self._importers[memory].confirm(ids, "its source is trusted"))
                self.confirmed_count += len(ids)
        self._unconfirmed.clear()
        if self.is_empty:
            await self.memory._workspace.memory_root.changes.discard(self.id)

    async def _record_learned(self) -> None:
        if self._learned:
            entries, self._learned = self._learned, []
            changes = self.memory._workspace.memory_root.changes
            await changes.apply([], act=IMPORT_ACT, who=PERSON, entries=entries, part_of=self.id)


async def begin_import(memory: OpenMemory, reason: str, *, trusted: bool = False) -> ImportRun:
    """Begin an import into an open `Memory`; `reason` says in history what is imported. Raises: StorageError.

    Call `finish` at its end, also after an error. Without that everything is kept too, and can be undone.
    """
    change = await memory._workspace.memory_root.changes.apply([], act=IMPORT_ACT, who=PERSON, why=reason)
    return ImportRun(id=change.id, memory=memory, trusted=trusted)
