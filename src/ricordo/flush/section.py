"""A further section of the request: who wants to learn something of its own from the same messages says what.

One request per flush serves all: each section brings its instructions, what is known already and the form of its part
of the answer, and takes that part.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ricordo.flush.types import Finding
from ricordo.messages import JsonValue, Message
from ricordo.scopes import Scope

__all__ = ["ExtractionSection", "SectionFactory", "SectionInput"]


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
