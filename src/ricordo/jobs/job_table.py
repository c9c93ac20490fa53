"""The table of jobs: every operation on jobs, each within one transaction of the inbox.

Every operation that could meet a lease that has expired, or whose process is gone, takes it back first. A process of
another machine or container counts as alive. Times are microseconds since 1970 in UTC.

Invariants, enforced by the indexes: for each key at most one job waits and at most one runs. No column contains
content.
"""

import json
import os
import platform
import secrets
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, TypeAlias

from ricordo.errors import DocumentInvalid, LeaseLost
from ricordo.jobs.contract import Job, JobOutcome, JobRecord, JobState, Lease, is_same_work, job_key, widen_job
from ricordo.lazy import dataclass
from ricordo.messages.json_text import decode_json
from ricordo.storage.sqlite import Connection, Schema

__all__ = [
    "INBOX_SCHEMA",
    "JOB_COLUMNS",
    "ColumnValue",
    "InboxLimits",
    "JobRow",
    "add_job",
    "begin_job",
    "complete_job",
    "from_microseconds",
    "has_work",
    "is_process_gone",
    "job_columns",
    "lease_job",
    "list_jobs",
    "make_jobs_due",
    "process_name",
    "release_job",
    "renew_lease",
    "select_rows",
    "to_microseconds",
    "withdraw_job",
]


def process_name() -> str:
    """Return the name of this process: its machine, its PID namespace, and its PID."""
    return f"{_process_namespace()} {os.getpid()}"


def is_process_gone(name: str) -> bool:
    """Return whether the named process is known to have ended, without affecting any process."""
    space, _, number = name.rpartition(" ")
    # on Windows, `os.kill` does not only test for the process
    if sys.platform == "win32" or space != _process_namespace() or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _process_namespace() -> str:
    try:
        numbers = str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        numbers = "-"
    return f"{platform.node()} {numbers}"


INBOX_SCHEMA = Schema(
    owner=0x52634A42,
    steps=(
        (
            """CREATE TABLE job (
                number INTEGER PRIMARY KEY AUTOINCREMENT,
                id TEXT NOT NULL UNIQUE,
                key TEXT NOT NULL,
                kind TEXT NOT NULL,
                agent TEXT NOT NULL,
                session TEXT NOT NULL,
                user TEXT NOT NULL,
                first_message TEXT,
                last_message TEXT,
                due INTEGER,
                deadline INTEGER,
                attempts INTEGER NOT NULL,
                state TEXT NOT NULL,
                created INTEGER NOT NULL,
                changed INTEGER NOT NULL,
                failures INTEGER NOT NULL,
                error TEXT,
                counts TEXT NOT NULL,
                token TEXT,
                holder TEXT NOT NULL,
                until INTEGER
            )""",
            "CREATE UNIQUE INDEX waiting ON job (key) WHERE state = 'waiting'",
            "CREATE UNIQUE INDEX running ON job (key) WHERE state = 'running'",
            "CREATE INDEX ended ON job (state, changed, number)",
            "CREATE TABLE refilled (time INTEGER NOT NULL)",
        ),
        (
            "ALTER TABLE job ADD COLUMN signals TEXT NOT NULL DEFAULT ''",
            "ALTER TABLE job ADD COLUMN trace TEXT NOT NULL DEFAULT ''",
            "CREATE INDEX served ON job (user, changed) WHERE state <> 'waiting'",
        ),
    ),
)
JOB_COLUMNS = (
    "number, id, key, kind, agent, session, user, first_message, last_message, due, deadline, attempts, state, "
    "created, changed, failures, error, counts, token, holder, until, signals, trace"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_JOB_FIELDS = (
    "id", "key", "kind", "agent", "session", "user", "first_message", "last_message", "due", "deadline", "attempts",
    "signals", "trace",
)  # fmt: skip
ColumnValue: TypeAlias = str | int | None
"""The value of a column."""


@dataclass(frozen=True, kw_only=True)
class JobRow:
    """A job as it is stored: its record and the inbox's own fields."""

    number: int
    record: JobRecord
    failures: int
    token: str | None
    holder: str


def to_microseconds(time: datetime | None) -> int | None:
    """Return the time in its stored form; a naive one is taken as UTC."""
    if time is None:
        return None
    aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    return (aware - _EPOCH) // timedelta(microseconds=1)


def from_microseconds(stored: int | None) -> datetime | None:
    """Return a stored time, in UTC."""
    return None if stored is None else _EPOCH + timedelta(microseconds=stored)


def job_columns(job: Job) -> dict[str, ColumnValue]:
    """Return the columns that describe the job."""
    values: tuple[ColumnValue, ...] = (
        job.id,
        job.key,
        job.kind,
        job.agent,
        job.session,
        job.user,
        job.first_id,
        job.last_id,
        to_microseconds(job.not_before),
        to_microseconds(job.deadline),
        job.attempts,
        " ".join(sorted(job.signals)),
        job.trace,
    )
    return dict(zip(_JOB_FIELDS, values, strict=True))


def select_rows(connection: Connection, where: str, values: Mapping[str, ColumnValue]) -> list[JobRow]:
    """Return the rows that match a condition, which may end with an order and a limit.

    Raises: DocumentInvalid for an invalid row.
    """
    rows = connection.execute(f"SELECT {JOB_COLUMNS} FROM job WHERE {where}", values).fetchall()
    try:
        return [_parse_row(dict(zip(JOB_COLUMNS.split(", "), row, strict=True))) for row in rows]
    except (ValueError, OverflowError) as error:
        raise DocumentInvalid(f"The inbox holds a job that can't be read: {error}") from error


def _parse_row(row: Mapping[str, ColumnValue]) -> JobRow:
    state = _read_state(row["state"])
    record = JobRecord(
        job=_read_job(row),
        state=state,
        created_at=_EPOCH + timedelta(microseconds=_read_number(row, "created")),
        changed_at=_EPOCH + timedelta(microseconds=_read_number(row, "changed")),
        outcome=_read_outcome(state, row),
        leased_until=from_microseconds(_read_optional_number(row, "until")),
    )
    return JobRow(
        number=_read_number(row, "number"),
        record=record,
        failures=_read_number(row, "failures"),
        token=_read_optional_text(row, "token"),
        holder=_read_text(row, "holder"),
    )


def _read_job(row: Mapping[str, ColumnValue]) -> Job:
    return Job(
        kind=_read_text(row, "kind"),
        agent=_read_text(row, "agent"),
        session=_read_text(row, "session"),
        user=_read_text(row, "user"),
        first_id=_read_optional_text(row, "first_message"),
        last_id=_read_optional_text(row, "last_message"),
        not_before=from_microseconds(_read_optional_number(row, "due")),
        deadline=from_microseconds(_read_optional_number(row, "deadline")),
        key=_read_text(row, "key"),
        signals=frozenset(_read_text(row, "signals").split()),
        trace=_read_text(row, "trace"),
        id=_read_text(row, "id"),
        attempts=_read_number(row, "attempts"),
    )


def _read_outcome(state: JobState, row: Mapping[str, ColumnValue]) -> JobOutcome | None:
    error = _read_optional_text(row, "error")
    ended: Literal["done", "failed", "dropped"]
    match state:
        case "done" | "failed" | "dropped":
            ended = state
        case _ if error is not None:
            ended = "failed"
        case _:
            return None
    return JobOutcome(state=ended, counts=_read_counts(row), error=error)


def _read_counts(row: Mapping[str, ColumnValue]) -> dict[str, int]:
    counts: object = decode_json(_read_text(row, "counts") or "{}")
    if not isinstance(counts, dict) or not all(isinstance(count, int) for count in counts.values()):
        raise ValueError("its counts are no numbers.")
    return counts


def _read_state(value: ColumnValue) -> JobState:
    match value:
        case "waiting" | "running" | "done" | "failed" | "dropped":
            return value
        case _:
            raise ValueError(f"A job has no state {value!r}.")


def _read_text(row: Mapping[str, ColumnValue], name: str) -> str:
    value = _read_optional_text(row, name)
    if value is None:
        raise ValueError(f"it has no {name}.")
    return value


def _read_optional_text(row: Mapping[str, ColumnValue], name: str) -> str | None:
    value = row[name]
    if isinstance(value, str) or value is None:
        return value
    raise ValueError(f"its {name} is no text.")


def _read_number(row: Mapping[str, ColumnValue], name: str) -> int:
    value = _read_optional_number(row, name)
    if value is None:
        raise ValueError(f"it has no {name}.")
    return value


def _read_optional_number(row: Mapping[str, ColumnValue], name: str) -> int | None:
    value = row[name]
    if isinstance(value, int) or value is None:
        return value
    raise ValueError(f"its {name} is no number.")


_ENDED_STATES: tuple[JobState, ...] = ("done", "failed", "dropped")
_LAST_SERVED = (
    "coalesce((SELECT max(served.changed) FROM job AS served"
    " WHERE served.user = job.user AND served.state <> 'waiting'), 0)"
)
"""When a job of this user was last leased or ended: the user served longest ago comes next, however many jobs wait."""


@dataclass(frozen=True, kw_only=True)
class InboxLimits:
    """How often a job may fail before it ends as failed, and how long and how many ended jobs are kept.

    `max_ended` is the number for each outcome.
    """

    max_failures: int = 5
    max_age: timedelta = timedelta(days=7)
    max_ended: int = 1000


def add_job(connection: Connection, job: Job, now: datetime) -> Job:
    """Store `job`, whose id is new, as waiting, or widen the one that waits for the same work; return the result."""
    _correct_clock_skew(connection, now)
    key = job_key(job)
    waiting = _find_waiting(connection, job)
    if waiting:
        wide = widen_job(waiting[0].record.job, job)
        _update_row(connection, waiting[0].number, now, _work_columns(wide))
        return wide
    fresh = replace(
        job,
        key=key,
        attempts=0,
        not_before=from_microseconds(to_microseconds(job.not_before)),
        deadline=from_microseconds(to_microseconds(job.deadline)),
    )
    values = job_columns(fresh) | {"now": to_microseconds(now)}
    connection.execute(
        f"INSERT INTO job ({', '.join(job_columns(fresh))}, state, created, changed, failures, counts, holder)"
        f" VALUES ({', '.join(f':{name}' for name in job_columns(fresh))}, 'waiting', :now, :now, 0, '{{}}', '')",
        values,
    )
    return fresh


def begin_job(connection: Connection, job: Job, now: datetime, seconds: float, limits: InboxLimits) -> Lease | None:
    """Store `job` and lease it, unless a job with its key is running."""
    _correct_clock_skew(connection, now)
    _reclaim_leases(connection, now, limits)
    waiting = add_job(connection, job, now)
    if select_rows(connection, "key = :key AND state = 'running'", {"key": waiting.key}):
        return None
    return _lease_row(connection, select_rows(connection, "id = :id", {"id": waiting.id})[0], now, seconds)


def lease_job(
    connection: Connection,
    now: datetime,
    seconds: float,
    limits: InboxLimits,
    *,
    kinds: Collection[str] | None,
    key: str | None,
) -> Lease | None:
    """Lease the next job that is due."""
    _correct_clock_skew(connection, now)
    _reclaim_leases(connection, now, limits)
    chosen, values = _in_condition("kind", kinds)
    due = select_rows(
        connection,
        "state = 'waiting' AND (due IS NULL OR due <= :now) AND key = coalesce(:key, key)"
        " AND NOT EXISTS (SELECT 1 FROM job AS other WHERE other.key = job.key AND other.state = 'running')"
        f"{chosen} ORDER BY coalesce(deadline <= :now, 0) DESC, {_LAST_SERVED}, number LIMIT 1",
        {"now": to_microseconds(now), "key": key, **values},
    )
    return _lease_row(connection, due[0], now, seconds) if due else None


def renew_lease(connection: Connection, lease: Lease, now: datetime, seconds: float) -> Lease:
    """Extend the lease to `seconds` from now."""
    until = now + timedelta(seconds=seconds)
    _update_row(connection, _find_leased_row(connection, lease).number, now, {"until": to_microseconds(until)})
    return replace(lease, expires_at=until)


def complete_job(connection: Connection, lease: Lease, outcome: JobOutcome, now: datetime, limits: InboxLimits) -> None:
    """End the job, and delete jobs that ended long ago."""
    _end_job(connection, _find_leased_row(connection, lease).number, outcome, now)
    _prune_ended(connection, now, limits)


def release_job(
    connection: Connection,
    lease: Lease,
    now: datetime,
    limits: InboxLimits,
    *,
    error: str | None,
    after: datetime | None,
) -> None:
    """Let the job wait again, or end it if it failed too often."""
    _requeue(connection, _find_leased_row(connection, lease), now, limits, error=error, after=after)


def make_jobs_due(
    connection: Connection, now: datetime, *, keys: Collection[str] | None, kinds: Collection[str] | None
) -> int:
    """Make jobs that wait for their due time due at once; return how many."""
    of_keys, key_values = _in_condition("key", keys)
    of_kinds, kind_values = _in_condition("kind", kinds)
    changed = connection.execute(
        f"UPDATE job SET due = NULL WHERE state = 'waiting' AND due > :now{of_keys}{of_kinds}",
        {"now": to_microseconds(now), **key_values, **kind_values},
    )
    return changed.rowcount


def withdraw_job(connection: Connection, job_id: str) -> bool:
    """Remove a waiting job; return False if it is not waiting."""
    gone = connection.execute("DELETE FROM job WHERE id = :id AND state = 'waiting'", {"id": job_id})
    return gone.rowcount > 0


def has_work(connection: Connection) -> bool:
    """Return whether a job waits or runs."""
    return bool(select_rows(connection, "state IN ('waiting', 'running') LIMIT 1", {}))


def list_jobs(
    connection: Connection, *, states: Collection[str] | None, kinds: Collection[str] | None, limit: int
) -> list[JobRecord]:
    """Return the records of jobs, newest first."""
    of_states, state_values = _in_condition("state", states)
    of_kinds, kind_values = _in_condition("kind", kinds)
    rows = select_rows(
        connection,
        f"1 = 1{of_states}{of_kinds} ORDER BY number DESC LIMIT :limit",
        {"limit": limit, **state_values, **kind_values},
    )
    return [row.record for row in rows]


def _find_waiting(connection: Connection, job: Job) -> list[JobRow]:
    """Return the jobs that wait for the same work as `job`, the one with its own key first."""
    key = job_key(job)
    rows = select_rows(
        connection,
        "state = 'waiting' AND (key = :key OR (kind = :kind AND agent = :agent AND session = :session))"
        " ORDER BY key <> :key, number",
        {"key": key, "kind": job.kind, "agent": job.agent, "session": job.session},
    )
    return [row for row in rows if is_same_work(job, row.record.job)]


def _lease_row(connection: Connection, row: JobRow, now: datetime, seconds: float) -> Lease:
    job = replace(row.record.job, attempts=row.record.job.attempts + 1)
    until, token = now + timedelta(seconds=seconds), secrets.token_hex(16)
    changes: dict[str, ColumnValue] = {
        "state": "running",
        "attempts": job.attempts,
        "token": token,
        "holder": process_name(),
        "until": to_microseconds(until),
    }
    _update_row(connection, row.number, now, changes)
    return Lease(job=job, token=token, expires_at=until)


def _find_leased_row(connection: Connection, lease: Lease) -> JobRow:
    condition = "id = :id AND token = :token AND state = 'running'"
    rows = select_rows(connection, condition, {"id": lease.job.id, "token": lease.token})
    if not rows:
        raise LeaseLost(f"The lease of the {lease.job.kind} job {lease.job.id} was lost.")
    return rows[0]


def _correct_clock_skew(connection: Connection, now: datetime) -> None:
    """Shift due times and leases written by a clock that is ahead, so that they last as long from now on."""
    connection.execute(
        "UPDATE job SET due = due - changed + :now, deadline = deadline - changed + :now,"
        " until = until - changed + :now, changed = :now WHERE state IN ('waiting', 'running') AND changed > :now",
        {"now": to_microseconds(now)},
    )


def _reclaim_leases(connection: Connection, now: datetime, limits: InboxLimits) -> None:
    for row in select_rows(connection, "state = 'running' ORDER BY number", {}):
        if row.record.leased_until is None or row.record.leased_until <= now or is_process_gone(row.holder):
            # a killed process is not a failure of the job
            _requeue(connection, row, now, limits, error=None, after=None)


def _requeue(
    connection: Connection,
    row: JobRow,
    now: datetime,
    limits: InboxLimits,
    *,
    error: str | None,
    after: datetime | None,
) -> None:
    failed = error is not None
    failures = row.failures + failed
    error = error or (row.record.outcome.error if row.record.outcome else None)
    if failures >= limits.max_failures:
        _update_row(connection, row.number, now, {"failures": failures})
        _end_job(connection, row.number, JobOutcome(state="failed", error=error), now)
        _prune_ended(connection, now, limits)
        return
    job = row.record.job
    while besides := _find_waiting(connection, job):
        beside = besides[0]
        job = widen_job(job, beside.record.job)
        connection.execute("DELETE FROM job WHERE number = :number", {"number": beside.number})
    attempts = job.attempts if failed else max(0, job.attempts - 1)
    given: dict[str, ColumnValue] = {"state": "waiting", "failures": failures, "attempts": attempts, "error": error}
    _update_row(connection, row.number, now, _work_columns(replace(job, not_before=after)) | _NO_LEASE | given)


def _end_job(connection: Connection, number: int, outcome: JobOutcome, now: datetime) -> None:
    counts = json.dumps(dict(outcome.counts))
    ended: dict[str, ColumnValue] = {"state": outcome.state, "counts": counts, "error": outcome.error}
    _update_row(connection, number, now, _NO_LEASE | ended)


def _prune_ended(connection: Connection, now: datetime, limits: InboxLimits) -> None:
    for state in _ENDED_STATES:
        newest = "SELECT number FROM job WHERE state = :state ORDER BY changed DESC, number DESC LIMIT -1 OFFSET :kept"
        connection.execute(
            f"DELETE FROM job WHERE state = :state AND (changed < :before OR number IN ({newest}))"
            " AND number NOT IN (SELECT max(number) FROM job WHERE state = :state GROUP BY kind)",
            {"state": state, "before": to_microseconds(now - limits.max_age), "kept": limits.max_ended},
        )


_NO_LEASE: dict[str, ColumnValue] = {"token": None, "holder": "", "until": None}


def _work_columns(job: Job) -> dict[str, ColumnValue]:
    """Return the columns that widening changes."""
    columns = ("key", "user", "first_message", "last_message", "due", "deadline", "signals", "trace")
    return {name: value for name, value in job_columns(job).items() if name in columns}


def _update_row(connection: Connection, number: int, now: datetime, values: Mapping[str, ColumnValue]) -> None:
    changes = ", ".join(f"{name} = :{name}" for name in values)
    connection.execute(
        f"UPDATE job SET {changes}, changed = :now WHERE number = :number",
        {**values, "now": to_microseconds(now), "number": number},
    )


def _in_condition(column: str, wanted: Iterable[str] | None) -> tuple[str, dict[str, str]]:
    """Return the SQL condition that `column` is one of `wanted`, empty for None, and its values."""
    if wanted is None:
        return "", {}
    values = {f"{column}_{number}": value for number, value in enumerate(sorted(wanted))}
    return f" AND {column} IN ({', '.join(f':{name}' for name in values)})", values
