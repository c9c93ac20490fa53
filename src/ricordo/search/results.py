"""The results of recall: hits that name their place and reasons, explanations, and quoted answers."""

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
"""The speaker of what tools printed."""
_ASSISTANT_SPEAKER = "assistant"
_TOOL_RESULT_FOLDER = f"{LARGE_RESULTS}/"
_AGENT_FOLDERS = (f"{WORKSPACE}/{AGENT_NOTES}/", f"{WORKSPACE}/plans/", f"{SESSIONS}/")
"""Folders of what agents write."""
_RECORDED_SORTS = frozenset({"transcript", "result"})


@dataclass(frozen=True, kw_only=True)
class SearchSource:
    """A visible workspace: the label that hits from it carry, such as `project`, and its index.

    `profile` is the path of the one profile whose facts may be found, empty for none. Messages and tool results that
    say what was `forgotten` are passed over. `beside` is what else is to be done in the thread in which the index is
    read; an index that is not read at once leaves it out.
    """

    label: str
    index: SearchIndex
    forgotten: ForgottenStatements = field(default_factory=ForgottenStatements)
    profile: str = ""
    beside: Callable[[], object] | None = None

    def hides(self, chunk: Chunk) -> bool:
        """Tell whether a passage was said, or returned by a tool, and says what was forgotten."""
        if not self.forgotten or chunk.sort not in _RECORDED_SORTS:
            return False
        return (chunk.session, chunk.message) in self.forgotten.messages or self.forgotten.contains(chunk.content)


@dataclass(frozen=True, kw_only=True)
class Passage:
    """One match of one source, as ranking sees it; `source_rank` is 0 for the narrowest source."""

    label: str
    source_rank: int
    match: Match


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """What stands right before or after a hit: its beginning on one line, and of a message who said it."""

    text: str
    speaker: str = ""
    line_number: int = 0


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A memory that was recalled, or a passage of a transcript or other document shown as one.

    `score` is in 0..1, higher is better, and comparable between calls. `why` says it in words; `signals` in numbers.
    The entry of a transcript passage has the kind `message`, of any other passage the kind `passage`. Lines count
    from 1. `superseded_by` is the id of the entry that took the place of this one, empty while it holds; `contradicts`
    are the ids of memories that can't hold beside it, while nothing says which does. `shares` are what each signal
    adds to the score, and take from it below 0; their sum is the score.

    `heading` is what it stands under in its document. `before` and `after` are what is told right beside it, None where
    nothing is, or where it was not asked for: the messages next to a message, what has the same heading of a topic,
    what a ledger holds of the same session.
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
        """Who stands behind it; what a tool printed is from outside, and what an assistant said is the agent's."""
        if (
            self.speaker == TOOL_SPEAKER
            or self.path.startswith(_TOOL_RESULT_FOLDER)
            or self.entry.trust is Trust.EXTERNAL
        ):
            return Trust.EXTERNAL
        return Trust.AGENT if self.speaker == _ASSISTANT_SPEAKER or self.is_in_agent_file else self.entry.trust

    @property
    def is_in_agent_file(self) -> bool:
        """Whether it stands in a file that agents write: a note, a plan, or what a session was about."""
        return self.path.startswith(_AGENT_FOLDERS)

    @property
    def date(self) -> datetime | None:
        """When it was said or became true, else when it was saved; None where that is not known."""
        return self.entry.since or self.entry.time


@dataclass(frozen=True, kw_only=True)
class RejectedHit:
    """A candidate that was not returned, and the reason.

    It is a `duplicate` of a hit, was `superseded` by another memory, came below the `limit`, or was over the `budget`.
    `replacement` is the place of the hit or memory that stands for it, as `path:line`; empty where none does.
    """

    hit: Hit
    reason: Literal["duplicate", "superseded", "limit", "budget"]
    replacement: str = ""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What was returned, best first, and the best of what was not, best first; `candidates` were looked at in all.

    `reranker_error` is why a reranker has no part in it, where there is one.
    """

    hits: tuple[Hit, ...]
    rejected: tuple[RejectedHit, ...] = ()
    candidates: int = 0
    reranker_error: str = ""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What memory has to say to a question: a quoted hit, or that it is not in memory.

    `text` is for people: the quote with its file and line, then what contradicts it and what it superseded, or "not in
    memory". What came from outside, such as what a tool printed or an assistant repeated of that, is never an answer:
    where nothing else fits, `unconfirmed` are such hits, at most one. `contradicting` are hits that can't hold beside
    the quoted one, while nothing says which does. `superseded` are hits that held before and that the quoted one
    replaced, newest first. `others` are the next best hits, also when nothing was found, best first.
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
