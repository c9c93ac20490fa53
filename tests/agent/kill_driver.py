"""An agent that is killed at its events, and what the next process finds.

`kill_driver.py <folder> <kind>...` prints one JSON line for each case: a life without a kill, then a kill at an
event of each of these kinds, the first one and the last one by turns; without kinds, at the first and at the last
one of every kind that there was.
"""

import gc
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio

import ricordo
from agents_at_work import SCOPE, is_valid, ledgers, settings, spoken, transcript
from forking import Emit, in_child
from places import place_of
from ricordo import CompactionConfig, HarnessAgent, ToolResultEvictionConfig
from ricordo.agent import tool
from ricordo.errors import ModelError
from ricordo.events import Event
from ricordo.messages import pair_calls
from ricordo.models import ChatModel
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem

SAID = ("We deploy only from main.", "Our fixtures live in tests/data.", "And now?")
_BESIDE = ("extract", "drain", "orient", "gather", "consolidate", "prune")
WIDE = "a line of what the tool found\n" * 400


@tool
def look_up(topic: str) -> str:
    """Look something up."""
    return f"{topic}\n{WIDE}"


def answered(request: RecordedRequest) -> ScriptItem:
    """Call the tool once in each turn."""
    last = request.messages[-1]
    return Call("look_up", {"topic": last.text}) if last.role == "user" else Say(f"Done after {last.role}.")


class Killing:
    """Ends this process at an event of this kind, the one with the number `at` of them, and tells each event before."""

    def __init__(self, kind: str, at: int, emit: Emit) -> None:
        self._kind = kind
        self._left = at
        self._emit = emit

    def __call__(self, event: Event) -> None:
        kind = f"{event.stage} {event.status}"
        self._emit(f"event {kind}")
        self._left -= kind == self._kind
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)


def agent(root: Path, model: ChatModel, on_event: Callable[[Event], None] | None = None) -> HarnessAgent:
    return HarnessAgent(
        model,
        memory=root,
        scope=SCOPE,
        session="s",
        tools=[look_up],
        compaction=CompactionConfig(trigger_messages=6, keep_messages=2, model="offline"),
        tool_result_eviction=ToolResultEvictionConfig(max_result_chars=4_000, preview_chars=100),
        on_event=on_event,
        settings=settings(root, consolidates=True),
    )


async def live(root: Path, killing: Killing, emit: Emit) -> None:
    async with agent(root, ScriptedModel(answered), killing) as one:
        for text in SAID[:-1]:
            await one.send(text)
            emit(f"ack {text}")
        await one.drain()
        await one.consolidate()


async def look(root: Path, emit: Emit) -> None:
    model = ScriptedModel(answered)
    async with agent(root, model) as one:
        before = one.window
        told: dict[str, object] = {"valid before": is_valid(before)}
        try:
            told["reply"] = str(await one.send(SAID[-1]))
        except ModelError as error:
            told["reply"] = repr(error)
        window = one.window
        told["left over"] = await one.drain(seconds=20)
        assert one.memory is not None
        told["entries"] = [entry.content for entry in await one.memory.entries()]
        told["unwell"] = [check.name for check in await one.memory.doctor() if not check.ok]
    logged = await transcript(root)
    folder = place_of(root) / "workspace"
    told["said"] = [text for role, text in spoken(logged) if role == "user"]
    told["doubled"] = [name for name, count in Counter(message.id for message in logged).items() if count > 1]
    told["valid"] = is_valid(window) and not pair_calls(window).pending
    told["widest"] = max(len(text) for _, text in spoken(window))
    told["files"] = [len(path.read_text()) for path in sorted(folder.glob("large_tool_results/s/*"))]
    told["ledger"] = [ledgers(root).count(text) for text in SAID[:-1]]
    emit(json.dumps(told))


def case(folder: Path, kind: str = "", at: int = -1) -> tuple[list[str], dict[str, object]]:
    """Return the events up to the kill, and what was found after it."""
    root = folder / f"{kind} {at}" / ".ricordo"
    root.parent.mkdir(parents=True)

    async def act(emit: Emit) -> None:
        await live(root, Killing(kind, at, emit), emit)

    async def again(emit: Emit) -> None:
        await look(root, emit)

    lived, lines = in_child(act)
    _, told = in_child(again)
    events = [line[6:] for line in lines if line.startswith("event ")]
    acked = [line[4:] for line in lines if line.startswith("ack ")]
    return events, {"event": kind, "killed": not lived, "acked": acked, **json.loads(told[0])}


def kills(events: list[str], kinds: list[str]) -> Iterator[tuple[str, int]]:
    """Yield the kind and the number of each event to be killed at.

    How often there is work beside the turns depends on how fast they are: of that the first one is taken.
    """
    counts = Counter(events)
    for number, kind in enumerate(kinds):
        yield kind, counts[kind] if number % 2 and not kind.startswith(_BESIDE) else 1
    if not kinds:
        yield from ((kind, at) for kind, count in counts.items() for at in sorted({1, count}))


def main() -> None:
    folder, kinds = Path(sys.argv[1]), sys.argv[2:]
    print(json.dumps(ricordo.__file__), flush=True)
    anyio.run(anyio.sleep, 0)
    gc.freeze()
    events, told = case(folder)
    print(json.dumps(told), flush=True)
    for kind, at in kills(events, kinds):
        print(json.dumps(case(folder, kind, at)[1]), flush=True)


if __name__ == "__main__":
    main()
