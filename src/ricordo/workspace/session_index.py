"""The index of session files, `index.json` next to `sessions/`: the data shown and searched for each, in one file.

    {"sessions": [{"path": "sessions/2026-05-13-09h47.md", "date": "2026-05-13T07:47:03.120Z", "summary": "…",
                   "tags": ["compaction"], "size": 812, "modified_ns": 1778…, "entries": […], …}]}

It is a cache: each row is derived from its file alone. Invariant: a row whose size and modification time differ from
those of its file is not used. Unknown fields are preserved, and so are indexes of other programs without our fields.
"""

import json
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from functools import cached_property

from ricordo.clock import format_rfc3339, truncate_to_milliseconds
from ricordo.errors import DocumentInvalid, InvalidMessage
from ricordo.lazy import dataclass
from ricordo.messages import JsonValue
from ricordo.messages.json_text import loads
from ricordo.storage import FileInfo
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_json import entry_from_json, entry_to_json
from ricordo.workspace.session_files import SessionFile, create_digest

__all__ = ["SessionIndex", "SessionRow", "create_row", "decode_index", "encode_index", "row_sort_key"]

_OWN_KEYS = frozenset(
    ("path", "date", "summary", "tags", "session", "pending", "threads", "files", "entries", "size", "modified_ns")
)


@dataclass(frozen=True, kw_only=True)
class SessionRow:
    """The indexed data of a session; `summary` is never a body, and `pending` means that it is missing or outdated.

    `path` is relative to the folder of the index. `size` is in bytes; below 0 it means that another program wrote the
    row, so its file is read again.
    """

    path: str
    date: datetime
    summary: str = ""
    tags: tuple[str, ...] = ()
    session: str = ""
    pending: bool = False
    threads: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()
    size: int = -1
    modified_ns: int = 0
    extra: Mapping[str, JsonValue] = field(default_factory=dict)

    @cached_property
    def json_text(self) -> str:
        """The row as JSON, cached because most rows do not change between writes."""
        return json.dumps(_row_to_json(self), ensure_ascii=False, indent=1)


@dataclass(frozen=True, kw_only=True)
class SessionIndex:
    """The rows by path, and fields of other programs."""

    rows: Mapping[str, SessionRow] = field(default_factory=dict)
    extra: Mapping[str, JsonValue] = field(default_factory=dict)


def create_row(file: SessionFile, path: str, info: FileInfo, extra: Mapping[str, JsonValue]) -> SessionRow:
    """Return the row of a session file; `info` was obtained before the file was read."""
    return SessionRow(
        path=path,
        date=file.started,
        summary=file.summary or create_digest(file.entries),
        tags=file.tags,
        session=file.session,
        pending=file.pending or file.outdated,
        threads=file.open_threads,
        files=file.files_read,
        entries=file.entries,
        size=info.size,
        modified_ns=info.modified_ns,
        extra=extra,
    )


def row_sort_key(row: SessionRow) -> tuple[datetime, int, str]:
    """Order rows by the start of their sessions, oldest first; equal ones by the numbers in their names."""
    number = row.path.removesuffix(".md").rpartition("-")[2]
    return row.date, int(number) if number.isdecimal() else 1, row.path


def encode_index(index: SessionIndex) -> bytes:
    """Return the document of an index, oldest session first."""
    rows = ",\n".join(row.json_text for row in sorted(index.rows.values(), key=row_sort_key))
    others = [f"{json.dumps(name)}: {json.dumps(value, indent=1)}" for name, value in index.extra.items()]
    text = ",\n".join([f'"sessions": [\n{rows}\n]', *others])
    # a lone surrogate is written as a JSON escape
    return f"{{\n{text}\n}}\n".encode("utf-8", "backslashreplace")


def decode_index(data: bytes) -> SessionIndex:
    """Decode an index document. Raises: DocumentInvalid if it is broken or not an index."""
    try:
        value = loads(data)
    except InvalidMessage as error:
        raise DocumentInvalid(f"index.json: {error}") from error
    records = value.get("sessions") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(records, list):
        raise DocumentInvalid("index.json: this is no list of sessions.")
    rows = [_parse_row(item) for item in records]
    extra = {name: each for name, each in value.items() if name != "sessions"}
    return SessionIndex(rows={row.path: row for row in rows}, extra=extra)


def _row_to_json(row: SessionRow) -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = {
        "path": row.path,
        "date": format_rfc3339(row.date),
        "summary": row.summary,
        "tags": [*row.tags],
        "session": row.session or None,
        "pending": row.pending or None,
        "threads": [*row.threads] or None,
        "files": [*row.files] or None,
        "entries": [entry_to_json(entry) for entry in row.entries] or None,
        "size": row.size,
        "modified_ns": row.modified_ns,
    }
    return {name: value for name, value in fields.items() if value is not None} | dict(row.extra)


def _parse_row(item: JsonValue) -> SessionRow:
    if not isinstance(item, dict):
        raise DocumentInvalid("index.json: a session is an object.")
    path, size, modified = item.get("path"), item.get("size"), item.get("modified_ns")
    if not isinstance(path, str) or not path:
        raise DocumentInvalid("index.json: a session has a path.")
    ours = isinstance(size, int) and isinstance(modified, int)
    entries = item.get("entries")
    return SessionRow(
        path=path,
        date=_parse_time(item.get("date")),
        summary=_require_text(item.get("summary")),
        tags=_require_texts(item.get("tags")),
        session=_require_text(item.get("session")),
        pending=item.get("pending") is True,
        threads=_require_texts(item.get("threads")),
        files=_require_texts(item.get("files")),
        entries=tuple(_parse_entry(each) for each in entries) if isinstance(entries, list) else (),
        size=size if ours and isinstance(size, int) else -1,
        modified_ns=modified if ours and isinstance(modified, int) else 0,
        extra={name: value for name, value in item.items() if name not in _OWN_KEYS},
    )


def _parse_entry(item: JsonValue) -> Entry:
    if not isinstance(item, dict):
        raise DocumentInvalid("index.json: an entry is an object.")
    return entry_from_json(item)


def _parse_time(value: JsonValue) -> datetime:
    try:
        return truncate_to_milliseconds(datetime.fromisoformat(_require_text(value)))
    except (ValueError, OverflowError) as error:
        raise DocumentInvalid("index.json: a session has a date.") from error


def _require_text(value: JsonValue) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    raise DocumentInvalid("index.json: a text is needed.")


def _require_texts(value: JsonValue) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise DocumentInvalid("index.json: a list of texts is needed.")
    return tuple(_require_text(each) for each in value)
