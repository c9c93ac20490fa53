"""Clients of OpenAI and Anthropic for programs with a loop of their own (extra `models`).

`SessionMemory.wrap` returns a client whose calls for chat completions or messages record what is new in `messages` and
the reply, and send the window of the session, with its memory, in the place of `messages`. The program goes on as
before: it passes the whole conversation, or after a start only what is new.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, Unpack

from ricordo.adapters.core import Adapter, Conversation, ConversationOptions, GivenContext
from ricordo.errors import InvalidSetting
from ricordo.lazy import dataclass
from ricordo.messages import Message, Part, Text
from ricordo.messages.formats import from_anthropic, from_openai, to_anthropic, to_openai
from ricordo.messages.json_text import loads

__all__ = ["SessionMemory"]

_Client = TypeVar("_Client")
_Fields = dict[str, Any]
_Said = tuple[str, tuple[Part, ...]]
"""Who said what: a message as it is recognised again."""


class _Protocol(Protocol):
    """How one of the APIs says what a conversation is."""

    def read(self, fields: Mapping[str, Any]) -> list[Message]:
        """Return the messages of a request without the system prompt."""
        ...

    def write(self, fields: Mapping[str, Any], given: GivenContext) -> _Fields:
        """Return the fields of a request with the window and the memory in the place of its messages."""
        ...

    def read_reply(self, reply: Any) -> list[Message]:
        """Return a reply, an object or what `gather` made of a stream, as messages."""
        ...

    def gather(self, reply: _Fields, event: Any) -> None:
        """Add an event of a stream to the reply."""
        ...


class SessionMemory(Adapter):
    """The memory of one session of a program. Use it as `async with` for a client that awaits, else as `with`."""

    def __init__(self, session: str, **options: Unpack[ConversationOptions]) -> None:
        """Store the options, which are those of `Conversation`. Raises: what `Conversation` raises."""
        super().__init__(Conversation(session, **options))
        self._passed: list[_Said] | None = None

    def wrap(self, client: _Client) -> _Client:
        """Return a copy of a client of `openai` or `anthropic` whose calls have this memory; `client` stays as it is.

        The calls are `chat.completions.create` of OpenAI, and `messages.create` and `messages.stream` of Anthropic.
        Raises: InvalidSetting for another client.
        """
        name = type(client).__module__.partition(".")[0]
        if name not in {"openai", "anthropic"}:
            raise InvalidSetting(f"A client of openai or anthropic can be wrapped, not {type(client).__qualname__}.")
        wrapped: Any = client.copy()  # type: ignore[attr-defined]
        awaits = hasattr(client, "__aenter__")
        if name == "openai":
            self._wrap_create(wrapped.chat.completions, _OpenAI(), awaits=awaits)
        else:
            self._wrap_create(wrapped.messages, _Anthropic(), awaits=awaits)
            stream = self._awaiting_stream if awaits else self._blocking_stream
            wrapped.messages.stream = partial(stream, wrapped.messages.stream, _Anthropic())
        result: _Client = wrapped
        return result

    def _wrap_create(self, resource: Any, api: _Protocol, *, awaits: bool) -> None:
        create = self._awaiting_create if awaits else self._blocking_create
        resource.create = partial(create, resource.create, api)

    async def _awaiting_create(self, create: Callable[..., Awaitable[Any]], api: _Protocol, **fields: Any) -> Any:
        reply = await create(**await self.run(partial(self._prepare, api, fields)))
        if fields.get("stream"):
            return _AwaitedStream(reply, api, lambda whole: self.run(partial(self._record, api, whole)))
        await self.run(partial(self._record, api, reply))
        return reply

    def _blocking_create(self, create: Callable[..., Any], api: _Protocol, **fields: Any) -> Any:
        reply = create(**self.run_blocking(partial(self._prepare, api, fields)))
        if fields.get("stream"):
            return _BlockingStream(reply, api, lambda whole: self.run_blocking(partial(self._record, api, whole)))
        self.run_blocking(partial(self._record, api, reply))
        return reply

    @asynccontextmanager
    async def _awaiting_stream(self, stream: Callable[..., Any], api: _Protocol, **fields: Any) -> AsyncIterator[Any]:
        async with stream(**await self.run(partial(self._prepare, api, fields))) as events:
            yield events
            final = await events.get_final_message()
        await self.run(partial(self._record, api, final))

    @contextmanager
    def _blocking_stream(self, stream: Callable[..., Any], api: _Protocol, **fields: Any) -> Iterator[Any]:
        with stream(**self.run_blocking(partial(self._prepare, api, fields))) as events:
            yield events
            final = events.get_final_message()
        self.run_blocking(partial(self._record, api, final))

    async def _prepare(self, api: _Protocol, fields: Mapping[str, Any]) -> _Fields:
        passed = api.read(fields)
        keys: list[_Said] = [(each.role, each.parts) for each in passed]
        if self._passed is None:
            self._passed = _find_overlap((await self.conversation.agent()).window, keys)
        known = len(self._passed) if keys[: len(self._passed)] == self._passed else 0
        await self.conversation.take_in(passed[known:])
        self._passed = keys
        newest = next((each for each in reversed(passed) if each.role == "user" and each.text), None)
        return api.write(fields, await self.conversation.give([] if newest is None else [newest]))

    async def _record(self, api: _Protocol, reply: Any) -> None:
        messages = api.read_reply(reply)
        await self.conversation.take_in(messages)
        self._passed = [*(self._passed or ()), *((each.role, each.parts) for each in messages)]


def _find_overlap(window: Sequence[Message], keys: Sequence[_Said]) -> list[_Said]:
    """Return the first of `keys` that the window ends with: a program may pass what it said before it was started."""
    recorded: list[_Said] = [(each.role, each.parts) for each in window]
    for length in range(min(len(recorded), len(keys)), 0, -1):
        if recorded[-length:] == [*keys[:length]]:
            return [*keys[:length]]
    return []


@dataclass
class _BlockingStream:
    """A stream of a reply, which is recorded when it was read to its end."""

    inner: Any
    api: _Protocol
    record: Callable[[_Fields], None]

    def __iter__(self) -> Iterator[Any]:
        """Return the events."""
        whole: _Fields = {}
        for event in self.inner:
            self.api.gather(whole, event)
            yield event
        self.record(whole)

    def __enter__(self) -> Self:
        """Return the stream."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the response."""
        self.inner.close()

    def __getattr__(self, name: str) -> Any:
        """Return what the SDK's stream has."""
        return getattr(self.inner, name)


@dataclass
class _AwaitedStream:
    """The same for a client that awaits."""

    inner: Any
    api: _Protocol
    record: Callable[[_Fields], Awaitable[None]]

    async def __aiter__(self) -> AsyncIterator[Any]:
        """Return the events."""
        whole: _Fields = {}
        async for event in self.inner:
            self.api.gather(whole, event)
            yield event
        await self.record(whole)

    async def __aenter__(self) -> Self:
        """Return the stream."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the response."""
        await self.inner.close()

    def __getattr__(self, name: str) -> Any:
        """Return what the SDK's stream has."""
        return getattr(self.inner, name)


class _OpenAI:
    """Chat completions."""

    def read(self, fields: Mapping[str, Any]) -> list[Message]:
        return from_openai([each for each in map(_to_json, fields["messages"]) if not _is_system(each)])

    def write(self, fields: Mapping[str, Any], given: GivenContext) -> _Fields:
        systems = [each for each in map(_to_json, fields["messages"]) if _is_system(each)]
        if given.memory and systems and isinstance(systems[-1].get("content"), str):
            systems[-1] = {**systems[-1], "content": f"{systems[-1]['content']}\n\n{given.memory}"}
        elif given.memory:
            systems.append({"role": "system", "content": given.memory})
        return {**fields, "messages": [*systems, *to_openai(_with_recalled(given))]}

    def read_reply(self, reply: Any) -> list[Message]:
        message = reply["message"] if isinstance(reply, dict) else _to_json(reply.choices[0].message)
        return from_openai([message])

    def gather(self, reply: _Fields, event: Any) -> None:
        message = reply.setdefault("message", {"role": "assistant", "content": ""})
        for choice in event.choices:
            if choice.index == 0:
                message["content"] += choice.delta.content or ""
                for part in choice.delta.tool_calls or ():
                    _add_call(message, part)


def _add_call(message: _Fields, part: Any) -> None:
    calls = message.setdefault("tool_calls", [])
    while len(calls) <= part.index:
        calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
    call, function = calls[part.index], part.function
    call["id"] = part.id or call["id"]
    if function is not None:
        call["function"]["name"] += function.name or ""
        call["function"]["arguments"] += function.arguments or ""


class _Anthropic:
    """Messages."""

    def read(self, fields: Mapping[str, Any]) -> list[Message]:
        return from_anthropic([*map(_to_json, fields["messages"])])

    def write(self, fields: Mapping[str, Any], given: GivenContext) -> _Fields:
        prompt = to_anthropic(_with_recalled(given))
        written = {**fields, "messages": prompt.messages}
        system = fields.get("system")
        if given.memory and isinstance(system, Iterable) and not isinstance(system, str):
            written["system"] = [*system, {"type": "text", "text": given.memory}]
        elif given.memory:
            written["system"] = "\n\n".join(filter(None, (system if isinstance(system, str) else "", given.memory)))
        return written

    def read_reply(self, reply: Any) -> list[Message]:
        value = reply if isinstance(reply, dict) else _to_json(reply)
        return from_anthropic([{"role": "assistant", "content": value["content"]}])

    def gather(self, reply: _Fields, event: Any) -> None:
        blocks: list[_Fields] = reply.setdefault("content", [])
        if event.type == "content_block_start":
            blocks.append(_to_json(event.content_block))
        elif event.type == "content_block_delta":
            _add_delta(blocks[-1], event.delta)
        elif event.type == "content_block_stop" and isinstance(written := blocks[-1].pop("json", None), str):
            blocks[-1]["input"] = loads(written or "{}")


def _add_delta(block: _Fields, delta: Any) -> None:
    match delta.type:
        case "text_delta":
            block["text"] += delta.text
        case "thinking_delta":
            block["thinking"] += delta.thinking
        case "signature_delta":
            block["signature"] = delta.signature
        case "input_json_delta":
            block["json"] = block.get("json", "") + delta.partial_json


def _with_recalled(given: GivenContext) -> list[Message]:
    recalled = [Message(role="user", parts=(Text(text=given.recalled),))] if given.recalled else []
    return [*given.window, *recalled]


def _is_system(message: Mapping[str, Any]) -> bool:
    return message.get("role") in {"system", "developer"}


def _to_json(value: Any) -> Any:
    """Return a message as JSON: a program may pass the SDK's own objects, also in the content."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, Mapping):
        return {key: _to_json(each) for key, each in value.items()}
    return [_to_json(each) for each in value] if isinstance(value, list | tuple) else value
