"""Extractors: create findings from new messages, by rules or by a model, with the rules as the fallback.

Invariants: nothing is written here and no lock is held, so a result can be discarded and computed again. Every message
is extracted, whatever the model does: transient errors are raised, so that the inbox retries; for all other errors the
rules extract at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import field, replace
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
from ricordo.extraction.answer import LessonsAnswer, check_lessons, parse_lessons_answer
from ricordo.extraction.config import FlushConfig
from ricordo.extraction.contract import ExtractionSection, Finding, SectionFactory, SectionInput
from ricordo.extraction.known_memory import load_known_memory
from ricordo.extraction.preprocessing import ProcessedMessages, ProcessingConfig, process_messages
from ricordo.extraction.request import LessonsRequest, RequestMaterial, build_request
from ricordo.extraction.tool_lessons import extract_tool_lessons
from ricordo.language.acts import SignalDetector, default_detector
from ricordo.lazy import dataclass
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
"""Creates findings without a model. It is slow for many messages, so it runs in a thread."""


@dataclass(frozen=True)
class MessageDelta:
    """The new messages of a session in its transcript, with some messages before them. `scope` is their scope.

    `signals` were detected when the messages were recorded. `trace` is the trace of the last turn that requested the
    flush. `detector` detects further signals.
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
        """The parts of all these messages that extraction reads. Slow for many messages: call it first in a thread."""
        return process_messages(
            [*self.context, *self.new], config=ProcessingConfig(both_sides=False, detector=self.detector)
        )

    def take_first(self, count: int) -> "MessageDelta":
        """Return a copy with only the first `count` new messages."""
        return self if count >= len(self.new) else replace(self, new=self.new[:count])

    def apply_processing(self, messages: Sequence[Message]) -> list[Message]:
        """Return `messages` as extraction reads them; a dropped message stays in place without its parts."""
        processed = {message.id: message for message in self.processed_messages.messages}
        return [processed.get(message.id, replace(message, parts=())) for message in messages]

    def build_section_input(self, covers: int, findings: Sequence[Finding] = ()) -> SectionInput:
        """Return the input of a section for the first `covers` new messages."""
        messages = [message for message in self.apply_processing(self.new[:covers]) if message.parts]
        return SectionInput(
            agent=self.agent,
            session=self.session,
            scope=self.scope,
            messages=messages,
            findings=tuple(findings),
            signals=self.signals | self.processed_messages.signals,
            trace=self.trace,
            recorded=(*self.context, *self.new[:covers]),
        )


@dataclass(frozen=True, kw_only=True)
class ExtractionResult:
    """The findings of the first `covers` new messages, and the sections that still have to accept their part.

    `requests` counts the requests to a model, `refused` says why notes of a model were refused, a word for each. `note`
    says why the rules extracted instead of the model; empty if they did not.
    """

    findings: Sequence[Finding]
    covers: int
    sections: Sequence[ExtractionSection] = ()
    answers: dict[str, JsonValue] = field(default_factory=dict)
    requests: int = 0
    refused: tuple[str, ...] = ()
    note: str = ""


class Extractor(Protocol):
    """Creates findings of the first new messages, as many as it reads at once; at least of one."""

    async def __call__(self, delta: MessageDelta) -> ExtractionResult:
        """Return the findings of these messages. Raises `ModelError` if a later retry may help."""
        ...


@dataclass(frozen=True, kw_only=True)
class RuleExtractor:
    """Extraction without a model. It reads all new messages."""

    rules: RuleFunction
    sections: Sequence[SectionFactory] = ()

    async def __call__(self, delta: MessageDelta) -> ExtractionResult:
        """Return the findings of the rules."""
        return await self.extract(delta, len(delta.new))

    async def extract(self, delta: MessageDelta, covers: int, *, note: str = "", requests: int = 0) -> ExtractionResult:
        """Return the findings of the rules in the first `covers` new messages."""
        # Nothing is written yet, so a cancelled caller need not wait for the thread.
        findings = await run_sync(self._find, delta, covers, abandon_on_cancel=True)
        sections = await self.build_sections(delta, covers)
        return ExtractionResult(findings=findings, covers=covers, sections=sections, note=note, requests=requests)

    async def build_sections(self, delta: MessageDelta, covers: int) -> list[ExtractionSection]:
        """Return the sections that also extract from the first `covers` new messages."""
        if not self.sections:
            return []
        section_input = await run_sync(delta.build_section_input, covers)
        return [section for make in self.sections if (section := await make(section_input)) is not None]

    def _find(self, delta: MessageDelta, covers: int) -> Sequence[Finding]:
        messages = delta.apply_processing([*delta.context, *delta.new[:covers]])
        findings = self.rules([message for message in messages if message.parts])
        lessons = self.extract_of_tools(delta, covers)
        explained_ids = {lesson.message_ids[0] for lesson in lessons}
        return [*(each for each in findings if each.message_ids[0] not in explained_ids), *lessons]

    @staticmethod
    def extract_of_tools(delta: MessageDelta, covers: int) -> Sequence[Finding]:
        """Return the lessons of failed and successful tool calls in the first `covers` new messages."""
        new_ids = {message.id for message in delta.new[:covers]}
        lessons = extract_tool_lessons([*delta.context, *delta.new[:covers]])
        return [lesson for lesson in lessons if not new_ids.isdisjoint(lesson.message_ids)]


async def accept_sections(extracted: ExtractionResult, delta: MessageDelta) -> list[str]:
    """Let each section accept its part, and return the errors in words for events."""
    errors: list[str] = []
    if not extracted.sections:
        return errors
    section_input = await run_sync(delta.build_section_input, extracted.covers, extracted.findings)
    for section in extracted.sections:
        try:
            await section.accept(extracted.answers.get(section.name), section_input)
        except RicordoError as error:
            errors.append(f"{section.name} was not kept: {type(error).__name__}")
    return errors


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
    """The result of a request: the lessons, None if unusable, and the parts of other sections."""

    lessons: tuple[Finding, ...] | None = None
    parts: dict[str, JsonValue]
    requests: int
    flaw: str = ""
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ModelExtractor:
    """Requests lessons from `model`; `rules` are the fallback."""

    model: ChatModel
    config: FlushConfig
    rules: RuleExtractor
    files: FileStore
    clock: Clock

    async def __call__(self, delta: MessageDelta) -> ExtractionResult:
        """Return the lessons of as many new messages as fit one request.

        Raises: ModelRateLimited, ModelTimeout and ModelUnavailable, which are transient.
        """
        config, delta = self.config, delta.take_first(self._count_within_limit(delta))
        covers = len(delta.new)
        for attempt in range(1, _MAX_SHRINKS + 1):
            request, sections = await self._build_request(delta, config)
            covers = request.covers
            if not request.learnable:
                return ExtractionResult(findings=(), covers=covers)
            try:
                answer = await self._ask_with_retry(request)
            except ModelOverflow as error:
                config = _shrink_config(config, error.window)
            except _TRANSIENT_ERRORS:
                raise
            except ModelError as error:
                return await self.rules.extract(
                    delta, covers, note=_fallback_note(type(error).__name__), requests=attempt
                )
            else:
                return await self._build_result(delta, request, sections, answer)
        return await self.rules.extract(
            delta, covers, note=_fallback_note(ModelOverflow.__name__), requests=_MAX_SHRINKS
        )

    def _count_within_limit(self, delta: MessageDelta) -> int:
        """Return an upper bound of the new messages in one request, so that no more of a long delta is read."""
        remaining_chars = self.config.max_input_tokens * _CHARS_PER_TOKEN
        for count, message in enumerate(delta.new, start=1):
            size = len(message.text)
            remaining_chars -= _MIN_ITEM_CHARS + (min(size, self.config.head_tail) if self.config.head_tail else size)
            if remaining_chars < 0:
                return count
        return len(delta.new)

    async def _build_request(
        self, delta: MessageDelta, config: FlushConfig
    ) -> tuple[LessonsRequest, Sequence[ExtractionSection]]:
        known_memory = await load_known_memory(
            self.files, self.clock.today(), reference=config.reference, max_tokens=config.max_input_tokens
        )
        context, new = await run_sync(
            lambda: (delta.apply_processing(delta.context), delta.apply_processing(delta.new))
        )
        section_input = await run_sync(delta.build_section_input, len(new))
        sections = [section for make in self.rules.sections if (section := await make(section_input)) is not None]
        material = RequestMaterial(new=new, context=context, known=known_memory, sections=sections)
        return await run_sync(partial(build_request, material, config, window=self.model.window)), sections

    async def _ask_with_retry(self, request: LessonsRequest) -> _ModelAnswer:
        """Send the request, and once more if the answer is unusable. Raises `ModelError`."""
        answer = await self._ask(request)
        if not answer.flaw:
            return answer
        retried = await self._ask(request.retry(answer.flaw))
        return replace(retried, requests=2, parts=retried.parts or answer.parts)

    async def _ask(self, request: LessonsRequest) -> _ModelAnswer:
        answer = await self._call_model(request)
        if answer is None:
            return _ModelAnswer(parts={}, requests=1, flaw=_UNREADABLE_FLAW)
        checked = await run_sync(partial(check_lessons, answer.lessons, request.learnable, context=request.grounding))
        lessons = checked.lessons
        flaw = "" if lessons is not None else _UNGROUNDED_FLAW if isinstance(answer.lessons, list) else _UNREADABLE_FLAW
        return _ModelAnswer(lessons=lessons, parts=dict(answer.parts), requests=1, flaw=flaw, refused=checked.refused)

    async def _call_model(self, request: LessonsRequest) -> LessonsAnswer | None:
        """Return the model's answer within the time limit. An answer in an invalid form is parsed anyway."""
        messages = [Message(role="user", parts=(Text(text=request.text),))]
        try:
            with anyio.fail_after(self.config.flush_seconds):
                reply = await self.model.complete(messages, schema=request.schema)
        except TimeoutError as error:
            raise ModelTimeout("The model did not answer in time.") from error
        except ReplyInvalid as error:
            return await run_sync(parse_lessons_answer, error.said)
        text = reply.message.text or (dumps(reply.parsed) if reply.parsed is not None else "")
        return await run_sync(parse_lessons_answer, text)

    async def _build_result(
        self, delta: MessageDelta, request: LessonsRequest, sections: Sequence[ExtractionSection], answer: _ModelAnswer
    ) -> ExtractionResult:
        if answer.lessons is not None:
            tool_lessons = await run_sync(self.rules.extract_of_tools, delta, request.covers)
            noted_ids = {name for each in answer.lessons if each.kind == "lesson" for name in each.message_ids}
            return ExtractionResult(
                findings=(*answer.lessons, *(each for each in tool_lessons if noted_ids.isdisjoint(each.message_ids))),
                covers=request.covers,
                sections=sections,
                answers=answer.parts,
                requests=answer.requests,
                refused=answer.refused,
            )
        note = _fallback_note("the model's answer could not be used")
        result = await self.rules.extract(delta, request.covers, note=note, requests=answer.requests)
        return replace(result, sections=sections, answers=answer.parts, refused=answer.refused)


def _shrink_config(config: FlushConfig, window: int | None) -> FlushConfig:
    """Return the configuration with half of the room, or half of the provider's reported window if that is less."""
    max_tokens = config.max_input_tokens if window is None else min(window, config.max_input_tokens)
    return replace(config, max_input_tokens=max(config.min_input_tokens, max_tokens // 2))


def _fallback_note(reason: str) -> str:
    return f"the rules extracted: {reason}"
