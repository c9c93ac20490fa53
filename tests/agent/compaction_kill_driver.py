"""An agent that is killed in the middle of a compaction, and what the next process finds.

`compaction_kill_driver.py <folder> <step>...` prints one JSON line for each case: a turn without a kill, then one that
is killed at each of these steps; without steps, at every one that there was. A step is its name, or a name, a blank
and the number of the time that it comes.
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

from agents_at_work import is_valid, spoken, transcript
from compacting_agents import NOTED, compacting, decided, learned, summed_up
from dialect_validity import anthropic_faults, openai_faults
from forking import Emit, Killing, drive, in_child
from named_disks import NamedDisk
from places import place_of
from ricordo import HarnessAgent
from ricordo.clock import SystemClock
from ricordo.extraction import JobWorker
from ricordo.messages import get_mark
from ricordo.testing import Call, Fail, RecordedRequest, Say, ScriptedModel, ScriptItem

TURNS = 6


class Later(SystemClock):
    """An hour later, when no lease of a killed process lasts any more."""

    def now(self) -> datetime:
        """Return the time in an hour."""
        return super().now() + timedelta(hours=1)


@dataclass
class Script:
    """Calls a tool in the turn that is watched, refuses what comes after it once, and sums up with lessons."""

    reached: Callable[[str], None]
    watched: bool = True
    refused: bool = False
    faults: Counter[str] = field(default_factory=Counter)

    def __call__(self, request: RecordedRequest) -> ScriptItem:
        if not request.tools:
            self.reached("ask for a summary")
            return summed_up(request)
        self.faults += openai_faults(request.messages) + anthropic_faults(request.messages)
        self.reached("ask")
        if not self.watched:
            return Say(NOTED)
        if request.messages[-1].role == "user":
            return Call("look_up", {"topic": "main"}, "looking")
        if not self.refused:
            self.refused = True
            return Fail(400, overflow=True)
        return Say("Done.")


def agent(root: Path, script: Script, reached: Callable[[str], None], clock: SystemClock | None = None) -> HarnessAgent:
    return compacting(ScriptedModel(script), root, clock=clock, disk=NamedDisk(reached))


async def idle(_: JobWorker) -> None:
    """Leave the work to whoever asks for it."""
    await anyio.sleep_forever()


def unheard(_: str) -> None:
    """Do nothing at a step."""


async def prepare(root: Path) -> None:
    script = Script(unheard, watched=False)
    async with agent(root, script, unheard) as one:
        for number in range(TURNS - 1):
            await one.send(decided(number))
        # as a process that is killed leaves its inbox
        os.kill(os.getpid(), signal.SIGKILL)


async def live(root: Path, reached: Callable[[str], None]) -> None:
    armed = False

    def heard(step: str) -> None:
        if armed:
            reached(step)

    async with agent(root, Script(heard), heard) as one:
        armed = True
        await one.send(decided(TURNS - 1))
        armed = False
        os.kill(os.getpid(), signal.SIGKILL)


async def look(root: Path, emit: Emit) -> None:
    script = Script(unheard, watched=False)
    async with agent(root, script, unheard, Later()) as one:
        logged = await transcript(root)
        window, made = one.window, await one.compactions.all()
        opened = [message for each in made for message in await one.compactions.expand(each.handle)]
        shown, said = {message.id for message in window}, {message.id for message in logged}
        told: dict[str, object] = {
            "valid": is_valid(window),
            "summaries": sum(get_mark(message) == "summary" for message in window),
            "whole": shown == said,
            "held": shown == said or any(each.handle in str(window) for each in made),
            "lost": [message.text for message in logged if message.id not in shown | {each.id for each in opened}],
            "strange": sorted(shown - {message.id for message in window if get_mark(message)} - said),
        }
        told["reply"] = str(await one.send("And now?")).partition(" ")[0]
        told["left over"] = await one.drain(seconds=20)
        told["faults"] = sum(script.faults.values())
        assert one.memory is not None
        found = "\n".join(entry.content for entry in await one.memory.entries())
        told["learned"] = learned(found, TURNS)
        told["unwell"] = [check.name for check in await one.memory.doctor() if not check.ok]
        made = await one.compactions.all()
        for each in made:
            await one.compactions.undo(each.handle)
        logged = await transcript(root)
        told["compactions"] = len(made)
        told["whole again"] = [message.id for message in one.window] == [message.id for message in logged]
    told["said"] = [text for role, text in spoken(logged) if role == "user"]
    told["doubled"] = [name for name, count in Counter(message.id for message in logged).items() if count > 1]
    folder = place_of(root) / "workspace"
    told["files"] = [len(path.read_text()) for path in sorted(folder.glob("large_tool_results/s/[!.]*"))]
    emit(json.dumps(told))


def case(prepared: Path, folder: Path, step: str = "", at: int = -1) -> tuple[list[str], dict[str, object]]:
    """Return the steps up to the kill, and what was found after it."""
    shutil.copytree(prepared, folder)
    root = folder / ".ricordo"

    async def act(emit: Emit) -> None:
        await live(root, Killing(step, at, emit))

    async def again(emit: Emit) -> None:
        await look(root, emit)

    _, lines = in_child(act)
    _, told = in_child(again)
    steps = [line[5:] for line in lines if line.startswith("step ")]
    return steps, {"step": step, "killed": steps[-1] == step, **json.loads(told[0])}


if __name__ == "__main__":
    JobWorker.serve = idle  # type: ignore[assignment, method-assign]
    drive(prepare, case)
