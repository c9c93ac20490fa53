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
from ricordo.compaction.acceptance import Bounds, Verdict, taken_in, taken_whole
from ricordo.compaction.answer import FORM, Answer, answer_in
from ricordo.compaction.breaker import Breaker
from ricordo.compaction.cancelled import unwrapped
from ricordo.compaction.config import CompactionConfig
from ricordo.compaction.contract import Summary
from ricordo.compaction.digest import digest
from ricordo.compaction.plan import measured
from ricordo.compaction.record import Record, recorded
from ricordo.compaction.rendering import batches
from ricordo.compaction.request import Request
from ricordo.errors import ModelError, ModelOverflow, ReplyInvalid
from ricordo.flush.lessons import lessons_in
from ricordo.flush.types import Finding
from ricordo.guard import Redactor
from ricordo.messages import Message, Text
from ricordo.models import ChatModel
from ricordo.workspace.redaction import redacted_messages

__all__ = ["DigestSummary", "ModelSummary"]

_UNKNOWN_WINDOW = 32_000
_LEAST_ROOM = 500
_MOST_BATCHES = 8
_MARGIN = 0.8
_TOO_LONG = 4
_LESSONS_TOKENS = 1_000
_UNUSED = "what the model noted to remember could not be used"


class DigestSummary:
    """The summary without a model: the digest."""

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        limit_tokens: int,
        most_tokens: int | None = None,
        focus: str = "",
        pending: Collection[str] = (),
    ) -> Summary:
        """Return the digest of `messages` in at most `limit_tokens` tokens; it learns nothing and has no focus."""
        least = limit_tokens if most_tokens is None else max(1, min(limit_tokens, most_tokens))
        return Summary(text=await run_sync(partial(digest, messages, limit_tokens=least)))


@dataclass(frozen=True, kw_only=True)
class _Part:
    """What came of one part of the messages, or of all; `lessons` are None where they were not asked or not usable."""

    verdict: Verdict
    lessons: tuple[Finding, ...] | None = None


class ModelSummary:
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
        self._fell_back = fell_back
        self._redactor = redactor
        self._breaker = Breaker(self._config.breaker, self._config.breaker_seconds, clock or SystemClock())

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        limit_tokens: int,
        most_tokens: int | None = None,
        focus: str = "",
        pending: Collection[str] = (),
    ) -> Summary:
        """Return the model's summary of `messages`, else their digest in at most `limit_tokens` tokens.

        What can be learned from the messages in `pending` is asked for in the same request, if `config.combined`.
        """
        most = most_tokens
        if most is None:
            most = max(_TOO_LONG * limit_tokens, await run_sync(lambda: sum(measured(messages, 1.0)) // 2))
        bounds = Bounds(limit=limit_tokens, most=most)
        lessons: tuple[Finding, ...] | None = None
        notes: tuple[str, ...] = ()
        if (why := self._breaker.why_open()) and not focus:
            why = f"the model is not asked for summaries: {why}"
        else:
            learned = pending if self._config.combined else ()
            record = await run_sync(self._record, messages, learned)
            found = await self._tried(record, bounds, focus)
            lessons, why = found.lessons, found.verdict.flaw
            notes = (_UNUSED,) if record.learn and lessons is None else ()
            if not why:
                return Summary(text=found.verdict.text, lessons=lessons, notes=notes)
        if self._fell_back:
            self._fell_back(why)
        rules = await DigestSummary()(messages, limit_tokens=limit_tokens, most_tokens=most_tokens)
        return Summary(text=rules.text, lessons=lessons, notes=(f"rules wrote the summary: {why}", *notes))

    @property
    def _sectioned(self) -> bool:
        return self._config.summary_prompt is None

    def _record(self, messages: Sequence[Message], pending: Collection[str]) -> Record:
        shown = redacted_messages(messages, self._redactor) if self._redactor else messages
        return recorded(shown, pending, sectioned=self._sectioned)

    async def _tried(self, record: Record, bounds: Bounds, focus: str) -> _Part:
        """Return what came of asking the model, whatever happens to it, and let the breaker know."""
        try:
            found = await self._summed(record, bounds, focus)
        except (ModelError, TimeoutError) as error:
            found = _Part(verdict=Verdict(flaw=_told(error)))
        if found.verdict.flaw:
            self._breaker.failed(found.verdict.flaw)
        else:
            self._breaker.succeeded()
        return found

    async def _summed(self, record: Record, bounds: Bounds, focus: str) -> _Part:
        request = Request(
            prompt=self._config.summary_prompt, limit=bounds.limit, focus=focus, lessons=bool(record.learn)
        )
        room = self._room(request)
        try:
            return await self._in_parts(record, request, room, bounds)
        except ModelOverflow as overflow:
            room = max(_LEAST_ROOM, min(room, overflow.window or room) // 2)
            return await self._in_parts(record, request, room, bounds)

    def _room(self, request: Request) -> int:
        """What the messages of one request may take beside the prompt, an earlier extract, and the answer."""
        answer = request.limit + (_LESSONS_TOKENS if request.lessons else 0)
        taken = request.frame + request.extract_room + answer
        return max(_LEAST_ROOM, int(((self._model.window or _UNKNOWN_WINDOW) - taken) * _MARGIN))

    async def _in_parts(self, record: Record, request: Request, room: int, bounds: Bounds) -> _Part:
        """Sum up part after part; the lessons count only where every message to learn from was shown."""
        parts = await run_sync(batches, record.items, room, _MOST_BATCHES)
        unseen = record.learn.keys() - {item.id for part in parts for item in part}
        lessons: tuple[Finding, ...] | None = () if record.learn and not unseen else None
        verdict = Verdict(text=record.earlier)
        for at, part in enumerate(parts, 1):
            own = [record.learn[item.id] for item in part if item.id and item.id in record.learn]
            learn = own if lessons is not None else []
            asking = replace(request, items=tuple(part), earlier=verdict.text, lessons=bool(learn))
            found = await self._asked(asking, record, learn, bounds)
            if learn:
                lessons = (*lessons, *found.lessons) if lessons is not None and found.lessons is not None else None
            verdict = found.verdict
            if verdict.flaw:
                return _Part(verdict=verdict, lessons=lessons if at == len(parts) else None)
        return _Part(verdict=verdict, lessons=lessons)

    async def _asked(self, request: Request, record: Record, learn: Sequence[Message], bounds: Bounds) -> _Part:
        """Ask for one part, twice at most. Raises what the first request raises: `ModelError`, `TimeoutError`."""
        lessons: tuple[Finding, ...] | None = None
        verdict = Verdict()
        for second in (False, True):
            asking = replace(request, lessons=bool(learn) and lessons is None, flaw=verdict.flaw)
            try:
                answer = await self._answer(asking)
            except (ModelError, TimeoutError) as error:
                if not second:
                    raise
                return _Part(verdict=Verdict(flaw=f"{verdict.flaw}, and then {_told(error)}"), lessons=lessons)
            if asking.lessons:
                lessons = await run_sync(partial(lessons_in, answer.lessons, learn, around=record.said))
            take = taken_in if self._sectioned else taken_whole
            verdict = await run_sync(take, answer, record, request.earlier, bounds)
            if not verdict.flaw:
                break
        return _Part(verdict=verdict, lessons=lessons)

    async def _answer(self, request: Request) -> Answer:
        """Return what the model said, in time; a form that it did not keep to is no reason not to read it."""
        text = await run_sync(lambda: request.text)
        asked = [Message(role="user", parts=(Text(text=text),))]
        with anyio.fail_after(self._config.summary_seconds):
            try:
                with unwrapped():
                    reply = await self._model.complete(asked, schema=FORM if request.lessons else None)
            except ReplyInvalid as error:
                if not error.said:
                    raise
                return answer_in(error.said, stop="length" if error.cut_off else "")
        return answer_in(reply.message.text, stop=reply.stop)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
