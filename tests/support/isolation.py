"""Keep a test away from the person who runs it: their files, their keys, their settings, and the network.

Home and the platform's user directories point into a fresh folder, the working directory is another one, variables that
could change behaviour are gone, and a connection to anything but this machine is refused before it is made.
"""

import ipaddress
import itertools
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

__all__ = ["NetworkUsed", "forbid_network", "hear_interruptions", "isolate"]

_HOME_FOLDERS = {
    "HOME": "",
    "USERPROFILE": "",
    "APPDATA": "AppData/Roaming",
    "LOCALAPPDATA": "AppData/Local",
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_RUNTIME_DIR": ".run",
    "XDG_STATE_HOME": ".local/state",
}
_PLAIN_TERMINAL = {"COLUMNS": "120", "LINES": "40", "NO_COLOR": "1", "TERM": "dumb"}
_DROPPED_PREFIXES = ("RICORDO_", "GIT_", "OTEL_", "CLAUDE", "CODEX_")
_DROPPED_SUFFIXES = ("_API_KEY", "_TOKEN", "_PROXY", "_proxy")
_DROPPED_NAMES = ("FORCE_COLOR", "EDITOR", "VISUAL", "PAGER")

_numbers = itertools.count()


class NetworkUsed(RuntimeError):
    """A test tried to reach another machine."""


def isolate(base: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a home and a working directory of its own under `base`; return the home."""
    place = base / str(next(_numbers))
    home, work = place / "home", place / "work"
    home.mkdir(parents=True)
    work.mkdir()
    for name in [name for name in os.environ if _is_personal(name)]:
        monkeypatch.delenv(name)
    for name, folder in _HOME_FOLDERS.items():
        monkeypatch.setenv(name, str(home / folder))
    for name, value in _PLAIN_TERMINAL.items():
        monkeypatch.setenv(name, value)
    # what is found by words alone is found fast; a test of the default takes this away
    monkeypatch.setenv("RICORDO_EMBEDDER", "none")
    # a script holds what an agent itself asks its model, and what was said is learned by rules, unless a test says else
    monkeypatch.setenv("RICORDO_FLUSH__MODEL", "offline")
    # whoever runs the tests, commands are for the same user
    monkeypatch.setenv("RICORDO_USER", "me")
    monkeypatch.chdir(work)
    return home


def forbid_network() -> None:
    """From now on refuse, in this process, every connection and name look-up that leaves this machine."""
    sys.addaudithook(_refuse_other_machines)


def hear_interruptions() -> None:
    """Let this process, and those that it starts, hear Ctrl-C, which a shell lets a job in the background ignore."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_personal(name: str) -> bool:
    return name.startswith(_DROPPED_PREFIXES) or name.endswith(_DROPPED_SUFFIXES) or name in _DROPPED_NAMES


def _refuse_other_machines(event: str, args: tuple[object, ...]) -> None:
    if event == "socket.getaddrinfo":
        host: object = args[0]
    elif event in {"socket.connect", "socket.sendto", "socket.sendmsg"}:
        connection, address = args[0], args[1]
        if not isinstance(connection, socket.socket) or connection.family not in {socket.AF_INET, socket.AF_INET6}:
            return
        host = address[0] if isinstance(address, tuple) else None
    else:
        return
    if not _is_this_machine(host):
        raise NetworkUsed(f"{event} to {host!r}: tests stay on this machine")


def _is_this_machine(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode()
    if host is None or host in {"", "localhost"}:
        return True
    try:
        return ipaddress.ip_address(str(host)).is_loopback or ipaddress.ip_address(str(host)).is_unspecified
    except ValueError:
        return False
