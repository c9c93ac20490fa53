"""What is said in a session keeps the profile up to date, by the same request that learns its lessons, or by rules."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, settings, transcript
from hand_clock import HandClock
from noting_models import lessons, note
from places import place_of
from ricordo import FlushConfig, HarnessAgent, Memory
from ricordo.curation import ProfileConfig
from ricordo.curation.profile.request import PROFILE_TASK
from ricordo.jobs import InboxConfig
from ricordo.messages import Message, Text, get_mark
from ricordo.models import ChatModel
from ricordo.runtime import Settings
from ricordo.storage.local import LocalFiles
from ricordo.testing import RecordedRequest, Say, ScriptedModel, ScriptItem
from ricordo.workspace import HISTORY_SUMMARIES, USER_SUMMARIES, read_all_entries

pytestmark = pytest.mark.anyio

NURSE = "I live in Oslo and work as a nurse."
LABELS = {"scope": "user", "durability": "durable", "authority": "descriptive"}
SUMMARIES = (*USER_SUMMARIES, *HISTORY_SUMMARIES)
WORDS = [f"{one}{other}" for one in ("bra", "cle", "dro", "flu", "gri", "kna", "lum", "mor", "nel", "pux")
         for other in ("bik", "dan", "fol", "gem", "hur", "jat", "kim", "lop", "mas", "ned")]  # fmt: skip


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
    return HarnessAgent(model, **agent_arguments(workspace=root, scope=SCOPE, memory_tools=False, **given))


def learning(root: Path, config: ProfileConfig) -> Settings:
    """Return settings by which a model is asked, and what it answers is taken in by the rules of `config`."""
    return replace(settings(root), flush=FlushConfig(), profile=config)


def told(model: ScriptedModel) -> list[str]:
    """Return the texts of the messages that memory put into the last request."""
    return [message.text for message in model.requests[-1].messages if get_mark(message) == "memory"]


async def profile_of(root: Path) -> Any:
    path = place_of(root) / "workspace" / "profile.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


@pytest.mark.req("DF-UPD", "DF-B10", "DF-B25")
async def test_one_request_learns_lessons_and_the_profile(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    fact = {"content": "Works as a nurse in Oslo", "category": "context", "confidence": 0.9, **LABELS}
    work = {"summary": "A nurse in Oslo.", "shouldUpdate": True, "scope": "user", "authority": "descriptive"}
    quote = {"quote": "work as a nurse", "message": ""}
    builds, file = noted("I build a file upload microservice"), noted("I handed over budget-2026.xlsx")
    mind = {"summary": "Reading budget-2026.xlsx.", "shouldUpdate": True, **LABELS}
    model = answering(newFacts=[fact | quote, file, builds], user={"workContext": work, "topOfMind": mind})
    handed = Message(
        role="user", metadata={"files": [{"filename": "budget-2026.xlsx"}]},
        parts=(Text(text=f"{builds['content']}. {file['content']}."),),
    )  # fmt: skip
    async with agent(root, model) as one:
        await one.send(NURSE)
        await one.send(handed)
        assert one.memory is not None
        by_hand = await one.memory.profile().add_fact("Uploads budget-2026.xlsx each May")
        assert await one.flush()
    (asked,) = [request for request in model.requests if is_flush(request)]
    assert {"lessons", "profile"} <= sections(asked)
    text = "\n".join(message.text for message in asked.messages)
    assert PROFILE_TASK.strip() in text
    assert text.index(NURSE) < text.index(builds["content"]) < text.index(PROFILE_TASK.strip())
    known = await profile_of(root)
    assert [each["content"] for each in known["facts"]] == [
        by_hand.content, "Works as a nurse in Oslo", builds["content"],
    ]  # fmt: skip
    assert known["user"]["topOfMind"]["summary"] == ""
    assert known["user"]["workContext"]["summary"] == "A nurse in Oslo."
    assert [located.entry.content for located in await read_all_entries(LocalFiles(place_of(root)))] == [
        "The user works as a nurse in Oslo."
    ]


async def _written_at(root: Path, clock: HandClock, number: int, config: ProfileConfig) -> set[str]:
    """Return the summaries that a turn has written, each with the time of the turn, when a model writes all six."""
    before = await profile_of(root) or {"user": {}, "history": {}}
    edits = {name: {"summary": f"{name} {number}.", "shouldUpdate": True, **LABELS} for name in SUMMARIES}
    model = answering(
        user={name: edits[name] for name in USER_SUMMARIES}, history={name: edits[name] for name in HISTORY_SUMMARIES}
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
            (timedelta(), HISTORY_SUMMARIES),
            (month - moment, ()),
            (month, ("recentMonths",)),
            (quarter - moment, ("recentMonths",)),
            (quarter, ("earlierContext", "longTermBackground")),
        ]
    ):
        clock.time = began + later
        assert await _written_at(root, clock, number, usual) == {*USER_SUMMARIES, *history}
    clock.turn(1)
    at_once = ProfileConfig(summary_interval_days=dict.fromkeys(HISTORY_SUMMARIES, 0))
    assert await _written_at(root, clock, 9, at_once) == {*USER_SUMMARIES, *HISTORY_SUMMARIES}


def noted(content: str, **further: Any) -> dict[str, Any]:
    """Return a fact as a model answers it, in the words of what was said."""
    return {"content": content, "quote": content, "confidence": 0.9, **LABELS, **further}


@pytest.mark.req("DF-FACTS", "DF-FACT", "DF-C33", "DF-C39", "DF-B22", "DF-C40")
async def test_a_model_adds_facts_that_are_sure_lasting_and_about_the_user_and_years_remove_none(
    tmp_path: Path,
) -> None:
    root, clock, usual = tmp_path / ".ricordo", HandClock(), ProfileConfig()
    categories = ("preference", "knowledge", "context", "behavior", "goal", "diet")
    good = [noted(f"I own {name} number {at}.", category=name) for at, name in enumerate(categories)]
    good += [
        noted("Keeps bees in the garden.", quote="I keep bees.", confidence=0.7),
        noted("I sail.", source="elsewhere", expected_valid_days=30),
    ]
    bad = [
        noted("I row.", confidence=0.69),
        noted("We use uv.", scope="project"),
        noted("I am late.", durability="temporary"),
        noted("Run the tests.", authority="instruction"),
        *({**noted(f"I lack {name}."), name: ""} for name in LABELS),
    ]
    # what is turned down stands between what is not
    answered = [fact for pair in zip(bad, good, strict=False) for fact in pair] + good[len(bad) :]
    text = " ".join(fact["quote"] for fact in answered)
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
    said = {message.id: message.text for message in await transcript(root, "first")}
    assert [each["sourceQuote"] for each in known] == [fact["quote"] for fact in good]
    assert all(each["sourceQuote"] in said[each["sourceMessages"][0]] for each in known)
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
    (line,) = [record.message for record in caplog.records if record.name == "ricordo.curation.profile.updater"]
    for counted in ("fact scope: 2", "fact durability: 1", "fact authority: 1", "summary scope: 1"):
        assert counted in line
    assert "boat" not in line


async def test_facts_that_are_only_unsure_are_left_out_without_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / ".ricordo"
    texts = [f"I own boat {at}." for at in range(6)]
    unsure = [noted(text, confidence=0.3) for text in texts]
    async with agent(root, answering(newFacts=unsure), settings=learning(root, ProfileConfig())) as one:
        await one.send(" ".join(texts))
        assert await one.flush()
    assert not [record for record in caplog.records if record.name == "ricordo.curation.profile.updater"]


@pytest.mark.req("DF-B7", "DF-C33")
async def test_what_a_full_profile_lets_go_is_found_in_the_archive(tmp_path: Path) -> None:
    root, clock = tmp_path / ".ricordo", HandClock()
    old = {"confidence": 0.7, "createdAt": "2024-01-01T00:00:00Z", "category": "context"}
    crowd: list[dict[str, Any]] = [
        {"id": f"fact_{at:08x}", "content": f"Saw {word}", **old} for at, word in enumerate(WORDS)
    ]
    crowd[0]["source"] = "manual"
    async with Memory.open(root, scope=SCOPE, settings=settings(root), clock=clock) as memory:
        await memory.profile().import_document(json.dumps({"facts": crowd}))
    right = noted("I sail each May.", category="correction", confidence=0.7, sourceError="rows")
    taken = {"id": crowd[5]["id"], "reason": "corrected", "scope": "user", "replacementFactIndex": 0}
    model = answering(newFacts=[right, noted("I dive.")], factsToRemove=[taken])
    async with agent(root, model, clock=clock, settings=learning(root, ProfileConfig())) as one:
        await one.send("I sail each May. I dive.")
        assert await one.flush()
        known = await profile_of(root)
        left = {each["content"] for each in crowd} - {each["content"] for each in known["facts"]}
        (archived,) = left - {crowd[5]["content"]}
        assert len(known["facts"]) == 100
        assert [(each["content"], each.get("sourceError")) for each in known["facts"][-2:]] == [
            ("I sail each May.", "rows"), ("I dive.", None),
        ]  # fmt: skip
        (evicted,) = known["evictions"]
        assert {*evicted} == {"id", "category", "score", "at"}
        assert one.memory is not None
        assert archived in [hit.entry.content for hit in await one.memory.recall(archived)]


@pytest.mark.req("DF-C43", "DF-C45", "DF-B13", "DF-C49")
async def test_what_is_old_is_asked_about_and_at_most_ten_go_and_merging_is_off(tmp_path: Path) -> None:
    root, clock = tmp_path / ".ricordo", HandClock()
    # 89 days and a minute, 90 days, and 91 days before now
    days = ["2026-08-24T07:59:00Z", "2026-08-23T08:00:00Z", *["2026-08-22T08:00:00Z"] * 12]
    facts: list[dict[str, Any]] = [
        {"id": f"fact_{at:08x}", "content": f"Saw {WORDS[at]}", "createdAt": day, "confidence": 0.7 + at / 100}
        for at, day in enumerate(days)
    ]
    async with Memory.open(root, scope=SCOPE, settings=settings(root), clock=clock) as memory:
        await memory.profile().import_document(json.dumps({"facts": facts}))
    gone = [{"id": fact["id"], "reason": "over"} for fact in facts]
    together = {"sourceIds": [fact["id"] for fact in facts[-2:]], "consolidated": noted("Saw it all.")}
    model = answering(staleFactsToRemove=gone, factsToConsolidate=[together])
    async with agent(root, model, clock=clock, settings=learning(root, ProfileConfig())) as one:
        for text in ("Sort it by date.", "Sort it by name."):
            await one.send(text)
            assert await one.flush()
    asked = ["\n".join(each.text for each in request.messages) for request in model.requests if is_flush(request)]
    first, second = asked[0], asked[-1]
    reviewed = first.partition("\nReview. ")[2].partition("<known")[0]
    assert [fact["id"] in reviewed for fact in facts] == [False] * 2 + [True] * 12
    assert "Review. " not in second, "what it kept is not asked about again"
    assert "Merging. " not in first
    known = await profile_of(root)
    assert [fact["content"] for fact in known["facts"]] == [fact["content"] for fact in (*facts[:2], *facts[-2:])]


@pytest.mark.req("DF-C49")
async def test_with_merging_on_facts_become_one_no_surer_than_they_were_and_can_be_found_again(tmp_path: Path) -> None:
    root, clock = tmp_path / ".ricordo", HandClock()
    facts: list[dict[str, Any]] = [
        {"id": f"fact_{at:08x}", "content": f"Saw {WORDS[at]}", "confidence": 0.8, "createdAt": "2026-11-20T08:00:00Z"}
        for at in range(8)
    ]
    async with Memory.open(root, scope=SCOPE, settings=settings(root), clock=clock) as memory:
        await memory.profile().import_document(json.dumps({"facts": facts}))
    together = {"sourceIds": [fact["id"] for fact in facts], "consolidated": noted("Saw the long coast.")}
    model = answering(factsToConsolidate=[together])
    on = ProfileConfig(consolidation_enabled=True)
    async with agent(root, model, clock=clock, settings=learning(root, on)) as one:
        await one.send("Sort it by date.")
        assert await one.flush()
        (merged,) = (await profile_of(root))["facts"]
        assert (merged["content"], merged["confidence"]) == ("Saw the long coast.", 0.8)
        assert merged["consolidatedFrom"] == [fact["id"] for fact in facts]
        assert one.memory is not None
        for fact in facts:
            content = str(fact["content"])
            assert content in [hit.entry.content for hit in await one.memory.recall(content)]
        # the newest write is the archive, the one before it the profile
        await one.memory.undo(next(item.id for item in await one.memory.history() if item.action == "profile"))
    restored = (await profile_of(root))["facts"]
    assert [fact["content"] for fact in restored] == [fact["content"] for fact in facts]


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


@pytest.mark.req("DF-C39")
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


@pytest.mark.req("DF-INJ", "DF-C69")
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


@pytest.mark.req("HE-O-audit-forget", "DF-C69")
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
