"""The record of one change set, as `history/changes/` keeps it."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime

from ricordo.clock import format_rfc3339
from ricordo.errors import DocumentInvalid, PathRefused
from ricordo.files.paths import safe_path
from ricordo.messages.jsontext import decode_json, escape_json

__all__ = ["Change", "FileChange", "decode_change", "encode_change"]

_OPTIONAL_KEYS = frozenset({"user", "entries", "part_of"})


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """What a change did to one file: its version before and after, ABSENT where there was none."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change set: `act` names what was done, `undoes` the change that it takes back.

    `user` is the id of the user whose act it is, empty where that is not known. `entries` are the ids of memories that
    the act appended to ledgers, which needs no change of a file here. `part_of` is the id of the first change of the
    same act, where one act made several.
    """

    id: str
    at: datetime
    who: str
    why: str
    act: str
    files: tuple[FileChange, ...]
    undoes: str | None = None
    user: str = ""
    entries: tuple[str, ...] = ()
    part_of: str = ""


def encode_change(change: Change) -> bytes:
    """Return the record of a change."""
    told = {name: value for name, value in asdict(change).items() if value or name not in _OPTIONAL_KEYS}
    written = json.dumps(told | {"at": format_rfc3339(change.at)}, ensure_ascii=False, indent=1)
    return (escape_json(written) + "\n").encode()


def decode_change(data: bytes, change_id: str) -> Change:
    """Return the change of a record. Raises: DocumentInvalid for one that nothing here wrote."""
    try:
        value = decode_json(data)
        files = tuple(FileChange(**changed) for changed in value.pop("files"))
        entries = tuple(value.pop("entries", ()))
        change = Change(files=files, at=datetime.fromisoformat(value.pop("at")), entries=entries, **value)
        _check_change(change, change_id)
    except (ValueError, TypeError, KeyError, AttributeError, PathRefused) as error:
        raise DocumentInvalid(f"The record of the change {change_id} can't be read.") from error
    return change


def _check_change(change: Change, change_id: str) -> None:
    """Raise ValueError or PathRefused where a value is not of its type, as JSON may hold any."""
    words = [change.id, change.who, change.why, change.act, change.undoes or "", change.user, change.part_of]
    words += [*change.entries, *(text for file in change.files for text in (file.path, file.before, file.after))]
    if not all(isinstance(word, str) for word in words):
        raise ValueError("A value is no text.")
    if change.id != change_id or change.at.tzinfo is None:
        raise ValueError("It is the record of another change, or its time has no zone.")
    if any(safe_path(file.path) != file.path or not file.path for file in change.files):
        raise ValueError("A path is not written as paths are here.")
