"""Compactions of an agent: each can be opened and taken back, and the report of the window adds up."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, is_valid, said, settings, transcript
from places import place_of
from ricordo import CompactionConfig, HarnessAgent
from ricordo.agent import tool
from ricordo.context.usage import ContextReport, apportion
from ricordo.errors import CompactionNotFound, MessageNotFound, UndoRefused
from ricordo.messages import Media, Message, Text, Usage, estimate_request, estimate_text, get_mark, is_pinned
from ricordo.models import ChatModel
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem
from ricordo.workspace import DEFAULT_AGENT, transcript_path

if TYPE_CHECKING:
    from ricordo.events import Event
    from ricordo.messages.tokens import RequestEstimate

pytestmark = pytest.mark.anyio

IMAGE = Media(media_type="image/png", uri="data:image/png;base64,iVBORw0=")
LONG = "some more words to fill a line, " * 5
CONFIG = CompactionConfig(trigger_messages=8, keep_messages=2, model="offline")


@tool
def look(topic: str) -> str:
    """Look a topic up."""
    return f"{topic} is described in chapter 7. {LONG}"


def agent(model: ChatModel, root: Path | None, **options: object) -> HarnessAgent:
    given = {
        "session": "s", "settings": settings(root or Path()), "tools": [look], "compaction": CONFIG, "scope": SCOPE,
    } | options  # fmt: skip
    return HarnessAgent(model, **agent_arguments(workspace=root, **given))


def talking(window: int | None = None) -> ScriptedModel:
    def answer(request: RecordedRequest) -> ScriptItem:
        last = request.messages[-1]
        return Call("look", {"topic": "main"}) if last.role == "user" and "look" in last.text else Say(f"Yes. {LONG}")

    return ScriptedModel(answer, window=window)


async def fill(one: HarnessAgent, count: int) -> None:
    """Let as many questions be asked and answered as if it had been elsewhere."""
    pairs = ((said(f"Number {number}. {LONG}"), answered(f"Yes. {LONG}")) for number in range(count))
    await one.record([message for pair in pairs for message in pair])


def answered(text: str) -> Message:
    return Message(role="assistant", parts=(Text(text=text),))


def adds_up(report: ContextReport) -> bool:
    """Tell whether the sections are all of the request and, with the rest, all of the model's window."""
    sections = dict(report.sections)
    room = sections.pop("reserve") + sections.pop("free")
    return sum(sections.values()) == report.tokens and (report.limit is None or report.tokens + room == report.limit)


@pytest.mark.req("CC-UNDO", "AS-COMPACT-06")
async def test_every_compaction_is_on_record_opens_the_original_and_is_taken_back(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    async with agent(talking(), root) as one:
        (head,) = await one.record([Message(role="system", parts=(Text(text="Answer in English."),))])
        (told,) = await one.record(
            [
                Message(
                    role="user", parts=(Text(text="I am Ada."), IMAGE), name="ada", parent=head.id,
                    metadata={"channel": "phone"},
                )
            ]
        )  # fmt: skip
        before, made = one.window, await one.compactions.all()
        while len(made) < 2:
            before, known = one.window, made
            await one.send(f"Number {len(before)}, look it up. {LONG}")
            made = await one.compactions.all()
            before = before if made != known else one.window
        everything = {message.id: message for message in await transcript(root)}
        for each in made:
            opened = await one.compactions.expand(each.handle)
            assert (opened[0].id, opened[-1].id, len(opened)) == (each.first_id, each.last, each.messages)
            assert head not in opened, "it stands in the window still"
            assert all(everything[message.id] == message for message in opened if get_mark(message) != "summary")
    async with agent(talking(), root) as again:
        assert [each.handle for each in await again.compactions.all()] == [each.handle for each in made]
        with pytest.raises(UndoRefused, match=made[0].handle):
            await again.compactions.undo(made[-1].handle)
        assert (await again.compactions.undo()).handle == made[0].handle
        assert again.window[: len(before)] == before
        for each in made[1:]:
            assert (await again.compactions.undo()).handle == each.handle
        assert [message.id for message in again.window] == list(everything), "nothing is summed up any more"
        assert again.window[1] == told, "with its picture, its name, its parent and its metadata"
        assert is_valid(again.window)
        with pytest.raises(CompactionNotFound):
            await again.compactions.undo()
    async with agent(talking(), root) as once_more:
        assert [message.id for message in once_more.window] == list(everything)
        assert once_more.window[1] == told
    assert list(everything.values()) == list(await transcript(root))


@pytest.mark.req("CC-UNDO", "AS-STATE-01")
async def test_what_an_agent_of_another_name_did_is_in_its_folder_and_is_taken_back_from_there(tmp_path: Path) -> None:
    root, scope = tmp_path / ".ricordo", replace(SCOPE, agent="coder")
    async with agent(talking(), root, scope=scope) as one:
        await fill(one, 12)
        before = one.window
        await one.compact()
        left = one.window
        assert get_mark(left[0]) == "summary"
    async with agent(talking(), root, scope=scope) as again:
        assert again.window == left
        (made,) = await again.compactions.all()
        opened = await again.compactions.expand(made.handle)
        assert [each.id for each in opened] == [each.id for each in before[: made.messages]]
        await again.compactions.undo()
        assert again.window == before
    folders = place_of(root) / "workspace" / "agents"
    assert [folder.name for folder in folders.iterdir()] == ["coder"]


@pytest.mark.req("CC-UNDO")
async def test_a_compaction_that_a_person_asked_for_is_taken_back_exactly(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    async with agent(talking(), root, compaction=None) as one:
        await fill(one, 24)
        before = one.window
        prompt = await one.system_prompt()
        (done,) = [report for report in await one.compact() if report.action == "compact"]
        assert (done.status, done.handle) == ("done", (await one.compactions.all())[0].handle)
        compacted = await one.system_prompt()
        await one.compactions.undo()
        assert one.window == before
        assert await one.system_prompt() == compacted == prompt
        await one.send("Go on.")
        assert one.window[: len(before)] == before


@pytest.mark.req("CC-UNDO")
async def test_an_undone_compaction_does_not_happen_again_at_once(tmp_path: Path) -> None:
    async with agent(talking(), tmp_path / ".ricordo") as one:
        while not await one.compactions.all():
            await one.send(f"Number. {LONG}")
        await one.compactions.undo()
        before = one.window
        await one.send("Go on.")
        assert one.window[: len(before)] == before


@pytest.mark.req("AS-COMPACT-10", "CC-PIN")
async def test_what_was_pinned_goes_through_a_compaction_word_for_word(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    async with agent(talking(), root) as one:
        await one.send("The deploy password is kept by Nadia, and nobody else.")
        pin = one.window[0]
        await one.compactions.pin(pin.id)
        for _ in range(2):
            await fill(one, 4)
            await one.send("Go on.")
        assert len(await one.compactions.all()) >= 2
        assert [message.text.count(pin.text) for message in one.window if pin.text in message.text] == [1]
    async with agent(talking(), root) as again:
        while not any(map(is_pinned, again.window)):
            await again.compactions.undo()
        assert [message.id for message in again.window if is_pinned(message)] == [pin.id]
        await again.compactions.unpin(pin.id)
        assert not any(map(is_pinned, again.window))


@pytest.mark.req("CC-PIN", "CC-UNDO")
@pytest.mark.parametrize("durable", [True, False], ids=["with a root", "without a root"])
async def test_what_a_summary_carries_is_let_go_when_it_is_unpinned(tmp_path: Path, durable: bool) -> None:
    root = tmp_path / ".ricordo" if durable else None
    pins = ("The deploy password is kept by Nadia, and nobody else.", "Never deploy on a Friday, whoever asks.")
    async with AsyncExitStack() as open_agents:
        one = await open_agents.enter_async_context(agent(talking(), root))
        ids = [(await one.send(text)).messages[0].id for text in pins]
        for each in ids:
            await one.compactions.pin(each)
        while len(await one.compactions.all()) < 2:
            await fill(one, 4)
            await one.send("Go on.")
        before = one.window
        assert not any(map(is_pinned, before))
        told = await one.compactions.unpin(ids[0])
        assert (told.id, told.role, told.text, is_pinned(told)) == (ids[0], "user", pins[0], False)
        left = one.window
        assert pins[0] not in str(left)
        assert left[0].text.count(pins[1]) == 1
        assert (left[0].id, left[1:]) == (before[0].id, before[1:])
        for unknown in (ids[0], "", "nothing"):
            with pytest.raises(MessageNotFound):
                await one.compactions.unpin(unknown)
        with pytest.raises(MessageNotFound):
            await one.compactions.pin(ids[1])
        if durable:
            await open_agents.aclose()
            one = await open_agents.enter_async_context(agent(talking(), root))
            assert one.window == left
        for _ in await one.compactions.all():
            await one.compactions.undo()
        assert [message.id for message in one.window if is_pinned(message)] == ids[1:]
        assert [message.text for message in one.window if message.id in ids] == list(pins)
        assert len({message.id for message in one.window}) == len(one.window)


@pytest.mark.req("CC-MANUAL")
async def test_a_dry_run_tells_what_it_would_come_to_and_leaves_no_trace(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    events: list[Event] = []
    config = CompactionConfig(trigger_messages=0, trigger_tokens=0, keep_messages=2)
    model = talking()
    async with agent(model, root, compaction=config, on_event=events.append) as one:
        await fill(one, 12)
        await one.drain()
        await one.system_prompt()
        window, asked = one.window, len(model.requests)
        files = {path: path.read_bytes() for path in (place_of(root) / "workspace").rglob("*") if path.is_file()}
        events.clear()
        done = await one.compact(dry_run=True)
        assert [report.status for report in done if report.action == "compact"] == ["done"]
        assert done.after.messages < done.before.messages == 24
        assert done.after.tokens < done.before.tokens
        assert adds_up(done.before)
        assert adds_up(done.after)
        assert one.window == window
        assert (len(model.requests), await one.compactions.all(), events) == (asked, (), [])
        assert {path: path.read_bytes() for path in files} == files
        assert (await one.get_context_usage()) == done.before


@pytest.mark.req("CC-MANUAL")
@pytest.mark.parametrize("window", [None, 20_000])
async def test_a_focus_reaches_the_summary_and_the_report_adds_up(tmp_path: Path, window: int | None) -> None:
    asked: list[str] = []

    def answer(request: RecordedRequest) -> ScriptItem:
        if request.tools:
            return Say(f"Yes. {LONG}")
        asked.append("\n".join(message.text for message in request.messages))
        headings = ("SESSION INTENT", "SUMMARY", "ARTIFACTS", "NEXT STEPS")
        return Say("\n".join(f"## {heading}\n- The port is 8443." for heading in headings))

    config = CompactionConfig(trigger_messages=0, trigger_tokens=0, keep_messages=2, combined=False, window=window)
    model = ScriptedModel(answer, window=30_000 if window else 20_000)
    async with agent(model, tmp_path / ".ricordo", compaction=config) as one:
        assert one.memory is not None
        await one.memory.remember("The shop is in Bergamo.")
        await one.record([said("We deploy only from main.")])
        await fill(one, 8)
        before = await one.get_context_usage()
        assert abs(before.system + before.memory - estimate_text(await one.system_prompt())) < 10
        reports = await one.compact(focus="the port of the gateway")
        assert any("the port of the gateway" in text for text in asked)
        after = await one.get_context_usage()
        assert (reports.before, reports.after.messages) == (before, after.messages)
    for report in (before, after):
        assert adds_up(report)
        assert report.limit == 20_000
        named = (report.system, report.memory, report.tools, report.conversation, report.reserve, report.free)
        assert min(named) > 0
        assert sum(named) == report.limit
        assert report.system + report.memory + report.tools + report.conversation == report.tokens
    assert before.user > after.user > 0
    assert before.summary == 0 < after.summary


@pytest.mark.req("AS-BUG-21", "CC-MANUAL")
@pytest.mark.parametrize("density", [0.6, 1.7])
async def test_one_reply_corrects_the_estimate_of_a_request_and_of_all_that_it_holds(
    tmp_path: Path, density: float
) -> None:
    sent: list[RequestEstimate] = []
    reported: list[int] = []

    def answer(request: RecordedRequest) -> ScriptItem:
        system, *window = request.messages
        sent.append(estimate_request(window, system=system.text, tools=request.tools))
        reported.append(round(sent[-1].input * density) + 120)
        return Say("Yes.", usage=Usage(input=reported[-1]))

    model = ScriptedModel(answer, window=60_000)
    async with agent(model, tmp_path / ".ricordo") as one:
        assert one.memory is not None
        await one.memory.remember(f"The shop is in Bergamo. {LONG}")
        await one.record([said(f"Number {number}. {LONG * 5}") for number in range(6)])
        before = await one.get_context_usage()
        await one.send("And now?")
        after = await one.get_context_usage()
    (request,) = sent
    assert min(before.memory, before.reserve) > 0
    assert before.tools == request.tools
    assert before.system + before.memory == request.system
    assert 0 < request.messages - before.conversation < 20, "the question is all that came since"
    assert after.tokens == pytest.approx(reported[0], rel=0.1)
    assert abs(after.tokens - before.tokens) > 0.1 * after.tokens


@pytest.mark.req("AS-BUG-21", "CC-MANUAL")
async def test_the_report_knows_what_was_said_by_whom(tmp_path: Path) -> None:
    async with agent(talking(), tmp_path / ".ricordo", memory_tools=False, memory_hooks=False) as one:
        empty = await one.get_context_usage()
        assert (empty.conversation, empty.memory, empty.limit, empty.reserve, empty.free) == (0, 0, None, 0, 0)
        assert empty.tokens == empty.system + empty.tools > 0
        await one.send(f"Please look. {LONG}")
        full = await one.get_context_usage()
    assert min(full.user, full.assistant, full.results) > 0
    assert (full.summary, full.messages) == (0, 4)
    assert adds_up(full)


@pytest.mark.req("AS-BUG-21", "CC-MANUAL")
async def test_a_request_larger_than_the_window_is_said_to_be(tmp_path: Path) -> None:
    async with agent(talking(window=400), tmp_path / ".ricordo", compaction=None, memory_tools=False) as one:
        await one.record([said(LONG * 40)])
        report = await one.get_context_usage()
    assert (report.free, report.reserve) == (0, 0)
    assert report.excess_tokens == report.tokens - 400 > 0


@pytest.mark.req("AS-BUG-21", "CC-MANUAL")
@pytest.mark.parametrize("total", [0, 1, 7, 100, 12_345])
@pytest.mark.parametrize("parts", [(1, 1, 1), (0, 5, 3), (10, 0, 0), (333, 333, 334)])
def test_parts_of_a_whole_add_up_to_it(parts: Sequence[int], total: int) -> None:
    found = apportion(parts, total)
    assert sum(found) == total
    assert all(abs(got - part * total / sum(parts)) < 1 for got, part in zip(found, parts, strict=True))
    assert apportion((0, 0), total) == (0, 0)


@pytest.mark.req("AS-CURATED-03")
async def test_a_prompt_is_made_anew_when_that_is_asked_for(tmp_path: Path) -> None:
    async with agent(talking(), tmp_path / ".ricordo") as one:
        before = await one.system_prompt()
        assert one.memory is not None
        await one.memory.remember("We deploy only from main.")
        assert await one.system_prompt() == before
        assert "deploy only from main" in await one.system_prompt(rebuild=True)


@pytest.mark.req("AS-COMPACT-06", "AS-STATE-01", "AS-BUG-11", "CC-UNDO")
@pytest.mark.parametrize("offload", [None, False])
async def test_what_a_summary_stands_for_was_recorded_before_and_is_found_after(
    tmp_path: Path, offload: bool | None
) -> None:
    root = tmp_path / ".ricordo"
    log = place_of(root) / transcript_path(DEFAULT_AGENT, "s")
    held: list[bool] = []

    def answer(request: RecordedRequest) -> ScriptItem:
        if not request.tools:
            with ThreadPoolExecutor(1) as pool:
                kept = pool.submit(log.read_text).result()
            said_so_far = [*(f"number {number} is a walnut" for number in range(8)), "Please search for the tree."]
            held.append(all(text in kept for text in said_so_far))
            return Say("## SESSION INTENT\nTrees.\n## SUMMARY\nTrees.\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone")
        searched = request.messages[-1].role == "user" and "search" in request.messages[-1].text
        return Call("session_search", {"query": "number 0 is a walnut"}) if searched else Say("Yes.")

    given = {} if offload is None else {"offload_before_compact": offload}
    config = CompactionConfig(trigger_messages=8, keep_messages=2, combined=False, **given)  # type: ignore[arg-type]
    assert config.offload_before_compact is (offload is None)
    async with agent(ScriptedModel(answer), root, compaction=config) as one:
        await one.record([said(f"Tree number {number} is a walnut. {LONG}") for number in range(8)])
        result = await one.send("Please search for the tree.")
        (made,) = await one.compactions.all()
        assert held == [True], "all of it was in the transcript when the summary was asked for"
        assert "number 0 is a walnut" not in "".join(message.text for message in one.window[1:])
        (found,) = [part for message in result.messages for part in message.tool_results]
        assert f"m:{made.first_id}" in found.text
        assert "Tree number 0 is a walnut." in found.text
    recorded = await transcript(root)
    assert len({message.id for message in recorded}) == len(recorded) == 8 + len(result.messages)
    assert not any(get_mark(message) for message in recorded), "a summary is no part of what was said"


@pytest.mark.req("AS-COMPACT-06", "CC-UNDO")
async def test_where_nothing_is_recorded_the_report_says_that_it_can_not_be_undone(tmp_path: Path) -> None:
    (tmp_path / ".ricordo").write_text("a file where the root should be")
    async with agent(talking(), tmp_path / ".ricordo") as one:
        await fill(one, 12)
        (done,) = [report for report in await one.compact() if report.action == "compact"]
        assert done.status == "done"
        assert "can't be undone" in done.note
        assert (done.handle, await one.compactions.all()) == ("", ())
