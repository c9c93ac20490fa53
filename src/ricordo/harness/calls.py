"""The tool calls of one reply: run at the same time, answered in their order, one message for all.

Whatever goes wrong with a call is told to the model as its result, in words that say what to do. One message holds
the results of a step, because a conversation may not be cut between results of calls that were made together.

Invariant: `result_message` answers every call once, whenever and however `run` ended.
"""

import math
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace

import anyio

from ricordo.errors import InvalidMessage, RicordoError
from ricordo.events import Emitter
from ricordo.harness.gate import PermissionGate, GateDecision
from ricordo.harness.results import tool_result, error_result, exception_result
from ricordo.messages import JsonValue, Message, Part, ToolCall, ToolResult
from ricordo.messages.jsontext import loads
from ricordo.middleware import ToolFinished, ToolStarted, Turn, TurnEvent
from ricordo.tools import Tool, ToolContext

__all__ = ["REPEATED_CALL", "ToolCallBatch", "ToolCallOptions", "deduplicate_call_ids"]

REPEATED_CALL = (
    "This call stands twice in one reply, under one id and with the same arguments, and was run once. "
    "If it is to be done twice, call it again."
)


@dataclass(frozen=True, kw_only=True)
class ToolCallOptions:
    """How calls are run: with which tools, at most `parallel` at once, each for at most `timeout` seconds.

    `gate` decides on each call before its time begins; without one all are made.
    """

    tools: Mapping[str, Tool]
    emitter: Emitter
    parallel: int = 8
    timeout: float | None = None
    gate: PermissionGate | None = None


class ToolCallBatch:
    """The calls of one reply, their ids different from each other; run them once."""

    def __init__(self, calls: Sequence[ToolCall], turn: Turn, running: ToolCallOptions) -> None:
        """Begin with no call answered."""
        self._calls = tuple(calls)
        self._turn = turn
        self._options = running
        self._results: dict[str, ToolResult] = {}
        self._listener_lock = anyio.Lock()
        self._listener_error: Exception | None = None

    @property
    def unanswered_ids(self) -> frozenset[str]:
        """The ids of the calls that are not answered yet."""
        return frozenset(call.id for call in self._calls if call.id not in self._results)

    def refuse(self, text: str, only: Collection[str] | None = None) -> None:
        """Answer the calls with these ids (all when None) with an error that says `text`; they won't be run."""
        refused = [call for call in self._calls if only is None or call.id in only]
        self._results.update((call.id, error_result(call, text)) for call in refused)

    def result_message(self) -> Message:
        """Return the results in the order of the calls; a call that has not ended gets an error that says so."""
        results = (self._results.get(call.id) or error_result(call, _unfinished_text(call)) for call in self._calls)
        return Message(role="tool", parts=tuple(results))

    async def run(self) -> None:
        """Run what was not refused. A cancellation goes through, and so does what the turn's listener raises."""
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
        context = ToolContext(call_id=call.id, scope=turn.scope, agent=turn.agent, session=turn.session)
        verdict = await self._decide(tool, value, context)
        if verdict.refusal:
            counts["refused"] = 1
            return error_result(call, verdict.refusal)
        return await self._run_with_timeout(call, tool, value, replace(context, approved=verdict.approved))

    async def _decide(self, tool: Tool, arguments: dict[str, JsonValue], context: ToolContext) -> GateDecision:
        """Ask the gate. It may ask a person, so anything may be raised behind it, and refuses the call."""
        if self._options.gate is None:
            return GateDecision()
        try:
            return await self._options.gate(tool, arguments, context)
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
        """Call the tool. This is the boundary behind which anything may be raised: nothing of it ends the turn.

        A cancellation that nobody asked for, such as of a task that the tool waited for, is the tool's failure too.
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
        there = f"There are: {names}." if names else "No tool can be called here: answer without one."
        return f"There is no tool {call.name!r}. {there}"


def deduplicate_call_ids(reply: Message) -> tuple[Message, frozenset[str]]:
    """Return `reply` with a different id for each of its calls, and the ids of those that only repeat another.

    Servers give one id twice, or none; results could not be told apart. A call repeats another one when id, name and
    arguments are the same.
    """
    taken = {call.id for call in reply.tool_calls} | {""}
    seen: set[str] = set()
    calls: set[ToolCall] = set()
    repeated: set[str] = set()
    parts: list[Part] = []
    for part in reply.parts:
        if isinstance(part, ToolCall):
            own = part.id if part.id not in seen | {""} else _free_id(part.id or "call", taken)
            if part.id and part in calls:
                repeated.add(own)
            calls.add(part)
            seen.add(own)
            taken.add(own)
            parts.append(replace(part, id=own))
        else:
            parts.append(part)
    return replace(reply, parts=tuple(parts)), frozenset(repeated)


def _free_id(stem: str, taken: Collection[str]) -> str:
    return next(name for number in range(2, len(taken) + 3) if (name := f"{stem}-{number}") not in taken)


def _unfinished_text(call: ToolCall) -> str:
    return f"{call.name} was cancelled before it ended: whether it did its work is not known."


def _refuse_undecided(tool: Tool, error: BaseException) -> GateDecision:
    said = str(error) if isinstance(error, RicordoError) else type(error).__name__
    return GateDecision(
        refusal=f"{tool.spec.name} was not run, because it could not be decided whether it may be: {said}"
    )


def _invalid_arguments_text(tool: Tool, reason: str) -> str:
    fields = tool.spec.parameters.get("properties")
    names = ", ".join(fields) if isinstance(fields, dict) and fields else "none"
    return (
        f"The arguments of {tool.spec.name} are no JSON object. {reason} "
        f"Call it again with one JSON object; its fields: {names}."
    )
