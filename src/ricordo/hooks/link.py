"""The private socket between the process of a hook and one that has the memory open: its client, and its protocol.

One line of JSON goes each way. Only the user can use the folder of the socket, and each side checks who is at the other
end, where the system tells. Without an answer in time the hook goes on without one.
"""

import json
import os
import socket
import stat
import struct
from typing import TYPE_CHECKING

from ricordo.hooks.contract import HookAnswer, HookEvent

if TYPE_CHECKING:
    from ricordo.hooks.places import Place

__all__ = [
    "ANSWER_SECONDS",
    "MAX_LINE_BYTES",
    "ask_server",
    "encode_answer",
    "encode_event",
    "is_own_folder",
    "is_own_peer",
    "is_usable_path",
    "parse_answer",
    "parse_event",
]


ANSWER_SECONDS = 2.0
"""How long a hook waits for an answer, and the server works on one."""
MAX_LINE_BYTES = 1_000_000
"""How long the line of an event or an answer can be."""
_CONNECT_SECONDS = 0.25
_MAX_PATH_BYTES = 100
_CHUNK = 65_536


def ask_server(place: "Place", event: HookEvent) -> HookAnswer | None:
    """Return the answer of the process that serves a place; None if none does, or not in time."""
    path = place.socket_path
    if not (hasattr(socket, "AF_UNIX") and os.path.exists(path) and is_usable_path(path) and is_own_folder(path)):
        return None
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_CONNECT_SECONDS)
            connection.connect(path)
            if not is_own_peer(connection):
                return None
            connection.settimeout(ANSWER_SECONDS)
            connection.sendall(encode_event(event))
            return parse_answer(_receive_line(connection))
    except OSError:
        return None


def is_usable_path(path: str) -> bool:
    """Return whether a socket can have this path: systems allow about a hundred bytes."""
    return len(os.fsencode(path)) <= _MAX_PATH_BYTES


def is_own_folder(path: str) -> bool:
    """Return whether the folder of a socket is a real one that only this user can use."""
    try:
        status = os.lstat(os.path.dirname(path))
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o077


def is_own_peer(connection: socket.socket) -> bool:
    """Return whether the process at the other end runs as this user; true where the system has no such call."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    size = struct.calcsize("3i")
    _, owner, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return bool(owner == os.geteuid())


def encode_event(event: HookEvent) -> bytes:
    """Return the line that asks about an event."""
    return json.dumps({"version": 1, "event": event._asdict()}).encode("ascii") + b"\n"


def parse_event(line: bytes) -> HookEvent | None:
    """Return the event of a line; None for anything else."""
    try:
        values = json.loads(line)["event"]
        return HookEvent(**{name: str(value) for name, value in values.items() if name in HookEvent._fields})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def encode_answer(answer: HookAnswer) -> bytes:
    """Return the line that answers."""
    return json.dumps({"version": 1, "answer": answer._asdict()}).encode("ascii") + b"\n"


def parse_answer(line: bytes) -> HookAnswer | None:
    """Return the answer of a line; None for anything else."""
    try:
        values = json.loads(line)["answer"]
        texts = {name: str(values[name]) for name in ("context", "instructions", "notice")}
        return HookAnswer(**texts, entries=tuple(str(each) for each in values["entries"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _receive_line(connection: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n") and len(line) <= MAX_LINE_BYTES:
        chunk = connection.recv(_CHUNK)
        if not chunk:
            break
        line += chunk
    return line
