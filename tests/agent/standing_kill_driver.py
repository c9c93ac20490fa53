"""An agent that is killed while it changes what stands beside its window, and what the next process finds.

`standing_kill_driver.py <folder> <step>...` prints one JSON line for each case: a life without a kill, then one that is
killed at each of these steps; without steps, at every one that there was. A step is its name, or a name, a blank and
the number of the time that it comes.
"""

import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import anyio

from agents_at_work import is_valid, transcript
from compacting_agents import NOTED, compacting, decided, summed_up
from dialect_validity import anthropic_faults, openai_faults
from forking import Emit, Killing, drive, in_child
from named_disks import NamedDisk
from places import place_of
from ricordo import HarnessAgent
from ricordo.agent import tool
from ricordo.clock import SystemClock
from ricordo.errors import DocumentInvalid
from ricordo.extraction import JobWorker
from ricordo.guard import parse_fence, render_rule
from ricordo.jobs import ReportProgress, decode_tasks
from ricordo.messages import delivered_results, get_mark
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem
from ricordo.workspace import tasks_path

PLAN = "# Move\n\n1. Export every table.\n2. Load them in one transaction.\n"
OLD_TODOS = [["Look around", "in_progress"], ["Ask", "pending"]]
NEW_TODOS = [["Look around", "completed"], ["Export", "in_progress"], ["Load", "pending"]]
OLD_RULE, RULE = "ask write_file(src/*)", "deny shell(git push*)"
RESULT = "There are 12 tables."


class Later(SystemClock):
    """An hour later, when no task of a killed process gives a sign of life any more."""

    def now(self) -> datetime:
        """Return the time in an hour."""
        return super().now() + timedelta(hours=1)


def unheard(_: str) -> None:
    """Do nothing at a step."""


def wrote(todos: list[list[str]]) -> Call:
    return Call("todo_write", {"todos": [{"content": content, "status": status} for content, status in todos]})


ACTS = (
    ("todos", wrote(NEW_TODOS)),
    ("plan", Call("plan_enter", {"title": "Move"})),
    ("text", Call("plan_write", {"content": PLAN})),
    ("end", Call("finish", {})),
)


@dataclass
class Script:
    """Makes the calls of a turn one after the other, and says what of it the model knows to be done."""

    reached: Callable[[str], None]
    emit: Emit
    reminders: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    acts: list[tuple[str, Call]] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    def __call__(self, request: RecordedRequest) -> ScriptItem:
        if not request.tools:
            self.reached("ask for a summary")
            return summed_up(request)
        self.faults += openai_faults(request.messages) + anthropic_faults(request.messages)
        self.reminders += [message.text for message in request.messages if get_mark(message) == "reminder"]
        if self.reminders and RESULT in self.reminders[-1]:
            self.emit("tells")
        self.emit(f"has {' '.join(self.done)}")
        self.reached("ask")
        if not self.acts:
            return Say(NOTED)
        name, call = self.acts.pop(0)
        self.done.append(name)
        return call


@dataclass
class Mate:
    """A background task that ends when it is told to."""

    may_end: anyio.Event = field(default_factory=anyio.Event)
    agent: HarnessAgent | None = None

    async def work(self, report: ReportProgress) -> str:
        del report
        await self.may_end.wait()
        return RESULT

    async def finish(self) -> str:
        """Let the work end."""
        assert self.agent is not None
        self.may_end.set()
        await self.agent.tasks.wait()
        return "ended"


def agent(root: Path, script: Script, mate: Mate, clock: SystemClock | None = None) -> HarnessAgent:
    finish = tool(mate.finish, name="finish", effect="reads")
    return compacting(
        ScriptedModel(script), root, clock=clock, disk=NamedDisk(script.reached), tools=[finish], planning=True,
        memory_hooks=False,
    )  # fmt: skip


async def idle(_: JobWorker) -> None:
    """Leave the work to whoever asks for it."""
    await anyio.sleep_forever()


async def prepare(root: Path) -> None:
    script = Script(unheard, unheard, acts=[("old", wrote(OLD_TODOS))])
    async with agent(root, script, Mate()) as one:
        await one.send(decided(0))
        await one.permissions.ask(OLD_RULE.removeprefix("ask "))
        os.kill(os.getpid(), signal.SIGKILL)


async def live(root: Path, reached: Callable[[str], None], emit: Emit) -> None:
    armed = False

    def heard(step: str) -> None:
        if armed:
            reached(step)

    mate, script = Mate(), Script(heard, emit, acts=[*ACTS])
    async with agent(root, script, mate) as one:
        mate.agent, armed = one, True
        await one.permissions.deny(RULE.removeprefix("deny "))
        emit("has rule")
        await one.tasks.start("local_bash", "count", mate.work)
        emit("has task")
        await one.send("Move it.")
        emit("has told")
        await one.compact()
        emit("has compacted")
        armed = False
        os.kill(os.getpid(), signal.SIGKILL)


async def left(root: Path) -> dict[str, object]:
    """Return what lies in the files, before any process goes on with it."""
    plans = {path.name: path.read_text() for path in (place_of(root) / "workspace" / "plans").glob("[!.]*")}
    file = place_of(root) / tasks_path("main", "s")
    try:
        tasks = decode_tasks(file.read_bytes()).tasks if file.exists() else ()
    except DocumentInvalid as error:
        return {"unreadable": str(error)}
    told = {each for message in await transcript(root) for each in delivered_results(message)}
    return {
        "plans": list(plans.values()),
        "tasks": [task.state for task in tasks],
        "told": [task.id in told for task in tasks],
    }


async def look(root: Path, emit: Emit) -> None:
    found = await left(root)
    script = Script(unheard, unheard)
    async with agent(root, script, Mate(), Later()) as one:
        standing = one.state.work_state
        assert one.memory is not None
        assert one.plan is not None
        found |= {
            "todos": [[todo.content, todo.status] for todo in standing.todos],
            "rules": [render_rule(rule) for rule in standing.permissions],
            "plan": [standing.plan.active, bool(standing.plan.path)],
            "text": await one.plan.text(),
            "valid": is_valid(one.window),
            "unwell": [check.name for check in await one.memory.doctor() if not check.ok],
        }
        for text in ("And now?", "And then?"):
            await one.send(text)
        items = [parse_fence(text) or () for text in script.reminders]
        found |= {
            "results": [sum(RESULT in item for item in each) for each in items],
            "orphans": [sum("no sign of life" in item for item in each) for each in items],
            "reminded": [[item for item in each if item == PLAN or "[>]" in item] for each in items],
            "later": [[task.state, task.result] for task in await one.tasks.all()],
            "faults": sum(script.faults.values()),
            "kept": one.state.work_state.todos == standing.todos and one.state.work_state.plan == standing.plan,
        }
    emit(json.dumps(found))


def case(prepared: Path, folder: Path, step: str = "", at: int = -1) -> tuple[list[str], dict[str, object]]:
    """Return the steps up to the kill, and what was found after it."""
    shutil.copytree(prepared, folder)
    root = folder / ".ricordo"

    async def act(emit: Emit) -> None:
        await live(root, Killing(step, at, emit), emit)

    async def again(emit: Emit) -> None:
        await look(root, emit)

    _, lines = in_child(act)
    _, found = in_child(again)
    steps = [line[5:] for line in lines if line.startswith("step ")]
    has = sorted({name for line in lines if line.startswith("has ") for name in line[4:].split()})
    return steps, {
        "step": f"{step} {at}", "killed": steps[-1] == step, "has": has, "tells": lines.count("tells"),
        **json.loads(found[0]),
    }  # fmt: skip


if __name__ == "__main__":
    JobWorker.serve = idle  # type: ignore[assignment, method-assign]
    drive(prepare, case)
