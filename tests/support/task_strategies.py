"""Generated tasks for property tests."""

from datetime import UTC, datetime
from typing import get_args

from hypothesis import strategies as st

from message_strategies import any_text, json_values
from ricordo.clock import truncate_to_milliseconds
from ricordo.jobs import Task, TaskProgress, TaskState
from ricordo.jobs.tasks import TaskType

__all__ = ["plain_tasks", "tasks"]

_FIELDS = frozenset(Task.__dataclass_fields__)


def moments() -> st.SearchStrategy[datetime]:
    """Times in whole milliseconds, which is what a record keeps."""
    return st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)).map(
        truncate_to_milliseconds
    )


def plain_tasks() -> st.SearchStrategy[Task]:
    """Tasks that differ in what decides on them, and are quickly made."""
    some = st.sampled_from([datetime(2026, 11, 21, hour, tzinfo=UTC) for hour in range(6)])
    return st.builds(
        Task,
        id=st.sampled_from([f"t{number}" for number in range(12)]),
        type=st.sampled_from(get_args(TaskType)),
        title=st.sampled_from(["", "Build"]),
        state=st.sampled_from(get_args(TaskState)),
        created_at=some,
        last_seen_at=some,
        ended_at=st.none() | some,
        error=st.sampled_from(["", "No."]),
        cancelling=st.booleans(),
    )


def tasks() -> st.SearchStrategy[Task]:
    counts = st.integers(0, 10**6)
    return st.builds(
        Task,
        id=st.text("abcdefgh0123", min_size=1, max_size=8),
        type=st.sampled_from(get_args(TaskType)),
        title=any_text(12),
        state=st.sampled_from(get_args(TaskState)),
        worker=any_text(5),
        agent=any_text(5),
        session=any_text(5),
        user=any_text(5),
        created_at=moments(),
        last_seen_at=moments(),
        ended_at=st.none() | moments(),
        progress=st.builds(TaskProgress, done=counts, total=st.none() | counts, text=any_text(8)),
        result=any_text(),
        error=any_text(),
        cancelling=st.booleans(),
        extra=st.dictionaries(any_text(6).filter(lambda name: name not in _FIELDS), json_values(), max_size=2),
    )
