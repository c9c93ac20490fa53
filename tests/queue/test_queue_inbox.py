"""The inbox: work that is asked for is there until somebody has done it, and is done by one at a time."""

import os
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from ricordo.clock import MonotonicIds
from ricordo.errors import InvalidSetting, LeaseLost, StorageBusy, StorageFailed, StorageFull
from ricordo.jobs import Inbox, InboxConfig, Job, JobOutcome, Lease
from ricordo.jobs.job_table import INBOX_SCHEMA, InboxLimits, is_process_gone, process_name

pytestmark = pytest.mark.anyio

DONE = JobOutcome(state="done", counts={"entries": 2})
Clock = Any


def flush(session: str = "s1", **given: Any) -> Job:
    return Job(kind="flush", agent="main", session=session, **given)


def debounced(clock: Clock, config: InboxConfig | None = None) -> dict[str, Any]:
    after, deadline = (config or InboxConfig()).due_times(clock.now())
    return {"not_before": after, "deadline": deadline}


async def leased(inbox: Inbox, **given: Any) -> Lease:
    lease = await inbox.lease(seconds=60, **given)
    assert lease is not None
    return lease


async def states(inbox: Inbox) -> list[str]:
    return [record.state for record in await inbox.jobs()]


async def test_looking_into_an_inbox_that_is_not_there_makes_none(inbox: Inbox, tmp_path: Path) -> None:
    assert await inbox.jobs() == []
    assert await inbox.lease(seconds=60) is None
    assert os.listdir(tmp_path) == []


@pytest.mark.req("DF-B24")
async def test_a_job_is_there_for_the_next_process(inbox: Inbox, tmp_path: Path, clock: Clock) -> None:
    put = await inbox.put(flush(first_id="m1", last_id="m2", user="me"))
    await inbox.close()
    again = Inbox(tmp_path / "queue.db", clock=clock, ids=MonotonicIds(clock))
    lease = await leased(again)
    assert lease.job.id == put.id
    assert (lease.job.session, lease.job.user, lease.job.first_id, lease.job.last_id) == ("s1", "me", "m1", "m2")
    await again.close()


@pytest.mark.req("DF-B24")
async def test_a_leased_job_is_given_to_nobody_else_until_the_lease_runs_out(inbox: Inbox, clock: Clock) -> None:
    await inbox.put(flush())
    first = await leased(inbox)
    assert await inbox.lease(seconds=60) is None
    clock.turn(61)
    second = await leased(inbox)
    assert second.job.id == first.job.id
    assert second.job.attempts == 1
    with pytest.raises(LeaseLost):
        await inbox.complete(first, DONE)
    with pytest.raises(LeaseLost):
        await inbox.renew(first, seconds=60)
    with pytest.raises(LeaseLost):
        await inbox.release(first)
    await inbox.complete(second, DONE)
    assert await states(inbox) == ["done"]


async def test_a_renewed_lease_lasts_longer(inbox: Inbox, clock: Clock) -> None:
    await inbox.put(flush())
    lease = await leased(inbox)
    clock.turn(50)
    lease = await inbox.renew(lease, seconds=60)
    clock.turn(50)
    assert await inbox.lease(seconds=60) is None
    await inbox.complete(lease, DONE)


@pytest.mark.req("DF-B1")
async def test_a_settled_job_tells_what_it_counted(inbox: Inbox) -> None:
    await inbox.put(flush())
    await inbox.complete(await leased(inbox), DONE)
    [record] = await inbox.jobs()
    assert record.outcome == DONE
    assert record.leased_until is None
    assert await inbox.lease(seconds=60) is None


@pytest.mark.req("DF-C18", "AS-TRIG-02", "DF-B1", "DF-C16")
async def test_asking_again_widens_the_work_that_waits(inbox: Inbox, clock: Clock) -> None:
    first = await inbox.put(
        flush(first_id="b", last_id="c", signals=frozenset({"goal"}), trace="t1", **debounced(clock))
    )
    clock.turn(20)
    second = await inbox.put(flush(first_id="d", last_id="a", signals=frozenset({"correction"}), **debounced(clock)))
    assert second.id == first.id
    assert (second.first_id, second.last_id, second.deadline) == ("b", "a", first.deadline)
    assert (sorted(second.signals), second.trace) == (["correction", "goal"], "t1")
    assert [record.job for record in await inbox.jobs()] == [second]
    wide = await inbox.put(flush(trace="t2"))
    assert (wide.first_id, wide.last_id, wide.not_before, wide.deadline) == (None, None, None, first.deadline)
    assert (await inbox.put(flush(**debounced(clock)))).not_before is None, "what is due at once is not put off"
    assert (await leased(inbox)).job.trace == "t2"


@pytest.mark.req("AS-TRIG-02", "DF-B2", "DF-QUEUE")
async def test_what_waits_for_a_pause_waits_anew_when_it_is_asked_for_again(inbox: Inbox, clock: Clock) -> None:
    await inbox.put(flush(**debounced(clock)))
    clock.turn(20)
    await inbox.put(flush(**debounced(clock)))
    clock.turn(29)
    assert await inbox.lease(seconds=60) is None
    clock.turn(1)
    assert await inbox.lease(seconds=60) is not None


@pytest.mark.req("DF-B2")
async def test_no_traffic_postpones_a_job_past_its_deadline(inbox: Inbox, clock: Clock) -> None:
    await inbox.put(flush("mine", user="me", **debounced(clock)))
    waited = 0
    while (lease := await inbox.lease(seconds=60, kinds={"flush"})) is None or lease.job.session != "mine":
        assert waited < 120, "it is postponed for longer than that"
        await inbox.put(flush("mine", user="me", **debounced(clock)))
        await inbox.put(flush(f"theirs{waited}", user="you", **debounced(clock)))
        waited += 10
        clock.turn(10)
    assert waited == 120


@pytest.mark.req("DF-B2", "DF-C18", "DF-B1")
async def test_a_pause_after_a_failure_is_not_cut_short_by_new_work_that_waits(inbox: Inbox, clock: Clock) -> None:
    await inbox.put(flush(deadline=clock.now()))
    pause = clock.now() + timedelta(seconds=300)
    await inbox.release(await leased(inbox), error="ModelUnavailable", after=pause)
    assert (await inbox.put(flush(**debounced(clock)))).not_before == pause


@pytest.mark.req("AS-TRIG-02", "DF-C18")
async def test_what_is_hastened_does_not_wait_for_a_pause(inbox: Inbox, clock: Clock) -> None:
    one, two = [await inbox.put(flush(session, **debounced(clock))) for session in ("one", "two")]
    assert await inbox.make_due(keys=[one.key]) == 1
    assert (await leased(inbox)).job.session == "one"
    assert await inbox.lease(seconds=60) is None
    assert await inbox.make_due(kinds={"consolidate"}) == 0
    assert await inbox.make_due() == 1
    await inbox.release(await leased(inbox), error="ModelUnavailable", after=clock.now() + timedelta(seconds=30))
    assert await inbox.lease(seconds=60) is None
    assert await inbox.make_due(keys=[two.key]) == 1
    assert (await leased(inbox)).job.id == two.id


async def test_what_is_withdrawn_is_gone_and_what_runs_stays(inbox: Inbox) -> None:
    one, two = [await inbox.put(flush(session)) for session in ("one", "two")]
    running = await leased(inbox)
    assert running.job.id == one.id
    assert [await inbox.withdraw(name) for name in (one.id, two.id, two.id, "none")] == [False, True, False, False]
    assert [record.job.id for record in await inbox.jobs()] == [one.id]
    assert (await inbox.put(flush("two"))).id != two.id


@pytest.mark.req("DF-B2", "DF-C16")
async def test_who_was_served_longest_ago_is_next_however_many_jobs_another_user_has(
    inbox: Inbox, clock: Clock
) -> None:
    for number in range(6):
        await inbox.put(flush(f"flood{number}", user="flood"))
    for user in ("ann", "bo"):
        await inbox.put(flush("s", user=user))
        await inbox.put(flush("t", user=user))
    served = []
    for _ in range(7):
        clock.turn(1)
        lease = await leased(inbox)
        served.append(lease.job.user)
        await inbox.complete(lease, DONE)
    assert served == ["flood", "ann", "bo", "flood", "ann", "bo", "flood"]


@pytest.mark.req("DF-B24")
async def test_an_inbox_of_an_older_version_is_taken_over_with_what_waits_in_it(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "queue.db"
    with closing(sqlite3.connect(path)) as old:
        for statement in INBOX_SCHEMA.steps[0]:
            old.execute(statement)
        old.execute(f"PRAGMA application_id = {INBOX_SCHEMA.owner}")
        old.execute("PRAGMA user_version = 1")
        old.execute(
            "INSERT INTO job (id, key, kind, agent, session, user, attempts, state, created, changed, failures, counts,"
            " holder) VALUES ('i', 'k', 'flush', 'main', 's1', '', 0, 'waiting', 0, 0, 0, '{}', '')"
        )
        old.commit()
    inbox = Inbox(path, clock=clock, ids=MonotonicIds(clock))
    assert (await leased(inbox)).job == Job(kind="flush", agent="main", session="s1", key="k", id="i", attempts=1)
    await inbox.close()


@pytest.mark.req("DF-B2", "DF-QUEUE")
@pytest.mark.parametrize(
    "given", [{"debounce_seconds": -1}, {"debounce_seconds": 5, "max_wait_seconds": 4}, {"workers": 0}]
)
def test_an_inbox_is_not_configured_with_times_or_workers_that_can_not_be(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting, match=[*given][-1]):
        InboxConfig(**given)


@pytest.mark.req("DF-B1", "DF-C18")
async def test_asking_while_it_runs_is_one_more_run_afterwards(inbox: Inbox) -> None:
    await inbox.put(flush(last_id="m1"))
    running = await leased(inbox)
    await inbox.put(flush(last_id="m2"))
    await inbox.put(flush(last_id="m3"))
    assert await inbox.lease(seconds=60) is None
    await inbox.complete(running, DONE)
    assert (await leased(inbox)).job.last_id == "m3"
    assert await states(inbox) == ["running", "done"]


@pytest.mark.req("DF-C16")
@pytest.mark.parametrize(
    "other", [flush("s2", user="me"), flush(user="you"), Job(kind="flush", agent="b", session="s1", user="me")]
)
async def test_work_of_other_sessions_users_and_agents_stays_apart(inbox: Inbox, other: Job) -> None:
    await inbox.put(flush(user="me"))
    await inbox.put(other)
    assert len({(await leased(inbox)).job.id, (await leased(inbox)).job.id}) == 2


@pytest.mark.req("DF-B2")
async def test_what_is_past_its_deadline_goes_first_then_the_oldest(inbox: Inbox, clock: Clock) -> None:
    await inbox.put(flush("old"))
    await inbox.put(flush("new"))
    await inbox.put(flush("urgent", deadline=clock.now() + timedelta(seconds=5)))
    clock.turn(6)
    assert [(await leased(inbox)).job.session for _ in range(3)] == ["urgent", "old", "new"]


@pytest.mark.req("DF-B2")
async def test_a_job_is_given_only_when_it_is_due(inbox: Inbox, clock: Clock) -> None:
    await inbox.put(flush(not_before=clock.now() + timedelta(seconds=30)))
    assert await inbox.lease(seconds=60) is None
    clock.turn(30)
    assert await inbox.lease(seconds=60) is not None


@pytest.mark.req("DF-C16")
async def test_a_worker_gets_the_kinds_and_the_key_it_asks_for(inbox: Inbox) -> None:
    put = await inbox.put(flush())
    consolidation = await inbox.put(Job(kind="consolidate", key="root"))
    assert await inbox.lease(seconds=60, kinds=()) is None
    assert (await leased(inbox, kinds={"consolidate"})).job == Job(
        kind="consolidate", key="root", id=consolidation.id, attempts=1
    )
    assert await inbox.lease(seconds=60, key="root") is None
    assert (await leased(inbox, key=put.key)).job.id == put.id


@pytest.mark.req("DF-C18")
async def test_work_is_begun_in_one_step_before_anybody_else_can_take_it(inbox: Inbox, clock: Clock) -> None:
    lease = await inbox.begin(flush(not_before=clock.now() + timedelta(hours=1)), seconds=60)
    assert lease is not None
    assert lease.job.attempts == 1
    assert await inbox.begin(flush(), seconds=60) is None
    assert await states(inbox) == ["waiting", "running"]
    await inbox.complete(lease, DONE)
    assert await inbox.lease(seconds=60) is not None


@pytest.mark.req("DF-B1")
async def test_a_job_given_back_waits_as_long_as_was_said(inbox: Inbox, clock: Clock) -> None:
    await inbox.put(flush())
    await inbox.release(await leased(inbox), error="ModelUnavailable", after=clock.now() + timedelta(seconds=30))
    [record] = await inbox.jobs()
    assert (record.state, record.outcome) == ("waiting", JobOutcome(state="failed", error="ModelUnavailable"))
    assert await inbox.lease(seconds=60) is None
    clock.turn(30)
    assert (await leased(inbox)).job.attempts == 2


@pytest.mark.req("DF-B1", "DF-C18")
async def test_a_job_given_back_takes_over_what_was_asked_for_meanwhile(inbox: Inbox) -> None:
    first = await inbox.put(flush(first_id="m1", last_id="m2"))
    lease = await leased(inbox)
    await inbox.put(flush(first_id="m3", last_id="m4"))
    await inbox.release(lease)
    [record] = await inbox.jobs()
    assert (record.job.id, record.job.first_id, record.job.last_id) == (first.id, "m1", "m4")


@pytest.mark.req("DF-B1")
async def test_a_job_that_failed_five_times_ends_as_failed_and_is_shown(inbox: Inbox) -> None:
    await inbox.put(flush())
    for _ in range(3):
        await inbox.release(await leased(inbox))
    for _ in range(5):
        assert await states(inbox) == ["waiting"]
        await inbox.release(await leased(inbox), error="ModelRefused")
    [record] = await inbox.jobs(states={"failed"})
    assert record.outcome == JobOutcome(state="failed", error="ModelRefused")
    assert await inbox.lease(seconds=60) is None
    assert (await inbox.put(flush())).id != record.job.id


@pytest.mark.req("DF-B1")
async def test_a_lease_that_runs_out_is_no_try_however_often_it_does(inbox: Inbox, clock: Clock) -> None:
    await inbox.put(flush())
    for _ in range(9):
        assert (await leased(inbox)).job.attempts == 1
        clock.turn(61)
    await inbox.release(await leased(inbox), error="ModelRefused")
    assert (await leased(inbox)).job.attempts == 2
    clock.turn(61)
    [record] = await inbox.jobs()
    assert record.outcome == JobOutcome(state="failed", error="ModelRefused")
    for _ in range(4):
        await inbox.release(await leased(inbox), error="ModelRefused")
    assert await states(inbox) == ["failed"]


@pytest.mark.req("DF-B1")
async def test_ended_jobs_are_kept_for_a_week_and_no_more_than_so_many(tmp_path: Path, clock: Clock) -> None:
    inbox = Inbox(tmp_path / "queue.db", clock=clock, ids=MonotonicIds(clock), limits=InboxLimits(max_ended=3))
    for number in range(5):
        await inbox.put(flush(f"s{number}"))
        await inbox.complete(await leased(inbox), DONE)
    assert [record.job.session for record in await inbox.jobs()] == ["s4", "s3", "s2"]
    clock.turn(timedelta(days=7, seconds=1).total_seconds())
    await inbox.put(flush("last"))
    assert len(await inbox.jobs(states={"done"})) == 3
    await inbox.complete(await leased(inbox), DONE)
    assert [record.job.session for record in await inbox.jobs()] == ["last"]
    await inbox.close()


@pytest.mark.req("DF-B1")
async def test_of_several_jobs_that_failed_for_good_each_stays_on_the_list(inbox: Inbox) -> None:
    for name in ("a", "b", "c"):
        await inbox.put(flush(name))
        for _ in range(5):
            await inbox.release(await leased(inbox), error="ModelRefused")
    assert [record.job.session for record in await inbox.jobs(states={"failed"})] == ["c", "b", "a"]


@pytest.mark.req("DF-B1")
async def test_what_failed_for_good_is_not_pushed_off_the_list_by_what_is_done(tmp_path: Path, clock: Clock) -> None:
    inbox = Inbox(tmp_path / "queue.db", clock=clock, ids=MonotonicIds(clock), limits=InboxLimits(max_ended=3))
    for name in ("a", "b"):
        await inbox.put(flush(name))
        for _ in range(5):
            await inbox.release(await leased(inbox), error="ModelRefused")
    for number in range(6):
        await inbox.put(flush(f"s{number}"))
        await inbox.complete(await leased(inbox), DONE)
    assert [record.job.session for record in await inbox.jobs(states={"failed"})] == ["b", "a"]
    await inbox.close()


async def test_jobs_are_listed_newest_first_by_state_and_kind(inbox: Inbox) -> None:
    for name in ("a", "b"):
        await inbox.put(flush(name))
    await inbox.put(Job(kind="consolidate"))
    await leased(inbox)
    assert [record.job.kind for record in await inbox.jobs(limit=2)] == ["consolidate", "flush"]
    assert [record.job.session for record in await inbox.jobs(kinds={"flush"})] == ["b", "a"]
    assert [record.job.session for record in await inbox.jobs(states={"running"})] == ["a"]
    assert await inbox.jobs(states=()) == []


async def test_a_full_disk_is_named_and_leaves_the_inbox_as_it_was(tmp_path: Path, clock: Clock) -> None:
    full = False

    def commit(connection: sqlite3.Connection) -> None:
        if full:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        connection.execute("COMMIT")

    inbox = Inbox(tmp_path / "queue.db", clock=clock, ids=MonotonicIds(clock), commit=commit)
    await inbox.put(flush("a"))
    lease = await leased(inbox)
    await inbox.put(flush("b"))
    before = await inbox.jobs()
    full = True
    acts = [
        lambda: inbox.put(flush("c")),
        lambda: inbox.begin(flush("c"), seconds=60),
        lambda: inbox.lease(seconds=60),
        lambda: inbox.renew(lease, seconds=90),
        lambda: inbox.complete(lease, DONE),
        lambda: inbox.release(lease),
    ]
    for act in acts:
        with pytest.raises(StorageFull):
            await act()  # type: ignore[no-untyped-call]
    full = False
    assert await inbox.jobs() == before
    await inbox.complete(lease, DONE)
    await inbox.close()


@pytest.mark.req("FC-LOCKED")
async def test_a_lock_held_for_too_long_is_named(tmp_path: Path, clock: Clock) -> None:
    inbox = Inbox(tmp_path / "queue.db", clock=clock, ids=MonotonicIds(clock), busy_seconds=0.1)
    await inbox.put(flush())
    with closing(sqlite3.connect(tmp_path / "queue.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageBusy):
            await inbox.put(flush())
    await inbox.put(flush())
    await inbox.close()


async def _two_lost() -> list[Job]:
    return [flush("lost"), flush("lost as well")]


def refilled(path: Path, clock: Clock) -> Inbox:
    return Inbox(path, clock=clock, ids=MonotonicIds(clock), lost=_two_lost)


@pytest.mark.req("DF-B24")
async def test_a_damaged_inbox_is_put_aside_and_asks_again_for_what_was_lost_once(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "queue.db"
    path.write_bytes(b"garbage" * 1000)
    for _ in range(2):
        inbox = refilled(path, clock)
        assert [record.job.session for record in await inbox.jobs()] == ["lost as well", "lost"]
        await inbox.close()
    assert (tmp_path / "queue.db.broken-1").read_bytes() == b"garbage" * 1000
    inbox = refilled(path, clock)
    for _ in range(2):
        await inbox.complete(await leased(inbox), DONE)
    await inbox.close()
    inbox = refilled(path, clock)
    assert await states(inbox) == ["done", "done"]
    await inbox.close()


@pytest.mark.req("DF-B24")
async def test_a_kill_between_putting_aside_and_asking_again_loses_nothing(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "queue.db.broken-1").write_bytes(b"put aside by a process that was killed then")
    inbox = refilled(tmp_path / "queue.db", clock)
    await inbox.put(flush("new"))
    assert {record.job.session for record in await inbox.jobs()} == {"lost", "lost as well", "new"}
    await inbox.close()


@pytest.mark.req("DF-B24")
async def test_an_inbox_that_is_damaged_while_it_is_open_is_made_anew(tmp_path: Path, clock: Clock) -> None:
    inbox = refilled(tmp_path / "queue.db", clock)
    await inbox.put(flush("before"))
    (tmp_path / "queue.db-wal").unlink()
    (tmp_path / "other.db").write_bytes(b"garbage" * 1000)
    (tmp_path / "other.db").rename(tmp_path / "queue.db")
    await inbox.put(flush("after"))
    assert {record.job.session for record in await inbox.jobs()} == {"lost", "lost as well", "after"}
    await inbox.close()


@pytest.mark.req("DF-B24")
async def test_an_inbox_whose_file_was_deleted_goes_on_in_a_new_one(inbox: Inbox, tmp_path: Path) -> None:
    await inbox.put(flush("before"))
    lease = await leased(inbox)
    (tmp_path / "queue.db").unlink()
    with pytest.raises(LeaseLost):
        await inbox.complete(lease, DONE)
    assert await inbox.jobs() == []
    await inbox.put(flush("after"))
    assert [record.job.session for record in await inbox.jobs()] == ["after"]


async def test_a_closed_inbox_refuses_and_closes_twice(inbox: Inbox) -> None:
    await inbox.put(flush())
    await inbox.close()
    await inbox.close()
    with pytest.raises(StorageFailed):
        await inbox.jobs()


async def test_times_are_kept_to_the_microsecond_in_any_zone(inbox: Inbox) -> None:
    after = datetime.fromisoformat("2026-11-21T07:00:00.123456+09:00")
    assert (await inbox.put(flush(not_before=after))).not_before == after
    assert (await leased(inbox)).job.not_before == after


def test_a_living_process_and_one_of_another_machine_are_not_gone() -> None:
    assert not is_process_gone(process_name())
    assert not is_process_gone("another-machine 4026531836 999999999")
    assert not is_process_gone("")
    assert is_process_gone(f"{process_name().rpartition(' ')[0]} {2**22 + 1}")


@pytest.mark.req("DF-C16", "DF-B24")
@pytest.mark.parametrize("looked", [False, True])
async def test_what_a_damaged_inbox_lost_is_done_for_the_user_who_asks_for_that_session(
    tmp_path: Path, clock: Clock, looked: bool
) -> None:
    path = tmp_path / "queue.db"
    path.write_bytes(b"garbage" * 1000)
    inbox = refilled(path, clock)
    if looked:
        assert {record.job.user for record in await inbox.jobs()} == {""}
    await inbox.put(flush("lost", user="me", first_id="m1"))
    waiting = [(record.job.session, record.job.user, record.job.first_id) for record in await inbox.jobs()]
    assert waiting == [("lost as well", "", None), ("lost", "me", None)]
    await inbox.close()


@pytest.mark.req("DF-C16")
@pytest.mark.parametrize("users", [("", "me"), ("me", ""), ("", "me", ""), ("", "me", "you"), ("me", "you", "")])
async def test_a_job_that_names_nobody_is_one_with_the_next_that_names_a_user(
    inbox: Inbox, users: tuple[str, ...]
) -> None:
    for number, user in enumerate(users):
        await inbox.put(flush(user=user, first_id=f"m{number}", last_id=f"m{number}"))
    named = list(dict.fromkeys(user for user in users if user))
    records = (await inbox.jobs())[::-1]
    assert [record.job.user for record in records] == named
    assert records[0].job.first_id == "m0"
    again = await inbox.put(flush(user="me", last_id="newest"))
    assert again.id == records[0].job.id
    assert len(await inbox.jobs()) == len(named)


@pytest.mark.req("DF-C16")
@pytest.mark.parametrize("given", [{"key": "its own"}, {"agent": "other"}, {"kind": "consolidate"}])
async def test_a_job_that_names_nobody_stays_apart_from_other_work(inbox: Inbox, given: dict[str, Any]) -> None:
    await inbox.put(Job(**{"kind": "flush", "agent": "main", "session": "s1", **given}))
    await inbox.put(flush(user="me"))
    assert sorted(record.job.user for record in await inbox.jobs()) == ["", "me"]


@pytest.mark.req("DF-C16")
async def test_a_job_that_named_nobody_and_is_given_back_is_one_with_the_user_who_asked_meanwhile(
    inbox: Inbox, clock: Clock
) -> None:
    await inbox.put(flush(first_id="m1"))
    lease = await leased(inbox)
    await inbox.put(flush(user="me", first_id="m2"))
    await inbox.release(lease, error="ValueError", after=clock.now())
    [record] = await inbox.jobs()
    assert (record.state, record.job.user, record.job.first_id) == ("waiting", "me", "m1")
    again = await leased(inbox)
    assert (again.job.user, again.job.id) == ("me", lease.job.id)


@pytest.mark.req("DF-C16", "DF-B24")
async def test_a_worker_that_looks_first_takes_what_was_lost_for_the_user_who_asks_then(
    tmp_path: Path, clock: Clock
) -> None:
    path = tmp_path / "queue.db"
    path.write_bytes(b"garbage" * 1000)
    inbox = refilled(path, clock)
    found: list[Lease] = []

    async def work() -> None:
        found.append(await leased(inbox))

    async with anyio.create_task_group() as group:
        group.start_soon(work)
        while not await inbox.jobs():
            await anyio.lowlevel.checkpoint()
        await inbox.put(flush("lost", user="me"))
    assert [(lease.job.session, lease.job.user) for lease in found] == [("lost", "me")]
    await inbox.close()


@pytest.mark.req("DF-B2")
async def test_a_job_that_was_asked_for_by_a_clock_that_ran_ahead_waits_no_longer_than_its_pause(
    inbox: Inbox, clock: Clock
) -> None:
    clock.turn(days=400)
    await inbox.put(flush("paused", not_before=clock.now() + timedelta(seconds=30)))
    await inbox.put(flush("held"))
    held = await leased(inbox)
    clock.turn(days=-400)
    assert await inbox.lease(seconds=60) is None
    clock.turn(30)
    assert (await leased(inbox)).job.session == "paused"
    clock.turn(31)
    assert (await leased(inbox)).job.id == held.job.id, "the lease lasts a minute, by whichever clock"


@pytest.mark.req("DF-B2")
async def test_what_is_said_after_a_clock_was_set_right_is_not_put_off_with_what_waits(
    inbox: Inbox, clock: Clock
) -> None:
    clock.turn(days=400)
    await inbox.put(flush(**debounced(clock)))
    clock.turn(days=-400)
    await inbox.put(flush(**debounced(clock)))
    times = InboxConfig().due_times(clock.now())
    (record,) = await inbox.jobs()
    assert record.job.not_before is not None
    assert times[1] is not None
    assert record.job.not_before <= times[1]
    assert record.job.deadline == times[1]
