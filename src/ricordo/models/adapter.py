"""The one adapter to every provider, over pydantic-ai's requests without agents.

It imports vendors' packages, which takes a second; `provider` loads it when a model is asked for.

Invariant: what leaves here is a whole reply in our types or one of our errors. A stream whose provider never said that
it ended is no reply.
"""

import copy
import sys
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
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
from ricordo.models.request_settings import CachingMode, cache_settings, thinking_settings, with_breakpoint
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
    """Return the reply as a message, without what no later request needs: the address, and counts of other kinds.

    The call of the answer's tool, which nobody runs, becomes the text that it stands for.
    """
    (dumped,) = ModelMessagesTypeAdapter.dump_python([response], mode="json")
    dumped["usage"] = {name: count for name, count in dumped["usage"].items() if name in _COUNT_FIELDS}
    dumped["provider_url"] = None
    return _with_answer_as_text(from_pydantic_ai([dumped])[0])


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


def read_delta(event: ModelResponseStreamEvent) -> Delta | None:
    """Return what an event of a stream adds to the text or the thoughts; None for any other one."""
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
    found = (response.provider_details or {}).get("finish_reason")
    return found if isinstance(found, str) else ""


def has_ended(response: ModelResponse) -> bool:
    """Tell whether the provider said that the reply ended; pydantic-ai fills in a `stop` that nobody said."""
    return bool(_read_raw_stop(response)) or response.finish_reason not in (None, "stop")


def read_stop_reason(response: ModelResponse, message: Message) -> StopReason:
    """Return why a reply ended, `message` being what it says."""
    if _read_raw_stop(response) == WINDOW_STOP:
        return "window"
    stop = _STOPS.get(response.finish_reason or "", "end")
    if stop in ("end", "tools"):
        return "tools" if message.tool_calls else "end"
    return stop


def compute_cost(response: ModelResponse) -> Decimal | None:
    """Return the price by the tables inside the package genai-prices, which ask no network."""
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
    """A request that can be written: its messages and tools as they are sent, and the settings."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    package_messages: list[ModelMessage]
    parameters: ModelRequestParameters
    settings: ModelSettings


@dataclass(kw_only=True)
class ProviderModel:
    """A `ChatModel` at a provider.

    `keys` are never shown in an error. `configured_window` is what the user said the window is, in tokens;
    `reported_window` is what the provider said when it was exceeded, which is believed before any table, until a larger
    request is answered. `shortens` says that the server drops what does not fit without a word. `caching` is how the
    provider is told to keep the beginning of requests. `reply_limit` is how many tokens a reply may take; None leaves
    it to the provider. `base_url` is the address that was given for it, None for the provider's own. `shows` tells that
    its requests go through a client of ours, which can hold them back.
    """

    name: str
    model: Model
    keys: tuple[str, ...] = field(default=(), repr=False)
    seconds: float = 300.0
    configured_window: int | None = None
    reported_window: int | None = None
    shortens: bool = False
    caching: CachingMode = "none"
    reply_limit: int | None = None
    base_url: str | None = None
    shows: bool = False
    temperature: float | None = None
    thinking: bool | str | None = None
    _without_limit: "ProviderModel | None" = field(default=None, repr=False)

    def with_reply_limit(self, tokens: int) -> Self:
        """Return this model with replies of at most so many tokens; what it is told of its window both know."""
        made = copy.copy(self)
        made.reply_limit = min(tokens, self.reply_limit or tokens)
        made._without_limit = self._without_limit or self
        return made

    @property
    def window(self) -> int | None:
        """The window in tokens: the smaller of what was given and told, else what pydantic-ai's tables say."""
        known = [size for size in (self.configured_window, self.reported_window) if size]
        return min(known) if known else self.model.context_window

    @property
    def declared_window(self) -> int | None:
        """The window in tokens as it was given, else by the tables, whatever a provider said of one request."""
        return self.configured_window or self.model.context_window

    @property
    def max_messages(self) -> int | None:
        """How many messages one request may have; None where no limit is known."""
        return self.rules.max_messages

    @property
    def rules(self) -> RequestRules:
        """What the provider takes in a request."""
        return select_rules(self.model)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        """Return the reply to `messages`; see `ChatModel` for the errors."""
        asked = await self._prepare_in_thread(messages, tools, schema)
        try:
            response = await self._request_reply(asked)
        except ModelOverflow as overflow:
            shorter = self._with_shorter_reply(asked, overflow)
            if shorter is None:
                raise
            response = await self._request_reply(shorter)
        return self._build_reply(response, asked, schema)

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        """Give the reply as it comes; see `ChatModel` for the errors."""
        asked = await self._prepare_in_thread(messages, tools, schema)
        begun = False
        shorter: _PreparedRequest | None = None
        try:
            async for event in self._stream_reply(asked, schema):
                begun = True
                yield event
        except ModelOverflow as overflow:
            shorter = None if begun else self._with_shorter_reply(asked, overflow)
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
        """Return the request as it would be written, which is not sent; see `ShowsRequests`."""
        if not self.shows:
            return None
        asked = await self._prepare_in_thread(messages, tools, schema)
        with capture_requests() as held, suppress(ModelError):
            await self._request_reply(asked)
        return held[0] if held else None

    async def _request_reply(self, asked: _PreparedRequest) -> ModelResponse:
        try:
            return await model_request(
                self.model,
                asked.package_messages,
                model_settings=asked.settings,
                model_request_parameters=asked.parameters,
            )
        except package_error_types() as error:
            self._raise_translated(error)

    async def _stream_reply(
        self, asked: _PreparedRequest, schema: Mapping[str, JsonValue] | None
    ) -> AsyncIterator[ReplyEvent]:
        try:
            async with model_request_stream(
                self.model,
                asked.package_messages,
                model_settings=asked.settings,
                model_request_parameters=asked.parameters,
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
        yield ReplyFinished(reply=self._build_reply(response, asked, schema))

    async def _prepare_in_thread(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], schema: Mapping[str, JsonValue] | None
    ) -> _PreparedRequest:
        """Return the request as it is written, made in a worker thread: a large conversation takes long.

        Raises: InvalidMessage for one in which nobody says anything, ModelOverflow for one of too many messages.
        """
        return await run_sync(partial(self._prepare, messages, tools, schema))

    def _prepare(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], schema: Mapping[str, JsonValue] | None
    ) -> _PreparedRequest:
        rules = self.rules
        sent = prepare_messages(messages, rules, provider=self.model.system)
        count = count_prepared(sent, rules)
        if rules.max_messages is not None and count > rules.max_messages:
            raise ModelOverflow(
                f"{self.name} takes at most {rules.max_messages:,} messages in a request, and this one has {count:,}: "
                "compact the session, or begin a new one.",
                messages=rules.max_messages,
            )
        specs = tuple(map(make_tool_encodable, tools))
        return _PreparedRequest(
            messages=sent,
            tools=specs,
            package_messages=_to_package_messages(with_breakpoint(self.caching, sent, specs)),
            parameters=self._request_parameters(specs, schema),
            settings=self._request_settings(sent, specs),
        )

    def _request_settings(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> ModelSettings:
        """Let the package wait as long as we do and never try again; what a package can't be told is left out."""
        unknown: Collection[str] = getattr(self.model, "unsupported_settings", ())
        settings = cache_settings(self.caching, self.name, messages, tools)
        if "timeout" not in unknown:
            settings["timeout"] = self.seconds
        if "max_retries" not in unknown:
            settings["max_retries"] = 0
        limit = self._reply_limit(messages, tools)
        if limit is not None and "max_tokens" not in unknown:
            settings["max_tokens"] = limit
        thought = thinking_settings(
            self.model, messages, thinking=self.thinking, temperature=self.temperature, limit=limit
        )
        for name in unknown:
            thought.pop(name, None)  # type: ignore[misc]
        return {**settings, **thought}

    def _reply_limit(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> int | None:
        """Return how many tokens the reply may take: no more than the window leaves beside the prompt."""
        window, wanted = self.window, self.reply_limit or self.rules.reply_tokens
        if window is None or wanted is None:
            return self.reply_limit
        bounded = limit_reply_tokens(wanted, window, prompt=estimate_request(messages, tools=tools).input)
        return self.reply_limit if bounded == wanted else bounded

    def _with_shorter_reply(self, asked: _PreparedRequest, overflow: ModelOverflow) -> _PreparedRequest | None:
        """Return the request with room for a shorter reply, where it is that which was too large; else None."""
        limit = asked.settings.get("max_tokens") or self.rules.reply_tokens
        if limit is None or overflow.window is None:
            return None
        prompt = overflow.size or estimate_request(asked.messages, tools=asked.tools).input
        left = overflow.window - prompt - REPLY_MARGIN
        if not MIN_REPLY_TOKENS <= left < limit:
            return None
        return replace(asked, settings={**asked.settings, "max_tokens": left})

    def _request_parameters(
        self, tools: Sequence[ToolSpec], schema: Mapping[str, JsonValue] | None
    ) -> ModelRequestParameters:
        """Ask for an answer in a form natively where the model can, else by a tool."""
        functions = [
            ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters))
            for tool in tools
        ]
        if schema is None:
            return ModelRequestParameters(function_tools=functions)
        wanted = split_type_unions(schema)
        if self.model.profile.get("supports_json_schema_output"):
            form = OutputObjectDefinition(json_schema=wanted, name="answer")
            return ModelRequestParameters(function_tools=functions, output_mode="native", output_object=form)
        answer = ToolDefinition(
            name=ANSWER_TOOL, description="Give the answer.", parameters_json_schema=wanted, kind="output"
        )
        return ModelRequestParameters(
            function_tools=functions, output_mode="tool", output_tools=[answer], allow_text_output=False
        )

    def _build_reply(
        self, response: ModelResponse, asked: _PreparedRequest, schema: Mapping[str, JsonValue] | None
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
        if self.shortens:
            self._check_whole_prompt(usage.input, asked)
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

    def _check_whole_prompt(self, reported: int, asked: _PreparedRequest) -> None:
        estimated = estimate_request(asked.messages, tools=asked.tools).input
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


def _to_package_messages(messages: Sequence[Message]) -> list[ModelMessage]:
    """Return `messages` as the package has them, without what another program kept beside them where that is wrong."""
    try:
        return ModelMessagesTypeAdapter.validate_python(to_pydantic_ai(messages))
    except ValidationError:
        bare = [replace(each, metadata={}, parts=_without_unknown(each.parts)) for each in messages]
        return ModelMessagesTypeAdapter.validate_python(to_pydantic_ai(bare))


def _without_unknown(parts: Sequence[Part]) -> tuple[Part, ...]:
    return tuple(part for part in parts if not isinstance(part, Unknown))
