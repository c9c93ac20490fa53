"""What hooks gave to each session of a host: ids of memories, when and at which event; never content.

By it no memory is given twice in a session, also where a host runs two hooks for one event, and `ricordo why` can say
why an agent knew something. Bounded: the newest ids of a session, and the sessions used last.
"""

import json
import os
import time
from contextlib import suppress
from hashlib import sha256
from typing import NamedTuple

from ricordo.hooks.contract import HookEvent
from ricordo.hooks.places import Place, make_private_folder

__all__ = ["GivenMemory", "GivenToSession", "claim_answer", "list_sessions", "read_session", "write_session"]


_MAX_MEMORIES = 400
_MAX_SESSIONS = 300
_ENDING = ".json"
_CLAIM_SECONDS = 2
_MAX_CLAIMS = 100


class GivenMemory(NamedTuple):
    """A memory that a hook gave: its id, the kind of the event, and the time in seconds since 1970."""

    id: str
    event: str
    at: float


class GivenToSession(NamedTuple):
    """What one session of a host was given, oldest first.

    `has_preamble` says that the preamble is in the session's window, and `compaction` names the last compaction before
    that. `tokens` counts what prompts were given so far.
    """

    host: str
    session: str
    root: str
    at: float = 0.0
    has_preamble: bool = False
    tokens: int = 0
    memories: tuple[GivenMemory, ...] = ()
    compaction: str = ""

    @property
    def ids(self) -> frozenset[str]:
        """The ids of the memories."""
        return frozenset(each.id for each in self.memories)


def read_session(place: Place, host: str, session: str) -> GivenToSession:
    """Return what a session was given; nothing if it is not known or its record is damaged."""
    path = os.path.join(_folder(place), _file_name(host, session))
    return _read(path) or GivenToSession(host=host, session=session, root=place.root)


def write_session(place: Place, given: GivenToSession) -> None:
    """Store what a session was given, and drop the records of the sessions used longest ago. Raises: OSError."""
    folder = _folder(place)
    make_private_folder(folder)
    kept = given._replace(memories=given.memories[-_MAX_MEMORIES:])
    path = os.path.join(folder, _file_name(given.host, given.session))
    draft = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            json.dump(kept._asdict(), file)
        os.replace(draft, path)
    except OSError:
        with suppress(OSError):
            os.unlink(draft)
        raise
    _prune(folder, _MAX_SESSIONS)


def claim_answer(place: Place, event: HookEvent) -> bool:
    """Return whether this process answers an event; False if another one did so in the last two seconds.

    A host that is connected for the person and for the project runs both hooks, each with the same event.
    """
    folder = os.path.join(place.hooks_folder, "claims")
    key = "\0".join((event.host, event.name, event.session, event.source, event.text)).encode("utf-8", "surrogatepass")
    name, now = sha256(key).hexdigest()[:32], time.time()
    # one file for each two seconds, so that none that is too old has to be replaced
    span = int(now / _CLAIM_SECONDS)
    try:
        make_private_folder(folder)
        with suppress(FileNotFoundError):
            if now - os.stat(os.path.join(folder, f"{name}-{span - 1}")).st_mtime < _CLAIM_SECONDS:
                return False
        os.close(os.open(os.path.join(folder, f"{name}-{span}"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        _prune(folder, _MAX_CLAIMS)
    except FileExistsError:
        return False
    except OSError:
        # without a disk to note it on, an answer twice is better than none
        return True
    return True


def list_sessions(place: Place) -> list[GivenToSession]:
    """Return the sessions of a place that were given something, the one used last first."""
    folder = _folder(place)
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    found = (_read(os.path.join(folder, name)) for name in names if name.endswith(_ENDING))
    return sorted((each for each in found if each), key=lambda each: each.at, reverse=True)


def _folder(place: Place) -> str:
    return os.path.join(place.hooks_folder, "given", place.digest)


def _file_name(host: str, session: str) -> str:
    return sha256(f"{host}\0{session}".encode("utf-8", "surrogatepass")).hexdigest()[:32] + _ENDING


def _read(path: str) -> GivenToSession | None:
    try:
        with open(path, encoding="ascii") as file:
            values = json.load(file)
        values["memories"] = tuple(GivenMemory(*each) for each in values["memories"])
        return GivenToSession(**values)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _prune(folder: str, limit: int) -> None:
    """Remove the oldest records beyond the bound; another process may do the same at the same time."""
    names = os.listdir(folder)
    if len(names) <= limit:
        return
    with suppress(OSError):
        paths = sorted((os.path.join(folder, name) for name in names), key=lambda path: os.stat(path).st_mtime_ns)
        for path in paths[: len(names) - limit]:
            os.unlink(path)
