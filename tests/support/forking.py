"""Work in forked children that may be killed, and the drivers that fork them.

A driver is a script of its own: forking wants a process without threads, and imports the package once for all children.
"""

import gc
import json
import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import anyio

import ricordo
from piped_processes import start_script

__all__ = ["Case", "Emit", "Killing", "drive", "driven", "in_child"]

Case: TypeAlias = dict[str, Any]
"""What a driver found in one case."""

Emit: TypeAlias = Callable[[str], None]
"""Tells the parent one line, which a kill right after it does not lose."""


class Killing:
    """Tells each step, and ends this process at the one with this name and number."""

    def __init__(self, step: str, at: int, emit: Emit) -> None:
        self._step = step
        self._left = at
        self._emit = emit

    def __call__(self, step: str) -> None:
        self._emit(f"step {step}")
        self._left -= step == self._step
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)


def in_child(work: Callable[[Emit], Awaitable[None]]) -> tuple[bool, list[str]]:
    """Run `work` in a forked child; return whether it lived to its end, and what it emitted."""
    readable, writable = os.pipe()

    def emit(text: str) -> None:
        os.write(writable, f"{text}\n".encode())

    child = os.fork()
    if child == 0:
        os.close(readable)
        try:
            anyio.run(work, emit)
        except BaseException:  # noqa: BLE001 - a forked child must not run on into its parent's code
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable, encoding="utf-8") as told:
        lines = told.read().splitlines()
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        sys.exit(f"the child failed after {lines[-3:]}")
    return os.WIFEXITED(status), lines


def drive(
    prepare: Callable[[Path], Awaitable[None]],
    case: Callable[[Path, Path, str, int], tuple[list[str], dict[str, object]]],
) -> None:
    """Be a driver: prepare a root, tell what an unharmed life comes to, then each life that ends at one of its steps.

    The arguments of the process are a folder and the steps, each as its name and, from the second time on, its number;
    without any all steps of the unharmed life.
    """
    folder, wanted = Path(sys.argv[1]), sys.argv[2:]
    print(json.dumps(ricordo.__file__), flush=True)
    anyio.run(anyio.sleep, 0)
    gc.freeze()
    prepared = folder / "prepared"
    prepared.mkdir()

    async def begin(_: Emit) -> None:
        await prepare(prepared / ".ricordo")

    in_child(begin)
    steps, told = case(prepared, folder / "0", "", -1)
    print(json.dumps({**told, "steps": steps}), flush=True)
    every = [(step, steps[: at + 1].count(step)) for at, step in enumerate(steps)]
    chosen = [
        (name.rstrip(" 0123456789"), int(name.rpartition(" ")[2]) if name[-1].isdigit() else 1) for name in wanted
    ]
    for number, (step, time) in enumerate(chosen or every, start=1):
        print(json.dumps(case(prepared, folder / str(number), step, time)[1]), flush=True)


def driven(script: Path, *arguments: object, seconds: float = 110) -> list[Case]:
    """Run a driver and return its cases: each of its lines but the first, which names the package that it drove."""
    with start_script(script, *arguments) as process:
        out, errors = process.communicate(timeout=seconds)
    assert process.returncode == 0, errors[-2000:]
    driver, *cases = [json.loads(line) for line in out.splitlines()]
    assert driver == ricordo.__file__, "the driver runs another package than the tests"
    return cases
