"""Background runs: what was done, when, how it ended, and what it cost; newest first.

A model request belongs to the run during which it was made; in an extraction also its session must match.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from decimal import Decimal

from ricordo.jobs import JobQueue, JobRecord
from ricordo.lazy import dataclass
from ricordo.models.spending import RequestRecord, SpendingJournal, SpendingTotal

__all__ = ["BackgroundRun", "list_background_runs", "read_background_runs"]


_PURPOSES_BY_KIND: Mapping[str, frozenset[str]] = {
    "flush": frozenset({"flush"}),
    "consolidate": frozenset({"consolidation"}),
    "maintain": frozenset({"consolidation"}),
}
_FIRST_PHASE: Mapping[str, str] = {"flush": "extract", "consolidate": "consolidate"}


@dataclass(frozen=True, kw_only=True)
class BackgroundRun:
    """One run: its `kind` (flush, consolidate, maintain), its `session`, and its state.

    `queued_at` is when it was queued, `ended_at` when it ended, None while it waits or runs. `phases` are the counts of
    each phase, in order; `error` is the type of its error. `spent` is the total of its model requests.
    """

    id: str
    kind: str
    state: str
    queued_at: datetime
    ended_at: datetime | None = None
    session: str = ""
    phases: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    error: str = ""
    spent: SpendingTotal = field(default_factory=SpendingTotal)

    @property
    def cost(self) -> Decimal:
        """The cost of its requests in US dollars, as far as prices are known."""
        return self.spent.cost


async def read_background_runs(queue: JobQueue, journal: SpendingJournal, *, limit: int) -> list[BackgroundRun]:
    """Return at most `limit` background runs, newest first, each with its spending by the `journal`."""
    records = await queue.jobs(limit=limit)
    if not records:
        return []
    # a spending day follows the user's calendar, so it may have begun on the day before
    first = min(record.created_at for record in records) - timedelta(days=1)
    return list_background_runs(records, await journal.read_since(first.date()))


def list_background_runs(records: Sequence[JobRecord], asked: Sequence[RequestRecord] = ()) -> list[BackgroundRun]:
    """Return the runs of these jobs, in their order, each with its spending."""
    left = list(asked)
    found: list[BackgroundRun] = []
    for record in records:
        mine = [each for each in left if _belongs_to(each, record)]
        left = [each for each in left if each not in mine]
        found.append(_to_run(record, sum((each.total for each in mine), SpendingTotal())))
    return found


def _to_run(record: JobRecord, spent: SpendingTotal) -> BackgroundRun:
    outcome = record.outcome
    has_ended = record.state in {"done", "failed", "dropped"}
    return BackgroundRun(
        id=record.job.id,
        kind=record.job.kind,
        state=record.state,
        queued_at=record.created_at,
        ended_at=record.changed_at if has_ended else None,
        session=record.job.session,
        phases=_group_by_phase(record.job.kind, outcome.counts if outcome else {}),
        error=(outcome.error if outcome else None) or "",
        spent=spent,
    )


def _group_by_phase(kind: str, counts: Mapping[str, int]) -> Mapping[str, Mapping[str, int]]:
    """Return the counts by phase: those of a cycle are named `phase.count`, all others belong to the first phase."""
    found: dict[str, dict[str, int]] = {}
    for name, count in counts.items():
        phase, dot, rest = name.partition(".")
        if not dot:
            phase, rest = _FIRST_PHASE.get(kind, kind), name
        found.setdefault(phase, {})[rest] = count
    return found


def _belongs_to(asked: RequestRecord, record: JobRecord) -> bool:
    if asked.purpose not in _PURPOSES_BY_KIND.get(record.job.kind, frozenset()):
        return False
    if record.job.kind == "flush" and asked.session not in {"", record.job.session}:
        return False
    at = _parse_time(asked.at)
    return at is not None and record.created_at <= at <= record.changed_at


def _parse_time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
