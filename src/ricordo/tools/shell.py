"""shell: a command in the working directory. It is built only when asked for, and asks a person every time.

A command does not get the variables of this process that hold secrets, such as the keys of models: who approves it
sees what it is, and not what it would read there.

Invariant: when a call ends, by itself, by its timeout or cancelled, every process of the command's group has been
killed; one that left the group on purpose is not known.
"""

import math
import os
import signal
import subprocess
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import anyio
import anyio.abc

from ricordo.errors import InvalidSetting, ToolFailed
from ricordo.guard import has_secret
from ricordo.guard.named import name_strength
from ricordo.tools.contract import Approval, Approve, Tool
from ricordo.tools.function import tool

__all__ = ["shell_tool", "without_secrets"]

_LONGEST_SECONDS = 3_600.0
_GRACE_SECONDS = 0.5
_WORKING_DIRECTORY = frozenset({"PWD", "OLDPWD"})


class _HeadAndTail:
    """The first and the last bytes of an output, in bounded memory."""

    def __init__(self, most: int) -> None:
        self._half = max(most // 2, 1)
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._size = 0

    def add(self, chunk: bytes) -> None:
        self._size += len(chunk)
        room = self._half - len(self._head)
        self._head += chunk[:room]
        if rest := chunk[room:]:
            self._tail.append(rest)
            self._tail_size += len(rest)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._half:
            self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        tail = b"".join(self._tail)[-self._half :]
        left_out = self._size - len(self._head) - len(tail)
        middle = f"\n[… {left_out:,} bytes left out …]\n" if left_out else ""
        if not middle:
            return bytes(self._head + tail).decode("utf-8", "replace")
        return self._head.decode("utf-8", "replace") + middle + tail.decode("utf-8", "replace")


def shell_tool(
    folder: Path,
    approve: Approve | None,
    *,
    timeout: float = 120.0,
    most_characters: int = 400_000,
    environment: Mapping[str, str] | None = None,
) -> Tool:
    """Return the tool for commands in `folder`; each is shown to `approve` first, and without one refused.

    A call may ask for more or less than `timeout` seconds, up to an hour. Of the output, at most `most_characters`
    bytes are kept, half from its beginning and half from its end. Commands get the variables of `environment`, by
    default those of this process that `without_secrets` leaves. Raises `InvalidSetting`.
    """
    if most_characters < 2:
        raise InvalidSetting(f"The output of a command has a beginning and an end: not {most_characters} characters.")
    standard = _checked(timeout)

    async def shell(
        command: Annotated[str, "the command line, as typed into a shell in the working directory"],
        timeout: Annotated[float | None, "seconds after which it is stopped"] = None,  # noqa: ASYNC109  (the model's)
    ) -> str:
        """Run a command and return its output and exit code. A person is asked first.

        It gets no input, and what it leaves running in the background is stopped when it ends.
        """
        try:
            seconds = standard if timeout is None else _checked(timeout)
        except InvalidSetting as error:
            raise ToolFailed(str(error)) from error
        if approve is None:
            raise ToolFailed("A command needs a person's approval, and there is nobody to ask: it was not run.")
        if not await approve(Approval(tool="shell", act="run", target=command)):
            raise ToolFailed("The command was not approved: it was not run.")
        variables = without_secrets(os.environ) if environment is None else dict(environment)
        return await _run(command, folder, variables, seconds, _HeadAndTail(most_characters))

    return tool(shell)


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that neither by their name nor by their value look like a secret."""
    return {name: value for name, value in environment.items() if not _is_secret(name, value)}


def _is_secret(name: str, value: str) -> bool:
    # the working directory is called like a password
    if name in _WORKING_DIRECTORY:
        return False
    named = name_strength(name) is not None or name.upper().endswith("_KEY")
    return bool(value) and (named or has_secret(f"{name}={value}"))


def _checked(seconds: float) -> float:
    if not 0 < seconds <= _LONGEST_SECONDS or not math.isfinite(seconds):
        raise InvalidSetting(
            f"A command has a timeout above 0 and up to {_LONGEST_SECONDS:g} seconds: not {seconds:g}."
        )
    return seconds


async def _run(command: str, folder: Path, variables: Mapping[str, str], seconds: float, output: _HeadAndTail) -> str:
    process = await anyio.open_process(
        command,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        with anyio.move_on_after(seconds):
            await _listen(process, output)
    finally:
        stopped = process.returncode is None
        _kill(process)
        with anyio.CancelScope(shield=True):
            await process.aclose()
    said = output.text()
    end = f"stopped after {seconds:g} seconds" if stopped else f"exit code {process.returncode}"
    return f"{said}{'' if said.endswith(chr(10)) or not said else chr(10)}[{end}]"


async def _listen(process: anyio.abc.Process, output: _HeadAndTail) -> None:
    """Take in what the process says until it ends, and shortly after: what it left running may hold its output."""
    stream = process.stdout
    assert stream is not None

    async def read() -> None:
        async for chunk in stream:
            output.add(chunk)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await process.wait()
        tasks.cancel_scope.deadline = anyio.current_time() + _GRACE_SECONDS


def _kill(process: anyio.abc.Process) -> None:
    """Kill the process and all that it started in its group; where there are no groups, the process."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        return
