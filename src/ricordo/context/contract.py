"""The `Strategy` protocol: a strategy takes a window and returns reduced messages with a report.

Invariants: the returned window is valid (no call without its result and no result without its call, except calls that
are still pending). Messages are not reordered, and a message that stays keeps its id. A strategy that cannot run
returns the window unchanged and reports why. It never replaces history with an error text.
"""

from collections.abc import Collection, Sequence
from typing import Literal, Protocol, Self, TypeAlias

from ricordo.extraction.contract import Finding
from ricordo.guard import Redactor
from ricordo.lazy import dataclass
from ricordo.messages import Message
from ricordo.storage import FileStore

__all__ = [
    "Act",
    "CompactionSummary",
    "ExtractionHandover",
    "ExtractionLease",
    "Reduction",
    "Strategy",
    "StrategyConfig",
    "StrategyContext",
    "StrategyReport",
    "Summarizer",
    "Window",
]


Act: TypeAlias = str
"""The action of a strategy, one word, reported as its stage. The strategies here have `evict` (move large results to
files), `clear` (old results), `dedupe` (replace repeated reads by pointers), `truncate` (arguments), `compact`
(summarize), `drop` (whole groups), `slide` and `none`. `remove` and `edit` are a person's changes to one message."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """The next request: its messages without the system prompt, and the limits it must meet.

    `overhead` is the number of tokens of the rest of the request: system prompt, memory, tools. `limit` is the model's
    window in tokens, None if unknown. `ratio` corrects token estimates by the provider's reported usage. `forced` says
    why the window must shrink regardless of thresholds: `overflow` when the provider rejected it, `asked` when a person
    requested it, `progress` when the previous step saved too little; empty when nothing forces it. `target` is the
    number of tokens that the messages may take after all steps; None if each step has only its own threshold.
    Summarizing and dropping do nothing when earlier steps have reached it. `max_messages` is how many messages the
    provider accepts in one request, with each call and each result counted as one; None if no limit is known. `focus`
    is what the summary should concentrate on, as requested by a person. `messages_at_undo` is the number of messages in
    the window when a person last undid a compaction; 0 if nobody did. Dropping may truncate long texts if
    `may_truncate` is set.
    """

    messages: tuple[Message, ...]
    agent: str = ""
    session: str = ""
    overhead: int = 0
    limit: int | None = None
    ratio: float = 1.0
    forced: str = ""
    target: int | None = None
    max_messages: int | None = None
    focus: str = ""
    messages_at_undo: int = 0
    may_truncate: bool = True


@dataclass(frozen=True, kw_only=True)
class StrategyReport:
    """The result of a strategy in numbers: messages and tokens before and after, without the overhead.

    `reason` says why it ran or did not; `note` reports problems, such as an unusable summary. `handle` names the
    removed content, so that it can be opened and restored; empty where messages only got shorter. `trigger` says what
    triggered the step: too many messages or too many tokens.
    """

    action: Act
    status: Literal["done", "skipped", "failed"]
    reason: str = ""
    messages_before: int = 0
    messages_after: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    note: str = ""
    handle: str = ""
    trigger: Literal["messages", "tokens"] = "tokens"


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """The messages after a strategy and its report; `dropped` are the messages that a summary replaced."""

    messages: tuple[Message, ...]
    report: StrategyReport
    dropped: tuple[Message, ...] = ()


class Strategy(Protocol):
    """One way to reduce the window. A wrapper around a strategy is a strategy too."""

    @property
    def action(self) -> Act:
        """The action of this strategy."""
        ...

    async def reduce(self, window: Window) -> Reduction:
        """Return a smaller window if its thresholds are met or it is forced, else the unchanged window."""
        ...


@dataclass(frozen=True, kw_only=True)
class StrategyContext:
    """What a session offers its strategies.

    Large results are written to `files`; without it none are. `reader_tool` is the tool that reads them. Secrets are
    removed by `redactor` first.
    """

    redactor: Redactor
    files: FileStore | None = None
    reader_tool: str = "read_file"


class StrategyConfig(Protocol):
    """The options of a strategy: a frozen dataclass, whose fields are also the settings of the strategy."""

    @classmethod
    def recommended(cls, window: int | None) -> Self:
        """Return the options for a model with a `window` of so many tokens; None if that is unknown."""
        ...


@dataclass(frozen=True, kw_only=True)
class CompactionSummary:
    """A summary that replaces messages: `text` with its sections, and the lessons from the same request.

    `lessons` are based on the messages passed as `pending`. They are empty when there was nothing to learn, and None
    when no lessons were requested or that part of the answer was unusable. `notes` report problems.
    """

    text: str
    lessons: tuple[Finding, ...] | None = None
    notes: tuple[str, ...] = ()


class Summarizer(Protocol):
    """Writes a summary."""

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        limit_tokens: int,
        most_tokens: int | None = None,
        focus: str = "",
        pending: Collection[str] = (),
    ) -> CompactionSummary:
        """Return a summary of `messages` in about `limit_tokens` tokens; it includes earlier summaries among them.

        A summary of more than `most_tokens` tokens would not be smaller than the messages it replaces. `pending` are
        the ids of the messages to extract lessons from in the same request; if empty, no lessons are extracted.
        """
        ...


class ExtractionLease(Protocol):
    """Messages handed over for extraction. The handover is durable: lessons are extracted from them exactly once."""

    @property
    def pending_ids(self) -> Collection[str]:
        """The ids of the messages without extracted lessons."""
        ...

    async def accept(self, lessons: Sequence[Finding]) -> None:
        """Write `lessons` to the ledger, then finish the work. Repeating this after a crash adds nothing twice."""
        ...

    async def release(self) -> None:
        """Return the work to the inbox."""
        ...


class ExtractionHandover(Protocol):
    """Leases the messages that a summary will replace, so that the summary request can extract lessons from them."""

    async def __call__(self, messages: Sequence[Message]) -> ExtractionLease | None:
        """Return the lease of `messages`; None when another worker already extracts from them."""
        ...
