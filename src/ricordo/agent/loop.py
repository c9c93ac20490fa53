"""The agent loop: ask the model, run the tools it calls, and repeat until it calls none.

The loop needs only a model. `record` makes messages durable, step middleware wraps each request, turn middleware each
turn.

Invariants: messages are recorded before the model is called. However a turn ends, its messages are recorded, including
streamed text, and every recorded call has a result. Only if `record` fails can a result be missing, and the next turn
adds it. A cancellation is never treated as an error.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import field, fields, replace
from decimal import Decimal
from functools import partial

import anyio
import anyio.lowlevel

from ricordo.agent.contract import (
    ModelRequest,
    ModelResponse,
    Recorder,
    StepHandler,
    StepMiddleware,
    Turn,
    TurnEnding,
    TurnListener,
    TurnMiddleware,
    TurnResult,
    TypedResult,
    compose,
)
from ricordo.agent.tool_calls import (
    REPEATED_CALL,
    PermissionGate,
    ToolCallBatch,
    ToolCallOptions,
    deduplicate_call_ids,
    error_result,
)
from ricordo.agent.tools import Tool
from ricordo.agent.tools.schema import OutputType
from ricordo.clock import SystemClock
from ricordo.concurrency import run_even_if_cancelled
from ricordo.errors import InvalidSetting, OutputInvalid, ReplyInvalid, RicordoError
from ricordo.events import Emitter
from ricordo.lazy import dataclass
from ricordo.messages import (
    JsonValue,
    Message,
    Text,
    ToolCall,
    Usage,
    count_fingerprints,
    pair_calls,
    with_ids,
    with_mark,
)
from ricordo.messages.types import append_new, with_volatile_end
from ricordo.models import ChatModel, Reply, ReplyEvent, ReplyFinished, StopReason, TextDelta

__all__ = ["AgentLoop", "PartialReply", "TurnLimits", "ask_model", "build_messages", "check_max_iters"]


_DEFAULT_MAX_ITERS = 10
_STREAM_CLOSE_SECONDS = 5.0


class PartialReply:
    """The text of a reply that has been streamed so far."""

    def __init__(self) -> None:
        """Start with an empty text."""
        self._pieces: list[str] = []

    def reset(self) -> None:
        """Discard the text before another request."""
        self._pieces.clear()

    def append(self, text: str) -> None:
        """Append a piece of the text."""
        self._pieces.append(text)

    def to_message(self) -> Message | None:
        """Return the text as a message marked as cut off; None if the text is blank."""
        text = "".join(self._pieces)
        message = Message(role="assistant", parts=(Text(text=text),))
        return with_mark(message, "cut") if text.strip() else None


async def ask_model(model: ChatModel, request: ModelRequest, partial_reply: PartialReply) -> Reply:
    """Return the model's reply to `request`; if the turn has a listener, send it the pieces as they come.

    The reminder, if any, is the last message sent. For a turn with an output type, a reply that does not match it is
    returned with nothing parsed.

    Raises: ModelError as `ChatModel` does; ReplyInvalid for a stream that ends before the reply is complete.
    """
    partial_reply.reset()
    try:
        return await _send_request(model, request, partial_reply)
    except ReplyInvalid as error:
        if request.turn.output is None or not error.said:
            raise
        if isinstance(error.reply, Reply):
            return error.reply
        message = Message(role="assistant", parts=(Text(text=error.said),))
        return Reply(message=message, stop="length" if error.cut_off else "end", model=model.name)


async def _send_request(model: ChatModel, request: ModelRequest, partial_reply: PartialReply) -> Reply:
    messages, listener, output = build_messages(request), request.turn.listener, request.turn.output
    schema = output.schema if output else None
    if listener is None:
        return await model.complete(messages, tools=request.tools, schema=schema)
    events = model.stream(messages, tools=request.tools, schema=schema)
    return await _consume_stream(events, listener, partial_reply)


def build_messages(request: ModelRequest) -> tuple[Message, ...]:
    """Return the messages of a request: the system prompt, the window, and the reminder, if any."""
    prompt = with_volatile_end(Message(role="system", parts=(Text(text=request.system),)), request.system_end)
    system = [prompt] if request.system else []
    reminder = [] if request.reminder is None else [request.reminder]
    return (*system, *request.window, *reminder)


async def _consume_stream(
    events: AsyncIterator[ReplyEvent], listener: TurnListener, partial_reply: PartialReply
) -> Reply:
    reply: Reply | None = None
    try:
        async for event in events:
            if isinstance(event, ReplyFinished):
                reply = event.reply
                continue
            if isinstance(event, TextDelta):
                partial_reply.append(event.text)
            await listener(event)
    finally:
        await _close_stream(events)
    if reply is None:
        raise ReplyInvalid("The stream of the reply ended before the reply was whole.")
    return reply


async def _close_stream(events: AsyncIterator[ReplyEvent]) -> None:
    """Close a stream that was not read to its end, so that its connection is released now."""
    if isinstance(events, AsyncGenerator):
        with anyio.move_on_after(_STREAM_CLOSE_SECONDS, shield=True):
            await events.aclose()


@dataclass(frozen=True, kw_only=True)
class TurnLimits:
    """The limits of one turn: `max_iters` requests, `tokens` (input and output of all of them), `cost` in US dollars.

    `max_iters` is at least 1; the default, None, is that of the settings, 10 unless they say otherwise. For the others
    None is no limit. A turn that has reached a limit makes no further request: its calls are answered with an error,
    and it ends with a notice. A single request can exceed a limit. If a price is unknown, `cost` limits nothing.
    """

    max_iters: int | None = None
    tokens: int | None = None
    cost: float | None = None

    def __post_init__(self) -> None:
        """Raise InvalidSetting for a limit that is not above 0."""
        check_max_iters(self.max_iters)
        for name in ("tokens", "cost"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidSetting(f"The {name} of a turn are a number above 0, or None, not {value!r}.")

    def describe_reached_limit(self, usage: Usage, cost: Decimal | None) -> str:
        """Return the limit that this usage and cost have reached, in words; empty if none."""
        spent = usage.input + usage.output
        if self.tokens is not None and spent >= self.tokens:
            return f"{spent:,} of {self.tokens:,} tokens"
        if self.cost is not None and cost is not None and cost >= Decimal(str(self.cost)):
            return f"{cost:.2f} of {self.cost:.2f} US dollars"
        return ""


def check_max_iters(max_iters: int | None) -> None:
    """Check that `max_iters` is an integer of at least 1, or None. Raises: InvalidSetting."""
    value: object = max_iters
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise InvalidSetting(f"max_iters is a whole number, at least 1, not {value!r}.")


_INTERRUPTED_CALL = (
    "The conversation was interrupted before this call had its result: whether it did its work is not known."
)
_CUT_CALLS = "The reply was cut off before its end, so this call was not run. Call it again, with less in one reply."
_REFUSED_CALLS = "The model refused to go on with this reply, so this call was not run."
_CALL_OVER_REQUEST_LIMIT = "This call was not run: the turn has reached its limit of {limit} requests to the model."
_REQUEST_LIMIT_NOTICE = (
    "[This turn was stopped at its limit of {limit} requests to the model, before the model had come to an end. "
    "Another message lets it go on.]"
)
_CALL_OVER_TURN_LIMIT = "This call was not run: the turn has reached its limit, {limit}."
_TURN_LIMIT_NOTICE = (
    "[This turn was stopped at its limit, {limit}, before the model had come to an end. Another message lets it go on.]"
)
_INVALID_ANSWER_NOTICE = (
    "[The answer can't be used: {error} Give it once more, as one JSON object in the form that was asked for, and "
    "nothing beside it.]"
)
_ENDINGS: Mapping[StopReason, TurnEnding] = {"length": "length", "refused": "refused", "window": "window"}


@dataclass
class _TurnProgress:
    """A turn in progress: its window, the messages it added, and its usage and cost so far."""

    turn: Turn
    record: Recorder | None
    window: tuple[Message, ...]
    added: tuple[Message, ...] = ()
    partial_reply: PartialReply = field(default_factory=PartialReply)
    steps: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: Decimal | None = Decimal(0)
    was_corrected: bool = False

    async def begin(self) -> None:
        """Record the given messages. Calls that an earlier turn left without a result get one first, in place."""
        window, messages = self.turn.window, self.turn.messages
        answered = {call for call, _ in pair_calls([*window, *messages]).answered}
        pending = [place for place in pair_calls(window).pending if place not in answered]
        calls = [
            part for position in pending if isinstance(part := window[position.message].parts[position.part], ToolCall)
        ]
        if calls:
            results = tuple(error_result(call, _INTERRUPTED_CALL) for call in calls)
            stored = await self.add_messages(with_mark(Message(role="tool", parts=results), "notice"))
            position = pending[-1].message + 1
            self.window = (*window[:position], *stored, *window[position:])
            self.added = ()
        if messages:
            await self.add_messages(*messages)

    async def add_messages(self, *messages: Message) -> tuple[Message, ...]:
        """Record `messages` and append them to the window; a cancellation is raised only after that."""
        stored: tuple[Message, ...] = ()

        async def record_messages() -> None:
            nonlocal stored
            stored = await self.record(messages) if self.record else self._assign_ids(messages)
            self.window = append_new(self.window, stored)
            self.added += stored

        await run_even_if_cancelled(record_messages)
        await anyio.lowlevel.checkpoint_if_cancelled()
        return stored

    def add_usage(self, reply: Reply) -> None:
        """Add the usage and cost of a reply; a reply without a price makes the total cost unknown."""
        self.steps += 1
        self.usage += reply.usage
        self.cost = None if self.cost is None or reply.cost is None else self.cost + reply.cost

    def build_result(self, message: Message, ending: TurnEnding) -> TurnResult:
        """Return the result of the turn. Raises: OutputInvalid if the turn has an output type."""
        if self.turn.output is not None:
            raise OutputInvalid(f"The turn ended before its answer came: {ending}.", said=message.text)
        return TurnResult(
            message=message,
            messages=self.added,
            window=self.window,
            steps=self.steps,
            ending=ending,
            usage=self.usage,
            cost=self.cost,
        )

    async def build_typed_result(
        self, output: OutputType, message: Message, parsed: JsonValue, *, last: bool
    ) -> TurnResult | None:
        """Return the result with this answer; None if the answer is invalid and the model was told so.

        The model is told only once, and not after the `last` request; otherwise raises OutputInvalid.
        """
        try:
            value = output.read(parsed)
        except ValueError as error:
            if self.was_corrected or last:
                raise OutputInvalid(
                    f"The answer is not of the type that was asked for: {error}", said=message.text
                ) from error
            self.was_corrected = True
            await self.add_messages(
                with_mark(
                    Message(role="user", parts=(Text(text=_INVALID_ANSWER_NOTICE.format(error=error)),)), "notice"
                )
            )
            return None
        result = replace(self, turn=replace(self.turn, output=None)).build_result(message, "end")
        return TypedResult(output=value, **{each.name: getattr(result, each.name) for each in fields(result)})

    def _assign_ids(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        before = count_fingerprints([*self.turn.window, *self.added])
        return tuple(with_ids(messages, session=self.turn.session, counts=before))


class AgentLoop:
    """The agent loop around one model."""

    def __init__(
        self,
        model: ChatModel,
        *,
        tools: Sequence[Tool] = (),
        instructions: str = "",
        steps: Sequence[StepMiddleware] = (),
        turns: Sequence[TurnMiddleware] = (),
        record: Recorder | None = None,
        limits: TurnLimits | None = None,
        parallel: int = 8,
        tool_timeout: float | None = None,
        gate: PermissionGate | None = None,
        emitter: Emitter | None = None,
    ) -> None:
        """Configure the loop; nothing happens before `run`.

        `instructions` are the system prompt, which step middleware may replace. The first of `steps` and of `turns` is
        outermost. Without `record`, messages only get ids. `limits` are those of a turn, with 10 requests if it does
        not say how many, `parallel` (1 and up) that of the tool calls that run at once, and `tool_timeout` that of each
        call, in seconds. `gate` decides on each call before it runs. Raises: InvalidSetting, also for two tools with
        one name.
        """
        if parallel < 1:
            raise InvalidSetting(f"parallel is at least 1, not {parallel}.")
        tools_by_name = {tool.spec.name: tool for tool in tools}
        if len(tools_by_name) < len(tools):
            duplicates = sorted({each.spec.name for each in tools if tools_by_name[each.spec.name] is not each})
            raise InvalidSetting(
                f"Two tools are called {', '.join(duplicates)}: a model could not say which it calls. Rename your own."
            )
        self._model = model
        self._specs = tuple(tool.spec for tool in tools)
        self._instructions = instructions
        self._steps = tuple(steps)
        self._turns = tuple(turns)
        self._record = record
        self._limits = limits or TurnLimits()
        self._max_iters = self._limits.max_iters or _DEFAULT_MAX_ITERS
        self._emitter = emitter or Emitter(SystemClock())
        self._call_options = ToolCallOptions(
            tools=tools_by_name, emitter=self._emitter, parallel=parallel, timeout=tool_timeout, permission_gate=gate
        )

    async def run(self, turn: Turn) -> TurnResult:
        """Run `turn` and return its result.

        With the endings `max_iters` and `limit` the last message is a notice of the harness, marked as such, and not
        the model's. A turn with an `output` returns a `TypedResult`. Raises: OutputInvalid when there is no valid
        answer; ModelError when the model can't answer; StorageError when a message can't be recorded.
        """
        return await compose(self._turns, self._run_with_event)(turn)

    async def _run_with_event(self, turn: Turn) -> TurnResult:
        with self._emitter.stage("turn", turn.scope) as progress:
            result = await self._run_turn(turn)
            progress.reason = result.ending
            progress.counts["steps"] = result.steps
            progress.counts["messages"] = len(result.messages)
            progress.counts["input"] = result.usage.input
            progress.counts["output"] = result.usage.output
            return result

    async def _run_turn(self, turn: Turn) -> TurnResult:
        await anyio.lowlevel.checkpoint_if_cancelled()
        turn_progress = _TurnProgress(turn=turn, record=self._record, window=turn.window)
        await turn_progress.begin()
        step = compose(self._steps, partial(self._ask_model, turn_progress))
        number, result = 1, None
        while result is None:
            result = await self._step(turn_progress, step, number)
            number += 1
        return result

    async def _step(self, turn_progress: _TurnProgress, step: StepHandler, number: int) -> TurnResult | None:
        """Make one request and run the calls of its reply; return the result of the turn if it has ended."""
        reply = await self._request_reply(turn_progress, step, number)
        message, repeated = deduplicate_call_ids(reply.message)
        calls = ToolCallBatch(message.tool_calls, turn_progress.turn, self._call_options, window=turn_progress.window)
        calls.refuse(REPEATED_CALL, repeated)
        ending = _ENDINGS.get(reply.stop)
        if ending:
            calls.refuse(_REFUSED_CALLS if ending == "refused" else _CUT_CALLS)
        elif number == self._max_iters:
            calls.refuse(_CALL_OVER_REQUEST_LIMIT.format(limit=number))
        spent = self._limits.describe_reached_limit(turn_progress.usage, turn_progress.cost)
        if spent:
            calls.refuse(_CALL_OVER_TURN_LIMIT.format(limit=spent), calls.unanswered_ids)
        stored = await self._record_reply_and_results(turn_progress, message, calls)
        output = turn_progress.turn.output
        if output and not message.tool_calls and ending in {None, "length"}:
            last = number == self._max_iters or bool(spent)
            return await turn_progress.build_typed_result(output, stored, reply.parsed, last=last)
        if not message.tool_calls or ending in {"refused", "window"}:
            return turn_progress.build_result(stored, ending or "end")
        if number < self._max_iters and not spent:
            return None
        text = Text(
            text=_TURN_LIMIT_NOTICE.format(limit=spent) if spent else _REQUEST_LIMIT_NOTICE.format(limit=number)
        )
        (notice,) = await turn_progress.add_messages(with_mark(Message(role="assistant", parts=(text,)), "notice"))
        return turn_progress.build_result(notice, "limit" if spent else "max_iters")

    async def _request_reply(self, turn_progress: _TurnProgress, step: StepHandler, number: int) -> Reply:
        """Send a request through all middleware. If it fails, the text streamed so far is recorded."""
        request = ModelRequest(
            turn=turn_progress.turn,
            system=self._instructions,
            window=turn_progress.window,
            tools=self._specs,
            step=number,
        )
        try:
            response = await step(request)
        except BaseException:
            if (cut := turn_progress.partial_reply.to_message()) is not None:
                await self._record_partial(turn_progress, cut)
            raise
        turn_progress.window = response.window
        turn_progress.add_usage(response.reply)
        return response.reply

    async def _record_reply_and_results(
        self, turn_progress: _TurnProgress, message: Message, calls: ToolCallBatch
    ) -> Message:
        """Record the reply, run its calls and record their results; on an interruption, those available so far."""
        before = len(turn_progress.added)
        try:
            (stored,) = await turn_progress.add_messages(message)
            if message.tool_calls:
                await calls.run()
        except BaseException:
            if message.tool_calls and len(turn_progress.added) > before:
                await self._record_partial(turn_progress, calls.result_message())
            raise
        if message.tool_calls:
            await turn_progress.add_messages(calls.result_message())
        return stored

    async def _ask_model(self, turn_progress: _TurnProgress, request: ModelRequest) -> ModelResponse:
        with self._emitter.stage("model", request.turn.scope) as progress:
            reply = await ask_model(self._model, request, turn_progress.partial_reply)
            progress.reason = reply.stop
            progress.counts["input"] = reply.usage.input
            progress.counts["output"] = reply.usage.output
            progress.counts["cache_read"] = reply.usage.cache_read
        usage = reply.message.usage or (reply.usage if reply.usage != Usage() else None)
        message = replace(reply.message, usage=usage)
        return ModelResponse(reply=replace(reply, message=message), window=request.window, reminder=request.reminder)

    async def _record_partial(self, turn_progress: _TurnProgress, message: Message) -> None:
        """Record a message when a turn is interrupted; an error in that is only reported, so the original one is
        raised.
        """
        try:
            await turn_progress.add_messages(message)
        except (RicordoError, OSError) as error:
            self._emitter.report_failure("record", turn_progress.turn.scope, error, "the end of a turn that broke off")
