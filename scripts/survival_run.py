"""Show what compactions, an overflow and kills leave alone: `python scripts/survival_run.py`.

An agent makes a plan, writes four todos, is given two rules and begins three background tasks. Then its window is
compacted five times and overflows once, and its process is killed twice: in the middle of a tool call, and while a
summary is written. Printed is each field of the state beside its window, before and after, and whether it is the
same.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path

import anyio

from ricordo import BuiltinTools, CompactionConfig, HarnessAgent, MemoryConfig, Scope
from ricordo.agent.options import RemoteAgent, SubAgent
from ricordo.agent.tools import Approval, tool
from ricordo.clock import SystemClock
from ricordo.guard.permissions import render_rule
from ricordo.jobs.tasks import ReportProgress
from ricordo.runtime import Settings
from ricordo.testing import Call, Calls, RecordedRequest, Say, ScriptedModel, ScriptItem, overflow

__all__ = ["COUNTED", "EXPORTED", "LOST", "PLAN", "RULES", "TODOS", "Run", "main", "run_through"]

PLAN = "# Move to PostgreSQL\n\n1. Export every table.\n2. Load them in one transaction.\n3. Keep MySQL for a week.\n"
TODOS = (
    ("Export the tables", "completed"),
    ("Load them", "in_progress"),
    ("Compare the counts", "pending"),
    ("Write the release notes", "pending"),
)
RULES = ("deny shell(git push*)", "ask write_file(src/*)")
SUMMARY = "## SESSION INTENT\n- Move.\n## SUMMARY\n- It goes on.\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone"
SAID = "Done. " + "It went as the plan says, and nothing else was touched. " * 30
COUNTED = "There are 12 tables."
EXPORTED = "The big one is exported."
LOST = "It gives no sign of life"
SCOPE = Scope(user="me", project="shop")
LATER = timedelta(minutes=11)
PARTS = 3
KILLED = -signal.SIGKILL


@dataclass(frozen=True, kw_only=True)
class Run:
    """What stood before and after, what the processes said of themselves, and how they ended."""

    before: Mapping[str, object]
    after: Mapping[str, object]
    told: tuple[str, ...]
    compactions: int
    overflows: int
    ended: tuple[int, ...]

    def rows(self) -> Iterator[tuple[str, object, object]]:
        """Give each field with its value before and after."""
        for name in self.before:
            yield name, self.before[name], self.after[name]


def main() -> None:
    """Run it, and print the fields."""
    with tempfile.TemporaryDirectory() as folder:
        run = run_through(Path(folder))
    print(f"compactions: {run.compactions}, overflows: {run.overflows}, processes ended with {run.ended}\n")
    for name, before, after in run.rows():
        print(f"{name}: {'the same' if before == after else 'changed'}\n  before {before}\n  after  {after}")
    for words in (COUNTED, EXPORTED, LOST):
        print(f"the model was told {words!r}: {sum(words in each for each in run.told)} time(s)")
    print("\nThe last reminder:\n")
    print(run.told[-1])


def run_through(folder: Path) -> Run:
    """Run the three processes in `folder`."""
    said: list[dict[str, object]] = []
    ended = []
    for part in range(1, PARTS + 1):
        done = subprocess.run(
            [sys.executable, __file__, str(part), str(folder)], capture_output=True, text=True, check=False
        )
        ended.append(done.returncode)
        said += [json.loads(line) for line in done.stdout.splitlines()]
        if done.returncode not in {0, KILLED}:
            raise RuntimeError(done.stderr)
    standing = [each["standing"] for each in said if "standing" in each]
    return Run(
        before=standing[0],  # type: ignore[arg-type]
        after=standing[-1],  # type: ignore[arg-type]
        told=tuple(str(each["reminder"]) for each in said if "reminder" in each),
        compactions=max(int(str(each["compactions"])) for each in said if "compactions" in each),
        overflows=sum("overflow" in each for each in said),
        ended=tuple(ended),
    )


@tool
def killing() -> str:
    """Kill the process."""
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@dataclass
class Later:
    """A clock that is ahead."""

    ahead: timedelta

    def now(self) -> datetime:
        """Return the time."""
        return SystemClock().now() + self.ahead

    def today(self) -> date:
        """Return the day."""
        return (SystemClock().now() + self.ahead).date()


@dataclass
class Player:
    """Plays the model: what it answers follows from the newest words of the user and the results after them."""

    overflows: int = 0
    kills: bool = False
    reminders: list[str] = field(default_factory=list)

    def __call__(self, request: RecordedRequest) -> ScriptItem:
        """Answer a request."""
        said = [message for message in request.messages if message.metadata.get("ricordo") is None]
        if not request.tools:
            return self._summed_up(request)
        reminded = [message.text for message in request.messages if message.text.startswith("<system-reminder")]
        if reminded:
            tell(reminder=reminded[-1])
        asked = max(at for at, message in enumerate(said) if message.role == "user" and not _is_frame(message.text))
        step = sum(message.role == "assistant" for message in said[asked:])
        return self._acted(said[asked].text, step)

    def _summed_up(self, request: RecordedRequest) -> ScriptItem:
        if self.kills:
            os.kill(os.getpid(), signal.SIGKILL)
        return Say(json.dumps({"summary": SUMMARY, "lessons": []}) if request.schema else SUMMARY)

    def _acted(self, asked: str, step: int) -> ScriptItem:
        if asked.startswith("Overflow") and self.overflows:
            self.overflows -= 1
            tell(overflow=True)
            return overflow("openai-chat", window=32_000, size=40_000)
        return (*PLAYS.get(asked, ()), Say(SAID))[step]


PLAYS: Mapping[str, tuple[ScriptItem, ...]] = {
    "Plan the move, and begin.": (
        Call("plan_enter", {"title": "Move to PostgreSQL"}),
        Call("plan_write", {"content": PLAN}),
        Call("plan_exit", {"outcome": "ready"}),
        Call("todo_write", {"todos": [{"content": content, "status": status} for content, status in TODOS]}),
        Calls(
            Call("spawn", {"agent": "counter", "prompt": "Count the tables."}, id="one"),
            Call("spawn", {"agent": "patient", "prompt": "Export the big one."}, id="two"),
            Call("spawn", {"agent": "lost", "prompt": "Ask the vendor."}, id="three"),
        ),
    ),
    "Stop here.": (Call("killing", {}),),
    "Count the tables.": (Say(COUNTED),),
}


def _is_frame(text: str) -> bool:
    return text.startswith("<") or "condensed" in text[:80]


def tell(**facts: object) -> None:
    """Say something to the process that drives this one, durably."""
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


async def part(number: int, folder: Path) -> None:
    """Live through one process."""
    player = Player()
    may_end = anyio.Event()

    async def patient(prompt: str, report: ReportProgress) -> str:
        del prompt, report
        await may_end.wait()
        return EXPORTED

    async def lost(prompt: str, report: ReportProgress) -> str:
        del prompt, report
        await anyio.sleep_forever()
        raise AssertionError

    async def approve(asked: Approval) -> bool:
        return asked.tool == "plan_exit"

    settings = Settings(root=None, user="me", data=folder / "data", cache=folder / "cache", consolidation=None)
    described = HarnessAgent(
        ScriptedModel(player),
        memory=MemoryConfig(root=folder / ".ricordo", hooks=False),
        scope=SCOPE,
        session="move",
        tools=[killing],
        compaction=CompactionConfig(trigger_messages=1_000, keep_messages=2),
        builtin_tools=BuiltinTools(planning=True),
        approve=approve,
        sub_agents=[
            SubAgent(name="counter", description="Counts.", tools=()),
            RemoteAgent(name="patient", description="Works elsewhere, and takes its time.", ask=patient),
            RemoteAgent(name="lost", description="Works elsewhere, and is never heard of again.", ask=lost),
        ],
        settings=settings,
        clock=Later(LATER * (number - 1)),
    )
    async with described as agent:
        await (_first, _second, _third)[number - 1](agent, player, may_end)


async def _first(agent: HarnessAgent, player: Player, may_end: anyio.Event) -> None:
    await agent.permissions.deny(RULES[0].split(" ", 1)[1])
    await agent.permissions.ask(RULES[1].split(" ", 1)[1])
    await agent.send("Plan the move, and begin.")
    counter = next(task for task in await agent.tasks.all() if task.worker == "counter")
    await agent.tasks.wait(counter.id)
    tell(standing=await standing(agent))
    await compact(agent)
    may_end.set()
    patient = next(task for task in await agent.tasks.all() if task.worker == "patient")
    await agent.tasks.wait(patient.id)
    await agent.send("How far is it?")
    await agent.send("And the rest?")
    player.overflows = 1
    await agent.send("Overflow now.")
    tell(compactions=len(await agent.compactions.all()))
    await agent.send("Stop here.")


async def _second(agent: HarnessAgent, player: Player, may_end: anyio.Event) -> None:
    may_end.set()
    await agent.send("Go on.")
    await compact(agent)
    await agent.send("And on.")
    player.kills = True
    await agent.compact()


async def _third(agent: HarnessAgent, player: Player, may_end: anyio.Event) -> None:
    may_end.set()
    player.kills = False
    for text in ("Still there?", "And now?"):
        await agent.send(text)
        await compact(agent)
    await agent.send("What is left?")
    tell(standing=await standing(agent))


async def compact(agent: HarnessAgent) -> None:
    """Make the window smaller, which is to be a summary."""
    done = await agent.compact()
    assert any(report.action == "compact" and report.status == "done" for report in done), done.reports
    tell(compactions=len(await agent.compactions.all()))


async def standing(agent: HarnessAgent) -> dict[str, object]:
    """Return what stands beside the window, as plain values."""
    stands = agent.state.work_state
    tasks = {task.worker: task for task in await agent.tasks.all()}
    assert agent.plan is not None
    return {
        "plan": asdict(stands.plan),
        "plan file": await agent.plan.text(),
        "todos": [asdict(todo) for todo in stands.todos],
        "permissions": [render_rule(rule) for rule in stands.permissions],
        "delivered": sorted(_worker(key, tasks) for key in stands.delivered_results),
        "user": agent.state.user,
        **{f"task {name}": {"id": task.id, "type": task.type, "title": task.title, "state": task.state,
                            "result": task.result, "error": task.error} for name, task in sorted(tasks.items())},
    }  # fmt: skip


def _worker(key: str, tasks: Mapping[str, object]) -> str:
    task, _, state = key.partition(":")
    name = next(name for name, each in tasks.items() if each.id == task)  # type: ignore[attr-defined]
    return f"{name}:{state}" if state else name


if __name__ == "__main__":
    if len(sys.argv) > 1:
        anyio.run(part, int(sys.argv[1]), Path(sys.argv[2]))
    else:
        main()
