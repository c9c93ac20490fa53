"""What a turn costs as a session grows: `python benchmarks/turns.py [--turns 1000]`.

One session of an agent with every recommended reduction on, a scripted model in this process, small messages and one
tool call in each turn; memory learns meanwhile. Told are the median time of a turn around turn 10 and around the last
one, and their ratio; the shares of a turn that go into recording, keeping the state and asking the inbox; and the size
of the window and of the state's file. Times are of this machine; the ratio and the shares are what is to stay.
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

from ricordo import HarnessAgent, Scope
from ricordo.queue.inbox import Inbox
from ricordo.runtime import Settings
from ricordo.state.files import FileStates
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem
from ricordo.tokens import estimate_message
from ricordo.tools import tool
from ricordo.workspace.transcript import Transcript

__all__ = ["main"]

WATCHED = {"record": (Transcript, "append"), "state": (FileStates, "save"), "inbox": (Inbox, "put")}
AROUND = 10

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
    """Live through the session in a root below `folder`."""
    root = folder / ".ricordo"
    settings = Settings(root=None, user="me", data=folder / "data", cache=folder / "cache")
    times: list[float] = []
    agent = HarnessAgent.recommended(
        ScriptedModel(answered),
        workspace=root,
        scope=Scope(user="me", project="shop"),
        session="s",
        tools=[look_up],
        settings=settings,
    )
    async with agent:
        for number in range(1, turns + 1):
            began = time.perf_counter()
            await agent.send(f"We decided to deploy the service {number} on day {number % 28 + 1}.")
            times.append(time.perf_counter() - began)
            if number in {2 * AROUND, turns}:
                told(number, times[-2 * AROUND :], sum(times))
        (state,) = root.rglob("state/s.json")
        tokens = sum(map(estimate_message, agent.window))
        print(f"window: {len(agent.window)} messages, {tokens} tokens; state: {state.stat().st_size / 1024:.0f} KB")
        (log,) = root.rglob("s.log.jsonl")
        print(f"transcript: {log.stat().st_size / 1024:.0f} KB; left in the inbox: {await agent.settle(seconds=60)}")
        first, last = (statistics.median(part) for part in (times[: 2 * AROUND], times[-2 * AROUND :]))
        print(f"turn {turns} takes {last / first:.2f} x turn {AROUND}")
    began = time.perf_counter()
    async with agent:
        print(f"opening the session again: {(time.perf_counter() - began) * 1000:.0f} ms")


def told(number: int, times: list[float], total: float) -> None:
    """Print what the turns up to `number` took."""
    shares = ", ".join(f"{name} {spent[name] / total:.0%}" for name in WATCHED)
    middle, longest = statistics.median(times), max(times)
    print(f"turns {number - 2 * AROUND + 1}-{number}: median {middle * 1000:.1f} ms, longest {longest * 1000:.1f} ms")
    print(f"  shares of the time so far: {shares}")


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
