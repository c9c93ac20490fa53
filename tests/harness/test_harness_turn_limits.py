"""A turn ends when it has taken as many tokens or dollars as it may."""

from decimal import Decimal
from pathlib import Path

import pytest

from agents_at_work import SCOPE, is_valid, settings
from ricordo import HarnessAgent
from ricordo.agent import TurnLimits, tool
from ricordo.errors import InvalidSetting
from ricordo.messages import Usage
from ricordo.testing import Call, Calls, Say, ScriptedModel

pytestmark = pytest.mark.anyio


@tool
def look() -> str:
    """Look."""
    return "It rains."


async def test_a_turn_that_has_taken_its_tokens_is_stopped_and_goes_on_with_another_message(tmp_path: Path) -> None:
    usage = Usage(input=400, output=50)
    calls = [Call("look", usage=usage) for _ in range(3)]
    model = ScriptedModel([*calls, Say("It rains.", usage=usage)])
    async with HarnessAgent(
        model, memory=tmp_path, scope=SCOPE, tools=[look], settings=settings(tmp_path),
        limits=TurnLimits(tokens=900),
    ) as agent:  # fmt: skip
        result = await agent.send("Look.")
        assert (result.ending, result.steps) == ("limit", 2)
        assert "900 of 900 tokens" in str(result)
        assert is_valid(agent.window)
        refused = [each for message in agent.window for each in message.tool_results if each.is_error]
        assert len(refused) == 1
        assert (await agent.send("Go on.")).ending == "end"


async def test_a_reply_without_calls_ends_a_turn_as_ever(tmp_path: Path) -> None:
    model = ScriptedModel([Calls(Call("look")), Say("It rains.", usage=Usage(input=5_000, output=1))])
    async with HarnessAgent(
        model, memory=tmp_path, scope=SCOPE, tools=[look], settings=settings(tmp_path),
        limits=TurnLimits(tokens=4_000),
    ) as agent:  # fmt: skip
        assert (await agent.send("Look.")).ending == "end"


def test_a_limit_of_cost_counts_known_prices() -> None:
    limits = TurnLimits(cost=0.5)
    assert limits.describe_reached_limit(Usage(input=10**9), None) == ""
    assert limits.describe_reached_limit(Usage(), Decimal("0.49")) == ""
    assert limits.describe_reached_limit(Usage(), Decimal("0.50")) == "0.50 of 0.50 US dollars"


@pytest.mark.parametrize("wrong", [{"tokens": 0}, {"cost": -1.0}])
def test_a_limit_that_nothing_keeps_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidSetting, match="above 0"):
        TurnLimits(**wrong)
