"""The dry run of an import: sources are read to their end and counted, and nothing is written."""

from collections.abc import Callable, Sequence
from dataclasses import field
from datetime import datetime

from ricordo.errors import RicordoError
from ricordo.importers.contract import ImportedMessage
from ricordo.importers.reader import FoundSource, read_items
from ricordo.importers.registry import ImportFormat
from ricordo.importers.source import ImportProblem
from ricordo.lazy import dataclass

__all__ = ["FormatCounts", "ImportPlan", "plan_import"]


# chosen by hand from runs of benchmarks/import_speed.py
_SECONDS_A_MESSAGE = 0.004
_SECONDS_A_MEGABYTE = 0.02


@dataclass(kw_only=True)
class FormatCounts:
    """What the sources of one format hold; `first` and `last` are when something in them was said."""

    name: str
    files: int = 0
    bytes: int = 0
    messages: int = 0
    memories: int = 0
    problems: int = 0
    sessions: set[str] = field(default_factory=set)
    first: datetime | None = None
    last: datetime | None = None

    def add_time(self, time: datetime | None) -> None:
        """Widen the span of time."""
        if time is not None:
            self.first, self.last = min(self.first or time, time), max(self.last or time, time)


@dataclass(kw_only=True)
class ImportPlan:
    """What an import would read; `unreadable` are the names of sources that give nothing, and why."""

    formats: dict[str, FormatCounts] = field(default_factory=dict)
    unreadable: list[tuple[str, str]] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """About how long the import would take on a common machine."""
        size = sum(each.bytes for each in self.formats.values()) / 1_000_000
        count = sum(each.messages for each in self.formats.values())
        return count * _SECONDS_A_MESSAGE + size * _SECONDS_A_MEGABYTE


def plan_import(sources: Sequence[FoundSource], on_bytes: Callable[[int], None] = lambda _: None) -> ImportPlan:
    """Read all sources and count what is in them. It blocks on the disk, about a minute for each gigabyte."""
    plan = ImportPlan()
    for found in sources:
        if found.form is None:
            plan.unreadable.append((found.source.name, found.reason or f"{found.source.name} has no known format."))
            continue
        counts = plan.formats.setdefault(found.form.name, FormatCounts(name=found.form.name))
        try:
            _count(found, found.form, counts, on_bytes)
        except RicordoError as error:
            plan.unreadable.append((found.source.name, str(error)))
    return plan


def _count(found: FoundSource, form: ImportFormat, counts: FormatCounts, on_bytes: Callable[[int], None]) -> None:
    def add_problem(problem: ImportProblem) -> None:
        counts.problems += problem.skipped

    counts.files += 1
    counts.bytes += found.source.size
    for item in read_items(found.source.watched(on_problem=add_problem, on_bytes=on_bytes), form):
        if isinstance(item, ImportedMessage):
            counts.messages += 1
            counts.sessions.add(item.session)
            counts.add_time(item.message.time)
        else:
            counts.memories += 1
            counts.add_time(item.time)
