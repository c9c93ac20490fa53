"""Extractors: make findings of new messages, by rules or by a model, with the rules where a model can't.

Invariants: nothing is written here and no lock is held, so a result can be thrown away and asked for again. Whatever
the model does, every message is extracted: errors that may pass are raised, for the inbox to try again; for all others
the rules do it at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Protocol, TypeAlias

import anyio
from anyio.to_thread import run_sync

from ricordo.clock import Clock
from ricordo.errors import (
    ModelError,
    ModelOverflow,
    ModelRateLimited,
    ModelTimeout,
    ModelUnavailable,
    ReplyInvalid,
    RicordoError,
)
from ricordo.extraction.answer import LessonsAnswer, parse_lessons, parse_lessons_answer
from ricordo.extraction.config import FlushConfig
from ricordo.extraction.contract import ExtractionSection, Finding, SectionFactory, SectionInput
from ricordo.extraction.known_memory import load_known_memory
from ricordo.extraction.preprocessing import ProcessedMessages, ProcessingConfig, process_messages
from ricordo.extraction.request import LessonsRequest, RequestMaterial, build_request
from ricordo.extraction.tool_lessons import extract_tool_lessons
from ricordo.language.signals import SignalDetector, default_detector
from ricordo.messages import JsonValue, Message, Text
from ricordo.messages.json_text import dumps
from ricordo.models import ChatModel
from ricordo.scope import Scope
from ricordo.storage import FileStore

__all__ = [
    "ExtractionResult",
    "Extractor",
    "MessageDelta",
    "ModelExtractor",
    "RuleExtractor",
    "RuleFunction",
    "accept_sections",
]


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


_TRANSIENT_ERRORS = (ModelRateLimited, ModelTimeout, ModelUnavailable)
_UNREADABLE_FLAW = "it is no whole JSON object with the part `lessons`"
_UNGROUNDED_FLAW = (
    "no note holds: copy each `quote` exactly from one new item, and names and numbers as they stand there"
)
_MAX_SHRINKS = 3
_CHARS_PER_TOKEN = 8
_MIN_ITEM_CHARS = 100


@dataclass(frozen=True, kw_only=True)
class _ModelAnswer:
    """What came of a request: the lessons, None when they could not be used, and the parts of other sections."""

    lessons: tuple[Finding, ...] | None = None
    parts: dict[str, JsonValue]
    requests: int
    flaw: str = ""


@dataclass(frozen=True, kw_only=True)
class ModelExtractor:
    """Asks `model` for lessons; `rules` do what it can't."""

    model: ChatModel
    config: FlushConfig
    rules: RuleExtractor
    files: FileStore
    clock: Clock

    async def __call__(self, delta: MessageDelta) -> ExtractionResult:
        """Return the lessons of as many new messages as one request takes.

        Raises: ModelRateLimited, ModelTimeout and ModelUnavailable, which may pass.
        """
        config, delta = self.config, delta.take_first(self._count_within_limit(delta))
        covers = len(delta.new)
        for tried in range(1, _MAX_SHRINKS + 1):
            request, sections = await self._build_request(delta, config)
            covers = request.covers
            if not request.learnable:
                return ExtractionResult(findings=(), covers=covers)
            try:
                heard = await self._ask_with_retry(request)
            except ModelOverflow as error:
                config = _shrink_config(config, error.window)
            except _TRANSIENT_ERRORS:
                raise
            except ModelError as error:
                return await self.rules.extract(
                    delta, covers, note=_fallback_note(type(error).__name__), requests=tried
                )
            else:
                return await self._build_result(delta, request, sections, heard)
        return await self.rules.extract(
            delta, covers, note=_fallback_note(ModelOverflow.__name__), requests=_MAX_SHRINKS
        )

    def _count_within_limit(self, delta: MessageDelta) -> int:
        """Return more new messages than one request could take, so that no more of a long delta is read than that."""
        room = self.config.max_input_tokens * _CHARS_PER_TOKEN
        for count, message in enumerate(delta.new, start=1):
            size = len(message.text)
            room -= _MIN_ITEM_CHARS + (min(size, self.config.head_tail) if self.config.head_tail else size)
            if room < 0:
                return count
        return len(delta.new)

    async def _build_request(
        self, delta: MessageDelta, config: FlushConfig
    ) -> tuple[LessonsRequest, Sequence[ExtractionSection]]:
        known = await load_known_memory(
            self.files, self.clock.today(), reference=config.reference, most_tokens=config.max_input_tokens
        )
        context, new = await run_sync(
            lambda: (delta.apply_processing(delta.context), delta.apply_processing(delta.new))
        )
        studied = await run_sync(delta.build_section_input, len(new))
        sections = [section for make in self.rules.sections if (section := await make(studied)) is not None]
        material = RequestMaterial(new=new, context=context, known=known, sections=sections)
        return await run_sync(partial(build_request, material, config, window=self.model.window)), sections

    async def _ask_with_retry(self, request: LessonsRequest) -> _ModelAnswer:
        """Ask, and once more when the answer can't be used. Raises `ModelError`."""
        heard = await self._ask(request)
        if not heard.flaw:
            return heard
        again = await self._ask(request.retry(heard.flaw))
        return replace(again, requests=2, parts=again.parts or heard.parts)

    async def _ask(self, request: LessonsRequest) -> _ModelAnswer:
        answer = await self._call_model(request)
        if answer is None:
            return _ModelAnswer(parts={}, requests=1, flaw=_UNREADABLE_FLAW)
        lessons = await run_sync(partial(parse_lessons, answer.lessons, request.learnable, around=request.grounding))
        flaw = "" if lessons is not None else _UNGROUNDED_FLAW if isinstance(answer.lessons, list) else _UNREADABLE_FLAW
        return _ModelAnswer(lessons=lessons, parts=dict(answer.parts), requests=1, flaw=flaw)

    async def _call_model(self, request: LessonsRequest) -> LessonsAnswer | None:
        """Return what the model said, in time; a form that it did not keep to is no reason not to read it."""
        asked = [Message(role="user", parts=(Text(text=request.text),))]
        try:
            with anyio.fail_after(self.config.flush_seconds):
                reply = await self.model.complete(asked, schema=request.schema)
        except TimeoutError as error:
            raise ModelTimeout("The model did not answer in time.") from error
        except ReplyInvalid as error:
            return await run_sync(parse_lessons_answer, error.said)
        said = reply.message.text or (dumps(reply.parsed) if reply.parsed is not None else "")
        return await run_sync(parse_lessons_answer, said)

    async def _build_result(
        self, delta: MessageDelta, request: LessonsRequest, sections: Sequence[ExtractionSection], heard: _ModelAnswer
    ) -> ExtractionResult:
        if heard.lessons is not None:
            tools = await run_sync(self.rules.extract_of_tools, delta, request.covers)
            return ExtractionResult(
                findings=(*heard.lessons, *tools),
                covers=request.covers,
                sections=sections,
                answers=heard.parts,
                requests=heard.requests,
            )
        note = _fallback_note("the model's answer could not be used")
        found = await self.rules.extract(delta, request.covers, note=note, requests=heard.requests)
        return replace(found, sections=sections, answers=heard.parts)


def _shrink_config(config: FlushConfig, window: int | None) -> FlushConfig:
    """Return the configuration with half of the room, or half of the window that the provider told if that is less."""
    most = config.max_input_tokens if window is None else min(window, config.max_input_tokens)
    return replace(config, max_input_tokens=max(config.min_input_tokens, most // 2))


def _fallback_note(why: str) -> str:
    return f"the rules extracted: {why}"
