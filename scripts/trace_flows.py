"""Count the source files that four everyday acts enter: `python scripts/trace_flows.py [--files]`.

The acts are the second `send` of an agent without a model's server, `remember`, `recall`, and the consolidation of one
day. Each runs once before it is traced, so that what only the first one loads is not counted, and neither is what loads
it; work in other threads is. Each is traced three times and the smallest trace counts, because on a busy machine work
that an earlier act left to a thread can run while a later one is traced.
"""

import asyncio
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from ricordo import HarnessAgent, Memory, Scope
from ricordo.runtime import Settings

__all__ = ["FLOWS", "Trace", "main", "trace_flows"]

FLOWS = ("send", "remember", "recall", "consolidate")
PACKAGE = str(Path(__file__).resolve().parents[1] / "src" / "ricordo") + "/"
LOADER = f"{PACKAGE}lazy.py"
PLACES = ("staging", "harbour", "museum")
SCOPE = Scope(user="me", project="shop")


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The files of the package that an act entered, relative to it and in order, and how many functions ran."""

    files: tuple[str, ...]
    functions: int


def main() -> None:
    """Print the number of files, rooms and functions of each act."""
    for name, trace in asyncio.run(trace_flows()).items():
        rooms = {file.split("/")[0] for file in trace.files}
        print(f"{name}: {len(trace.files)} files of {len(rooms)} rooms, {trace.functions} functions")
        if "--files" in sys.argv[1:]:
            print(*(f"  {file}" for file in trace.files), sep="\n")


async def trace_flows() -> dict[str, Trace]:
    """Return the trace of each of `FLOWS`."""
    tracer, folder, found = _Tracer(), tempfile.TemporaryDirectory(), dict[str, Trace]()
    # threads are kept and used again, so each is watched from its beginning
    threading.setprofile(tracer.note)
    sys.setprofile(tracer.note)
    try:
        base = Path(folder.name)
        settings = Settings(root=base / "root", user="me", data=base / "data", cache=base / "cache", flush=None)
        async with Memory.open(base / "root", scope=SCOPE, settings=settings) as memory:
            await memory.remember("We deploy from the branch called orchard.")
            found["remember"] = await tracer.trace(lambda at: memory.remember(f"The {at} gateway listens on 9494."))
            await memory.recall("Which branch do we deploy from?")
            found["recall"] = await tracer.trace(lambda at: memory.recall(f"Where does the {at} gateway listen?"))
        async with HarnessAgent("offline", memory=base / "root", scope=SCOPE, settings=settings) as agent:
            await agent.send("Which branch do we deploy from?")
            found["send"] = await tracer.trace(lambda at: agent.send(f"Where does the {at} gateway listen?"))
            await agent.consolidate()

            async def save_order(at: str) -> None:
                async with Memory.open(base / "root", scope=SCOPE, settings=settings) as memory:
                    await memory.remember(f"The {at} orders database is MariaDB.")

            found["consolidate"] = await tracer.trace(lambda _: agent.consolidate(), prepare=save_order)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # None ends it, as the documentation says
        folder.cleanup()
    return {name: found[name] for name in FLOWS}


class _Tracer:
    """Notes each function of the package that begins while an act is traced, in whatever thread."""

    def __init__(self) -> None:
        self._entered: set[tuple[str, str, int]] | None = None

    async def trace(
        self, act: Callable[[str], Awaitable[object]], *, prepare: Callable[[str], Awaitable[object]] | None = None
    ) -> Trace:
        """Return the smallest trace of the act, which is given another place each time; `prepare` is not traced."""
        traces = []
        for place in PLACES:
            if prepare is not None:
                await prepare(place)
            entered = self._entered = set()
            try:
                await act(place)
            finally:
                self._entered = None
            traces.append(Trace(files=tuple(sorted({file for file, _, _ in entered})), functions=len(entered)))
        return min(traces, key=lambda trace: (len(trace.files), trace.functions))

    def note(self, frame: FrameType, event: str, argument: object) -> None:
        del argument
        entered, code = self._entered, frame.f_code
        if (
            entered is not None
            and event == "call"
            and code.co_filename.startswith(PACKAGE)
            and code.co_filename != LOADER
            and code.co_name != "<module>"
        ):
            entered.add((code.co_filename.removeprefix(PACKAGE), code.co_name, code.co_firstlineno))


if __name__ == "__main__":
    main()
