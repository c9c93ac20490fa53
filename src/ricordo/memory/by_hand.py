"""What a person does to what is remembered: forget, take back, look at what was written, pin and confirm."""

from abc import ABC, abstractmethod
from datetime import timedelta

from ricordo.audit import HistoryItem, MemoryUsage, resolve_history_item, list_history
from ricordo.audit.difference import ChangeDiff, diff_change
from ricordo.audit.erase import EraseResult
from ricordo.audit.runs import BackgroundRun, list_background_runs
from ricordo.errors import ChangeNotFound, InvalidQuery, ScopeMismatch
from ricordo.memory.results import ForgetResult
from ricordo.profile.managing import UserProfile
from ricordo.runtime import Settings, Workspace
from ricordo.runtime.given import check_budget, check_limit, check_type, check_scope, check_seconds
from ricordo.scopes import Scope
from ricordo.spending.journal import SpendingJournal
from ricordo.stores.capabilities import LayeredMemory, RecordsUsage
from ricordo.stores.erasing import erase_everywhere, find_versions
from ricordo.stores.preamble import BuildsPreamble
from ricordo.stores.remaining import remaining_in_layers
from ricordo.stores.shown_index import MemoryCut
from ricordo.tokens import Tokens
from ricordo.workspace.entry import Entry
from ricordo.workspace.redaction import redact_for_display

__all__ = ["MemoryBase"]


class MemoryBase(ABC):
    """The part of `Memory` by which people govern it."""

    scope: Scope
    _settings: Settings | None

    async def forget(self, entry_id: str, *, reason: str = "") -> ForgetResult:
        """Take a memory out at once, and return it with what still says its words; `undo` brings it back.

        Raises `EntryNotFound`.
        """
        _require_text(entry_id, reason)
        with self._workspace.emitter.stage("forget", self.scope) as progress:
            progress.counts["entries"] = 1
            gone = await self._layers.forget(entry_id, who="user", why=reason)
            return ForgetResult(entry=gone, remaining=tuple(await remaining_in_layers(self._layers, gone)))

    async def erase(self, entry_id: str = "", *, text: str = "", inside_words: bool = False) -> EraseResult:
        """Take a memory, or a `text` wherever it stands, out of every file that this memory sees, for good.

        The memory may be forgotten already. What says it word for word goes from memory, transcripts, states, history,
        trash and every other file below the root, and so do the copies that forgetting finds; the index is made anew.
        Nothing brings it back. A second call finishes what was cut off. What stands as a part of longer words is
        erased with `inside_words` alone; the result names the files that hold it so.

        Raises: EntryNotFound; InvalidEntry unless exactly one of both is given, and for a text of fewer than three
        letters or digits (two in Korean and in scripts without spaces); EraseIncomplete, which names the files that
        still hold some of it; StorageError.
        """
        with self._workspace.emitter.stage("forget", self.scope) as progress:
            done = await erase_everywhere(self._layers, entry_id=entry_id, text=text, inside_words=inside_words)
            progress.counts.update(entries=len(done.ids))
            return done

    async def versions(self, entry_id: str) -> list[Entry]:
        """Return what a memory says and what it said before, as far as history keeps it, also when it is forgotten.

        Empty when nothing of a forgotten one is kept. Raises: EntryNotFound.
        """
        redactor = self._workspace.memory_root.redactor
        return [redact_for_display(entry, redactor) for entry in (await find_versions(self._layers, entry_id))[1]]

    async def undo(self, change_id: str | None = None) -> HistoryItem:
        """Take back one write and return it: without an id the newest act of the scope's own user.

        That is what a person saved, marked, forgot or took in, and a consolidation that they asked for, whether in
        this root or for all of their projects. What an agent saved, and what was learned or consolidated in the
        background, is taken back by its id only; what another user did is taken back by them alone. Raises:
        ChangeNotFound, UndoRefused.
        """
        _require_text(change_id or "")
        with self._workspace.emitter.stage("undo", self.scope):
            return await self._layers.undo(change_id, who="user")

    async def history(self, *, limit: int | None = None) -> list[HistoryItem]:
        """Return at most `limit` writes (all when None), the one written last first.

        What other users did to what the project shares is among them, with their `user`; what they did in their own
        places is not. Raises `InvalidQuery` if `limit` is below 1.
        """
        return await self._layers.history(limit=None if limit is None else check_limit(limit))

    async def diff(self, change_id: str | None = None) -> ChangeDiff:
        """Return what one write did to each of its files, line by line; the newest when none is named.

        Raises: ChangeNotFound, also when what it replaced is not kept any more.
        """
        _require_text(change_id or "")
        me = self._workspace.memory_root.changes.user
        items = [
            (item, place)
            for place in await self._layers.places()
            for user in [me if change_id is None or place.scope.user else None]
            for item in await list_history(place.files, place.changes, user=user)
        ]
        if not items:
            raise ChangeNotFound("Nothing was written yet.")
        item = max((item for item, _ in items), key=lambda item: item.order)
        if change_id is not None:
            item = resolve_history_item([item for item, _ in items], change_id)
        place = next(place for each, place in items if each is item)
        return await diff_change(place.files, place.changes, item, redactor=place.redactor)

    async def background_runs(self, *, limit: int = 20) -> list[BackgroundRun]:
        """Return at most `limit` runs in the background, newest first: what each counted, how it ended, what it cost.

        Ended ones are known for a while. Raises: InvalidQuery if `limit` is below 1; StorageError.
        """
        records = await self._workspace.inbox.jobs(limit=check_limit(limit))
        if not records:
            return []
        # a day is that of the user's calendar, which may have begun before
        first = min(record.created for record in records) - timedelta(days=1)
        asked = await SpendingJournal(self._workspace.memory_root.files).read_since(first.date())
        return list_background_runs(records, asked)

    async def drain(self, *, seconds: float = 10.0) -> int:
        """Work off what waits in the inbox, for at most `seconds`, and return how many jobs are left.

        What was asked for here, such as by `ingest`, does not wait for a pause; with 0 seconds the jobs are only
        counted. A job that failed is left and tried again later; `background_runs` says why. Raises: InvalidSetting for no number
        of seconds.
        """
        if check_seconds(seconds) > 0:
            await self._workspace.worker.make_due()
        return await self._workspace.worker.drain_all(seconds=seconds)

    async def pin(self, entry_id: str, *, on: bool = True) -> Entry:
        """Keep a memory in view whatever else there is, or no longer, and return it as it is now.

        A pinned one stands in every preamble as long as its budget allows, does not lose weight with age, and is never
        rewritten or retired by consolidation. Raises `EntryNotFound`.
        """
        _require_text(entry_id)
        return await self._layers.render_mark(entry_id, "pin" if on else "unpin", who="user")

    async def confirm(self, entry_id: str) -> Entry:
        """Say that a memory holds: it is sure, and as fresh as if it was learned now. Raises `EntryNotFound`."""
        _require_text(entry_id)
        return await self._layers.render_mark(entry_id, "confirm", who="user")

    async def mark_used(self, entry_id: str, *, how: str = "used") -> Entry:
        """Note that a memory was used, such as opened or acted on, and return it; `how` is one word.

        It makes no memory fresher: that is for `confirm`. Raises `EntryNotFound`.
        """
        _require_text(entry_id, how)
        entry = await self._layers.get(entry_id)
        notes = self._workspace.store.offers(RecordsUsage)
        if notes:
            notes.record_use("used", [entry.id], how=how, session=self.scope.session or "")
        return entry

    async def preamble_cut(self, budget: Tokens | None = None) -> MemoryCut | None:
        """Return what of MEMORY.md the preamble leaves out, and which bound acted; None where it shows all of it.

        `budget` is that of the preamble, by default the setting `preamble_tokens`.
        """
        standard = Tokens(self._settings.preamble_tokens) if self._settings else None
        prefaces = self._workspace.store.offers(BuildsPreamble)
        return (await prefaces.build_preamble(check_budget(budget) or standard)).cut if prefaces else None

    async def usage(self, entry_id: str) -> MemoryUsage:
        """Return how often a memory was shown, used and confirmed, and when; nothing where that is not noted.

        Raises `EntryNotFound`.
        """
        _require_text(entry_id)
        entry = await self._layers.get(entry_id)
        notes = self._workspace.store.offers(RecordsUsage)
        return await notes.usage(entry.id) if notes else MemoryUsage()

    def profile(self, *, scope: Scope | None = None) -> UserProfile:
        """Return the profile of the user and agent of `scope`, to look at and to change; by default of this memory's.

        Raises: ScopeMismatch for that of another user, or of another root.
        """
        workspace = self._workspace
        wanted = self.scope if scope is None else check_scope(scope)
        if wanted.user != self.scope.user:
            raise ScopeMismatch(f"This memory is open for {self.scope}: it shows no profile of {wanted}.")
        config = self._settings.injection if self._settings else None
        return UserProfile(workspace.profiles.open_store(wanted), clock=workspace.memory_root.clock, config=config)

    @property
    @abstractmethod
    def _workspace(self) -> Workspace: ...

    @property
    @abstractmethod
    def _layers(self) -> LayeredMemory: ...


def _require_text(*given: object) -> None:
    for each in given:
        check_type("An id, and a reason,", each, str, words="a text", error=InvalidQuery)
