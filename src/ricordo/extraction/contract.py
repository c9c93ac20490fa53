"""What extraction reads and finds, and further sections that learn from the same messages.

One request serves all sections: each brings its instructions, what is known already and the schema of its part of the
answer, and takes that part.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

from ricordo.messages import JsonValue, Message
from ricordo.messages.types import Role
from ricordo.scope import Scope

__all__ = ["ExtractionSection", "Finding", "SectionFactory", "SectionInput", "Utterance"]


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


@dataclass(frozen=True, kw_only=True)
class SectionInput:
    """What was studied: the messages of a session, and the `findings` of the lessons. `scope` names whose it is.

    `signals` are what these messages do, such as a correction, as far as it was noticed when they were said or stands
    in the last of them. `trace` is the trace of the turn that asked last.
    """

    agent: str
    session: str
    scope: Scope | None
    messages: Sequence[Message]
    findings: Sequence[Finding] = ()
    signals: frozenset[str] = frozenset()
    trace: str = ""


@dataclass(frozen=True, kw_only=True)
class ExtractionSection:
    """The section `name`: what to ask, what is known already as `reference`, and the JSON schema of the answer.

    `accept` gets the part of the answer, None where no model gave one, and what was studied. It is called before the
    messages count as extracted, so once more when the process is killed in between: doing it twice must be as good as
    once. An error of Ricordo that it raises is reported, and costs only this section.
    """

    name: str
    instructions: str
    schema: Mapping[str, JsonValue]
    accept: Callable[[JsonValue, SectionInput], Awaitable[None]]
    reference: str = ""


class SectionFactory(Protocol):
    """Makes the section for one flush."""

    async def __call__(self, studied: SectionInput) -> ExtractionSection | None:
        """Return what to ask beside the lessons; None when there is nothing."""
        ...
