"""Extraction: who makes findings of messages, the rules or a model, and what it hands back.

Invariant: nothing is written here; what an extraction gives can be thrown away and asked for again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, TypeAlias

from anyio.to_thread import run_sync

from ricordo.errors import RicordoError
from ricordo.flush.processing import ProcessedMessages, ProcessingConfig, process_messages
from ricordo.flush.section import ExtractionSection, SectionFactory, SectionInput
from ricordo.flush.tool_lessons import extract_tool_lessons
from ricordo.flush.types import Finding
from ricordo.language.signals import SignalDetector, default_detector
from ricordo.messages import JsonValue, Message
from ricordo.scopes import Scope

__all__ = ["MessageDelta", "ExtractionResult", "Extractor", "RuleFunction", "RuleExtractor", "accept_sections"]

RuleFunction: TypeAlias = Callable[[Sequence[Message]], Sequence[Finding]]
"""Makes findings of messages without a model; slow for many, so it is called in a thread."""


@dataclass(frozen=True)
class MessageDelta:
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
    detector: SignalDetector = field(default_factory=default_detector)

    @cached_property
    def processed_messages(self) -> ProcessedMessages:
        """What of all these messages an extraction reads. Slow for many: call it in a thread the first time."""
        return process_messages(
            [*self.context, *self.new], config=ProcessingConfig(both_sides=False, detector=self.detector)
        )

    def take_first(self, count: int) -> "MessageDelta":
        """Return this with only the first `count` new messages."""
        return self if count >= len(self.new) else replace(self, new=self.new[:count])

    def apply_processing(self, messages: Sequence[Message]) -> list[Message]:
        """Return `messages` as they are read; one that is not keeps its place without its parts."""
        kept = {message.id: message for message in self.processed_messages.messages}
        return [kept.get(message.id, replace(message, parts=())) for message in messages]

    def build_section_input(self, covers: int, findings: Sequence[Finding] = ()) -> SectionInput:
        """Return what a section is told of the first `covers` new messages."""
        told = [message for message in self.apply_processing(self.new[:covers]) if message.parts]
        return SectionInput(
            agent=self.agent,
            session=self.session,
            scope=self.scope,
            messages=told,
            findings=tuple(findings),
            signals=self.signals | self.processed_messages.signals,
            trace=self.trace,
        )


@dataclass(frozen=True, kw_only=True)
class ExtractionResult:
    """The findings of the first `covers` new messages, and what other sections have still to take in.

    `requests` is how often a model was asked, and `note` says why the rules did its work, where they did.
    """

    findings: Sequence[Finding]
    covers: int
    sections: Sequence[ExtractionSection] = ()
    answers: dict[str, JsonValue] = field(default_factory=dict)
    requests: int = 0
    note: str = ""


class Extractor(Protocol):
    """Makes findings of the first of the new messages, as many as it reads at once; of one at least."""

    async def __call__(self, delta: MessageDelta) -> ExtractionResult:
        """Return what these messages hold. Raises `ModelError` where trying again later may help."""
        ...


@dataclass(frozen=True, kw_only=True)
class RuleExtractor:
    """Extraction without a model: it reads all there is."""

    rules: RuleFunction
    sections: Sequence[SectionFactory] = ()

    async def __call__(self, delta: MessageDelta) -> ExtractionResult:
        """Return what the rules find."""
        return await self.extract(delta, len(delta.new))

    async def extract(self, delta: MessageDelta, covers: int, *, note: str = "", requests: int = 0) -> ExtractionResult:
        """Return what the rules find in the first `covers` new messages."""
        # nothing is written yet, so who is cancelled need not wait for the end of it
        findings = await run_sync(self._find, delta, covers, abandon_on_cancel=True)
        sections = await self.build_sections(delta, covers)
        return ExtractionResult(findings=findings, covers=covers, sections=sections, note=note, requests=requests)

    async def build_sections(self, delta: MessageDelta, covers: int) -> list[ExtractionSection]:
        """Return the sections that learn from the first `covers` new messages too."""
        if not self.sections:
            return []
        studied = await run_sync(delta.build_section_input, covers)
        return [section for make in self.sections if (section := await make(studied)) is not None]

    def _find(self, delta: MessageDelta, covers: int) -> Sequence[Finding]:
        shown = delta.apply_processing([*delta.context, *delta.new[:covers]])
        found = self.rules([message for message in shown if message.parts])
        return [*found, *self.extract_of_tools(delta, covers)]

    @staticmethod
    def extract_of_tools(delta: MessageDelta, covers: int) -> Sequence[Finding]:
        """Return what failing and working calls of tools taught in the first `covers` new messages."""
        fresh = {message.id for message in delta.new[:covers]}
        lessons = extract_tool_lessons([*delta.context, *delta.new[:covers]])
        return [lesson for lesson in lessons if not fresh.isdisjoint(lesson.message_ids)]


async def accept_sections(extracted: ExtractionResult, delta: MessageDelta) -> list[str]:
    """Let each section take its part, and return what went wrong, in words for events."""
    wrong: list[str] = []
    if not extracted.sections:
        return wrong
    studied = await run_sync(delta.build_section_input, extracted.covers, extracted.findings)
    for section in extracted.sections:
        try:
            await section.accept(extracted.answers.get(section.name), studied)
        except RicordoError as error:
            wrong.append(f"{section.name} was not kept: {type(error).__name__}")
    return wrong
