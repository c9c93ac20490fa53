"""Usage: when a memory was shown, when it was used, and when it was confirmed; three things that are kept apart.

They are noted as lines of `usage.jsonl`, beside what the program does: noting waits for nothing, and what was noted is
appended together a little later. A line that can't be read is passed over, and many processes append to one file. A
file that got long is rewritten with one line for each memory, so it stays bounded.

Invariant: nothing here decides how a memory ranks. Only a confirmation makes one fresher, and the memory itself says
when that was; being shown does not.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Literal, TypeAlias, get_args

import anyio
from anyio.to_thread import run_sync

from ricordo.clock import Clock, milliseconds, rfc3339
from ricordo.errors import FileMissing, InvalidMessage, RicordoError, RootMoved, StorageError, VersionConflict
from ricordo.files import FileStore
from ricordo.messages import JsonValue
from ricordo.messages.jsontext import dumps, loads
from ricordo.workspace.layout import USAGE

__all__ = ["Counted", "MemoryUsage", "UsageAct", "UsageLog", "compacted", "ids_shown", "read_usage"]

UsageAct: TypeAlias = Literal["shown", "used", "confirmed"]

_LOG = logging.getLogger("ricordo.memory")
_ACTS: tuple[UsageAct, ...] = get_args(UsageAct)
_ID = re.compile(r' id="([0-9A-Za-z-]+)"')
_TOGETHER_SECONDS = 2.0
_CLOSING_SECONDS = 2.0
_MOST_WAITING = 1_000
_MOST_BYTES = 4_000_000
_MOST_KEPT = 10_000
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Counted:
    """How often something happened to a memory, and the first and the last time; None where it never did."""

    count: int = 0
    first: datetime | None = None
    last: datetime | None = None

    def with_more(self, count: int, first: datetime, last: datetime) -> "Counted":
        """Return this with `count` more of it, which happened from `first` to `last`."""
        return Counted(
            count=self.count + count,
            first=min(self.first, first) if self.first else first,
            last=max(self.last, last) if self.last else last,
        )


@dataclass(frozen=True, kw_only=True)
class MemoryUsage:
    """What happened to one memory.

    It was `shown` by a search, a reminder or a prompt, `used` when it was opened, and `confirmed` by a person.
    """

    shown: Counted = field(default_factory=Counted)
    used: Counted = field(default_factory=Counted)
    confirmed: Counted = field(default_factory=Counted)

    def with_more(self, act: UsageAct, more: Counted) -> "MemoryUsage":
        """Return this with `more` of one of the three."""
        known: Counted = getattr(self, act)
        if not more.count or more.first is None or more.last is None:
            return self
        return replace(self, **{act: known.with_more(more.count, more.first, more.last)})

    def joined(self, other: "MemoryUsage") -> "MemoryUsage":
        """Return this with what another place knows of the same memory."""
        both = self
        for act in _ACTS:
            both = both.with_more(act, getattr(other, act))
        return both

    @property
    def last(self) -> datetime | None:
        """When anything happened to it last."""
        return max((each for act in _ACTS if (each := getattr(self, act).last)), default=None)


def read_usage(data: bytes) -> dict[str, MemoryUsage]:
    """Return what a file says of each memory by its id; a line that can't be read says nothing."""
    found: dict[str, MemoryUsage] = {}
    for line in data.split(b"\n"):
        for name, act, more in _said(line):
            found[name] = found.get(name, MemoryUsage()).with_more(act, more)
    return found


def compacted(data: bytes, *, most: int = _MOST_KEPT) -> bytes:
    """Return what a file says with one line for each memory, for the `most` of them that something happened to last."""
    known = read_usage(data)
    newest = sorted(known, key=lambda name: (known[name].last or _NEVER, name), reverse=True)[:most]
    return b"".join(_line(_summed(name, known[name])) for name in reversed(newest))


def ids_shown(text: str) -> frozenset[str]:
    """Return the ids of the memories that a fenced block shows."""
    return frozenset(_ID.findall(text))


@dataclass(frozen=True, kw_only=True)
class _Noted:
    """Something that happened; `ids` may be looked for when it is written."""

    act: UsageAct
    at: str
    how: str
    session: str
    ids: tuple[str, ...] | Callable[[], Awaitable[Iterable[str]]]


class UsageLog:
    """The usage file of one root. `note` writes nothing: `serve` does, a little later, and `close` does at the end."""

    def __init__(self, files: FileStore, clock: Clock) -> None:
        """Keep it among `files`."""
        self._files = files
        self._clock = clock
        self._waiting: list[_Noted] = []
        self._writing = anyio.Lock()
        self._has_begun = anyio.Event()
        self._is_on = True

    def stop(self) -> None:
        """Note nothing any more."""
        self._is_on = False

    def note(
        self,
        act: UsageAct,
        ids: Iterable[str] | Callable[[], Awaitable[Iterable[str]]],
        *,
        how: str,
        session: str = "",
    ) -> None:
        """Note what happens now to the memories with these ids; `how` is one word, such as `recall`.

        Instead of ids, what finds them can be given: it is called beside, and its error drops the note.
        """
        if not self._is_on or len(self._waiting) >= _MOST_WAITING:
            return
        named = ids if callable(ids) else tuple(dict.fromkeys(filter(None, ids)))
        if named:
            at = rfc3339(self._clock.now())
            self._waiting.append(_Noted(act=act, at=at, how=how, session=session, ids=named))
            self._has_begun.set()

    async def serve(self) -> None:
        """Write what is noted, what comes within two seconds together, until this is cancelled."""
        while True:
            await self._has_begun.wait()
            await anyio.sleep(_TOGETHER_SECONDS)
            await self.write()

    async def close(self) -> None:
        """Write what is left, within two seconds."""
        if self._waiting:
            with anyio.move_on_after(_CLOSING_SECONDS, shield=True):
                await self.write()
        if self._waiting:
            _LOG.warning("What was shown and used of memories was not noted %d times.", len(self._waiting))

    async def write(self) -> None:
        """Write what was noted up to now. What can't be written is dropped: no work fails for it.

        What can't be written as the root is away waits until it is back.
        """
        async with self._writing:
            self._has_begun = anyio.Event()
            waiting, self._waiting = self._waiting, []
            data = b"".join([await _written(noted) for noted in waiting])
            if not data:
                return
            try:
                appended = await self._files.append(USAGE, data)
                if appended.offset + appended.length > _MOST_BYTES:
                    await self._compact()
            except RootMoved:
                self._waiting = (waiting + self._waiting)[:_MOST_WAITING]
            except (StorageError, FileMissing):
                return

    async def all(self) -> Mapping[str, MemoryUsage]:
        """Return what is known of each memory, by its id. Raises `StorageError`."""
        await self.write()
        try:
            stored = await self._files.read(USAGE)
        except FileMissing:
            return {}
        return await run_sync(read_usage, stored.data)

    async def _compact(self) -> None:
        stored = await self._files.read(USAGE)
        shorter = await run_sync(partial(compacted, stored.data))
        with suppress(VersionConflict):
            await self._files.replace(USAGE, shorter, expected=stored.version)


async def _written(noted: _Noted) -> bytes:
    ids: Iterable[str] = ()
    if callable(noted.ids):
        with suppress(RicordoError):
            ids = await noted.ids()
    else:
        ids = noted.ids
    named: list[JsonValue] = [*dict.fromkeys(ids)]
    if not named:
        return b""
    row: dict[str, JsonValue] = {"at": noted.at, "act": noted.act, "how": noted.how}
    return _line(row | ({"session": noted.session} if noted.session else {}) | {"ids": named})


def _summed(name: str, usage: MemoryUsage) -> dict[str, JsonValue]:
    row: dict[str, JsonValue] = {"id": name}
    for act in _ACTS:
        counted: Counted = getattr(usage, act)
        if counted.count and counted.first and counted.last:
            row[act] = [counted.count, rfc3339(counted.first), rfc3339(counted.last)]
    return row


def _line(row: dict[str, JsonValue]) -> bytes:
    return dumps(row).encode("utf-8", "replace") + b"\n"


def _said(line: bytes) -> list[tuple[str, UsageAct, Counted]]:
    """Return what a line says: of which memory, what happened to it, and how often."""
    try:
        row = loads(line) if line.startswith(b"{") else None
    except (InvalidMessage, ValueError):
        return []
    if not isinstance(row, dict):
        return []
    name, act, at, ids = row.get("id"), row.get("act"), _time(row.get("at")), row.get("ids")
    if isinstance(name, str):
        return [(name, each, counted) for each in _ACTS if (counted := _counted(row.get(each)))]
    if act not in _ACTS or at is None or not isinstance(ids, list):
        return []
    once = Counted(count=1, first=at, last=at)
    return [(each, act, once) for each in ids if isinstance(each, str)]


def _counted(value: JsonValue) -> Counted | None:
    if not isinstance(value, list) or len(value) != 3:
        return None
    count, first, last = value[0], _time(value[1]), _time(value[2])
    if not isinstance(count, int) or isinstance(count, bool) or count < 1 or first is None or last is None:
        return None
    return Counted(count=count, first=first, last=last)


def _time(value: JsonValue) -> datetime | None:
    try:
        return milliseconds(datetime.fromisoformat(value)) if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None
