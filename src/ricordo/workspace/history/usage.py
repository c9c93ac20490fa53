"""Usage records: when each entry was shown, used and confirmed.

Records are appended to `usage.jsonl` in batches with a short delay, and nothing waits for them. Several processes may
append; a line that can't be read is skipped. A long file is rewritten with one line for each entry.

Invariant: this module does not decide how an entry ranks.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import anyio
from anyio.to_thread import run_sync

from ricordo.clock import Clock, format_rfc3339, truncate_to_milliseconds
from ricordo.errors import FileMissing, InvalidMessage, RicordoError, RootMoved, StorageError, VersionConflict
from ricordo.lazy import dataclass
from ricordo.messages.json_text import dumps, loads
from ricordo.storage import FileStore
from ricordo.workspace.layout import USAGE

if TYPE_CHECKING:
    from ricordo.messages import JsonValue

__all__ = ["MemoryUsage", "Shown", "UsageAct", "UsageCount", "UsageLog", "compact_usage", "read_usage"]


UsageAct: TypeAlias = Literal["shown", "used", "confirmed"]
Shown: TypeAlias = Mapping[str, tuple[str, float | None]]
"""The text that was shown of an entry, by its id, and the score of its hit."""
_LOG = logging.getLogger("ricordo.memory")
_ACTS: tuple[UsageAct, ...] = get_args(UsageAct)
_BATCH_SECONDS = 2.0
_CLOSE_SECONDS = 2.0
_MAX_WAITING = 1_000
_MAX_FILE_BYTES = 4_000_000
_MAX_MEMORIES = 10_000
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class UsageCount:
    """How often an event happened to an entry, and its first and last time; None if it never happened."""

    count: int = 0
    first: datetime | None = None
    last: datetime | None = None

    def add(self, count: int, first: datetime, last: datetime) -> "UsageCount":
        """Return this count with `count` more events, which happened from `first` to `last`."""
        return UsageCount(
            count=self.count + count,
            first=min(self.first, first) if self.first else first,
            last=max(self.last, last) if self.last else last,
        )


@dataclass(frozen=True, kw_only=True)
class MemoryUsage:
    """The usage of one entry.

    It was `shown` by a search, a reminder or a prompt, `used` when it was opened, and `confirmed` by a person.
    """

    shown: UsageCount = field(default_factory=UsageCount)
    used: UsageCount = field(default_factory=UsageCount)
    confirmed: UsageCount = field(default_factory=UsageCount)

    def add(self, act: UsageAct, more: UsageCount) -> "MemoryUsage":
        """Return this usage with `more` events of one kind."""
        current: UsageCount = getattr(self, act)
        if not more.count or more.first is None or more.last is None:
            return self
        return replace(self, **{act: current.add(more.count, more.first, more.last)})

    def merge(self, other: "MemoryUsage") -> "MemoryUsage":
        """Return the sum of this usage and that of the same entry in another place."""
        both = self
        for act in _ACTS:
            both = both.add(act, getattr(other, act))
        return both

    @property
    def last(self) -> datetime | None:
        """The time of the latest event."""
        return max((each for act in _ACTS if (each := getattr(self, act).last)), default=None)


def read_usage(data: bytes) -> dict[str, MemoryUsage]:
    """Return the usage of each entry in a file by its id; lines that can't be read are skipped."""
    usages: dict[str, MemoryUsage] = {}
    for line in data.split(b"\n"):
        for name, act, more in _parse_line(line):
            usages[name] = usages.get(name, MemoryUsage()).add(act, more)
    return usages


def compact_usage(data: bytes, *, max_entries: int = _MAX_MEMORIES) -> bytes:
    """Return a usage file with one line for each entry, limited to the `max_entries` entries with the latest events."""
    usages = read_usage(data)
    newest = sorted(usages, key=lambda name: (usages[name].last or _NEVER, name), reverse=True)[:max_entries]
    return b"".join(_render_line(_summary_row(name, usages[name])) for name in reversed(newest))


@dataclass(frozen=True, kw_only=True)
class _UsageNote:
    """One event to record; `ids` may be a function that finds them when it is written."""

    action: UsageAct
    at: str
    source: str
    session: str
    ids: tuple[str, ...] | Callable[[], Awaitable[Iterable[str]]]


class UsageLog:
    """The usage file of one root. `record` only queues events; `serve` writes them later, and `close` the rest."""

    def __init__(self, files: FileStore, clock: Clock) -> None:
        """Record usage in `files`."""
        self._files = files
        self._clock = clock
        self._waiting: list[_UsageNote] = []
        self._write_lock = anyio.Lock()
        self._wake_event = anyio.Event()
        self._is_enabled = True

    def disable(self) -> None:
        """Stop recording."""
        self._is_enabled = False

    def record(
        self,
        act: UsageAct,
        ids: Iterable[str] | Callable[[], Awaitable[Iterable[str]]],
        *,
        how: str,
        session: str = "",
    ) -> None:
        """Record an event of now for the entries with these ids; `how` is one word, such as `recall`.

        Instead of ids, pass a function that finds them: it runs in the background, and its error drops the event.
        """
        if not self._is_enabled or len(self._waiting) >= _MAX_WAITING:
            return
        entry_ids = ids if callable(ids) else tuple(dict.fromkeys(filter(None, ids)))
        if entry_ids:
            now = format_rfc3339(self._clock.now())
            self._waiting.append(_UsageNote(action=act, at=now, source=how, session=session, ids=entry_ids))
            self._wake_event.set()

    async def serve(self) -> None:
        """Write queued events in batches of two seconds, until this is cancelled."""
        while True:
            await self._wake_event.wait()
            await anyio.sleep(_BATCH_SECONDS)
            await self.write()

    async def close(self) -> None:
        """Write the remaining events, within two seconds."""
        if self._waiting:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await self.write()
        if self._waiting:
            _LOG.warning("What was shown and used of memories was not noted %d times.", len(self._waiting))

    async def write(self) -> None:
        """Write the events queued so far. If that fails they are dropped, so that no work fails because of usage.

        If the root has been moved away, they wait until it is back.
        """
        async with self._write_lock:
            # whoever waits for it waits for this one
            if self._wake_event.is_set():
                self._wake_event = anyio.Event()
            waiting, self._waiting = self._waiting, []
            data = b"".join([await _render_note(note) for note in waiting])
            if not data:
                return
            try:
                appended = await self._files.append(USAGE, data)
                if appended.offset + appended.length > _MAX_FILE_BYTES:
                    await self._compact()
            except RootMoved:
                self._waiting = (waiting + self._waiting)[:_MAX_WAITING]
            except (StorageError, FileMissing):
                return

    async def read_all(self) -> Mapping[str, MemoryUsage]:
        """Return the usage of each entry by its id. Raises `StorageError`."""
        await self.write()
        try:
            stored = await self._files.read(USAGE)
        except FileMissing:
            return {}
        return await run_sync(read_usage, stored.data)

    async def _compact(self) -> None:
        stored = await self._files.read(USAGE)
        shorter = await run_sync(partial(compact_usage, stored.data))
        with suppress(VersionConflict):
            await self._files.replace(USAGE, shorter, expected=stored.version)


async def _render_note(note: _UsageNote) -> bytes:
    ids: Iterable[str] = ()
    if callable(note.ids):
        with suppress(RicordoError):
            ids = await note.ids()
    else:
        ids = note.ids
    unique_ids: list[JsonValue] = [*dict.fromkeys(ids)]
    if not unique_ids:
        return b""
    row: dict[str, JsonValue] = {"at": note.at, "act": note.action, "how": note.source}
    return _render_line(row | ({"session": note.session} if note.session else {}) | {"ids": unique_ids})


def _summary_row(name: str, usage: MemoryUsage) -> "dict[str, JsonValue]":
    row: dict[str, JsonValue] = {"id": name}
    for act in _ACTS:
        counted: UsageCount = getattr(usage, act)
        if counted.count and counted.first and counted.last:
            row[act] = [counted.count, format_rfc3339(counted.first), format_rfc3339(counted.last)]
    return row


def _render_line(row: "dict[str, JsonValue]") -> bytes:
    return dumps(row).encode("utf-8", "replace") + b"\n"


def _parse_line(line: bytes) -> list[tuple[str, UsageAct, UsageCount]]:
    """Return the entries that a line names, the kind of event, and how often it happened."""
    try:
        row = loads(line) if line.startswith(b"{") else None
    except (InvalidMessage, ValueError):
        return []
    if not isinstance(row, dict):
        return []
    name, act, at, ids = row.get("id"), row.get("act"), _parse_time(row.get("at")), row.get("ids")
    if isinstance(name, str):
        return [(name, each, counted) for each in _ACTS if (counted := _parse_count(row.get(each)))]
    if act not in _ACTS or at is None or not isinstance(ids, list):
        return []
    once = UsageCount(count=1, first=at, last=at)
    return [(each, act, once) for each in ids if isinstance(each, str)]


def _parse_count(value: "JsonValue") -> UsageCount | None:
    if not isinstance(value, list) or len(value) != 3:
        return None
    count, first, last = value[0], _parse_time(value[1]), _parse_time(value[2])
    if not isinstance(count, int) or isinstance(count, bool) or count < 1 or first is None or last is None:
        return None
    return UsageCount(count=count, first=first, last=last)


def _parse_time(value: "JsonValue") -> datetime | None:
    try:
        return truncate_to_milliseconds(datetime.fromisoformat(value)) if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None
