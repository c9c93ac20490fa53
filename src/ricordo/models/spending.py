"""Spending: a model whose requests are recorded and counted against a daily limit.

It covers the requests that memory makes on its own. Each request is one JSON line without content, in one file per
month below `spending/`, which all processes of a root read. Before a request, its maximum tokens are reserved; the line
of the request settles the reservation. An unsettled reservation lasts until the end of its day.

Invariants: a request over the limit is not made and raises `SpendingLimitReached`, a `ModelError`. A torn or damaged
line does not affect other lines.
"""

import json
import logging
import math
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import partial

from ricordo.clock import Clock, format_rfc3339
from ricordo.concurrency import run_even_if_cancelled
from ricordo.errors import FileMissing, ReplyInvalid, SpendingLimitReached, StorageError
from ricordo.lazy import dataclass
from ricordo.messages import JsonValue, Message, ToolSpec
from ricordo.messages.json_text import decode_json, dumps
from ricordo.messages.tokens import estimate_message, estimate_request, estimate_text
from ricordo.models import ChatModel, Reply
from ricordo.models.config import SpendingConfig
from ricordo.models.contract import ReplyEvent, ReplyFinished, limit_replies
from ricordo.models.wrappers import ModelWrapper, closing_events
from ricordo.scope import Scope
from ricordo.storage import FileStore

__all__ = [
    "MIN_REPLY_ALLOWANCE",
    "SPENDING_FOLDER",
    "MeteredModel",
    "RequestRecord",
    "Reservation",
    "SpendingJournal",
    "SpendingMeter",
    "SpendingTotal",
    "find_refusal",
    "max_prompt_tokens",
    "max_reply_tokens",
]


MIN_REPLY_ALLOWANCE = 500
"""The smallest reply allowance to request, in tokens, unless `reply_tokens` is smaller."""
_MARGIN = 1.25


@dataclass(frozen=True, kw_only=True)
class SpendingTotal:
    """Requests, their tokens (`input` includes tokens from the provider's cache) and their cost in US dollars.

    `failed` counts the `requests` without an answer, `unpriced` those with an unknown price. `over` is the number of
    tokens that replies took beyond their allowance. `reserved` is the maximum number of tokens of unfinished requests:
    those still running, and those whose process died.
    """

    requests: int = 0
    failed: int = 0
    input: int = 0
    output: int = 0
    cost: Decimal = Decimal(0)
    unpriced: int = 0
    over: int = 0
    reserved: int = 0

    def __add__(self, other: "SpendingTotal") -> "SpendingTotal":
        """Return the sum of both."""
        return SpendingTotal(
            requests=self.requests + other.requests,
            failed=self.failed + other.failed,
            input=self.input + other.input,
            output=self.output + other.output,
            cost=self.cost + other.cost,
            unpriced=self.unpriced + other.unpriced,
            over=self.over + other.over,
            reserved=self.reserved + other.reserved,
        )

    @property
    def tokens(self) -> int:
        """Input and output tokens."""
        return self.input + self.output


def max_prompt_tokens(estimate: int) -> int:
    """Return the maximum tokens of a prompt of about `estimate` tokens, as providers use their own tokenizers."""
    return math.ceil(estimate * _MARGIN)


def find_refusal(spent: SpendingTotal, config: SpendingConfig, *, tokens: int = 0) -> str:
    """Return why a request of about `tokens` tokens is refused; empty if it is allowed.

    Pass 1 to check whether anything is left.
    """
    if config.daily_cost is not None and spent.cost >= Decimal(str(config.daily_cost)):
        return f"{spent.cost:.2f} of {config.daily_cost:.2f} dollars are spent"
    if config.daily_tokens is not None and spent.tokens + spent.reserved + tokens > config.daily_tokens:
        reserved_text = f" and {spent.reserved:,} reserved" if spent.reserved else ""
        usage_text = f"{spent.tokens:,} of {config.daily_tokens:,} tokens are used{reserved_text}"
        return f"{usage_text}, and this would take about {tokens:,}" if tokens > 1 else usage_text
    return ""


def max_reply_tokens(spent: SpendingTotal, config: SpendingConfig, *, prompt: int) -> int:
    """Return the maximum tokens of the reply to a prompt of at most `prompt` tokens; 0 if no request is allowed.

    If less than a whole reply is left, the rest is allowed, unless it is too small for a useful reply.
    """
    min_reply = min(MIN_REPLY_ALLOWANCE, config.reply_tokens)
    if find_refusal(spent, config, tokens=prompt + min_reply):
        return 0
    if config.daily_tokens is None:
        return config.reply_tokens
    return min(config.reply_tokens, config.daily_tokens - spent.tokens - spent.reserved - prompt)


SPENDING_FOLDER = "spending"
"""The folder of the journal files, below the root."""


@dataclass(frozen=True, kw_only=True)
class RequestRecord:
    """One request: its day in the user's calendar, its `purpose`, its model and its scope.

    `input` and `output` are tokens. `cost` is in US dollars, None if the price is unknown. `error` is the error type of
    a request without a usable answer. `over` is the number of tokens beyond the reservation, and `settles` is the id of
    that reservation.
    """

    day: date
    at: str
    purpose: str
    model: str
    input: int = 0
    output: int = 0
    cost: Decimal | None = None
    user: str = ""
    agent: str = ""
    session: str = ""
    error: str = ""
    over: int = 0
    settles: str = ""

    @property
    def total(self) -> SpendingTotal:
        """The totals of this request."""
        return SpendingTotal(
            requests=1,
            failed=bool(self.error),
            input=self.input,
            output=self.output,
            cost=self.cost or Decimal(0),
            unpriced=self.cost is None and (self.input > 0 or not self.error),
            over=self.over,
        )


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """The maximum tokens of a request that begins now; `id` identifies the reservation."""

    day: date
    at: str
    id: str
    tokens: int


class SpendingJournal:
    """The spending journal in `files`. `read_day` reads each line only once."""

    def __init__(self, files: FileStore) -> None:
        """Create the journal without reading."""
        self._files = files
        self._day: date | None = None
        self._read_to = 0
        self._total = SpendingTotal()
        self._reserved: dict[str, int] = {}

    async def reserve(self, reserved: Reservation) -> None:
        """Append a reservation durably."""
        await self._append(
            reserved.day,
            {"at": reserved.at, "day": reserved.day.isoformat(), "id": reserved.id, "reserved": reserved.tokens},
        )

    async def append_request(self, record: RequestRecord) -> None:
        """Append one request durably."""
        values: dict[str, str | int | None] = {
            "at": record.at, "day": record.day.isoformat(), "purpose": record.purpose, "model": record.model,
            "input": record.input, "output": record.output, "cost": None if record.cost is None else str(record.cost),
            "user": record.user, "agent": record.agent, "session": record.session, "error": record.error,
            "over": record.over or None, "settles": record.settles,
        }  # fmt: skip
        await self._append(record.day, {name: value for name, value in values.items() if value not in {"", None}})

    async def _append(self, day: date, values: dict[str, str | int | None]) -> None:
        line = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
        await self._files.append(_month_path(day), f"{line}\n".encode())

    async def read_day(self, day: date) -> SpendingTotal:
        """Return the spending and the reservations of `day`, of all processes."""
        if day != self._day:
            self._reset(day)
        try:
            data = await self._files.read_from(_month_path(day), self._read_to)
        except FileMissing:
            self._reset(day)
            return self._total
        complete_lines, _, _ = data.rpartition(b"\n")
        if complete_lines:
            self._read_to += len(complete_lines) + 1
            for line in _read_lines(complete_lines):
                if line.day == day:
                    self._add_line(line)
        return replace(self._total, reserved=sum(self._reserved.values()))

    def _reset(self, day: date) -> None:
        self._day, self._read_to, self._total, self._reserved = day, 0, SpendingTotal(), {}

    def _add_line(self, line: "RequestRecord | Reservation") -> None:
        if isinstance(line, Reservation):
            self._reserved[line.id] = line.tokens
        else:
            self._total += line.total
            self._reserved.pop(line.settles, None)

    async def read_since(self, day: date) -> list[RequestRecord]:
        """Return the requests since `day`, that day included, in the order they were written."""
        paths = [info.path for info in await self._files.list(SPENDING_FOLDER) if info.path >= _month_path(day)]
        records = [line for path in paths for line in _read_lines((await self._files.read(path)).data)]
        return [line for line in records if isinstance(line, RequestRecord) and line.day >= day]


def _month_path(day: date) -> str:
    return f"{SPENDING_FOLDER}/{day:%Y-%m}.jsonl"


def _read_lines(data: bytes) -> Iterator[RequestRecord | Reservation]:
    for line in data.split(b"\n"):
        try:
            values = decode_json(line)
            yield _read_reservation(values) if "reserved" in values else _read_request(values)
        except (ValueError, KeyError, TypeError, AttributeError, InvalidOperation):
            # A blank, torn or damaged line.
            continue


def _read_reservation(values: dict[str, object]) -> Reservation:
    return Reservation(
        day=date.fromisoformat(str(values["day"])),
        at=str(values["at"]),
        id=str(values["id"]),
        tokens=_read_count(values["reserved"]),
    )


def _read_request(values: dict[str, object]) -> RequestRecord:
    cost = values.get("cost")
    return RequestRecord(
        day=date.fromisoformat(str(values["day"])),
        at=str(values["at"]),
        purpose=str(values["purpose"]),
        model=str(values["model"]),
        input=_read_count(values.get("input")),
        output=_read_count(values.get("output")),
        cost=None if cost is None else _read_cost(cost),
        user=str(values.get("user", "")),
        agent=str(values.get("agent", "")),
        session=str(values.get("session", "")),
        error=str(values.get("error", "")),
        over=_read_count(values.get("over")),
        settles=str(values.get("settles", "")),
    )


def _read_count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _read_cost(value: object) -> Decimal | None:
    cost = Decimal(str(value))
    return cost if cost.is_finite() and cost >= 0 else None


_LOCK = "spending"
_LOG = logging.getLogger("ricordo.spending")


@dataclass(frozen=True, kw_only=True)
class _RequestAllowance:
    """An allowed request: its record so far, and the maximum tokens of its prompt and its reply."""

    record: RequestRecord
    estimate: int
    prompt: int
    reply: int

    @property
    def max_tokens(self) -> int:
        return self.prompt + self.reply


class SpendingMeter:
    """Counts the requests of memory in one root against the daily limit, across all its processes.

    A request that cannot be recorded, such as on a full disk, counts until this process ends.
    """

    def __init__(self, files: FileStore, config: SpendingConfig, clock: Clock) -> None:
        """Keep the journal in `files`. Nothing is read or written yet."""
        self._files = files
        self._journal = SpendingJournal(files)
        self._config = config
        self._clock = clock
        self._unwritten_totals: dict[date, SpendingTotal] = {}
        self._unwritten_reservations: dict[str, int] = {}
        """Reservations that could not be written, by id."""

    @property
    def config(self) -> SpendingConfig:
        """The limits."""
        return self._config

    async def read_today(self) -> SpendingTotal:
        """Return today's spending, and the reservations of unfinished requests."""
        today = self._clock.today()
        unwritten = self._unwritten_totals.get(today, SpendingTotal()) + SpendingTotal(
            reserved=sum(self._unwritten_reservations.values())
        )
        try:
            return await self._journal.read_day(today) + unwritten
        except StorageError as error:
            _LOG.warning("What was spent today can't be read: %s", error)
            return unwritten

    async def find_refusal(self, *, tokens: int = 0) -> str:
        """Return why a request of about `tokens` tokens is refused today; empty if it is allowed."""
        return find_refusal(await self.read_today(), self._config, tokens=tokens)

    def wrap(self, model: ChatModel, purpose: str, *, scope: Scope | None = None) -> "MeteredModel":
        """Return `model` with its requests counted for `purpose`, such as `flush`, on behalf of `scope`."""
        return MeteredModel(model=model, meter=self, purpose=purpose, scope=scope)

    async def reserve(self, request: RequestRecord, estimate: int) -> _RequestAllowance:
        """Reserve the maximum tokens of a request with a prompt of about `estimate` tokens.

        Raises: SpendingLimitReached if the limit leaves no room for it.
        """
        try:
            async with self._files.lock(_LOCK):
                return await self._make_allowance(request, estimate)
        except StorageError as error:
            _LOG.warning("Other processes can't be told of a request of memory: %s", error)
            return await self._make_allowance(request, estimate)

    async def _make_allowance(self, request: RequestRecord, estimate: int) -> _RequestAllowance:
        prompt, spent = max_prompt_tokens(estimate), await self.read_today()
        reply = max_reply_tokens(spent, self._config, prompt=prompt)
        if not reply:
            min_reply = min(MIN_REPLY_ALLOWANCE, self._config.reply_tokens)
            reason = find_refusal(spent, self._config, tokens=prompt + min_reply)
            raise SpendingLimitReached(f"{SpendingLimitReached.__doc__} Today {reason}.")
        name = secrets.token_hex(4)
        try:
            await self._journal.reserve(Reservation(day=request.day, at=request.at, id=name, tokens=prompt + reply))
        except StorageError:
            self._unwritten_reservations[name] = prompt + reply
        return _RequestAllowance(record=replace(request, settles=name), estimate=estimate, prompt=prompt, reply=reply)

    async def record_request(self, request: RequestRecord) -> None:
        """Record a request, which settles its reservation. A cancellation waits until it is recorded."""
        try:
            await run_even_if_cancelled(partial(self._journal.append_request, request))
        except StorageError as error:
            _LOG.warning("A request of memory was not written down: %s", error)
            self._unwritten_totals[request.day] = (
                self._unwritten_totals.get(request.day, SpendingTotal()) + request.total
            )
            self._unwritten_reservations.pop(request.settles, None)

    def create_request(self, model: str, purpose: str, scope: Scope | None) -> RequestRecord:
        """Return the record of a request that is made now."""
        parts = scope.parts() if scope else {}
        return RequestRecord(
            day=self._clock.today(),
            at=format_rfc3339(self._clock.now()),
            purpose=purpose,
            model=model,
            user=parts.get("user", ""),
            agent=parts.get("agent", ""),
            session=parts.get("session", ""),
        )


@dataclass(frozen=True, kw_only=True)
class MeteredModel(ModelWrapper):
    """A `ChatModel` whose requests are counted by `meter`."""

    meter: SpendingMeter
    purpose: str
    scope: Scope | None = None

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        """Return the reply of the wrapped model.

        Raises:
            SpendingLimitReached: the daily limit leaves no room for this request, which was not made.
        """
        allowed = await self._reserve(messages, tools, schema)
        model = limit_replies(self.model, allowed.reply)
        try:
            reply = await model.complete(messages, tools=tools, schema=schema)
        except BaseException as error:
            await self.meter.record_request(_record_failure(allowed, error))
            raise
        await self.meter.record_request(_record_reply(allowed, reply))
        return reply

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        """Yield the events of the wrapped model. Raises as `complete` does, before the first event."""
        allowed = await self._reserve(messages, tools, schema)
        model = limit_replies(self.model, allowed.reply)
        record = replace(allowed.record, error="GeneratorExit")
        try:
            async with closing_events(model.stream(messages, tools=tools, schema=schema)) as events:
                async for event in events:
                    if isinstance(event, ReplyFinished):
                        record = _record_reply(allowed, event.reply)
                    yield event
        except BaseException as error:
            if record.error:
                record = _record_failure(allowed, error)
            raise
        finally:
            await self.meter.record_request(record)

    async def _reserve(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], schema: Mapping[str, JsonValue] | None
    ) -> _RequestAllowance:
        schema_tokens = estimate_text(dumps(dict(schema))) if schema else 0
        estimate = estimate_request(messages, tools=tools).total + schema_tokens
        return await self.meter.reserve(self.meter.create_request(self.name, self.purpose, self.scope), estimate)


def _record_failure(allowed: _RequestAllowance, error: BaseException) -> RequestRecord:
    """Return the record of a failed request. An unusable reply still counts its tokens."""
    reply = error.reply if isinstance(error, ReplyInvalid) else None
    record = _record_reply(allowed, reply) if isinstance(reply, Reply) else allowed.record
    return replace(record, error=type(error).__name__)


def _record_reply(allowed: _RequestAllowance, reply: Reply) -> RequestRecord:
    """Return the record with the usage of the reply. Usage that the provider does not report is estimated."""
    usage = reply.usage
    input_tokens, output = usage.input or allowed.estimate, usage.output or estimate_message(reply.message)
    excess = max(0, input_tokens + output - allowed.max_tokens)
    model = reply.model or allowed.record.model
    return replace(allowed.record, model=model, input=input_tokens, output=output, cost=reply.cost, over=excess)
