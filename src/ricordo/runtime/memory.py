"""Memory: remember, recall, answer, forget and undo, in a few lines of any agent."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import NoneType

from anyio.to_thread import run_sync

from ricordo.clock import Clock
from ricordo.context.memory_excerpt import MemoryCut
from ricordo.context.preamble import BuildsPreamble
from ricordo.curation.profile.user_profile import UserProfile
from ricordo.curation.undo import resolve_history_item
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
from ricordo.extraction.overdue import check_unlearned
from ricordo.guard import has_secret
from ricordo.jobs import Job
from ricordo.jobs.runs import BackgroundRun, list_background_runs
from ricordo.messages import Message
from ricordo.messages.tokens import Tokens
from ricordo.models import Embedder
from ricordo.models.spending import SpendingJournal
from ricordo.runtime import Settings, Workspace, open_workspace
from ricordo.runtime.doctor import Check, check_inbox, check_root
from ricordo.runtime.ingestion import ForgetResult, IngestReport, RecordedSession, ingest_messages
from ricordo.runtime.instructions_check import inspect_agents_file
from ricordo.runtime.models import embed_root
from ricordo.runtime.roots import default_root
from ricordo.runtime.user_migration import check_user_migration
from ricordo.runtime.validation import check_budget, check_limit, check_scope, check_seconds, check_type, short_repr
from ricordo.runtime.workspace import Dependencies
from ricordo.scope import Scope
from ricordo.search.answer import answer_question
from ricordo.search.contract import MEMORY_SORTS, Freshness, Moment, Query, parse_moment, parse_names
from ricordo.search.ranking import fit_budget
from ricordo.search.recall import Reranker, attach_neighbours, explain, search
from ricordo.search.results import Answer, Explanation, Hit, SearchSource
from ricordo.storage.disk import Disk
from ricordo.stores.contract import LayeredMemory, RecordsUsage, record_shown
from ricordo.stores.erase import erase_everywhere, find_versions
from ricordo.stores.remaining import remaining_in_layers
from ricordo.stores.root_reader import visible_entries
from ricordo.workspace.entry import Author, Entry
from ricordo.workspace.history.erase import EraseResult
from ricordo.workspace.history.log import PERSON, HistoryItem, list_history
from ricordo.workspace.history.usage import MemoryUsage
from ricordo.workspace.history.versions import ChangeDiff, diff_change, read_entries_as_of
from ricordo.workspace.layout import DEFAULT_AGENT, transcript_path
from ricordo.workspace.ledger import resolve_id
from ricordo.workspace.redaction import redact_for_display, redact_messages
from ricordo.workspace.session_search import SessionInfo, find_session, list_sessions
from ricordo.workspace.transcript import Transcript, read_transcript

__all__ = ["IngestReport", "Memory", "MemoryBase", "RecordedSession"]


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
        counted. A job that failed is left and tried again later; `background_runs` says why. Raises: InvalidSetting for
        no number of seconds.
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
        return await self._layers.mark_entry(entry_id, "pin" if on else "unpin", who="user")

    async def confirm(self, entry_id: str) -> Entry:
        """Say that a memory holds: it is sure, and as fresh as if it was learned now. Raises `EntryNotFound`."""
        _require_text(entry_id)
        return await self._layers.mark_entry(entry_id, "confirm", who="user")

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


_MAX_OPEN_TRANSCRIPTS = 64
_CANDIDATES_PER_HIT = 4


class Memory(MemoryBase):
    """The memory of one scope, open. Use `async with Memory.open(...) as memory`.

    `scope` says whose memory this is, `root` is the folder where it lies. What is saved with a user and a project, or
    a team, is that user's alone there, in `folder`; what is saved with a project alone, by `scope=Scope(project=...)`,
    is shared by all who open the root; and what is saved with `scope=Scope(user=...)` is found in all projects of that
    user.
    """

    def __init__(
        self,
        workspace: Workspace,
        layers: LayeredMemory,
        *,
        settings: Settings | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        """Use `Memory.open` instead."""
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
        reranker: Reranker | str | None = None,
        actor: str = "",
    ) -> AsyncIterator["Memory"]:
        """Open the memory of `scope` in the folder `root`, which is created when it does not exist.

        Without `root` it is the one of RICORDO_ROOT, else the nearest at or above the working directory, else a new one
        at the top of the git work tree. `trusted` vouches for a root that was not made or trusted on this machine,
        which is refused else, before anything of it is read. Without `settings` its config.toml and the environment say
        them. `on_event` hears what happens; it never sees content. `embedder` finds by meaning too: one of your own, or
        a name as in the settings, such as `static`, or `none`. `reranker` has a say in the order of the best hits; it
        may be a name too. `actor` is whose acts are recorded, and undone, where the scope names no user. Raises:
        ScopeRequired; RootNotTrusted; InvalidScope if a part holds a secret; ScopeMismatch if the root belongs to
        another tenant or project; InvalidSetting, or DocumentInvalid for a damaged config.toml.
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
        """Save a memory and return it with its id; it is durable, and found, when this returns.

        A `scope` without the project, such as `Scope(user="me")`, makes it visible in all of that user's projects
        and needs a `reason`. A session in it is no border: it is kept as the entry's `source.session`.

        With a `rule`, such as `deny shell(git push --force*)` or `ask write_file(src/*)`, an agent's tool calls are
        checked against it until the memory is forgotten; it is for people only, and permits nothing. Raises:
        InvalidEntry, ScopeMismatch, ReasonRequired, StorageFull and its siblings.
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
        """Return at most `limit` memories, best first, each with its reason; the newest for an empty query.

        With a `budget` they have at most so many tokens together, estimated: one too long for what is left is skipped.

        The filters take memories of any of the `kinds`, with any of the `tags`, saved or said from `since` up to
        `until`: one kind or several, a time with its offset, a day, or either as a text such as `2026-11-22`. With
        `around` a hit has what stands right before and after it. Raises: InvalidQuery for another filter, and if
        `limit` is below 1; InvalidSetting for another budget.
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
        hits = fit_budget(found, most, room)[0]
        return self._note_shown(await attach_neighbours(await self._sources(), hits) if around else hits, "recall")

    async def search(self, query: str | Query, *, limit: int = 10, around: bool = False) -> list[Hit]:
        """Return at most `limit` hits over everything: memories, session files, transcripts and evicted results.

        With `around` a hit has what stands right before and after it, such as the messages beside a message. Raises:
        InvalidQuery if `limit` is below 1.
        """
        with self._workspace.emitter.stage("recall", self.scope) as progress:
            asked = query if isinstance(query, Query) else Query(text=query)
            now = self._workspace.memory_root.clock.now()
            sources = await self._sources()
            hits = await search(sources, asked, limit=check_limit(limit), now=now, reranker=self._reranker)
            hits = await attach_neighbours(sources, hits) if around else hits
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
        """Return the hits for `query` with the share of each signal, and the best candidates that are none, and why.

        A text is looked for in memories, as by `recall`; a `Query` in what its `sorts` name, by default everything.
        With a `budget` the hits together have at most so many tokens; `around` is as in `recall`. Raises: InvalidQuery
        if `limit` is below 1.
        """
        with self._workspace.emitter.stage("recall", self.scope) as progress:
            asked = query if isinstance(query, Query) else Query(text=query, sorts=MEMORY_SORTS)
            now = self._workspace.memory_root.clock.now()
            sources = await self._sources()
            found = await explain(
                sources,
                asked,
                limit=check_limit(limit),
                rejected=check_limit(rejected, least=0),
                budget=check_budget(budget),
                now=now,
                reranker=self._reranker,
            )
            progress.counts["entries"] = len(found.hits)
            return replace(found, hits=tuple(await attach_neighbours(sources, found.hits))) if around else found

    async def answer(self, question: str) -> Answer:
        """Return the best hit quoted with its file and line, or "not in memory"; nothing is ever made up."""
        check_type("question", question, str, words="a text", error=InvalidQuery)
        with self._workspace.emitter.stage("answer", self.scope) as progress:
            found = await answer_question(await self._sources(), question, now=self._workspace.memory_root.clock.now())
            progress.counts["entries"] = int(found.found)
            self._note_shown([found.hit] if found.hit else [], "answer")
            return found

    async def preamble(self, budget: Tokens | None = None) -> str:
        """Return what belongs into the system prompt, fenced, within `budget` tokens.

        None stands for the setting `preamble_tokens`, which is 4,000 unless it is given; 0 of them is no preamble.
        """
        room = check_budget(budget)
        standard = Tokens(self._settings.preamble_tokens) if self._settings else None
        return await self._workspace.store.preamble(room or standard)

    async def entries(self, *, as_of: Moment | None = None) -> list[Entry]:
        """Return everything that is remembered in the scope, newest first; `as_of` a moment, what was then.

        What was forgotten, merged or superseded since is there as it was. Raises: InvalidQuery for what is no moment;
        ChangeNotFound when what was replaced since is not kept any more.
        """
        moment = parse_moment("as_of", as_of)
        if moment is None:
            return await self._layers.entries()
        places = await self._layers.places()
        then = [(place, await read_entries_as_of(place.files, place.changes, moment)) for place in places]
        return await run_sync(visible_entries, then)

    async def entry(self, entry_id: str, *, as_of: Moment | None = None) -> Entry:
        """Return one memory by its id, or six or more characters of its beginning or end; `as_of` a moment, as it was.

        Raises: EntryNotFound, and as `entries` does.
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
    ) -> IngestReport:
        """Record messages of a session and learn from them; what is there already is not added again.

        The whole conversation may be given each time, or its end from somewhere on. Messages without ids are told by
        what they say: two or more that the transcript ends with, or holds in that order, are there already, a single
        one only where it is all that there is. `known` counts instead, by fingerprint, the messages of the same
        conversation that were given before these.

        Rules learn at once. What they learn is one act, which one `undo` takes back, and is learned again when the
        messages are given again after that; `part_of` is the `change` of an earlier call that is undone together with
        this one. Where a model learns, the session is put into the inbox, no model is waited for and no error of one is
        raised: `drain` waits for it. Raises: InvalidMessage; StorageError.
        """
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

    async def sessions(self) -> list[SessionInfo]:
        """Return the sessions whose transcripts are kept, newest first."""
        return await list_sessions(self._workspace.memory_root.files, agent=self.scope.agent)

    async def session(self, session_id: str) -> RecordedSession:
        """Return one session with its messages. Raises `SessionNotFound`."""
        check_type("The id of a session", session_id, str, words="a text", error=InvalidQuery)
        files = self._workspace.memory_root.files
        info = await find_session(files, session_id, agent=self.scope.agent)
        logged = await read_transcript(files, info.path)
        messages = await run_sync(redact_messages, logged.messages, self._workspace.memory_root.redactor)
        return RecordedSession(info=info, messages=messages, lines=logged.lines, broken_lines=logged.broken)

    async def embed(self, *, seconds: float = 30.0) -> int:
        """Give what has no vector one, for at most `seconds`, and return how many passages have none then.

        It is done beside everything else anyway: this waits for it. Without an embedder there is nothing to do.
        """
        check_seconds(seconds)
        return sum([await embed_root(place, seconds=seconds) for place in await self._layers.places()])

    async def doctor(self) -> list[Check]:
        """Return what a look at every part of the visible places found; it writes to nothing but the index.

        Of the wider places, such as what the project shares, only what was found there is told, after their label.
        Opening has put back before what changes that were cut off had written, so none is found here.
        """
        places = await self._layers.places()
        bounds = self._settings.consolidation if self._settings else None
        own, *wider = [
            (place, await check_root(place.files, place.index, now=place.clock.now(), consolidation=bounds))
            for place in places
        ]
        found = [(place, check) for place, checks in wider for check in checks if check.count or not check.ok]
        told = [replace(check, detail=f"{place.label}: {check.detail}") for place, check in found]
        files = self._workspace.shared or self._workspace.memory_root.files
        users = await check_user_migration(files, self.folder.name if self.scope.user else "")
        inbox, flush = self._workspace.inbox, self._workspace.flush.config
        unlearned = [await check_unlearned(inbox, own[0].files)] if flush.is_enabled else []
        written = await inspect_agents_file(self._workspace.root.parent)
        return [*own[1], *written, await check_inbox(inbox), *unlearned, *([users] if users else []), *told]

    def freshness(self) -> Freshness:
        """Tell how far the index follows the files, as of the last search or write; each state is found by `recall`.

        `fresh`; `stale` by so many files, which a search reads as they are; `building`; or `broken`, when every search
        reads the files. It looks at nothing and waits for nothing, and is about the narrowest root.
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
        """Note that these are shown, which waits for nothing, and return them."""
        record_shown(self._workspace.store, hits, how=how, session=self.scope.session or "")
        return hits

    def _transcript(self, agent: str, session: str) -> Transcript:
        place = self._workspace.memory_root
        path = transcript_path(agent, session)
        if path not in self._transcripts:
            while len(self._transcripts) >= _MAX_OPEN_TRANSCRIPTS:
                del self._transcripts[next(iter(self._transcripts))]
            self._transcripts[path] = Transcript(place.files, path, session=session, redactor=place.redactor)
        return self._transcripts[path]


def _locate_root(root: Path | None, settings: Settings | None, *, trusted: bool) -> tuple[Path, Settings]:
    """Return the folder of the root, and the settings that hold in it. It blocks on the disk."""
    named = root or (settings or Settings.from_environment()).root
    folder = named or default_root()
    if settings is None:
        return folder, Settings.load(folder, trusted=trusted)
    return folder, settings.with_trusted_root(folder) if trusted else settings
