"""`Memory`: the public API to remember, recall, answer, forget and undo."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING

from anyio.to_thread import run_sync

from ricordo import curation, jobs, models, search, stores, workspace
from ricordo.clock import Clock
from ricordo.errors import (
    ChangeNotFound,
    InvalidEntry,
    InvalidMessage,
    InvalidQuery,
    InvalidScope,
    InvalidSetting,
    MemoryClosed,
    ScopeMismatch,
)
from ricordo.events import EventSink
from ricordo.guard import has_secret
from ricordo.jobs import Job
from ricordo.messages import Message
from ricordo.messages.tokens import Tokens
from ricordo.models import Embedder
from ricordo.runtime import Settings, Workspace, open_workspace
from ricordo.runtime.models import embed_root
from ricordo.runtime.roots import default_root
from ricordo.runtime.validation import check_budget, check_limit, check_scope, check_seconds, check_type, short_repr
from ricordo.runtime.workspace import Dependencies
from ricordo.scope import Scope
from ricordo.search.contract import MEMORY_SORTS, Freshness, Moment, Query, parse_moment, parse_names
from ricordo.search.results import Answer, Explanation, Hit, SearchSource
from ricordo.storage.disk import Disk
from ricordo.stores.contract import LayeredMemory, RecordsUsage, build_preamble, record_shown
from ricordo.stores.root_reader import visible_entries
from ricordo.workspace.entry import Author, Entry
from ricordo.workspace.history.log import PERSON, HistoryItem, list_history
from ricordo.workspace.history.usage import MemoryUsage
from ricordo.workspace.layout import DEFAULT_AGENT, transcript_path
from ricordo.workspace.ledger import resolve_id
from ricordo.workspace.redaction import redact_for_display

if TYPE_CHECKING:
    from ricordo.context.memory_excerpt import MemoryCut
    from ricordo.context.preamble import Preamble
    from ricordo.curation import UserProfile
    from ricordo.jobs.runs import BackgroundRun
    from ricordo.runtime.ingestion import ForgetResult, IngestReport, RecordedSession
    from ricordo.search.recall import Reranker
    from ricordo.workspace import ChangeDiff, EraseResult
    from ricordo.workspace.history.checks import Check
    from ricordo.workspace.session_search import SessionInfo
    from ricordo.workspace.transcript import Transcript

__all__ = ["Memory", "MemoryBase", "read_preamble"]


class MemoryBase(ABC):
    """The methods of `Memory` with which a person inspects and governs the stored entries."""

    scope: Scope
    _settings: Settings | None

    async def forget(self, entry_id: str, *, reason: str = "") -> "ForgetResult":
        """Forget an entry and return it with the places that still contain its words; `undo` restores it.

        Raises `EntryNotFound`.
        """
        _require_text(entry_id, reason)
        with self._workspace.emitter.stage("forget", self.scope) as progress:
            progress.counts["entries"] = 1
            from ricordo.runtime.ingestion import ForgetResult

            gone = await self._layers.forget(entry_id, who="user", why=reason)
            return ForgetResult(entry=gone, remaining=tuple(await stores.remaining_in_layers(self._layers, gone)))

    async def erase(self, entry_id: str = "", *, text: str = "", inside_words: bool = False) -> "EraseResult":
        """Erase an entry, or every occurrence of `text`, from all files that this memory can see.

        The entry may already be forgotten. Its exact words are removed from memory, transcripts, states, history, trash
        and every other file below the root, together with the copies that `forget` finds; the index is rebuilt. This
        can't be undone. After an interruption, call it again to finish. Occurrences inside longer words are erased only
        with `inside_words`; otherwise the result names the files that contain them.

        Raises: EntryNotFound; InvalidEntry unless exactly one of `entry_id` and `text` is given, or if `text` has fewer
        than three letters or digits (two in Korean and in scripts without spaces); EraseIncomplete, which names the
        files that still contain some of it; StorageError.
        """
        with self._workspace.emitter.stage("forget", self.scope) as progress:
            done = await stores.erase_everywhere(self._layers, entry_id=entry_id, text=text, inside_words=inside_words)
            progress.counts.update(entries=len(done.ids))
            return done

    async def versions(self, entry_id: str) -> list[Entry]:
        """Return the current and earlier versions of an entry that history still holds, even if it is forgotten.

        Empty if history holds nothing of a forgotten entry. Raises: EntryNotFound.
        """
        redactor = self._workspace.memory_root.redactor
        _, found = await stores.find_versions(self._layers, entry_id)
        return [redact_for_display(entry, redactor) for entry in found]

    async def undo(self, change_id: str | None = None) -> HistoryItem:
        """Undo one change and return it; without an id, the newest change made by this scope's user.

        Without an id it considers what a person saved, marked, forgot or ingested, and consolidations that they
        started, for this root or for all of their projects. Entries saved by an agent, and anything learned or
        consolidated in the background, are undone only by id. Changes of another user can be undone only by that user.
        Raises: ChangeNotFound, UndoRefused.
        """
        _require_text(change_id or "")
        with self._workspace.emitter.stage("undo", self.scope):
            return await self._layers.undo(change_id, who="user")

    async def history(self, *, limit: int | None = None) -> list[HistoryItem]:
        """Return at most `limit` changes (all if None), newest first.

        Includes changes that other users made to shared project memory, with their `user`, but not changes in their
        private folders. Raises `InvalidQuery` if `limit` is below 1.
        """
        return await self._layers.history(limit=None if limit is None else check_limit(limit))

    async def diff(self, change_id: str | None = None) -> "ChangeDiff":
        """Return what one change did to each of its files, line by line; the newest change if no id is given.

        Raises: ChangeNotFound, also if history no longer holds the replaced content.
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
            item = curation.resolve_history_item([item for item, _ in items], change_id)
        place = next(place for each, place in items if each is item)
        return await workspace.diff_change(place.files, place.changes, item, redactor=place.redactor)

    async def background_runs(self, *, limit: int = 20) -> "list[BackgroundRun]":
        """Return at most `limit` background runs, newest first, each with its counts, its outcome and its cost.

        Finished runs are listed only for a while. Raises: InvalidQuery if `limit` is below 1; StorageError.
        """
        records = await self._workspace.inbox.jobs(limit=check_limit(limit))
        if not records:
            return []
        # a spending day follows the user's calendar, so it may have begun on the day before
        first = min(record.created for record in records) - timedelta(days=1)
        asked = await models.SpendingJournal(self._workspace.memory_root.files).read_since(first.date())
        return jobs.list_background_runs(records, asked)

    async def drain(self, *, seconds: float = 10.0) -> int:
        """Process waiting inbox jobs for at most `seconds` and return how many jobs are left.

        Jobs queued by this process, such as by `ingest`, run without waiting for a pause. With 0 seconds the jobs are
        only counted. A failed job stays in the inbox and is retried later; `background_runs` says why it failed.
        Raises: InvalidSetting if `seconds` is not a valid number.
        """
        if check_seconds(seconds) > 0:
            await self._workspace.worker.make_due()
        return await self._workspace.worker.drain_all(seconds=seconds)

    async def pin(self, entry_id: str, *, on: bool = True) -> Entry:
        """Pin an entry, or unpin it with `on=False`, and return the updated entry.

        A pinned entry appears in every preamble as far as the budget allows, loses no weight with age, and is never
        rewritten or retired by consolidation. Raises `EntryNotFound`.
        """
        _require_text(entry_id)
        return await self._layers.mark_entry(entry_id, "pin" if on else "unpin", who="user")

    async def confirm(self, entry_id: str) -> Entry:
        """Confirm that an entry is true: it becomes certain, and as fresh as if learned now. Raises `EntryNotFound`."""
        _require_text(entry_id)
        return await self._layers.mark_entry(entry_id, "confirm", who="user")

    async def mark_used(self, entry_id: str, *, how: str = "used") -> Entry:
        """Record that an entry was used, such as opened or acted on, and return it; `how` is one word.

        Use does not make an entry fresher; `confirm` does. Raises `EntryNotFound`.
        """
        _require_text(entry_id, how)
        entry = await self._layers.get(entry_id)
        notes = self._workspace.store.offers(RecordsUsage)
        if notes:
            notes.record_use("used", [entry.id], how=how, session=self.scope.session or "")
        return entry

    async def preamble_cut(self, budget: Tokens | None = None) -> "MemoryCut | None":
        """Return what the preamble leaves out of MEMORY.md and which bound was reached; None if nothing is left out.

        `budget` is the budget of the preamble, by default the setting `preamble_tokens`.
        """
        return (await read_preamble(self, budget)).cut

    async def usage(self, entry_id: str) -> MemoryUsage:
        """Return how often and when an entry was shown, used and confirmed; empty if usage is not recorded.

        Raises `EntryNotFound`.
        """
        _require_text(entry_id)
        entry = await self._layers.get(entry_id)
        notes = self._workspace.store.offers(RecordsUsage)
        return await notes.usage(entry.id) if notes else MemoryUsage()

    def profile(self, *, scope: Scope | None = None) -> "UserProfile":
        """Return the profile of the user and agent of `scope` to read or edit; by default this memory's scope.

        Raises: ScopeMismatch for the profile of another user or of another root.
        """
        opened = self._workspace
        wanted = self.scope if scope is None else check_scope(scope)
        if wanted.user != self.scope.user:
            raise ScopeMismatch(f"This memory is open for {self.scope}: it shows no profile of {wanted}.")
        config = self._settings.injection if self._settings else None
        return curation.UserProfile(opened.profiles.open_store(wanted), clock=opened.memory_root.clock, config=config)

    @property
    @abstractmethod
    def _workspace(self) -> Workspace: ...

    @property
    @abstractmethod
    def _layers(self) -> LayeredMemory: ...


def _require_text(*given: object) -> None:
    for each in given:
        check_type("An id, and a reason,", each, str, words="a text", error=InvalidQuery)


_MAX_OPEN_TRANSCRIPTS = 64
_CANDIDATES_PER_HIT = 4


class Memory(MemoryBase):
    """The open memory of one scope. Use `async with Memory.open(...) as memory`.

    `scope` says who the memory belongs to, and `root` is its directory. Entries saved with a user and a project (or
    team) are private to that user and lie in `folder`. Entries saved with only a project, by
    `scope=Scope(project=...)`, are shared by everyone who opens the root. Entries saved with `scope=Scope(user=...)`
    are visible in all projects of that user.
    """

    def __init__(
        self,
        workspace: Workspace,
        layers: LayeredMemory,
        *,
        settings: Settings | None = None,
        reranker: "Reranker | None" = None,
    ) -> None:
        """Store the open workspace and layers. Use `Memory.open` instead."""
        self._handles: tuple[Workspace, LayeredMemory] | None = workspace, layers
        self._settings = settings
        self._reranker = reranker
        self.scope = workspace.scope
        self.root = workspace.root
        self.folder = workspace.folder
        self._transcripts: dict[str, Transcript] = {}

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        root: str | Path | None = None,
        *,
        scope: Scope | None,
        on_event: EventSink | None = None,
        settings: Settings | None = None,
        trusted: bool = False,
        clock: Clock | None = None,
        disk: Disk | None = None,
        embedder: Embedder | str | None = None,
        reranker: "Reranker | str | None" = None,
        actor: str = "",
    ) -> AsyncIterator["Memory"]:
        """Open the memory of `scope` in the directory `root`, which is created if it does not exist.

        Without `root`, RICORDO_ROOT is used, else the nearest root at or above the working directory, else a new root
        at the top of the git work tree. `trusted` allows a root that was not created or trusted on this machine;
        without it such a root is refused before anything in it is read. Without `settings` they are loaded from
        config.toml and the environment. `on_event` receives events, which never hold content. `embedder` adds search by
        meaning: an `Embedder`, or a name as in the settings, such as `static` or `none`. `reranker`, an object or a
        name, reorders the best hits. `actor` is the user recorded for changes, and for `undo`, if the scope names no
        user. Raises: ScopeRequired; RootNotTrusted; InvalidScope if a part holds a secret; ScopeMismatch if the root
        belongs to another tenant or project; InvalidSetting, or DocumentInvalid for a damaged config.toml.
        """
        scope = check_scope(scope)
        check_type("root", root, str, Path, NoneType, words="a folder or None")
        check_type("settings", settings, Settings, NoneType, words="a value such as `Settings.load()` or None")
        for name, given, act in (("embedder", embedder, "embed"), ("reranker", reranker, "scores")):
            if given is not None and not isinstance(given, str) and not hasattr(given, act):
                raise InvalidSetting(f"{name} is a name, None, or what has the method {act}, not {short_repr(given)}.")
        if any(map(has_secret, scope.parts().values())):
            raise InvalidScope("A part of the scope holds a secret: it would be written as the name of a folder.")
        named = Path(root) if root is not None else None
        folder, held = await run_sync(partial(_locate_root, named, settings, trusted=trusted))
        parts = Dependencies.create(
            settings=held, clock=clock, disk=disk, sink=on_event, embedder=embedder, reranker=reranker, actor=actor
        )
        async with open_workspace(folder, scope, parts) as workspace:
            layers = workspace.store.offers(LayeredMemory)
            assert layers is not None
            memory = cls(workspace, layers, settings=held, reranker=workspace.reranker)
            try:
                yield memory
            finally:
                memory._handles = None

    async def remember(
        self,
        content: str,
        *,
        kind: str = "fact",
        tags: Iterable[str] = (),
        scope: Scope | None = None,
        reason: str | None = None,
        rule: str | None = None,
        by: Author = "user",
    ) -> Entry:
        """Save an entry and return it with its id; it is durable and searchable when this returns.

        A `scope` without the project, such as `Scope(user="me")`, makes the entry visible in all projects of that user
        and needs a `reason`. A session in it does not limit visibility; it is stored as the entry's `source.session`.

        With a `rule`, such as `deny shell(git push --force*)` or `ask write_file(src/*)`, an agent's tool calls are
        checked against it until the entry is forgotten. Only people may set a rule, and a rule can't permit anything.
        Raises: InvalidEntry, ScopeMismatch, ReasonRequired, StorageFull and its siblings.
        """
        if isinstance(tags, str) or not isinstance(tags, Iterable):
            raise InvalidEntry(f"The tags of an entry are several texts, such as [{tags!r}], not one.")
        if scope is not None:
            check_scope(scope)
        for name, value in (("reason", reason), ("rule", rule)):
            check_type(name, value, str, NoneType, words="a text or None", error=InvalidEntry)
        entry = Entry(content=content, kind=kind, tags=tuple(tags), scope=scope, reason=reason, rule=rule, by=by)
        return await self._workspace.store.save(entry)

    async def recall(
        self,
        query: str,
        *,
        limit: int = 5,
        kinds: Iterable[str] = (),
        tags: Iterable[str] = (),
        since: Moment | None = None,
        until: Moment | None = None,
        budget: Tokens | None = None,
        around: bool = False,
    ) -> list[Hit]:
        """Return at most `limit` entries, best first, each with its reason; the newest for an empty query.

        With a `budget` they have at most that many estimated tokens in total; an entry too long for the rest is
        skipped.

        The filters match entries of any of the `kinds`, with any of the `tags`, saved or said from `since` up to
        `until`. `kinds` and `tags` are one name or several; a time is a datetime with its offset, a day, or either as
        text such as `2026-11-22`. With `around` each hit includes what comes right before and after it. Raises:
        InvalidQuery for an invalid filter or if `limit` is below 1; InvalidSetting for an invalid budget.
        """
        most, room = check_limit(limit), check_budget(budget)
        asked = Query(
            text=query,
            kinds=parse_names("kinds", kinds),
            tags=parse_names("tags", tags),
            since=parse_moment("since", since),
            until=parse_moment("until", until),
            sorts=MEMORY_SORTS,
        )
        found = await self._workspace.store.recall(asked, most if room is None else _CANDIDATES_PER_HIT * most)
        hits = search.fit_budget(found, most, room)[0]
        hits = await search.attach_neighbours(await self._sources(), hits) if around else hits
        return self._note_shown(hits, "recall")

    async def search(self, query: str | Query, *, limit: int = 10, around: bool = False) -> list[Hit]:
        """Return at most `limit` hits from entries, session files, transcripts and evicted results.

        With `around` each hit includes what comes right before and after it, such as the neighbouring messages. Raises:
        InvalidQuery if `limit` is below 1.
        """
        with self._workspace.emitter.stage("recall", self.scope) as progress:
            asked = query if isinstance(query, Query) else Query(text=query)
            now = self._workspace.memory_root.clock.now()
            sources = await self._sources()
            hits = await search.search(sources, asked, limit=check_limit(limit), now=now, reranker=self._reranker)
            hits = await search.attach_neighbours(sources, hits) if around else hits
            progress.counts["entries"] = len(hits)
            return self._note_shown(hits, "search")

    async def explain(
        self,
        query: str | Query,
        *,
        limit: int = 5,
        rejected: int = 10,
        budget: Tokens | None = None,
        around: bool = False,
    ) -> Explanation:
        """Return the hits for `query` with the share of each signal, and the best rejected candidates with reasons.

        A text is searched in entries, as by `recall`; a `Query` in what its `sorts` name, by default everything. With a
        `budget` the hits have at most that many tokens in total; `around` works as in `recall`. Raises: InvalidQuery if
        `limit` is below 1.
        """
        with self._workspace.emitter.stage("recall", self.scope) as progress:
            asked = query if isinstance(query, Query) else Query(text=query, sorts=MEMORY_SORTS)
            now = self._workspace.memory_root.clock.now()
            sources = await self._sources()
            found = await search.explain(
                sources,
                asked,
                limit=check_limit(limit),
                rejected=check_limit(rejected, least=0),
                budget=check_budget(budget),
                now=now,
                reranker=self._reranker,
            )
            progress.counts["entries"] = len(found.hits)
            return replace(found, hits=tuple(await search.attach_neighbours(sources, found.hits))) if around else found

    async def answer(self, question: str) -> Answer:
        """Return the best hit quoted with its file and line, or "not in memory"; the text is never invented."""
        check_type("question", question, str, words="a text", error=InvalidQuery)
        with self._workspace.emitter.stage("answer", self.scope) as progress:
            now = self._workspace.memory_root.clock.now()
            found = await search.answer_question(await self._sources(), question, now=now)
            progress.counts["entries"] = int(found.found)
            self._note_shown([found.hit] if found.hit else [], "answer")
            return found

    async def preamble(self, budget: Tokens | None = None) -> str:
        """Return the fenced text for the system prompt, within `budget` tokens.

        None stands for the setting `preamble_tokens`, by default 4,000. A budget of 0 gives no preamble.
        """
        return (await read_preamble(self, budget)).text

    async def entries(self, *, as_of: Moment | None = None) -> list[Entry]:
        """Return all entries of the scope, newest first; with `as_of`, the entries as of that moment.

        Entries that were forgotten, merged or superseded since then are included as they were. Raises: InvalidQuery if
        `as_of` is not a moment; ChangeNotFound if history no longer holds the content replaced since then.
        """
        moment = parse_moment("as_of", as_of)
        if moment is None:
            return await self._layers.entries()
        places = await self._layers.places()
        then = [(place, await workspace.read_entries_as_of(place.files, place.changes, moment)) for place in places]
        return await run_sync(visible_entries, then)

    async def entry(self, entry_id: str, *, as_of: Moment | None = None) -> Entry:
        """Return an entry by its id, or by six or more leading or trailing characters of it.

        With `as_of` it is returned as of that moment. Raises: EntryNotFound, and what `entries` raises.
        """
        check_type("The id of a memory", entry_id, str, words="a text", error=InvalidQuery)
        if as_of is None:
            return await self._layers.get(entry_id)
        then = {entry.id: entry for entry in await self.entries(as_of=as_of)}
        return then[resolve_id([*then], entry_id)]

    async def ingest(
        self,
        messages: Iterable[Message],
        *,
        session: str,
        known: Mapping[str, int] | None = None,
        part_of: str = "",
    ) -> "IngestReport":
        """Record messages of a session and learn from them; messages already recorded are not added again.

        Give the whole conversation each time, or its end from any message on. Messages without ids are matched by
        content: two or more that the transcript ends with, or holds in that order, are already recorded; a single one
        only if the transcript holds nothing else. Instead, `known` counts, by fingerprint, the messages of the same
        conversation that were given before these.

        Rules learn immediately. What they learn is one change that one `undo` reverts, and is learned again if the
        messages are given again after that. `part_of` is the `change_id` of an earlier call to undo together with this
        one. If a model learns, the session is put into the inbox: this neither waits for the model nor raises its
        errors; `drain` waits for it. Raises: InvalidMessage; StorageError.
        """
        from ricordo.runtime.ingestion import ingest_messages

        given = list(messages) if isinstance(messages, Iterable) else [messages]
        check_type("session", session, str, words="the id of a session", error=InvalidMessage)
        check_type("part_of", part_of, str, words="the id of a change, or empty", error=InvalidMessage)
        check_type("known", known, Mapping, NoneType, words="counts by fingerprint, or None", error=InvalidMessage)
        if not all(isinstance(message, Message) for message in given):
            raise InvalidMessage("Messages are `Message` values: `ricordo.messages.formats.from_openai` makes them.")
        agent = self.scope.agent or DEFAULT_AGENT
        job = Job(kind="flush", agent=agent, session=session, user=self.scope.user or "")
        transcript = self._transcript(agent, session)
        return await ingest_messages(self._workspace, transcript, given, job, known=known, part_of=part_of, who=PERSON)

    async def sessions(self) -> "list[SessionInfo]":
        """Return the sessions that have a stored transcript, newest first."""
        return await workspace.list_sessions(self._workspace.memory_root.files, agent=self.scope.agent)

    async def session(self, session_id: str) -> "RecordedSession":
        """Return one session with its messages. Raises `SessionNotFound`."""
        from ricordo.runtime.ingestion import RecordedSession

        check_type("The id of a session", session_id, str, words="a text", error=InvalidQuery)
        files = self._workspace.memory_root.files
        info = await workspace.find_session(files, session_id, agent=self.scope.agent)
        logged = await workspace.read_transcript(files, info.path)
        messages = await run_sync(workspace.redact_messages, logged.messages, self._workspace.memory_root.redactor)
        return RecordedSession(info=info, messages=messages, lines=logged.lines, broken_lines=logged.broken)

    async def embed(self, *, seconds: float = 30.0) -> int:
        """Embed passages that have no vector, for at most `seconds`, and return how many still have none.

        Embedding also runs in the background; this waits for it. Without an embedder there is nothing to do.
        """
        check_seconds(seconds)
        return sum([await embed_root(place, seconds=seconds) for place in await self._layers.places()])

    async def doctor(self) -> "list[Check]":
        """Check every part of the visible memory and return the findings; this writes to nothing but the index.

        For wider places, such as shared project memory, only problems are returned, prefixed with the label of the
        place. Interrupted changes are never found, because opening the memory rolls them back.
        """
        from ricordo.runtime.doctor import check_memory

        bounds = self._settings.consolidation if self._settings else None
        return await check_memory(self._workspace, await self._layers.places(), consolidation=bounds)

    def freshness(self) -> Freshness:
        """Return how far the index follows the files, as of the last search or write.

        The state is `fresh`; `stale`, with the number of files that a search reads directly; `building`; or `broken`,
        where every search reads the files. `recall` finds every entry in each state. This does no I/O, and describes
        the narrowest root.
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

    async def _sources(self) -> list[SearchSource]:
        return [await place.source(self.scope) for place in await self._layers.places()]

    def _note_shown(self, hits: list[Hit], how: str) -> list[Hit]:
        """Record that these hits were shown, without waiting for it, and return them."""
        record_shown(self._workspace.store, hits, how=how, session=self.scope.session or "")
        return hits

    def _transcript(self, agent: str, session: str) -> "Transcript":
        place = self._workspace.memory_root
        path = transcript_path(agent, session)
        if path not in self._transcripts:
            while len(self._transcripts) >= _MAX_OPEN_TRANSCRIPTS:
                del self._transcripts[next(iter(self._transcripts))]
            self._transcripts[path] = workspace.Transcript(place.files, path, session=session, redactor=place.redactor)
        return self._transcripts[path]


def _locate_root(root: Path | None, settings: Settings | None, *, trusted: bool) -> tuple[Path, Settings]:
    """Return the directory of the root and its effective settings. It blocks on the disk."""
    named = root or (settings or Settings.from_environment()).root
    folder = named or default_root()
    if settings is None:
        return folder, Settings.load(folder, trusted=trusted)
    return folder, settings.with_trusted_root(folder) if trusted else settings


async def read_preamble(memory: MemoryBase, budget: Tokens | None = None) -> "Preamble":
    """Return what `Memory.preamble` returns as a text, with its items and the omitted part of MEMORY.md."""
    room = check_budget(budget)
    standard = Tokens(memory._settings.preamble_tokens) if memory._settings else None
    return await build_preamble(memory._workspace.store, room or standard)
