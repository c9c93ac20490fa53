"""Background runs: what was done, when, how it ended, and what it cost; newest first.

A request to a model belongs to the run during which it was made, and in the extraction of a session to that session's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from ricordo.jobs import JobRecord
from ricordo.models.spending import RequestRecord, SpendingTotal

__all__ = ["BackgroundRun", "list_background_runs"]


_PURPOSES_BY_KIND: Mapping[str, frozenset[str]] = {
    "flush": frozenset({"flush"}),
    "consolidate": frozenset({"consolidation"}),
    "maintain": frozenset({"consolidation"}),
}
_FIRST_PHASE: Mapping[str, str] = {"flush": "extract", "consolidate": "consolidate"}


@dataclass(frozen=True, kw_only=True)
class BackgroundRun:
    """One run: its `kind` (flush, consolidate, maintain), the `session` it was about, and how it stands.

    `queued_at` is when it came into the inbox, `ended_at` when it was done, None while it waits or runs. `phases` are
    what each counted, in order; `error` is the type of its error. `spent` is what it asked models for.
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
        """What its requests cost, in US dollars, as far as prices are known."""
        return self.spent.cost


def list_background_runs(records: Sequence[JobRecord], asked: Sequence[RequestRecord] = ()) -> list[BackgroundRun]:
    """Return the runs that the jobs tell of, in their order, each with what it spent."""
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
        queued_at=record.created,
        ended_at=record.changed if has_ended else None,
        session=record.job.session,
        phases=_group_by_phase(record.job.kind, outcome.counts if outcome else {}),
        error=(outcome.error if outcome else None) or "",
        spent=spent,
    )


def _group_by_phase(kind: str, counts: Mapping[str, int]) -> Mapping[str, Mapping[str, int]]:
    """Return the counts by phase: those of a cycle are named `phase.count`, those of other runs belong to its own."""
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
    return at is not None and record.created <= at <= record.changed


def _parse_time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
