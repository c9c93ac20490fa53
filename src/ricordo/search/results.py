"""The results of recall: hits with their locations and reasons, explanations, and quoted answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from ricordo.guard import Trust
from ricordo.search.contract import Chunk, Match, SearchIndex
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.tombstones import ForgottenStatements
from ricordo.workspace.layout import AGENT_NOTES, LARGE_RESULTS, SESSIONS, WORKSPACE

__all__ = ["TOOL_SPEAKER", "Answer", "Explanation", "Hit", "Neighbour", "Passage", "RejectedHit", "SearchSource"]


TOOL_SPEAKER = "tool"
"""The speaker of tool output."""
_ASSISTANT_SPEAKER = "assistant"
_TOOL_RESULT_FOLDER = f"{LARGE_RESULTS}/"
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
        if not self.forgotten or chunk.sort not in _RECORDED_SORTS:
            return False
        return (chunk.session, chunk.message) in self.forgotten.messages or self.forgotten.contains(chunk.content)


@dataclass(frozen=True, kw_only=True)
class Passage:
    """One match of one source, as input of the ranking; `source_rank` is 0 for the narrowest source."""

    label: str
    source_rank: int
    match: Match


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """The text right before or after a hit: its beginning on one line, and the speaker if it is a message."""

    text: str
    speaker: str = ""
    line_number: int = 0


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A memory that was recalled, or a passage of a transcript or other document in the form of one.

    `score` is in 0..1, higher is better, and comparable between calls. `why` explains it in words, `signals` in
    numbers. The entry of a transcript passage has the kind `message`, that of any other passage the kind `passage`.
    Lines count from 1. `superseded_by` is the id of the entry that replaced this one, empty while it is current.
    `contradicts` are the ids of memories that conflict with it while the conflict is open. `shares` are the amounts
    that each signal adds to the score (negative ones reduce it); their sum is the score.

    `heading` is the heading above the hit in its document. `before` and `after` are its neighbours, None where there is
    none or where they were not requested: the messages next to a message, the text under the same heading of a topic,
    the entries of the same session in a ledger.
    """

    entry: Entry
    score: float
    why: str
    path: str
    line_number: int
    end_line: int
    source: str = ""
    speaker: str = ""
    words: tuple[str, ...] = ()
    superseded_by: str = ""
    contradicts: tuple[str, ...] = ()
    signals: Mapping[str, float] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
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

    `text` is for people: the quote with its file and line, then the memories that contradict it and those that it
    superseded, or "not in memory". External content, such as tool output or its repetition by an assistant, is never an
    answer; if nothing else fits, `unconfirmed` holds at most one such hit. `contradicting` are hits that conflict with
    the quoted one while the conflict is open. `superseded` are former statements that the quoted one replaced, newest
    first. `others` are the next best hits, best first, also if nothing was found.
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
