"""Extraction: who makes findings of messages, the rules or a model, and what it hands back.

Invariant: nothing is written here; what an extraction gives can be thrown away and asked for again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, TypeAlias

from anyio.to_thread import run_sync

from ricordo.errors import RicordoError
from ricordo.flush.processing import Processed, ProcessingConfig, processed
from ricordo.flush.section import Section, SectionMaker, Studied
from ricordo.flush.tool_lessons import tool_lessons
from ricordo.flush.types import Finding
from ricordo.language.signals import SignalDetector, bundled
from ricordo.messages import JsonValue, Message
from ricordo.scopes import Scope

__all__ = ["Delta", "Extracted", "Extraction", "Rules", "RulesExtraction", "accepted"]

Rules: TypeAlias = Callable[[Sequence[Message]], Sequence[Finding]]
"""Makes findings of messages without a model; slow for many, so it is called in a thread."""


@dataclass(frozen=True)
class Delta:
    """The new messages of a session as its transcript holds them, with a few before them. `scope` is whose they are.

    `signals` were noticed when they were said, `trace` is that of the turn that asked last.
    `detector` recognises further signals.
    """

    agent: str
    session: str
    scope: Scope | None
    context: Sequence[Message]
    new: Sequence[Message]
    signals: frozenset[str] = frozenset()
    trace: str = ""
    detector: SignalDetector = field(default_factory=bundled)

    @cached_property
    def read(self) -> Processed:
        """What of all these messages an extraction reads. Slow for many: call it in a thread the first time."""
        return processed([*self.context, *self.new], config=ProcessingConfig(both_sides=False, detector=self.detector))

    def first(self, count: int) -> "Delta":
        """Return this with only the first `count` new messages."""
        return self if count >= len(self.new) else replace(self, new=self.new[:count])

    def shown(self, messages: Sequence[Message]) -> list[Message]:
        """Return `messages` as they are read; one that is not keeps its place without its parts."""
        kept = {message.id: message for message in self.read.messages}
        return [kept.get(message.id, replace(message, parts=())) for message in messages]

    def studied(self, covers: int, findings: Sequence[Finding] = ()) -> Studied:
        """Return what a section is told of the first `covers` new messages."""
        told = [message for message in self.shown(self.new[:covers]) if message.parts]
        return Studied(
            agent=self.agent,
            session=self.session,
            scope=self.scope,
            messages=told,
            findings=tuple(findings),
            signals=self.signals | self.read.signals,
            trace=self.trace,
        )


@dataclass(frozen=True, kw_only=True)
class Extracted:
    """The findings of the first `covers` new messages, and what other sections have still to take in.

    `requests` is how often a model was asked, and `note` says why the rules did its work, where they did.
    """

    findings: Sequence[Finding]
    covers: int
    sections: Sequence[Section] = ()
    answers: dict[str, JsonValue] = field(default_factory=dict)
    requests: int = 0
    note: str = ""


class Extraction(Protocol):
    """Makes findings of the first of the new messages, as many as it reads at once; of one at least."""

    async def __call__(self, delta: Delta) -> Extracted:
        """Return what these messages hold. Raises `ModelError` where trying again later may help."""
        ...


@dataclass(frozen=True, kw_only=True)
class RulesExtraction:
    """Extraction without a model: it reads all there is."""

    rules: Rules
    sections: Sequence[SectionMaker] = ()

    async def __call__(self, delta: Delta) -> Extracted:
        """Return what the rules find."""
        return await self.extracted(delta, len(delta.new))

    async def extracted(self, delta: Delta, covers: int, *, note: str = "", requests: int = 0) -> Extracted:
        """Return what the rules find in the first `covers` new messages."""
        # nothing is written yet, so who is cancelled need not wait for the end of it
        findings = await run_sync(self._found, delta, covers, abandon_on_cancel=True)
        sections = await self.sectioned(delta, covers)
        return Extracted(findings=findings, covers=covers, sections=sections, note=note, requests=requests)

    async def sectioned(self, delta: Delta, covers: int) -> list[Section]:
        """Return the sections that learn from the first `covers` new messages too."""
        if not self.sections:
            return []
        studied = await run_sync(delta.studied, covers)
        return [section for make in self.sections if (section := await make(studied)) is not None]

    def _found(self, delta: Delta, covers: int) -> Sequence[Finding]:
        shown = delta.shown([*delta.context, *delta.new[:covers]])
        found = self.rules([message for message in shown if message.parts])
        return [*found, *self.of_tools(delta, covers)]

    @staticmethod
    def of_tools(delta: Delta, covers: int) -> Sequence[Finding]:
        """Return what failing and working calls of tools taught in the first `covers` new messages."""
        fresh = {message.id for message in delta.new[:covers]}
        lessons = tool_lessons([*delta.context, *delta.new[:covers]])
        return [lesson for lesson in lessons if not fresh.isdisjoint(lesson.message_ids)]


async def accepted(extracted: Extracted, delta: Delta) -> list[str]:
    """Let each section take its part, and return what went wrong, in words for events."""
    wrong: list[str] = []
    if not extracted.sections:
        return wrong
    studied = await run_sync(delta.studied, extracted.covers, extracted.findings)
    for section in extracted.sections:
        try:
            await section.accept(extracted.answers.get(section.name), studied)
        except RicordoError as error:
            wrong.append(f"{section.name} was not kept: {type(error).__name__}")
    return wrong
