"""An agent's own model learns what was said, when and as its flush is configured, and nobody waits for it."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, ledgers, settings
from hand_clock import HandClock
from hand_made_roots import begun
from noting_models import lessons, note, said
from places import place_of
from reached_models import reach, serving
from ricordo import CompactionConfig, FlushConfig, HarnessAgent, Memory
from ricordo.curation import ConsolidationConfig
from ricordo.events import Event
from ricordo.jobs import Inbox, InboxConfig, Job
from ricordo.messages import get_mark
from ricordo.models import ChatModel
from ricordo.search.index import WorkspaceIndex
from ricordo.storage.local import LocalFiles
from ricordo.testing import (
    Call,
    Fail,
    Hang,
    RecordedRequest,
    Say,
    ScriptedModel,
    ScriptItem,
    overflow,
)
from ricordo.workspace import read_all_entries

pytestmark = pytest.mark.anyio

FACT = "We deploy only from main."
NOTE = note("The team deploys only from main.", "deploy only from main", kind="convention")
BODY = "## SESSION INTENT\n- Talk.\n## SUMMARY\n- It goes on.\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone"
FILLER = "That stands in the usual place, as all the others do. " * 12
OWN = "Tell me what matters.\n\n{messages}"
SMALL = CompactionConfig(trigger_messages=6, keep_messages=2)


def text(request: RecordedRequest) -> str:
    return "\n".join(message.text for message in request.messages)


def is_flush(request: RecordedRequest) -> bool:
    return "You note what is worth remembering" in text(request)


def is_summary(request: RecordedRequest) -> bool:
    return "You condense the first part" in text(request)


def noting(request: RecordedRequest) -> ScriptItem:
    """Note the fact wherever lessons are asked for, sum up where that is asked for, and else say something."""
    learns = request.schema is not None
    told = [NOTE] if FACT in text(request) else []
    if is_summary(request):
        return Say(lessons(*told, summary=BODY) if learns else BODY)
    return Say(lessons(*told)) if learns else Say(f"Noted. {FILLER}")


def agent(root: Path, model: ChatModel, flush: FlushConfig | None = None, **options: Any) -> HarnessAgent:
    given: dict[str, Any] = {
        "settings": replace(settings(root), flush=FlushConfig()),
        "session": "s",
        "memory_tools": False,
    } | options
    return HarnessAgent(model, **agent_arguments(workspace=root, scope=SCOPE, flush=flush, **given))


async def contents(root: Path) -> list[str]:
    return [located.entry.content for located in await read_all_entries(LocalFiles(place_of(root)))]


@pytest.mark.req("AS-FLUSH-05", "AS-BUG-13", "HE-C8", "DF-B22")
@pytest.mark.parametrize("name", ["openai-chat:gpt-4o", "openai:gpt-4o"])
async def test_a_model_over_the_wire_learns_what_was_said_with_its_source(name: str, tmp_path: Path) -> None:
    def script(request: RecordedRequest) -> ScriptItem:
        if not is_flush(request):
            return Say("Noted.")
        return Say(lessons(NOTE))

    with serving(script) as server:
        async with agent(tmp_path / ".ricordo", reach(server, name)) as one:
            await one.send(f"By the way: {FACT}")
            assert await one.drain() == 0
            said = one.window[0]
        assert sum(map(is_flush, server.requests)) == 1
    [located] = await read_all_entries(LocalFiles(place_of(tmp_path / ".ricordo")))
    entry = located.entry
    assert (entry.content, entry.kind, entry.by) == (NOTE["content"], "convention", "flush")
    assert (entry.source.session, entry.source.messages) == ("s", (said.id,))
    assert entry.source.quote == "deploy only from main"
    assert entry.source.quote in said.text


@pytest.mark.req("AS-FLUSH-03", "AS-TRIG-04", "AS-CONS-06", "HE-C3-eight", "CC-GATES")
@pytest.mark.parametrize("asked", [False, True], ids=["of its own", "asked for"])
async def test_a_flush_appends_then_indexes_that_part_then_asks_for_consolidation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    acts: list[str] = []

    def watched(owner: type, name: str, label: Any) -> None:
        inner = getattr(owner, name)

        async def act(self: Any, first: Any, *rest: Any, **named: Any) -> Any:
            if told := label(first):
                acts.append(told)
            return await inner(self, first, *rest, **named)

        monkeypatch.setattr(owner, name, act)

    watched(LocalFiles, "append", lambda path: "append" if re.search(r"memory/\d{4}-", path) else "")
    watched(WorkspaceIndex, "index_appended", lambda path: f"index {path.rpartition('/')[0]}")
    watched(Inbox, "put", lambda job: "consolidate" if job.kind == "consolidate" else "")
    root = tmp_path / ".ricordo"
    due = replace(settings(root, consolidates=True), flush=FlushConfig(), consolidation=ConsolidationConfig(min_gap=0))
    async with agent(root, ScriptedModel(noting), settings=due) as one:
        await one.send(FACT)
        await (one.flush() if asked else one.drain())
        assert acts[:3] == ["append", "index workspace/memory", "consolidate"], "before the session is closed"


@pytest.mark.req("AS-MEM-01", "AS-BUG-13")
async def test_a_fact_at_the_end_of_a_session_that_is_read_in_parts_is_in_the_next_prompt(tmp_path: Path) -> None:
    root, model = tmp_path / "root", ScriptedModel(noting)
    asked = replace(settings(root, consolidates=True), flush=FlushConfig(max_input_tokens=8_000))
    async with agent(root, model, settings=asked) as one:
        await one.record([said(f"Module {number} is like the others. {FILLER}") for number in range(120)])
        await one.record([said(FACT)])
        assert await one.flush()
        await one.consolidate()
    assert sum(map(is_flush, model.requests)) > 2
    later = ScriptedModel([Say("Hello.")])
    async with agent(root, later, session="later") as one:
        await one.send("Hello.")
    assert str(NOTE["content"]) in text(later.requests[0])


@pytest.mark.req("AS-TRIG-04", "CC-GATES")
async def test_a_flush_that_wrote_something_half_an_hour_after_the_last_consolidation_causes_one(
    tmp_path: Path,
) -> None:
    root, clock = tmp_path / ".ricordo", HandClock()
    events: list[Event] = []
    held: dict[str, Any] = {"settings": settings(root, consolidates=True), "clock": clock, "on_event": events.append}

    def runs() -> int:
        return sum((event.stage, event.status) == ("consolidate", "started") for event in events)

    async with agent(root, ScriptedModel(lambda _: Say("Noted.")), **held) as one:
        for number in range(10):
            await one.send(f"We decided to use stack {number} for shop {number}.")
            assert await one.drain() == 0
            clock.turn(minutes=2, seconds=59 + (number == 9) * 9)
        assert ledgers(root).count("We decided to use stack") == 10
        assert runs() == 0
        clock.turn(seconds=1)
        await one.send("How are you?")
        assert await one.drain() == 0
        assert runs() == 0, "nothing was written"
        for number, (seconds, wanted) in enumerate([(0, 1), (30 * 60 - 1, 1), (1, 2)]):
            clock.turn(seconds=seconds)
            await one.send(f"We decided to use lift {number} for floor {number}.")
            assert await one.drain() == 0
            assert runs() == wanted


@pytest.mark.req("AS-LEDGER-02", "AS-CURATED-02", "AS-BUG-13")
async def test_what_a_model_notes_twice_stands_in_the_ledger_twice_and_curated_memory_stays(tmp_path: Path) -> None:
    root = begun(tmp_path / ".ricordo", tmp_path / "data")
    curated = place_of(root) / "workspace/MEMORY.md"
    curated.parent.mkdir(parents=True)
    curated.write_bytes(before := b"# Mine\r\n\r\n* by hand \xff\n- The team deploys.\n\n\n")
    model, again = ScriptedModel(noting), ScriptedModel(noting)
    async with agent(root, model) as one:
        for said in (FACT, f"Yes: {FACT}"):
            await one.send(said)
            assert await one.drain() == 0
            assert await one.flush()
    assert ledgers(root).count("The team deploys only from main.") == 2
    assert curated.read_bytes() == before
    asked = [text(request) for request in model.requests if is_flush(request)]
    assert [f"Yes: {FACT}" in each for each in asked] == [False, True]
    contexts = [each.count('kind="context"') for each in asked]
    assert contexts[1] > contexts[0], "what was extracted is no news"
    async with agent(root, again) as one:
        assert await one.drain() == 0
        assert await one.flush()
    assert not again.requests


@pytest.mark.req("AS-FLUSH-01", "AS-FLUSH-02", "AS-BUG-noreply", "AS-BUG-13", "AS-CURATED-02")
@pytest.mark.parametrize("reference", ["today", "all"])
async def test_an_agents_flush_carries_what_is_known_and_writes_nothing_where_nothing_is_new(
    reference: str, tmp_path: Path
) -> None:
    root, clock = begun(tmp_path / ".ricordo", tmp_path / "data"), HandClock()
    folder = place_of(root) / "workspace/memory"
    folder.mkdir(parents=True)
    (folder.parent / "MEMORY.md").write_text("# Memory\n\n- The shop is called Nordlicht.\n")
    older = {f"2026-11-{day}": f"Door {day} is green." for day in range(10, 21)}
    for day, line in {"2026-11-21": "Tea is out.", **older}.items():
        (folder / f"{day}.md").write_text(f"# {day}\n\n- {line}\n")
    before = {path: path.read_bytes() for path in [folder.parent / "MEMORY.md", *folder.rglob("*.md")]}

    def answered(request: RecordedRequest) -> ScriptItem:
        return Say("```\nNo_Reply.\n```" if is_flush(request) else "Noted.")

    model = ScriptedModel(answered)
    async with agent(root, model, FlushConfig(reference=reference), clock=clock) as one:
        await one.send("Thanks, the shop is open today and tomorrow.")
        assert await one.drain() == 0
    (asked,) = filter(is_flush, model.requests)
    for known in ("- The shop is called Nordlicht.", "Tea is out.", "only what is newly learned"):
        assert known in text(asked)
    assert [line for line in older.values() if line in text(asked)] == [*older.values()] * (reference == "all")
    assert {path: path.read_bytes() for path in [folder.parent / "MEMORY.md", *folder.rglob("*.md")]} == before


@pytest.mark.req("HE-C8")
async def test_a_session_that_ends_by_an_error_is_learned_from_and_known_to_the_next(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"

    async def fail() -> None:
        async with agent(root, ScriptedModel(noting)) as one:
            await one.send(FACT)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await contents(root) == [NOTE["content"]]


@pytest.mark.req("AS-FLUSH-04", "AS-COMPACT-05", "HE-C4-lessons")
@pytest.mark.parametrize("combined", [True, False])
async def test_a_fact_of_dropped_messages_is_found_by_search_and_shown_by_its_path_and_lines(
    combined: bool, tmp_path: Path
) -> None:
    found: dict[str, str] = {}

    def searching(request: RecordedRequest) -> ScriptItem:
        results = [result for message in request.messages for result in message.tool_results]
        if results and results[-1].name == "memory_get":
            found["get"] = results[-1].text
            return Say("There it is.")
        if results:
            found["search"] = results[-1].text
            place = re.search(r"(memory/[\d-]+\.md)[:# ]+(?:lines? )?(\d+)", found["search"])
            assert place is not None, found["search"]
            line = int(place[2])
            return Call("memory_get", {"path": place[1], "start_line": line, "end_line": line})
        return Call("memory_search", {"query": "deploys main"})

    def script(request: RecordedRequest) -> ScriptItem:
        asks = request.messages[-1].text.startswith("Look it up") or request.messages[-1].role == "tool"
        return searching(request) if asks else noting(request)

    root = tmp_path / ".ricordo"
    config = replace(SMALL, combined=combined)
    async with agent(root, ScriptedModel(script), compaction=config, memory_tools=True) as one:
        await one.record([said(FACT), *(said(f"This is line {number}.") for number in range(30))])
        await one.send("And now?")
        assert any(get_mark(message) == "summary" for message in one.window)
        assert all(FACT not in message.text for message in one.window if get_mark(message) is None)
        await one.drain()
        await one.send("Look it up: from where do we deploy?")
    assert "The team deploys only from main." in found["search"]
    assert "The team deploys only from main." in found["get"]


@pytest.mark.req("AS-FLUSH-05", "AS-BUG-flush-policy", "AS-COMPACT-16", "AS-COMPACT-05")
@pytest.mark.parametrize("path", ["turn", "compaction", "overflow"])
@pytest.mark.parametrize("off", [FlushConfig(flush_trigger="never"), None])
async def test_never_and_off_extract_nothing_on_any_path(path: str, off: FlushConfig | None, tmp_path: Path) -> None:
    asked = await talk(tmp_path / ".ricordo", path, off, without=off is None)
    assert [is_flush(request) for request in asked] == [False] * len(asked)
    assert [request for request in asked if request.schema is not None] == []
    assert any(map(is_summary, asked)) == (path != "turn")
    assert ledgers(tmp_path / ".ricordo") == ""


@pytest.mark.req("AS-FLUSH-05", "AS-BUG-flush-policy")
@pytest.mark.parametrize("path", ["turn", "compaction", "overflow"])
async def test_the_prompt_and_the_model_of_the_flush_are_asked_on_every_path(path: str, tmp_path: Path) -> None:
    own = ScriptedModel(lambda request: Say(lessons(NOTE) if FACT in text(request) else "NO_REPLY"), name="own")
    asked = await talk(tmp_path / ".ricordo", path, FlushConfig(flush_prompt=OWN, model=own))
    assert [request for request in asked if request.schema is not None or is_flush(request)] == []
    assert own.requests
    assert all("Tell me what matters." in text(request) for request in own.requests)
    assert await contents(tmp_path / ".ricordo") == [NOTE["content"]]


@pytest.mark.req("AS-FLUSH-05", "AS-BUG-flush-policy", "DF-C21", "DF-QUEUE")
@pytest.mark.parametrize("path", ["turn", "compaction", "overflow"])
async def test_within_the_gap_nothing_is_extracted_on_any_path_and_after_it_all_of_it_is(
    path: str, tmp_path: Path
) -> None:
    clock, root, throttled = HandClock(), tmp_path / ".ricordo", FlushConfig(flush_trigger="throttled(600)")
    async with agent(root, ScriptedModel(noting), throttled, clock=clock, session="before") as one:
        await one.send("My sister Ana lives in Porto.")
        await one.drain()
    clock.turn(60)
    asked = await talk(root, path, throttled, clock=clock)
    assert [request for request in asked if request.schema is not None] == []
    assert await contents(root) == []
    clock.turn(541)
    model = ScriptedModel(noting)
    async with agent(root, model, throttled, clock=clock, session="after") as one:
        assert await one.drain() == 0
    assert sum(map(is_flush, model.requests)) == 1
    assert await contents(root) == [NOTE["content"]]


@pytest.mark.req("AS-FLUSH-05", "AS-FLUSH-06", "AS-COMPACT-05", "AS-COMPACT-09", "AS-CHAIN-01", "AS-COMPACT-16")
async def test_what_a_summary_learned_counts_for_the_gap(tmp_path: Path) -> None:
    root, clock, model = tmp_path / ".ricordo", HandClock(), ScriptedModel(noting)
    throttled = FlushConfig(flush_trigger="throttled(600)")
    pausing = replace(settings(root), flush=FlushConfig(), inbox=InboxConfig())
    async with agent(root, model, throttled, clock=clock, compaction=SMALL, settings=pausing) as one:
        for asked in (FACT, "This is turn 1.", "This is turn 2.", "This is turn 3."):
            await one.send(asked)
        assert [is_summary(request) for request in model.requests if request.schema is not None] == [True]
        for waited, asks in ((30, False), (569, False), (1, True)):
            clock.turn(waited)
            await one.drain()
            assert any(map(is_flush, model.requests)) == asks


@pytest.mark.req("DF-B1")
@pytest.mark.parametrize("flush", [FlushConfig(flush_prompt=OWN), FlushConfig(flush_trigger="throttled(600)")])
async def test_what_a_summary_may_not_learn_from_waits_in_the_inbox_before_it_is_asked_for(
    flush: FlushConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, jobs, clock, root = Inbox.put, list[Job](), HandClock(), tmp_path / ".ricordo"

    async def noted(inbox: Inbox, job: Job) -> Job:
        jobs.append(job)
        return await put(inbox, job)

    monkeypatch.setattr(Inbox, "put", noted)
    async with agent(root, ScriptedModel(noting), flush, clock=clock, session="before") as one:
        await one.send("My sister Ana lives in Porto.")
        await one.drain()
    await talk(root, "compaction", flush, clock=clock)
    assert [(job.session, bool(job.last_id)) for job in jobs if job.first_id] == [("s", True)]


async def talk(
    root: Path, path: str, flush: FlushConfig | None, *, without: bool = False, **options: Any
) -> Sequence[RecordedRequest]:
    """Say the fact and more of it in a session that goes this path, settle, and return what the agent's model got."""

    def script(request: RecordedRequest) -> ScriptItem:
        too_long = path == "overflow" and request.messages[-1].text == "This is turn 3." and not refused
        if too_long and not is_summary(request):
            refused.append(request)
            return overflow("openai-chat", window=8_192, size=9_000)
        return noting(request)

    refused: list[RecordedRequest] = []
    model = ScriptedModel(script)
    config = {"turn": None, "compaction": SMALL, "overflow": replace(SMALL, trigger_messages=0)}[path]
    given: dict[str, Any] = {"compaction": config, **options}
    if without:
        given["settings"] = replace(settings(root), flush=None)
    async with agent(root, model, flush, **given) as one:
        for number in range(1 if path == "turn" else 4):
            await one.send(FACT if number == 0 else f"This is turn {number}.")
        if path != "turn":
            assert any(get_mark(message) == "summary" for message in one.window)
        await one.drain()
    assert bool(refused) == (path == "overflow")
    return model.requests


@pytest.mark.req("AS-BUG-14", "HE-C8-async", "HE-C8", "DF-B24", "DF-MW")
async def test_the_answer_waits_for_no_flush_closing_takes_its_limit_and_the_rest_is_done_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, reached, events = tmp_path / ".ricordo", anyio.Event(), list[Event]()

    def hanging(request: RecordedRequest) -> ScriptItem:
        if not is_flush(request):
            return Say("Noted.")
        reached.set()
        return Hang()

    patient = FlushConfig(closing_seconds=600.0)
    at_once = replace(settings(root, consolidates=True), flush=patient, inbox=at_once_inbox(settings(root)))
    flush = FlushConfig(closing_seconds=0.05)
    with anyio.fail_after(20):
        async with agent(root, ScriptedModel(hanging), flush, settings=at_once, on_event=events.append) as one:
            await one.send(FACT)
            assert one.window[-1].text == "Noted."
            assert not [event for event in events if event.stage in {"extract", "index", "consolidate"}
                        and event.status == "finished"]  # fmt: skip
            await reached.wait()
        assert ledgers(root) == ""
        async with agent(root, ScriptedModel(noting), settings=at_once, session="next") as one:
            assert await one.drain() == 0
            assert str(NOTE["content"]) in ledgers(root)
    assert set(await contents(root)) == {NOTE["content"]}


def at_once_inbox(given: Any) -> Any:
    """Return the inbox of these settings without a pause."""
    return replace(given.inbox, debounce_seconds=0.0)


@pytest.mark.req("AS-BUG-14", "HE-C8-async", "DF-C21")
async def test_closing_drains_what_waits_when_there_is_time(tmp_path: Path) -> None:
    assert FlushConfig().closing_seconds == 2.0, "the documented limit"
    async with agent(tmp_path / ".ricordo", ScriptedModel(noting)) as one:
        await one.send(FACT)
    assert await contents(tmp_path / ".ricordo") == [NOTE["content"]]


@pytest.mark.req("AS-BUG-14")
async def test_closing_takes_its_limit_for_what_the_project_shares_too_and_the_rest_is_done_later(
    tmp_path: Path,
) -> None:
    root, clock = tmp_path / ".ricordo", HandClock()
    given = settings(root, consolidates=True)
    curated = root / "workspace" / "MEMORY.md"
    for seconds, text in ((0.0, FACT), (40.0, "We tag each release.")):
        kept = replace(given, flush=FlushConfig(model="offline", closing_seconds=seconds))
        async with Memory.open(root, scope=SCOPE, settings=kept, clock=clock) as memory:
            await memory.remember(text, scope=replace(SCOPE, user=None))
            clock.turn(3_600)
        assert curated.exists() is bool(seconds)
    assert FACT in curated.read_text(encoding="utf-8")


@pytest.mark.req("AS-BUG-14", "AS-FLUSH-05", "DF-B1", "AS-FLUSH-03")
@pytest.mark.parametrize("trigger", ["always", "throttled(36000)"])
async def test_a_model_that_stays_away_is_tried_again_and_at_last_the_rules_extract(
    tmp_path: Path, trigger: str
) -> None:
    clock, root, reasons, stages = HandClock(), tmp_path / ".ricordo", list[str](), list[str]()
    model = ScriptedModel(lambda request: Fail(503) if is_flush(request) else Say("Noted."))

    def heard(event: Event) -> None:
        if event.status == "finished":
            stages.append(event.stage)
        if event.stage == "extract" and event.status == "finished" and event.reason:
            reasons.append(event.reason)

    async with agent(root, model, FlushConfig(attempts=2, flush_trigger=trigger), clock=clock, on_event=heard) as one:
        await one.send(FACT)
        for _ in range(3):
            assert await contents(root) == []
            await one.drain()
            clock.turn(3_600)
    assert sum(map(is_flush, model.requests)) == 2
    assert await contents(root) == [FACT]
    assert reasons == ["the rules extracted: the model did not answer in 2 tries"]
    assert stages[(at := stages.index("save")) : at + 2] == ["save", "index"], "what the rules wrote is indexed as well"


@pytest.mark.req("FC-JUNK")
async def test_two_sessions_on_one_root_learn_nothing_that_the_agent_remembered_by_its_tool(tmp_path: Path) -> None:
    root, by_rules = tmp_path / ".ricordo", FlushConfig(model="offline")

    def remembering(request: RecordedRequest) -> ScriptItem:
        if request.messages[-1].role == "user" and not is_flush(request):
            return Call("remember", {"content": FACT})
        return noting(request)

    for session, script in (("one", remembering), ("two", noting)):
        async with agent(root, ScriptedModel(script), by_rules, session=session, memory_tools=True) as one:
            await one.send(FACT)
    assert await contents(root) == [FACT]


@pytest.mark.req("AS-FLUSH-05")
async def test_a_model_by_a_name_that_can_not_be_loaded_leaves_it_to_the_rules(tmp_path: Path) -> None:
    root, reasons = tmp_path / ".ricordo", list[str | None]()
    flush = FlushConfig(model="nobody:knows-it")

    def heard(event: Event) -> None:
        if event.stage == "extract":
            reasons.append(event.reason)

    async with agent(root, ScriptedModel(noting), flush, on_event=heard) as one:
        await one.send(FACT)
        await one.drain()
    assert await contents(root) == [FACT]
    assert any("the rules extracted" in (reason or "") for reason in reasons)
