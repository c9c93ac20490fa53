"""A turn that is answered with a value of a type: over every protocol, with tools, a compaction, and one correction."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, is_valid, settings
from reached_models import KEY, load_packages
from ricordo import CompactionConfig, HarnessAgent
from ricordo.agent import ToolFinished, TurnLimits, tool
from ricordo.agent.contract import TypedResult
from ricordo.agent.sync import SyncHarnessAgent as BlockingAgent
from ricordo.errors import InvalidSetting, OutputInvalid, ReplyInvalid
from ricordo.messages import get_mark
from ricordo.models import ChatModel, load_model
from ricordo.testing import Call, LoopbackServer, Say, ScriptedModel, ScriptItem

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:Async generator '(openai|anthropic|http):ResourceWarning"),
]

NAMES = (
    "openai-chat:gpt-4o",
    "openai-chat:local",
    "openai:gpt-5",
    "anthropic:claude-sonnet-5",
    "anthropic:claude-3-haiku",
)


@pytest.fixture(autouse=True, scope="module")
def packages() -> None:
    """Load the packages of the providers outside of the event loop, as a program does."""
    load_packages()


@dataclass(frozen=True)
class Place:
    city: str
    degrees: int = 20


@dataclass(frozen=True)
class Weather:
    place: Place
    kind: Literal["rain", "sun"]
    notes: list[str] = field(default_factory=list)


class Forecast(BaseModel):
    city: str
    chance: float = Field(ge=0, le=1)


RAIN = '{"place": {"city": "Bergamo", "degrees": 12}, "kind": "rain", "notes": ["windy"]}'
WEATHER = Weather(place=Place(city="Bergamo", degrees=12), kind="rain", notes=["windy"])


@tool
def look(city: str = "") -> str:
    """Look at the weather."""
    return f"It rains in {city}."


def agent(model: ChatModel, root: Path, **options: object) -> HarnessAgent:
    given = {"session": "s", "settings": settings(root), "tools": [look], "memory_tools": False} | options
    return HarnessAgent(model, **agent_arguments(workspace=root, scope=SCOPE, **given))


@pytest.mark.parametrize("name", NAMES)
async def test_a_turn_is_answered_with_a_value_of_a_type_over_every_protocol(tmp_path: Path, name: str) -> None:
    script: list[ScriptItem] = [Call("look", {"city": "Bergamo"}), Say(RAIN), Say("It will."), Say(RAIN)]
    with LoopbackServer(script, strict=True) as server:
        url = server.url if name.startswith("anthropic:") else f"{server.url}/v1"
        async with agent(load_model(name, base_url=url, api_key=KEY), tmp_path) as one:
            shown = await one.preview_request("What is the weather in Bergamo?", output_type=Weather)
            found = await one.send("What is the weather in Bergamo?", output_type=Weather)
            assert found.output == WEATHER
            assert (found.steps, found.ending, str(found)) == (2, "end", RAIN)
            assert str(await one.send("Will it rain tomorrow?")) == "It will."
            async with one.stream("And then?", output_type=Weather) as events:
                async for event in events:
                    assert not isinstance(event, ToolFinished)
            assert isinstance(events.result, TypedResult)
            assert events.result.output == WEATHER
        assert (server.refusals, server.problems) == ((), ())
    assert shown.schema is not None
    assert shown.body is not None
    assert shown.body.body == server.requests[0].body
    assert [request.schema is None and "give_answer" not in str(request.tools) for request in server.requests] == [
        False,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    "wrong", ['{"place": {"city": "Bergamo"}, "kind": "snow"}', "It rains.", '{"kind": "rain"}', "[1]"]
)
async def test_an_answer_of_another_form_is_asked_for_once_more(tmp_path: Path, wrong: str) -> None:
    model = ScriptedModel([Say(wrong), Say(RAIN), Say("Yes."), Say(wrong), Say(wrong), Say("Still here.")])
    async with agent(model, tmp_path) as one:
        found = await one.send("What is the weather?", output_type=Weather)
        assert found.output == WEATHER
        assert [get_mark(message) for message in found.messages] == [None, None, "notice", None]
        assert "can't be used" in model.requests[1].messages[-1].text
        assert str(await one.send("Is that so?")) == "Yes."
        with pytest.raises(OutputInvalid) as caught:
            await one.send("And now?", output_type=Weather)
        assert caught.value.said == wrong
        assert isinstance(caught.value, ReplyInvalid)
        assert one.window[-1].text == wrong, "what was said is recorded"
        assert is_valid(one.window)
        assert str(await one.send("Are you there?")) == "Still here."


async def test_a_turn_that_ends_without_an_answer_raises_and_goes_on(tmp_path: Path) -> None:
    model = ScriptedModel([Call("look"), Call("look"), Say("Yes."), Say("No."), Say("Yes.")])
    async with agent(model, tmp_path, max_iters=2) as one:
        with pytest.raises(OutputInvalid, match="max_iters"):
            await one.send("What is the weather?", output_type=Weather)
        assert str(await one.send("Are you there?")) == "Yes."
    async with agent(model, tmp_path, limits=TurnLimits(tokens=1)) as one:
        with pytest.raises(OutputInvalid, match="no JSON object"):
            await one.send("What is the weather?", output_type=Weather)
    assert len(model.requests) == 4, "beyond its limit nothing is asked for again"


async def test_types_of_every_kind_are_answered(tmp_path: Path) -> None:
    script = [
        Say('{"city": "Bergamo", "chance": 2}'),
        Say('{"city": "Bergamo", "chance": 0.5}'),
        Say('{"value": ["a", "b"]}'),
        Say('{"value": 7}'),
    ]
    async with agent(ScriptedModel(script), tmp_path) as one:
        assert (await one.send("And?", output_type=Forecast)).output == Forecast(city="Bergamo", chance=0.5)
        assert (await one.send("And?", output_type=list[str])).output == ["a", "b"]
        assert (await one.send("And?", output_type=int)).output == 7
        with pytest.raises(InvalidSetting, match="output_type"):
            await one.send("And?", output_type=Path)
        assert len(one.window) == 8, "what can't be asked for is not said"


async def test_a_compaction_in_the_middle_of_such_a_turn_changes_nothing(tmp_path: Path) -> None:
    compaction = CompactionConfig(trigger_messages=6, keep_messages=2, model="offline")
    model = ScriptedModel([*[Call("look", {"city": "Bergamo " * 60})] * 4, Say(RAIN)])
    async with agent(model, tmp_path, compaction=compaction) as one:
        assert (await one.send("What is the weather?", output_type=Weather)).output == WEATHER
        assert any(get_mark(message) == "summary" for message in one.window)


def test_programs_that_do_not_await_get_the_same(tmp_path: Path) -> None:
    with BlockingAgent.open(
        ScriptedModel([Say(RAIN)]), memory=tmp_path, scope=SCOPE, settings=settings(tmp_path)
    ) as one:
        assert one.send("What is the weather?", output_type=Weather).output == WEATHER
