"""The one table of the inbox, and how its rows become jobs. Times are microseconds since 1970 in UTC.

Invariant, held by the indexes: of one key at most one job waits and at most one runs. No column holds content.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias

from ricordo.database.sqlite import Connection, Schema
from ricordo.errors import DocumentInvalid
from ricordo.messages.jsontext import decode_json
from ricordo.queue.contract import Job, JobRecord, JobState, JobOutcome

__all__ = [
    "JOB_COLUMNS",
    "INBOX_SCHEMA",
    "JobRow",
    "ColumnValue",
    "select_rows",
    "to_microseconds",
    "from_microseconds",
    "job_columns",
]

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
"""What a column holds."""


@dataclass(frozen=True, kw_only=True)
class JobRow:
    """A job as it is stored: its record, and what only the inbox knows of it."""

    number: int
    record: JobRecord
    failures: int
    token: str | None
    holder: str


def to_microseconds(time: datetime | None) -> int | None:
    """Return the time as it is stored; a naive one is taken as UTC."""
    if time is None:
        return None
    aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    return (aware - _EPOCH) // timedelta(microseconds=1)


def from_microseconds(stored: int | None) -> datetime | None:
    """Return a stored time, in UTC."""
    return None if stored is None else _EPOCH + timedelta(microseconds=stored)


def job_columns(job: Job) -> dict[str, ColumnValue]:
    """Return the columns that say what the job is."""
    values: tuple[ColumnValue, ...] = (
        job.id,
        job.key,
        job.kind,
        job.agent,
        job.session,
        job.user,
        job.first,
        job.last,
        to_microseconds(job.after),
        to_microseconds(job.deadline),
        job.attempts,
        " ".join(sorted(job.signals)),
        job.trace,
    )
    return dict(zip(_JOB_FIELDS, values, strict=True))


def select_rows(connection: Connection, where: str, values: Mapping[str, ColumnValue]) -> list[JobRow]:
    """Return the rows for a condition, which may end with an order and a limit.

    Raises: DocumentInvalid for a row that nobody wrote.
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
        created=_EPOCH + timedelta(microseconds=_read_number(row, "created")),
        changed=_EPOCH + timedelta(microseconds=_read_number(row, "changed")),
        outcome=_read_outcome(state, row),
        until=from_microseconds(_read_optional_number(row, "until")),
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
        first=_read_optional_text(row, "first_message"),
        last=_read_optional_text(row, "last_message"),
        after=from_microseconds(_read_optional_number(row, "due")),
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
