"""The adapter to all chat providers, based on pydantic-ai's requests without agents.

It imports vendors' packages, which takes a second; `provider` imports it when a model is loaded.

Invariant: every call returns a complete reply in Ricordo's types or raises a Ricordo error. A stream without an end
signal from the provider is an error.
"""

import copy
import sys
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from decimal import Decimal
from functools import partial
from typing import NoReturn, Self

import httpx2
from anyio.to_thread import run_sync
from pydantic import ValidationError
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

from ricordo.errors import ModelError, ModelOverflow, ModelRefused, ReplyInvalid
from ricordo.lazy import dataclass
from ricordo.messages import JsonValue, Message, Part, Text, ToolCall, ToolSpec, Unknown, Usage
from ricordo.messages.formats.pydantic_ai import from_pydantic_ai, to_pydantic_ai
from ricordo.messages.tokens import estimate_request
from ricordo.models.contract import (
    Delta,
    Reply,
    ReplyEvent,
    ReplyFinished,
    RequestBody,
    StopReason,
    TextDelta,
    ThinkingDelta,
    capture_requests,
)
from ricordo.models.errors import WINDOW_STOP, is_prompt_truncated, raise_translated
from ricordo.models.request_messages import (
    RequestRules,
    count_prepared,
    make_tool_encodable,
    prepare_messages,
    select_rules,
)
from ricordo.models.request_settings import (
    CachingMode,
    cache_settings,
    split_volatile_end,
    thinking_settings,
    with_breakpoint,
)
from ricordo.models.structured import ANSWER_TOOL, split_type_unions, with_parsed
from ricordo.models.wrappers import MIN_REPLY_TOKENS, REPLY_MARGIN, limit_reply_tokens

__all__ = [
    "ProviderModel",
    "compute_cost",
    "has_ended",
    "package_error_types",
    "read_delta",
    "read_reply",
    "read_stop_reason",
]


_STOPS: dict[str, StopReason] = {"stop": "end", "tool_call": "tools", "length": "length", "content_filter": "refused"}
_COUNT_FIELDS = frozenset({"input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"})


def read_reply(response: ModelResponse) -> Message:
    """Return the reply as a message, without the provider's URL and other counts, which no later request needs.

    A call of the answer tool, which is never executed, becomes the text of the answer.
    """
    (dumped,) = ModelMessagesTypeAdapter.dump_python([response], mode="json")
    dumped["usage"] = {name: count for name, count in dumped["usage"].items() if name in _COUNT_FIELDS}
    dumped["provider_url"] = None
    return _with_answer_as_text(from_pydantic_ai([dumped])[0])


def _with_answer_as_text(message: Message) -> Message:
    """Return `message` with the call of the answer tool, which is never executed, as the text of the answer."""
    if not any(call.name == ANSWER_TOOL for call in message.tool_calls):
        return message
    parts = tuple(
        Text(text=part.arguments) if isinstance(part, ToolCall) and part.name == ANSWER_TOOL else part
        for part in message.parts
        if not isinstance(part, Text)
    )
    return Message(role=message.role, parts=parts, time=message.time, usage=message.usage)


def read_delta(event: ModelResponseStreamEvent) -> Delta | None:
    """Return the text or thinking that a stream event adds; None for any other event."""
    match event:
        case PartStartEvent(part=TextPart(content=str(text))) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return TextDelta(text=text) if text else None
        case PartStartEvent(part=ThinkingPart(content=str(text))):
            return ThinkingDelta(text=text) if text else None
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))):
            return ThinkingDelta(text=text) if text else None
        case _:
            return None


def _read_raw_stop(response: ModelResponse) -> str:
    finish_reason = (response.provider_details or {}).get("finish_reason")
    return finish_reason if isinstance(finish_reason, str) else ""


def has_ended(response: ModelResponse) -> bool:
    """Return whether the provider signalled the end of the reply; pydantic-ai fills in `stop` if it did not."""
    return bool(_read_raw_stop(response)) or response.finish_reason not in (None, "stop")


def read_stop_reason(response: ModelResponse, message: Message) -> StopReason:
    """Return why a reply ended, where `message` is its content."""
    if _read_raw_stop(response) == WINDOW_STOP:
        return "window"
    stop = _STOPS.get(response.finish_reason or "", "end")
    if stop in ("end", "tools"):
        return "tools" if message.tool_calls else "end"
    return stop


def compute_cost(response: ModelResponse) -> Decimal | None:
    """Return the price by the tables of the package genai-prices, without network access."""
    if response.usage.cost is not None:
        return response.usage.cost
    if not response.model_name:
        return None
    try:
        return response.cost().total_price
    except (LookupError, ValueError):
        return None


@dataclass(frozen=True, kw_only=True)
class _PreparedRequest:
    """A prepared request: its messages and tools as they are sent, and the settings."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    package_messages: list[ModelMessage]
    parameters: ModelRequestParameters
    settings: ModelSettings


@dataclass(kw_only=True)
class ProviderModel:
    """A `ChatModel` at a provider.

    `keys` are never shown in an error. `configured_window` is the user's setting of the window, in tokens.
    `reported_window` is the provider's value when it was exceeded; it takes precedence over any table until a larger
    request is answered. `truncates_silently` says that the server silently drops input that does not fit. `caching` is
    how prompt caching is requested. `reply_limit` is the maximum number of tokens of a reply; None leaves it to the
    provider. `base_url` is the configured URL, None for the provider's default. `has_request_preview` says that its
    requests go through our HTTP client, which can hold them back.
    """

    name: str
    model: Model
    keys: tuple[str, ...] = field(default=(), repr=False)
    seconds: float = 300.0
    configured_window: int | None = None
    reported_window: int | None = None
    truncates_silently: bool = False
    caching: CachingMode = "none"
    reply_limit: int | None = None
    base_url: str | None = None
    has_request_preview: bool = False
    temperature: float | None = None
    thinking: bool | str | None = None
    _without_limit: "ProviderModel | None" = field(default=None, repr=False)

    def with_reply_limit(self, tokens: int) -> Self:
        """Return a copy with replies of at most `tokens` tokens. Both share the reported window."""
        limited = copy.copy(self)
        limited.reply_limit = min(tokens, self.reply_limit or tokens)
        limited._without_limit = self._without_limit or self
        return limited

    @property
    def window(self) -> int | None:
        """The window in tokens: the smaller of the configured and the reported one, else that of pydantic-ai."""
        known_windows = [size for size in (self.configured_window, self.reported_window) if size]
        return min(known_windows) if known_windows else self.model.context_window

    @property
    def declared_window(self) -> int | None:
        """The window in tokens as configured, else by the tables, regardless of what a provider reported."""
        return self.configured_window or self.model.context_window

    @property
    def max_messages(self) -> int | None:
        """The maximum number of messages in one request; None if no limit is known."""
        return self.rules.max_messages

    @property
    def rules(self) -> RequestRules:
        """The rules of the provider's protocol."""
        return select_rules(self.model)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        """Return the reply to `messages`; see `ChatModel` for the errors."""
        request = await self._prepare_in_thread(messages, tools, schema)
        try:
            response = await self._request_reply(request)
        except ModelOverflow as overflow:
            shorter = self._with_shorter_reply(request, overflow)
            if shorter is None:
                raise
            response = await self._request_reply(shorter)
        return self._build_reply(response, request, schema)

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        """Yield the reply as it arrives; see `ChatModel` for the errors."""
        request = await self._prepare_in_thread(messages, tools, schema)
        has_started = False
        shorter: _PreparedRequest | None = None
        try:
            async for event in self._stream_reply(request, schema):
                has_started = True
                yield event
        except ModelOverflow as overflow:
            shorter = None if has_started else self._with_shorter_reply(request, overflow)
            if shorter is None:
                raise
        if shorter is not None:
            async for event in self._stream_reply(shorter, schema):
                yield event

    async def request_body(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> RequestBody | None:
        """Return the request without sending it; see `ShowsRequests`."""
        if not self.has_request_preview:
            return None
        request = await self._prepare_in_thread(messages, tools, schema)
        with capture_requests() as captured, suppress(ModelError):
            await self._request_reply(request)
        return captured[0] if captured else None

    async def _request_reply(self, request: _PreparedRequest) -> ModelResponse:
        try:
            return await model_request(
                self.model,
                request.package_messages,
                model_settings=request.settings,
                model_request_parameters=request.parameters,
            )
        except package_error_types() as error:
            self._raise_translated(error)

    async def _stream_reply(
        self, request: _PreparedRequest, schema: Mapping[str, JsonValue] | None
    ) -> AsyncIterator[ReplyEvent]:
        try:
            async with model_request_stream(
                self.model,
                request.package_messages,
                model_settings=request.settings,
                model_request_parameters=request.parameters,
            ) as events:
                async for event in events:
                    delta = read_delta(event)
                    if delta is not None:
                        yield delta
                response = events.get()
        except package_error_types() as error:
            self._raise_translated(error)
        if not has_ended(response):
            raise ReplyInvalid(f"{self.name}: the stream broke off before the reply was whole.")
        yield ReplyFinished(reply=self._build_reply(response, request, schema))

    async def _prepare_in_thread(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], schema: Mapping[str, JsonValue] | None
    ) -> _PreparedRequest:
        """Return the request, prepared in a worker thread: a large conversation takes long.

        Raises: InvalidMessage if no message has content, ModelOverflow for too many messages.
        """
        return await run_sync(partial(self._prepare, messages, tools, schema))

    def _prepare(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], schema: Mapping[str, JsonValue] | None
    ) -> _PreparedRequest:
        rules = self.rules
        prepared = prepare_messages(messages, rules, provider=self.model.system)
        count = count_prepared(prepared, rules)
        if rules.max_messages is not None and count > rules.max_messages:
            raise ModelOverflow(
                f"{self.name} takes at most {rules.max_messages:,} messages in a request, and this one has {count:,}: "
                "compact the session, or begin a new one.",
                messages=rules.max_messages,
            )
        specs = tuple(map(make_tool_encodable, tools))
        sent, end = split_volatile_end(self.caching, messages, prepared)
        return _PreparedRequest(
            messages=prepared,
            tools=specs,
            package_messages=_to_package_messages(with_breakpoint(self.caching, sent, specs)),
            parameters=replace(self._request_parameters(specs, schema), instruction_parts=end),
            settings=self._request_settings(prepared, specs),
        )

    def _request_settings(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> ModelSettings:
        """Return the settings with our timeout and no retries, without those that the package does not support."""
        unknown: Collection[str] = getattr(self.model, "unsupported_settings", ())
        settings = cache_settings(self.caching, self.name, messages, tools)
        if "timeout" not in unknown:
            settings["timeout"] = self.seconds
        if "max_retries" not in unknown:
            settings["max_retries"] = 0
        limit = self._reply_limit(messages, tools)
        if limit is not None and "max_tokens" not in unknown:
            settings["max_tokens"] = limit
        thinking_values = thinking_settings(
            self.model, messages, thinking=self.thinking, temperature=self.temperature, limit=limit
        )
        for name in unknown:
            thinking_values.pop(name, None)  # type: ignore[misc]
        return {**settings, **thinking_values}

    def _reply_limit(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> int | None:
        """Return the maximum tokens of the reply: no more than the window leaves after the prompt."""
        window, requested = self.window, self.reply_limit or self.rules.reply_tokens
        if window is None or requested is None:
            return self.reply_limit
        bounded = limit_reply_tokens(requested, window, prompt=estimate_request(messages, tools=tools).input)
        return self.reply_limit if bounded == requested else bounded

    def _with_shorter_reply(self, request: _PreparedRequest, overflow: ModelOverflow) -> _PreparedRequest | None:
        """Return the request with a smaller reply limit if the reply limit caused the overflow; else None."""
        limit = request.settings.get("max_tokens") or self.rules.reply_tokens
        if limit is None or overflow.window is None:
            return None
        prompt = overflow.size or estimate_request(request.messages, tools=request.tools).input
        remaining = overflow.window - prompt - REPLY_MARGIN
        if not MIN_REPLY_TOKENS <= remaining < limit:
            return None
        return replace(request, settings={**request.settings, "max_tokens": remaining})

    def _request_parameters(
        self, tools: Sequence[ToolSpec], schema: Mapping[str, JsonValue] | None
    ) -> ModelRequestParameters:
        """Request a structured answer natively if the model supports it, else by a tool."""
        functions = [
            ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters))
            for tool in tools
        ]
        if schema is None:
            return ModelRequestParameters(function_tools=functions)
        answer_schema = split_type_unions(schema)
        if self.model.profile.get("supports_json_schema_output"):
            output_format = OutputObjectDefinition(json_schema=answer_schema, name="answer")
            return ModelRequestParameters(function_tools=functions, output_mode="native", output_object=output_format)
        answer = ToolDefinition(
            name=ANSWER_TOOL, description="Give the answer.", parameters_json_schema=answer_schema, kind="output"
        )
        return ModelRequestParameters(
            function_tools=functions, output_mode="tool", output_tools=[answer], allow_text_output=False
        )

    def _build_reply(
        self, response: ModelResponse, request: _PreparedRequest, schema: Mapping[str, JsonValue] | None
    ) -> Reply:
        message = read_reply(response)
        usage = message.usage or Usage()
        stop = read_stop_reason(response, message)
        if response.finish_reason == "error":
            raise ReplyInvalid(f"{self.name} ended its reply with an error.")
        if stop == "refused":
            raise ModelRefused(f"{self.name} refused to answer.")
        if not message.text.strip() and not message.tool_calls:
            if stop == "window":
                raise ModelOverflow(f"{self.name}: the window was full before the reply began.", window=self.window)
            raise ReplyInvalid(f"{self.name} gave an empty reply.")
        if self.truncates_silently:
            self._check_whole_prompt(usage.input, request)
        if self.reported_window is not None and usage.input > self.reported_window:
            self._set_reported_window(None)
        reply = Reply(
            message=message,
            usage=usage,
            model=response.model_name or self.model.model_name,
            stop=stop,
            cost=compute_cost(response),
        )
        return reply if schema is None or message.tool_calls else with_parsed(reply, schema)

    def _check_whole_prompt(self, reported: int, request: _PreparedRequest) -> None:
        estimated = estimate_request(request.messages, tools=request.tools).input
        if is_prompt_truncated(reported=reported, estimated=estimated):
            self._set_reported_window(reported)
            raise ModelOverflow(
                f"{self.name} read only {reported:,} tokens of about {estimated:,}: the server cut the rest off.",
                window=reported,
                size=estimated,
            )

    def _raise_translated(self, error: BaseException) -> NoReturn:
        try:
            raise_translated(error, model=self.name, keys=self.keys)
        except ModelOverflow as overflow:
            self._set_reported_window(overflow.window or self.reported_window)
            raise

    def _set_reported_window(self, window: int | None) -> None:
        self.reported_window = window
        if self._without_limit is not None:
            self._without_limit.reported_window = window


def package_error_types() -> tuple[type[Exception], ...]:
    """Return the exception types of pydantic-ai, of the loaded vendors' packages and of the transport.

    The last five are raised by these packages for an answer that is JSON of an unexpected shape.
    """
    loaded = [
        error_type
        for package, name in (("openai", "OpenAIError"), ("anthropic", "AnthropicError"))
        if isinstance(error_type := getattr(sys.modules.get(package), name, None), type)
    ]
    stumbling = (ValueError, TypeError, LookupError, AttributeError, AssertionError)
    return (AgentRunError, UserError, httpx2.HTTPError, httpx2.StreamError, OSError, *loaded, *stumbling)


def _to_package_messages(messages: Sequence[Message]) -> list[ModelMessage]:
    """Return `messages` in the package's types, without extra data of another program if that is invalid."""
    try:
        return ModelMessagesTypeAdapter.validate_python(to_pydantic_ai(messages))
    except ValidationError:
        portable = [replace(each, metadata={}, parts=_without_unknown(each.parts)) for each in messages]
        return ModelMessagesTypeAdapter.validate_python(to_pydantic_ai(portable))


def _without_unknown(parts: Sequence[Part]) -> tuple[Part, ...]:
    return tuple(part for part in parts if not isinstance(part, Unknown))
