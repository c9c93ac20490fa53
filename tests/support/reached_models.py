"""Models at a server on this machine, asked as programs ask them: through the packages of their providers."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ricordo.messages import JsonValue, Message, Text, ToolSpec
from ricordo.models import ChatModel, Reply, ReplyEvent, ReplyFinished, RetryConfig, load_model
from ricordo.testing import LoopbackServer, ScriptLike

__all__ = ["ASK", "KEY", "MODELS", "NOW", "ONCE", "ask", "drain", "load_packages", "reach", "serving"]

MODELS = ("openai-chat:gpt-4o", "openai:gpt-4o", "anthropic:claude-sonnet-5")
KEY = "sk-test-" + "q" * 32
NOW = RetryConfig(first_delay=0.0, longest_delay=0.0)
ONCE = RetryConfig(attempts=1)
ASK = (Message(role="system", parts=(Text(text="Be short."),)), Message(role="user", parts=(Text(text="Hello?"),)))


def load_packages() -> None:
    """Load the packages of the providers outside of the event loop, as a program does."""
    for name in ("openai-chat:x", "openai:x", "anthropic:x", "openrouter:x/y", "ollama:x", "vllm:x"):
        load_model(name, base_url="http://127.0.0.1:9", api_key=KEY)


@contextmanager
def serving(script: ScriptLike) -> Iterator[LoopbackServer]:
    """Play `script`; at the end, nothing may have gone wrong in the test itself."""
    with LoopbackServer(script) as server:
        yield server
    assert server.problems == ()


def reach(
    server: LoopbackServer, name: str, *, retry: RetryConfig = ONCE, timeout: float = 20.0, window: int | None = None
) -> ChatModel:
    """Return the model of this name at the server."""
    path = "" if name.startswith("anthropic:") else "/v1"
    return load_model(name, base_url=server.url + path, api_key=KEY, retry=retry, timeout=timeout, window=window)


async def drain(events: AsyncIterator[ReplyEvent], given: list[ReplyEvent] | None = None) -> list[ReplyEvent]:
    """Return the events; those that came before a failure are in `given`."""
    found = [] if given is None else given
    async for event in events:
        found.append(event)
    return found


async def ask(
    model: ChatModel,
    messages: Sequence[Message] = ASK,
    *,
    stream: bool = False,
    tools: Sequence[ToolSpec] = (),
    schema: Mapping[str, JsonValue] | None = None,
) -> Reply:
    """Return the reply, asked for as a whole or as a stream."""
    if not stream:
        return await model.complete(messages, tools=tools, schema=schema)
    last = (await drain(model.stream(messages, tools=tools, schema=schema)))[-1]
    assert isinstance(last, ReplyFinished)
    return last.reply
