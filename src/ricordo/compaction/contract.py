"""Strategy: one way to make a window smaller. Window in, window and report out; each can be used alone.

Invariants: what is handed back is valid (no call without its result, no result without its call, but for calls that
still wait), no message is reordered, and a message that stays keeps its id. A strategy that can't do its work hands
the window back as it came and says why; it never replaces history by an error text.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from ricordo.messages import Message

__all__ = ["Reduction", "Report", "Strategy", "Window"]


@dataclass(frozen=True, kw_only=True)
class Window:
    """What is about to be sent: the messages without the system prompt, and what surrounds them.

    `overhead` are the tokens of everything else that is sent: system prompt, memory, tools. `limit` is the model's
    window in tokens, None when it is not known. `ratio` corrects estimated tokens by what the provider reported.
    `forced` says why the window must get smaller whatever the thresholds say, such as `overflow` or `asked`; empty
    when it need not.
    """

    messages: tuple[Message, ...]
    agent: str = ""
    session: str = ""
    overhead: int = 0
    limit: int | None = None
    ratio: float = 1.0
    forced: str = ""


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a strategy did, in numbers: messages and tokens before and after, without the overhead.

    `reason` says why, or why not; `note` what went otherwise than it should, such as a summary that could not be used.
    """

    act: Literal["evict", "truncate", "compact"]
    status: Literal["done", "skipped", "failed"]
    reason: str = ""
    messages_before: int = 0
    messages_after: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """The window after a strategy, and the report; `dropped` are the messages that a summary stands for now."""

    messages: tuple[Message, ...]
    report: Report
    dropped: tuple[Message, ...] = ()


class Strategy(Protocol):
    """One reduction."""

    async def reduce(self, window: Window) -> Reduction:
        """Return the window, smaller if its thresholds are met or it is forced, else as it came."""
        ...
