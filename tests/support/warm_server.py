"""Fork a process for each request, with the package and what it needs imported already.

Started by `warm_processes` as a script, with a listening Unix socket and the read end of a pipe that ends with who
started it. A request is a length in eight bytes, sent with the file descriptors 0, 1 and 2 of the new process, and then
its fields, each ended by a zero byte: `session` for a session of its own or nothing, the working directory, the number
of arguments, the arguments, and the environment. The answer is the process's id on a line, and at its end its wait
status on another one. Who closes the connection before that end kills the process.

Invariants: this process has one thread, so that it may be forked at any time. A child is as a new interpreter would be
in all but its hash seed, its locale, what is imported, and what was used once.
"""

import atexit
import builtins
import fcntl
import gc
import hashlib
import importlib
import os
import runpy
import select
import signal
import socket
import sys
import tempfile
import termios
import threading
import time
import types
from contextlib import suppress
from dataclasses import dataclass, field
from io import BufferedReader, BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from typing import NoReturn, TextIO

__all__: list[str] = []

_LENGTH_BYTES = 8
_IMPORTED = (
    "anyio._backends._asyncio",
    "asyncio",
    "openai.resources.chat.completions",
    "pydantic_ai.models.openai",
    "pydantic_ai.models.test",
    "sqlite3",
)
"""What is slow to import and not imported by importing the package."""


@dataclass(frozen=True, kw_only=True)
class _Request:
    """What is to be run, and where."""

    session: bool
    folder: bytes
    arguments: list[str]
    environment: dict[bytes, bytes]
    descriptors: list[int]


@dataclass(kw_only=True)
class _Life:
    """A child: `over` is a pipe that ends with it."""

    child: int
    connection: socket.socket
    is_heard: bool = field(default=True)


def _serve(listening: socket.socket, parent: int) -> _Request:
    """Fork a child for each request; returns in the children only, with what each is to do."""
    lives: dict[int, _Life] = {}
    while True:
        heard = [each.connection for each in lives.values() if each.is_heard]
        watched: list[int | socket.socket] = [listening, parent, *lives, *heard]
        ready, _, _ = select.select(watched, [], [])
        if parent in ready:
            _leave(lives)
        for connection in (each for each in heard if each in ready):
            _abandon(lives, connection)
        for over in [each for each in lives if each in ready]:
            _tell_end(lives.pop(over))
            os.close(over)
        if listening in ready and (request := _begun(lives, listening.accept()[0])):
            for over, life in lives.items():
                os.close(over)
                life.connection.close()
            listening.close()
            os.close(parent)
            return request


def _begun(lives: dict[int, _Life], connection: socket.socket) -> _Request | None:
    """Fork the child of a connection; returns its request in the child and None in the server."""
    request = _received(connection)
    over, alive = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(over)
        connection.close()
        return request
    os.close(alive)
    for descriptor in request.descriptors:
        os.close(descriptor)
    lives[over] = _Life(child=child, connection=connection)
    _tell(connection, child)
    return None


def _received(connection: socket.socket) -> _Request:
    head, descriptors, _, _ = socket.recv_fds(connection, _LENGTH_BYTES, 3)
    length, received = int(head), b""
    while len(received) < length:
        piece = connection.recv(length - len(received))
        if not piece:
            raise ConnectionError("a request without its end")
        received += piece
    session, folder, count, *rest = received.split(b"\0")[:-1]
    variables = (each.partition(b"=") for each in rest[int(count) :])
    return _Request(
        session=bool(session),
        folder=folder,
        arguments=[os.fsdecode(each) for each in rest[: int(count)]],
        environment={name: value for name, _, value in variables},
        descriptors=descriptors,
    )


def _tell(connection: socket.socket, number: int) -> None:
    try:
        connection.sendall(b"%d\n" % number)
    except OSError:
        connection.close()


def _tell_end(life: _Life) -> None:
    _, status = os.waitpid(life.child, 0)
    _tell(life.connection, status)
    life.connection.close()


def _abandon(lives: dict[int, _Life], connection: socket.socket) -> None:
    """Kill the child of a connection that was closed at its other side."""
    life = next(each for each in lives.values() if each.connection is connection)
    life.is_heard = False
    os.kill(life.child, signal.SIGKILL)


def _leave(lives: dict[int, _Life]) -> NoReturn:
    for life in lives.values():
        os.kill(life.child, signal.SIGKILL)
    os._exit(0)


def _become(request: _Request) -> None:
    """Turn this child into what a new process finds itself as."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request.session:
        # the end of a terminal is heard, also where the tests run under nohup
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.setsid()
        if os.isatty(request.descriptors[0]):
            fcntl.ioctl(request.descriptors[0], termios.TIOCSCTTY, 0)
    for number, descriptor in enumerate(request.descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update({os.fsdecode(name): os.fsdecode(value) for name, value in request.environment.items()})
    time.tzset()
    tempfile.tempdir = None
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = _like(getattr(sys, name), number)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _like(stream: TextIO, number: int) -> TextIO:
    """Return a standard stream that knows what its descriptor is now, and is else as the interpreter made it."""
    mode, unbuffered = "w" if number else "r", bool(os.environ.get("PYTHONUNBUFFERED"))
    by_line = not unbuffered and (number == 2 or os.isatty(number))
    raw = FileIO(number, mode, closefd=False)
    raw.name = stream.name
    buffered = BufferedWriter(raw) if number else BufferedReader(raw)
    made = TextIOWrapper(buffered, stream.encoding, stream.errors, "\n", by_line, unbuffered)
    made.mode = mode  # type: ignore[misc]
    return made


def _run(arguments: list[str]) -> None:
    """Be the command `ricordo`, or an interpreter with these arguments."""
    program, *rest = arguments
    if Path(program).name == "ricordo":
        sys.argv = arguments
        sys.path.insert(0, str(Path(sys.executable).parent))
        importlib.import_module("ricordo.cli.main").run()
    elif rest[0] == "-c":
        sys.argv = ["-c", *rest[2:]]
        sys.path.insert(0, "")
        module = types.ModuleType("__main__")
        vars(module).update(__builtins__=builtins, __annotations__={})
        sys.modules["__main__"] = module
        exec(compile(rest[1], "<string>", "exec"), module.__dict__)
    elif rest[0] == "-m":
        sys.argv = rest[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(rest[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = rest
        sys.path.insert(0, str(Path(rest[0]).resolve().parent))
        runpy.run_path(rest[0], run_name="__main__")


def _end(request: _Request) -> NoReturn:
    """Do what was asked for, and end as an interpreter does, but for tidying up memory that goes anyway."""
    status = 0
    try:
        _become(request)
        _run(request.arguments)
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        if isinstance(leaving.code, str):
            print(leaving.code, file=sys.stderr)
    except BaseException as error:  # noqa: BLE001 - as at the end of an interpreter
        sys.excepthook(type(error), error, error.__traceback__)
        status = 1
        if isinstance(error, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        status = 120
    os._exit(status & 0xFF)


def _prepare() -> None:
    # what is imported stays, so nothing is gained by going through it as it becomes more
    gc.disable()
    sys.path.pop(0)
    for name in _IMPORTED:
        importlib.import_module(name)
    package = importlib.import_module("ricordo")
    missing = importlib.import_module("ricordo.errors").ExtraMissing
    folder = Path(str(package.__file__)).parent
    for path in sorted(folder.rglob("*.py")):
        name = ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__")
        if not name.endswith("__main__"):
            # an adapter needs its framework, which is not installed here
            with suppress(missing):
                importlib.import_module(name)
    _use_once()
    gc.freeze()
    gc.enable()


def _use_once() -> None:
    """Do what takes long at its first use: compile the patterns of what is worth remembering, and begin to hash."""
    hashlib.sha256(b"")
    messages = importlib.import_module("ricordo.messages")
    said = messages.Message(role="user", parts=(messages.Text(text="We decided to use PostgreSQL. I prefer tea."),))
    importlib.import_module("ricordo.extraction.rules").extract([said])
    importlib.import_module("ricordo.language.acts").default_detector().detect(said.text)


if __name__ == "__main__":
    _prepare()
    _end(_serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])))
