"""The scripted model behaves as the real adapter does behind the server: the same script, the same outcome."""

import pytest

from ricordo.errors import ModelError
from ricordo.messages import JsonValue, Message, Text, Usage
from ricordo.models import ChatModel, Reply, ReplyFinished, RetryConfig, load_model
from ricordo.testing import (
    Call,
    Calls,
    Empty,
    Fail,
    Garbage,
    LoopbackServer,
    Say,
    ScriptedModel,
    ScriptItem,
    overflow,
    rate_limit_error,
    server_error,
)

HELLO = [Message(role="user", parts=(Text(text="hello"),))]
USAGE = Usage(input=40, output=4, cache_read=8)
FORM: dict[str, JsonValue] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
NAMES = ["openai-chat:gpt-4o", "openai:gpt-4o", "anthropic:claude-sonnet-5"]
ITEMS: dict[str, ScriptItem] = {
    "text": Say("Good morning.", usage=USAGE),
    "thinking": Say("Good morning.", thinking="It is early.", usage=USAGE),
    "calls": Calls(Call("look", {"at": "sea"}), Call("look", {"at": "map"}), text="I look.", usage=USAGE),
    "cut by its limit": Say("Once upon", stop="length", usage=USAGE),
    "refused": Say("No.", stop="refused", usage=USAGE),
    "blank": Say("  ", usage=USAGE),
    "empty": Empty(),
    "garbage": Garbage(),
    "400": Fail(400, "Bad."),
    "401": Fail(401, "Who?"),
    "403": Fail(403, "No."),
    "404": Fail(404, "Where?"),
    "408": Fail(408, "Slow."),
    "409": Fail(409, "Busy."),
    "429": rate_limit_error(3),
    "500": server_error(),
    "504": Fail(504, "Slow."),
    "overflow": overflow("anthropic", window=10, size=20),
}


@pytest.fixture(autouse=True, scope="module")
def packages() -> None:
    """Load the packages of the providers outside of the event loop, as a program does."""
    for name in NAMES:
        load_model(name, base_url="http://127.0.0.1:9", api_key="key")


async def _outcome(model: ChatModel, *, stream: bool, schema: dict[str, JsonValue] | None = None) -> object:
    try:
        if not stream:
            return _shown(await model.complete(HELLO, schema=schema))
        last = [event async for event in model.stream(HELLO, schema=schema)][-1]
    except ModelError as error:
        numbers = [getattr(error, name, None) for name in ("window", "size", "retry_after")]
        return type(error).__name__, numbers
    assert isinstance(last, ReplyFinished)
    return _shown(last.reply)


def _shown(reply: Reply) -> object:
    calls = [(call.id, call.name, call.arguments) for call in reply.message.tool_calls]
    usage = (reply.usage.input, reply.usage.output, reply.usage.cache_read)
    return reply.message.text, calls, usage, reply.stop, reply.parsed


async def _both(
    item: ScriptItem, name: str, *, stream: bool, schema: dict[str, JsonValue] | None = None
) -> tuple[object, object]:
    in_process = await _outcome(ScriptedModel([item]), stream=stream, schema=schema)
    with LoopbackServer([item]) as server:
        url = server.url if name.startswith("anthropic") else f"{server.url}/v1"
        model = load_model(name, base_url=url, api_key="key", retry=RetryConfig(attempts=1))
        return in_process, await _outcome(model, stream=stream, schema=schema)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("item", ITEMS.values(), ids=ITEMS)
async def test_a_script_has_the_same_outcome_in_process_and_over_the_wire(
    item: ScriptItem, name: str, stream: bool, anyio_backend: str
) -> None:
    del anyio_backend
    in_process, over_the_wire = await _both(item, name, stream=stream)
    assert in_process == over_the_wire


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("text", ['{"n": 1}', "[1]", "{}", "no json"])
async def test_a_schema_has_the_same_outcome_in_process_and_over_the_wire(text: str, anyio_backend: str) -> None:
    del anyio_backend
    in_process, over_the_wire = await _both(Say(text, usage=USAGE), NAMES[0], stream=False, schema=FORM)
    assert in_process == over_the_wire
