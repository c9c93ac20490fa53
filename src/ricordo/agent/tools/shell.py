"""shell: a command in the working directory, in the foreground or as a background task.

A person is asked each time unless a rule allows the call. Commands do not get variables that hold secrets. Only the
head and the tail of a long output are returned, in whole lines.

Invariant: when a command ends, is stopped or cancelled, every process of its group has been killed. If the agent's
process is killed, its commands run on; the record of a task names the process group.
"""

import math
import os
import signal
import subprocess
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

import anyio
import anyio.abc

from ricordo.agent.tools.contract import Approval, ApprovalHandler, Tool, ToolContext
from ricordo.agent.tools.function import tool
from ricordo.agent.tools.tasks import DELIVERY_NOTE, SessionTasks, first_line, short_id
from ricordo.concurrency import run_even_if_cancelled, run_to_completion
from ricordo.errors import InvalidSetting, ToolFailed
from ricordo.guard import has_secret
from ricordo.guard.keyword_secrets import name_strength
from ricordo.jobs.tasks.contract import ReportProgress, TaskProgress
from ricordo.lazy import dataclass, lazy_compile

__all__ = ["HeadTailBuffer", "drop_secret_variables", "shell_tool"]


_LINE_ENDS = (b"\n", b"\r")
_PRIVATE_KEY_BORDER = lazy_compile(rb"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[^\r\n]*[\r\n]*")


class HeadTailBuffer:
    """Collects the head and the tail of an output."""

    def __init__(self, max_bytes: int) -> None:
        """Store at most `max_bytes` bytes, half from the beginning and half from the end."""
        self.lines = 0
        self._half = max(max_bytes // 2, 1)
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._size = 0

    def add(self, chunk: bytes) -> None:
        """Add the next bytes."""
        self._size += len(chunk)
        self.lines += chunk.count(b"\n")
        remaining = self._half - len(self._head)
        self._head += chunk[:remaining]
        if rest := chunk[remaining:]:
            self._tail.append(rest)
            self._tail_size += len(rest)
        # One more byte shows whether the tail starts at a line start.
        while self._tail and self._tail_size - len(self._tail[0]) > self._half:
            self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        """Return the stored output, with a notice in place of the omitted part.

        A line ends with a line feed or a carriage return. A line that is longer than its half is omitted whole.
        """
        if self._size <= 2 * self._half:
            return b"".join([bytes(self._head), *self._tail]).decode("utf-8", "replace")
        head = bytes(self._head)
        head = head[: max(head.rfind(end) for end in _LINE_ENDS) + 1]
        tail = self._whole_tail()
        left_out = self._size - len(head) - len(tail)
        long = "" if head and tail else ", a line that is too long among them"
        notice = f"[… {left_out:,} bytes left out{long} …]\n"
        border = "" if not head or head.endswith(b"\n") else "\n"
        return f"{head.decode('utf-8', 'replace')}{border}{notice}{tail.decode('utf-8', 'replace')}"

    def _whole_tail(self) -> bytes:
        """Return the lines of the last half, without a partial first line and without a partial private key."""
        tail = b"".join(self._tail)[-self._half - 1 :]
        starts = [position + 1 for end in _LINE_ENDS if (position := tail.find(end)) >= 0]
        tail = tail[min(starts) :] if starts else b""
        key = _PRIVATE_KEY_BORDER.search(tail)
        return tail[key.end() :] if key and key[1] == b"END" else tail


_MAX_SECONDS = 3_600.0
_MAX_BACKGROUND_BYTES = 99_800
"""Maximum bytes of the output; its notices have to fit into the result of a task too."""
_GRACE_SECONDS = 0.5
_SECRET_WORDS = frozenset(
    {"AUTH", "AUTHORIZATION", "BEARER", "COOKIE", "COOKIES", "CRED", "CREDS", "DSN", "JWT", "PAT", "SALT", "SEED"}
)
"""Last words of the names of variables that hold secrets."""
_WORKING_DIRECTORY_VARIABLES = frozenset({"PWD", "OLDPWD"})


@dataclass(frozen=True, kw_only=True)
class _CommandRunner:
    """The common options of all commands of one tool."""

    folder: Path
    approve: ApprovalHandler | None
    seconds: float
    max_bytes: int
    environment: Mapping[str, str] | None

    async def prepare(
        self,
        command: str,
        context: ToolContext,
        requested_seconds: float | None,
        *,
        default_seconds: float,
        max_bytes: int,
    ) -> Callable[[ReportProgress], Awaitable[str]]:
        """Return a function that runs the command for `requested_seconds` or `default_seconds` seconds. Raises:
        ToolFailed if refused.
        """
        try:
            seconds = default_seconds if requested_seconds is None else _check_seconds(requested_seconds)
        except InvalidSetting as error:
            raise ToolFailed(str(error)) from error
        if not context.approved:
            await self._ask_approval(command)
        variables = drop_secret_variables(os.environ) if self.environment is None else dict(self.environment)
        return partial(_run_command, command, self.folder, variables, seconds=seconds, output=HeadTailBuffer(max_bytes))

    async def run_and_wait(self, command: str, context: ToolContext, requested_seconds: float | None) -> str:
        """Run a command and wait for it. Raises as `prepare`."""
        run = await self.prepare(
            command, context, requested_seconds, default_seconds=self.seconds, max_bytes=self.max_bytes
        )
        return await run(_ignore_progress)

    async def _ask_approval(self, command: str) -> None:
        if self.approve is None:
            raise ToolFailed("A command needs a person's approval, and there is nobody to ask: it was not run.")
        if not await self.approve(Approval(tool="shell", action="run", target=command)):
            raise ToolFailed("The command was not approved: it was not run.")


_Command = Annotated[str, "the command line, as typed into a shell in the working directory"]
_Timeout = Annotated[float | None, "seconds after which it is stopped"]


def shell_tool(
    folder: Path,
    approve: ApprovalHandler | None,
    *,
    timeout: float = 120.0,
    most_characters: int = 400_000,
    environment: Mapping[str, str] | None = None,
    tasks: SessionTasks | None = None,
) -> Tool:
    """Return the tool for commands in `folder`; `approve` is asked for each, and without it commands are refused.

    A call may set a time limit other than `timeout` seconds, up to an hour. At most `most_characters` bytes of the
    output are returned, half from its beginning and half from its end, in whole lines. Commands get the variables in
    `environment`, by default those of this process that `drop_secret_variables` keeps. With `tasks` a call may run in
    the background, by default for an hour; then at most 100,000 bytes are returned, including notices. Raises
    `InvalidSetting`.
    """
    if most_characters < 2:
        raise InvalidSetting(f"The output of a command has a beginning and an end: not {most_characters} characters.")
    commands = _CommandRunner(
        folder=folder,
        approve=approve,
        seconds=_check_seconds(timeout),
        max_bytes=most_characters,
        environment=environment,
    )
    return _plain_shell_tool(commands) if tasks is None else _background_shell_tool(commands, tasks)


def _plain_shell_tool(commands: _CommandRunner) -> Tool:
    async def shell(command: _Command, context: ToolContext, timeout: _Timeout = None) -> str:  # noqa: ASYNC109
        """Run a command and return its output and exit code. A person is asked first.

        It gets no input, and what it leaves running in the background is stopped when it ends.
        """
        return await commands.run_and_wait(command, context, timeout)

    return tool(shell)


def _background_shell_tool(commands: _CommandRunner, tasks: SessionTasks) -> Tool:
    async def shell(
        command: _Command,
        context: ToolContext,
        timeout: _Timeout = None,  # noqa: ASYNC109  (the model's)
        background: Annotated[bool, "go on without waiting for it; it may take an hour then"] = False,
    ) -> str:
        """Run a command and return its output and exit code. A person is asked first.

        It gets no input, and what it leaves running is stopped when it ends. For what takes long, set background.
        """
        if not background:
            return await commands.run_and_wait(command, context, timeout)
        max_bytes = min(commands.max_bytes, _MAX_BACKGROUND_BYTES)
        run = await commands.prepare(command, context, timeout, default_seconds=_MAX_SECONDS, max_bytes=max_bytes)
        task = await tasks.start("local_bash", first_line(command) or "an empty command", run)
        return f"The command runs in the background as task {short_id(task)}. {DELIVERY_NOTE}"

    return tool(shell)


def _ignore_progress(progress: TaskProgress) -> None:
    """Ignore the progress of a foreground command."""


def drop_secret_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables whose name and value do not look like a secret."""
    return {name: value for name, value in environment.items() if not _is_secret(name, value)}


def _is_secret(name: str, value: str) -> bool:
    # The variable of the working directory has a name like that of a password.
    if name in _WORKING_DIRECTORY_VARIABLES:
        return False
    singular = name[:-1] if name.endswith(("S", "s")) else name
    last = name.upper().rpartition("_")[2]
    has_secret_name = (
        name_strength(name) or name_strength(singular) or last in _SECRET_WORDS or singular.upper().endswith("_KEY")
    )
    return bool(value) and bool(has_secret_name or has_secret(f"{name}={value}"))


def _check_seconds(seconds: float) -> float:
    if not 0 < seconds <= _MAX_SECONDS or not math.isfinite(seconds):
        raise InvalidSetting(f"A command has a timeout above 0 and up to {_MAX_SECONDS:g} seconds: not {seconds:g}.")
    return seconds


async def _run_command(
    command: str,
    folder: Path,
    variables: Mapping[str, str],
    report: ReportProgress,
    *,
    seconds: float,
    output: HeadTailBuffer,
) -> str:
    processes: list[anyio.abc.Process] = []

    async def begin() -> None:
        processes.append(
            await anyio.open_process(
                command,
                cwd=folder,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        )

    try:
        # The process starts before this returns, so a cancellation in between would leave it running.
        await run_to_completion(begin)
        report(TaskProgress(text=f"process {processes[0].pid}"))
        with anyio.move_on_after(seconds):
            await _read_output(processes[0], output, report)
    finally:
        stopped = [await _stop_process(process) for process in processes]
    text = output.text()
    end = f"stopped after {seconds:g} seconds" if any(stopped) else f"exit code {processes[0].returncode}"
    return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}[{end}]"


async def _stop_process(process: anyio.abc.Process) -> bool:
    """Kill all processes of a command, also on cancellation; return whether it was still running."""
    runs = process.returncode is None
    _kill_group(process)
    await run_even_if_cancelled(process.aclose)
    return runs


async def _read_output(process: anyio.abc.Process, output: HeadTailBuffer, report: ReportProgress) -> None:
    """Read the output until the process ends and shortly after, as its child processes may hold the output open."""
    stream = process.stdout
    assert stream is not None

    async def read() -> None:
        async for chunk in stream:
            output.add(chunk)
            summary = f"{output.lines:,} line{'' if output.lines == 1 else 's'} of output"
            report(TaskProgress(done=output.lines, text=f"{summary}, process {process.pid}"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await process.wait()
        tasks.cancel_scope.deadline = anyio.current_time() + _GRACE_SECONDS


def _kill_group(process: anyio.abc.Process) -> None:
    """Kill the process group, or only the process if there are no groups."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        return
