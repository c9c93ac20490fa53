"""What an agent says that memory has shown it is learned by nobody, however it was shown."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings
from hand_clock import HandClock
from noting_models import lessons, note
from ricordo import FlushConfig, HarnessAgent, Memory
from ricordo.context import TurnRecallConfig
from ricordo.messages import JsonValue
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem

pytestmark = pytest.mark.anyio

FACT = "We deploy only from main."
ECHO = "You deploy only from main."
LEARNED = "The team deploys only from main."
NOTHING: JsonValue = {"user": {}, "history": {}, "newFacts": []}


def answering(*, looks: bool) -> ScriptedModel:
    """Learn whatever says the fact, whoever says it; answer with it, after a look into memory where it `looks`."""

    def script(request: RecordedRequest) -> ScriptItem:
        text = "\n".join(message.text for message in request.messages)
        if request.schema is not None:
            shown = "".join(re.findall("<conversation.*?</conversation>", text, re.DOTALL))
            said = [quote for quote in (FACT, ECHO) if quote in shown]
            return Say(lessons(*[note(LEARNED, quote) for quote in said[-1:]], profile=NOTHING))
        if looks and not any(message.tool_results for message in request.messages):
            return Call("recall", {"query": "deploy"})
        return Say(ECHO if "From where" in text else "Noted.")

    return ScriptedModel(script)


@pytest.mark.req("FC-JUNK")
@pytest.mark.parametrize("how", ["tool", "reminder", "prompt"])
async def test_an_agent_that_repeats_what_memory_showed_it_teaches_nothing(tmp_path: Path, how: str) -> None:
    root, clock = tmp_path / ".ricordo", HandClock()
    given = replace(
        settings(root),
        flush=FlushConfig(),
        preamble_tokens=500 if how == "prompt" else 0,
        turn_recall=TurnRecallConfig(seconds=20.0) if how == "reminder" else None,
    )
    async with Memory.open(root, scope=SCOPE, settings=given, clock=clock) as memory:
        await memory.remember(FACT)
    for number in range(3):
        clock.turn(days=3)
        model = answering(looks=how == "tool")
        async with HarnessAgent(
            model, memory=root, scope=SCOPE, session=f"s{number}", settings=given, clock=clock
        ) as one:
            assert str(await one.send("From where do we deploy?")) == ECHO
            assert await one.flush()
            assert one.memory is not None
            assert [entry.content for entry in await one.memory.entries()] == [FACT]
        asked = "".join(
            message.text for request in model.requests for message in request.messages if not request.schema
        )
        assert (FACT in asked) is (how != "tool")
    # what a person says is learned
    async with HarnessAgent(
        answering(looks=False), memory=root, scope=SCOPE, session="own", settings=given, clock=clock
    ) as one:
        await one.send("We also tag: We deploy only from main.")
        assert await one.flush()
        assert one.memory is not None
        assert [entry.content for entry in await one.memory.entries()] == [LEARNED, FACT]
