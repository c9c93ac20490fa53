"""What is said in a session keeps the profile up to date, by the same request that learns its lessons, or by rules."""

import json
from dataclasses import replace
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
from ricordo.queue import InboxConfig
from ricordo.testing import RecordedRequest, Say, ScriptedModel, ScriptItem
from ricordo.workspace.ledger import read_memory

pytestmark = pytest.mark.anyio

NURSE = "I live in Oslo and work as a nurse."
LABELS = {"scope": "user", "durability": "durable", "authority": "descriptive"}


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
