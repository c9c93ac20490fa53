"""What is said in a session keeps the profile up to date, by the same request that learns its lessons, or by rules."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agents_at_work import SCOPE, settings
from hand_clock import HandClock
from noting_models import lessons, note
from places import place_of
from ricordo import FlushConfig, HarnessAgent, Memory
from ricordo.files.local import LocalFiles
from ricordo.messages import mark_of
from ricordo.models import ChatModel
from ricordo.profile.config import ProfileConfig
from ricordo.queue import InboxConfig
from ricordo.runtime import Settings
from ricordo.testing import RecordedRequest, Say, ScriptedModel, ScriptItem
from ricordo.workspace.ledger import read_memory
from ricordo.workspace.profile import HISTORY_LEVEL, USER_LEVEL

pytestmark = pytest.mark.anyio

NURSE = "I live in Oslo and work as a nurse."
LABELS = {"scope": "user", "durability": "durable", "authority": "descriptive"}
SUMMARIES = (*USER_LEVEL, *HISTORY_LEVEL)


def is_flush(request: RecordedRequest) -> bool:
    return request.schema is not None


def sections(request: RecordedRequest) -> set[str]:
    """Return the parts that a flush asks for."""
    form: Any = request.schema
    return set(form["properties"])


def answering(**profile: Any) -> ScriptedModel:
    """Answer a flush with a lesson and this update of the profile, and everything else with a word."""

    def script(request: RecordedRequest) -> ScriptItem:
        if not is_flush(request):
            return Say("Noted.")
        both = json.loads(lessons(note("The user works as a nurse in Oslo.", "I live in Oslo and work as a nurse")))
        return Say(json.dumps(both | {"profile": {"user": {}, "history": {}, "newFacts": []} | profile}))

    return ScriptedModel(script)


def agent(root: Path, model: ChatModel, **options: Any) -> HarnessAgent:
    given: dict[str, Any] = {"settings": replace(settings(root), flush=FlushConfig()), "session": "s"} | options
    return HarnessAgent(model, workspace=root, scope=SCOPE, memory_tools=False, **given)


def learning(root: Path, config: ProfileConfig) -> Settings:
    """Return settings by which a model is asked, and what it answers is taken in by the rules of `config`."""
    return replace(settings(root), flush=FlushConfig(), profile=config)


def told(model: ScriptedModel) -> list[str]:
    """Return the texts of the messages that memory put into the last request."""
    return [message.text for message in model.requests[-1].messages if mark_of(message) == "memory"]


async def profile_of(root: Path) -> Any:
    path = place_of(root) / "workspace" / "profile.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


async def test_one_request_learns_lessons_and_the_profile(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    fact = {"content": "Works as a nurse in Oslo", "category": "context", "confidence": 0.9, **LABELS}
    work = {"summary": "A nurse in Oslo.", "shouldUpdate": True, "scope": "user", "authority": "descriptive"}
    quote = {"quote": "work as a nurse", "message": ""}
    model = answering(newFacts=[fact | quote], user={"workContext": work})
    async with agent(root, model) as one:
        await one.send(NURSE)
        assert await one.flush()
    (asked,) = [request for request in model.requests if is_flush(request)]
    assert {"lessons", "profile"} <= sections(asked)
    known = await profile_of(root)
    assert [each["content"] for each in known["facts"]] == ["Works as a nurse in Oslo"]
    assert known["user"]["workContext"]["summary"] == "A nurse in Oslo."
    assert [located.entry.content for located in await read_memory(LocalFiles(place_of(root)))] == [
        "The user works as a nurse in Oslo."
    ]


async def _written_at(root: Path, clock: HandClock, number: int, config: ProfileConfig) -> set[str]:
    """Return the summaries that a turn has written, each with the time of the turn, when a model writes all six."""
    before = await profile_of(root) or {"user": {}, "history": {}}
    edits = {name: {"summary": f"{name} {number}.", "shouldUpdate": True, **LABELS} for name in SUMMARIES}
    model = answering(
        user={name: edits[name] for name in USER_LEVEL}, history={name: edits[name] for name in HISTORY_LEVEL}
    )
    async with agent(root, model, clock=clock, session=f"s{number}", settings=learning(root, config)) as one:
        await one.send(f"{NURSE} Ward {number} is mine.")
        assert await one.flush()
    old, known = before["user"] | before["history"], await profile_of(root)
    new = known["user"] | known["history"]
    fresh = {name for name in SUMMARIES if new[name] != old.get(name)}
    moment = clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert {name: new[name] for name in fresh} == {
        name: {"summary": f"{name} {number}.", "updatedAt": moment} for name in fresh
    }
    return fresh


@pytest.mark.req("DF-USER", "DF-HISTORY")
async def test_a_model_writes_the_user_level_with_each_turn_and_history_after_its_interval(tmp_path: Path) -> None:
    root, clock, usual = tmp_path / ".ricordo", HandClock(), ProfileConfig()
    began, moment = clock.now(), timedelta(minutes=1)
    month, quarter = timedelta(days=30), timedelta(days=90)
    for number, (later, history) in enumerate(
        [
            (timedelta(), HISTORY_LEVEL),
            (month - moment, ()),
            (month, ("recentMonths",)),
            (quarter - moment, ("recentMonths",)),
            (quarter, ("earlierContext", "longTermBackground")),
        ]
    ):
        clock.time = began + later
        assert await _written_at(root, clock, number, usual) == {*USER_LEVEL, *history}
    clock.turn(1)
    at_once = ProfileConfig(summary_interval_days=dict.fromkeys(HISTORY_LEVEL, 0))
    assert await _written_at(root, clock, 9, at_once) == {*USER_LEVEL, *HISTORY_LEVEL}


def noted(content: str, **further: Any) -> dict[str, Any]:
    """Return a fact as a model answers it, in the words of what was said."""
    return {"content": content, "quote": content, "confidence": 0.9, **LABELS, **further}


@pytest.mark.req("DF-FACTS", "DF-FACT", "DF-C33", "DF-C39")
async def test_a_model_adds_facts_that_are_sure_lasting_and_about_the_user_and_years_remove_none(
    tmp_path: Path,
) -> None:
    root, clock, usual = tmp_path / ".ricordo", HandClock(), ProfileConfig()
    categories = ("preference", "knowledge", "context", "behavior", "goal", "diet")
    good = [noted(f"I own {name} number {at}.", category=name) for at, name in enumerate(categories)]
    good += [noted("I keep bees.", confidence=0.7), noted("I sail.", source="elsewhere")]
    bad = [
        noted("I row.", confidence=0.69),
        noted("We use uv.", scope="project"),
        noted("I am late.", durability="temporary"),
        noted("Run the tests.", authority="instruction"),
        *({**noted(f"I lack {name}."), name: ""} for name in LABELS),
    ]
    # what is turned down stands between what is not
    answered = [fact for pair in zip(bad, good, strict=False) for fact in pair] + good[len(bad) :]
    text = " ".join(fact["content"] for fact in answered)
    moment = clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
    async with agent(
        root, answering(newFacts=answered), clock=clock, session="first", settings=learning(root, usual)
    ) as one:
        await one.send(text)
        assert await one.flush()
    known = (await profile_of(root))["facts"]
    assert [(each["content"], each["category"], each["confidence"]) for each in known] == [
        (fact["content"], fact.get("category", "context"), fact["confidence"]) for fact in good
    ]
    assert all(re.fullmatch("fact_[0-9a-f]{8}", each["id"]) for each in known)
    assert len({each["id"] for each in known}) == len(good)
    assert {(each["createdAt"], each["source"]) for each in known} == {(moment, "first")}
    clock.turn(days=5 * 366)
    later = noted("I dive.", category="goal")
    async with agent(
        root, answering(newFacts=[later]), clock=clock, session="later", settings=learning(root, usual)
    ) as one:
        await one.send("I dive.")
        assert await one.flush()
        assert one.memory is not None
        assert len((await one.memory.profile().show()).facts) == len(good) + 1
    *old, new = (await profile_of(root))["facts"]
    # a review that found nothing against them is written down
    assert [{**each, "reviewedAt": "", "revision": 1} for each in old] == [
        {**each, "reviewedAt": "", "revision": 1} for each in known
    ]
    assert (new["content"], new["source"]) == ("I dive.", "later")


@pytest.mark.req("DF-C39")
async def test_what_a_gate_turned_down_is_counted_by_reason_where_it_is_most(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / ".ricordo"
    texts = [f"I own boat {at}." for at in range(6)]
    flaws = [{"scope": "thread"}, {"scope": "thread"}, {"durability": "temporary"}, {"authority": "order"}, {}, {}]
    answered = [noted(text, **flaw) for text, flaw in zip(texts, flaws, strict=True)]
    mood = {"topOfMind": {"summary": "Boats.", "shouldUpdate": True, "scope": "project", "authority": "descriptive"}}
    async with agent(root, answering(newFacts=answered, user=mood), settings=learning(root, ProfileConfig())) as one:
        await one.send(" ".join(texts))
        assert await one.flush()
    assert len((await profile_of(root))["facts"]) == 2
    (line,) = [record.message for record in caplog.records if record.name == "ricordo.profile.updater"]
    for counted in ("fact scope: 2", "fact durability: 1", "fact authority: 1", "summary scope: 1"):
        assert counted in line
    assert "boat" not in line


@pytest.mark.req("DF-QUEUE")
async def test_ten_turns_within_the_window_are_one_request_with_the_newest_messages(tmp_path: Path) -> None:
    root, clock, model = tmp_path / ".ricordo", HandClock(), answering()
    async with agent(root, model, clock=clock) as one:
        for number in range(10):
            await one.send(f"{NURSE} Ward {number} is mine.")
            clock.turn(10)
        assert not [request for request in model.requests if is_flush(request)]
        assert await one.flush()
    (asked,) = [request for request in model.requests if is_flush(request)]
    text = "\n".join(message.text for message in asked.messages)
    assert all(f"Ward {number} is mine." in text for number in range(10))
    assert InboxConfig().debounce_seconds == 30


async def test_without_a_model_the_profile_learns_what_is_about_the_user_and_nothing_about_the_project(
    tmp_path: Path,
) -> None:
    root = tmp_path / ".ricordo"
    async with agent(root, ScriptedModel(lambda _: Say("Noted.")), flush=FlushConfig(model="offline")) as one:
        await one.send(NURSE)
        await one.send("We deploy only from main.")
        await one.send("I prefer tabs over spaces.")
        assert await one.flush()
    known = await profile_of(root)
    assert [(each["category"], each["content"]) for each in known["facts"]] == [
        ("context", "User lives in Oslo and works as a nurse."),
        ("preference", "User prefers tabs over spaces."),
    ]
    assert "deploy" not in json.dumps(known)


async def test_what_a_session_taught_the_profile_is_told_to_the_others_only(tmp_path: Path) -> None:
    root, first, second = (
        tmp_path / ".ricordo",
        ScriptedModel(lambda _: Say("Noted.")),
        ScriptedModel(lambda _: Say("Well.")),
    )
    offline = FlushConfig(model="offline")
    async with agent(root, first, flush=offline) as one, agent(root, second, flush=offline, session="t") as other:
        await one.send("Hello.")
        await other.send("Hello.")
        await other.flush()
        await one.send(NURSE)
        assert await one.flush()
        await one.send("Go on.")
        await other.send("Go on.")
    assert not any("User lives in Oslo" in text for text in told(first))
    assert any("User lives in Oslo and works as a nurse" in text for text in told(second))
    assert not any("Work:" in text for text in told(second)), "a summary that only repeats facts is told as facts"


async def test_what_is_forgotten_or_taken_back_leaves_the_profile_too(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    rules = {"flush": FlushConfig(model="offline")}
    async with agent(root, ScriptedModel(lambda _: Say("Noted.")), **rules) as one:
        await one.send(NURSE)
        assert await one.flush()
    async with agent(root, ScriptedModel(lambda _: Say("Noted.")), session="t", **rules) as one:
        await one.send("I prefer tabs over spaces.")
        assert await one.flush()
    async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
        nurse = next(entry for entry in await memory.entries() if "nurse" in entry.content)
        await memory.forget(nurse.id)
        assert "nurse" not in json.dumps(await profile_of(root))
        await memory.undo()
        assert "nurse" in json.dumps(await profile_of(root))
        await memory.forget(nurse.id)
        # what was learned last is a block of the ledger, and the profile goes with it
        tabs = next(entry for entry in await memory.entries() if "tabs" in entry.content)
        await memory.undo(tabs.id)
        assert await memory.entries() == []
        assert (await profile_of(root))["facts"] == []
        assert "tabs" not in json.dumps(await profile_of(root))


async def test_with_the_profile_off_nothing_is_asked_or_kept_of_it(tmp_path: Path) -> None:
    root, model = tmp_path / ".ricordo", answering()
    off = replace(settings(root), flush=FlushConfig(), profile=None)
    async with agent(root, model, settings=off) as one:
        await one.send(NURSE)
        assert await one.flush()
    (asked,) = [request for request in model.requests if is_flush(request)]
    assert "profile" not in sections(asked)
    assert await profile_of(root) is None
