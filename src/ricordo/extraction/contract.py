"""Input and output types of extraction, and sections that extract more from the same messages.

One request serves all sections. Each section provides its instructions, its existing content and the JSON schema of its
part of the answer, and receives that part.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Protocol

from ricordo.lazy import dataclass
from ricordo.messages import JsonValue, Message
from ricordo.messages.types import Role
from ricordo.scope import Scope

__all__ = ["ExtractionSection", "Finding", "SectionFactory", "SectionInput", "Utterance"]


@dataclass(frozen=True, kw_only=True)
class Utterance:
    """One message as extraction sees it: its speaker, its time, its text and descriptions of its media.

    `speaker` is None for a nameless user or assistant. `media` has one description for each picture or file.
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

    `kind` is fact, decision, preference, lesson, convention or goal. `confidence` is in 0..1; higher is more certain.
    `message_ids` are its source messages: first the one that states it, then the one whose question it answers. `quote`
    appears verbatim in the text of the first. `since` is when it was stated or became true; `until` is the last day it
    holds, if stated. `corrects` marks a statement that replaces an earlier one.
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


@dataclass(frozen=True, kw_only=True)
class SectionInput:
    """The input of a section: the messages of a session, their `findings` and their `scope`.

    `signals` are properties of these messages, such as a correction, detected when they were recorded or in the last
    one. `trace` is the trace of the last turn that requested the flush. `recorded` are the messages as they were said,
    with tool results, and some before them.
    """

    agent: str
    session: str
    scope: Scope | None
    messages: Sequence[Message]
    findings: Sequence[Finding] = ()
    signals: frozenset[str] = frozenset()
    trace: str = ""
    recorded: Sequence[Message] = ()


@dataclass(frozen=True, kw_only=True)
class ExtractionSection:
    """An additional section of the request, called `name`.

    `instructions` say what to extract, `reference` is the content that exists already, and `schema` is the JSON schema
    of the answer. `accept` receives that part of the answer, None if no model gave one, and the input. It is called
    before the messages count as extracted, so it may run twice after a crash and must be idempotent. A Ricordo error
    that it raises is reported and affects only this section.
    """

    name: str
    instructions: str
    schema: Mapping[str, JsonValue]
    accept: Callable[[JsonValue, SectionInput], Awaitable[None]]
    reference: str = ""


class SectionFactory(Protocol):
    """Creates the section for one flush."""

    async def __call__(self, section_input: SectionInput) -> ExtractionSection | None:
        """Return a section to add to the request; None if there is nothing to extract."""
        ...
