"""One of several processes on one root: `writers_and_readers.py <root> <name> <role> <seconds>` tells what it did.

A writer saves, and writes down beside the root what was acknowledged; a reader picks something of that and asks for
it. What a reader does not find, though it was acknowledged before it asked, is told as lost. On a busy machine the
time can be over before the first act; each acts at least once.
"""

import os
import random
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio

from ricordo import Memory, Scope
from ricordo.errors import EntryNotFound
from ricordo.runtime import Settings

ROOT, NAME = Path(sys.argv[1]), sys.argv[2]
SCOPE = Scope(user="me", project="shop")
WRITERS = ("one", "two")
chance = random.Random(NAME)


def tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def opened() -> AbstractAsyncContextManager[Memory]:
    settings = Settings(root=None, user="me", data=Settings.from_environment().data, cache=ROOT.parent / "cache")
    return Memory.open(ROOT, scope=SCOPE, settings=settings)


def told(name: str) -> Path:
    return ROOT.parent / f"told-{name}"


def statement(name: str, number: int) -> str:
    return f"The number of {name} is {number}."


async def write(seconds: float) -> None:
    """Save one after the other, edit a topic by hand now and then, forget one of ten; open anew after fifty."""
    deadline, number = time.monotonic() + seconds, 0
    topic = ROOT / "workspace" / "memory" / "topics" / f"{NAME}.md"
    topic.parent.mkdir(parents=True, exist_ok=True)
    while not number or time.monotonic() < deadline:
        async with opened() as memory:
            for _ in range(50):
                if number and time.monotonic() >= deadline:
                    break
                entry = await memory.remember(statement(NAME, number))
                told(NAME).with_suffix(".new").write_text(str(number))
                os.replace(told(NAME).with_suffix(".new"), told(NAME))
                number += 1
                if number % 7 == 0:
                    topic.write_text(f"- The topic of {NAME} has {number} pages.\n")
                if number % 10 == 0:
                    await forget_another(memory, entry.id)
    tell(f"saved {number}")


async def forget_another(memory: Memory, last: str) -> None:
    """Save something and take it back."""
    gone = await memory.remember(f"Not for long, after {last}.")
    try:
        await memory.forget(gone.id)
    except EntryNotFound:
        tell("lost what was to be forgotten")


async def read(seconds: float) -> None:
    """Ask for something that was acknowledged, and for a topic; open anew after twenty."""
    deadline, asked, longest = time.monotonic() + seconds, 0, 0.0
    while not asked or time.monotonic() < deadline:
        async with opened() as memory:
            for _ in range(20):
                if asked and time.monotonic() >= deadline:
                    break
                name = chance.choice(WRITERS)
                if not told(name).exists():
                    await anyio.sleep(0.01)
                    continue
                last = int(told(name).read_text())
                number = chance.choice((last, chance.randrange(last + 1)))
                begun = time.monotonic()
                found = [hit.entry.content for hit in await memory.recall(f"number of {name} {number}", limit=10)]
                longest = max(longest, time.monotonic() - begun)
                if statement(name, number) not in found:
                    tell(f"lost {name} {number} of {last}")
                asked += 1
            if any(check.name == "index" and not check.ok for check in await memory.doctor()):
                tell("broken index")
    tell(f"asked {asked} {longest:.3f}")


ACTS: dict[str, Callable[[float], Awaitable[None]]] = {"write": write, "read": read}

if __name__ == "__main__":
    tell("ready")
    sys.stdin.readline()
    anyio.run(ACTS[sys.argv[3]], float(sys.argv[4]))
