"""A provider is told what to keep between requests, by what it takes, and nobody else is."""

import json
from collections.abc import Mapping, Sequence

import pytest

from reached_models import ASK, KEY, load_packages, reach, serving
from ricordo.messages import JsonValue, Message, Text, ToolResult, ToolSpec, Usage
from ricordo.models import ModelSettings
from ricordo.models.adapter import ProviderModel
from ricordo.models.connect import connect_model
from ricordo.models.request_settings import cache_key, cache_settings
from ricordo.testing import Call, LoopbackServer, Say

WEATHER = ToolSpec(name="weather", description="Tell the weather.", parameters={"type": "object", "properties": {}})
EPHEMERAL = {"type": "ephemeral", "ttl": "5m"}

pytestmark = pytest.mark.filterwarnings("ignore:Async generator '(openai|anthropic):ResourceWarning")


@pytest.fixture(autouse=True, scope="module")
def packages() -> None:
    """Load the packages of the providers outside of the event loop, as a program does."""
    load_packages()


def said(role: str, text: str) -> Message:
    return Message(role="assistant" if role == "assistant" else "user", parts=(Text(text=text),))


def marks(value: JsonValue) -> list[JsonValue]:
    """Return every cache mark in a part of a request, in its order."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [mark for each in value for mark in marks(each)]
    if not isinstance(value, Mapping):
        return []
    own = [value["cache_control"]] if value.get("cache_control") else []
    return [*own, *(mark for each in value.values() for mark in marks(each))]


def connected(name: str, server: LoopbackServer | None = None) -> ProviderModel:
    path = "" if name.startswith("anthropic:") else "/v1"
    url = f"{server.url}{path}" if server else None
    return connect_model(name, base_url=url, api_key=KEY, seconds=20.0, settings=ModelSettings())


@pytest.mark.req("AS-CURATED-03")
@pytest.mark.anyio
async def test_anthropic_is_told_to_keep_tools_prompt_and_the_newest_message() -> None:
    usage = Usage(input=1_000, output=10, cache_read=900)
    with serving([Call("weather"), Say("Sunny.", usage=usage)]) as server:
        model = reach(server, "anthropic:claude-sonnet-5")
        reply = await model.complete(ASK, tools=[WEATHER])
        call = reply.message.tool_calls[0]
        result = Message(role="tool", parts=(ToolResult(call_id=call.id, parts=(Text(text="sunny"),)),))
        second = await model.complete((*ASK, reply.message, result, said("user", "And now?")), tools=[WEATHER])
    first, later = (request.body for request in server.requests)
    for body in (first, later):
        assert marks(body["system"]) == marks(body["tools"]) == [EPHEMERAL]
        assert marks(body["messages"]) == [EPHEMERAL]
    sent = later["messages"]
    assert isinstance(sent, list)
    assert marks(sent[-1]) == [EPHEMERAL], "the mark of the messages moves to the newest one"
    assert json.dumps(first["system"]) == json.dumps(later["system"])
    assert json.dumps(first["tools"]) == json.dumps(later["tools"])
    assert second.usage.cache_read == 900


@pytest.mark.anyio
async def test_a_single_question_asks_anthropic_to_keep_no_message() -> None:
    with serving([Say("Yes.")]) as server:
        await reach(server, "anthropic:claude-sonnet-5").complete(ASK)
    assert marks(server.requests[0].body["messages"]) == []
    assert marks(server.requests[0].body["system"]) == [EPHEMERAL]


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["openai-chat:gpt-4o", "openai:gpt-4o"])
async def test_a_server_that_only_speaks_like_openai_is_told_nothing_about_caching(name: str) -> None:
    with serving([Say("Yes.")]) as server:
        await reach(server, name).complete(ASK, tools=[WEATHER])
    assert not any("cache" in key for key in server.requests[0].body)
    assert marks(dict(server.requests[0].body)) == []


@pytest.mark.req("GO-G26-cache")
@pytest.mark.anyio
@pytest.mark.parametrize("name", ["openai-chat:gpt-4o", "openai:gpt-4o"])
async def test_openai_itself_gets_a_key_that_stays_while_the_prompt_does(name: str) -> None:
    assert connected(name).caching == "key"
    with serving([Say("Yes.")] * 3) as server:
        model = connected(name, server)
        assert model.caching == "none"
        model.caching = "key"
        await model.complete(ASK)
        await model.complete((*ASK, said("assistant", "Hi."), said("user", "And?")))
        await model.complete((Message(role="system", parts=(Text(text="Be long."),)), *ASK[1:]))
    keys = [request.body.get("prompt_cache_key") for request in server.requests]
    assert keys[0] == keys[1] == cache_key(name, ASK)
    assert keys[2] not in {keys[0], None}


@pytest.mark.parametrize("name", ["openrouter:x/y", "ollama:llama3", "openai-chat:gpt-4o"])
def test_no_other_server_is_told_anything(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://proxy.example/v1")
    assert connected(name).caching == "none"


def test_a_key_says_nothing_and_is_given_for_a_prompt_alone() -> None:
    key = cache_key("openai:gpt-4o", ASK)
    assert len(key) == 32
    assert set(key) <= set("0123456789abcdef")
    assert cache_key("openai:gpt-5", ASK) != key
    assert cache_key("openai:gpt-4o", ASK[1:]) == ""
    assert cache_settings("key", "openai:gpt-4o", ASK[1:], ()) == {}
