"""Many processes on one inbox, some of them killed: each job is done, and none by two."""

from collections import Counter
from pathlib import Path

import pytest

from piped_processes import PipedProcess, start_script
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.jobs import Inbox

WORKER = Path(__file__).parent / "queue_worker.py"

pytestmark = [pytest.mark.anyio, pytest.mark.req("DF-B24")]


def start(path: Path, name: str, what: str, amount: int) -> PipedProcess:
    return start_script(WORKER, path, name, what, amount)


def told(process: PipedProcess) -> list[str]:
    out, error = process.communicate(timeout=100)
    assert process.returncode == 0, error
    return out.splitlines()


async def opened(path: Path) -> Inbox:
    clock = SystemClock()
    return Inbox(path, clock=clock, ids=MonotonicIds(clock))


@pytest.mark.req("FC-LOCKED")
async def test_each_of_the_jobs_of_eight_processes_is_done_by_exactly_one(tmp_path: Path) -> None:
    running = [start(tmp_path / "queue.db", f"p{number}", "work", 20) for number in range(8)]
    done = Counter(line for process in running for line in told(process))
    assert done == Counter(f"did p{process}-{number}" for process in range(8) for number in range(20))
    inbox = await opened(tmp_path / "queue.db")
    assert {record.state for record in await inbox.jobs(limit=1000)} == {"done"}
    assert len(await inbox.jobs(limit=1000)) == 160
    await inbox.close()


def test_jobs_of_one_key_never_run_at_once(tmp_path: Path) -> None:
    running = [start(tmp_path / "queue.db", f"p{number}", "same_key", 15) for number in range(4)]
    begun = [line for process in running for line in told(process)]
    assert len(begun) >= 15
    assert set(begun) == {"begin 1"}


@pytest.mark.parametrize("at", [sign * number for number in range(1, 8) for sign in (1, -1)])
async def test_a_process_killed_at_any_commit_leaves_each_job_waiting_or_done(tmp_path: Path, at: int) -> None:
    process = start(tmp_path / "queue.db", "p", "killed", at)
    out = process.communicate(timeout=60)[0].splitlines()
    assert (process.returncode == -9) != ("lived" in out)
    inbox = await opened(tmp_path / "queue.db")
    left = []
    while (lease := await inbox.lease(seconds=60)) is not None:
        left.append(lease.job.session)
    done = [record.job.session for record in await inbox.jobs(states={"done"})]
    assert len(left) <= 1
    for session in ("a", "b"):
        assert (session in left) + (session in done) <= 1
        if f"put {session}" in out:
            assert session in left or session in done
        if f"settled {session}" in out:
            assert session in done
    assert {record.job.attempts for record in await inbox.jobs(states={"running"})} <= {1, 2}
    await inbox.close()
