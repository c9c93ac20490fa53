"""The suite's own guards must catch what they promise to catch, or every other test is worth less."""

import asyncio
import gc
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

import machine_speed
from isolation import NetworkUsed
from loop_guard import LoopGuard

ROOT = Path(__file__).resolve().parents[2]

# Compiled under a name inside the watched folder, so that its frames look like the package's own.
_WATCHED = Path(os.sep) / "watched-package"
_SOURCE = """
import os, sqlite3, time

def read(path):
    with open(path, 'rb') as file:
        return file.read()

def sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)

def connect(path):
    sqlite3.connect(path).close()

def sleep(path):
    time.sleep(0.001)

def nothing(path):
    return None

def run(path, function):
    return function()

async def work():
    begun = time.thread_time()
    while time.thread_time() - begun < 0.2:
        pass

def work_at_once():
    begun = time.thread_time()
    while time.thread_time() - begun < 0.2:
        pass

async def ask(function):
    return function()
"""


def _watched() -> dict[str, Callable[..., object]]:
    names: dict[str, Callable[..., object]] = {}
    exec(compile(_SOURCE, str(_WATCHED / "blocking.py"), "exec"), names)  # the frames' file name is the point
    return names


class _Machine:
    """A machine whose slowness a test sets."""

    slowness = 1.0


@pytest.fixture(scope="module")
def installed_guard() -> LoopGuard:
    guard = LoopGuard(package=_WATCHED, stall_seconds=0.05, slowness=lambda: _Machine.slowness)
    guard.install()
    return guard


@pytest.fixture
def findings(installed_guard: LoopGuard) -> Iterator[list[str]]:
    with installed_guard.watch() as found:
        yield found


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
@pytest.mark.parametrize(
    ("act", "event"),
    [("read", "open("), ("sync", "os.fsync("), ("connect", "sqlite3.connect("), ("sleep", "time.sleep(")],
)
async def test_a_blocking_call_of_the_package_on_the_loop_is_found(
    findings: list[str], act: str, event: str, tmp_path: Path
) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"")
    _watched()[act](target)
    assert any(finding.startswith(event) and f"in {act}" in finding for finding in findings)


@pytest.mark.anyio
async def test_a_blocking_call_in_a_worker_thread_is_fine(findings: list[str], tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"")
    await anyio.to_thread.run_sync(_watched()["read"], target)
    assert findings == []


@pytest.mark.anyio
async def test_a_blocking_call_of_the_test_itself_is_fine(findings: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert findings == []


def test_a_blocking_call_without_a_loop_is_fine(findings: list[str], tmp_path: Path) -> None:
    _watched()["connect"](tmp_path / "file")
    assert findings == []


def test_the_frames_that_run_the_loop_are_not_to_blame_for_what_runs_in_it(findings: list[str], tmp_path: Path) -> None:
    async def write() -> None:
        (tmp_path / "file").write_bytes(b"")

    _watched()["run"](tmp_path, lambda: asyncio.run(write()))
    assert findings == []


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_loop_that_does_long_work_is_found(findings: list[str]) -> None:
    work: Any = _watched()["work"]
    await asyncio.create_task(work())
    assert len(findings) == 1
    assert "worked for" in findings[0]
    assert "blocking.py" in findings[0]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(("slowness", "found"), [(2.0, 1), (100.0, 0)])
async def test_a_machine_that_is_slower_than_a_normal_one_has_longer_and_a_real_stall_is_found_on_it_too(
    findings: list[str], monkeypatch: pytest.MonkeyPatch, slowness: float, found: int
) -> None:
    monkeypatch.setattr(_Machine, "slowness", slowness)
    work: Any = _watched()["work"]
    await asyncio.create_task(work())
    assert len(findings) == found


def test_a_machine_is_measured_to_be_slower_by_what_makes_it_slow_and_never_faster_than_normal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slowness(*seconds: float) -> float:
        measured = iter(seconds)
        monkeypatch.setattr(machine_speed, "_measured", lambda: next(measured))
        return machine_speed.slowness(times=len(seconds))

    assert slowness(0.0001, 0.0002) == 1.0
    assert slowness(0.004, 0.01, 0.002) == pytest.approx(5.0)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_long_work_of_the_test_itself_is_fine(findings: list[str]) -> None:
    watched: dict[str, Any] = dict(_watched())

    def work() -> None:
        watched["work_at_once"]()

    work()
    await watched["ask"](work)
    assert findings == []


@pytest.fixture
def many_objects() -> list[list[int]]:
    return [[number] for number in range(300_000)]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_collecting_garbage_is_not_the_work_of_who_happened_to_run(
    many_objects: list[list[int]], findings: list[str]
) -> None:
    async def collect() -> None:
        for _ in range(5):
            gc.collect()

    await asyncio.create_task(collect())
    assert many_objects
    assert findings == []


@pytest.mark.anyio
async def test_waiting_on_the_loop_is_not_standing_still(findings: list[str]) -> None:
    await anyio.sleep(0.1)
    assert findings == []


def test_a_connection_to_another_machine_is_refused() -> None:
    with socket.socket() as connection, pytest.raises(NetworkUsed):
        connection.connect(("192.0.2.1", 80))
    with pytest.raises(NetworkUsed):
        socket.getaddrinfo("example.org", 80)


def test_a_connection_to_this_machine_is_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert client.getpeername() == server.getsockname()


def test_home_and_the_working_directory_are_the_tests_own(home: Path, isolation_base: Path) -> None:
    assert Path.home() == home
    assert Path.cwd().is_relative_to(isolation_base)
    assert list(home.iterdir()) == []
    personal = [name for name in os.environ if name.endswith("_API_KEY") or name.startswith("RICORDO_")]
    assert sorted(personal) == ["RICORDO_EMBEDDER", "RICORDO_FLUSH__MODEL", "RICORDO_USER"]


_SUITE = """
import pytest

example = pytest.mark.req

@example("AS-MEM-01", "AS-BUG-flush-switch")
def test_passes(): pass

@example("AS-MEM-02")
def test_fails(): assert False

@example("AS-MEM-02")
def test_passes_too(): pass

@example("AS-TRIG-01")
@pytest.mark.skip(reason="not now")
def test_skipped(): pass

@pytest.fixture
def broken():
    yield
    raise ValueError

@example("AS-TRIG-02")
def test_breaks_while_cleaning_up(broken): pass
"""
_IMPORTED_FROM = ("tests", "tests/support", "scripts")


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_row_holds_only_if_some_claiming_test_passed_and_none_failed(tmp_path: Path, workers: str) -> None:
    (tmp_path / "test_suite.py").write_text(_SUITE, encoding="utf-8")
    target = tmp_path / "report.json"
    options = ["-c", str(ROOT / "pyproject.toml"), f"--rootdir={ROOT}", "-p", "conftest", "-p", "no:cacheprovider"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--requirements={target}", "-n", workers, "test_suite.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in _IMPORTED_FROM)},
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(target.read_text(encoding="utf-8"))
    assert told["passing"] == ["AS-MEM-01"], run.stdout
    assert told["claimed"] == ["AS-MEM-01", "AS-MEM-02", "AS-TRIG-01", "AS-TRIG-02"]
    assert told["also"] == ["AS-BUG-flush-switch"]
    assert len(told["open"]) + len(told["passing"]) == 320
    assert "harness" in run.stdout
