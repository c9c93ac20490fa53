"""One import into an open memory: whatever it brings is one act, which one undo takes back.

Its record is written before anything else, so an import that is cut off can be undone too. Each message names it, and
where the message comes from; what is learned from the message names its origin as well. The entries that were learned
are recorded from time to time, since a record for each session would be thousands of files.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Protocol

from ricordo.lazy import dataclass
from ricordo.messages import Message
from ricordo.messages.types import with_origin
from ricordo.runtime.entry_import import EntryImport, import_entries
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
    """A running import; `id` is that of its change, by which it is undone. It `is_empty` until it brings something."""

    id: str
    memory: OpenMemory
    is_empty: bool = True
    _learned: list[str] = field(default_factory=list)

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

    async def import_entries(
        self, entries: Sequence[Entry], memory: OpenMemory | None = None, *, is_confirmed: bool = False
    ) -> EntryImport:
        """Save entries of another system as `Memory.import_entries` does, in another open memory if one is given.

        With `is_confirmed` they count as confirmed by the person who imports them. An undo of this import takes back
        those of the other memory too where it sees them.
        """
        memory = memory or self.memory
        result = await import_entries(
            memory._workspace, memory._layers, entries, part_of=self.id, is_confirmed=is_confirmed
        )
        self.is_empty = self.is_empty and not result.change_id
        return result

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


async def begin_import(memory: OpenMemory, reason: str) -> ImportRun:
    """Begin an import into an open `Memory`; `reason` says in history what is imported. Raises: StorageError.

    Call `finish` at its end, also after an error. Without that everything is kept too, and can be undone.
    """
    change = await memory._workspace.memory_root.changes.apply([], act=IMPORT_ACT, who=PERSON, why=reason)
    return ImportRun(id=change.id, memory=memory)
