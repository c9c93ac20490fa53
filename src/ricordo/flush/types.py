"""What extraction reads and what it finds."""

from dataclasses import dataclass
from datetime import date, datetime

from ricordo.messages.types import Role

__all__ = ["Finding", "Utterance"]


@dataclass(frozen=True, kw_only=True)
class Utterance:
    """One message as extraction sees it: who said what, when, and what the attached media show.

    `speaker` is None for a nameless user or assistant; `media` holds one description for each picture or file.
    """

    message_id: str
    role: Role
    text: str
    speaker: str | None = None
    time: datetime | None = None
    media: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing worth remembering, understandable without the conversation.

    `kind` is fact, decision, preference, lesson, convention or goal. `confidence` is in 0..1, higher is surer.
    `message_ids` are the messages it rests on: first the one that states it, then the one whose question it answers;
    `quote` stands verbatim in the text of the first. `since` is when it was said or became true, `until` the last day
    on which it holds, where that was said. `corrects` marks a statement that replaces an earlier one.
    """

    content: str
    kind: str
    confidence: float
    message_ids: tuple[str, ...]
    quote: str
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    corrects: bool = False
    until: date | None = None
