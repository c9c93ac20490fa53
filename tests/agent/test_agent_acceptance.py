"""The walk through the harness that its design describes, with every store it applies to."""

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from anyio.to_thread import run_sync

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, settings, system
from hand_clock import HandClock
from ricordo import Entry, HarnessAgent
from ricordo.messages import Message
from ricordo.runtime import open_store
from ricordo.stores import SCHEMES
from ricordo.testing import Call, Calls, RecordedRequest, Say, ScriptedModel, ScriptItem

pytestmark = pytest.mark.anyio

PERSISTENT = tuple(scheme for scheme in SCHEMES if scheme not in {"none", "ring", "mock"})
FACT = "Our test fixtures live in testdata/golden/."
STYLE = "Answers come as tables, never as lists."
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
WEEK = (
    "the harbour tour", "compaction of the window", "billing by post", "the red till", "compaction and its ladder",
    "travel to Porto", "the night shift",
)  # fmt: skip


def address(scheme: str, folder: Path) -> str:
    """Return a store of this scheme below `folder`, in a place of its own."""
    if scheme == "fanout":
        return f"fanout:jsonl:{folder / 'one'},json:{folder / 'two'}"
    options = "?embedder=hashing" if scheme == "vector" else ""
    return f"{scheme}:{folder / f'kept-{scheme}'}{options}"


class Bench:
    """Agents of one project, whose model plays a script and sums up what it is told to."""

    def __init__(self, folder: Path, scheme: str) -> None:
        self.folder = folder
        self.scheme = scheme
        self.root = folder / ".ricordo"
        self.clock = HandClock()
        self.requests: list[RecordedRequest] = []
        self.summary = "They talked.\nTAGS: talk"
        self._script: Iterator[ScriptItem | Callable[[RecordedRequest], ScriptItem]] = iter(())

    def agent(self, *script: ScriptItem | Callable[[RecordedRequest], ScriptItem], **options: object) -> HarnessAgent:
        """Return an agent that plays `script`; a request without tools asks for its summary."""
        self._script = iter(script)
        self.requests = []
        given = {"settings": settings(self.root), "clock": self.clock, "working_directory": self.folder} | options
        return HarnessAgent(
            ScriptedModel(self._played),
            **agent_arguments(workspace=self.root, store=address(self.scheme, self.folder), scope=SCOPE, **given),
        )

    def _played(self, request: RecordedRequest) -> ScriptItem:
        if not request.tools:
            return Say(self.summary)
        self.requests.append(request)
        item = next(self._script)
        return item if not callable(item) else item(request)

    async def week(self) -> list[str]:
        """Hold seven sessions, a day each, and return the days of the two that were about compaction."""
        days = []
        for subject in WEEK:
            self.clock.turn(days=1)
            day = f"{self.clock.now():%Y-%m-%d}"
            self.summary = f"They worked on {subject}.\nTAGS: {subject.split()[0]}"
            kept = Call("remember", {"content": f"On {day} the work was on {subject}."})
            async with self.agent(kept, Say("Done.")) as agent:
                await agent.send(f"Today we look at {subject}.")
            days += [day] if "compaction" in subject else []
        self.clock.turn(days=1)
        return days


def result(request: RecordedRequest) -> str:
    """Return what the tools of the newest step returned."""
    return "\n".join(each.text for each in request.messages[-1].tool_results)


@pytest.mark.req("AS-MEM-01", "AS-CURATED-03", "GO-AT2")
@pytest.mark.parametrize("scheme", PERSISTENT)
async def test_what_one_session_was_taught_the_next_one_answers_from_its_prompt(tmp_path: Path, scheme: str) -> None:
    bench = Bench(tmp_path, scheme)
    # a key-value store shows what was saved by this kind, and nothing else
    kinds = ("preamble", "preamble") if scheme == "kv" else ("fact", "preference")
    taught = [
        Call("remember", {"content": text, "kind": kind}) for text, kind in zip((FACT, STYLE), kinds, strict=True)
    ]
    async with bench.agent(Calls(*taught), Say("Kept.")) as agent:
        await agent.send(f"Remember this: {FACT} And {STYLE}")
    async with bench.agent(Say("In testdata/golden/.")) as agent:
        answer = await agent.send("Where do our test fixtures live?")
    (asked,) = bench.requests
    assert FACT in system(asked)
    assert STYLE in system(asked)
    assert not any(message.tool_calls for message in answer.messages)


@pytest.mark.req("GO-AT3")
async def test_of_seven_sessions_the_two_about_it_are_recalled_opened_and_cited(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "sessions")
    days = await bench.week()

    def opening(request: RecordedRequest) -> Calls:
        """Open what was recalled, below the folder that the prompt names."""
        (below,) = re.findall(r"session files that `recall` names lie below `([^`]*)`", system(request))
        return Calls(*(Call("read_file", {"path": below + path}) for path in recalled(request)))

    def recalled(request: RecordedRequest) -> list[str]:
        found = result(request)
        assert "the work was on" not in found, "what was saved in a session is not in it"
        assert found.count("<memory-item ") == 2
        return re.findall(r"^\[(\S+\.md)\] They worked on compaction", found, re.MULTILINE)

    def citing(request: RecordedRequest) -> Say:
        opened = [each.text for message in request.messages[-2:] for each in message.tool_results]
        assert all("## Summary" in text for text in opened)
        return Say(" and ".join(sorted({day for text in opened for day in DAY.findall(text)} & {*days})))

    script = (Call("recall", {"query": "compaction"}), opening, citing)
    async with bench.agent(*script, file_tools=True) as agent:
        answer = await agent.send("What did we do last week about compaction?")
    assert len(recalled(bench.requests[1])) == 2
    assert str(answer) == " and ".join(days)


@pytest.mark.req("GO-AT3")
@pytest.mark.parametrize("scheme", [scheme for scheme in PERSISTENT if scheme != "sessions"])
async def test_other_stores_recall_those_two_sessions_first(tmp_path: Path, scheme: str) -> None:
    bench = Bench(tmp_path, scheme)
    days = await bench.week()

    def citing(request: RecordedRequest) -> Say:
        # a session says its day in the name of its file
        first = re.findall(r"<memory-item (.*?)\n</memory-item>", result(request), re.DOTALL)[:2]
        return Say(" and ".join(sorted({*DAY.findall("".join(first))})))

    async with bench.agent(Call("recall", {"query": "compaction"}), citing) as agent:
        answer = await agent.send("What did we do last week about compaction?")
    assert str(answer) == " and ".join(days)


def items(request: RecordedRequest) -> list[str]:
    """Return the texts of what was recalled."""
    return re.findall(r"<memory-item [^\n]*>\n(.*?)\n</memory-item>", result(request), re.DOTALL)


def session_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("kept-sessions/sessions/*.md"))


@pytest.mark.req("GO-AT4", "GO-D4", "GO-G18")
async def test_what_a_person_changes_in_an_old_session_is_what_the_next_session_knows(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "sessions")
    await bench.week()
    (file,) = [path for path in session_files(tmp_path) if "the red till" in path.read_text()]
    file.write_text(file.read_text().replace("the red till", "the blue counter").replace("red", "blue"))
    script = (Call("recall", {"query": "blue counter"}), Call("recall", {"query": "red till"}), Say("Blue."))
    async with bench.agent(*script) as agent:
        await agent.send("Which colour is it?")
    first, second, third = bench.requests
    assert "the blue counter" in system(first)
    assert "red till" not in system(first)
    assert "the blue counter" in result(second)
    assert result(third) == "no matches."


@pytest.mark.req("GO-AT4")
@pytest.mark.parametrize("scheme", ["markdown", "jsonl", "json", "fulltext", "vector", "folder", "layered"])
async def test_what_a_person_changes_in_the_file_of_a_memory_is_what_the_next_session_knows(
    tmp_path: Path, scheme: str
) -> None:
    bench = Bench(tmp_path, scheme)
    async with bench.agent(Call("remember", {"content": FACT}), Say("Kept.")) as agent:
        await agent.send(f"Remember this: {FACT}")
    holding = [path for path in files_below(tmp_path / f"kept-{scheme}") if is_memory_of(path)]
    for file in holding:
        file.write_text(file.read_text().replace("golden", "silver"))
    assert len(holding) == 1
    script = (Call("recall", {"query": "silver"}), Call("recall", {"query": "golden"}), Say("In silver."))
    async with bench.agent(*script) as agent:
        await agent.send("Where do our test fixtures live?")
    first, second, third = bench.requests
    assert ("testdata/silver" in system(first), "golden" in system(first)) == (True, False)
    assert "testdata/silver" in result(second)
    assert "golden" not in result(third)


def is_memory_of(path: Path) -> bool:
    """Tell whether a file is one of the store's that a person may edit, and holds the fact."""
    return path.suffix in {".md", ".json", ".jsonl"} and "history" not in path.parts and FACT in path.read_text()


@pytest.mark.req("GO-AT6", "GO-G18")
async def test_a_session_whose_file_goes_while_an_agent_runs_is_recalled_no_more(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "sessions")
    days = await bench.week()
    recall = Call("recall", {"query": "compaction"})
    async with bench.agent(recall, Say("Two."), recall, Say("One.")) as agent:
        await agent.send("What about compaction?")
        (file,) = [path for path in session_files(tmp_path) if path.name.startswith(days[0])]
        await run_sync(file.unlink)
        await agent.send("And now?")
    assert len(items(bench.requests[1])) == 2
    (left,) = items(bench.requests[3])
    assert days[1] in left


@pytest.mark.req("GO-PRIV", "GO-AT7")
@pytest.mark.parametrize("scheme", [scheme for scheme in PERSISTENT if scheme != "folder"])
async def test_git_sees_nothing_of_what_an_agent_keeps(tmp_path: Path, scheme: str) -> None:
    await run_sync(git, tmp_path, "init", "-q")
    bench = Bench(tmp_path, scheme)
    given = settings(tmp_path / "elsewhere" / ".ricordo")
    (tmp_path / "elsewhere").mkdir()
    async with bench.agent(Call("remember", {"content": FACT}), Say("Kept."), settings=given) as agent:
        await agent.send(f"Remember this: {FACT}")
    assert len(files_below(tmp_path)) > 1
    shown = await run_sync(git, tmp_path, "status", "--porcelain", "--untracked-files=all")
    assert [line for line in shown.splitlines() if "elsewhere" not in line] == []


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not {".git", "elsewhere"} & {*path.parts}]


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.mark.req("AS-CURATED-03", "GO-G26-cache", "GO-G4")
@pytest.mark.parametrize("scheme", PERSISTENT)
async def test_all_requests_of_a_session_have_one_system_prompt_whatever_is_saved(tmp_path: Path, scheme: str) -> None:
    bench = Bench(tmp_path, scheme)
    async with bench.agent(Call("remember", {"content": STYLE, "kind": "preamble"}), Say("Kept.")) as agent:
        await agent.send(STYLE)
    keep, recall = Call("remember", {"content": FACT, "kind": "preamble"}), Call("recall", {"query": "golden"})
    async with bench.agent(keep, Say("Kept."), recall, Say("Found."), Say("Bye.")) as agent:
        for text in (f"Remember this: {FACT}", "What is golden?", "Bye."):
            await agent.send(text)
    assert len(bench.requests) == 5
    assert len({system(request) for request in bench.requests}) == 1
    assert STYLE in system(bench.requests[0])
    for earlier, later in zip(bench.requests, bench.requests[1:], strict=False):
        assert later.messages[: len(earlier.messages)] == earlier.messages


@pytest.mark.req("GO-G4", "AS-LEDGER-03", "AS-CURATED-03", "GO-G26-cache")
@pytest.mark.parametrize("scheme", PERSISTENT)
async def test_the_preamble_is_in_every_turn_and_what_is_recalled_only_in_its_result(
    tmp_path: Path, scheme: str
) -> None:
    bench, word = Bench(tmp_path, scheme), "Okonkwo"
    if scheme == "sessions":
        word = "harbour"
        await bench.week()
    async with open_store(
        address(scheme, tmp_path), scope=SCOPE, settings=settings(bench.root), clock=bench.clock
    ) as store:
        if scheme != "sessions":
            hidden = f"The walnut harvester is rented from Okonkwo. {'It is green and loud. ' * 60}"
            await store.save(Entry(content=hidden, kind="note", by="flush"))
        await store.save(Entry(content=STYLE, kind="preamble", by="user", pinned=True))
    few = replace(settings(bench.root), preamble_tokens=250)
    async with bench.agent(
        Say("One."), Say("Two."), Call("recall", {"query": word}), Say("Okonkwo."), Say("Bye."), settings=few
    ) as agent:
        for text in ("Hello.", "How are you?", "Who rents it to us?", "Bye."):
            await agent.send(text)
    assert len(bench.requests) == 5
    assert all(STYLE in system(request) for request in bench.requests)
    holding = [
        [at for at, each in enumerate(request.messages) if word in spoken_of(each)] for request in bench.requests
    ]
    result_of_recall = len(bench.requests[3].messages) - 1
    assert holding == [[], [], [], [result_of_recall], [result_of_recall]]
    assert bench.requests[3].messages[result_of_recall].role == "tool"


def spoken_of(message: Message) -> str:
    """Return what a message says, that of results included, without what a model said itself."""
    return "" if message.role == "assistant" else message.text + "".join(each.text for each in message.tool_results)
