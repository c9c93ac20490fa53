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
from ricordo.messages.jsontext import decode_json, loads, require_object
from ricordo.workspace.layout import state_path

__all__ = ["NO_OWNER", "read_owner", "find_state"]

NO_OWNER = ""
"""The owner of a session without a state, or with one that names nobody, such as an imported one."""

_HEAD_BYTES = 4_096
_JSON_STRING = r'"(?:[^"\\]|\\.)*"'
_USER_PATTERN = re.compile(rf'\{{"v":\d+,"agent":{_JSON_STRING},"session":{_JSON_STRING},"user":({_JSON_STRING})[,}}]')


def find_state(transcript: str, session: str, listed: Mapping[str, FileInfo]) -> FileInfo | None:
    """Return the state of the session with this transcript, or what was set aside as unreadable; None for neither."""
    with suppress(InvalidMessage):
        folder = f"{transcript.rpartition('/sessions/')[0]}/state"
        # the second is the name from before, in a root that can only be read
        for name in (state_path("any", session).rpartition("/")[2], f"{session}.json"):
            if found := listed.get(f"{folder}/{name}") or listed.get(f"{folder}/{name}.broken-1"):
                return found
    return None


async def read_owner(files: FileStore, state: FileInfo) -> str | None:
    """Return the user that a state names, `NO_OWNER` for nobody; None when it can't be read."""
    try:
        head = await files.read_from(state.path, 0, _HEAD_BYTES)
        found = _USER_PATTERN.match(head.decode("utf-8", "replace"))
        if found:
            return _user_field({"user": decode_json(found[1])})
        data = await files.read_from(state.path, 0)
        return _user_field(require_object(await run_sync(loads, data), "The state"))
    except FileMissing:
        return NO_OWNER
    except (StorageError, InvalidMessage, ValueError):
        return None


def _user_field(fields: Mapping[str, object]) -> str | None:
    user = fields.get("user", NO_OWNER)
    return user if isinstance(user, str) else None
