"""Owners: whose session it is, from the agent's state beside the transcript.

The field is read from the head of the document, which may hold a whole window. Invariant: nobody is told to own a
session whose state can't be read; it is shown to nobody but the person at the machine.
"""

import re
from collections.abc import Mapping
from contextlib import suppress

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, InvalidMessage, StorageError
from ricordo.files import FileInfo, FileStore
from ricordo.messages.jsontext import decoded, loads, record
from ricordo.workspace.layout import state_path

__all__ = ["EVERYBODY", "owner_of", "state_of"]

EVERYBODY = ""
"""The owner of a session without a state, or with one that names nobody, such as an imported one."""

_HEAD = 4_096
_STRING = r'"(?:[^"\\]|\\.)*"'
_USER = re.compile(rf'\{{"v":\d+,"agent":{_STRING},"session":{_STRING},"user":({_STRING})[,}}]')


def state_of(transcript: str, session: str, listed: Mapping[str, FileInfo]) -> FileInfo | None:
    """Return the state of the session with this transcript, or what was set aside as unreadable; None for neither."""
    with suppress(InvalidMessage):
        folder = f"{transcript.rpartition('/sessions/')[0]}/state"
        # the second is the name from before, in a root that can only be read
        for name in (state_path("any", session).rpartition("/")[2], f"{session}.json"):
            if found := listed.get(f"{folder}/{name}") or listed.get(f"{folder}/{name}.broken-1"):
                return found
    return None


async def owner_of(files: FileStore, state: FileInfo) -> str | None:
    """Return the user that a state names, `EVERYBODY` for nobody; None when it can't be read."""
    try:
        head = await files.read_from(state.path, 0, _HEAD)
        found = _USER.match(head.decode("utf-8", "replace"))
        if found:
            return _user({"user": decoded(found[1])})
        data = await files.read_from(state.path, 0)
        return _user(record(await run_sync(loads, data), "The state"))
    except FileMissing:
        return EVERYBODY
    except (StorageError, InvalidMessage, ValueError):
        return None


def _user(fields: Mapping[str, object]) -> str | None:
    user = fields.get("user", EVERYBODY)
    return user if isinstance(user, str) else None
