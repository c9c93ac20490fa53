"""What happens to a job, each act inside one transaction of the inbox: asked for, taken, renewed, given back, ended.

Every act that could meet a lease that ran out, or whose holder is gone, takes that back first. So whoever looks later
finds each job waiting, running under a living lease, or ended.
"""

import json
import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ricordo.database.sqlite import Connection
from ricordo.errors import LeaseLost
from ricordo.queue.contract import Job, JobRecord, JobState, Lease, Outcome
from ricordo.queue.holder import holder, is_gone
from ricordo.queue.plan import is_same_work, key_of, widened
from ricordo.queue.tables import Row, Value, found, stamp, time_of, written

__all__ = ["Limits", "add", "begin", "give_back", "has_work", "hasten", "listed", "renew", "settle", "take", "withdraw"]

_ENDED: tuple[JobState, ...] = ("done", "failed", "dropped")
_SERVED = (
    "coalesce((SELECT max(served.changed) FROM job AS served"
    " WHERE served.user = job.user AND served.state <> 'waiting'), 0)"
)
"""When a job of this user was last taken or ended: who was served longest ago is next, however many wait."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How often a job may fail before it ends as failed, and how long and how many ended ones are kept.

    `kept` is the number of each outcome.
    """

    failures: int = 5
    age: timedelta = timedelta(days=7)
    kept: int = 1000


def add(connection: Connection, job: Job, now: datetime) -> Job:
    """Store `job`, whose id is new, as waiting, or widen the one that waits for the same; return that which waits."""
    _set_right(connection, now)
    key = key_of(job)
    waiting = _waiting(connection, job)
    if waiting:
        wide = widened(waiting[0].record.job, job)
        _change(connection, waiting[0].number, now, _work(wide))
        return wide
    fresh = replace(job, key=key, attempts=0, after=time_of(stamp(job.after)), deadline=time_of(stamp(job.deadline)))
    values = written(fresh) | {"now": stamp(now)}
    connection.execute(
        f"INSERT INTO job ({', '.join(written(fresh))}, state, created, changed, failures, counts, holder)"
        f" VALUES ({', '.join(f':{name}' for name in written(fresh))}, 'waiting', :now, :now, 0, '{{}}', '')",
        values,
    )
    return fresh


def begin(connection: Connection, job: Job, now: datetime, seconds: float, limits: Limits) -> Lease | None:
    """Store `job` and lease it, unless one of its key runs."""
    _set_right(connection, now)
    _take_back(connection, now, limits)
    waiting = add(connection, job, now)
    if found(connection, "key = :key AND state = 'running'", {"key": waiting.key}):
        return None
    return _leased(connection, found(connection, "id = :id", {"id": waiting.id})[0], now, seconds)


def take(
    connection: Connection,
    now: datetime,
    seconds: float,
    limits: Limits,
    *,
    kinds: Collection[str] | None,
    key: str | None,
) -> Lease | None:
    """Lease the next job that is due."""
    _set_right(connection, now)
    _take_back(connection, now, limits)
    chosen, values = _one_of("kind", kinds)
    due = found(
        connection,
        "state = 'waiting' AND (due IS NULL OR due <= :now) AND key = coalesce(:key, key)"
        " AND NOT EXISTS (SELECT 1 FROM job AS other WHERE other.key = job.key AND other.state = 'running')"
        f"{chosen} ORDER BY coalesce(deadline <= :now, 0) DESC, {_SERVED}, number LIMIT 1",
        {"now": stamp(now), "key": key, **values},
    )
    return _leased(connection, due[0], now, seconds) if due else None


def renew(connection: Connection, lease: Lease, now: datetime, seconds: float) -> Lease:
    """Let the lease last for `seconds` from now on."""
    until = now + timedelta(seconds=seconds)
    _change(connection, _held(connection, lease).number, now, {"until": stamp(until)})
    return replace(lease, until=until)


def settle(connection: Connection, lease: Lease, outcome: Outcome, now: datetime, limits: Limits) -> None:
    """End the job, and let go of jobs that ended long ago."""
    _end(connection, _held(connection, lease).number, outcome, now)
    _prune(connection, now, limits)


def give_back(
    connection: Connection, lease: Lease, now: datetime, limits: Limits, *, error: str | None, after: datetime | None
) -> None:
    """Let the job wait again, or end when it failed too often."""
    _return(connection, _held(connection, lease), now, limits, error=error, after=after)


def hasten(
    connection: Connection, now: datetime, *, keys: Collection[str] | None, kinds: Collection[str] | None
) -> int:
    """Make what waits out a pause due at once; return how many jobs that were."""
    of_keys, key_values = _one_of("key", keys)
    of_kinds, kind_values = _one_of("kind", kinds)
    changed = connection.execute(
        f"UPDATE job SET due = NULL WHERE state = 'waiting' AND due > :now{of_keys}{of_kinds}",
        {"now": stamp(now), **key_values, **kind_values},
    )
    return changed.rowcount


def withdraw(connection: Connection, job_id: str) -> bool:
    """Remove a job that waits; False for one that does not."""
    gone = connection.execute("DELETE FROM job WHERE id = :id AND state = 'waiting'", {"id": job_id})
    return gone.rowcount > 0


def has_work(connection: Connection) -> bool:
    """Tell whether a job waits or runs."""
    return bool(found(connection, "state IN ('waiting', 'running') LIMIT 1", {}))


def listed(
    connection: Connection, *, states: Collection[str] | None, kinds: Collection[str] | None, limit: int
) -> list[JobRecord]:
    """Return the records of jobs, newest first."""
    of_states, state_values = _one_of("state", states)
    of_kinds, kind_values = _one_of("kind", kinds)
    rows = found(
        connection,
        f"1 = 1{of_states}{of_kinds} ORDER BY number DESC LIMIT :limit",
        {"limit": limit, **state_values, **kind_values},
    )
    return [row.record for row in rows]


def _waiting(connection: Connection, job: Job) -> list[Row]:
    """Return the jobs that wait for the same work as `job`, that of its own key first."""
    key = key_of(job)
    rows = found(
        connection,
        "state = 'waiting' AND (key = :key OR (kind = :kind AND agent = :agent AND session = :session))"
        " ORDER BY key <> :key, number",
        {"key": key, "kind": job.kind, "agent": job.agent, "session": job.session},
    )
    return [row for row in rows if is_same_work(job, row.record.job)]


def _leased(connection: Connection, row: Row, now: datetime, seconds: float) -> Lease:
    job = replace(row.record.job, attempts=row.record.job.attempts + 1)
    until, token = now + timedelta(seconds=seconds), secrets.token_hex(16)
    changes: dict[str, Value] = {
        "state": "running",
        "attempts": job.attempts,
        "token": token,
        "holder": holder(),
        "until": stamp(until),
    }
    _change(connection, row.number, now, changes)
    return Lease(job=job, token=token, until=until)


def _held(connection: Connection, lease: Lease) -> Row:
    condition = "id = :id AND token = :token AND state = 'running'"
    rows = found(connection, condition, {"id": lease.job.id, "token": lease.token})
    if not rows:
        raise LeaseLost(f"The lease of the {lease.job.kind} job {lease.job.id} was lost.")
    return rows[0]


def _set_right(connection: Connection, now: datetime) -> None:
    """Let pauses and leases that were written by a clock that ran ahead last as long as they would have from now on."""
    connection.execute(
        "UPDATE job SET due = due - changed + :now, deadline = deadline - changed + :now,"
        " until = until - changed + :now, changed = :now WHERE state IN ('waiting', 'running') AND changed > :now",
        {"now": stamp(now)},
    )


def _take_back(connection: Connection, now: datetime, limits: Limits) -> None:
    for row in found(connection, "state = 'running' ORDER BY number", {}):
        if row.record.until is None or row.record.until <= now or is_gone(row.holder):
            # a kill says nothing of the work
            _return(connection, row, now, limits, error=None, after=None)


def _return(
    connection: Connection, row: Row, now: datetime, limits: Limits, *, error: str | None, after: datetime | None
) -> None:
    failed = error is not None
    failures = row.failures + failed
    error = error or (row.record.outcome.error if row.record.outcome else None)
    if failures >= limits.failures:
        _change(connection, row.number, now, {"failures": failures})
        _end(connection, row.number, Outcome(state="failed", error=error), now)
        _prune(connection, now, limits)
        return
    job = row.record.job
    while besides := _waiting(connection, job):
        beside = besides[0]
        job = widened(job, beside.record.job)
        connection.execute("DELETE FROM job WHERE number = :number", {"number": beside.number})
    attempts = job.attempts if failed else max(0, job.attempts - 1)
    given: dict[str, Value] = {"state": "waiting", "failures": failures, "attempts": attempts, "error": error}
    _change(connection, row.number, now, _work(replace(job, after=after)) | _FREE | given)


def _end(connection: Connection, number: int, outcome: Outcome, now: datetime) -> None:
    counts = json.dumps(dict(outcome.counts))
    ended: dict[str, Value] = {"state": outcome.state, "counts": counts, "error": outcome.error}
    _change(connection, number, now, _FREE | ended)


def _prune(connection: Connection, now: datetime, limits: Limits) -> None:
    for state in _ENDED:
        newest = "SELECT number FROM job WHERE state = :state ORDER BY changed DESC, number DESC LIMIT -1 OFFSET :kept"
        connection.execute(
            f"DELETE FROM job WHERE state = :state AND (changed < :before OR number IN ({newest}))"
            " AND number NOT IN (SELECT max(number) FROM job WHERE state = :state GROUP BY kind)",
            {"state": state, "before": stamp(now - limits.age), "kept": limits.kept},
        )


_FREE: dict[str, Value] = {"token": None, "holder": "", "until": None}


def _work(job: Job) -> dict[str, Value]:
    """Return the columns that widening changes."""
    columns = ("key", "user", "first_message", "last_message", "due", "deadline", "signals", "trace")
    return {name: value for name, value in written(job).items() if name in columns}


def _change(connection: Connection, number: int, now: datetime, values: Mapping[str, Value]) -> None:
    changes = ", ".join(f"{name} = :{name}" for name in values)
    connection.execute(
        f"UPDATE job SET {changes}, changed = :now WHERE number = :number",
        {**values, "now": stamp(now), "number": number},
    )


def _one_of(column: str, wanted: Iterable[str] | None) -> tuple[str, dict[str, str]]:
    """Return the end of a condition that `column` is one of `wanted`, nothing for None, and its values."""
    if wanted is None:
        return "", {}
    values = {f"{column}_{number}": value for number, value in enumerate(sorted(wanted))}
    return f" AND {column} IN ({', '.join(f':{name}' for name in values)})", values
