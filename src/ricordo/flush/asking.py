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
from ricordo.flush.answer import FlushAnswer, answer_in
from ricordo.flush.config import FlushConfig
from ricordo.flush.extraction import Delta, Extracted, RulesExtraction
from ricordo.flush.lessons import lessons_in
from ricordo.flush.reference import known_memory
from ricordo.flush.request import LessonsRequest, Material, first_request
from ricordo.flush.section import Section
from ricordo.flush.types import Finding
from ricordo.messages import JsonValue, Message, Text
from ricordo.messages.jsontext import dumps
from ricordo.models import ChatModel

__all__ = ["ModelExtraction"]

_PASSING = (ModelRateLimited, ModelTimeout, ModelUnavailable)
_UNREADABLE = "it is no whole JSON object with the part `lessons`"
_UNFOUNDED = "no note holds: copy each `quote` exactly from one new item, and names and numbers as they stand there"
_MOST_SHRUNK = 3
_CHARACTERS_A_TOKEN = 8
_LEAST_ITEM = 100


@dataclass(frozen=True, kw_only=True)
class _Heard:
    """What came of a request: the lessons, None when they could not be used, and the parts of other sections."""

    lessons: tuple[Finding, ...] | None = None
    parts: dict[str, JsonValue]
    requests: int
    flaw: str = ""


@dataclass(frozen=True, kw_only=True)
class ModelExtraction:
    """Asks `model` for lessons; `rules` do what it can't."""

    model: ChatModel
    config: FlushConfig
    rules: RulesExtraction
    files: FileStore
    clock: Clock

    async def __call__(self, delta: Delta) -> Extracted:
        """Return the lessons of as many new messages as one request takes.

        Raises: ModelRateLimited, ModelTimeout and ModelUnavailable, which may pass.
        """
        config, delta = self.config, delta.first(self._most(delta))
        covers = len(delta.new)
        for tried in range(1, _MOST_SHRUNK + 1):
            request, sections = await self._request(delta, config)
            covers = request.covers
            if not request.learn:
                return Extracted(findings=(), covers=covers)
            try:
                heard = await self._heard(request)
            except ModelOverflow as error:
                config = _smaller(config, error.window)
            except _PASSING:
                raise
            except ModelError as error:
                return await self.rules.extracted(delta, covers, note=_told(type(error).__name__), requests=tried)
            else:
                return await self._taken(delta, request, sections, heard)
        return await self.rules.extracted(delta, covers, note=_told(ModelOverflow.__name__), requests=_MOST_SHRUNK)

    def _most(self, delta: Delta) -> int:
        """Return more new messages than one request could take, so that no more of a long delta is read than that."""
        room = self.config.max_input_tokens * _CHARACTERS_A_TOKEN
        for count, message in enumerate(delta.new, start=1):
            size = len(message.text)
            room -= _LEAST_ITEM + (min(size, self.config.head_tail) if self.config.head_tail else size)
            if room < 0:
                return count
        return len(delta.new)

    async def _request(self, delta: Delta, config: FlushConfig) -> tuple[LessonsRequest, Sequence[Section]]:
        known = await known_memory(
            self.files, self.clock.today(), reference=config.reference, most_tokens=config.max_input_tokens
        )
        context, new = await run_sync(lambda: (delta.shown(delta.context), delta.shown(delta.new)))
        studied = await run_sync(delta.studied, len(new))
        sections = [section for make in self.rules.sections if (section := await make(studied)) is not None]
        material = Material(new=new, context=context, known=known, sections=sections)
        return await run_sync(partial(first_request, material, config, window=self.model.window)), sections

    async def _heard(self, request: LessonsRequest) -> _Heard:
        """Ask, and once more when the answer can't be used. Raises `ModelError`."""
        heard = await self._asked(request)
        if not heard.flaw:
            return heard
        again = await self._asked(request.again(heard.flaw))
        return replace(again, requests=2, parts=again.parts or heard.parts)

    async def _asked(self, request: LessonsRequest) -> _Heard:
        answer = await self._answer(request)
        if answer is None:
            return _Heard(parts={}, requests=1, flaw=_UNREADABLE)
        lessons = await run_sync(partial(lessons_in, answer.lessons, request.learn, around=request.said))
        flaw = "" if lessons is not None else _UNFOUNDED if isinstance(answer.lessons, list) else _UNREADABLE
        return _Heard(lessons=lessons, parts=dict(answer.parts), requests=1, flaw=flaw)

    async def _answer(self, request: LessonsRequest) -> FlushAnswer | None:
        """Return what the model said, in time; a form that it did not keep to is no reason not to read it."""
        asked = [Message(role="user", parts=(Text(text=request.text),))]
        try:
            with anyio.fail_after(self.config.flush_seconds):
                reply = await self.model.complete(asked, schema=request.form)
        except TimeoutError as error:
            raise ModelTimeout("The model did not answer in time.") from error
        except ReplyInvalid as error:
            return await run_sync(answer_in, error.said)
        said = reply.message.text or (dumps(reply.parsed) if reply.parsed is not None else "")
        return await run_sync(answer_in, said)

    async def _taken(
        self, delta: Delta, request: LessonsRequest, sections: Sequence[Section], heard: _Heard
    ) -> Extracted:
        if heard.lessons is not None:
            tools = await run_sync(self.rules.of_tools, delta, request.covers)
            return Extracted(
                findings=(*heard.lessons, *tools),
                covers=request.covers,
                sections=sections,
                answers=heard.parts,
                requests=heard.requests,
            )
        note = _told("the model's answer could not be used")
        found = await self.rules.extracted(delta, request.covers, note=note, requests=heard.requests)
        return replace(found, sections=sections, answers=heard.parts)


def _smaller(config: FlushConfig, window: int | None) -> FlushConfig:
    """Return the configuration with half of the room, or half of the window that the provider told if that is less."""
    most = config.max_input_tokens if window is None else min(window, config.max_input_tokens)
    return replace(config, max_input_tokens=max(config.least_tokens, most // 2))


def _told(why: str) -> str:
    return f"the rules extracted: {why}"
