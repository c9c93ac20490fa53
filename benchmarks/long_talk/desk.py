"""Desk: the model and the tools of a scripted conversation, and how large the requests were that reached the model."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from long_talk.talk import Turn
from ricordo.agent.tools import Tool, ToolContext, ToolOutput
from ricordo.messages import JsonValue, ToolSpec, Usage
from ricordo.messages.tokens import estimate_request
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel

__all__ = ["Desk"]

_PARAMETERS = {
    "read_file": ("path",),
    "grep_files": ("pattern",),
    "bash": ("command",),
    "write_file": ("path", "content"),
}


@dataclass(kw_only=True)
class Desk:
    """Plays one turn after the other to an agent; whatever is sent is accepted, and counted in tokens."""

    window: int
    requests: int = 0
    tokens: int = 0
    largest: int = 0
    over: int = 0
    _left: deque[Call | Say] = field(default_factory=deque)
    _outputs: dict[str, str] = field(default_factory=dict)

    def begin(self, turn: Turn) -> None:
        """Play this turn next."""
        calls = [
            Call(call.tool, dict(call.arguments), id=f"call_{self.requests}_{at}") for at, call in enumerate(turn.calls)
        ]
        self._outputs = {made.id: call.output for made, call in zip(calls, turn.calls, strict=True)}
        self._left = deque([*calls, Say(turn.reply)])

    def model(self) -> ScriptedModel:
        """Return the model that the agent asks."""
        return ScriptedModel(self._answer, window=self.window)

    def tools(self) -> list[Tool]:
        """Return the tools that the model calls."""
        return [_Played(name=name, outputs=self) for name in _PARAMETERS]

    def output(self, call_id: str) -> str:
        """Return what a call of the turn answers."""
        return self._outputs[call_id]

    def _answer(self, request: RecordedRequest) -> Call | Say:
        size = estimate_request(request.messages, tools=request.tools).input
        self.requests += 1
        self.tokens += size
        self.largest = max(self.largest, size)
        self.over += size > self.window
        return replace(self._left.popleft(), usage=Usage(input=size, output=1))


@dataclass(frozen=True, kw_only=True)
class _Played:
    """A tool that answers what the turn has for the call."""

    name: str
    outputs: Desk

    @property
    def spec(self) -> ToolSpec:
        texts: dict[str, JsonValue] = {name: {"type": "string"} for name in _PARAMETERS[self.name]}
        parameters: dict[str, JsonValue] = {"type": "object", "properties": texts, "required": [*texts]}
        return ToolSpec(name=self.name, description=f"Do {self.name} in the project.", parameters=parameters)

    async def __call__(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolOutput:
        return self.outputs.output(context.call_id)
