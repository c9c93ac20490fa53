"""What requests and answers hold, as pydantic models; the OpenAPI document is made of them."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ricordo.curation.quality_checks import Doubt
from ricordo.jobs import BackgroundRun
from ricordo.messages import Message
from ricordo.runtime.extraction import IngestReport
from ricordo.search import Answer, Hit
from ricordo.stores.contract import DeleteResult, ForgetResult
from ricordo.workspace import SessionInfo
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.log import HistoryItem
from ricordo.workspace.profile import Profile

__all__ = [
    "REQUEST_FIELD",
    "AnswerDocument",
    "ChangeDocument",
    "ChangePage",
    "ChangeRequest",
    "DecideRequest",
    "DoubtDocument",
    "DoubtPage",
    "ErasedDocument",
    "ForgottenDocument",
    "HitDocument",
    "HitPage",
    "IngestDocument",
    "IngestRequest",
    "JobDocument",
    "JobPage",
    "MemoryList",
    "MemoryView",
    "MessageDocument",
    "PreambleDocument",
    "ProfileDocument",
    "RecallRequest",
    "RememberManyRequest",
    "RememberRequest",
    "SessionDocument",
    "SessionPage",
    "SessionsDocument",
    "SpokenDocument",
    "UndoRequest",
]


REQUEST_FIELD = "request-key"
"""The metadata that says by which request a memory was saved, for one that is sent again after a crash."""
Text = Annotated[str, Field(min_length=1, max_length=2_000_000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Names = Annotated[list[Name], Field(max_length=100)]


class _Request(BaseModel):
    """A request, whose unknown fields are refused: a mistyped name would be silently without effect."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=False)


class RememberRequest(_Request):
    """A memory to save."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"content": "We deploy only from main.", "kind": "decision", "tags": ["ci"]}]},
    )

    content: Text
    kind: Name = "fact"
    tags: Names = []
    metadata: dict[Name, str] = {}
    since: datetime | date | None = Field(None, description="When it was said or became true, if that was earlier.")
    shared: bool = Field(False, description="Whether all users of the project see it.")
    reason: str = ""


class RememberManyRequest(_Request):
    """Several memories, which are saved together or not at all."""

    memories: Annotated[list[RememberRequest], Field(min_length=1, max_length=1_000)]


class ChangeRequest(_Request):
    """New values of a memory; what is not given stays."""

    content: Text | None = None
    kind: Name | None = None
    tags: Names | None = None
    metadata: dict[Name, str] | None = None
    pinned: bool | None = None
    confirmed: Literal[True] | None = Field(None, description="Confirm that it is true.")


class RecallRequest(_Request):
    """What to find."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"query": "From which branch do we deploy?", "limit": 3}]}
    )

    query: Annotated[str, Field(max_length=20_000)]
    limit: Annotated[int, Field(ge=1, le=100)] = 5
    kinds: Names = []
    tags: Names = []
    metadata: dict[Name, str] = {}
    since: datetime | date | None = None
    until: datetime | date | None = None
    as_of: datetime | date | None = None
    budget: Annotated[int, Field(ge=0, le=200_000)] | None = Field(None, description="At most so many tokens.")
    said: bool = Field(True, description="Whether statements of sessions that match nearer are found, too.")


class MemoryView(BaseModel):
    """A memory."""

    id: str
    kind: str
    content: str
    tags: list[str]
    metadata: dict[str, str]
    time: datetime | None
    since: datetime | None
    valid_from: date | None
    valid_until: date | None
    by: str
    state: str
    shared: bool
    pinned: bool
    confirmed: datetime | None
    confidence: float | None
    superseded_by: str | None
    session: str | None
    origin: str | None

    @classmethod
    def describe(cls, entry: Entry) -> "MemoryView":
        """Describe an entry."""
        return cls(
            id=entry.id,
            kind=entry.kind,
            content=entry.content,
            tags=list(entry.tags),
            metadata={name: value for name, value in entry.metadata.items() if name != REQUEST_FIELD},
            time=entry.time,
            since=entry.since,
            valid_from=entry.valid_from,
            valid_until=entry.valid_until,
            by=entry.by,
            state=entry.state,
            shared=entry.scope is not None and entry.scope.user is None,
            pinned=entry.pinned,
            confirmed=entry.confirmed,
            confidence=entry.confidence,
            superseded_by=entry.superseded_by or None,
            session=entry.source.session or None,
            origin=entry.source.origin or None,
        )


class MemoryList(BaseModel):
    """A page of memories, newest first; `next` continues after it, null at the end."""

    memories: list[MemoryView]
    next: str | None = None


class HitDocument(BaseModel):
    """A memory that was found, or a statement of a session in its form, and why."""

    memory: MemoryView
    score: float
    why: str
    parts: dict[str, float] = Field(description="What each signal adds to the score.")
    trust: str
    speaker: str = Field(description="Who said it, if it was said in a session.")
    path: str
    line: int

    @classmethod
    def describe(cls, hit: Hit) -> "HitDocument":
        """Describe a hit."""
        return cls(
            memory=MemoryView.describe(hit.entry),
            score=hit.score,
            why=hit.explanation,
            parts=dict(hit.score_parts),
            trust=hit.trust.value,
            speaker=hit.speaker,
            path=hit.path,
            line=hit.line_number,
        )


class HitPage(BaseModel):
    """Hits, best first."""

    hits: list[HitDocument]


class AnswerDocument(BaseModel):
    """A quoted memory that answers, or `found: false`; nothing in it is made up."""

    found: bool
    text: str
    hit: HitDocument | None
    superseded: list[HitDocument]
    contradicting: list[HitDocument]

    @classmethod
    def describe(cls, answer: Answer) -> "AnswerDocument":
        """Describe an answer."""
        return cls(
            found=answer.found,
            text=answer.text,
            hit=HitDocument.describe(answer.hit) if answer.hit else None,
            superseded=[HitDocument.describe(hit) for hit in answer.superseded],
            contradicting=[HitDocument.describe(hit) for hit in answer.contradicting],
        )


class PreambleDocument(BaseModel):
    """The fenced text for a system prompt; empty where nothing is remembered."""

    text: str


class MessageDocument(_Request):
    """A message of a conversation, as the chat completions of OpenAI or the messages of Anthropic have them."""

    model_config = ConfigDict(extra="allow")

    role: Name


class IngestRequest(_Request):
    """Messages of one session, in order: the whole conversation, or its end from any message on."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"messages": [{"role": "user", "content": "We decided to use pnpm."}]}]},
    )

    messages: Annotated[list[MessageDocument], Field(min_length=1, max_length=10_000)]


class IngestDocument(BaseModel):
    """What was recorded and learned; `change` undoes what was learned, null if that is nothing."""

    session: str
    messages: int
    added: int
    learned: list[MemoryView]
    change: str | None
    queued: bool = Field(description="Whether a model learns from it in the background.")

    @classmethod
    def describe(cls, report: IngestReport) -> "IngestDocument":
        """Describe what an ingest did."""
        return cls(
            session=report.session,
            messages=len(report.messages),
            added=report.added_count,
            learned=[MemoryView.describe(entry) for entry in report.entries],
            change=report.change_id or None,
            queued=report.is_queued,
        )


class SessionDocument(BaseModel):
    """A session."""

    session: str
    messages: int
    started: datetime
    last: datetime
    bytes: int

    @classmethod
    def describe(cls, info: SessionInfo) -> "SessionDocument":
        """Describe a session."""
        return cls(
            session=info.session, messages=info.messages, started=info.started_at, last=info.last, bytes=info.size
        )


class SessionsDocument(BaseModel):
    """All sessions, newest first."""

    sessions: list[SessionDocument]


class SpokenDocument(BaseModel):
    """A message as it is kept; calls of tools and their results are in `text` only if they are text."""

    id: str
    role: str
    text: str
    time: datetime | None

    @classmethod
    def describe(cls, message: Message) -> "SpokenDocument":
        """Describe a message."""
        return cls(id=message.id, role=message.role, text=message.text, time=message.time)


class SessionPage(SessionDocument):
    """A page of the messages of a session, in order; `next` is the number of the first one of the next page."""

    conversation: list[SpokenDocument]
    next: int | None = None


class ChangeDocument(BaseModel):
    """A change of memory."""

    id: str
    at: datetime
    actor: str
    action: str
    reason: str
    entries: list[str]
    undone: bool

    @classmethod
    def describe(cls, item: HistoryItem) -> "ChangeDocument":
        """Describe a change."""
        return cls(
            id=item.id,
            at=item.at,
            actor=item.actor,
            action=item.action,
            reason=item.reason,
            entries=list(item.entries),
            undone=item.is_undone,
        )


class ChangePage(BaseModel):
    """Changes, newest first."""

    changes: list[ChangeDocument]


class UndoRequest(_Request):
    """The change to undo; without one, the newest that this user made."""

    change: Name | None = None


class ForgottenDocument(BaseModel):
    """What was forgotten, and the places that still hold its words."""

    memories: list[MemoryView]
    remaining: list[str]
    change: str | None

    @classmethod
    def describe(cls, result: ForgetResult | DeleteResult, change: str | None) -> "ForgottenDocument":
        """Describe the result of forgetting one memory or several."""
        if isinstance(result, ForgetResult):
            remaining = [f"{each.kind} {each.id}" for each in result.remaining]
            return cls(memories=[MemoryView.describe(result.entry)], remaining=remaining, change=change)
        return cls(
            memories=[MemoryView.describe(entry) for entry in result.entries],
            remaining=[],
            change=result.change_id or None,
        )


class ErasedDocument(BaseModel):
    """The ids of the memories whose words were erased."""

    memories: list[str]


class FactDocument(BaseModel):
    """A fact about the user."""

    id: str
    content: str
    category: str
    confidence: float
    pinned: bool


class ProfileDocument(BaseModel):
    """What is known of the user: summaries by name, and facts."""

    summaries: dict[str, str]
    facts: list[FactDocument]

    @classmethod
    def describe(cls, profile: Profile) -> "ProfileDocument":
        """Describe a profile."""
        facts = [
            FactDocument(
                id=fact.id,
                content=fact.content,
                category=fact.category,
                confidence=fact.confidence,
                pinned=fact.pinned,
            )
            for fact in profile.facts
        ]
        return cls(summaries={name: each.summary for name, each in profile.summaries.items()}, facts=facts)


class DoubtDocument(BaseModel):
    """A memory that a person should look at, and why."""

    kind: str
    reason: str
    memory: MemoryView
    other: MemoryView | None

    @classmethod
    def describe(cls, doubt: Doubt) -> "DoubtDocument":
        """Describe a doubtful memory."""
        other = MemoryView.describe(doubt.other) if doubt.other else None
        return cls(kind=doubt.kind, reason=doubt.reason, memory=MemoryView.describe(doubt.entry), other=other)


class DoubtPage(BaseModel):
    """Doubtful memories, the most urgent first."""

    doubts: list[DoubtDocument]


class DecideRequest(_Request):
    """What to do with a doubtful memory."""

    verb: Literal["accept", "reject", "merge", "edit", "later"]
    text: str = ""
    days: Annotated[int, Field(ge=0, le=3_650)] = 7


class JobDocument(BaseModel):
    """A run of the background."""

    id: str
    kind: str
    state: str
    queued: datetime
    ended: datetime | None
    session: str | None
    counts: Mapping[str, Mapping[str, int]]
    error: str | None
    cost: float = Field(description="US dollars, as far as prices are known.")

    @classmethod
    def describe(cls, run: BackgroundRun) -> "JobDocument":
        """Describe a run."""
        return cls(
            id=run.id,
            kind=run.kind,
            state=run.state,
            queued=run.queued_at,
            ended=run.ended_at,
            session=run.session or None,
            counts={name: dict(each) for name, each in run.phases.items()},
            error=run.error or None,
            cost=float(run.cost),
        )


class JobPage(BaseModel):
    """Runs of the background, newest first."""

    jobs: list[JobDocument]
