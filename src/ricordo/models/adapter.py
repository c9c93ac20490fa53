"""The one adapter to every provider, over pydantic-ai's requests without agents.

This module and `vectors` import vendors' packages and take a second to load; `provider` and `embedding` load them when
a model is asked for.

Invariant: what leaves here is a whole reply in our types or one of our errors. A stream whose provider never said that
it ended is no reply.
"""

import copy
import json
import sys
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NoReturn, Self

import httpx2
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from ricordo.errors import ModelOverflow, ModelRefused, ReplyInvalid
from ricordo.messages import JsonValue, Message, Text, ToolCall, ToolSpec, Usage
from ricordo.messages.dialects.pydantic_ai import from_pydantic_ai, to_pydantic_ai
from ricordo.models.caching import Caching, cache_settings, with_breakpoint
from ricordo.models.contract import Delta, Finished, Reply, ReplyEvent, Stop, TextDelta, ThinkingDelta
from ricordo.models.failures import fail
from ricordo.models.overflow import WINDOW_STOP, was_shortened
from ricordo.models.structured import ANSWER_TOOL, parse_answer
from ricordo.tokens import estimate_request

__all__ = ["ProviderModel", "failures_of_packages"]

_STOPS: dict[str, Stop] = {"stop": "end", "tool_call": "tools", "length": "length", "content_filter": "refused"}
_COUNTS = frozenset({"input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"})


@dataclass(kw_only=True)
class ProviderModel:
    """A `ChatModel` at a provider.

    `keys` are never shown in an error. `given_window` is what the user said the window is, in tokens; `told_window` is
    what the provider said when it was exceeded, which is believed before any table. `shortens` says that the server
    drops what does not fit without a word. `caching` is how the provider is told to keep the beginning of requests.
    `reply_limit` is how many tokens a reply may take; None leaves it to the provider.
    `base_url` is the address that was given for it, None for the provider's own.
    """

    name: str
    model: Model
    keys: tuple[str, ...] = field(default=(), repr=False)
    seconds: float = 300.0
    given_window: int | None = None
    told_window: int | None = None
    shortens: bool = False
    caching: Caching = "none"
    reply_limit: int | None = None
    base_url: str | None = None
    _unlimited: "ProviderModel | None" = field(default=None, repr=False)

    def limited(self, tokens: int) -> Self:
        """Return this model with replies of at most so many tokens; what it is told of its window both know."""
        made = copy.copy(self)
        made.reply_limit = tokens
        made._unlimited = self._unlimited or self
        return made

    @property
    def window(self) -> int | None:
        """The window in tokens: the smaller of what was given and told, else what pydantic-ai's tables say."""
        known = [size for size in (self.given_window, self.told_window) if size]
        return min(known) if known else self.model.context_window

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        """Return the reply to `messages`; see `ChatModel` for the errors."""
        written, parameters = self._written(messages, tools), self._parameters(tools, schema)
        try:
            response = await model_request(
                self.model, written, model_settings=self._settings(messages, tools), model_request_parameters=parameters
            )
        except failures_of_packages() as error:
            self._fail(error)
        return self._reply(response, messages, tools, schema)

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        """Give the reply as it comes; see `ChatModel` for the errors."""
        written, parameters = self._written(messages, tools), self._parameters(tools, schema)
        try:
            async with model_request_stream(
                self.model, written, model_settings=self._settings(messages, tools), model_request_parameters=parameters
            ) as events:
                async for event in events:
                    delta = _delta(event)
                    if delta is not None:
                        yield delta
                response = events.get()
        except failures_of_packages() as error:
            self._fail(error)
        if not _has_ended(response):
            raise ReplyInvalid(f"{self.name}: the stream broke off before the reply was whole.")
        yield Finished(reply=self._reply(response, messages, tools, schema))

    def _written(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[ModelMessage]:
        marked = with_breakpoint(self.caching, messages, tools)
        return ModelMessagesTypeAdapter.validate_python(to_pydantic_ai(marked))

    def _settings(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> ModelSettings:
        """Let the package wait as long as we do and never try again; what a package can't be told is left out."""
        unknown: Collection[str] = getattr(self.model, "unsupported_settings", ())
        settings = cache_settings(self.caching, self.name, messages, tools)
        if "timeout" not in unknown:
            settings["timeout"] = self.seconds
        if "max_retries" not in unknown:
            settings["max_retries"] = 0
        if self.reply_limit is not None and "max_tokens" not in unknown:
            settings["max_tokens"] = self.reply_limit
        return settings

    def _parameters(self, tools: Sequence[ToolSpec], schema: Mapping[str, JsonValue] | None) -> ModelRequestParameters:
        """Ask for an answer in a form natively where the model can, else by a tool."""
        functions = [
            ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters))
            for tool in tools
        ]
        if schema is None:
            return ModelRequestParameters(function_tools=functions)
        if self.model.profile.get("supports_json_schema_output"):
            form = OutputObjectDefinition(json_schema=dict(schema), name="answer")
            return ModelRequestParameters(function_tools=functions, output_mode="native", output_object=form)
        answer = ToolDefinition(
            name=ANSWER_TOOL, description="Give the answer.", parameters_json_schema=dict(schema), kind="output"
        )
        return ModelRequestParameters(
            function_tools=functions, output_mode="tool", output_tools=[answer], allow_text_output=False
        )

    def _reply(
        self,
        response: ModelResponse,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        schema: Mapping[str, JsonValue] | None,
    ) -> Reply:
        message = _with_answer_as_text(_read(response))
        usage = message.usage or Usage()
        stop = _stop(response, message)
        if response.finish_reason == "error":
            raise ReplyInvalid(f"{self.name} ended its reply with an error.")
        if stop == "refused":
            raise ModelRefused(f"{self.name} refused to answer.")
        if not message.text.strip() and not message.tool_calls:
            if stop == "window":
                raise ModelOverflow(f"{self.name}: the window was full before the reply began.", window=self.window)
            raise ReplyInvalid(f"{self.name} gave an empty reply.")
        if self.shortens:
            self._check_whole_prompt(usage.input, messages, tools)
        parsed = None
        if schema is not None and not message.tool_calls:
            parsed = parse_answer(message.text, schema, cut_off=stop in ("length", "window"))
        return Reply(
            message=message,
            parsed=parsed,
            usage=usage,
            model=response.model_name or self.model.model_name,
            stop=stop,
            cost=_cost(response),
        )

    def _check_whole_prompt(self, reported: int, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> None:
        estimated = estimate_request(messages, tools=tools).input
        if was_shortened(reported=reported, estimated=estimated):
            self._told(reported)
            raise ModelOverflow(
                f"{self.name} read only {reported:,} tokens of about {estimated:,}: the server cut the rest off.",
                window=reported,
                size=estimated,
            )

    def _fail(self, error: BaseException) -> NoReturn:
        try:
            fail(error, model=self.name, keys=self.keys)
        except ModelOverflow as overflow:
            self._told(overflow.window or self.told_window)
            raise

    def _told(self, window: int | None) -> None:
        self.told_window = window
        if self._unlimited is not None:
            self._unlimited.told_window = window


def failures_of_packages() -> tuple[type[Exception], ...]:
    """Return what pydantic-ai, the vendors' packages that are loaded and the transport raise.

    The last five are how these packages stumble over an answer that is JSON of another shape.
    """
    loaded = [
        found
        for package, name in (("openai", "OpenAIError"), ("anthropic", "AnthropicError"))
        if isinstance(found := getattr(sys.modules.get(package), name, None), type)
    ]
    stumbling = (ValueError, TypeError, LookupError, AttributeError, AssertionError)
    return (AgentRunError, UserError, httpx2.HTTPError, httpx2.StreamError, OSError, *loaded, *stumbling)


def _read(response: ModelResponse) -> Message:
    """Return the reply as a message, without what no later request needs: the address, and counts of other kinds."""
    (dumped,) = json.loads(ModelMessagesTypeAdapter.dump_json([response]))
    dumped["usage"] = {name: count for name, count in dumped["usage"].items() if name in _COUNTS}
    dumped["provider_url"] = None
    return from_pydantic_ai([dumped])[0]


def _with_answer_as_text(message: Message) -> Message:
    """Return `message` with the call of the answer's tool, which nobody runs, as the text that it stands for."""
    if not any(call.name == ANSWER_TOOL for call in message.tool_calls):
        return message
    parts = tuple(
        Text(text=part.arguments) if isinstance(part, ToolCall) and part.name == ANSWER_TOOL else part
        for part in message.parts
        if not isinstance(part, Text)
    )
    return Message(role=message.role, parts=parts, time=message.time, usage=message.usage)


def _delta(event: ModelResponseStreamEvent) -> Delta | None:
    match event:
        case PartStartEvent(part=TextPart(content=str(text))) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return TextDelta(text=text) if text else None
        case PartStartEvent(part=ThinkingPart(content=str(text))):
            return ThinkingDelta(text=text) if text else None
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))):
            return ThinkingDelta(text=text) if text else None
        case _:
            return None


def _raw_stop(response: ModelResponse) -> str:
    found = (response.provider_details or {}).get("finish_reason")
    return found if isinstance(found, str) else ""


def _has_ended(response: ModelResponse) -> bool:
    """Tell whether the provider said that the reply ended; pydantic-ai fills in a `stop` that nobody said."""
    return bool(_raw_stop(response)) or response.finish_reason not in (None, "stop")


def _stop(response: ModelResponse, message: Message) -> Stop:
    if _raw_stop(response) == WINDOW_STOP:
        return "window"
    stop = _STOPS.get(response.finish_reason or "", "end")
    if stop in ("end", "tools"):
        return "tools" if message.tool_calls else "end"
    return stop


def _cost(response: ModelResponse) -> Decimal | None:
    """Return the price by the tables inside the package genai-prices, which ask no network."""
    if response.usage.cost is not None:
        return response.usage.cost
    if not response.model_name:
        return None
    try:
        return response.cost().total_price
    except (LookupError, ValueError):
        return None
