"""Who writes the summary: a model, or nobody but the rules of the digest.

Invariant: what comes back is a summary of these messages and never an error, whatever the model does. What was said
goes to the model as data in a block that it can't leave.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

import anyio
from anyio.to_thread import run_sync

from ricordo.clock import Clock, SystemClock
from ricordo.compaction.acceptance import SummaryBounds, SummaryVerdict, accept_additions, accept_whole
from ricordo.compaction.answer import REPLY_SCHEMA, SummaryReply, parse_reply
from ricordo.compaction.breaker import CircuitBreaker
from ricordo.compaction.cancelled import unwrap_cancellation
from ricordo.compaction.config import CompactionConfig
from ricordo.compaction.contract import CompactionSummary
from ricordo.compaction.digest import build_digest
from ricordo.compaction.plan import count_message_tokens
from ricordo.compaction.record import ConversationRecord, build_record
from ricordo.compaction.rendering import split_into_batches
from ricordo.compaction.request import SummaryRequest
from ricordo.errors import ModelError, ModelOverflow, ReplyInvalid
from ricordo.flush.lessons import parse_lessons
from ricordo.flush.types import Finding
from ricordo.guard import Redactor
from ricordo.messages import Message, Text
from ricordo.models import ChatModel
from ricordo.workspace.redaction import redact_messages

__all__ = ["DigestSummarizer", "ModelSummarizer"]

_DEFAULT_WINDOW = 32_000
_MIN_ROOM = 500
_MAX_BATCHES = 8
_ROOM_SHARE = 0.8
_MAX_OVERLENGTH_FACTOR = 4
_LESSONS_TOKENS = 1_000
_UNUSABLE_LESSONS = "what the model noted to remember could not be used"


class DigestSummarizer:
    """The summary without a model: the digest."""

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        limit_tokens: int,
        most_tokens: int | None = None,
        focus: str = "",
        pending: Collection[str] = (),
    ) -> CompactionSummary:
        """Return the digest of `messages` in at most `limit_tokens` tokens; it learns nothing and has no focus."""
        least = limit_tokens if most_tokens is None else max(1, min(limit_tokens, most_tokens))
        return CompactionSummary(text=await run_sync(partial(build_digest, messages, limit_tokens=least)))


@dataclass(frozen=True, kw_only=True)
class _PartResult:
    """What came of one part of the messages, or of all; `lessons` are None where they were not asked or not usable."""

    verdict: SummaryVerdict
    lessons: tuple[Finding, ...] | None = None


class ModelSummarizer:
    """The summary that a model writes; the digest where it can't.

    The model adds to earlier summaries and says which of their lines are outdated; code keeps the others as they are.
    One request, when the messages fit the model's window; else one for each part, each adding to what the parts before
    it gave. An answer that is no summary is asked for once more. After `config.breaker` summaries in a row for which
    the model gave nothing usable it is not asked for `config.breaker_seconds`, but for a person who names a focus.
    """

    def __init__(
        self,
        model: ChatModel,
        config: CompactionConfig | None = None,
        *,
        fell_back: Callable[[str], None] | None = None,
        clock: Clock | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        """Ask `model`. `fell_back` is told why, when the digest takes the summary's place.

        The model is shown marks in the place of the secrets that `redactor` finds, and its answer is held against that.
        """
        self._model = model
        self._config = config or CompactionConfig()
        self._on_fallback = fell_back
        self._redactor = redactor
        self._breaker = CircuitBreaker(self._config.breaker, self._config.breaker_seconds, clock or SystemClock())

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        limit_tokens: int,
        most_tokens: int | None = None,
        focus: str = "",
        pending: Collection[str] = (),
    ) -> CompactionSummary:
        """Return the model's summary of `messages`, else their digest in at most `limit_tokens` tokens.

        What can be learned from the messages in `pending` is asked for in the same request, if `config.combined`.
        """
        most = most_tokens
        if most is None:
            most = max(
                _MAX_OVERLENGTH_FACTOR * limit_tokens,
                await run_sync(lambda: sum(count_message_tokens(messages, 1.0)) // 2),
            )
        bounds = SummaryBounds(limit=limit_tokens, most=most)
        lessons: tuple[Finding, ...] | None = None
        notes: tuple[str, ...] = ()
        if (why := self._breaker.open_reason()) and not focus:
            why = f"the model is not asked for summaries: {why}"
        else:
            learned = pending if self._config.combined else ()
            record = await run_sync(self._build_record, messages, learned)
            found = await self._try_model(record, bounds, focus)
            lessons, why = found.lessons, found.verdict.flaw
            notes = (_UNUSABLE_LESSONS,) if record.to_learn and lessons is None else ()
            if not why:
                return CompactionSummary(text=found.verdict.text, lessons=lessons, notes=notes)
        if self._on_fallback:
            self._on_fallback(why)
        rules = await DigestSummarizer()(messages, limit_tokens=limit_tokens, most_tokens=most_tokens)
        return CompactionSummary(text=rules.text, lessons=lessons, notes=(f"rules wrote the summary: {why}", *notes))

    @property
    def _uses_sections(self) -> bool:
        return self._config.summary_prompt is None

    def _build_record(self, messages: Sequence[Message], pending: Collection[str]) -> ConversationRecord:
        shown = redact_messages(messages, self._redactor) if self._redactor else messages
        return build_record(shown, pending, sectioned=self._uses_sections)

    async def _try_model(self, record: ConversationRecord, bounds: SummaryBounds, focus: str) -> _PartResult:
        """Return what came of asking the model, whatever happens to it, and let the breaker know."""
        try:
            found = await self._summarize(record, bounds, focus)
        except (ModelError, TimeoutError) as error:
            found = _PartResult(verdict=SummaryVerdict(flaw=_describe_error(error)))
        if found.verdict.flaw:
            self._breaker.record_failure(found.verdict.flaw)
        else:
            self._breaker.record_success()
        return found

    async def _summarize(self, record: ConversationRecord, bounds: SummaryBounds, focus: str) -> _PartResult:
        request = SummaryRequest(
            prompt=self._config.summary_prompt, limit=bounds.limit, focus=focus, lessons=bool(record.to_learn)
        )
        room = self._messages_room(request)
        try:
            return await self._summarize_parts(record, request, room, bounds)
        except ModelOverflow as overflow:
            room = max(_MIN_ROOM, min(room, overflow.window or room) // 2)
            return await self._summarize_parts(record, request, room, bounds)

    def _messages_room(self, request: SummaryRequest) -> int:
        """What the messages of one request may take beside the prompt, an earlier extract, and the answer."""
        answer = request.limit + (_LESSONS_TOKENS if request.lessons else 0)
        taken = request.frame_tokens + request.max_earlier_tokens + answer
        return max(_MIN_ROOM, int(((self._model.window or _DEFAULT_WINDOW) - taken) * _ROOM_SHARE))

    async def _summarize_parts(
        self, record: ConversationRecord, request: SummaryRequest, room: int, bounds: SummaryBounds
    ) -> _PartResult:
        """Sum up part after part; the lessons count only where every message to learn from was shown."""
        parts = await run_sync(split_into_batches, record.items, room, _MAX_BATCHES)
        unseen = record.to_learn.keys() - {item.id for part in parts for item in part}
        lessons: tuple[Finding, ...] | None = () if record.to_learn and not unseen else None
        verdict = SummaryVerdict(text=record.earlier)
        for at, part in enumerate(parts, 1):
            own = [record.to_learn[item.id] for item in part if item.id and item.id in record.to_learn]
            learn = own if lessons is not None else []
            asking = replace(request, items=tuple(part), earlier=verdict.text, lessons=bool(learn))
            found = await self._summarize_part(asking, record, learn, bounds)
            if learn:
                lessons = (*lessons, *found.lessons) if lessons is not None and found.lessons is not None else None
            verdict = found.verdict
            if verdict.flaw:
                return _PartResult(verdict=verdict, lessons=lessons if at == len(parts) else None)
        return _PartResult(verdict=verdict, lessons=lessons)

    async def _summarize_part(
        self, request: SummaryRequest, record: ConversationRecord, learn: Sequence[Message], bounds: SummaryBounds
    ) -> _PartResult:
        """Ask for one part, twice at most. Raises what the first request raises: `ModelError`, `TimeoutError`."""
        lessons: tuple[Finding, ...] | None = None
        verdict = SummaryVerdict()
        for second in (False, True):
            asking = replace(request, lessons=bool(learn) and lessons is None, flaw=verdict.flaw)
            try:
                answer = await self._ask_model(asking)
            except (ModelError, TimeoutError) as error:
                if not second:
                    raise
                return _PartResult(
                    verdict=SummaryVerdict(flaw=f"{verdict.flaw}, and then {_describe_error(error)}"), lessons=lessons
                )
            if asking.lessons:
                lessons = await run_sync(partial(parse_lessons, answer.lessons, learn, around=record.text))
            take = accept_additions if self._uses_sections else accept_whole
            verdict = await run_sync(take, answer, record, request.earlier, bounds)
            if not verdict.flaw:
                break
        return _PartResult(verdict=verdict, lessons=lessons)

    async def _ask_model(self, request: SummaryRequest) -> SummaryReply:
        """Return what the model said, in time; a form that it did not keep to is no reason not to read it."""
        text = await run_sync(lambda: request.text)
        asked = [Message(role="user", parts=(Text(text=text),))]
        with anyio.fail_after(self._config.summary_seconds):
            try:
                with unwrap_cancellation():
                    reply = await self._model.complete(asked, schema=REPLY_SCHEMA if request.lessons else None)
            except ReplyInvalid as error:
                if not error.said:
                    raise
                return parse_reply(error.said, stop="length" if error.cut_off else "")
        return parse_reply(reply.message.text, stop=reply.stop)


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
