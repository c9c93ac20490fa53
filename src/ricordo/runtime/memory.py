"""`Memory`: the public API to remember, recall, answer, forget and undo."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from ricordo import curation, jobs, models, runtime, stores, workspace
from ricordo.clock import Clock
from ricordo.concurrency import Opening, run_in_thread
from ricordo.errors import InvalidQuery, MemoryClosed, ReasonRequired
from ricordo.events import EventSink
from ricordo.messages.tokens import Tokens
from ricordo.runtime import Settings, Workspace
from ricordo.runtime.finding import Finder, compose_past_preamble, list_entries, open_profile, read_preamble
from ricordo.runtime.models import embed_root
from ricordo.runtime.roots import remove_prepared_preambles
from ricordo.runtime.validation import (
    MetadataFilter,
    check_after,
    check_budget,
    check_entries,
    check_limit,
    check_metadata,
    check_scope,
    check_seconds,
    check_several,
    check_texts,
    check_type,
    make_audit_filter,
    make_entry,
    make_filter,
)
from ricordo.runtime.workspace import Dependencies, open_located_workspace
from ricordo.scope import Scope, ScopeName, wider_scope
from ricordo.search.contract import MEMORY_DOCUMENT_TYPES, Freshness, Moment, Query, parse_moment
from ricordo.storage.disk import Disk
from ricordo.stores.contract import DeleteResult, ForgetResult, LayeredMemory, RecordsUsage
from ricordo.workspace.entry import Author, Entry, EntryFilter
from ricordo.workspace.history.log import PERSON, HistoryItem
from ricordo.workspace.history.usage import MemoryUsage
from ricordo.workspace.ledger import resolve_id
from ricordo.workspace.redaction import redact_for_display

if TYPE_CHECKING:
    from ricordo.context.memory_excerpt import MemoryCut
    from ricordo.curation import UserProfile
    from ricordo.curation.quality_checks import Doubt
    from ricordo.jobs import BackgroundRun
    from ricordo.messages import Message
    from ricordo.models import Embedder
    from ricordo.runtime.doctor import Verb
    from ricordo.runtime.entry_import import EntryImport
    from ricordo.runtime.extraction import IngestReport, RecordedSession, SessionRecorder
    from ricordo.search import Answer, Explanation, Hit, Reranker
    from ricordo.workspace import AuditRecord, ChangeDiff, EraseResult
    from ricordo.workspace.history.checks import Check
    from ricordo.workspace.session_search import SessionInfo

__all__ = ["Memory"]


class Memory:
    """The open memory of one scope. Use `async with Memory.open(...) as memory`.

    `scope` says who the memory belongs to, and `root` is its directory. Entries saved with a user and a project (or
    team) are private to that user and lie in `folder`. Those with `scope=Scope(project=...)` are shared by all who open
    the root, and those with `scope=Scope(user=...)` are visible in all projects of that user.
    """

    def __init__(
        self,
        workspace: Workspace, layers: LayeredMemory, *, settings: Settings | None = None,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:  # fmt: skip
        """Use `Memory.open` instead."""
        self._close = close
        self._handles: tuple[Workspace, LayeredMemory] | None = workspace, layers
        self._settings = settings
        self.scope, self.root, self.folder = workspace.scope, workspace.root, workspace.folder

    @classmethod
    def open(
        cls,
        root: str | Path | None = None,
        *,
        scope: Scope | None, on_event: EventSink | None = None, settings: Settings | None = None, trusted: bool = False,
        clock: Clock | None = None, disk: Disk | None = None, embedder: "Embedder | str | None" = None,
        reranker: "Reranker | str | None" = None, actor: str = "", background: bool = True,
    ) -> Opening["Memory"]:  # fmt: skip
        """Open the memory of `scope` in the directory `root`, which is created if it does not exist.

        Use `async with Memory.open(...) as memory`; or `memory = await Memory.open(...)` and later `close` in any task.

        Without `root`, RICORDO_ROOT is used, else the nearest one above the working directory, else a new one at the
        top of the git work tree. `trusted` allows a root that was not created or trusted on this machine;
        without it such a root is refused before anything in it is read. Without `settings` they are loaded from
        config.toml and the environment. `on_event` receives events, which never hold content. `embedder` finds by
        meaning: an `Embedder`, or a name as in the settings; `none` finds by words alone. If nothing names one, it is
        `static` where the extra `embed` is installed; `settings` with None find by words. `reranker`, an object or a
        name, reorders the best hits. `actor` is the user recorded for changes, and for `undo`, if the scope names no
        user. Without `background`, no job of the inbox runs meanwhile or at the end; it waits for another process.
        Raises: ScopeRequired; RootNotTrusted; InvalidScope if a part holds a secret; ScopeMismatch if the root belongs
        to another tenant or project; InvalidSetting, or DocumentInvalid for a damaged config.toml.
        """
        make_parts = partial(
            Dependencies.create,
            clock=clock, disk=disk, sink=on_event, embedder=embedder, reranker=reranker, actor=actor,
            background=background,
        )  # fmt: skip
        located = open_located_workspace(root, scope, settings, make_parts, trusted=trusted)
        return Opening(lambda opening: cls._open(located, opening))

    @classmethod
    @asynccontextmanager
    async def _open(
        cls, workspace_context: AbstractAsyncContextManager[tuple[Workspace, Settings]], opening: Opening["Memory"]
    ) -> AsyncIterator["Memory"]:
        async with workspace_context as (opened_workspace, settings):
            layers = opened_workspace.store.offers(LayeredMemory)
            assert layers is not None
            memory = cls(opened_workspace, layers, settings=settings, close=opening.close)
            try:
                yield memory
            finally:
                memory._handles = None

    @property
    def is_closed(self) -> bool:
        """Whether it is closed; every other method then raises `MemoryClosed`."""
        return self._handles is None

    async def close(self) -> None:
        """Close the memory: finish due work, for two seconds by default, and release its files.

        Unfinished work waits in the inbox. A second call does nothing. Raises: StorageError.
        """
        self._handles = None
        if self._close is not None:
            await self._close()

    async def remember(
        self,
        content: str,
        *,
        kind: str = "fact", tags: Iterable[str] = (), scope: Scope | ScopeName | None = None, reason: str | None = None,
        rule: str | None = None, since: Moment | None = None, metadata: Mapping[str, str] | None = None,
        by: Author = "user",
    ) -> Entry:  # fmt: skip
        """Save an entry and return it with its id; it is durable and searchable when this returns.

        `since` is when it was said or became true, if that was earlier. `metadata` are texts by name, for filters.

        Without a `scope` it is private to the user in the project. With `"session"` it is visible in the session of
        this memory alone, and erased when that ends; with `"project"` to all who work there. A scope without the
        project, such as `"user"` or `Scope(user="me")`, makes it visible in all projects of that user and needs a
        `reason`. The names mean parts of this memory's own scope.

        With a `rule`, such as `deny shell(git push --force*)` or `ask write_file(src/*)`, an agent's tool calls are
        checked against it until the entry is forgotten. Only people may set a rule, and a rule can't permit anything.
        Raises: InvalidEntry, ScopeMismatch, ReasonRequired, StorageFull and its siblings.
        """
        place = wider_scope(self.scope, scope) if isinstance(scope, str) else scope
        entry = make_entry(content, kind, tags, metadata, scope=place, reason=reason, rule=rule, since=since, by=by)
        return await self._workspace.store.save(entry)

    async def remember_many(self, entries: Iterable[Entry | str]) -> list[Entry]:
        """Save several entries at once, in this order, and return them with their ids; empty for none.

        A text stands for a fact. An `Entry` may have a `time` and a `since` of its own, such as of an import. All are
        checked before anything is written. Those of one place are written together, and one `undo` reverts them.
        Raises what `remember` raises; then nothing is saved in the place where it happened.
        """
        return await self._layers.write_many(check_entries(entries))

    async def import_entries(self, entries: Iterable[Entry | str], *, part_of: str = "") -> "EntryImport":
        """Save entries of another system, each once, and return which of them are new.

        They are by `import`: their trust is low, they replace nothing that a person said, and orders to an assistant
        wait in quarantine. The `origin` of the source begins with the name of the system, such as `mem0:export.json`;
        the metadata `import-id` is the id there. By these and their words they are known again; other words under the
        same id take the place of the imported ones. What was forgotten here is left out, what can't be saved `refused`.
        All are one change for `undo`, with the earlier one `part_of`. Raises: InvalidEntry for no entry; StorageError.
        """
        check_texts(part_of)
        importer = runtime.EntryImporter(self._workspace, self._layers, change_id=part_of)
        return await importer.save(check_entries(entries))

    async def update(
        self,
        entry_id: str,
        *,
        content: str | None = None, kind: str | None = None, tags: Iterable[str] | None = None,
        metadata: Mapping[str, str] | None = None, by: Author = "user",
    ) -> Entry:  # fmt: skip
        """Give an entry new values and return it; what is None stays, as do id and time.

        New content counts as confirmed by a person, but not `by="agent"`, which can't change what a person said. It
        replaces the old one everywhere but in transcripts. `tags` and `metadata` replace all that it has: for one more,
        pass `{**entry.metadata, "area": "payments"}`. `versions` returns the values before, and `undo` restores them.
        Raises: EntryNotFound; InvalidEntry, then nothing is changed.
        """
        check_texts(entry_id)
        update = curation.EntryUpdate(
            content=content, kind=kind, tags=None if tags is None else check_several(tags),
            metadata=None if metadata is None else check_metadata(metadata), by=by,
        )  # fmt: skip
        with self._workspace.emitter.stage("save", self.scope) as progress:
            progress.counts["entries"] = 1
            return await self._layers.update_entry(entry_id, update, who=by)

    async def delete_all(
        self,
        *,
        kinds: Iterable[str] = (), tags: Iterable[str] = (), states: Iterable[str] = (),
        since: Moment | None = None, until: Moment | None = None, metadata: MetadataFilter | None = None,
        scope: Scope | None = None, reason: str = "",
    ) -> DeleteResult:  # fmt: skip
        """Forget every entry of one place that matches the filters, which are those of `entries`; without any, all.

        The place is the narrowest one of this memory, or that of `scope`, such as `Scope(project=...)`. Without a
        filter, nothing more is learned from what was said in its sessions, and its trash and damaged copies go too. It
        is one change, which `undo` reverses. Raises: InvalidQuery; ScopeMismatch for a place it can't write to.
        """
        check_texts(reason)
        entry_filter = make_filter(kinds=kinds, tags=tags, states=states, since=since, until=until, metadata=metadata)
        place = scope and check_scope(scope)
        with self._workspace.emitter.stage("forget", self.scope) as progress:
            if entry_filter == EntryFilter() and place in {None, self._workspace.memory_root.scope}:
                await runtime.stop_learning(self._workspace.inbox, self._workspace.flush)
            result = await self._layers.forget_matching(entry_filter, scope=place, who=PERSON, why=reason)
            progress.counts["entries"] = len(result.entries)
            return result

    async def recall(
        self,
        query: str,
        *,
        limit: int = 5, kinds: Iterable[str] = (), tags: Iterable[str] = (),
        since: Moment | None = None, until: Moment | None = None, metadata: MetadataFilter | None = None,
        budget: Tokens | None = None, around: bool = False, as_of: Moment | None = None, said: bool = True,
    ) -> "list[Hit]":  # fmt: skip
        """Return at most `limit` hits, best first, each with its reason; for an empty query the newest entries.

        Hits are entries and, with `said`, statements of sessions that match nearer than entries: `Hit.is_said` tells
        them apart. The first hit is an entry if one matches. `kinds`, `tags` and `metadata` exclude what was said. With
        a `budget` they have at most that many estimated tokens; a hit too long for the rest is skipped.

        The filters match entries of any of the `kinds`, with any of the `tags`, saved or said from `since` up to
        `until`, and with the values in `metadata`, by name: its value, or several of which it has one. A time is a
        datetime with its offset, a day, or either as text such as `2026-11-22`. With `around` each hit has what comes
        before and after. With `as_of` it gives and raises what `entries(as_of=...)` does. Raises: InvalidQuery for a
        bad filter or limit; InvalidSetting for a bad budget.
        """
        wanted = make_filter(kinds=kinds, tags=tags, states=(), since=since, until=until, metadata=metadata)
        most, tokens, moment = check_limit(limit), check_budget(budget), parse_moment("as_of", as_of)
        if moment is not None:
            return await self._finder.recall_past(query, wanted, moment, limit=most, budget=tokens, said=said)
        return await self._finder.recall(query, wanted, limit=most, budget=tokens, around=around, said=said)

    async def search(self, query: str | Query, *, limit: int = 10, around: bool = False) -> "list[Hit]":
        """Return at most `limit` hits from entries, session files, transcripts and evicted results.

        With `around` each hit includes what comes right before and after it, such as the neighbouring messages. Raises:
        InvalidQuery if `limit` is below 1.
        """
        request = query if isinstance(query, Query) else Query(text=query)
        return await self._finder.search(request, limit=check_limit(limit), around=around)

    async def explain(
        self,
        query: str | Query,
        *,
        limit: int = 5, rejected: int = 10,
        budget: Tokens | None = None, around: bool = False, said: bool | None = None,
    ) -> "Explanation":  # fmt: skip
        """Return the hits for `query` with the share of each signal, and the best rejected candidates with reasons.

        A text finds what `recall` finds; a `Query` what is in its `document_types`, by default everything, and with
        `said` also statements of sessions, as `recall` does. With a `budget` the hits have at most that many tokens in
        total; `around` works as in `recall`. Raises: InvalidQuery if `limit` is below 1.
        """
        request = query if isinstance(query, Query) else Query(text=query, document_types=MEMORY_DOCUMENT_TYPES)
        return await self._finder.explain(
            request, limit=check_limit(limit), rejected=check_limit(rejected, minimum=0), budget=check_budget(budget),
            around=around, said=request is not query if said is None else said,
        )  # fmt: skip

    async def answer(self, question: str, *, as_of: Moment | None = None) -> "Answer":
        """Return the best hit quoted, never invented, or "not in memory"; `as_of` is that of `entries`."""
        check_type("question", question, str, words="a text", error=InvalidQuery)
        return await self._finder.answer(question, parse_moment("as_of", as_of))

    async def preamble(self, budget: Tokens | None = None, *, as_of: Moment | None = None) -> str:
        """Return the fenced text for the system prompt, within `budget` tokens: the profile, then memory.

        None stands for the setting `preamble_tokens`, by default 4,000. A budget of 0 gives no preamble. With `as_of`
        it has the active entries of `entries(as_of=...)`, newest first, and raises what that raises.
        """
        if as_of is not None:
            return compose_past_preamble(await self.entries(states=("active",), as_of=as_of), check_budget(budget))
        return (await read_preamble(self, budget, how="preamble")).text

    async def entries(
        self,
        *,
        kinds: Iterable[str] = (), tags: Iterable[str] = (), states: Iterable[str] = (),
        since: Moment | None = None, until: Moment | None = None, metadata: MetadataFilter | None = None,
        limit: int | None = None, after: Entry | str | None = None, as_of: Moment | None = None,
    ) -> list[Entry]:  # fmt: skip
        """Return the entries of the scope that match the filters, newest first by `time`, then by id.

        The filters are those of `recall`; `states` are of `active`, `superseded` and `retired`, by default all. For
        pages, pass a `limit` and, as `after`, the last entry of the page before or its id: entries that are saved or
        forgotten meanwhile shift no page, and the last page is shorter or empty. With `as_of`, the entries are as of
        that moment, with those that were forgotten, merged or superseded since then. Raises: InvalidQuery for an
        invalid filter; EntryNotFound if `after` is the id of no entry; ChangeNotFound if history no longer holds the
        content replaced since `as_of`.
        """
        entry_filter = make_filter(kinds=kinds, tags=tags, states=states, since=since, until=until, metadata=metadata)
        most, moment = None if limit is None else check_limit(limit), parse_moment("as_of", as_of)
        found = await list_entries(self._layers, entry_filter, limit=most, after=check_after(after), moment=moment)
        return self._finder.note_read(found, how="list")

    async def entry(self, entry_id: str, *, as_of: Moment | None = None) -> Entry:
        """Return an entry by its id, or by six or more leading or trailing characters of it.

        With `as_of` it is returned as of that moment. Raises: EntryNotFound, and what `entries` raises.
        """
        check_type("The id of a memory", entry_id, str, words="a text", error=InvalidQuery)
        if as_of is None:
            return self._finder.note_read([await self._layers.get(entry_id)], how="show")[0]
        earlier_entries = {entry.id: entry for entry in await self.entries(as_of=as_of)}
        return earlier_entries[resolve_id([*earlier_entries], entry_id)]

    async def forget(self, entry_id: str, *, reason: str = "", by: Author = "user") -> ForgetResult:
        """Forget an entry until `undo`; return it with the places that have its words still. Raises `EntryNotFound`."""
        check_texts(entry_id, reason)
        with self._workspace.emitter.stage("forget", self.scope) as progress:
            progress.counts["entries"] = 1
            entry = await self._layers.forget(entry_id, who=by, why=reason)
            return ForgetResult(entry=entry, remaining=tuple(await stores.remaining_in_layers(self._layers, entry)))

    async def erase(self, entry_id: str = "", *, text: str = "", inside_words: bool = False) -> "EraseResult":
        """Erase an entry, or every occurrence of `text`, from all files that this memory can see.

        The exact words, also of a forgotten entry, are removed from memory, transcripts, states, history, trash and
        every other file below the root, with the copies that `forget` finds and preambles prepared for hooks; the index
        is rebuilt. This can't be undone. After an interruption, call it again to finish. Words that contain it are
        erased only with `inside_words`; otherwise the result names the files with them. Raises: EntryNotFound;
        InvalidEntry unless one of `entry_id` and `text` is given, or if `text` has fewer than three letters or digits
        (two in Korean and in scripts without spaces); EraseIncomplete, with the files that still hold it; StorageError.
        """
        with self._workspace.emitter.stage("forget", self.scope) as progress:
            done = await stores.erase_everywhere(self._layers, entry_id=entry_id, text=text, inside_words=inside_words)
            progress.counts.update(entries=len(done.ids))
            await run_in_thread(remove_prepared_preambles, self._settings.data) if self._settings else None
            return done

    async def versions(self, entry_id: str) -> list[Entry]:
        """Return the current and earlier versions of an entry that history still holds, even if it is forgotten.

        Empty if history holds nothing of a forgotten entry. Raises: EntryNotFound.
        """
        _, versions = await stores.find_versions(self._layers, entry_id)
        return [redact_for_display(entry, self._workspace.memory_root.redactor) for entry in versions]

    async def undo(self, change_id: str | None = None) -> HistoryItem:
        """Undo one change and return it; without an id, the newest change made by this scope's user.

        Without an id it considers what a person saved, marked, moved, forgot or ingested, and consolidations that they
        started. What an agent saved, or the background learned or consolidated, is undone only by id, and changes of
        another user only by that user. Raises: ChangeNotFound, UndoRefused.
        """
        check_texts(change_id or "")
        with self._workspace.emitter.stage("undo", self.scope):
            return await self._layers.undo(change_id, who="user")

    async def history(self, entry_id: str | None = None, *, limit: int | None = None) -> list[HistoryItem]:
        """Return at most `limit` changes (all if None), newest first; with an id, those that concern this entry.

        Includes changes that other users made to shared memory, with their `user`. The entry may be forgotten. A change
        that moved its line, or of a consolidation, counts too, as long as history holds what it replaced. Raises:
        InvalidQuery if `limit` is below 1; EntryNotFound.
        """
        limit = None if limit is None else check_limit(limit)
        if entry_id is None:
            return await self._layers.history(limit=limit)
        check_texts(entry_id)
        return await self._layers.entry_history((await stores.find_versions(self._layers, entry_id))[0], limit=limit)

    async def audit(
        self,
        *,
        acts: Iterable[str] = (), user: str | None = None, session: str | None = None, entry: str | None = None,
        scope: Scope | None = None, since: Moment | None = None, until: Moment | None = None, limit: int | None = None,
    ) -> "list[AuditRecord]":  # fmt: skip
        """Return at most `limit` records of the audit log, newest first: who did what, when, to which ids.

        Filters are `acts`, such as `read`, the `user` and `session` for whom it was done, an `entry` by its id or its
        beginning, the `scope` of the memory, and times. Raises: InvalidQuery for a bad filter; StorageError.
        """
        texts, most = {"user": user, "session": session, "entry": entry}, None if limit is None else check_limit(limit)
        wanted = make_audit_filter(acts, texts, scope, (since, until))
        auditor = self._workspace.store.offers(stores.Audits)
        return (await auditor.audit(wanted))[:most] if auditor else []

    async def diff(self, change_id: str | None = None) -> "ChangeDiff":
        """Return what a change, by default the newest, did to each line of its files. Raises `ChangeNotFound`."""
        check_texts(change_id or "")
        return await self._layers.diff(change_id)

    async def background_runs(self, *, limit: int = 20) -> "list[BackgroundRun]":
        """Return at most `limit` background runs, newest first, each with its counts, its outcome and its cost.

        Finished runs are listed only for a while. Raises: InvalidQuery if `limit` is below 1; StorageError.
        """
        inbox, files = self._workspace.inbox, self._workspace.memory_root.files
        return await jobs.read_background_runs(inbox, models.SpendingJournal(files), limit=check_limit(limit))

    async def drain(self, *, seconds: float = 10.0) -> int:
        """Process waiting inbox jobs for at most `seconds` and return how many are left.

        Jobs queued by this process, such as by `ingest`, run without waiting for a pause. With 0 seconds the jobs are
        only counted. A failed job stays in the inbox and is retried later; `background_runs` says why it failed.
        Raises: InvalidSetting if `seconds` is not a valid number.
        """
        if check_seconds(seconds) > 0:
            await self._workspace.worker.make_due()
        return await self._workspace.worker.drain_all(seconds=seconds)

    async def move(self, entry_id: str, to: ScopeName, *, reason: str = "") -> Entry:
        """Move an entry to another scope of this memory, under its id, and return it; `undo` reverses it.

        In `"project"`, `"team"` and `"user"` it needs a `reason`. The session and the words that it comes from stay
        behind. Raises: EntryNotFound; ReasonRequired; InvalidScope; MembershipRequired; InvalidEntry, as for a secret.
        """
        check_texts(entry_id, reason)
        scope, is_wider = wider_scope(self.scope, to), to not in {"session", "private"}
        if is_wider and not reason.strip():
            raise ReasonRequired
        with self._workspace.emitter.stage("save", self.scope):
            act = "promote" if is_wider else "demote"
            return await self._layers.move_entry(entry_id, scope, act=act, who=PERSON, why=reason)

    async def pin(self, entry_id: str, *, on: bool = True) -> Entry:
        """Pin an entry, or unpin it with `on=False`, and return the updated entry.

        A pinned entry appears in every preamble as far as the budget allows, loses no weight with age, and is never
        rewritten or retired by consolidation. Raises `EntryNotFound`.
        """
        check_texts(entry_id)
        return await self._layers.mark_entry(entry_id, "pin" if on else "unpin", who="user")

    async def confirm(self, entry_id: str) -> Entry:
        """Confirm that an entry is true: it becomes certain, and as fresh as if learned now. Raises `EntryNotFound`."""
        check_texts(entry_id)
        return await self._layers.mark_entry(entry_id, "confirm", who="user")

    async def mark_used(self, entry_id: str, *, how: str = "used") -> Entry:
        """Record that an entry was used, such as opened or acted on, and return it; `how` is one word.

        Use does not make an entry fresher; `confirm` does. Raises `EntryNotFound`.
        """
        check_texts(how)
        entry, recorder = await self.entry(entry_id), self._workspace.store.offers(RecordsUsage)
        if recorder:
            recorder.record_use("used", [entry.id], how=how, session=self.scope.session or "")
        return entry

    async def preamble_cut(self, budget: Tokens | None = None) -> "MemoryCut | None":
        """Return what the preamble of this budget leaves out of MEMORY.md and by which bound; None for nothing."""
        return (await read_preamble(self, budget)).cut

    async def usage(self, entry_id: str) -> MemoryUsage:
        """Return how often and when an entry was shown, used and confirmed, if recorded. Raises `EntryNotFound`."""
        entry, recorder = await self.entry(entry_id), self._workspace.store.offers(RecordsUsage)
        return await recorder.usage(entry.id) if recorder else MemoryUsage()

    def profile(self, *, scope: Scope | None = None) -> "UserProfile":
        """Return the profile of `scope`, by default this one, to read or edit. Raises: ScopeMismatch for another."""
        profile_scope = self.scope if scope is None else check_scope(scope)
        return open_profile(self._workspace, profile_scope, self._settings)

    async def ingest(
        self,
        messages: Iterable["Message"],
        *,
        session: str, known: Mapping[str, int] | None = None, part_of: str = "",
    ) -> "IngestReport":  # fmt: skip
        """Record messages of a session and learn from them; messages already recorded are not added again.

        Give the whole conversation each time, or its end from any message on. Messages without ids are matched by
        content: two or more that the transcript ends with, or holds in that order, are already recorded; a single one
        only if the transcript holds nothing else. Instead, `known` counts, by fingerprint, those given before these.

        Rules learn immediately. What they learn is one change that one `undo` reverts, and is learned again if the
        messages are given again after that. `part_of` is the `change_id` of an earlier call to undo together with this
        one. If a model learns, the session is put into the inbox: this neither waits for the model nor raises its
        errors; `drain` waits for it. Raises: InvalidMessage; StorageError.
        """
        return await self._recorder.ingest(self._workspace, messages, session=session, known=known, part_of=part_of)

    async def end_session(self) -> None:
        """End the session of this memory: what was remembered for it alone is erased from files and index.

        What was learned in the same words is forgotten too, transcripts stay. If another process has the session open,
        it is erased when that ends it. Raises: StorageError.
        """
        with self._workspace.emitter.stage("forget", self.scope):
            await self._workspace.end_session()

    async def delete_session(self, session_id: str, *, cascade: bool = False, reason: str = "") -> DeleteResult:
        """Delete the files of a session; with `cascade` forget the entries that it alone supports, and return them.

        What another session, or a save outside of sessions, supports too stays with that source. It is one change,
        which `undo` reverses. Nothing more is learned from the session. Raises: SessionNotFound; StorageBusy.
        """
        check_texts(session_id, reason)
        with self._workspace.emitter.stage("forget", self.scope):
            return await runtime.delete_session(
                self._workspace.memory_root, self._workspace.inbox, session_id, agent=self.scope.agent,
                cascade=cascade, why=reason, settings=self._settings,
            )  # fmt: skip

    async def sessions(self) -> "list[SessionInfo]":
        """Return the sessions that have a stored transcript, newest first."""
        return await workspace.list_sessions(self._workspace.memory_root.files, agent=self.scope.agent)

    async def session(self, session_id: str) -> "RecordedSession":
        """Return one session with its messages. Raises `SessionNotFound`."""
        return await self._recorder.read(self._workspace.memory_root, session_id, agent=self.scope.agent)

    async def embed(self, *, seconds: float = 30.0) -> int:
        """Embed passages without a vector, for at most `seconds`, and return how many still have none."""
        return sum([await embed_root(place, seconds=check_seconds(seconds)) for place in await self._layers.places()])

    async def index(self) -> None:
        """Index everything that changed in the files, so that the next search need not.

        A search does so for at most two seconds and reads the rest directly; call this after much was taken in.
        Vectors are computed for at most 30 seconds. Raises `StorageError`.
        """
        for place in await self._layers.places():
            await place.index.refresh()

    async def doctor(self) -> "list[Check]":
        """Check every part of the visible memory and return the findings; this writes to nothing but the index.

        For wider places only problems are returned, prefixed with the label of the place.
        """
        bounds = self._settings.consolidation if self._settings else None
        return await runtime.check_memory(self._workspace, await self._layers.places(), consolidation=bounds)

    async def review(self, *, kinds: Iterable[str] = (), limit: int | None = None) -> "list[Doubt]":
        """Return at most `limit` doubtful memories (all if None) of these kinds, or of all, the most urgent first.

        What was put off by `decide` is left out until its time. Raises: InvalidQuery for a bad kind or limit.
        """
        most = None if limit is None else check_limit(limit)
        return (await runtime.find_due_doubts(self._workspace, self._layers, check_several(kinds)))[:most]

    async def decide(self, entry_id: str, verb: "Verb", *, text: str = "", days: int = 7) -> Entry:
        """Decide about a doubtful memory and return it; `undo` reverses each decision but `later`.

        `accept` says that it holds, with what it is compared with; `reject` forgets it; `merge` lets that take its
        place; `edit` gives it the content `text`; `later` puts it off for so many `days`, 0 shows it again. For
        `stale`, `accept` is `merge`, and `reject` confirms both. Raises: EntryNotFound; InvalidInput for an unfit verb.
        """
        check_texts(entry_id, verb, text)
        return await runtime.decide_doubt(self._workspace, self._layers, entry_id, verb, text=text, days=days)

    def freshness(self) -> Freshness:
        """Return how far the index follows the files, as of the last search or write; it does no I/O.

        The state is `fresh`; `stale`, with the number of files that a search reads directly; `building`; or `broken`,
        where every search reads the files. `recall` finds every entry in each.
        """
        return self._workspace.memory_root.index.freshness()

    @property
    def _workspace(self) -> Workspace:
        if self._handles is None:
            raise MemoryClosed
        return self._handles[0]

    @property
    def _layers(self) -> LayeredMemory:
        if self._handles is None:
            raise MemoryClosed
        return self._handles[1]

    @property
    def _finder(self) -> Finder:
        return Finder(workspace=self._workspace, layers=self._layers)

    @cached_property
    def _recorder(self) -> "SessionRecorder":
        return runtime.SessionRecorder()
