"""One of several processes that chat on one root: `agent_process.py <root> <session> <name> <turns>`."""

import sys
from pathlib import Path

import anyio

from agents_at_work import SCOPE, settings
from ricordo import HarnessAgent
from ricordo.agent import tool
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem

ROOT, SESSION, NAME, TURNS = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])


@tool
def look_up(topic: str) -> str:
    """Look something up."""
    return f"found {topic}"


def answered(request: RecordedRequest) -> ScriptItem:
    last = request.messages[-1]
    return Call("look_up", {"topic": last.text}, f"{NAME}-{request.number}") if last.role == "user" else Say("Done.")


async def main() -> None:
    agent = HarnessAgent(
        ScriptedModel(answered),
        memory=ROOT,
        scope=SCOPE,
        session=SESSION,
        tools=[look_up],
        settings=settings(ROOT),
    )
    async with agent:
        print("ready", flush=True)
        await anyio.to_thread.run_sync(sys.stdin.readline)
        for number in range(TURNS):
            await agent.send(f"We decided to deploy the service {number} of {NAME} on Fridays.")
            print(f"acked {number}", flush=True)
        await agent.drain()


anyio.run(main)
