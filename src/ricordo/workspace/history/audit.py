"""The audit log of a place: who read, wrote, promoted or forgot what, and when; never what it says.

A record names ids, scopes and counts, and of each entry that was shown a keyed digest of its words and its score.
Changes are written and synced when they are made. Reads are written in batches, not synced, and nothing waits for them.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from hashlib import blake2b
from secrets import token_hex
from typing import TYPE_CHECKING, TypeAlias

import anyio

from ricordo.clock import Clock, format_rfc3339
from ricordo.concurrency import compute, run_in_thread
from ricordo.errors import InvalidSetting, StorageError
from ricordo.events import current_trace_id
from ricordo.lazy import dataclass, lazy_compile
from ricordo.scope import Scope
from ricordo.storage.disk import ChainedLine, ChainedLog, Disk
from ricordo.workspace.layout import FACT_ID_PREFIX, TOMBSTONES, is_memory, is_profile

if TYPE_CHECKING:
    import re
    from collections.abc import Callable
    from pathlib import Path

    from ricordo.messages.types import JsonValue

__all__ = [
    "AUDIT_FOLDER",
    "MAY_DELETE",
    "AuditConfig",
    "AuditFilter",
    "AuditLog",
    "AuditRecord",
    "AuditedEntry",
    "Contents",
    "find_touched_ids",
    "new_request_id",
    "parse_record",
    "version_digest",
]


AUDIT_FOLDER = "audit"
"""The folder of the log in a place."""
_LEVELS = ("off", "deletions", "changes", "reads")
_DELETIONS = frozenset({"forget", "erase", "prune", "delete", "end"})
MAY_DELETE = _DELETIONS | {"profile"}
"""The acts of change sets that may delete."""
_MOST_NAMED = 200
"""How many entries a record names; it counts all."""
_BATCH_SECONDS = 0.5
_CLOSE_SECONDS = 2.0
_MAX_WAITING = 10_000
_AT_ONCE = 50_000
"""The number of bytes that are compared in some milliseconds."""
_LOG = logging.getLogger("ricordo.memory")


@dataclass(frozen=True, kw_only=True)
class AuditConfig:
    """What the audit log records: `deletions`, also other `changes`, also `reads`, or nothing (`off`)."""

    record: str = "deletions"

    def __post_init__(self) -> None:
        """Raises: InvalidSetting for another word."""
        if self.record not in _LEVELS:
            raise InvalidSetting(f"record is one of {', '.join(_LEVELS)}, not {self.record!r}.")

    def includes(self, act: str) -> bool:
        """Return whether records of this act are kept."""
        needed = "reads" if act == "read" else "deletions" if act in _DELETIONS else "changes"
        return _LEVELS.index(self.record) >= _LEVELS.index(needed)


@dataclass(frozen=True, kw_only=True)
class AuditedEntry:
    """An entry that was shown: its id, a keyed digest of its words as they were then, and the score of its hit."""

    id: str
    version: str = ""
    score: float | None = None


@dataclass(frozen=True, kw_only=True)
class AuditRecord:
    """One act: when, by whom, in whose memory, and on what.

    `act` is `read`, or the act of a change, such as `save`, `promote`, `forget`, `erase`, `prune`. `by` is
    the kind of author, such as `user`, `agent` or `retention`, and `who` the scope for which it acted. `scope` is that
    of the memory. `ids` are at most 200 of the `count` entries. `how` is the way of a read, such as `recall` or
    `prompt`, and `request` is the same for all records of one read. `change` is the id in the history. `number` counts
    from 1 in each place. `lost` is the number of acts before it that could not be recorded.
    """

    number: int
    at: datetime
    act: str
    by: str
    who: Scope | None
    scope: Scope | None
    count: int = 0
    ids: tuple[str, ...] = ()
    entries: tuple[AuditedEntry, ...] = ()
    how: str = ""
    request: str = ""
    change: str = ""
    paths: tuple[str, ...] = ()
    lost: int = 0


@dataclass(frozen=True, kw_only=True)
class AuditFilter:
    """Which records are wanted: of any of these acts, for this user and session, on this entry, in this scope.

    `entry` is an id or its beginning; `scope` names parts that the scope of the memory has; `until` is excluded.
    """

    acts: frozenset[str] = frozenset()
    user: str | None = None
    session: str | None = None
    entry: str | None = None
    scope: Scope | None = None
    since: datetime | None = None
    until: datetime | None = None

    def matches(self, record: AuditRecord) -> bool:
        """Return whether a record is wanted."""
        who, place = (scope.parts() if scope else {} for scope in (record.who, record.scope))
        return (
            (not self.acts or record.act in self.acts)
            and (self.user is None or who.get("user") == self.user)
            and (self.session is None or who.get("session") == self.session)
            and (self.entry is None or any(name.startswith(self.entry) for name in record.ids))
            and (self.scope is None or self.scope.parts().items() <= place.items())
            and (self.since is None or record.at >= self.since)
            and (self.until is None or record.at < self.until)
        )


_ID_AT_END = lazy_compile(rb"\^([A-Za-z0-9-]+)\s*\Z")
_ID_FIELD = lazy_compile(rb'"id": ?"([A-Za-z0-9_-]+)"')
_FACT_ID = lazy_compile(rb'"(%s[A-Za-z0-9]+)"' % FACT_ID_PREFIX.encode())
Contents: TypeAlias = tuple[str, bytes, bytes]
"""A path, and what the file held before and after a change."""


def find_touched_ids(contents: Iterable[Contents]) -> list[str]:
    """Return the ids of the entries and facts that a change added, changed or removed, each once, sorted.

    An entry without an id in its line is named by the record of its forgetting.
    """
    ids: set[str] = set()
    for path, before, after in contents:
        if is_profile(path):
            ids |= _differing(_FACT_ID, before, after)
        elif path == TOMBSTONES:
            ids |= {name for line in _new_lines(before, after) for name in _names(_ID_FIELD, line)}
        elif is_memory(path):
            ids |= {name for line in _changed_lines(before, after) for name in _names(_ID_AT_END, line)}
    return sorted(ids)


def _has_vanished(before: bytes, after: bytes) -> bool:
    """Return whether a profile lost a fact."""
    return not _names(_FACT_ID, before) <= _names(_FACT_ID, after)


def _names(pattern: "re.Pattern[bytes]", text: bytes) -> set[str]:
    return {name.decode("ascii") for name in pattern.findall(text)}


def _differing(pattern: "re.Pattern[bytes]", before: bytes, after: bytes) -> set[str]:
    return _names(pattern, before) ^ _names(pattern, after)


def _new_lines(before: bytes, after: bytes) -> set[bytes]:
    return {*after.split(b"\n")}.difference(before.split(b"\n"))


def _changed_lines(before: bytes, after: bytes) -> set[bytes]:
    return {*after.split(b"\n")}.symmetric_difference(before.split(b"\n"))


def version_digest(content: str, key: bytes) -> str:
    """Return 16 hex digits that tell one version of an entry from another, without what it says."""
    return blake2b(content.encode("utf-8", "surrogatepass"), key=key, digest_size=8).hexdigest()


def new_request_id() -> str:
    """Return an id for the records of one read: that of the current trace, else a random one."""
    return current_trace_id() or token_hex(8)


class AuditLog:
    """The audit log of one place. Reads are queued; `serve` writes them, and `close` the rest."""

    def __init__(
        self, folder: "Path", key: bytes, clock: Clock, *,
        config: AuditConfig, who: Scope, scope: Scope, disk: "Disk", check: "Callable[[], object]",
    ) -> None:  # fmt: skip
        """Record acts for the scope `who` on the memory of `scope` in `folder`, as far as `config` says.

        `records_reads` and `records_changes` say so too. `check` is called before each write.
        """
        self._folder, self._key, self._disk, self._check = folder, key, disk, check
        self._clock = clock
        self._config = config
        self.records_reads = config.includes("read")
        self.records_changes = config.includes("save")
        self._who = who
        self._scope = scope
        self._waiting: list[tuple[str, Mapping[str, JsonValue]]] = []
        self._lost = 0
        self._write_lock = anyio.Lock()
        self._wake_event = anyio.Event()

    @cached_property
    def _log(self) -> "ChainedLog":
        return ChainedLog(self._folder, self._key, disk=self._disk, check=self._check)

    def includes(self, act: str) -> bool:
        """Return whether records of this act are kept."""
        return self._config.includes(act)

    def note_read(self, entries: Sequence[AuditedEntry], *, how: str, request: str, session: str = "") -> None:
        """Queue the record that these entries were shown; none if such acts are not recorded."""
        if entries and self.includes("read"):
            versions: list[JsonValue] = [entry.version for entry in entries[:_MOST_NAMED]]
            scores: list[JsonValue] = [entry.score for entry in entries[:_MOST_NAMED]]
            rest: dict[str, JsonValue] = {"how": how, "request": request, "versions": versions}
            if any(score is not None for score in scores):
                rest["scores"] = scores
            self._queue("read", "", [entry.id for entry in entries], rest, session=session)
            self._wake_event.set()

    async def record(
        self,
        act: str,
        ids: Sequence[str] = (),
        *,
        by: str = "user", change: str = "", paths: Sequence[str] = (),
        has_vanished: bool = False, count: int | None = None,
    ) -> None:  # fmt: skip
        """Write the record of a change that was made; none if such acts are not recorded.

        With `has_vanished` it counts as a deletion, whatever the act is called.
        If the log can't be written, the record waits for the next one: the act is done and does not fail for it.
        """
        if self.includes("forget" if has_vanished else act):
            named: list[JsonValue] = [*paths[:_MOST_NAMED]]
            self._queue(act, by, ids, {"change": change, "paths": named}, count=count)
            await self.write(durable=True)

    async def record_change(
        self, act: str, contents: Sequence[Contents], *, by: str, change: str, entries: Sequence[str]
    ) -> None:
        """Write the record of the change set with the id `change`, from what its files held before and after."""
        has_vanished = any(is_profile(path) and _has_vanished(*texts) for path, *texts in contents)
        if not self.includes("forget" if has_vanished else act):
            return
        size = sum(len(before) + len(after) for _, before, after in contents)
        ids = await compute(partial(find_touched_ids, contents), size=size, at_once=_AT_ONCE)
        ids = [*dict.fromkeys((*ids, *entries))]
        paths = [path for path, *_ in contents]
        await self.record(act, ids, by=by, change=change, paths=paths, has_vanished=has_vanished)

    async def serve(self) -> None:
        """Write queued records in batches of half a second, until this is cancelled."""
        while True:
            await self._wake_event.wait()
            await anyio.sleep(_BATCH_SECONDS)
            await self.write()

    async def close(self) -> None:
        """Write the remaining records, within two seconds."""
        if self._waiting:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await self.write()
        if lost := len(self._waiting) + self._lost:
            _LOG.warning("%d records of the audit log could not be written.", lost)

    async def write(self, *, durable: bool = False) -> None:
        """Write the records queued so far, with `durable` synced; if that fails they wait."""
        async with self._write_lock:
            # whoever waits for it waits for this one
            if self._wake_event.is_set():
                self._wake_event = anyio.Event()
            waiting, self._waiting = self._waiting, []
            months = dict.fromkeys(month for month, _ in waiting)
            for month in months:
                rows = [row for each, row in waiting if each == month]
                try:
                    await run_in_thread(partial(self._log.append, month, rows, durable=durable))
                except StorageError as error:
                    _LOG.warning("The audit log can't be written: %s", type(error).__name__)
                    self._waiting = [*waiting, *self._waiting][:_MAX_WAITING]
                    return
                waiting = [row for row in waiting if row[0] != month]

    async def read(self) -> list[AuditRecord]:
        """Return all records, oldest first. Raises: StorageError."""
        await self.write()
        lines = await run_in_thread(self._log.read)
        return [record for line in lines if (record := parse_record(line, self._scope))]

    async def find_breaks(self) -> tuple[str, ...]:
        """Return what of the chain does not hold; empty if all of it holds. Raises: StorageError."""
        return await run_in_thread(self._log.find_breaks)

    def _queue(
        self,
        act: str,
        by: str,
        ids: Sequence[str],
        more: "Mapping[str, JsonValue]",
        *,
        session: str = "",
        count: int | None = None,
    ) -> None:
        now = self._clock.now()
        if len(self._waiting) >= _MAX_WAITING:
            self._lost += 1
            return
        who = self._who.parts() | ({"session": session} if session else {})
        named: list[JsonValue] = [*ids[:_MOST_NAMED]]
        row: dict[str, JsonValue] = {"at": format_rfc3339(now), "act": act, "who": {**who}}
        row |= {name: value for name, value in {"by": by, "ids": named, **more}.items() if value}
        if len(ids) != len(named) or not named:
            row["count"] = len(ids) if count is None else count
        if self._lost:
            row["lost"], self._lost = self._lost, 0
        self._waiting.append((f"{now.astimezone(UTC):%Y-%m}", row))


def parse_record(line: "ChainedLine", scope: Scope | None = None) -> AuditRecord | None:
    """Return the record of a line of the log of `scope`; None for a line that is none."""
    fields = line.fields
    ids = tuple(_texts(fields.get("ids")))
    versions, scores = _texts(fields.get("versions")), fields.get("scores")
    who = fields.get("who")
    try:
        time = datetime.fromisoformat(str(fields.get("at")))
        acting = Scope(**{str(name): str(value) for name, value in who.items()}) if isinstance(who, dict) else None
    except (ValueError, TypeError):
        return None
    return AuditRecord(
        number=line.number,
        at=time,
        act=str(fields.get("act", "")),
        by=str(fields.get("by", "")),
        who=acting,
        scope=scope,
        count=_count(fields.get("count"), len(ids)),
        ids=ids,
        entries=tuple(
            AuditedEntry(id=name, version=version, score=_score(scores, at))
            for at, (name, version) in enumerate(zip(ids, versions, strict=False))
        ),
        how=str(fields.get("how", "")),
        request=str(fields.get("request", "")),
        change=str(fields.get("change", "")),
        paths=tuple(_texts(fields.get("paths"))),
        lost=_count(fields.get("lost"), 0),
    )


def _texts(value: "JsonValue") -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _count(value: "JsonValue", default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _score(values: "JsonValue", at: int) -> float | None:
    value = values[at] if isinstance(values, list) and at < len(values) else None
    return float(value) if isinstance(value, int | float) else None
