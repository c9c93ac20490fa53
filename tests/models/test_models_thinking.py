"""Thoughts and temperature in requests: each provider is sent its own thoughts alone, and told what it takes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from anyio.to_thread import run_sync

from agents_at_work import SCOPE, said, settings
from hand_made_roots import begun
from reached_models import KEY, load_packages
from ricordo import CompactionConfig, FlushConfig, HarnessAgent, MemoryConfig, SubAgent
from ricordo.curation import ConsolidationConfig
from ricordo.errors import InvalidSetting
from ricordo.messages import JsonValue, Message, Text, Thinking, ToolCall, ToolResult
from ricordo.models import ModelSettings, load_model
from ricordo.models.contract import request_body
from ricordo.runtime import Settings
from ricordo.testing import Call, LoopbackServer, Say, ScriptedModel
from ricordo.testing.refusals import request_refusal
from ricordo.testing.script import THINKING_SIGNATURE

pytestmark = pytest.mark.filterwarnings("ignore:Async generator '(openai|anthropic|http):ResourceWarning")


@pytest.fixture(autouse=True, scope="module")
def packages() -> None:
    """Load the packages of the providers outside of the event loop, as a program does."""
    load_packages()


def _thought(by: str | None, signature: str | None, own: str | None, *, named: bool = True) -> Message:
    fields: dict[str, JsonValue] = {
        key: each for key, each in (("provider_name", by if named else None), ("id", own)) if each
    }
    kept: JsonValue = {"message": {"provider_name": by}, "parts": {"0": {"of": "thinking", "fields": fields}}}
    parts = (Thinking(text="a thought of mine", signature=signature), Text(text="Yes."))
    return Message(role="assistant", parts=parts, metadata={"pydantic-ai": kept})


THOUGHTS = [
    _thought(by, signature, own, named=named)
    for by in ("anthropic", "openai", "ollama", "bedrock", None)
    for signature in ("sealed", None)
    for own in ("rs_1", "reasoning", "reasoning_content", "content", "redacted_thinking", None)
    for named in (True, False)
]


NAMES = (
    "anthropic:claude-sonnet-5",
    "anthropic:claude-haiku-4-5",
    "openai:gpt-5",
    "openai:gpt-4o",
    "openai-chat:gpt-5",
)


@pytest.mark.anyio
@pytest.mark.parametrize("name", [*NAMES, "ollama:x"])
async def test_no_thought_is_sent_as_something_that_anybody_said(name: str) -> None:
    model = load_model(name, base_url="http://127.0.0.1:9", api_key=KEY)
    talk = [each for thought in THOUGHTS for each in (said("Hello?"), thought)]
    sent = await request_body(model, [*talk, said("And?")])
    assert sent is not None
    places = [place for place, text in _strings(dict(sent.body)) if "a thought of mine" in text]
    assert all({"thinking", "summary", "reasoning", "reasoning_content"} & {*place} for place in places), places


def _strings(value: JsonValue, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, str):
        yield place, value
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _strings(each, (*place, str(key)))


@pytest.mark.anyio
async def test_a_reply_whose_thought_is_left_out_goes_to_responses_without_ids() -> None:
    fields: JsonValue = {"of": "tool-call", "fields": {"id": "fc_1", "provider_name": "openai"}}
    call = ToolCall(id="call_1", name="look")
    asked = Message(role="assistant", parts=(call,), metadata={"pydantic-ai": {"parts": {"0": fields}}})
    answered = Message(role="tool", parts=(ToolResult(call_id="call_1", parts=(Text(text="It rains."),)),))
    model = load_model("openai:gpt-5", base_url="http://127.0.0.1:9", api_key=KEY)
    sent = await request_body(model, [said("Look."), asked, answered])
    assert sent is not None
    assert "fc_1" not in str(sent.body)


@pytest.mark.anyio
@pytest.mark.parametrize("level", ["high", False])
@pytest.mark.parametrize("limit", [1_500, 9_000])
async def test_claude_is_told_of_thinking_as_it_takes_it(level: bool | str, limit: int) -> None:
    call = ToolCall(id="call_1", name="look")
    answered = Message(role="tool", parts=(ToolResult(call_id="call_1", parts=(Text(text="It rains."),)),))
    kept: JsonValue = {"parts": {"0": {"of": "thinking", "fields": {"provider_name": "anthropic"}}}}
    sealed = (Thinking(text="Hm.", signature=THINKING_SIGNATURE), call)
    thought = Message(role="assistant", parts=sealed, metadata={"pydantic-ai": kept})
    model = load_model(
        "anthropic:claude-haiku-4-5",
        base_url="http://127.0.0.1:9",
        api_key=KEY,
        thinking=level,
        reply_tokens=limit,
        temperature=0.3,
    )
    for reply in (thought, Message(role="assistant", parts=(call,))):
        sent = await request_body(model, [said("Look."), reply, answered])
        assert sent is not None
        assert request_refusal("/messages", sent.body) is None
        thinks = reply is thought and level and limit == 9_000
        assert ("thinking" in sent.body, "temperature" in sent.body) == (bool(thinks), not thinks)


async def _shown(agent: HarnessAgent) -> dict[str, object]:
    async with agent as one:
        sent = (await one.preview_request("Hello?")).body
        assert sent is not None
        return dict(sent.body)


@pytest.mark.anyio
async def test_an_agent_tells_its_model_what_settings_and_arguments_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    loaded = await run_sync(_loaded, tmp_path)
    root = tmp_path / ".ricordo"
    body = await _shown(HarnessAgent("openai-chat:gpt-5", memory=root, scope=SCOPE, settings=loaded))
    assert (body["reasoning_effort"], body["max_completion_tokens"]) == ("low", 900)
    given = ModelSettings(thinking="high", window=5_000)
    described = HarnessAgent(
        "openai-chat:gpt-5",
        memory=MemoryConfig(root=root, incognito=True),
        scope=SCOPE,
        settings=loaded,
        model_settings=given,
    )
    assert (await _shown(described))["reasoning_effort"] == "high"
    async with described as one:
        assert (await one.get_context_usage()).limit == 5_000


def _loaded(tmp_path: Path) -> Settings:
    root = begun(tmp_path / ".ricordo", tmp_path / "data")
    (root / "config.toml").write_text('[model_settings]\nthinking = "low"\nreply_tokens = 700\n')
    held = {"RICORDO_DATA": str(tmp_path / "data"), "RICORDO_CACHE": str(tmp_path / "cache"), "RICORDO_USER": "me"}
    variables = {**held, "RICORDO_MODEL_SETTINGS__REPLY_TOKENS": "900"}
    return Settings.load(root, variables, {"base_url": "http://127.0.0.1:9", "model": "openai-chat:gpt-5"})


@pytest.mark.anyio
async def test_each_model_that_is_named_for_a_purpose_is_told_what_stands_beside_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def told(temperature: float) -> ModelSettings:
        return ModelSettings(temperature=temperature)

    long = "We decided to deploy only from main, as the other branches were never tested. " * 20
    with LoopbackServer(lambda _: Say("Noted.")) as server:
        address = f"{server.url}/v1"
        held = ConsolidationConfig(model="openai-chat:d", base_url=address, model_settings=told(0.75))
        async with HarnessAgent(
            ScriptedModel([Call("spawn", {"agent": "helper", "prompt": "Look."}), Say("Done."), Say("Done.")]),
            memory=MemoryConfig(
                root=tmp_path, flush=FlushConfig(model="openai-chat:c", base_url=address, model_settings=told(0.5))
            ),
            scope=SCOPE,
            settings=replace(settings(tmp_path), consolidation=held, model="openai-chat:a", base_url=address),
            sub_agents=[
                SubAgent(name="helper", description="Helps.", model="openai-chat:a", model_settings=told(0.125))
            ],
            compaction=CompactionConfig(
                model="openai-chat:b", base_url=address, model_settings=told(0.25), keep_messages=2
            ),
        ) as one:
            await one.record(
                [said(long), Message(role="assistant", parts=(Text(text=long),)), said(long), said("Go on.")]
            )
            await one.compact()
            await one.flush()
            await one.send("Let the helper look.")
            await one.consolidate()
        asked = {str(each.body["model"]): each.body.get("temperature") for each in server.requests}
    assert asked == {"a": 0.125, "b": 0.25, "c": 0.5, "d": 0.75}


def test_model_settings_that_nothing_can_keep_are_refused(tmp_path: Path) -> None:
    for wrong in (
        {"window": 0},
        {"reply_tokens": True},
        {"temperature": -1},
        {"temperature": "hot"},
        {"thinking": "x"},
    ):
        with pytest.raises(InvalidSetting, match=next(iter(wrong))):
            ModelSettings(**wrong)
    told = ModelSettings(temperature=0.5)
    with pytest.raises(InvalidSetting, match="given by name"):
        HarnessAgent(ScriptedModel([]), scope=SCOPE, memory=tmp_path, model_settings=told)
    for make in (lambda: FlushConfig(model_settings=told), lambda: CompactionConfig(model_settings=told)):
        with pytest.raises(InvalidSetting, match="given by name"):
            make()
    with pytest.raises(InvalidSetting, match="given by name"):
        SubAgent(name="helper", description="Helps.", model_settings=told)
    with pytest.raises(InvalidSetting, match="thinking"):
        Settings.load(None, {"RICORDO_MODEL_SETTINGS__THINKING": "hard"})
