"""Processes of the command line, and of Python code, that begin with everything imported.

They are forked from one server a test process, which starts with the first of them. Such a process is one of its own in
what tests look at: its id, its signals, its terminal, its environment, its streams, and how it ends. What is about an
interpreter's start belongs to real ones, and so does code that shows that it imports what it needs.
"""

import atexit
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self

__all__ = ["WarmProcess", "executables", "run_warm"]

_SERVER = Path(__file__).with_name("warm_server.py")
_STARTING = Lock()
_FROM_THE_TESTS = ("LANG", "LC_ALL", "LC_CTYPE", "PATH", "PYTHONPATH", "SYSTEMROOT", "VIRTUAL_ENV")
# Only built-in modules: this is the process for whose start a shell waits.
_EXECUTABLE = """#!{python} -IS
import _socket, posix, sys
from array import array
fields = [b"", posix.getcwdb(), b"%d" % len(sys.argv), b"ricordo"]
fields += [each.encode("utf-8", "surrogateescape") for each in sys.argv[1:]]
fields += [b"%s=%s" % each for each in posix.environ.items()]
asked = b"".join(each + bytes(1) for each in fields)
connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
connection.connect({address!r})
rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array("i", [0, 1, 2]))
connection.sendmsg([b"%08d" % len(asked)], [rights])
while asked:
    asked = asked[connection.send(asked):]
told = b""
while piece := connection.recv(64):
    told += piece
status = int(told.split()[1])
if posix.WIFSIGNALED(status):
    posix.kill(posix.getpid(), posix.WTERMSIG(status))
posix._exit(posix.WEXITSTATUS(status))
"""


class WarmProcess:
    """A process that the server forked: `ricordo` or `python`, and its arguments.

    What is here of the methods of `subprocess.Popen` does as it does there.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        streams: tuple[int, int, int],
        start_new_session: bool = False,
        folder: Path | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """Begin it, with these file descriptors as its standard streams; the terminal of a new session is the first.

        It has the folder and the environment of the test unless others are given.
        """
        fields = ["session" if start_new_session else "", str(folder or Path.cwd()), str(len(arguments)), *arguments]
        fields += [f"{name}={value}" for name, value in environment.items()]
        asked = b"".join(os.fsencode(each) + b"\0" for each in fields)
        self.returncode: int | None = None
        self._told = b""
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(_address()))
        socket.send_fds(self._connection, [b"%08d" % len(asked)], list(streams))
        self._connection.sendall(asked)
        self.pid = self._number(None)

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(self._number(timeout))
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.wait()

    def _number(self, seconds: float | None) -> int:
        """Return the next number that the server tells, which is waited for."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self._told:
            left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            self._connection.settimeout(left)
            try:
                piece = self._connection.recv(64)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired("a warm process", seconds or 0.0) from None
            assert piece, "the server of warm processes ended"
            self._told += piece
        line, _, self._told = self._told.partition(b"\n")
        return int(line)


def run_warm(
    arguments: Sequence[str],
    *,
    given: bytes = b"",
    folder: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    timeout: float = 60.0,
) -> subprocess.CompletedProcess[str]:
    """Run `ricordo` or `python` to its end, with what it is `given` to read, and return what it printed."""
    with tempfile.TemporaryFile() as read, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        read.write(given)
        read.seek(0)
        streams = (read.fileno(), out.fileno(), err.fileno())
        process = WarmProcess(arguments, streams=streams, folder=folder, environment=environment)
        code = process.wait(timeout)
        printed = []
        for file in (out, err):
            file.seek(0)
            printed.append(file.read().decode("utf-8"))
    return subprocess.CompletedProcess(list(arguments), code, *printed)


def executables() -> Path:
    """Return a folder with a program `ricordo` for shells, which is and ends as what the server forks for it."""
    return _address().parent


def _address() -> Path:
    """Return where the server listens, which is started at the first call; threads may be the first to ask."""
    with _STARTING:
        return _start_server()


@cache
def _start_server() -> Path:
    """Start the server, which ends with this process; return where it listens."""
    folder = Path(tempfile.mkdtemp(prefix="warm-"))
    address = folder / "server"
    ours, theirs = os.pipe()[::-1]
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(address))
        listening.listen(64)
        server = subprocess.Popen(
            [sys.executable, str(_SERVER), str(listening.fileno()), str(theirs)],
            pass_fds=(listening.fileno(), theirs),
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            cwd=folder,
            start_new_session=True,
        )
    os.close(theirs)
    executable = folder / "ricordo"
    executable.write_text(_EXECUTABLE.format(python=sys.executable, address=str(address)), encoding="utf-8")
    executable.chmod(0o755)

    def end() -> None:
        os.close(ours)
        server.wait()
        shutil.rmtree(folder)

    atexit.register(end)
    return address


def _environment(home: Path) -> dict[str, str]:
    """Return what imports may see: nothing of the person, and nothing of the test that comes first."""
    kept = {name: os.environ[name] for name in _FROM_THE_TESTS if name in os.environ}
    # a library that computes in threads must not have begun them before a fork
    return kept | {"HOME": str(home), "TERM": "dumb", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
