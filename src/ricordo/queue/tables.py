"""The one table of the inbox, and how its rows become jobs. Times are microseconds since 1970 in UTC.

Invariant, held by the indexes: of one key at most one job waits and at most one runs. No column holds content.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias

from ricordo.database.sqlite import Connection, Schema
from ricordo.errors import DocumentInvalid
from ricordo.messages.jsontext import decoded
from ricordo.queue.contract import Job, JobRecord, JobState, Outcome

__all__ = ["COLUMNS", "SCHEMA", "Row", "Value", "found", "stamp", "time_of", "written"]

SCHEMA = Schema(
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

COLUMNS = (
    "number, id, key, kind, agent, session, user, first_message, last_message, due, deadline, attempts, state, "
    "created, changed, failures, error, counts, token, holder, until, signals, trace"
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_JOB = (
    "id", "key", "kind", "agent", "session", "user", "first_message", "last_message", "due", "deadline", "attempts",
    "signals", "trace",
)  # fmt: skip
Value: TypeAlias = str | int | None
"""What a column holds."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A job as it is stored: its record, and what only the inbox knows of it."""

    number: int
    record: JobRecord
    failures: int
    token: str | None
    holder: str


def stamp(time: datetime | None) -> int | None:
    """Return the time as it is stored; a naive one is taken as UTC."""
    if time is None:
        return None
    aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    return (aware - _EPOCH) // timedelta(microseconds=1)


def time_of(stored: int | None) -> datetime | None:
    """Return a stored time, in UTC."""
    return None if stored is None else _EPOCH + timedelta(microseconds=stored)


def written(job: Job) -> dict[str, Value]:
    """Return the columns that say what the job is."""
    values: tuple[Value, ...] = (
        job.id,
        job.key,
        job.kind,
        job.agent,
        job.session,
        job.user,
        job.first,
        job.last,
        stamp(job.after),
        stamp(job.deadline),
        job.attempts,
        " ".join(sorted(job.signals)),
        job.trace,
    )
    return dict(zip(_JOB, values, strict=True))


def found(connection: Connection, where: str, values: Mapping[str, Value]) -> list[Row]:
    """Return the rows for a condition, which may end with an order and a limit.

    Raises: DocumentInvalid for a row that nobody wrote.
    """
    rows = connection.execute(f"SELECT {COLUMNS} FROM job WHERE {where}", values).fetchall()
    try:
        return [_row(dict(zip(COLUMNS.split(", "), row, strict=True))) for row in rows]
    except (ValueError, OverflowError) as error:
        raise DocumentInvalid(f"The inbox holds a job that can't be read: {error}") from error


def _row(row: Mapping[str, Value]) -> Row:
    state = _state(row["state"])
    record = JobRecord(
        job=_job(row),
        state=state,
        created=_EPOCH + timedelta(microseconds=_number(row, "created")),
        changed=_EPOCH + timedelta(microseconds=_number(row, "changed")),
        outcome=_outcome(state, row),
        until=time_of(_number_or_none(row, "until")),
    )
    return Row(
        number=_number(row, "number"),
        record=record,
        failures=_number(row, "failures"),
        token=_text_or_none(row, "token"),
        holder=_text(row, "holder"),
    )


def _job(row: Mapping[str, Value]) -> Job:
    return Job(
        kind=_text(row, "kind"),
        agent=_text(row, "agent"),
        session=_text(row, "session"),
        user=_text(row, "user"),
        first=_text_or_none(row, "first_message"),
        last=_text_or_none(row, "last_message"),
        after=time_of(_number_or_none(row, "due")),
        deadline=time_of(_number_or_none(row, "deadline")),
        key=_text(row, "key"),
        signals=frozenset(_text(row, "signals").split()),
        trace=_text(row, "trace"),
        id=_text(row, "id"),
        attempts=_number(row, "attempts"),
    )


def _outcome(state: JobState, row: Mapping[str, Value]) -> Outcome | None:
    error = _text_or_none(row, "error")
    ended: Literal["done", "failed", "dropped"]
    match state:
        case "done" | "failed" | "dropped":
            ended = state
        case _ if error is not None:
            ended = "failed"
        case _:
            return None
    return Outcome(state=ended, counts=_counts(row), error=error)


def _counts(row: Mapping[str, Value]) -> dict[str, int]:
    counts: object = decoded(_text(row, "counts") or "{}")
    if not isinstance(counts, dict) or not all(isinstance(count, int) for count in counts.values()):
        raise ValueError("its counts are no numbers.")
    return counts


def _state(value: Value) -> JobState:
    match value:
        case "waiting" | "running" | "done" | "failed" | "dropped":
            return value
        case _:
            raise ValueError(f"A job has no state {value!r}.")


def _text(row: Mapping[str, Value], name: str) -> str:
    value = _text_or_none(row, name)
    if value is None:
        raise ValueError(f"it has no {name}.")
    return value


def _text_or_none(row: Mapping[str, Value], name: str) -> str | None:
    value = row[name]
    if isinstance(value, str) or value is None:
        return value
    raise ValueError(f"its {name} is no text.")


def _number(row: Mapping[str, Value], name: str) -> int:
    value = _number_or_none(row, name)
    if value is None:
        raise ValueError(f"it has no {name}.")
    return value


def _number_or_none(row: Mapping[str, Value], name: str) -> int | None:
    value = row[name]
    if isinstance(value, int) or value is None:
        return value
    raise ValueError(f"its {name} is no number.")
