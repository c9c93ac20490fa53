"""The protocol of a strategy: it takes a window and returns a window and a report.

Invariants: the returned window is valid (no call without its result and no result without its call, except calls that
still wait). Messages are not reordered, and a message that stays keeps its id. A strategy that can't work returns the
window unchanged and says why. It never replaces history by the text of an error.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from ricordo.extraction.contract import Finding
from ricordo.messages import Message

__all__ = [
    "Act",
    "CompactionSummary",
    "ExtractionHandover",
    "ExtractionLease",
    "Reduction",
    "Strategy",
    "StrategyReport",
    "Summarizer",
    "Window",
]


Act: TypeAlias = Literal["evict", "clear", "dedupe", "truncate", "compact", "drop", "slide", "none", "remove", "edit"]
"""What a strategy does, which is the stage that is reported: wide results to files, old results cleared, repeated
reads to pointers, arguments clipped, a summary, whole groups dropped, a sliding window, nothing; `remove` and
`edit` are what a person does to one message."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """What is about to be sent: the messages without the system prompt, and what surrounds them.

    `overhead` are the tokens of everything else that is sent: system prompt, memory, tools. `limit` is the model's
    window in tokens, None when it is not known. `ratio` corrects estimated tokens by what the provider reported.
    `forced` says why the window must get smaller whatever the thresholds say: `overflow` when the provider refused it,
    `asked` when a person wants it, `progress` when the step before took off too little; empty when it need not.
    `target` is what the messages may take after all steps, in tokens, None where each step has only its own threshold;
    a summary and dropping do nothing when the steps before them have reached it. `most_messages` is how many messages
    the provider takes in one request, each call and each result counted as one; None where no limit is known. `focus`
    is what a person wants the summary to dwell on. `undone` counts the messages that the window had when a person last
    undid a compaction; 0 when nobody did. Dropping may cut long texts where `shortens`.
    """

    messages: tuple[Message, ...]
    agent: str = ""
    session: str = ""
    overhead: int = 0
    limit: int | None = None
    ratio: float = 1.0
    forced: str = ""
    target: int | None = None
    most_messages: int | None = None
    focus: str = ""
    undone: int = 0
    shortens: bool = True


@dataclass(frozen=True, kw_only=True)
class StrategyReport:
    """What a strategy did, in numbers: messages and tokens before and after, without the overhead.

    `reason` says why, or why not; `note` what went otherwise than it should, such as a summary that could not be used.
    `handle` names what was taken away, so that it can be opened and brought back; empty where messages only got
    shorter. `due` says what the step was started for: too many messages or too many tokens.
    """

    act: Act
    status: Literal["done", "skipped", "failed"]
    reason: str = ""
    messages_before: int = 0
    messages_after: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    note: str = ""
    handle: str = ""
    due: Literal["messages", "tokens"] = "tokens"


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """The window after a strategy, and the report; `dropped` are the messages that a summary stands for now."""

    messages: tuple[Message, ...]
    report: StrategyReport
    dropped: tuple[Message, ...] = ()


class Strategy(Protocol):
    """One reduction; a wrapper around another one is a strategy too."""

    @property
    def act(self) -> Act:
        """What it does."""
        ...

    async def reduce(self, window: Window) -> Reduction:
        """Return the window, smaller if its thresholds are met or it is forced, else as it came."""
        ...


@dataclass(frozen=True, kw_only=True)
class CompactionSummary:
    """What takes the place of messages: `text` with its sections, and what was learned in the same breath.

    `lessons` rest on the messages that were named as pending; empty when there was nothing to learn, None when nobody
    asked, or that part of the answer could not be used. `notes` say what went otherwise than it should.
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
        """Return a summary of `messages` in about `limit_tokens` tokens; earlier summaries among them are taken in.

        One of more than `max_prompt_tokens` would not be smaller than what it stands for. `pending_ids` are the ids of the
        messages to learn from in the same request; without any, nothing is learned.
        """
        ...


class ExtractionLease(Protocol):
    """Messages that were handed over to be learned from, durably: whatever happens now, somebody does it, once."""

    @property
    def pending_ids(self) -> Collection[str]:
        """The ids of those that were not learned from yet."""
        ...

    async def accept(self, lessons: Sequence[Finding]) -> None:
        """Write `lessons` to the ledger, then end the work. What is done twice after a kill adds nothing twice."""
        ...

    async def release(self) -> None:
        """Leave the work to whoever works off the inbox."""
        ...


class ExtractionHandover(Protocol):
    """Takes the messages that are about to go, so that the summary's request can learn from them too."""

    async def __call__(self, messages: Sequence[Message]) -> ExtractionLease | None:
        """Return them as taken; None when others learn from them, such as a worker that is at it already."""
        ...
