"""What a turn costs as a session grows: `python benchmarks/turns.py [--turns 1000]`.

One session of an agent with every recommended reduction on, a scripted model in this process, small messages and one
tool call in each turn; memory learns meanwhile. Told are the median time of the last 20 turns beside that of the
first 20 of another session, taken in turn so that noise hits them alike; the shares of a turn that go into recording,
keeping the state and asking the inbox; and the size of the window and of the state's file.
"""

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any

import anyio

from ricordo import FlushConfig, HarnessAgent, Scope
from ricordo.agent.tools import tool
from ricordo.jobs.inbox import Inbox
from ricordo.messages.tokens import estimate_message
from ricordo.runtime import Settings
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem
from ricordo.workspace.agent_state_store import FileStateStore
from ricordo.workspace.transcript import Transcript

__all__ = ["main"]

WATCHED = {"record": (Transcript, "append"), "state": (FileStateStore, "save"), "inbox": (Inbox, "put")}
LAST = 20

spent: defaultdict[str, float] = defaultdict(float)


@tool
def look_up(topic: str) -> str:
    """Look something up."""
    return f"Three results for {topic}."


def main() -> None:
    """Run the session and print what its turns took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=1000, help="how many turns the session has")
    turns = parser.parse_args().turns
    for name, (owner, method) in WATCHED.items():
        setattr(owner, method, timed(name, getattr(owner, method)))
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(partial(session, Path(folder), turns))


async def session(folder: Path, turns: int) -> None:
    """Live through the session, and at its end through the beginning of another one, turn by turn with it."""
    old, new = agent(folder / "old"), agent(folder / "new")
    late: list[float] = []
    early: list[float] = []
    began = time.perf_counter()
    async with old:
        for number in range(1, turns - LAST + 1):
            await took(old, number)
        total = time.perf_counter() - began
        print("shares of a turn: " + ", ".join(f"{name} {spent[name] / total:.0%}" for name in WATCHED))
        async with new:
            for number in range(1, LAST + 1):
                late.append(await took(old, turns - LAST + number))
                early.append(await took(new, number))
        (state,) = (folder / "old").rglob("state/s.json")
        (log,) = (folder / "old").rglob("s.log.jsonl")
        tokens = sum(map(estimate_message, old.window))
        print(f"window: {len(old.window)} messages, {tokens} tokens; state: {state.stat().st_size / 1024:.0f} KB")
        print(f"transcript: {log.stat().st_size / 1024:.0f} KB; left in the inbox: {await old.drain(seconds=60)}")
    first, last = statistics.median(early), statistics.median(late)
    print(f"median of the first {LAST} turns {first * 1000:.1f} ms, of the last {LAST} {last * 1000:.1f} ms")
    print(f"turn {turns} takes {last / first:.2f} x turn {LAST // 2}")
    began = time.perf_counter()
    async with old:
        print(f"opening the session again: {(time.perf_counter() - began) * 1000:.0f} ms")


def agent(folder: Path) -> HarnessAgent:
    """Describe an agent with a root below `folder`."""
    settings = Settings(
        root=None, user="me", data=folder / "data", cache=folder / "cache", flush=FlushConfig(model="offline")
    )
    return HarnessAgent.with_recommended_settings(
        ScriptedModel(answered),
        memory=folder / ".ricordo",
        scope=Scope(user="me", project="shop"),
        session="s",
        tools=[look_up],
        settings=settings,
    )


async def took(one: HarnessAgent, number: int) -> float:
    """Return the seconds of one turn."""
    began = time.perf_counter()
    await one.send(f"We decided to deploy the service {number} on day {number % 28 + 1}.")
    return time.perf_counter() - began


def answered(request: RecordedRequest) -> ScriptItem:
    """Call the tool, then answer."""
    last = request.messages[-1]
    if not request.tools:
        return Say(
            "## SESSION INTENT\nTo deploy.\n## SUMMARY\nMuch was decided.\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone"
        )
    return Call("look_up", {"topic": last.text}) if last.role == "user" else Say("Noted.")


def timed(name: str, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Return `method`, its time added up under `name`."""

    @wraps(method)
    async def act(*args: Any, **named: Any) -> Any:
        began = time.perf_counter()
        try:
            return await method(*args, **named)
        finally:
            spent[name] += time.perf_counter() - began

    return act


if __name__ == "__main__":
    main()
