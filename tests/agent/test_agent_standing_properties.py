"""Whatever is done in a session, what stands beside its window is what was made of it, and is told so, each time."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias, cast, get_args

import anyio
import pytest
from anyio.to_thread import run_sync
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from agents_at_work import SCOPE, transcript
from agents_at_work import settings as settings_of
from hand_clock import HandClock
from known_standing import Job, KnownStanding, holds_plan, in_short
from places import place_of
from ricordo import (
    BuiltinTools,
    CompactionConfig,
    HarnessAgent,
    MemoryConfig,
    RemoteAgent,
    ToolResultEvictionConfig,
    TruncateArgsConfig,
)
from ricordo.agent import Approval, Tool, tool
from ricordo.agent.tools.plan_mode import PlanOutcome
from ricordo.context import ClearResultsConfig, DedupeReadsConfig
from ricordo.errors import CompactionNotFound, FileMissing, ModelError, ToolFailed, UndoRefused
from ricordo.guard import parse_fence, render_rule
from ricordo.jobs import ReportProgress
from ricordo.messages import JsonValue, get_mark
from ricordo.storage import Disk
from ricordo.testing import Call, Fail, Hold, RecordedRequest, Say, ScriptedModel, ScriptItem
from ricordo.workspace import AgentState, tasks_path

pytestmark = pytest.mark.anyio

Verb: TypeAlias = Literal[
    "enter", "enter by person", "write", "exit", "exit by person", "edit", "remove plan", "todos", "rule", "deploy",
    "start", "spawn", "wait", "end", "cancel", "talk", "look", "fail", "break off", "overflow", "compact", "garbage",
    "undo", "clear", "reopen", "kill", "kill and wait", "kill in a turn",
]  # fmt: skip
Act: TypeAlias = tuple[Verb, int]

WINDOW = 14_000
WORDS = "with some more words to fill a line, " * 30
SUMMARY = "## SESSION INTENT\n- Talk.\n## SUMMARY\n- Talked.\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone"
OUTCOMES: tuple[PlanOutcome, ...] = ("ready", "done", "dropped")
PATTERNS = ("deploy", "deploy(main)", "deploy(rel*)", "shell(git push*)")
BRANCHES = ("main", "release/1", "wild")
DECISIONS = ("deny", "ask", "allow", "remove")
STATUSES = ("completed", "in_progress", "pending", "pending")
LEFT = "the session ended before it did"
LOST = "It gives no sign of life: the process that ran it is gone."
ACT: st.SearchStrategy[Act] = st.tuples(st.sampled_from(get_args(Verb)), st.integers(0, 11))
# what fails is short enough to read, and looking for something shorter takes minutes
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
EVERYTHING: list[Act] = [
    ("enter", 1), ("write", 0), ("todos", 3), ("rule", 0), ("start", 0), ("start", 1), ("spawn", 2), ("rule", 5),
    ("rule", 8), ("rule", 10), ("compact", 0), ("end", 0), ("fail", 0), ("break off", 0), ("kill", 0), ("talk", 0),
    ("exit", 0), ("talk", 1), ("look", 2), ("look", 3), ("overflow", 0), ("garbage", 1), ("undo", 0), ("write", 1),
    ("edit", 0), ("write", 1), ("clear", 0), ("kill and wait", 0), ("talk", 2), ("cancel", 1), ("deploy", 0),
    ("rule", 3), ("rule", 11), ("deploy", 1), ("wait", 0), ("start", 3), ("end", 4), ("kill in a turn", 0),
    ("exit by person", 1), ("enter by person", 0), ("todos", 10), ("remove plan", 0), ("reopen", 0), ("look", 5),
]  # fmt: skip


class SwiftDisk(Disk):
    """A disk that does not wait for the medium."""

    def sync(self, descriptor: int) -> None:
        """Do nothing."""

    def sync_folder(self, path: str) -> None:
        """Do nothing."""


@dataclass
class Life:
    """A session as it is lived through in one root after the other, and what has to stand in it."""

    folder: Path
    rules: bool
    known: KnownStanding = field(default_factory=KnownStanding)
    clock: HandClock = field(default_factory=HandClock)
    number: int = 0
    roots: int = 0
    garbage: bool = False
    approves: bool = True
    queue: list[tuple[ScriptItem, Callable[[], None]]] = field(default_factory=list)
    ends: dict[str, anyio.Event] = field(default_factory=dict)
    deployed: list[str] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)
    told: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[list[str], list[str]]] = field(default_factory=list)

    @property
    def root(self) -> Path:
        """Where the living process keeps it."""
        return self.folder / f"life-{self.roots}" / ".ricordo"

    def agent(self) -> HarnessAgent:
        return HarnessAgent(
            ScriptedModel(self._answer, window=WINDOW),
            memory=MemoryConfig(root=self.root, hooks=False),
            scope=SCOPE,
            session="s",
            tools=self._tools(),
            builtin_tools=BuiltinTools(memory=False, sessions=False, planning=True),
            approve=self._approve,
            sub_agents=[RemoteAgent(name="helper", description="Helps.", ask=self._work)],
            compaction=CompactionConfig(
                trigger_messages=12, trigger_tokens=None, keep_messages=4, reserved=2_000, breaker=0,
                model="offline" if self.rules else None,
            ),
            tool_result_eviction=ToolResultEvictionConfig(max_result_chars=6_000, preview_chars=200),
            clear_results=ClearResultsConfig(trigger_tokens=2_000, keep_results=1, min_tokens=100),
            dedupe_reads=DedupeReadsConfig(min_tokens=50),
            truncate_args=TruncateArgsConfig(trigger_messages=4, keep_messages=2, max_arg_length=400),



            settings=settings_of(self.root),
            clock=self.clock,
            disk=SwiftDisk(),
        )  # fmt: skip

    def _answer(self, request: RecordedRequest) -> ScriptItem:
        reminders = [message.text for message in request.messages if get_mark(message) == "reminder"]
        if not request.tools:
            self.wrong += [(reminders, [])] if reminders else []
            summary = "Error: nothing was understood." if self.garbage else SUMMARY
            return Say(json.dumps({"summary": summary, "lessons": []}) if request.schema else summary)
        items = parse_fence(reminders[-1] if reminders else "")
        self.known.show()
        expected = self.known.reminded(held=holds_plan(request.messages, self.known.plan))
        found = [in_short(item) for item in items or ()]
        self.wrong += [(found, expected)] if found != expected or len(reminders) > 1 else []
        item, then = self.queue.pop(0)
        if isinstance(item, Say | Call):
            for job in self.known.waiting():
                self.told[job.result or f"{job.title}: {job.error}"] += 1
                job.keys.append(job.news)
        then()
        return item

    async def _approve(self, asked: Approval) -> bool:
        del asked
        return self.approves

    async def _work(self, title: str, report: ReportProgress) -> str:
        del report
        await self.ends.setdefault(title, anyio.Event()).wait()
        if title.endswith("3"):
            raise RuntimeError(f"nothing came of {title}")
        return f"The result of {title}."

    def _tools(self) -> list[Tool]:
        async def deploy(branch: str) -> str:
            """Deploy a branch."""
            self.deployed.append(branch)
            return f"deployed {branch}"

        async def look(size: int) -> str:
            """Look something up."""
            return "what the tool tells of it, " * size

        async def pause() -> str:
            """Leave behind what a process leaves that is killed now."""
            await self.leave()
            return "paused"

        return [tool(deploy), tool(look, effect="reads"), tool(pause, effect="reads")]

    async def leave(self) -> None:
        """Copy the root as it is, for the next process."""
        after = self.folder / f"life-{self.roots + 1}"
        await run_sync(shutil.copytree, self.root.parent, after)

    def step(self, name: str, then: Callable[[], None] = lambda: None, **arguments: JsonValue) -> None:
        """Let the model make a call, after which `then` has come to be."""
        self.number += 1
        self.queue.append((Call(name, arguments, f"c{self.number}"), then))

    async def send(self, one: HarnessAgent, text: str = "", *, last: ScriptItem | None = None) -> None:
        """Say something, and let the model do what is in its queue, and then answer."""
        self.number += 1
        self.queue.append((last or Say(f"Number {self.number} is answered {WORDS}"), lambda: None))
        with suppress(ModelError):
            await one.send(text or f"Number {self.number} is said {WORDS}")
        self.queue.clear()

    async def act(self, one: HarnessAgent, act: Act) -> None:
        verb, at = act
        self.approves = at % 3 != 2
        match verb:
            case "enter" | "enter by person" | "write" | "exit" | "exit by person" | "edit" | "remove plan":
                await self._plan(one, verb, at)
            case "start" | "spawn" | "wait" | "end" | "cancel":
                await self._task(one, verb, at)
            case "todos":
                await self._todos(one, at)
            case "rule":
                await self._rule(one, DECISIONS[at % 4], PATTERNS[at // 3], "Because." * (at % 2))
            case "deploy":
                await self._deploy(one, BRANCHES[at // 2 % 3])
            case "look":
                self.step("look", size=at * 60)
                await self.send(one)
            case "compact" | "garbage":
                await self._compact(one, garbage=verb == "garbage")
            case "undo":
                with suppress(CompactionNotFound, UndoRefused):
                    await one.compactions.undo()
            case "clear":
                await one.clear()
            case "kill" | "kill and wait":
                await self.leave()
            case _:
                await self._turn(one, verb)

    async def _turn(self, one: HarnessAgent, verb: Verb) -> None:
        match verb:
            case "fail":
                await self.send(one, last=Fail(500))
            case "overflow":
                self.queue.append((Fail(400, overflow=True), lambda: None))
                await self.send(one)
            case "break off":
                self.queue.append((Hold(Say(f"This never comes to its end {WORDS}")), lambda: None))
                async with one.stream(f"Say something {WORDS}") as events:
                    async for _ in events:
                        break
                self.queue.clear()
            case "kill in a turn":
                self.step("pause")
                await self.send(one)
            case "talk":
                await self.send(one)

    async def _plan(self, one: HarnessAgent, verb: Verb, at: int) -> None:
        known, person, outcome = self.known, one.plan, OUTCOMES[at % 3]
        assert person is not None
        text = f"# Plan {self.number}\n\n1. Tag it <now>.\n" + "2. And so on, and on.\n" * (3 * at)
        title = ("", f"Release {self.number}", f"/{next(iter(known.files), 'plans/none.md')}", "")[at % 4]
        match verb:
            case "enter":
                self.step("plan_enter", lambda: self._entered(title, "agent"), title=title)
                await self.send(one)
            case "enter by person":
                with suppress(FileMissing):
                    await person.enter(title, by="user")
                self._entered(title, "user")
            case "write":
                self.step("plan_write", lambda: known.write(text, allowed=self.approves), content=text)
                await self.send(one)
            case "exit":
                self.step("plan_exit", lambda: self._exited(outcome), outcome=outcome)
                await self.send(one)
            case "exit by person":
                ended = known.exit(outcome, allowed=True)
                with suppress(ToolFailed):
                    await person.exit(outcome, by="user")
                    assert ended
            case _ if known.path:
                known.files[known.path] = None if verb == "remove plan" else text
                file = place_of(self.root) / "workspace" / known.path
                file.write_text(text)
                if verb == "remove plan":
                    file.unlink()
            case _:
                pass

    def _entered(self, title: str, by: str) -> None:
        known = self.known
        if title.startswith("/"):
            is_own = known.active or title[1:] == known.path
            if is_own or (by == "user" and known.files.get(title[1:]) is not None):
                known.enter(title[1:], by)
            return
        if known.path and (known.active or not title):
            known.enter("", by)
            return
        day = self.clock.today().isoformat()
        name = f"plans/{day}-{title.lower().replace(' ', '-') or 's'}"
        paths = [f"{name}.md", *(f"{name}-{number}.md" for number in range(2, 100))]
        path = next(path for path in paths if known.files.get(path) is None)
        known.files[path] = known.shown[path] = f"# {title or 'Plan'}\n"
        known.enter(path, by)

    def _exited(self, outcome: PlanOutcome) -> None:
        self.known.exit(outcome, allowed=self.approves)

    async def _todos(self, one: HarnessAgent, at: int) -> None:
        listed = [(f"Step {number} of <it>", STATUSES[(number + at // 3) % 4]) for number in range(at % 5)]
        listed += [("One too many", "in_progress")] * (at > 9)
        fits = sum(status == "in_progress" for _, status in listed) < 2
        todos = [{"content": content, "status": status} for content, status in listed]

        def written() -> None:
            self.known.todos = listed if fits else self.known.todos

        self.step("todo_write", written, todos=cast("list[JsonValue]", todos))
        await self.send(one)

    async def _rule(self, one: HarnessAgent, decision: str, pattern: str, why: str) -> None:
        rules = one.permissions
        there = any(each[1] == pattern for each in self.known.rules)
        self.known.rule(decision, pattern, why)
        match decision:
            case "deny":
                await rules.deny(pattern, why=why)
            case "ask":
                await rules.ask(pattern, why=why)
            case "allow":
                await rules.allow(pattern, why=why)
            case _:
                assert await rules.remove(pattern) == there

    async def _deploy(self, one: HarnessAgent, branch: str) -> None:
        let = self.known.decides(f"deploy({branch})", "deploy", approved=self.approves)
        self.deployed.clear()
        self.step("deploy", branch=branch)
        await self.send(one)
        assert self.deployed == [branch] * let

    async def _task(self, one: HarnessAgent, verb: Verb, at: int) -> None:
        known, open_jobs = self.known, [job for job in self.known.jobs if job.is_open]
        title = f"work {len(known.jobs)} {at % 4}"
        if verb in {"start", "spawn", "wait"} and (len(open_jobs) > 8 or len(known.waiting()) > 8):
            return
        match verb:
            case "start":
                known.jobs.append(Job(title=title, type="local_bash", born=self.clock.now()))
                await one.tasks.start("local_bash", title, lambda report: self._work(title, report))
            case "spawn":
                job = Job(title=title, type="remote_agent", born=self.clock.now())
                self.step("spawn", lambda: None if known.active else known.jobs.append(job), prompt=title)
                await self.send(one)
            case "wait":
                if not known.active:
                    self.ends.setdefault(title, anyio.Event()).set()
                self.step("spawn", lambda: None if known.active else self._awaited(title), prompt=title, wait=True)
                await self.send(one)
            case _ if known.jobs:
                await self._end(one, known.jobs[at % len(known.jobs)], cancels=verb == "cancel")
            case _:
                pass

    def _awaited(self, title: str) -> None:
        job = Job(title=title, type="remote_agent", born=self.clock.now(), keys=["ended"])
        self._ended(job)
        self.known.jobs.append(job)

    def _ended(self, job: Job) -> None:
        if job.title.endswith("3"):
            job.end("failed", self.clock.now(), error=f"RuntimeError: nothing came of {job.title}")
        else:
            job.end("completed", self.clock.now(), result=f"The result of {job.title}.")

    async def _end(self, one: HarnessAgent, job: Job, *, cancels: bool) -> None:
        if cancels:
            await one.tasks.cancel(job.id)
            if job.state == "orphaned":
                error = f"It was cancelled after its process was gone.{left_behind(job)}"
                job.end("cancelled", self.clock.now(), error=error)
            elif job.is_ours:
                job.end("cancelled", self.clock.now(), error="It was cancelled.")
            job.asked = job.asked or job.is_open
        elif job.is_ours:
            self.ends.setdefault(job.title, anyio.Event()).set()
            await one.tasks.wait(job.id)
            self._ended(job)

    async def _compact(self, one: HarnessAgent, *, garbage: bool) -> None:
        before, self.garbage = one.state, garbage
        await one.compact()
        self.garbage = False
        assert _without_window(one.state) == _without_window(before)

    async def look(self, one: HarnessAgent) -> None:
        """Hold what stands against what is known of it."""
        assert self.wrong == []
        known, state = self.known, one.state.work_state
        expected = (known.active, known.path, known.by, known.approved)
        assert (state.plan.active, state.plan.path, state.plan.author, state.plan.approved) == expected
        assert [(todo.content, todo.status) for todo in state.todos] == known.todos
        ids = {todo.content: todo.id for todo in state.todos}
        assert len(set(ids.values())) == len(ids)
        assert all(self.ids.get(content, each) == each for content, each in ids.items())
        self.ids = ids
        assert [(render_rule(each), each.reason, each.source) for each in state.permissions] == [
            (f"{decision} {pattern}", why, "user") for decision, pattern, why in known.rules
        ]
        plans = {path.name: path.read_text() for path in (place_of(self.root) / "workspace" / "plans").glob("*.md")}
        assert plans == {path[6:]: text for path, text in known.files.items() if text is not None}
        await self._look_at_tasks(one)
        assert sorted(state.delivered_results) == known.delivered
        assert not any(get_mark(message) == "reminder" for message in (*one.window, *await transcript(self.root)))

    async def _look_at_tasks(self, one: HarnessAgent) -> None:
        tasks = {task.title: task for task in await one.tasks.all()}
        for job in self.known.jobs:
            job.id = tasks[job.title].id if job.title in tasks else ""
        expected = {job.title: (job.type, job.state, job.result, job.error, job.asked) for job in self.known.jobs}
        assert expected == {
            title: (task.type, task.state, task.result, task.error, task.cancelling) for title, task in tasks.items()
        }
        if expected:
            written = json.loads((place_of(self.root) / tasks_path("main", "s")).read_text())["tasks"]
            assert {each["title"]: (each["id"], each["state"], each.get("result", "")) for each in written} == {
                job.title: (job.id, job.state, job.result) for job in self.known.jobs
            }

    def ended(self, verb: Verb) -> None:
        """Let the next process begin after this one was closed or killed."""
        killed = verb.startswith("kill")
        for job in self.known.jobs:
            if job.is_ours and not killed:
                job.end("cancelled", self.clock.now(), error=LEFT)
            job.is_ours = False
        self.roots += killed
        self.clock.turn(1, minutes=11 * (verb == "kill and wait"))
        for job in self.known.jobs:
            if job.is_open and verb == "kill and wait":
                job.end("orphaned", self.clock.now(), error=f"{LOST}{left_behind(job)}")
        self.known.shown.clear()


def left_behind(job: Job) -> str:
    """Return what is said of a command whose process is gone."""
    return " Its command may still run." if job.type == "local_bash" else ""


def _without_window(state: AgentState) -> AgentState:
    return replace(state, window=(), messages_at_undo=0)


async def lived(folder: Path, acts: Sequence[Act], *, rules: bool) -> None:
    life = Life(folder=folder, rules=rules)
    left: list[Act] = [*acts, ("reopen", 0)]
    while left:
        verb: Verb = "reopen"
        async with life.agent() as one:
            await life.look(one)
            while left:
                verb = left[0][0]
                await life.act(one, left.pop(0))
                if verb == "reopen" or verb.startswith("kill"):
                    break
                await life.look(one)
        life.ended(verb)
    async with life.agent() as again:
        await life.look(again)
        await life.send(again)
        await life.look(again)
    assert life.known.waiting() == []
    assert set(life.told.values()) <= {1}


@pytest.mark.req("AS-STATE-02", "AS-STATE-03", "AS-STATE-06", "AS-STATE-07")
@settings(max_examples=3, phases=PHASES)
@example(EVERYTHING, False)
@given(st.lists(ACT, min_size=8, max_size=16), st.booleans())
async def test_whatever_is_done_in_a_session_what_stands_is_what_was_made_of_it_and_is_told(
    tmp_path_factory: pytest.TempPathFactory, acts: list[Act], rules: bool
) -> None:
    await lived(tmp_path_factory.mktemp("life"), acts, rules=rules)


@pytest.mark.req("AS-STATE-02", "AS-STATE-03", "AS-STATE-06", "AS-STATE-07")
@pytest.mark.soak
@settings(max_examples=600, phases=PHASES)
@given(st.lists(ACT, min_size=8, max_size=40), st.booleans())
async def test_whatever_is_done_in_a_long_session_what_stands_is_what_was_made_of_it_and_is_told(
    tmp_path_factory: pytest.TempPathFactory, acts: list[Act], rules: bool
) -> None:
    await lived(tmp_path_factory.mktemp("life"), acts, rules=rules)
