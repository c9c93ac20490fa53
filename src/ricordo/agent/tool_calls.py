"""Tool calls of one reply: run concurrently behind a permission gate, answered in order, in one message.

Any failure of a call becomes its result, with text that tells the model what to do.

Invariants: every call is answered exactly once, however the run ended. A call that the gate could not decide on is not
run. A result has at least one part, is valid UTF-8, and holds no traceback.
"""

import base64
import math
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Protocol, cast

import anyio

from ricordo.agent.contract import ToolFinished, ToolStarted, Turn, TurnEvent
from ricordo.agent.tools import Tool, ToolContext, ToolOutput
from ricordo.errors import InvalidMessage, RicordoError
from ricordo.events import Emitter
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages import JsonValue, Media, Message, Part, Text, ToolCall, ToolResult, Unknown
from ricordo.messages.json_text import dumps, loads

__all__ = [
    "REPEATED_CALL",
    "GateDecision",
    "PermissionGate",
    "ToolCallBatch",
    "ToolCallOptions",
    "deduplicate_call_ids",
    "error_result",
    "exception_result",
    "replace_surrogates",
    "tool_result",
]


_SURROGATES = lazy_compile("[\ud800-\udfff]+")
_TRACEBACK = "Traceback (most recent call last)"
_MAX_ERROR_CHARS = 2_000
_WORD_BORDER = lazy_compile(r"[\s\"',<>{}()\[\]]")
"""Characters between words, also in compact JSON, that occur in no key or token."""
_MEDIA_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_UNKNOWN_MEDIA_TYPE = "application/octet-stream"
_EMPTY_RESULT = "The tool did its work and returned nothing."


def tool_result(call: ToolCall, output: ToolOutput) -> ToolResult:
    """Return the result of `call` for its tool's output; an output that is not JSON gives an error result."""
    try:
        return ToolResult(call_id=call.id, name=call.name, parts=_to_parts(output))
    except InvalidMessage:
        kind = type(output).__name__
        return error_result(
            call,
            f"{call.name} has run, but what it returned can't be told: its value of type {kind} is no JSON. "
            "Calling it again returns the same.",
        )


def error_result(call: ToolCall, text: str) -> ToolResult:
    """Return the error result of `call` with `text`."""
    return ToolResult(call_id=call.id, name=call.name, parts=(Text(text=replace_surrogates(text)),), is_error=True)


def exception_result(call: ToolCall, error: BaseException) -> ToolResult:
    """Return the error result for an exception of the tool: a RicordoError by its message, others also by type."""
    text = _error_text(error)
    if isinstance(error, RicordoError):
        return error_result(call, text)
    summary = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return error_result(call, f"{call.name} failed with {summary}\nChange the arguments, or go on without it.")


def replace_surrogates(text: str) -> str:
    """Return `text` with lone surrogates replaced; a surrogate pair becomes its character."""
    if text.isascii() or not _SURROGATES.search(text):
        return text
    return _SURROGATES.sub(lambda run: run[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"), text)


def _to_parts(output: object) -> tuple[Text | Media | Unknown, ...]:
    match output:
        case None | "":
            return (Text(text=_EMPTY_RESULT),)
        case str():
            return (Text(text=replace_surrogates(output)),)
        case bytes() | bytearray() | memoryview():
            return _bytes_to_parts(bytes(output))
        case list() | tuple() if output and all(isinstance(part, Text | Media | Unknown) for part in output):
            return tuple(
                Text(text=replace_surrogates(part.text)) if isinstance(part, Text) else part for part in output
            )
        case _:
            return (Text(text=dumps(cast("JsonValue", output))),)


def _bytes_to_parts(data: bytes) -> tuple[Text | Media, ...]:
    try:
        return (Text(text=data.decode("utf-8") or _EMPTY_RESULT),)
    except UnicodeDecodeError:
        kind = next((kind for magic, kind in _MEDIA_SIGNATURES if data.startswith(magic)), _UNKNOWN_MEDIA_TYPE)
        text = f"The tool returned {len(data):,} bytes of {kind}, which is no text."
        uri = f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"
        return (Text(text=text), Media(media_type=kind, uri=uri))


def _error_text(error: BaseException) -> str:
    """Return the message of an error without a quoted traceback, cut after a word if it is long."""
    try:
        text = str(error).strip()
    except Exception as broken:  # noqa: BLE001  (a tool's own error class may fail to say what happened)
        return f"an error whose message can't be read ({type(broken).__name__})"
    if _TRACEBACK in text:
        before, _, trace = text.partition(_TRACEBACK)
        text = f"{before.strip()} {trace.strip().splitlines()[-1].strip()}".strip()
    return text if len(text) <= _MAX_ERROR_CHARS else f"{_cut_at_word(text)} [cut]".lstrip()


def _cut_at_word(text: str) -> str:
    """Return the whole words that fit: half of a secret would not be recognized when the result is recorded."""
    borders = [border.start() for border in _WORD_BORDER.finditer(text, 0, _MAX_ERROR_CHARS + 1)]
    return text[: borders[-1] if borders else 0].rstrip()


@dataclass(frozen=True, kw_only=True)
class GateDecision:
    """Whether a call may run: `refusal` is the reason why not, as text for the model; empty if it may.

    `approved` is True if a rule allows the call or a person just approved it, so that the tool does not ask again.
    """

    refusal: str = ""
    approved: bool = False


class PermissionGate(Protocol):
    """Decides on every tool call before it runs."""

    async def __call__(self, tool: Tool, arguments: Mapping[str, JsonValue], context: ToolContext) -> GateDecision:
        """Decide on a call whose arguments are a JSON object; concurrent calls are decided concurrently.

        It may wait for a person's answer: the time limit of the tool starts after it. Any exception refuses the call.
        """
        ...


REPEATED_CALL = (
    "This call stands twice in one reply, under one id and with the same arguments, and was run once. "
    "If it is to be done twice, call it again."
)


@dataclass(frozen=True, kw_only=True)
class ToolCallOptions:
    """How calls run: with which tools, at most `parallel` at once, each for at most `timeout` seconds.

    `permission_gate` decides on each call before its time starts; without a gate all calls run.
    """

    tools: Mapping[str, Tool]
    emitter: Emitter
    parallel: int = 8
    timeout: float | None = None
    permission_gate: PermissionGate | None = None


class ToolCallBatch:
    """The calls of one reply, with unique ids; run them once."""

    def __init__(
        self, calls: Sequence[ToolCall], turn: Turn, options: ToolCallOptions, *, window: Sequence[Message] = ()
    ) -> None:
        """Create a batch with no call answered; `window` is the conversation before the calls."""
        self._window = window
        self._calls = tuple(calls)
        self._turn = turn
        self._options = options
        self._results: dict[str, ToolResult] = {}
        self._listener_lock = anyio.Lock()
        self._listener_error: Exception | None = None

    @property
    def unanswered_ids(self) -> frozenset[str]:
        """The ids of the calls that are not answered yet."""
        return frozenset(call.id for call in self._calls if call.id not in self._results)

    def refuse(self, text: str, only: Collection[str] | None = None) -> None:
        """Answer the calls with these ids (all if None) with an error of `text`; they won't run."""
        refused = [call for call in self._calls if only is None or call.id in only]
        self._results.update((call.id, error_result(call, text)) for call in refused)

    def result_message(self) -> Message:
        """Return the results in the order of the calls; an unfinished call gets an error that says so."""
        results = (self._results.get(call.id) or error_result(call, _unfinished_text(call)) for call in self._calls)
        return Message(role="tool", parts=tuple(results))

    async def run(self) -> None:
        """Run the calls that were not refused. Raises a cancellation and the errors of the turn's listener."""
        limiter = anyio.CapacityLimiter(self._options.parallel)
        async with anyio.create_task_group() as group:
            for call in self._calls:
                if call.id not in self._results:
                    group.start_soon(self._run, call, limiter, group.cancel_scope)
        if self._listener_error is not None:
            raise self._listener_error

    async def _run(self, call: ToolCall, limiter: anyio.CapacityLimiter, others: anyio.CancelScope) -> None:
        async with limiter:
            try:
                await self._emit(ToolStarted(call=call))
                result = self._results[call.id] = await self._run_reported(call)
                await self._emit(ToolFinished(result=result))
            except Exception as error:  # noqa: BLE001  (only the listener's: raised as itself, not in a group)
                self._listener_error = self._listener_error or error
                others.cancel()

    async def _emit(self, event: TurnEvent) -> None:
        if self._turn.listener is not None:
            async with self._listener_lock:
                await self._turn.listener(event)

    async def _run_reported(self, call: ToolCall) -> ToolResult:
        tool = self._options.tools.get(call.name)
        with self._options.emitter.stage("tool", self._turn.scope) as progress:
            progress.reason = call.name if tool else "unknown tool"
            result = (
                await self._parse_and_run(call, tool, progress.counts)
                if tool
                else error_result(call, self._unknown_tool_text(call))
            )
            progress.counts["errors"] = int(result.is_error)
            progress.counts["characters"] = len(result.text)
            return result

    async def _parse_and_run(self, call: ToolCall, tool: Tool, counts: MutableMapping[str, int]) -> ToolResult:
        try:
            value = loads(call.arguments) if call.arguments.strip() else {}
        except InvalidMessage as error:
            return error_result(call, _invalid_arguments_text(tool, str(error)))
        if not isinstance(value, dict):
            return error_result(call, _invalid_arguments_text(tool, "This is JSON, but no object."))
        turn = self._turn
        context = ToolContext(
            call_id=call.id, scope=turn.scope, agent=turn.agent, session=turn.session, messages=self._window
        )
        decision = await self._decide(tool, value, context)
        if decision.refusal:
            counts["refused"] = 1
            return error_result(call, decision.refusal)
        return await self._run_with_timeout(call, tool, value, replace(context, approved=decision.approved))

    async def _decide(self, tool: Tool, arguments: dict[str, JsonValue], context: ToolContext) -> GateDecision:
        """Ask the gate. It may ask a person, so any exception is possible; it refuses the call."""
        if self._options.permission_gate is None:
            return GateDecision()
        try:
            return await self._options.permission_gate(tool, arguments, context)
        except anyio.get_cancelled_exc_class() as error:
            if anyio.current_effective_deadline() == -math.inf:
                raise
            return _refuse_undecided(tool, error)
        except (Exception, SystemExit) as error:  # noqa: BLE001  (see above)
            return _refuse_undecided(tool, error)

    async def _run_with_timeout(
        self, call: ToolCall, tool: Tool, arguments: dict[str, JsonValue], context: ToolContext
    ) -> ToolResult:
        seconds = self._options.timeout
        with anyio.move_on_after(seconds) as limit:
            return await self._invoke(call, tool, arguments, context)
        assert limit.cancelled_caught
        return error_result(
            call,
            f"{call.name} did not answer within {seconds:g} seconds and was stopped: whether it did its work is not "
            "known. Ask it for less, or go on without it.",
        )

    async def _invoke(
        self, call: ToolCall, tool: Tool, arguments: dict[str, JsonValue], context: ToolContext
    ) -> ToolResult:
        """Call the tool. Any exception is caught here, so that none ends the turn.

        A cancellation that did not come from outside, such as of a task that the tool awaited, counts as the tool's
        failure.
        """
        try:
            return tool_result(call, await tool(arguments, context))
        except anyio.get_cancelled_exc_class() as error:
            if anyio.current_effective_deadline() == -math.inf:
                raise
            return exception_result(call, error)
        except (Exception, SystemExit) as error:  # noqa: BLE001  (see above)
            return exception_result(call, error)

    def _unknown_tool_text(self, call: ToolCall) -> str:
        names = ", ".join(self._options.tools)
        hint = f"There are: {names}." if names else "No tool can be called here: answer without one."
        return f"There is no tool {call.name!r}. {hint}"


def deduplicate_call_ids(reply: Message) -> tuple[Message, frozenset[str]]:
    """Return `reply` with unique ids for its calls, and the ids of calls that only repeat another.

    Servers may use one id twice or none, and results could not be told apart. A call repeats another if id, name and
    arguments are the same.
    """
    used_ids = {call.id for call in reply.tool_calls} | {""}
    seen: set[str] = set()
    calls: set[ToolCall] = set()
    repeated: set[str] = set()
    parts: list[Part] = []
    for part in reply.parts:
        if isinstance(part, ToolCall):
            call_id = part.id if part.id not in seen | {""} else _free_id(part.id or "call", used_ids)
            if part.id and part in calls:
                repeated.add(call_id)
            calls.add(part)
            seen.add(call_id)
            used_ids.add(call_id)
            parts.append(replace(part, id=call_id))
        else:
            parts.append(part)
    return replace(reply, parts=tuple(parts)), frozenset(repeated)


def _free_id(prefix: str, used_ids: Collection[str]) -> str:
    return next(name for number in range(2, len(used_ids) + 3) if (name := f"{prefix}-{number}") not in used_ids)


def _unfinished_text(call: ToolCall) -> str:
    return f"{call.name} was cancelled before it ended: whether it did its work is not known."


def _refuse_undecided(tool: Tool, error: BaseException) -> GateDecision:
    reason = str(error) if isinstance(error, RicordoError) else type(error).__name__
    return GateDecision(
        refusal=f"{tool.spec.name} was not run, because it could not be decided whether it may be: {reason}"
    )


def _invalid_arguments_text(tool: Tool, reason: str) -> str:
    fields = tool.spec.parameters.get("properties")
    names = ", ".join(fields) if isinstance(fields, dict) and fields else "none"
    return (
        f"The arguments of {tool.spec.name} are no JSON object. {reason} "
        f"Call it again with one JSON object; its fields: {names}."
    )
