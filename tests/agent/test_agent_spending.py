"""The daily limit through an agent: whatever memory asks a model for counts, and over the limit it goes on without."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, settings
from hand_clock import HandClock
from noting_models import lessons, note
from places import place_of
from ricordo import CompactionConfig, FlushConfig, HarnessAgent
from ricordo.curation import ConsolidationConfig
from ricordo.messages import JsonValue
from ricordo.models import Reply, SpendingConfig
from ricordo.testing import RecordedRequest, Say, ScriptedModel, ScriptItem

pytestmark = pytest.mark.anyio

SUMMARY = "## SESSION INTENT\n- Deploy.\n## SUMMARY\n- Main.\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone"
NOTHING: JsonValue = {"user": {}, "history": {}, "newFacts": []}
ANSWERS = {
    "You note what is worth remembering": lessons(profile=NOTHING),
    "You condense the first part": lessons(summary=SUMMARY),
    "MEMORY.md": '{"merged": [], "superseded": [], "retired": [], "topics": []}',
    "": "They spoke of deploying.\nTAGS: deploy",
}
SAID = "deploy service 1 only from main"


class Priced(ScriptedModel):
    """A model whose complete replies cost a cent; turns are streamed or have tools, and are answered at length."""

    def __init__(self) -> None:
        super().__init__(self._answer)

    async def complete(self, *given: Any, **named: Any) -> Reply:
        return replace(await super().complete(*given, **named), cost=Decimal("0.01"))

    @property
    def background(self) -> list[RecordedRequest]:
        return [request for request in self.requests if not request.tools]

    @staticmethod
    def _answer(request: RecordedRequest) -> ScriptItem:
        if request.tools:
            return Say("That is noted. " * 60)
        text = "\n".join(message.text for message in request.messages)
        if "You note what is worth" in text and request.number == 2:
            return Say(lessons(note("Service 1 is deployed only from main.", SAID), profile=NOTHING))
        return Say(next(answer for told, answer in ANSWERS.items() if told in text))


@pytest.mark.req("FC-CAP")
async def test_over_the_daily_cost_memory_asks_no_more_for_anything_and_goes_on(tmp_path: Path) -> None:
    root, clock, model = tmp_path / ".ricordo", HandClock(), Priced()
    given: dict[str, Any] = {
        "workspace": root, "scope": SCOPE, "clock": clock, "settings": replace(
            settings(root), flush=FlushConfig(), consolidation=ConsolidationConfig(),
            spending=SpendingConfig(daily_tokens=None, daily_cost=0.05),
        ),
    }  # fmt: skip

    async def a_day(number: int) -> None:
        at_most = CompactionConfig(trigger_messages=50, keep_messages=1)
        async with HarnessAgent(model, **agent_arguments(session=f"a{number}", compaction=at_most, **given)) as one:
            await one.send(f"We deploy service {number} only from main.")
            assert await one.flush()
            assert str(await one.send("And now?")).startswith("That is noted.")
            await one.compact()
            await one.consolidate()
            assert one.memory is not None
            await one.memory.remember(f"The pager of service {number} is 441{number}.")
            # what no model learned is learned by rules
            for asked in ("pager", "deploy")[:number]:
                assert any(f"service {number}" in hit.entry.content for hit in await one.memory.recall(asked, limit=20))
        kept: dict[str, Any] = {"store": f"sessions:{tmp_path / 'notes'}", "closing_summary": "sync"}
        async with HarnessAgent(model, **agent_arguments(session=f"b{number}", **given, **kept)) as other:
            await other.send(f"What is known of service {number}?")

    await a_day(1)
    assert len(model.background) == 5
    file = place_of(root) / "spending" / f"{clock.today():%Y-%m}.jsonl"
    records = [each for each in map(json.loads, file.read_text(encoding="utf-8").splitlines()) if "model" in each]
    purposes = sorted(each["purpose"] for each in records)
    assert purposes == ["closing summary", "consolidation", "flush", "flush", "summary"]
    for each, asked in zip(records, model.background, strict=True):
        assert each["cost"] == "0.01"
        assert each["input"] > 20
        assert each["output"] > 0
        assert each["model"] == "scripted"
        assert asked.messages
    await a_day(2)
    assert len(model.background) == 5, "the limit is reached"
    assert len([request for request in model.requests if request.tools]) == 6
