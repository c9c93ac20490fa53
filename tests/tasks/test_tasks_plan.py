"""What may become of a task, whoever wants what."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.errors import InvalidQuery, TaskNotFound
from ricordo.jobs import Task, TaskProgress, TaskState, complete_task
from ricordo.jobs.tasks.contract import (
    MAX_ERROR,
    MAX_RESULT,
    MAX_TITLE,
    apply_change,
    cancel_task,
    drop_oldest_ended,
    fail_task,
    find_by_id,
    find_orphans,
    orphan_if_silent,
    record_heartbeat,
    request_cancel,
    truncate_task,
)
from task_strategies import plain_tasks

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
TASK = Task(id="t1", type="local_bash", title="Build", state="running", created_at=NOON, last_seen_at=NOON)
MAY_BECOME: dict[TaskState, set[TaskState]] = {
    "pending": {"pending", "running", "completed", "failed", "cancelled", "orphaned"},
    "running": {"running", "completed", "failed", "cancelled", "orphaned"},
    "orphaned": {"orphaned", "completed", "failed", "cancelled"},
    "completed": {"completed"},
    "failed": {"failed"},
    "cancelled": {"cancelled"},
}


def ends() -> list[Callable[[Task], Task]]:
    return [
        lambda task: complete_task(task, "Built.", NOON),
        lambda task: fail_task(task, "No compiler.", NOON),
        lambda task: cancel_task(task, "It was cancelled.", NOON),
    ]


@pytest.mark.req("AS-TASK-01")
@given(plain_tasks(), plain_tasks())
def test_whatever_is_wanted_a_task_takes_only_the_ways_that_there_are(task: Task, wanted: Task) -> None:
    new = apply_change(task, lambda _: wanted)
    assert new.state in MAY_BECOME[task.state]
    assert (new.id, new.type, new.created_at) == (task.id, task.type, task.created_at)
    assert new.last_seen_at >= task.last_seen_at
    assert new.cancelling or not task.cancelling
    assert new is task or (new.ended_at is not None) == new.has_ended


@pytest.mark.req("AS-TASK-01")
@given(plain_tasks(), plain_tasks())
def test_a_task_that_ended_stays_as_it_is(task: Task, wanted: Task) -> None:
    if task.has_ended:
        assert apply_change(task, lambda _: wanted) is task


@pytest.mark.req("AS-TASK-01")
@given(plain_tasks(), st.lists(plain_tasks(), max_size=5))
def test_no_row_of_changes_leads_out_of_an_end_or_back_from_an_orphan_to_work(task: Task, row: list[Task]) -> None:
    states = [task.state]
    for wanted in row:
        task = apply_change(task, lambda _, wanted=wanted: wanted)  # type: ignore[misc]
        states.append(task.state)
    ended = next((state for state in states if state in {"completed", "failed", "cancelled"}), None)
    assert ended is None or states[-1] == ended
    assert "orphaned" not in states or not {"pending", "running"} & set(states[states.index("orphaned") :])


@pytest.mark.req("AS-TASK-01")
def test_a_change_that_changes_nothing_gives_the_same_task() -> None:
    assert apply_change(TASK, replace) is TASK


@pytest.mark.req("AS-TASK-01")
@pytest.mark.parametrize("end", ends())
def test_an_orphan_that_comes_back_ends_as_its_work_did(end: Callable[[Task], Task]) -> None:
    lost = apply_change(TASK, lambda task: orphan_if_silent(task, NOON + timedelta(minutes=10)))
    assert lost.state == "orphaned"
    assert lost.error
    alive = apply_change(
        lost,
        lambda task: record_heartbeat(task, NOON + timedelta(minutes=11), progress=TaskProgress(done=1), works=True),
    )
    assert (alive.state, alive.error, alive.progress.done) == ("orphaned", lost.error, 1)
    assert apply_change(alive, end) == replace(end(alive), last_seen_at=alive.last_seen_at)
    assert apply_change(alive, ends()[0]).error == ""


@pytest.mark.req("AS-TASK-01")
@pytest.mark.parametrize("state", ["pending", "running"])
def test_a_task_is_orphaned_after_exactly_ten_minutes_without_a_sign(state: TaskState) -> None:
    task = replace(TASK, state=state)
    just_before = NOON + timedelta(minutes=10) - timedelta(milliseconds=1)
    assert find_orphans([task], just_before) == ()
    assert [each.state for each in find_orphans([task], NOON + timedelta(minutes=10))] == ["orphaned"]
    assert orphan_if_silent(task, NOON + timedelta(seconds=5), after=timedelta(seconds=5)).state == "orphaned"


@pytest.mark.req("AS-TASK-01")
@given(st.lists(plain_tasks(), max_size=5), plain_tasks().map(lambda task: task.last_seen_at))
def test_only_those_at_work_are_ever_orphaned(listed: list[Task], now: datetime) -> None:
    before = {id(task): task for task in listed}
    for task in find_orphans(listed, now):
        assert any(
            replace(task, state=each.state, error=each.error) == each and each.state in {"pending", "running"}
            for each in before.values()
        )


@pytest.mark.req("AS-TASK-01")
def test_who_is_asked_to_stop_depends_on_whether_anybody_runs_it() -> None:
    later = NOON + timedelta(minutes=10)
    assert request_cancel(TASK, NOON) == replace(TASK, cancelling=True)
    assert request_cancel(TASK, later).state == "cancelled"
    assert request_cancel(replace(TASK, state="orphaned"), NOON).state == "cancelled"
    done = complete_task(TASK, "Built.", NOON)
    assert request_cancel(done, later) is done


@given(st.lists(plain_tasks(), max_size=12, unique_by=lambda task: task.id), st.integers(0, 12))
def test_the_first_to_have_ended_leave_first_and_those_at_work_stay(listed: list[Task], most: int) -> None:
    left = drop_oldest_ended(listed, most)
    assert [task for task in listed if task in left] == list(left)
    assert {task.id for task in listed if not task.has_ended} <= {task.id for task in left}
    assert len(left) <= max(most, sum(not task.has_ended for task in listed))
    assert len(left) == len(listed) or len(left) >= most
    gone = [task.ended_at or task.last_seen_at for task in listed if task not in left]
    stay = [task.ended_at or task.last_seen_at for task in left if task.has_ended]
    assert not gone or not stay or max(gone) <= min(stay)


def test_a_result_is_cut_with_a_notice_once() -> None:
    cut = truncate_task(replace(TASK, result="x" * (MAX_RESULT + 1)))
    assert len(cut.result) <= MAX_RESULT
    assert cut.result.endswith("\n[cut: the result had 100,001 characters]")
    assert truncate_task(cut) is cut
    whole = replace(TASK, result="x" * MAX_RESULT)
    assert truncate_task(whole) is whole


def test_an_error_and_a_title_are_cut_where_they_are_kept_and_not_before() -> None:
    task = fail_task(replace(TASK, title="t" * 81), "x" * 5000, NOON)
    assert (len(task.title), len(task.error)) == (81, 5000)
    cut = truncate_task(task)
    assert (cut.title, cut.error) == ("t" * 79 + "…", "x" * MAX_ERROR)
    assert truncate_task(cut) is cut
    assert truncate_task(replace(TASK, title="t" * MAX_TITLE)).title == "t" * MAX_TITLE


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (replace(TASK, progress=TaskProgress(text="3 lines of output, process 123")),
         " Its command may still run as process 123."),
        (TASK, " Its command may still run."),
        (replace(TASK, state="pending"), ""),
        (replace(TASK, type="dream", progress=TaskProgress(text="process 123")), ""),
    ],
)  # fmt: skip
def test_an_orphaned_command_is_told_to_go_on_perhaps_and_as_which_process(task: Task, said: str) -> None:
    later = NOON + timedelta(minutes=10)
    assert orphan_if_silent(task, later).error.endswith(f" gone.{said}")
    assert request_cancel(task, later).error.endswith(f" gone.{said}")


def test_a_task_is_found_by_the_begin_or_the_end_of_its_id() -> None:
    first, second = replace(TASK, id="aaaaaabbbbbb1"), replace(TASK, id="aaaaaabbbbbb2")
    listed = [first, second]
    assert find_by_id(listed, "aaaaaabbbbbb1") is first
    assert find_by_id(listed, "bbbbb2") is second
    assert find_by_id([first, replace(TASK, id="aaaaaabbbbbb12")], "aaaaaabbbbbb1") is first
    with pytest.raises(InvalidQuery, match="2 tasks"):
        find_by_id(listed, "aaaaaa")
    for unknown in ("bbbb2", "cccccc", ""):
        with pytest.raises(TaskNotFound):
            find_by_id(listed, unknown)
