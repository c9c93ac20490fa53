"""Recall: searches every visible workspace and ranks the results together.

An optional reranker has a deadline and can't fail a search. A source that can't be searched does not fail the others.
The module also attaches neighbours to hits and selects the hits that are relevant to a session's first message.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import repeat
from typing import TYPE_CHECKING, cast

import anyio

from ricordo.concurrency import compute
from ricordo.errors import InvalidQuery, StorageError
from ricordo.lazy import copy_with, dataclass, lazy_compile
from ricordo.messages.tokens import Tokens, safe_boundary
from ricordo.search.config import DEFAULT_RECALL, RecallConfig
from ricordo.search.contract import (
    MEMORY_DOCUMENT_TYPES,
    CandidateIndex,
    CandidateRequest,
    Candidates,
    Chunk,
    CuratedMatches,
    DocumentType,
    Explanation,
    Hit,
    Neighbour,
    Passage,
    Query,
    Reranker,
    SearchSource,
    SourceContext,
)
from ricordo.search.documents import CURATED_QUERY, MAX_CURATED, QueryWords, own_terms, query_words
from ricordo.search.query_context import PassageLocation, parse_question, passage_location
from ricordo.search.ranking import RANK_FACTOR, rank, rank_subset
from ricordo.search.ranking import explain as explained
from ricordo.search.supersession import CuratedMemory
from ricordo.workspace.entry import Entry
from ricordo.workspace.layout import ledger_date

if TYPE_CHECKING:
    from ricordo.search.retrieval import ChunkNeighbours

__all__ = [
    "MAX_NEIGHBOUR_CHARS",
    "FoundPassages",
    "RerankResult",
    "attach_neighbours",
    "explain",
    "find_passages",
    "informative_heading",
    "memory_query",
    "prepare_query",
    "rank_found",
    "recall_memories",
    "rerank_passages",
    "search",
    "search_words",
    "select_best",
    "select_relevant",
]


_MAX_RERANK_CHARS = 2_000


@dataclass(frozen=True, kw_only=True)
class RerankResult:
    """The scores of a reranker by passage location; `error` is the reason why there are none, empty if there are."""

    scores: Mapping[PassageLocation, float] = field(default_factory=dict)
    error: str = ""


async def rerank_passages(
    reranker: Reranker, query: str, passages: Mapping[PassageLocation, Passage], *, seconds: float
) -> RerankResult:
    """Return the reranker's scores of the first 2,000 characters of each passage; an empty result if it fails."""
    if not passages or seconds <= 0:
        return RerankResult()
    texts = [passage.match.content[:_MAX_RERANK_CHARS] for passage in passages.values()]
    given: Sequence[float] = ()
    with anyio.move_on_after(seconds) as deadline:
        try:
            given = tuple(float(score) for score in await reranker.scores(query, texts))
        except Exception as error:  # noqa: BLE001  (a plug-in of somebody else may raise anything, and stops nothing)
            return RerankResult(error=f"it failed: {type(error).__name__}")
    if deadline.cancelled_caught:
        return RerankResult(error=f"it did not answer within {seconds:g} s")
    if len(given) != len(texts) or not all(math.isfinite(score) and 0 <= score <= 1 for score in given):
        return RerankResult(error="it did not give a score in 0..1 for each text")
    return RerankResult(scores=dict(zip(passages, given, strict=True)))


_DUPLICATE_RESERVE = 8
_RECORDED_TYPES = frozenset[DocumentType]({"transcript", "result"})
_AT_ONCE = 200
"""The ranking of so many passages takes some milliseconds at most."""


@dataclass(frozen=True, kw_only=True)
class FoundPassages:
    """The passages of all sources for a request, and all of their curated memory if it is needed to rank them.

    `contexts` are those of the sources whose passages were not all read, by label. `best` is the highest score that a
    passage can have, `unseen` the highest of those that were not read, None if all were. `tool_sessions` are by label.
    """

    passages: list[Passage]
    curated: CuratedMemory
    contexts: Mapping[str, SourceContext]
    best: float
    unseen: float | None
    tool_sessions: Mapping[str, frozenset[str] | None]


async def recall_memories(
    sources: Sequence[SearchSource],
    query: Query | str,
    *,
    limit: int = 10,
    budget: Tokens | None = None,
    now: datetime | None = None,
    config: RecallConfig | None = None,
    reranker: Reranker | None = None,
) -> list[Hit]:
    """Return at most `limit` memories for `query`, best first; empty if nothing in memory is related to it.

    A text searches memory documents only, not transcripts. A `Query` names its sorts, by default all. `sources` are
    ordered narrowest first. `now` (aware, by default the system's time) is the time from which ages are measured. With
    a `budget`, the estimated tokens of all hits together stay within it; a hit that is too long for the rest of the
    budget is skipped. A `reranker` takes part if it answers in time.

    Raises: `InvalidQuery` if `limit` is below 1, `StorageError` if no source can be searched.
    """
    asked = memory_query(query)
    return await search(
        sources, asked, limit=limit, budget=budget, now=now, config=config, reranker=reranker
    )  # fmt: skip


async def search(
    sources: Sequence[SearchSource],
    query: Query | str,
    *,
    limit: int = 10,
    budget: Tokens | None = None,
    now: datetime | None = None,
    config: RecallConfig | None = None,
    reranker: Reranker | None = None,
) -> list[Hit]:
    """Return at most `limit` hits from all documents, including transcripts.

    Everything else is as in `recall_memories`.
    """
    asked, weights, moment = prepare_query(query, limit), config or DEFAULT_RECALL, now or datetime.now(UTC)
    if reranker is None and asked.text.strip():
        request = select_best(asked, limit, moment, weights, alone=len(sources) == 1)
        (some,) = await find_passages(sources, [request])
        return await rank_found(sources, asked, some, limit=limit, budget=budget, now=moment, config=weights)
    (found,) = await find_passages(sources, [CandidateRequest(query=asked, limit=max(limit, weights.candidates))])
    reranked = await _rerank(found, asked, moment, weights, reranker) if reranker else None
    ranking = partial(
        rank, found.passages, parse_question(asked.text), limit=limit, now=moment, config=weights,
        curated=found.curated, query=asked, budget=budget, reranked=reranked.scores if reranked else None,
    )  # fmt: skip
    return await compute(ranking, size=len(found.passages), at_once=_AT_ONCE)


def select_best(query: Query, limit: int, now: datetime, config: RecallConfig, *, alone: bool) -> CandidateRequest:
    """Return the request for the passages that may be among the `limit` best hits; `alone` if it is the only source."""
    # numpy is loaded by the first search, not by importing this module
    from ricordo.search.pruning import CandidateSelector

    selector = CandidateSelector(
        question=parse_question(query.text), now=now, config=config, alone=alone,
        min_count=RANK_FACTOR * limit + _DUPLICATE_RESERVE,
    )  # fmt: skip
    return CandidateRequest(query=query, limit=max(limit, config.candidates), select=selector)


async def rank_found(
    sources: Sequence[SearchSource],
    query: Query,
    found: FoundPassages,
    *,
    limit: int,
    now: datetime,
    config: RecallConfig,
    budget: Tokens | None = None,
) -> list[Hit]:
    """Return at most `limit` hits for a query from the passages that were found; if they don't suffice, from all."""
    question = parse_question(query.text)
    ranking = partial(
        rank_subset, found.passages, question, limit=limit, now=now, config=config, curated=found.curated,
        query=query, budget=budget, contexts=found.contexts, unseen=found.unseen,
    )  # fmt: skip
    hits = await compute(ranking, size=len(found.passages), at_once=_AT_ONCE)
    if hits is not None:
        return hits
    (every,) = await find_passages(sources, [CandidateRequest(query=query, limit=max(limit, config.candidates))])
    ranking_all = partial(
        rank, every.passages, question, limit=limit, now=now, config=config, curated=every.curated, query=query,
        budget=budget,
    )  # fmt: skip
    return await compute(ranking_all, size=len(every.passages), at_once=_AT_ONCE)


async def explain(
    sources: Sequence[SearchSource],
    query: Query | str,
    *,
    limit: int = 10,
    rejected: int = 10,
    budget: Tokens | None = None,
    now: datetime | None = None,
    config: RecallConfig | None = None,
    reranker: Reranker | None = None,
) -> Explanation:
    """Return the hits of `search`, and at most `rejected` of the best other candidates with the reason.

    A text searches all documents; a `Query` with `sorts=MEMORY_DOCUMENT_TYPES` returns what `recall_memories` returns.
    """
    asked, weights, moment = prepare_query(query, limit), config or DEFAULT_RECALL, now or datetime.now(UTC)
    (found,) = await find_passages(sources, [CandidateRequest(query=asked, limit=max(limit, weights.candidates))])
    question = parse_question(asked.text)
    reranked = await _rerank(found, asked, moment, weights, reranker) if reranker else None
    explaining = partial(
        explained, found.passages, question, limit=limit, now=moment, config=weights, curated=found.curated,
        query=asked, budget=budget, reranked=reranked.scores if reranked else None, rejected=max(rejected, 0),
    )  # fmt: skip
    explanation = await compute(explaining, size=len(found.passages), at_once=_AT_ONCE)
    return replace(explanation, reranker_error=reranked.error) if reranked and reranked.error else explanation


def memory_query(query: Query | str) -> Query:
    """Return the query; a text searches memory documents only."""
    return Query(text=query, document_types=MEMORY_DOCUMENT_TYPES) if isinstance(query, str) else query


def prepare_query(query: Query | str, limit: int) -> Query:
    """Return the query as the sources are searched for it. Raises: InvalidQuery if `limit` is below 1."""
    if limit < 1:
        raise InvalidQuery(f"A search returns at least one hit: the limit can't be {limit}.")
    asked = Query(text=query) if isinstance(query, str) else query
    return copy_with(asked, neighbours=True, said=False, except_session="")


async def find_passages(sources: Sequence[SearchSource], requests: Sequence[CandidateRequest]) -> list[FoundPassages]:
    """Return what all sources have for each request. Raises: the last StorageError if none of them can be searched."""
    found: list[tuple[int, SearchSource, list[Candidates]]] = []
    trouble: StorageError | None = None
    for nearness, source in enumerate(sources):
        try:
            found.append((nearness, source, await _find_candidates(source, requests)))
        except StorageError as error:
            trouble = error
    if trouble is not None and not found:
        raise trouble
    return [_join([(*each[:2], each[2][at]) for each in found]) for at in range(len(requests))]


def _join(found: Sequence[tuple[int, SearchSource, Candidates]]) -> FoundPassages:
    """Return the candidates of several sources together."""
    passages: list[Passage] = []
    curated: list[tuple[CuratedMatches, str, int]] = []
    for nearness, source, each in found:
        label, scores, may_hide = source.label, each.scores or repeat(None), bool(source.forgotten)
        passages += [
            Passage(label, nearness, match, score)
            for match, score in zip(each.matches, scores, strict=False)
            if not (may_hide and source.hides(match.chunk))
        ]
        if each.curated.matches:
            curated.append((each.curated, source.label, nearness))
    return FoundPassages(
        passages=passages, curated=_curated_memory(tuple(curated)),
        contexts={source.label: each.context for _, source, each in found if each.context is not None},
        best=max((each.best for _, _, each in found), default=0.0),
        unseen=max((each.unseen for _, _, each in found if each.unseen is not None), default=None),
        tool_sessions={source.label: each.tool_sessions for _, source, each in found},
    )  # fmt: skip


async def _find_candidates(source: SearchSource, requests: Sequence[CandidateRequest]) -> list[Candidates]:
    requests = [_request_for(source, each) for each in requests]
    index = source.index
    if _finds_candidates(type(index)):
        return await cast("CandidateIndex", index).find_candidates(requests, beside=source.beside)
    found = [Candidates(matches=await index.search(each.query, each.limit)) for each in requests]
    return [replace(each, curated=await _load_curated(source)) if each.matches else each for each in found]


@lru_cache(maxsize=16)
def _finds_candidates(kind: type) -> bool:
    """Return whether indexes of this type return candidates; the check of a protocol is slow."""
    return issubclass(kind, CandidateIndex)


def _request_for(source: SearchSource, request: CandidateRequest) -> CandidateRequest:
    """Return the request with the profile of a source."""
    # what is hidden must not count for its session, so all has to be read
    hides = source.forgotten and not _RECORDED_TYPES.isdisjoint(request.query.document_types)
    query = copy_with(request.query, profile=source.profile) if source.profile else request.query
    return CandidateRequest(query=query, limit=request.limit, select=None if hides else request.select)


@lru_cache(maxsize=4)
def _curated_memory(curated: tuple[tuple[CuratedMatches, str, int], ...]) -> CuratedMemory:
    """Return the curated memory of the sources; the same object for the same memory."""
    return CuratedMemory(
        tuple(
            Passage(label=label, source_rank=nearness, match=match)
            for held, label, nearness in curated
            for match in held.matches
        )
    )


async def _rerank(
    found: FoundPassages, query: Query, now: datetime, config: RecallConfig, reranker: Reranker
) -> RerankResult:
    """Return the reranker's scores of the passages that rank best without it."""
    if not query.text.strip():
        return RerankResult()
    by_place = {passage_location(passage): passage for passage in found.passages}
    question = parse_question(query.text)
    ranking = partial(rank, found.passages, question, limit=config.reranked, now=now, config=config, query=query)
    best = await compute(ranking, size=len(found.passages), at_once=_AT_ONCE)
    places = {(hit.source, hit.path, hit.line_number) for hit in best}
    offered = {place: passage for place, passage in by_place.items() if place[:3] in places}
    return await rerank_passages(reranker, query.text, offered, seconds=config.rerank_seconds)


async def _load_curated(source: SearchSource) -> CuratedMatches:
    """Return curated memory; empty if it can't be read, which does not affect the hits."""
    try:
        return CuratedMatches(tuple(await source.index.search(CURATED_QUERY, MAX_CURATED)))
    except StorageError:
        return CuratedMatches()


_NON_WORD = lazy_compile(r"[\W_]+")
MAX_NEIGHBOUR_CHARS = 160
"""The maximum number of characters shown of a neighbour."""


async def attach_neighbours(sources: Sequence[SearchSource], hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits in their order, each with the text right before and after it.

    Neighbours are the messages before and after a message, the adjacent pieces of a long text, the text under the same
    heading of a topic, and the entries of the same session in a ledger.
    """
    from ricordo.search.retrieval import ChunkLocation, NeighbourIndex

    results = list(hits)
    for source in sources:
        places = [at for at, hit in enumerate(results) if hit.source == source.label and hit.path]
        if not places or not isinstance(source.index, NeighbourIndex):
            continue
        try:
            found = (results[at] for at in places)
            spots = [
                ChunkLocation(path=hit.path, line_number=hit.line_number, content=hit.entry.content) for hit in found
            ]
            neighbours = await source.index.beside(spots)
        except StorageError:
            # neighbours are optional: return the hits without them
            continue
        for at, one in zip(places, neighbours, strict=True):
            if one is not None:
                results[at] = _with_neighbours(results[at], one, source)
    return results


def informative_heading(hit: Hit) -> str:
    """Return the heading of a hit, empty if it says no more than the file name."""
    name = hit.path.rpartition("/")[2].rpartition(".")[0]
    if ledger_date(hit.path) or _normalize_name(hit.heading) == _normalize_name(name):
        return ""
    return hit.heading


def _normalize_name(name: str) -> str:
    return _NON_WORD.sub(" ", name.casefold()).strip()


def _with_neighbours(hit: Hit, neighbours: "ChunkNeighbours", source: SearchSource) -> Hit:
    return replace(hit, before=_neighbour(neighbours.before, source), after=_neighbour(neighbours.after, source))


def _neighbour(chunk: Chunk | None, source: SearchSource) -> Neighbour | None:
    if chunk is None or source.hides(chunk):
        return None
    text = " ".join(chunk.content.split())
    if len(text) > MAX_NEIGHBOUR_CHARS:
        text = f"{text[: safe_boundary(text, MAX_NEIGHBOUR_CHARS)].rstrip()}…"
    return Neighbour(text=text, speaker=chunk.speaker, line_number=chunk.line_number)


_MAX_SEARCH_WORDS = 8
_MIN_STEM_CHARS = 4
_FEW, _MANY = 3.0, 16.0


def search_words(text: str) -> tuple[str, ...]:
    """Return the words to search for: the first eight informative words, each also in its shortest form.

    Empty for a text without such words, such as a greeting.
    """
    words = query_words(text)
    distinctive = [
        (word, group) for word, group, share in zip(words.words, words.groups, words.weights, strict=True) if share == 1
    ]
    forms: dict[str, None] = {}
    for word, group in distinctive[:_MAX_SEARCH_WORDS]:
        forms[word] = None
        stem = min(sorted(group), key=len)
        if len(stem) >= _MIN_STEM_CHARS and word.startswith(stem):
            forms[stem] = None
    return tuple(forms)


def select_relevant(text: str, hits: Iterable[Hit], limit: int, *, extracted: bool = False) -> list[Hit]:
    """Return at most `limit` of the hits that are relevant to `text`, those with most of its words first.

    Among equals the earlier hit comes first. Superseded entries are left out, and so are extracted entries that nobody
    has curated, unless `extracted` is set; otherwise only a search finds these.
    """
    words = query_words(text)
    least = _min_matched_weight(sum(words.weights))
    showable = {
        (hit.entry.id or hit.entry.content, hit.path): hit for hit in hits if _is_showable(hit, extracted=extracted)
    }
    weighted = [(_matched_weight(words, hit.entry), hit) for hit in _unique_by_content(showable.values())]
    chosen = sorted((row for row in weighted if row[0] >= least), key=lambda row: -row[0])
    return [hit for _, hit in chosen[:limit]]


def _min_matched_weight(total_weight: float) -> float:
    """Return the minimum weight of shared words for a text whose words have the total weight `total_weight`."""
    return 1.0 if total_weight < _FEW else 2.0 if total_weight <= _MANY else 3.0


def _is_showable(hit: Hit, *, extracted: bool) -> bool:
    entry = hit.entry
    holds = entry.state == "active" and not hit.superseded_by
    return holds and (extracted or not (entry.by == "flush" and ledger_date(hit.path) is not None))


def _unique_by_content(hits: Iterable[Hit]) -> list[Hit]:
    """Return the hits without those that repeat the content of an earlier one."""
    return list({hit.entry.content: hit for hit in reversed(list(hits))}.values())[::-1]


def _matched_weight(words: QueryWords, entry: Entry) -> float:
    terms = frozenset(own_terms(_as_chunk(entry)))
    return sum(share for group, share in zip(words.groups, words.weights, strict=True) if group & terms)


def _as_chunk(entry: Entry) -> Chunk:
    return Chunk(path="", line_number=1, end_line=1, content=entry.content, document_type="note", tags=entry.tags)
