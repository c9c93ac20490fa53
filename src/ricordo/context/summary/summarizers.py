"""Summarizers: a model whose summary is checked by code, or the digest, which needs no model.

After several failures in a row the model is not called for some time.

Invariants: the result is a summary of these messages and never an error text, whatever the model does. An empty text, a
text without words and a text with invented quotes are rejected.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial

import anyio
from anyio.to_thread import run_sync

from ricordo.clock import Clock, SystemClock
from ricordo.concurrency import unwrap_cancellation
from ricordo.context.config import CompactionConfig
from ricordo.context.contract import CompactionSummary
from ricordo.context.plan import count_message_tokens
from ricordo.context.summary.digest import build_digest
from ricordo.context.summary.request import (
    REPLY_SCHEMA,
    ConversationRecord,
    SummaryReply,
    SummaryRequest,
    build_record,
    has_valid_quotes,
    normalize_quote,
    parse_reply,
    split_into_batches,
)
from ricordo.context.summary.sections import (
    SummarySections,
    check_next_steps,
    find_missing_headings,
    find_new_lines,
    fit_sections,
    parse_leniently,
    parse_sections,
    remove_lines,
    render_sections,
    split_outdated,
)
from ricordo.errors import ModelError, ModelOverflow, ReplyInvalid
from ricordo.extraction.answer import parse_lessons
from ricordo.extraction.contract import Finding
from ricordo.guard import Redactor, has_secret
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages import Message, Text
from ricordo.messages.tokens import estimate_text
from ricordo.models import ChatModel
from ricordo.workspace.redaction import redact_message, redact_messages

__all__ = [
    "CircuitBreaker",
    "DigestSummarizer",
    "ModelSummarizer",
    "SummaryBounds",
    "SummaryVerdict",
    "accept_additions",
    "accept_whole",
    "find_flaw",
]


_ERROR_TEXT = lazy_compile(
    r"\W{0,3}(?:"
    r"(?:internal (?:server )?)?error(?:\s*\d{3})?\s*[:!.]"
    r"|\w*(?:Error|Exception|Timeout|Unavailable|RateLimited|Refused)\b\s*[:(]"
    r"|traceback \(most recent call last\)"
    r"|(?:http )?[45]\d\d\b[^\n]{0,60}\b(?:error|unavailable|gateway|unauthorized|too many requests|not found)"
    r"|(?:rate limit|quota|context length|maximum context)[^\n]{0,40}\bexceeded"
    r"|(?:the )?(?:summary|summarization|summarisation|request|compaction) (?:could not|failed|was not)\b"
    r"|(?:failed|unable) to (?:summari[sz]e|generate|create|produce)\b"
    r"|(?:i['’]m |i am )?(?:sorry|afraid)\b[^\n]{0,40}\b(?:can(?:no|['’])t|unable|not able)"
    r"|i (?:can(?:no|['’])t|am unable to|am not able to) (?:help|assist|summari[sz]e|comply|do)"
    r"|<!doctype html|<html"
    r")",
    re.IGNORECASE,
)
_STOP_FLAWS = {"refused": "it was refused", "length": "it was cut off", "window": "it was cut off"}
_TOO_LONG_FLAW = "it is too long"
_MISQUOTED_FLAW = "it quotes words that nobody said"
_WORD_CHAR = lazy_compile(r"[^\W_]")


@dataclass(frozen=True, kw_only=True)
class SummaryBounds:
    """The target length (`limit`) and the maximum length (`max_tokens`) of a summary, in tokens."""

    limit: int
    max_tokens: int


@dataclass(frozen=True, kw_only=True)
class SummaryVerdict:
    """The summary from an answer, or the `flaw` that makes it unusable."""

    text: str = ""
    flaw: str = ""


def accept_whole(
    answer: SummaryReply, record: ConversationRecord, earlier: str, bounds: SummaryBounds
) -> SummaryVerdict:
    """Accept an answer that is the whole summary, as custom prompts request it."""
    text = answer.summary.strip()
    flaw = _STOP_FLAWS.get(answer.stop, "") or find_flaw(text)
    if not flaw and estimate_text(text) > bounds.max_tokens:
        flaw = _TOO_LONG_FLAW
    if not flaw and not has_valid_quotes(text, f"{record.text} {normalize_quote(earlier)}"):
        flaw = _MISQUOTED_FLAW
    return SummaryVerdict(flaw=flaw) if flaw else SummaryVerdict(text=text)


def accept_additions(
    answer: SummaryReply, record: ConversationRecord, earlier: str, bounds: SummaryBounds
) -> SummaryVerdict:
    """Return the `earlier` summary with the additions of an answer, and without the lines it marks as outdated."""
    text, labels = split_outdated(answer.summary)
    flaw, new = _STOP_FLAWS.get(answer.stop, "") or find_flaw(text), parse_sections(text)
    if not flaw and new is None:
        flaw = f"the section {find_missing_headings(text)[0]} is missing"
    elif not flaw and estimate_text(text) > bounds.max_tokens:
        flaw = _TOO_LONG_FLAW
    elif not flaw and new and not has_valid_quotes(_join_lines(new), f"{record.text} {normalize_quote(earlier)}"):
        flaw = _MISQUOTED_FLAW
    if flaw or new is None:
        return SummaryVerdict(flaw=flaw)
    remaining = remove_lines(parse_leniently(earlier), labels)
    sections = fit_sections(
        remaining,
        find_new_lines(remaining, check_next_steps(new, record.citations)),
        limit=bounds.limit,
        max_tokens=bounds.max_tokens,
    )
    text = render_sections(sections)
    if not sections:
        return SummaryVerdict(flaw="it says nothing")
    return SummaryVerdict(flaw=_TOO_LONG_FLAW) if estimate_text(text) > bounds.max_tokens else SummaryVerdict(text=text)


def find_flaw(text: str) -> str:
    """Return why `text` is not a summary; empty if it is one."""
    if not text.strip():
        return "it is empty"
    if not _WORD_CHAR.search(text):
        return "it holds no words"
    if _ERROR_TEXT.match(text.strip()):
        return "it is the text of an error"
    return ""


def _join_lines(sections: SummarySections) -> str:
    return "\n".join(line for lines in sections.lines for line in lines)


class CircuitBreaker:
    """Counts failures in a row."""

    def __init__(self, failures: int, seconds: float, clock: Clock) -> None:
        """Open after `failures` in a row, for `seconds` from the last one; 0 failures never open it."""
        self._max_failures = failures
        self._seconds = seconds
        self._clock = clock
        self._failures = 0
        self._last_reason = ""
        self._last_failure_at = clock.now()

    def record_failure(self, reason: str) -> None:
        """Count a failure. A failure while it is open, such as a trial, restarts its time."""
        self._failures += 1
        self._last_reason = reason
        self._last_failure_at = self._clock.now()

    def record_success(self) -> None:
        """Forget all failures."""
        self._failures = 0

    def open_reason(self) -> str:
        """Return why the model must not be called now; empty if it may be, or if a trial is due."""
        if not self._max_failures or self._failures < self._max_failures:
            return ""
        # A negative duration means that the clock was set back.
        if not 0 <= (self._clock.now() - self._last_failure_at).total_seconds() < self._seconds:
            return ""
        return (
            f"{self._failures} {'failure' if self._failures == 1 else 'failures'} in a row, the last: "
            f"{self._last_reason}"
        )


_DEFAULT_WINDOW = 32_000
_MIN_ROOM = 500
_MAX_BATCHES = 8
_ROOM_SHARE = 0.8
_MAX_OVERLENGTH_FACTOR = 4
_LESSONS_TOKENS = 1_000
_UNUSABLE_LESSONS = "what the model noted to remember could not be used"


class DigestSummarizer:
    """Summarizes with the digest, without a model."""

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        limit_tokens: int,
        most_tokens: int | None = None,
        focus: str = "",
        pending: Collection[str] = (),
    ) -> CompactionSummary:
        """Return the digest of `messages` in at most `limit_tokens` tokens, without lessons and without `focus`."""
        max_tokens = limit_tokens if most_tokens is None else max(1, min(limit_tokens, most_tokens))
        return CompactionSummary(text=await run_sync(partial(build_digest, messages, limit_tokens=max_tokens)))


@dataclass(frozen=True, kw_only=True)
class _PartResult:
    """The result for one part of the messages, or all; `lessons` is None if not requested or not usable."""

    verdict: SummaryVerdict
    lessons: tuple[Finding, ...] | None = None


class ModelSummarizer:
    """Summarizes with a model, and with the digest if the model fails.

    The model adds to earlier summaries and marks their outdated lines; code keeps the other lines unchanged. There is
    one request if the messages fit the model's window, else one for each part, each adding to the summary so far. An
    unusable answer is retried once. After `config.breaker` failed summaries in a row the model is not called for
    `config.breaker_seconds`, except when a person names a focus.
    """

    def __init__(
        self,
        model: ChatModel,
        config: CompactionConfig | None = None,
        *,
        on_fallback: Callable[[str], None] | None = None,
        clock: Clock | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        """Use `model`. `on_fallback` is called with the reason when the digest replaces the summary.

        The model sees marks in place of the secrets that `redactor` finds, and its answer is checked against that text.
        """
        self._model = model
        self._config = config or CompactionConfig()
        self._on_fallback = on_fallback
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

        If `config.combined`, the same request extracts lessons from the messages in `pending`.
        """
        max_tokens = most_tokens
        if max_tokens is None:
            max_tokens = max(
                _MAX_OVERLENGTH_FACTOR * limit_tokens,
                await run_sync(lambda: sum(count_message_tokens(messages, 1.0)) // 2),
            )
        bounds = SummaryBounds(limit=limit_tokens, max_tokens=max_tokens)
        lessons: tuple[Finding, ...] | None = None
        notes: tuple[str, ...] = ()
        if (reason := self._breaker.open_reason()) and not focus:
            reason = f"the model is not asked for summaries: {reason}"
        else:
            to_learn = pending if self._config.combined else ()
            record = await run_sync(self._build_record, messages, to_learn)
            result = await self._try_model(record, bounds, focus)
            lessons, reason = result.lessons, result.verdict.flaw
            notes = (_UNUSABLE_LESSONS,) if record.learnable and lessons is None else ()
            if not reason:
                return CompactionSummary(text=result.verdict.text, lessons=lessons, notes=notes)
        if self._on_fallback:
            self._on_fallback(reason)
        digest = await DigestSummarizer()(messages, limit_tokens=limit_tokens, most_tokens=most_tokens)
        return CompactionSummary(
            text=digest.text, lessons=lessons, notes=(f"rules wrote the summary: {reason}", *notes)
        )

    @property
    def _uses_sections(self) -> bool:
        return self._config.summary_prompt is None

    def _build_record(self, messages: Sequence[Message], pending: Collection[str]) -> ConversationRecord:
        if self._redactor and has_secret("\n".join(message.id for message in messages)):
            messages = redact_messages(messages, self._redactor)
        return build_record(messages, pending, uses_sections=self._uses_sections, redact=self._redact)

    def _redact(self, message: Message) -> Message:
        return redact_message(message, self._redactor) if self._redactor else message

    async def _try_model(self, record: ConversationRecord, bounds: SummaryBounds, focus: str) -> _PartResult:
        """Return the model's result or its error, and record it in the circuit breaker."""
        try:
            result = await self._summarize(record, bounds, focus)
        except (ModelError, TimeoutError) as error:
            result = _PartResult(verdict=SummaryVerdict(flaw=_describe_error(error)))
        if result.verdict.flaw:
            self._breaker.record_failure(result.verdict.flaw)
        else:
            self._breaker.record_success()
        return result

    async def _summarize(self, record: ConversationRecord, bounds: SummaryBounds, focus: str) -> _PartResult:
        request = SummaryRequest(
            prompt=self._config.summary_prompt, limit=bounds.limit, focus=focus, lessons=bool(record.learnable)
        )
        batch_tokens = self._messages_room(request)
        try:
            return await self._summarize_parts(record, request, batch_tokens, bounds)
        except ModelOverflow as overflow:
            batch_tokens = max(_MIN_ROOM, min(batch_tokens, overflow.window or batch_tokens) // 2)
            return await self._summarize_parts(record, request, batch_tokens, bounds)

    def _messages_room(self, request: SummaryRequest) -> int:
        """Return the tokens of one request left for messages after the prompt, an earlier summary and the answer."""
        answer_tokens = request.limit + (_LESSONS_TOKENS if request.lessons else 0)
        reserved_tokens = request.frame_tokens + request.max_earlier_tokens + answer_tokens
        return max(_MIN_ROOM, int(((self._model.window or _DEFAULT_WINDOW) - reserved_tokens) * _ROOM_SHARE))

    async def _summarize_parts(
        self, record: ConversationRecord, request: SummaryRequest, batch_tokens: int, bounds: SummaryBounds
    ) -> _PartResult:
        """Summarize part by part. Lessons count only if every message to extract from was shown."""
        parts = await run_sync(split_into_batches, record.items, batch_tokens, _MAX_BATCHES)
        record = await run_sync(record.with_shown, parts)
        unseen = record.learnable.keys() - {item.id for part in parts for item in part}
        lessons: tuple[Finding, ...] | None = () if record.learnable and not unseen else None
        verdict = SummaryVerdict(text=record.earlier)
        for number, part in enumerate(parts, 1):
            learnable = [record.learnable[item.id] for item in part if item.id and item.id in record.learnable]
            to_learn = await run_sync(list, map(self._redact, learnable)) if lessons is not None else []
            part_request = replace(request, items=tuple(part), earlier=verdict.text, lessons=bool(to_learn))
            result = await self._summarize_part(part_request, record, to_learn, bounds)
            if to_learn:
                lessons = (*lessons, *result.lessons) if lessons is not None and result.lessons is not None else None
            verdict = result.verdict
            if verdict.flaw:
                return _PartResult(verdict=verdict, lessons=lessons if number == len(parts) else None)
        return _PartResult(verdict=verdict, lessons=lessons)

    async def _summarize_part(
        self, request: SummaryRequest, record: ConversationRecord, to_learn: Sequence[Message], bounds: SummaryBounds
    ) -> _PartResult:
        """Summarize one part with at most two requests.

        Raises: ModelError and TimeoutError of the first request.
        """
        lessons: tuple[Finding, ...] | None = None
        verdict = SummaryVerdict()
        for is_retry in (False, True):
            attempt = replace(request, lessons=bool(to_learn) and lessons is None, flaw=verdict.flaw)
            try:
                answer = await self._ask_model(attempt)
            except (ModelError, TimeoutError) as error:
                if not is_retry:
                    raise
                return _PartResult(
                    verdict=SummaryVerdict(flaw=f"{verdict.flaw}, and then {_describe_error(error)}"), lessons=lessons
                )
            if attempt.lessons:
                lessons = await run_sync(partial(parse_lessons, answer.lessons, to_learn, context=record.text))
            accept = accept_additions if self._uses_sections else accept_whole
            verdict = await run_sync(accept, answer, record, request.earlier, bounds)
            if not verdict.flaw:
                break
        return _PartResult(verdict=verdict, lessons=lessons)

    async def _ask_model(self, request: SummaryRequest) -> SummaryReply:
        """Return the model's answer within the time limit. An answer in an invalid form is parsed anyway."""
        text = await run_sync(lambda: request.text)
        messages = [Message(role="user", parts=(Text(text=text),))]
        with anyio.fail_after(self._config.summary_seconds):
            try:
                with unwrap_cancellation():
                    reply = await self._model.complete(messages, schema=REPLY_SCHEMA if request.lessons else None)
            except ReplyInvalid as error:
                if not error.said:
                    raise
                return parse_reply(error.said, stop="length" if error.cut_off else "")
        return parse_reply(reply.message.text, stop=reply.stop)


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
