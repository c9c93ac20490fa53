"""One of several processes on one root: `writer.py <root> <name> <what> <amount>` tells what was acknowledged."""

import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio

from ricordo import Memory, Message, Scope
from ricordo.messages import Text
from ricordo.runtime import Settings

ROOT, NAME = Path(sys.argv[1]), sys.argv[2]
SCOPE = Scope(user="me", project="shop")


def tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def opened() -> AbstractAsyncContextManager[Memory]:
    settings = Settings(root=None, user="me", data=Settings.from_environment().data, cache=ROOT.parent / "cache")
    return Memory.open(ROOT, scope=SCOPE, settings=settings)


async def save(count: float) -> None:
    """Save `count` memories."""
    async with opened() as memory:
        tell("ready")
        sys.stdin.readline()
        for number in range(int(count)):
            await memory.remember(f"The number of {NAME} is {number}.")
            tell(f"saved {number}")


async def ingest(count: float) -> None:
    """Ingest and save until killed."""
    async with opened() as memory:
        tell("ready")
        for number in range(int(count)):
            said = f"I prefer the colour {NAME}-{number} over all others."
            await memory.ingest([Message(role="user", parts=(Text(text=said),))], session="shared")
            tell(f"ingested {said}")
            await memory.remember(f"The number of {NAME} is {number}.")
            tell(f"saved {number}")


async def everything(seconds: float) -> None:
    """Open, write, search, forget and close again and again for so long, and at least once."""
    tell("ready")
    sys.stdin.readline()
    deadline, number = time.monotonic() + seconds, 0
    while not number or time.monotonic() < deadline:
        async with opened() as memory:
            for _ in range(3):
                entry = await memory.remember(f"The number of {NAME} is {number}.")
                hits = await memory.recall(f"number of {NAME} {number}", limit=20)
                tell(f"saved {number}")
                if not any(hit.entry.id == entry.id for hit in hits):
                    tell(f"not found {number}")
                said = f"We decided to use {NAME}-{number} for all orders."
                await memory.ingest([Message(role="user", parts=(Text(text=said),))], session=f"shared-{number % 2}")
                tell(f"ingested {said}")
                await memory.search("orders")
                number += 1
            await memory.preamble()
            trouble = [check for check in await memory.doctor() if not check.ok]
            if trouble:
                tell(f"trouble {trouble}")


ACTS: dict[str, Callable[[float], Awaitable[None]]] = {"save": save, "ingest": ingest, "everything": everything}

if __name__ == "__main__":
    anyio.run(ACTS[sys.argv[3]], float(sys.argv[4]))
