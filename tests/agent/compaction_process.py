"""One of several processes whose agents sum up one session: `compaction_process.py <root> <first>`."""

import sys
from pathlib import Path

import anyio

from agents_at_work import is_valid
from compacting_agents import NOTED, compacting, decided, summed_up
from dialect_validity import anthropic_faults, openai_faults
from ricordo.messages import get_mark
from ricordo.testing import RecordedRequest, Say, ScriptedModel, ScriptItem

ROOT, FIRST = Path(sys.argv[1]), int(sys.argv[2])


def answered(request: RecordedRequest) -> ScriptItem:
    if not request.tools:
        return summed_up(request)
    assert not openai_faults(request.messages)
    assert not anthropic_faults(request.messages)
    return Say(NOTED)


async def main() -> None:
    async with compacting(ScriptedModel(answered), ROOT) as one:
        print("ready", flush=True)
        await anyio.to_thread.run_sync(sys.stdin.readline)
        for number in range(FIRST, FIRST + 6):
            await one.send(decided(number))
            assert is_valid(one.window)
            print("acked", flush=True)
        assert get_mark(one.window[0]) == "summary"
        await one.drain()


anyio.run(main)
