"""Memory: remember, recall, answer, forget and undo, in a few lines of anybody's agent."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import NoneType

from anyio.to_thread import run_sync

from ricordo.audit import resolve_id
from ricordo.audit.as_of import read_entries_as_of
from ricordo.audit.doctor import Check, check_root, check_inbox
from ricordo.audit.history import PERSON
from ricordo.clock import Clock
from ricordo.errors import InvalidEntry, InvalidMessage, InvalidQuery, InvalidScope, InvalidSetting, MemoryClosed
from ricordo.events import EventSink
from ricordo.files.disk import Disk
from ricordo.guard import has_secret
from ricordo.index.contract import MEMORY_SORTS, Freshness, Query
from ricordo.index.filters import Moment, parse_moment, parse_names
from ricordo.maintenance.brought_over import check_user_migration
from ricordo.maintenance.overdue import check_unlearned
from ricordo.memory.by_hand import MemoryBase
from ricordo.memory.ingesting import ingest_messages
from ricordo.memory.results import IngestReport, RecordedSession
from ricordo.messages import Message
from ricordo.models import Embedder
from ricordo.queue import Job
from ricordo.recall.answer import answer_question
from ricordo.recall.beside import attach_neighbours
from ricordo.recall.hits import Answer, Explanation, Hit, SearchSource
from ricordo.recall.packing import fit_budget
from ricordo.recall.recall import explain, search
from ricordo.recall.reranking import Reranker
from ricordo.runtime import Settings, Workspace, open_workspace
from ricordo.runtime.assembly import Dependencies
from ricordo.runtime.given import check_budget, check_limit, check_type, check_scope, check_seconds, short_repr
from ricordo.runtime.instructions import inspect_agents_file
from ricordo.runtime.roots import default_root
from ricordo.runtime.serving import embed_root
from ricordo.scopes import Scope
from ricordo.sessions import SessionInfo, find_session, list_sessions
from ricordo.stores.capabilities import LayeredMemory
from ricordo.stores.layered_reading import visible_entries
from ricordo.stores.noting import record_shown
from ricordo.tokens import Tokens
from ricordo.workspace.entry import Author, Entry
from ricordo.workspace.layout import DEFAULT_AGENT, transcript_path
from ricordo.workspace.redaction import redact_messages
from ricordo.workspace.transcript import Transcript, read_transcript

__all__ = ["Memory"]

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
            text=query, kinds=parse_names("kinds", kinds), tags=parse_names("tags", tags), since=parse_moment("since", since),
            until=parse_moment("until", until), sorts=MEMORY_SORTS,
        )  # fmt: skip
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
                sources, asked, limit=check_limit(limit), rejected=check_limit(rejected, least=0), budget=check_budget(budget),
                now=now, reranker=self._reranker,
            )  # fmt: skip
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
            raise InvalidMessage("Messages are `Message` values: `ricordo.messages.dialects.from_openai` makes them.")
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
