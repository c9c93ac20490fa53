"""One of several processes on one root: `keeper.py <root> <what> <log>`, told to go on by a line on its input.

Each extraction writes the ids of what it reads to the log, one line each.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

import ricordo.extraction.rules
from ricordo import Memory, Message, Scope
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.extraction import Finding, RuleExtractionConfig, Utterance, extract_from_utterances
from ricordo.jobs import Inbox
from ricordo.messages import Text
from ricordo.runtime import Settings

ROOT, WHAT, LOG = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
SCOPE = Scope(user="me", project="shop")
SETTINGS = Settings(root=None, user="me", data=ROOT.parent / "data", cache=ROOT.parent / "cache")


def logged(utterances: Sequence[Utterance], config: RuleExtractionConfig) -> tuple[Finding, ...]:
    descriptor = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, (" ".join(said.message_id for said in utterances) + "\n").encode())
    os.close(descriptor)
    if WHAT == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    return extract_from_utterances(utterances, config)


async def until_all_is_done() -> None:
    clock = SystemClock()
    inbox = Inbox(ROOT / "users" / "me" / "queue.db", clock=clock, ids=MonotonicIds(clock))
    while await inbox.jobs(states={"waiting", "running"}):  # noqa: ASYNC110 - other processes end them
        await anyio.sleep(0.01)
    await inbox.close()


async def main() -> None:
    vars(ricordo.extraction.rules)["extract_from_utterances"] = logged
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    async with Memory.open(ROOT, scope=SCOPE, settings=SETTINGS) as memory:
        if WHAT == "stay":
            await until_all_is_done()
        elif WHAT == "killed":
            said = Message(role="user", id="m1", parts=(Text(text="We deploy only from main."),))
            await memory.ingest([said], session="s1")


if __name__ == "__main__":
    anyio.run(main)
