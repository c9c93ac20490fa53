"""Leaving an agent: its session is summed up for the store that keeps sessions, and nothing is lost on the way."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, settings
from ricordo import CompactionConfig, HarnessAgent
from ricordo.errors import ModelUnavailable
from ricordo.messages import Usage, get_mark
from ricordo.models import Reply
from ricordo.testing import Call, Fail, Hang, RecordedRequest, Say, ScriptedModel, ScriptItem
from ricordo.workspace.session_files import parse_totals

if TYPE_CHECKING:
    from ricordo.events import Event

pytestmark = pytest.mark.anyio

ANSWER = (
    "They settled where the fixtures live, in testdata/golden.\nTAGS: were of no help.\n\nOPEN: rename the old folder\n"
    "TAGS: Fixtures , , TESTING,"
)
LONG = "And so on, for a while, as people talk. " * 40


class _Priced(ScriptedModel):
    """A model whose complete replies, which sum up, have a price."""

    async def complete(self, *given: Any, **named: Any) -> Reply:
        return replace(await super().complete(*given, **named), cost=Decimal("0.0012"))


@dataclass
class Bench:
    """Agents over session files whose model answers, keeps what it is asked to, and sums up as it is told to."""

    folder: Path
    closing: Callable[[], ScriptItem] = field(default=lambda: Say(ANSWER))
    asked: list[str] = field(default_factory=list)
    systems: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def agent(self, session: str, **options: object) -> HarnessAgent:
        given = {
            "store": f"sessions:{self.folder / '.harness'}", "settings": settings(self.folder / "r"), "scope": SCOPE,
        } | options  # fmt: skip
        model = _Priced(self._answer)
        return HarnessAgent(model, **agent_arguments(workspace=self.folder / "r", session=session, **given))

    @property
    def files(self) -> dict[str, str]:
        found = sorted((self.folder / ".harness" / "sessions").glob("*.md"))
        return {path.name: path.read_text(encoding="utf-8") for path in found}

    @property
    def file(self) -> str:
        (text,) = self.files.values()
        return text

    async def summed_up(self) -> None:
        """Wait until the only session has its summary."""
        with anyio.fail_after(20):
            while "pending" in self.file:  # noqa: ASYNC110  (a file tells nobody)
                await anyio.sleep(0.01)

    def _answer(self, request: RecordedRequest) -> ScriptItem:
        if not request.tools:
            assert [message.role for message in request.messages] == ["user"]
            self.asked.append(request.messages[0].text)
            return self.closing()
        self.systems.append("\n".join(each.text for each in request.messages if each.role == "system"))
        last = [message for message in request.messages if get_mark(message) is None][-1]
        if self.calls:
            return self.calls.pop()
        if last.role == "user" and last.text.startswith("Read: "):
            return Call("read_file", {"path": last.text.removeprefix("Read: ")})
        if last.role == "user" and last.text.startswith("Remember: "):
            kind = "preference" if "We answer with" in last.text else "fact"
            return Call("remember", {"content": last.text.removeprefix("Remember: "), "tags": ["layout"], "kind": kind})
        return Say("Good." if last.role == "tool" else f"I see. {LONG}")


def _late() -> ScriptItem:
    """End as a summary does that takes longer than it may."""
    raise TimeoutError("on fire")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.req("GO-G24", "GO-G25", "GO-G24-cost", "GO-G24-manual", "GO-AT1")
async def test_a_session_with_any_conversation_is_summed_up_by_one_request_and_no_other_is(bench: Bench) -> None:
    async with bench.agent("one") as agent:
        await agent.send("Our fixtures live in testdata/golden.")
        await agent.send("Remember: Nadia owns billing.")
        await agent.send("That was all.")
        assert bench.asked == []
    (asked,) = bench.asked
    told = ["Our fixtures live in testdata/golden.", f"I see. {LONG}".strip(), "Nadia owns billing.", "That was all."]
    assert all(each in asked for each in told)
    assert "one paragraph" in asked.lower() or "a paragraph" in asked.lower()
    assert "3 to 5 single words" in asked
    assert "tags: fixtures, testing" in bench.file.splitlines()
    summary = "They settled where the fixtures live, in testdata/golden. TAGS: were of no help."
    assert summary in bench.file.splitlines(), "of several markers the last one counts"
    async with bench.agent("two"):
        pass
    async with bench.agent("one"):
        pass
    assert len(bench.asked) == 1, "nothing was said"
    assert len(bench.files) == 1
    bench.closing = lambda: Say("One thing was said.\nIt took a minute.\n\nNobody minded.")
    async with bench.agent("three") as agent:
        await agent.send("One turn is a conversation.")
        assert await agent.summarize()
    assert len(bench.asked) == 2, "it was summed up before"
    (without_marker,) = [text for text in bench.files.values() if "One thing was said." in text]
    assert "One thing was said. It took a minute. Nobody minded." in without_marker.splitlines()
    assert "tags:" not in without_marker
    assert len(bench.files) == 2


@pytest.mark.req("GO-G24-cost", "GO-G25", "GO-G24", "GO-FRIC")
@pytest.mark.parametrize(
    "words", ["A sentence that goes on about it. ", "他们决定测试数据放在这个目录里。", "ใครเป็นเจ้าของ "]
)
async def test_what_the_summary_took_stands_in_the_file_and_it_is_short(bench: Bench, words: str) -> None:
    tags = ", ".join(f"{number}{words.strip() * 20}" for number in range(200))
    threads = "".join(f"OPEN: {number} {words * 20}\n" for number in range(30))
    bench.closing = lambda: Say(f"{words * 200}\n{threads}TAGS: {tags}", usage=Usage(input=900, output=80))
    async with bench.agent("one") as agent:
        await agent.send("Our fixtures live in testdata/golden.")
    assert "closing: 900 tokens in, 80 tokens out, $0.0012" in bench.file.splitlines()
    (found,) = [line for line in bench.file.splitlines() if line.startswith("tags: ")]
    told = bench.file.split("## Summary")[1]
    assert words.strip() in told
    assert len(f"{found}{told}".encode()) < 1_200


@pytest.mark.req("GO-FRIC")
async def test_todos_that_are_not_done_are_open_threads_of_the_session(bench: Bench) -> None:
    todos = {"Rename the folder": "completed", "Tell Nadia": "in_progress", "Move the fixtures": "pending"}
    bench.calls = [Call("todo_write", {"todos": [{"content": each, "status": todos[each]} for each in todos]})]
    async with bench.agent("one", planning=True) as agent:
        await agent.send("Our fixtures live in testdata/golden.")
    threads = bench.file.partition("## Open threads\n")[2].partition("\n## ")[0]
    assert threads.strip().split("\n") == ["- rename the old folder", "- Tell Nadia", "- Move the fixtures"]
    async with bench.agent("two") as agent:
        await agent.send("What is left?")
    assert "- Tell Nadia" in bench.systems[-1]


@pytest.mark.req("GO-G24-cost", "GO-G24", "GO-G12")
async def test_a_session_that_goes_on_adds_to_what_it_took_before(bench: Bench) -> None:
    bench.closing = lambda: Say("They settled it.\nTAGS: fixtures", usage=Usage(input=900, output=80))
    worked = []
    for number in range(1, 4):
        async with bench.agent("one") as agent:
            await agent.send(f"Our fixtures number {number} live in testdata/golden.")
            if number == 2:
                await agent.summarize()
                await agent.send("And we keep them for a year.")
        (line,) = [line for line in bench.file.splitlines() if line.startswith("duration: ")]
        worked.append(parse_totals(line).usage.input)
        closings = number if number < 2 else number + 1
        assert f"closing: {900 * closings} tokens in, {80 * closings} tokens out, ${Decimal('0.0012') * closings}" in (
            bench.file.splitlines()
        )
    assert 0 < worked[0] < worked[1] < worked[2]
    assert worked[1] >= 3 * worked[0]


@pytest.mark.req("GO-G24-manual", "GO-AT1", "GO-G24", "GO-G22-close")
async def test_switched_off_nothing_is_asked_and_what_was_saved_is_written(bench: Bench) -> None:
    async with bench.agent("one", closing_summary="off") as agent:
        await agent.send("Remember: Our fixtures live in testdata/golden.")
    assert "- Our fixtures live in testdata/golden." in bench.file
    async with bench.agent("one", closing_summary="off") as agent:
        await agent.send("Remember: Our tapes live in testdata/tapes.")
    assert "- Our fixtures live in testdata/golden." in bench.file
    assert "- Our tapes live in testdata/tapes." in bench.file, "a session that is taken up again has its file already"
    async with bench.agent("two", closing_summary="off") as agent:
        await agent.send("Hello.")
        assert not await agent.summarize()
    assert bench.asked == []
    async with bench.agent("one") as agent:
        await agent.send("It is on when nothing else is said.")
    assert len(bench.asked) == 1


@pytest.mark.req("GO-G26-orthogonal", "GO-G26", "GO-D2", "GO-D12", "GO-G24", "GO-D3")
async def test_what_left_the_window_is_part_of_what_is_summed_up(bench: Bench) -> None:
    compaction = CompactionConfig(trigger_messages=4, keep_messages=2, model="offline")
    async with bench.agent("one", compaction=compaction, closing_summary="off") as agent:
        await agent.send("The first thing: the vendor is called Halvorsen.")
        for number in range(8):
            await agent.send(f"Number {number}.")
        assert not any("Halvorsen" in message.text for message in agent.window if get_mark(message) is None)
        await agent.clear()
    async with bench.agent("one", compaction=compaction) as agent:
        await agent.send("A last word.")
    assert "The first thing: the vendor is called Halvorsen." in bench.asked[-1]
    assert "A last word." in bench.asked[-1]


@pytest.mark.req("GO-D10", "GO-G24-manual", "GO-AT1", "GO-G24", "GO-G24-sync")
@pytest.mark.parametrize("closing", [lambda: Fail(503, "the model is on fire"), lambda: Say("TAGS: nothing"), _late])
async def test_a_summary_that_fails_is_pending_and_made_by_the_next_agent(
    bench: Bench, closing: Callable[[], ScriptItem]
) -> None:
    bench.closing = closing
    async with bench.agent("one") as agent:
        await agent.send("Remember: Our fixtures live in testdata/golden.")
        await agent.send("We decided to keep MySQL until spring.")
    assert "pending" in bench.file
    assert "on fire" not in bench.file
    assert "- Our fixtures live in testdata/golden." in bench.file
    asked = len(bench.asked)
    bench.closing = lambda: Say(ANSWER)
    async with bench.agent("two", closing_summary="off") as agent:
        preamble = await agent.store.preamble()
        assert "on fire" not in preamble
        assert "fixtures live in testdata/golden" in preamble.partition("Recent sessions")[2], "a digest meanwhile"
        await agent.send("Hello.")
    async with bench.agent("three") as agent:
        await bench.summed_up()
    assert len(bench.asked) == asked + 1
    assert "They settled where the fixtures live" in bench.file
    assert "- Our fixtures live in testdata/golden." in bench.file


@pytest.mark.req("GO-D10")
@pytest.mark.parametrize("name", [None, "coder"])
async def test_the_next_agent_makes_each_of_several_summaries_that_failed(bench: Bench, name: str | None) -> None:
    scope = replace(SCOPE, agent=name)
    bench.closing = lambda: Fail(503, "the model is on fire")
    for session in ("one", "two", "three"):
        async with bench.agent(session, scope=scope) as agent:
            await agent.send(f"Session {session} is about fixtures.")
    assert sum("pending" in text for text in bench.files.values()) == 3
    asked = len(bench.asked)
    bench.closing = lambda: Say(ANSWER)
    async with bench.agent("four", scope=scope):
        with anyio.fail_after(20):
            while any("pending" in text for text in bench.files.values()):  # noqa: ASYNC110  (a file tells nobody)
                await anyio.sleep(0.01)
    assert len(bench.asked) == asked + 3
    assert all("They settled where the fixtures live" in text for text in bench.files.values())


@pytest.mark.req("GO-G26-orthogonal", "GO-G26", "GO-D10")
async def test_what_the_next_agent_sums_up_is_the_whole_session_too(bench: Bench) -> None:
    compaction = CompactionConfig(trigger_messages=4, keep_messages=2, model="offline")
    bench.closing = lambda: Fail(503, "the model is on fire")
    async with bench.agent("one", compaction=compaction) as agent:
        await agent.send("The first thing: the vendor is called Halvorsen.")
        for number in range(14):
            await agent.send(f"Number {number}.")
    bench.closing = lambda: Say(ANSWER)
    async with bench.agent("two"):
        await bench.summed_up()
    assert "The first thing: the vendor is called Halvorsen." in bench.asked[-1]
    assert "Number 13." in bench.asked[-1]


@pytest.mark.req("GO-G24-sync", "GO-AT8", "GO-AT1", "GO-G22-close", "GO-D10")
async def test_an_interruption_skips_the_summary_and_keeps_what_was_saved(bench: Bench) -> None:
    events: list[Event] = []
    bench.closing = Hang
    agent = bench.agent("one", on_event=events.append)
    async with agent:
        await agent.send("Remember: Our fixtures live in testdata/golden.")
        with anyio.CancelScope() as person:
            async with anyio.create_task_group() as group:

                @group.start_soon
                async def interrupting() -> None:
                    while not bench.asked:
                        await anyio.lowlevel.checkpoint()
                    person.cancel()

                await agent.summarize()
        assert person.cancelled_caught
    assert next(event.status for event in events if event.stage == "summarize") == "started"
    assert len(bench.asked) == 1, "it is not asked for again on leaving"
    assert "pending" in bench.file
    assert "- Our fixtures live in testdata/golden." in bench.file
    bench.closing = lambda: Say(ANSWER)
    async with bench.agent("two"):
        await bench.summed_up()
    assert "They settled" in bench.file


@pytest.mark.req("GO-G22-close", "GO-G24-manual", "GO-G24")
@pytest.mark.parametrize("is_cancelled", [False, True])
@pytest.mark.parametrize("mode", ["sync", "off"])
async def test_leaving_by_an_exception_writes_the_session_and_asks_nothing(
    bench: Bench, mode: str, *, is_cancelled: bool
) -> None:
    async def left() -> None:
        async with bench.agent("one", closing_summary=mode) as agent:
            await agent.send("Remember: Our fixtures live in testdata/golden.")
            assert bench.files == {}
            if is_cancelled:
                person.cancel()
                await anyio.sleep_forever()
            raise ZeroDivisionError

    with anyio.CancelScope() as person, suppress(ZeroDivisionError):
        await left()
    assert person.cancelled_caught is is_cancelled
    assert bench.asked == []
    assert "- Our fixtures live in testdata/golden." in bench.file
    assert (", 1 turn" in bench.file) is (mode == "sync"), "what was said is summed up by rules"


@pytest.mark.req("HE-C8-async", "GO-G24-sync", "GO-G24-manual", "GO-D10", "GO-G24-cost")
async def test_in_the_background_leaving_asks_nothing_and_the_next_agent_does(bench: Bench) -> None:
    async with bench.agent("one", closing_summary="background") as agent:
        await agent.send("Our fixtures live in testdata/golden.")
    assert bench.asked == []
    assert "pending" in bench.file
    bench.closing = lambda: Say(ANSWER, usage=Usage(input=900, output=80))
    async with bench.agent("two", closing_summary="background"):
        await bench.summed_up()
    assert "They settled" in bench.file
    assert "closing: 900 tokens in, 80 tokens out, $0.0012" in bench.file.splitlines()


@pytest.mark.req("GO-AT1", "GO-G24-manual", "GO-D10")
@pytest.mark.parametrize("fails", [False, True])
async def test_what_a_user_asked_to_remember_is_in_the_summary_and_an_entry(bench: Bench, fails: bool) -> None:
    if fails:
        bench.closing = lambda: Fail(500, "down")
    async with bench.agent("one") as agent:
        await agent.send("Please write the invoices of the payment service before its mail goes out.")
        await agent.send("Remember: Our fixtures live in `testdata/golden/`.")
        await agent.send("We decided to keep MySQL until spring because the migration takes two weeks.")
    before, _, after = bench.file.partition("## Facts")
    assert "testdata/golden" in before.partition("## Summary")[2]
    assert "- Our fixtures live in `testdata/golden/`." in after


@pytest.mark.req("GO-AT2", "GO-FRIC", "GO-AT1", "GO-D5")
async def test_the_next_session_knows_it_from_its_prompt(bench: Bench) -> None:
    (bench.folder / "layout.toml").write_text("fixtures = 1\n")
    async with bench.agent("one", file_tools=True, working_directory=bench.folder) as agent:
        await agent.send("Read: layout.toml")
        await agent.send("Remember: Our fixtures live in `testdata/golden/`.")
        await agent.send("Remember: We answer with tables, never with lists.")
    async with bench.agent("two") as agent:
        result = await agent.send("Where do our test fixtures live?")
        (hit,) = await agent.store.recall("layout.toml")
        assert "They settled where the fixtures live" in hit.entry.content
    assert not any(message.tool_calls for message in result.messages)
    assert "Our fixtures live in `testdata/golden/`." in bench.systems[-1]
    assert "We answer with tables, never with lists." in bench.systems[-1]
    assert "They settled where the fixtures live" in bench.systems[-1]
    assert "- rename the old folder" in bench.systems[-1].splitlines()


@pytest.mark.req("GO-D10", "GO-AT1")
async def test_a_model_that_is_unreachable_never_keeps_anybody_from_leaving(bench: Bench) -> None:
    bench.closing = lambda: Fail(503, "gone")
    async with bench.agent("one") as agent:
        await agent.send("Our fixtures live in testdata/golden.")
    assert ModelUnavailable.__name__ not in bench.file
    assert "summary: pending" in bench.file
    assert "Our fixtures live in testdata/golden" in bench.file.partition("## Summary")[2], "a digest of what was said"
