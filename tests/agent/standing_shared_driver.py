"""Two processes in one session at once: `standing_shared_driver.py <folder> <rounds>` prints what both came to.

One writes todos and makes a plan, the other grants rules and makes the window smaller; each has a background task.
"""

import json
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio

import ricordo
from agents_at_work import is_valid, said, transcript
from compacting_agents import NOTED, compacting, summed_up
from dialect_validity import anthropic_faults, openai_faults
from forking import Emit, in_child
from named_disks import NamedDisk
from ricordo import HarnessAgent
from ricordo.guard import parse_fence, render_rule
from ricordo.jobs import ReportProgress
from ricordo.messages import get_mark
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem


@dataclass
class Script:
    """Makes the calls that are wished, sums up, and keeps what it was reminded of."""

    calls: list[Call] = field(default_factory=list)
    reminded: list[str] = field(default_factory=list)

    def __call__(self, request: RecordedRequest) -> ScriptItem:
        if not request.tools:
            return summed_up(request)
        assert not openai_faults(request.messages)
        assert not anthropic_faults(request.messages)
        last = request.messages[-1]
        self.reminded += (parse_fence(last.text) or ()) if get_mark(last) == "reminder" else ()
        return self.calls.pop(0) if self.calls else Say(NOTED)


def agent(root: Path, script: Script) -> HarnessAgent:
    disk = NamedDisk(lambda _: None)
    return compacting(ScriptedModel(script), root, disk=disk, planning=True, memory_hooks=False)


async def planner(root: Path, rounds: int) -> None:
    script = Script()
    async with agent(root, script) as one:
        await begin(one, "planner")
        script.calls.append(Call("plan_enter", {"title": "Move"}))
        for number in range(rounds):
            todos = [{"content": f"Step {at}", "status": "completed"} for at in range(number + 1)]
            script.calls.append(Call("todo_write", {"todos": todos}))  # type: ignore[dict-item]
            await one.send(f"Go on with {number}.")
        assert [todo.content for todo in one.todos] == [f"Step {at}" for at in range(rounds)]
        await finish(one)
    tell(root, "planner", script)


async def warden(root: Path, rounds: int) -> None:
    script = Script()
    async with agent(root, script) as one:
        await begin(one, "warden")
        for number in range(rounds):
            await one.permissions.deny(f"shell(rm {number}*)")
            await one.record([said(f"Number {number}."), said(NOTED)])
            await one.compact()
            assert is_valid(one.window)
        await finish(one)
    tell(root, "warden", script)


async def begin(one: HarnessAgent, name: str) -> None:
    async def work(report: ReportProgress) -> str:
        del report
        return f"The result of {name}."

    await one.tasks.start("local_bash", name, work)


async def finish(one: HarnessAgent) -> None:
    await one.tasks.wait()
    await one.send("And now?")


def tell(root: Path, name: str, script: Script) -> None:
    """Leave behind which results this process was told."""
    told = [item for item in script.reminded if item.startswith("The result of")]
    (root.parent / f"{name}.json").write_text(json.dumps(told))


async def look(root: Path, emit: Emit) -> None:
    script = Script()
    async with agent(root, script) as one:
        standing = one.state.work_state
        await one.send("And now?")
        assert one.memory is not None
        tasks = {task.id: task for task in await one.tasks.all()}
        found = {
            "todos": [todo.content for todo in standing.todos],
            "rules": sorted(render_rule(rule) for rule in standing.permissions),
            "plan": standing.plan.active,
            "tasks": sorted(f"{task.title} {task.state} {task.result}" for task in tasks.values()),
            "delivered": sorted(tasks[each].title for each in standing.delivered_results),
            "told": [json.loads((root.parent / f"{name}.json").read_text()) for name in ("planner", "warden")],
            "told again": [item for item in script.reminded if item.startswith("The result of")],
            "rules told": sum("deny shell(rm 0*)" in item for item in script.reminded),
            "valid": is_valid(one.window),
            "unwell": [check.name for check in await one.memory.doctor() if not check.ok],
        }
    logged = await transcript(root)
    found["doubled"] = len(logged) - len({message.id for message in logged})
    emit(json.dumps(found))


def at_once(*works: Callable[[], Awaitable[None]]) -> int:
    """Run each in a process of its own, all at once; return how many failed."""
    children = []
    for work in works:
        child = os.fork()
        if child == 0:
            try:
                anyio.run(work)
            except BaseException:  # noqa: BLE001 - a forked child must not run on into its parent's code
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        children.append(child)
    return sum(os.waitpid(child, 0)[1] != 0 for child in children)


def main() -> None:
    root, rounds = Path(sys.argv[1]) / ".ricordo", int(sys.argv[2])
    print(json.dumps(ricordo.__file__), flush=True)

    async def begun(_: Emit) -> None:
        async with agent(root, Script()) as one:
            await one.send("Begin.")

    in_child(begun)
    failed = at_once(lambda: planner(root, rounds), lambda: warden(root, rounds))
    _, lines = in_child(lambda emit: look(root, emit))
    print(json.dumps({"failed": failed, **json.loads(lines[0])}))


if __name__ == "__main__":
    main()
