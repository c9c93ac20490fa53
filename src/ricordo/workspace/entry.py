"""Entry: one memory, with where it came from and how far it can be trusted."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from ricordo.errors import InvalidEntry
from ricordo.scopes import Scope

__all__ = ["LONGEST_CONTENT", "PREDEFINED_KINDS", "Author", "Entry", "Source", "State"]

LONGEST_CONTENT = 2 * 1024 * 1024
"""The most UTF-8 bytes that the content of one entry may have."""

PREDEFINED_KINDS = ("fact", "decision", "preference", "lesson", "convention", "goal", "session-summary")
"""The kinds that Ricordo itself uses; any other kind is kept as it is."""

Author: TypeAlias = Literal["user", "agent", "flush", "import", "hand"]
State: TypeAlias = Literal["active", "superseded", "retired"]


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where an entry comes from: the messages of a session it rests on, and words that occur in them verbatim."""

    session: str | None = None
    messages: tuple[str, ...] = ()
    quote: str | None = None
    origin: str | None = None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One memory.

    `id` and `time` (when it was saved) are empty until the store gives them. `since` is when it was said or became
    true, where that is not the time of saving. `confidence` is in 0..1. `reason` says why it is visible beyond one
    project. `extra` holds fields of other tools in their order.
    """

    content: str
    kind: str = "fact"
    tags: tuple[str, ...] = ()
    id: str = ""
    time: datetime | None = None
    since: datetime | None = None
    scope: Scope | None = None
    by: Author = "user"
    source: Source = field(default_factory=Source)
    confidence: float = 1.0
    state: State = "active"
    supersedes: str | None = None
    pinned: bool = False
    reason: str | None = None
    extra: tuple[tuple[str, str], ...] = ()

    def checked(self) -> "Entry":
        """Return this entry; raise `InvalidEntry` when it lacks content, is too large or out of range."""
        if not self.content.strip():
            raise InvalidEntry("An entry needs content.")
        size = len(self.content.encode("utf-8", "surrogatepass"))
        if size > LONGEST_CONTENT:
            raise InvalidEntry(
                f"An entry holds at most {LONGEST_CONTENT} bytes, this one has {size}: save it in parts."
            )
        if not 0.0 <= self.confidence <= 1.0:
            raise InvalidEntry(f"The confidence of an entry is between 0 and 1, not {self.confidence}.")
        if not self.kind.strip():
            raise InvalidEntry("An entry needs a kind, such as fact or decision.")
        return self
