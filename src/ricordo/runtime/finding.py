"""Finding in an open memory: recall, search, explanation and answer over all visible places."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from ricordo import curation, search, stores
from ricordo.context.config import PREAMBLE_BUDGET
from ricordo.context.preamble import Preamble, PreambleItem, SavedEntry, ShownEntry, compose_preamble
from ricordo.errors import DocumentInvalid, ScopeMismatch, StorageError
from ricordo.guard import Trust
from ricordo.lazy import dataclass
from ricordo.messages.tokens import Tokens, estimate_text
from ricordo.runtime import Settings
from ricordo.runtime.models import embed_new_passages
from ricordo.runtime.validation import check_budget
from ricordo.runtime.workspace import Workspace
from ricordo.scope import Scope
from ricordo.search.contract import MEMORY_DOCUMENT_TYPES, Answer, Explanation, Hit, Query, SearchSource
from ricordo.stores.contract import EntryPage, LayeredMemory, build_preamble, record_shown
from ricordo.stores.root_reader import skip_to
from ricordo.workspace.entry import Entry, EntryFilter
from ricordo.workspace.layout import is_profile, profile_path_for

if TYPE_CHECKING:
    from ricordo.curation import UserProfile

__all__ = [
    "Finder",
    "compose_past_preamble",
    "find_candidates",
    "list_entries",
    "open_profile",
    "read_entry_page",
    "read_preamble",
    "record_given",
]


_CANDIDATES_PER_HIT = 4
_EMBEDDING_SECONDS = 0.5
_PROFILE_SHARE = 2


def compose_past_preamble(entries: Iterable[Entry], budget: Tokens | None) -> str:
    """Return the fenced preamble of entries of the past, in their order; None stands for the default budget."""
    return compose_preamble((), [SavedEntry(entry=entry, source="memory") for entry in entries], budget).text


def open_profile(workspace: Workspace, scope: Scope, settings: Settings | None) -> "UserProfile":
    """Return the profile of the user and agent of `scope`. Raises: ScopeMismatch for that of another user."""
    if scope.user != workspace.scope.user:
        raise ScopeMismatch(f"This memory is open for {workspace.scope}: it shows no profile of {scope}.")
    store = workspace.profiles.open_store(scope)
    config = settings.injection if settings else None
    return curation.UserProfile(store, clock=workspace.memory_root.clock, config=config)


@dataclass(frozen=True, kw_only=True)
class Finder:
    """Searches the visible places of an open memory, and records what was shown."""

    workspace: Workspace
    layers: LayeredMemory

    async def recall(
        self, text: str, wanted: EntryFilter, *, limit: int, budget: Tokens | None, around: bool, said: bool
    ) -> list[Hit]:
        """Return at most `limit` wanted entries for a text, best first, within the `budget`.

        With `said`, statements of sessions that match nearer are among them.
        """
        await self._embed_new()
        query = Query(
            text=text,
            kinds=wanted.kinds,
            tags=wanted.tags,
            document_types=MEMORY_DOCUMENT_TYPES,
            since=wanted.since,
            until=wanted.until,
            # what was said has no metadata
            said=said and not wanted.metadata,
        )
        max_candidates = limit if budget is None else _CANDIDATES_PER_HIT * limit
        candidates = await self.workspace.store.recall(query, max_candidates)
        entry_filter = EntryFilter(metadata=wanted.metadata)
        matching = [hit for hit in candidates if entry_filter.matches(hit.entry)] if wanted.metadata else candidates
        # the index knows no metadata, so more is read until there are enough hits, or no further ones
        while len(matching) < limit and len(candidates) == max_candidates:
            max_candidates *= _CANDIDATES_PER_HIT
            candidates = await self.workspace.store.recall(query, max_candidates)
            matching = [hit for hit in candidates if entry_filter.matches(hit.entry)]
        hits = search.fit_budget(matching, limit, budget)[0]
        return self._record(await search.attach_neighbours(await self._sources(), hits) if around else hits, "recall")

    async def _add_statements(self, memories: Sequence[Hit], query: Query, limit: int) -> list[Hit]:
        now = self.workspace.memory_root.clock.now()
        return await search.add_statements(
            await self._sources(), memories, query,
            limit=limit, now=now, config=self.workspace.memory_root.recall, reranker=self.workspace.reranker,
        )  # fmt: skip

    async def recall_past(
        self, text: str, wanted: EntryFilter, moment: datetime, *, limit: int, budget: Tokens | None, said: bool
    ) -> list[Hit]:
        """Return what is found today among wanted entries of the past, in their state of then.

        Those that held come first. With `said`, statements of sessions until then are among them.
        """
        past_entries = await list_entries(self.layers, wanted, limit=None, after=None, moment=moment)
        by_id = {entry.id: entry for entry in past_entries}
        request, most = (
            Query(text=text, document_types=MEMORY_DOCUMENT_TYPES),
            max(limit, _CANDIDATES_PER_HIT * len(by_id)),
        )
        found = await self.explain(request, limit=most, rejected=most, budget=None, around=False)
        # a fact of the profile says the same as the entry of a ledger that it stands for
        superseded = (each.hit for each in found.rejected if each.reason == "superseded" or is_profile(each.hit.path))
        hits = {hit.entry.id: hit for hit in sorted([*superseded, *found.hits], key=lambda hit: hit.score)}
        past_hits = [
            replace(
                hit,
                entry=by_id[name],
                superseded_by=by_id[name].superseded_by if by_id[name].state == "superseded" else "",
            )
            for name, hit in hits.items()
            if name in by_id
        ]
        later = {entry.superseded_by for entry in past_entries if entry.state == "active"}
        in_order = sorted(past_hits, key=lambda hit: (hit.entry.state != "active", hit.entry.id in later, -hit.score))
        if said and not wanted.metadata:
            until = moment if wanted.until is None else min(moment, wanted.until)
            query = replace(request, kinds=wanted.kinds, tags=wanted.tags, since=wanted.since, until=until)
            in_order = await self._add_statements(in_order, query, limit)
        return self._record(search.fit_budget(in_order, limit, budget)[0], "recall")

    async def search(self, query: Query, *, limit: int, around: bool) -> list[Hit]:
        """Return at most `limit` hits in what the sorts of `query` name, best first."""
        with self.workspace.emitter.stage("recall", self.workspace.scope) as progress:
            await self._embed_new()
            now = self.workspace.memory_root.clock.now()
            sources = await self._sources()
            hits = await search.search(
                sources, query,
                limit=limit, now=now, config=self.workspace.memory_root.recall, reranker=self.workspace.reranker,
            )  # fmt: skip
            hits = await search.attach_neighbours(sources, hits) if around else hits
            progress.counts["entries"] = len(hits)
            return self._record(hits, "search")

    async def explain(
        self, query: Query, *, limit: int, rejected: int, budget: Tokens | None, around: bool, said: bool = False
    ) -> Explanation:
        """Return the hits for `query` with their signals, and at most `rejected` candidates with reasons.

        With `said`, statements of sessions that match nearer are among the hits.
        """
        with self.workspace.emitter.stage("recall", self.workspace.scope) as progress:
            await self._embed_new()
            now = self.workspace.memory_root.clock.now()
            sources = await self._sources()
            most = _CANDIDATES_PER_HIT * limit if said and budget else limit
            explanation = await search.explain(
                sources, query, limit=most, rejected=rejected, budget=None if said else budget, now=now,
                config=self.workspace.memory_root.recall, reranker=self.workspace.reranker,
            )  # fmt: skip
            if said:
                hits = await self._add_statements(explanation.hits, query, limit)
                explanation = search.choose_hits(explanation, hits, limit=limit, rejected=rejected, budget=budget)
            progress.counts["entries"] = len(explanation.hits)
            return (
                replace(explanation, hits=tuple(await search.attach_neighbours(sources, explanation.hits)))
                if around
                else explanation
            )

    async def answer(self, question: str, moment: datetime | None) -> Answer:
        """Return the best hit quoted, as of `moment` or as of now, or "not in memory"."""
        with self.workspace.emitter.stage("answer", self.workspace.scope) as progress:
            past = None if moment is None else {each.id: each for each in await self.layers.entries_as_of(moment)}
            await self._embed_new()
            now = moment or self.workspace.memory_root.clock.now()
            config = self.workspace.memory_root.recall
            answer = await search.answer_question(await self._sources(), question, now=now, config=config, past=past)
            progress.counts["entries"] = int(answer.found)
            # what is quoted is used, and what is named beside it is only shown
            quoted = [answer.hit, *answer.further] if answer.hit else []
            session = self.workspace.scope.session or ""
            record_shown(self.workspace.store, quoted, how="answer", session=session, act="used")
            self._record([*answer.contradicting, *answer.superseded], "answer")
            return answer

    async def _embed_new(self) -> None:
        if self.workspace.embeds_new:
            await embed_new_passages(await self.layers.known_places(), seconds=_EMBEDDING_SECONDS)

    async def _sources(self) -> list[SearchSource]:
        return [await place.source(self.workspace.scope) for place in await self.layers.places()]

    def note_read(self, entries: list[Entry], *, how: str) -> list[Entry]:
        """Record that these entries were listed or opened, if what is read is recorded, and return them."""
        _note_read(self.workspace, entries, how)
        return entries

    def _record(self, hits: list[Hit], purpose: str) -> list[Hit]:
        """Record that these hits were shown, without waiting for it, and return them."""
        record_shown(self.workspace.store, hits, how=purpose, session=self.workspace.scope.session or "")
        return hits


async def list_entries(
    layers: LayeredMemory, wanted: EntryFilter, *, limit: int | None, after: Entry | str | None, moment: datetime | None
) -> list[Entry]:
    """Return at most `limit` entries that match, newest first, those after `after`, as of `moment` or as of now."""
    if limit is not None and moment is None and wanted == EntryFilter():
        return [*(await layers.entry_page(limit, after)).entries]
    entries = await (layers.entries() if moment is None else layers.entries_as_of(moment))
    rest = entries if after is None else skip_to(entries, after)
    return [entry for entry in rest if wanted.matches(entry)][:limit]


class _OpenMemory(Protocol):
    """The part of an open `Memory` that lists entries."""

    @property
    def _layers(self) -> LayeredMemory: ...


class _MemoryWithProfile(Protocol):
    """The parts of an open `Memory` that a prompt shows."""

    _settings: Settings | None

    @property
    def _workspace(self) -> Workspace: ...

    def profile(self) -> "UserProfile": ...


async def read_preamble(memory: _MemoryWithProfile, budget: Tokens | None = None, *, how: str = "") -> Preamble:
    """Return the profile and the preamble of a memory as one preamble: its text, its items, and what is omitted.

    With `how`, one word, it is recorded that it was read.

    The profile takes at most half of the budget; without the setting `injection` it is left out.
    """
    settings, root = memory._settings, memory._workspace.memory_root
    total = check_budget(budget) or (Tokens(settings.preamble_tokens) if settings else PREAMBLE_BUDGET)
    text, shown_ids = "", tuple[str, ...]()
    path = profile_path_for(root.scope, memory._workspace.scope) if root.includes_profile else ""
    is_shown = total.count > 1 and (settings is None or settings.injection is not None)
    if is_shown and path and await root.files.info(path):
        with suppress(ScopeMismatch, DocumentInvalid, StorageError):
            profile = await memory.profile().render(budget=Tokens(total.count // _PROFILE_SHARE))
            text, shown_ids = root.redactor.clean(profile.text), profile.shown
    rest = Tokens(max(total.count - estimate_text(text), 0)) if text else total
    preamble = await build_preamble(memory._workspace.store, rest)
    if text:
        preamble = _prepend_profile(preamble, text, shown_ids)
    if how:
        _note_read(memory._workspace, preamble, how)
    return preamble


def _note_read(workspace: Workspace, read: Preamble | Iterable[Entry], how: str) -> None:
    log = workspace.memory_root.audit
    if log and log.records_reads and (auditor := workspace.store.offers(stores.Audits)):
        auditor.record_read(read, how=how)


def _prepend_profile(preamble: Preamble, text: str, shown_ids: Iterable[str]) -> Preamble:
    entries = tuple(ShownEntry(id=name) for name in shown_ids)
    item = PreambleItem(text=text, source="profile.json", trust=Trust.AGENT, entries=entries)
    return replace(preamble, text="\n\n".join(filter(None, (text, preamble.text))), items=(item, *preamble.items))


async def read_entry_page(memory: _OpenMemory, limit: int) -> EntryPage:
    """Return the newest `limit` entries of a memory, and the ids of all."""
    return await memory._layers.entry_page(limit)


async def find_candidates(memory: _MemoryWithProfile, text: str, limit: int) -> list[Hit]:
    """Return at most `limit` entries for a text, best first, of which none counts as shown yet."""
    return await memory._workspace.store.recall(text, limit)


def record_given(memory: _MemoryWithProfile, hits: Sequence[Hit], *, session: str) -> None:
    """Record that a hook gave these entries to a session."""
    record_shown(memory._workspace.store, hits, how="hook", session=session)
