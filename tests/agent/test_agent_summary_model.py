"""Who is asked for a summary: the model that is configured for it, else the agent's own."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings
from ricordo import CompactionConfig, HarnessAgent
from ricordo.context import pipeline
from ricordo.models import ChatModel, ModelSettings
from ricordo.testing import RecordedRequest, Say, ScriptedModel
from scripted_summaries import SUMMARY, both

pytestmark = pytest.mark.anyio


def asked_to_sum_up(request: RecordedRequest) -> bool:
    return "## SESSION INTENT" in request.messages[-1].text


def answering(name: str) -> ScriptedModel:
    def answer(request: RecordedRequest) -> Say:
        if not asked_to_sum_up(request):
            return Say(f"The {name} model replies at some length, as models do when they are asked something.")
        return Say(both(SUMMARY) if request.schema is not None else SUMMARY)

    return ScriptedModel(answer, name=name)


@pytest.mark.req("AS-COMPACT-12", "AS-BUG-02", "AS-COMPACT-13")
@pytest.mark.parametrize("named", ["", "a model", "own:small", "other:small at its own"])
async def test_a_summary_is_asked_of_the_model_for_it_and_without_one_of_the_agents_own(
    tmp_path: Path, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other, dedicated = answering("own:large"), answering("small"), bool(named)
    reached: list[tuple[str, str | None]] = []
    asking = ModelSettings(reply_tokens=900, temperature=0.5) if ":" in named else ModelSettings()

    def load(name: str, *, base_url: str | None, **told: object) -> ChatModel:
        assert told == asdict(asking)
        reached.append((name, base_url))
        return other

    monkeypatch.setattr(pipeline, "load_model", load)
    name = named.removesuffix(" at its own")
    own_address = "http://127.0.0.1:8" if named != name else None
    model = other if named == "a model" else name or None
    config = CompactionConfig(
        trigger_messages=12, keep_messages=4, model=model, base_url=own_address, model_settings=asking
    )
    root = tmp_path / ".ricordo"
    given = replace(settings(root), base_url="http://127.0.0.1:9")
    async with HarnessAgent(own, memory=root, scope=SCOPE, compaction=config, settings=given) as agent:
        for number in range(7):
            await agent.send(f"Number {number}: tell me how the shop is doing, in a sentence or in two of them.")
        assert any("Port the shop." in message.text for message in agent.window)
    chosen, left = (other, own) if dedicated else (own, other)
    summaries = [request for request in chosen.requests if asked_to_sum_up(request)]
    assert summaries
    assert all("Number 0: tell me how" in request.messages[-1].text for request in summaries[:1])
    assert not any(map(asked_to_sum_up, left.requests))
    assert len(own.requests) == 7 + (0 if dedicated else len(summaries))
    # the agent's server is one of its own provider
    address = own_address or given.base_url
    assert reached == ([(name, address)] if ":" in named else [])
