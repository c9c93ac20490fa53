"""One request sums up what leaves the window and learns from it, or the workers do: each message is extracted once."""

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from agents_at_work import SCOPE, settings, transcript
from places import place_of
from ricordo import BuiltinTools, CompactionConfig, Entry, FlushConfig, HarnessAgent, MemoryConfig
from ricordo.curation import ConsolidationConfig
from ricordo.events import Event, EventSink
from ricordo.extraction import JobWorker
from ricordo.jobs import Inbox, Job
from ricordo.messages import JsonValue, get_mark
from ricordo.storage.local import LocalFiles
from ricordo.testing import Fail, Hang, RecordedRequest, Say, ScriptedModel, ScriptItem
from ricordo.workspace import read_all_entries

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-C4")]

BODY = "## SESSION INTENT\n- Build it.\n## SUMMARY\n- It goes on.\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone"
FILLER = "That is noted in the usual place, as all the others are. " * 12
CONFIG = CompactionConfig(trigger_messages=10, keep_messages=2)
TURNS = 6
DECISIONS = re.compile(r"We decided to use (\w+) for module (\d+)\.")
LIBRARIES = ("Alembic", "Bottle", "Celery", "Django", "Eliot", "Flask", "Gunicorn", "Hypercorn", "Invoke", "Jinja")


def decided(number: int) -> str:
    return f"We decided to use {LIBRARIES[number % 10]} for module {number}."


def is_summary(request: RecordedRequest) -> bool:
    return any("You condense the first part" in message.text for message in request.messages)


def is_flush(request: RecordedRequest) -> bool:
    return any("You note what is worth remembering" in message.text for message in request.messages)


def lessons(request: RecordedRequest) -> list[dict[str, str]]:
    """Return one lesson for each decision that the model is shown, whether it is to learn from it or not."""
    found = DECISIONS.findall("\n".join(message.text for message in request.messages))
    return [
        {
            "content": f"Lesson: module {number} is built with {library}.",
            "kind": "decision",
            "quote": f"We decided to use {library} for module {number}.",
            "message": "",
        }
        for library, number in dict.fromkeys(found)
    ]


def answers(request: RecordedRequest, **parts: JsonValue) -> ScriptItem:
    """Answer; a summary comes in two parts where they are asked for, each one as in `parts` if it is there.

    What is left to the inbox is refused, so that the rules extract it.
    """
    if is_flush(request):
        return Fail(400)
    if not is_summary(request):
        return Say(f"Noted. {FILLER}")
    if request.schema is None:
        return Say(str(parts.get("summary", BODY)))
    return Say(json.dumps({"summary": BODY, "lessons": lessons(request), **parts}))


def model(**parts: JsonValue) -> ScriptedModel:
    return ScriptedModel(lambda request: answers(request, **parts))


def agent(
    root: Path,
    asked: ScriptedModel,
    config: CompactionConfig = CONFIG,
    *,
    hooks: bool = True,
    on_event: EventSink | None = None,
    session: str = "s",
    name: str | None = None,
) -> HarnessAgent:
    return HarnessAgent(
        asked,
        memory=MemoryConfig(root=root, hooks=hooks),
        scope=replace(SCOPE, agent=name),
        session=session,
        compaction=config,
        builtin_tools=BuiltinTools(memory=False),
        on_event=on_event,
        settings=replace(settings(root), flush=FlushConfig()),
    )


@pytest.mark.req("AS-CONS-06", "HE-C3-idle")
async def test_a_turn_that_learns_is_answered_while_the_consolidation_it_asks_for_hangs(tmp_path: Path) -> None:
    root, asked, hanging = tmp_path / ".ricordo", model(), ScriptedModel(lambda _: Hang())
    consolidation = ConsolidationConfig(model=hanging, min_gap=0)
    held = replace(settings(root), flush=FlushConfig(closing_seconds=0.1), consolidation=consolidation)
    async with HarnessAgent(asked, memory=root, scope=SCOPE, session="s", compaction=CONFIG, settings=held) as one:
        with anyio.fail_after(20):
            for number in range(TURNS):
                await one.send(decided(number))
        assert summaries(asked)
        assert await entries(root)


def summaries(asked: ScriptedModel) -> list[RecordedRequest]:
    return [request for request in asked.requests if is_summary(request)]


async def entries(root: Path) -> list[Entry]:
    return [located.entry for located in await read_all_entries(LocalFiles(place_of(root)))]


def by_rules(found: list[Entry]) -> list[str]:
    return [entry.content for entry in found if not entry.content.startswith("Lesson")]


def learned_from(found: list[Entry]) -> Counter[int]:
    """Return how many entries there are of each decision."""
    return Counter(int(number) for entry in found for number in re.findall(r"module (\d+)", entry.content))


def noting(jobs: list[Job], act: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Return `act`, with a note of the jobs it is called for."""

    async def noted(inbox: Inbox, job: Job, **given: Any) -> Any:
        jobs.append(job)
        return await act(inbox, job, **given)

    return noted


@pytest.fixture
def idle(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Let the workers do nothing but what they are told to, unless a test says otherwise."""
    if not getattr(request, "param", True):
        return False

    async def serve(_: JobWorker) -> None:
        await anyio.sleep_forever()

    monkeypatch.setattr(JobWorker, "serve", serve)
    return True


@pytest.mark.req("HE-C4", "HE-T3", "AS-COMPACT-13", "HE-C4-lessons", "DF-B22")
@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("name", [None, "coder"])
async def test_one_request_yields_the_summary_and_the_lessons(tmp_path: Path, name: str | None) -> None:
    root, asked = tmp_path / ".ricordo", model()
    async with agent(root, asked, name=name) as one:
        for number in range(TURNS):
            await one.send(decided(number))
        [request] = summaries(asked)
        assert request.schema is not None
        [summary] = [message for message in one.window if get_mark(message) == "summary"]
        assert "- It goes on." in summary.text
        found = await entries(root)
        gone = [entry for entry in found if entry.kind == "decision"]
        assert len(found) == len(gone) > 2
        assert by_rules(found) == []
        assert await one.drain() == 0
        assert len(summaries(asked)) == 1
        texts = {message.text for message in one.window}
    kept = {number for number in range(TURNS) if decided(number) in texts}
    assert learned_from(found) == Counter(set(range(TURNS)) - kept)
    assert learned_from(await entries(root)) == Counter(range(TURNS))


@pytest.mark.req("HE-C4", "HE-T3", "AS-CHAIN-01", "AS-CHAIN-02", "AS-FLUSH-04", "AS-COMPACT-05", "DF-C22")
@pytest.mark.parametrize(("turns", "every", "idle"), [(30, 24, True), (10, 10, False)], indirect=["idle"])
async def test_each_message_is_extracted_once_over_two_compactions(
    tmp_path: Path, turns: int, every: int, idle: bool
) -> None:
    root, asked, events = tmp_path / ".ricordo", model(), list[Event]()
    config = replace(CONFIG, trigger_messages=every)
    async with agent(root, asked, config, on_event=events.append) as one:
        for number in range(turns):
            await one.send(decided(number))
        assert await one.drain() == 0
    assert len(summaries(asked)) == 2
    assert len(await transcript(root)) == 2 * turns
    found = await entries(root)
    assert learned_from(found) == Counter(range(turns))
    assert by_rules(found)
    assert not idle or len(by_rules(found)) < turns / 2
    ended = [event for event in events if event.stage == "extract" and event.status in {"finished", "skipped"}]
    assert sum(event.counts.get("messages", 0) for event in ended) == 2 * turns
    assert not [event for event in events if event.status == "failed"]


@pytest.mark.req("HE-C4", "HE-T3", "AS-FLUSH-04", "AS-COMPACT-05", "DF-B1")
@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("broken", ["", [{"content": "Lesson: module 1 is fine.", "quote": "Nobody said so."}], None])
async def test_lessons_that_can_not_be_used_leave_the_summary_and_go_to_the_workers(
    tmp_path: Path, broken: JsonValue
) -> None:
    root, asked = tmp_path / ".ricordo", model(lessons=broken)
    async with agent(root, asked) as one:
        for number in range(TURNS):
            await one.send(decided(number))
        [summary] = [message for message in one.window if get_mark(message) == "summary"]
        assert "- It goes on." in summary.text
        assert await entries(root) == []
        assert await one.drain() == 0
    assert len(summaries(asked)) == 1
    found = await entries(root)
    assert by_rules(found) == [entry.content for entry in found]
    assert learned_from(found) == Counter(range(TURNS))


@pytest.mark.req("HE-C4", "HE-T3", "AS-BUG-01", "HE-C4-lessons")
@pytest.mark.usefixtures("idle")
async def test_a_summary_that_can_not_be_used_leaves_the_lessons(tmp_path: Path) -> None:
    root, asked = tmp_path / ".ricordo", model(summary="I am sorry, I can not do that.")
    async with agent(root, asked) as one:
        for number in range(TURNS):
            await one.send(decided(number))
        [summary] = [message for message in one.window if get_mark(message) == "summary"]
        assert "I am sorry" not in summary.text
        assert [request.schema is None for request in summaries(asked)] == [False, True]
        found = await entries(root)
        assert len(found) > 2
        assert by_rules(found) == []
        assert await one.drain() == 0
    assert learned_from(await entries(root)) == Counter(range(TURNS))


@pytest.mark.req("AS-COMPACT-05", "AS-COMPACT-16", "AS-COMPACT-09", "AS-FLUSH-04")
@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize(("combined", "flush", "asks"), [(False, True, 1), (True, False, 0), (False, False, 0)])
async def test_apart_the_inbox_is_asked_and_without_a_flush_only_the_end_of_a_turn_asks(
    tmp_path: Path, combined: bool, flush: bool, asks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[Job] = []
    for name in ("put", "begin"):
        monkeypatch.setattr(Inbox, name, noting(jobs, getattr(Inbox, name)))
    root, asked = tmp_path / ".ricordo", model()
    config = replace(CONFIG, combined=combined, flush_before_compact=flush)
    async with agent(root, asked, config, name="coder") as one:
        for number in range(TURNS):
            await one.send(decided(number))
        [request] = summaries(asked)
        assert request.schema is None
        assert len([job for job in jobs if job.first_id]) == asks
        assert len(jobs) == TURNS + asks
        assert {(job.agent, job.session) for job in jobs} == {("coder", "s")}
        assert await entries(root) == []
        assert await one.drain() == 0
    found = await entries(root)
    assert by_rules(found) == [entry.content for entry in found]
    assert learned_from(found) == Counter(range(TURNS))


@pytest.mark.req("AS-COMPACT-16")
@pytest.mark.usefixtures("idle")
async def test_an_agent_that_learns_nothing_asks_for_no_lessons(tmp_path: Path) -> None:
    root, asked = tmp_path / ".ricordo", model()
    async with agent(root, asked, hooks=False) as one:
        for number in range(TURNS):
            await one.send(decided(number))
        [request] = summaries(asked)
        assert request.schema is None
        assert await one.drain() == 0
    assert await entries(root) == []
    assert not list((place_of(root) / "workspace").glob("memory/*.md"))


@pytest.mark.req("HE-C4-lessons", "HE-A3", "AS-FLUSH-04", "AS-MEM-01", "AS-COMPACT-05", "HE-C4")
@pytest.mark.usefixtures("idle")
async def test_what_was_stated_only_in_what_was_summed_up_is_known_to_the_next_session(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    stated = {
        "We go with Kafka, the broker of Ana's team, for the events.": "decision",
        "Every handler here returns early and logs through structlog.": "convention",
        "Please keep your answers short, long ones tire me.": "preference",
    }
    notes = {text: f"{text[:-1]}, as noted." for text in stated}
    noted = [{"content": notes[text], "kind": kind, "quote": text} for text, kind in stated.items()]
    asked = model(lessons=[{**note, "message": ""} for note in noted])
    async with agent(root, asked, replace(CONFIG, carry_tokens=0)) as one:
        for text in ["Hello.", *stated, *("And on we go." for _ in range(TURNS - len(stated) - 1))]:
            await one.send(text)
        assert not [text for text in stated if text in "".join(message.text for message in one.window)]
    found = {entry.content: entry.kind for entry in await entries(root)}
    assert {notes[text]: kind for text, kind in stated.items()}.items() <= found.items()
    async with agent(root, ScriptedModel([Say("Hello.")]), session="t") as two:
        assert two.memory is not None
        for text in stated:
            assert notes[text] in {hit.entry.content for hit in await two.memory.recall(text)}
