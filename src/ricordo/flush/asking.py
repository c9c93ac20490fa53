"""Extraction by a model: one request for each part of what is new, and the rules where a model can't do it.

Invariant: whatever the model does, every message is extracted: what may pass is raised, for the inbox to try again;
what won't is left to the rules at once. No lock is held and nothing is written while the model works.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

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
)
from ricordo.files import FileStore
from ricordo.flush.answer import LessonsAnswer, parse_lessons_answer
from ricordo.flush.config import FlushConfig
from ricordo.flush.extraction import MessageDelta, ExtractionResult, RuleExtractor
from ricordo.flush.lessons import parse_lessons
from ricordo.flush.reference import load_known_memory
from ricordo.flush.request import LessonsRequest, RequestMaterial, build_request
from ricordo.flush.section import ExtractionSection
from ricordo.flush.types import Finding
from ricordo.messages import JsonValue, Message, Text
from ricordo.messages.jsontext import dumps
from ricordo.models import ChatModel

__all__ = ["ModelExtractor"]

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
