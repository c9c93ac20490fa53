"""Queries, chunks, matches, the protocols of a search index, and the results of recall.

A document is a file of the workspace. It is split into chunks, and each chunk has its line numbers. The files are the
source of truth: a search first indexes the files that changed, and reads directly those that it could not index.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from ricordo.errors import InvalidQuery
from ricordo.guard import Trust
from ricordo.lazy import dataclass
from ricordo.storage.contract import AppendedRange, FileInfo
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.tombstones import ForgottenStatements
from ricordo.workspace.layout import AGENT_NOTES, LARGE_RESULTS, SESSIONS, WORKSPACE

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "ALL_DOCUMENT_TYPES",
    "MEMORY_DOCUMENT_TYPES",
    "NO_TIME",
    "RANKING_FIELD_MARKERS",
    "SUPERSEDES_MARKER",
    "TOOL_SPEAKER",
    "Answer",
    "Array",
    "CandidateColumns",
    "CandidateIndex",
    "CandidateRequest",
    "Candidates",
    "Chunk",
    "CuratedMatches",
    "DocumentType",
    "Explanation",
    "Freshness",
    "Hit",
    "KnowsDocuments",
    "Match",
    "Moment",
    "Neighbour",
    "Passage",
    "Query",
    "RejectedHit",
    "Reranker",
    "SearchIndex",
    "SearchSource",
    "Selection",
    "SourceContext",
    "SyncReport",
    "parse_moment",
    "parse_names",
]


Array: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[Any]]"
Moment: TypeAlias = datetime | date | str
"""A datetime with an offset, a date, or an ISO 8601 text of either. Dates and texts without an offset are in local
time."""


def parse_names(name: str, value: object) -> tuple[str, ...]:
    """Return texts as a tuple, and a single text as a tuple of one. Raises: InvalidQuery for anything else."""
    several = [value] if isinstance(value, str) else value
    if isinstance(several, Iterable):
        found = tuple(several)
        if all(isinstance(each, str) and each.strip() for each in found):
            return found
    raise InvalidQuery(
        f"{name} is a text, or several in a list, such as {_EXAMPLES.get(name, ['a'])!r}, not {value!r}."
    )


def parse_moment(name: str, value: object) -> datetime | None:
    """Return `value` as an aware datetime, or None. Raises: InvalidQuery if it is invalid or a naive datetime."""
    if value is None:
        return None
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InvalidQuery(f"{name} is a moment with an offset, such as {value.isoformat()}+00:00.")
        return value
    try:
        if isinstance(value, date):
            return datetime.combine(value, time.min).astimezone()
        if isinstance(value, str):
            found = datetime.fromisoformat(value.strip())
            return found if found.tzinfo else found.astimezone()
    except (ValueError, OverflowError, OSError):
        pass
    raise InvalidQuery(f"{name} is a moment, such as 2026-11-22 or 2026-11-22T08:00:00+00:00, not {value!r}.")


_EXAMPLES: dict[str, Sequence[str]] = {
    "kinds": ["decision"],
    "tags": ["tooling"],
    "document_types": ["curated", "ledger"],
}


DocumentType: TypeAlias = Literal["curated", "ledger", "long", "session", "transcript", "result", "note", "profile"]
"""The type of a document: curated memory and topics, daily logs (also archived ones), entries in files of their own,
session files, transcripts, evicted tool results, other Markdown files, and profiles."""
ALL_DOCUMENT_TYPES: tuple[DocumentType, ...] = (
    "curated",
    "ledger",
    "long",
    "session",
    "transcript",
    "result",
    "note",
    "profile",
)
"""All types of documents."""
MEMORY_DOCUMENT_TYPES: tuple[DocumentType, ...] = ("curated", "ledger", "long", "session", "note", "profile")
"""The types that hold memories: all except raw transcripts and evicted tool results."""
NO_TIME = -(2**63)
"""The time in milliseconds of what has no time."""
SUPERSEDES_MARKER = "[supersedes:: "
"""The text that the markup of an entry contains if the entry supersedes another one."""
RANKING_FIELD_MARKERS = ("[confidence:: ", "[confirmed:: ", "[merged:: ", "[pinned:: ", "[since:: ")
"""The texts that the markup of an entry contains if the ranking has to read the markup, not only the chunk's fields."""


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A part of a document that is found as a unit: an entry, a paragraph, a message, or a piece of a long text.

    Lines count from 1, `end_line` is inclusive. `content` is the text that a person reads. `markup` is the bullet of an
    entry as written in its file; for a profile fact it is the equivalent bullet, for other chunks it is empty. `before`
    and `after` are neighbouring text that helps to find the chunk and is not stored with it. `part` numbers the pieces
    of one long text from 0.
    """

    path: str
    line_number: int
    end_line: int
    content: str
    document_type: DocumentType
    part: int = 0
    markup: str = ""
    heading: str = ""
    entry_id: str = ""
    kind: str = ""
    tags: tuple[str, ...] = ()
    time: datetime | None = None
    session: str = ""
    message: str = ""
    speaker: str = ""
    before: str = ""
    after: str = ""


@dataclass(frozen=True, kw_only=True)
class Query:
    """A search query. Empty filters match everything; `text` is plain words, not a query language.

    `since` is inclusive, `until` is exclusive; a chunk without a time matches neither. `path` is a path prefix. An
    empty text finds the newest chunks that match the filters. With `neighbours`, a chunk is also found by the words of
    its neighbouring messages or paragraphs, and ranks after the chunks that contain the words.

    With `said`, a store with sessions also finds statements of sessions that match nearer than memories, except those
    of `except_session`.

    `profile` is the path of the only profile whose facts are searched; if it is empty, no profile is, whatever the
    sorts. Other profiles are not found and do not affect any score.
    """

    text: str
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    session: str = ""
    path: str = ""
    document_types: tuple[DocumentType, ...] = ALL_DOCUMENT_TYPES
    neighbours: bool = False
    profile: str = ""
    said: bool = False
    except_session: str = ""

    def __post_init__(self) -> None:
        """Convert single names to tuples and moments to datetimes. Raises: InvalidQuery for invalid values."""
        for name in ("text", "session", "path", "profile", "except_session"):
            if not isinstance(getattr(self, name), str):
                raise InvalidQuery(f"{name} of a query is a text, not {getattr(self, name)!r}.")
        for name in ("kinds", "tags", "document_types"):
            if type(getattr(self, name)) is not tuple or "" in getattr(self, name):
                object.__setattr__(self, name, parse_names(name, getattr(self, name)))
        if unknown := {*self.document_types}.difference(ALL_DOCUMENT_TYPES):
            raise InvalidQuery(
                f"document types are {', '.join(ALL_DOCUMENT_TYPES)}, not {', '.join(sorted(map(repr, unknown)))}."
            )
        for name in ("since", "until"):
            object.__setattr__(self, name, parse_moment(name, getattr(self, name)))


@dataclass(frozen=True, kw_only=True)
class Match:
    """One chunk that was found.

    `rank` counts from 1, the best. `score` is the chunk's BM25 score as a share of the maximum for this query, in 0..1;
    higher is better. `matched_words` are the query words that the chunk contains, `missing_words` those that no
    document of the index contains in any form, without generic words. `signals` holds the components of the score and
    further signals for recall, each in 0..1: `bm25` (the chunk alone), `context` (with its neighbours), `coverage` (the
    weighted share of the query's words in the chunk), `reach` (the same with its neighbours), `missing_words` (the
    weighted share of the absent words). With an embedder, chunks that have a vector also have `dense` and
    `dense_context` (semantic similarity, alone and with neighbours). These then count in `score`, and `matched_words`
    may be empty.
    """

    path: str
    line_number: int
    end_line: int
    content: str
    rank: int
    score: float
    chunk: Chunk
    matched_words: tuple[str, ...] = ()
    missing_words: tuple[str, ...] = ()
    signals: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class CandidateColumns:
    """The candidates of a search as arrays, so that a ranking can decide which of their texts are worth reading.

    `signals` are those of `Match`; `dense` and `dense_context` are 0 where `has_vector` is false. `shape` is that of
    `documents.chunk_shape`, `length` the number of characters, `time` in milliseconds and `NO_TIME` where it is not
    known or does not count. `entry` is a digest of the id, 0 for none. `kind`, `session`, `speaker` and `document` are
    numbers: `name` returns what a number of a column stands for, the path of a document, and `code` the number of a
    name, -1 for an unknown one. `is_fixed` marks the candidates that have to be read in any case. `find_words` returns
    a mask by word of the query and candidate.
    """

    signals: Mapping[str, Array]
    has_vector: "Array | None"
    shape: Array
    length: Array
    document: Array
    line: Array
    time: Array
    entry: Array
    kind: Array
    session: Array
    speaker: Array
    is_curated: Array
    is_fixed: Array
    name: Callable[[str, int], str]
    code: Callable[[str, str], int]
    find_words: Callable[[], Array]

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.shape)


@dataclass(frozen=True, kw_only=True)
class SourceContext:
    """What a ranking has to know of all candidates of a source, also of those that are not read.

    `speakers` are all speakers of messages. `sessions` has the nearness of each session, or else file, and the share of
    the question's words in it. `questions` has, by path and line, the nearness and the speaker of each message that
    ends with a question.
    """

    speakers: frozenset[str] = frozenset()
    sessions: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    questions: Mapping[tuple[str, int], tuple[float, str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Selection:
    """The places of the candidates to read, and the context of all.

    `scores` are those of the places whose texts do not change them, NaN for others. `best` is the highest score that a
    candidate can have, `unseen` the highest of those that are not read, None if all are read.
    """

    places: Array
    scores: Array
    context: SourceContext
    best: float
    unseen: float | None = None


@dataclass(frozen=True, eq=False)
class CuratedMatches:
    """All of curated memory, newest first. The same object stands for the same memory."""

    matches: tuple[Match, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The matches of a search and what is needed to rank them.

    `scores`, `context`, `best` and `unseen` are those of the selection, if there was one; a score is None if the
    ranking has to read the text for it. `curated` is all of curated memory if an entry was found. `tool_sessions` are
    the sessions with output of tools if messages were searched, None if they are not known.
    """

    matches: Sequence[Match]
    scores: Sequence[float | None] = ()
    context: SourceContext | None = None
    best: float = 1.0
    unseen: float | None = None
    tool_sessions: frozenset[str] | None = None
    curated: CuratedMatches = field(default_factory=CuratedMatches)


@dataclass(frozen=True, kw_only=True)
class Freshness:
    """How far the index is behind the files. A search always answers; it reads the files directly where it has to.

    `not_embedded` counts the chunks that have no vector yet; they are found by their words. `embedding_error` describes
    an embedding failure, empty if there is none.
    """

    state: Literal["fresh", "stale", "building", "broken"]
    stale_files: int = 0
    reason: str = ""
    not_embedded: int = 0
    embedding_error: str = ""

    def __str__(self) -> str:
        """Describe the state in words, and how searches are answered meanwhile."""
        files = f"{self.stale_files:,} {'file is' if self.stale_files == 1 else 'files are'}"
        read = f"{files} not taken in yet; searches read the files meanwhile" if self.stale_files else ""
        if self.state == "broken":
            read = f"{self.reason}; searches read the files"
        return f"{self.state}: {read}" if read else self.state


@dataclass(frozen=True, kw_only=True)
class SyncReport:
    """The documents that a refresh changed.

    `failed` documents keep their old rows. `quarantined` is the new name of a damaged index file that was moved aside.
    """

    indexed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    unchanged: int = 0
    quarantined: str = ""


class SearchIndex(Protocol):
    """Search over one workspace."""

    async def search(self, query: Query | str, limit: int = 10) -> list[Match]:
        """Return at most `limit` matches, best first; empty only if no document contains a word of the query.

        Changes in the files since the last call are found, even if the index can't be used.
        """
        ...

    async def refresh(self) -> SyncReport:
        """Index all changes of the workspace and remove deleted documents."""
        ...

    async def append(self, path: str, data: bytes, *, header: bytes = b"") -> AppendedRange:
        """Append to a file as `FileStore.append` does, durably; the next search finds the data."""
        ...

    async def index_appended(self, path: str, offset: int, data: bytes) -> None:
        """Index the block `data` that was just appended to `path` at `offset`, so that the next search finds it."""
        ...

    def freshness(self) -> Freshness:
        """Return how far the index is behind the files, as of the last search, refresh or append."""
        ...

    async def close(self) -> None:
        """Close the index. Changes that are not indexed yet are indexed after it is opened again."""
        ...


class Reranker(Protocol):
    """Scores how well texts answer a query."""

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a score in 0..1 for each text, in the order of the texts; higher is better.

        The call is cancelled at its deadline, so it must not block the event loop: run a model in a thread.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class CandidateRequest:
    """A search for at most `limit` candidates; `select` chooses those to read, without it all are read."""

    query: Query
    limit: int
    select: Callable[[CandidateColumns], Selection] | None = None


@runtime_checkable
class CandidateIndex(Protocol):
    """An optional capability of an index: return candidates for ranking in one step, without those that can't win."""

    async def find_candidates(
        self, requests: Sequence[CandidateRequest], *, beside: Callable[[], object] | None = None
    ) -> list[Candidates]:
        """Return the matches of `search` for each request, or only those that it selects.

        The queries have the same text and profile. `beside` is called in the thread that reads the index, if the index
        is read at once; it may be called more than once.
        """
        ...


@runtime_checkable
class KnowsDocuments(Protocol):
    """An optional capability of an index: tell without reading which files the last search or refresh listed."""

    def may_hold(self, document_type: DocumentType) -> bool:
        """Return whether there may be documents of this type."""
        ...

    def file_info(self, path: str) -> FileInfo | None:
        """Return the metadata of a file, None if there is none."""
        ...


TOOL_SPEAKER = "tool"
"""The speaker of tool output."""
_ASSISTANT_SPEAKER = "assistant"
_TOOL_RESULT_FOLDER = f"{LARGE_RESULTS}/"
_FORMER = ("Superseded: ", "Maybe outdated: ")
_AGENT_FOLDERS = (f"{WORKSPACE}/{AGENT_NOTES}/", f"{WORKSPACE}/plans/", f"{SESSIONS}/")
"""Folders of files that agents write."""
_RECORDED_SORTS = frozenset({"transcript", "result"})


@dataclass(frozen=True, kw_only=True)
class SearchSource:
    """A workspace to search: its index and the label of its hits, such as `project`.

    `profile` is the path of the only profile whose facts may be found, empty for none. Messages and tool results that
    contain `forgotten` statements are skipped. `beside` is called in the thread that reads the index; an index that is
    not read at once does not call it.
    """

    label: str
    index: SearchIndex
    forgotten: ForgottenStatements = field(default_factory=ForgottenStatements)
    profile: str = ""
    beside: Callable[[], object] | None = None

    def hides(self, chunk: Chunk) -> bool:
        """Return whether a chunk of a transcript or tool result contains a forgotten statement."""
        if not self.forgotten or chunk.document_type not in _RECORDED_SORTS:
            return False
        return (chunk.session, chunk.message) in self.forgotten.messages or self.forgotten.contains(chunk.content)


@dataclass(frozen=True)
class Passage:
    """One match of one source, as input of the ranking; `source_rank` is 0 for the narrowest source.

    `score` is its score if that is known, None if it has to be computed.
    """

    label: str
    source_rank: int
    match: Match
    score: float | None = None


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """The text right before or after a hit: its beginning on one line, and the speaker if it is a message."""

    text: str
    speaker: str = ""
    line_number: int = 0


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A memory that was recalled, or a passage of a transcript or other document in the form of one.

    `score` is in 0..1, higher is better, and comparable between calls. `explanation` explains it in words, `signals` in
    numbers. The entry of a transcript passage has the kind `message`, that of any other passage the kind `passage`.
    Lines count from 1. `superseded_by` is the id of the entry that replaced this one, empty while it is current.
    `contradicts` are the ids of memories that conflict with it while the conflict is open. `score_parts` are the
    amounts that each signal adds to the score (negative ones reduce it); their sum is the score.

    `heading` is the heading above the hit in its document. `before` and `after` are its neighbours, None where there is
    none or where they were not requested: the messages next to a message, the text under the same heading of a topic,
    the entries of the same session in a ledger.
    """

    entry: Entry
    score: float
    explanation: str
    path: str
    line_number: int
    end_line: int
    source: str = ""
    speaker: str = ""
    matched_words: tuple[str, ...] = ()
    superseded_by: str = ""
    contradicts: tuple[str, ...] = ()
    signals: Mapping[str, float] = field(default_factory=dict)
    score_parts: Mapping[str, float] = field(default_factory=dict)
    heading: str = ""
    before: Neighbour | None = None
    after: Neighbour | None = None

    @property
    def trust(self) -> Trust:
        """The trust level of the hit. Tool output counts as external, what an assistant said as the agent's."""
        if (
            self.speaker == TOOL_SPEAKER
            or self.path.startswith(_TOOL_RESULT_FOLDER)
            or self.entry.trust is Trust.EXTERNAL
        ):
            return Trust.EXTERNAL
        return Trust.AGENT if self.speaker == _ASSISTANT_SPEAKER or self.is_in_agent_file else self.entry.trust

    @property
    def is_said(self) -> bool:
        """Whether it is a message of a session: something that its `speaker` said, and no memory to forget by an id."""
        return self.entry.kind == "message" and bool(self.speaker)

    @property
    def is_in_agent_file(self) -> bool:
        """Whether the hit is in a file that agents write: a note, a plan, or a session file."""
        return self.path.startswith(_AGENT_FOLDERS)

    @property
    def date(self) -> datetime | None:
        """When it was said or became true, else when it was saved; None if unknown."""
        return self.entry.since or self.entry.time


@dataclass(frozen=True, kw_only=True)
class RejectedHit:
    """A candidate that was not returned, and the reason.

    It is a `duplicate` of a hit, was `superseded` by another memory, ranked below the `limit`, or exceeded the
    `budget`. `replacement` is the location of the hit or memory that replaces it, as `path:line`; empty if there is
    none.
    """

    hit: Hit
    reason: Literal["duplicate", "superseded", "limit", "budget"]
    replacement: str = ""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The returned hits and the best rejected ones, each best first, and the number of all `candidates`.

    `reranker_error` is the reason why the reranker was not used, if there is one.
    """

    hits: tuple[Hit, ...]
    rejected: tuple[RejectedHit, ...] = ()
    candidates: int = 0
    reranker_error: str = ""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to a question: a quoted hit, or the statement that it is not in memory.

    `text` is for people: the `quotes` with their files and lines, or "not in memory". External content, such as tool
    output, and its repetition by an assistant are never an answer; if nothing else fits, `unconfirmed` holds at most
    one such hit. `further` are up to two passages that answer nearly as well and say something else. `contradicting`
    are hits that conflict with the quoted one while the conflict is open. `superseded` is what the quoted hit replaced
    or may have made outdated, newest first. `others` are the next best hits, best first, also if nothing was found.
    """

    found: bool
    text: str
    hit: Hit | None = None
    path: str = ""
    line_number: int = 0
    score: float = 0.0
    superseded: tuple[Hit, ...] = ()
    contradicting: tuple[Hit, ...] = ()
    others: tuple[Hit, ...] = ()
    unconfirmed: tuple[Hit, ...] = ()
    further: tuple[Hit, ...] = ()

    @property
    def quotes(self) -> tuple[tuple[str, Hit], ...]:
        """The hits that `text` quotes, in its order, each with its label, which is empty for the answer itself."""
        own = (self.hit,) if self.hit else ()
        rows = [("", own), ("Also: ", self.further), ("Contradicts, not decided: ", self.contradicting)]
        rows += [(_FORMER[bool(hit.entry.maybe_outdated_by)], (hit,)) for hit in self.superseded]
        return tuple((label, hit) for label, hits in rows for hit in hits)
