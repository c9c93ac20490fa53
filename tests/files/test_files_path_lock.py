"""The lock around one write keeps out every other holder of its file, and is let go whatever happens."""

import errno
import os
import stat
import threading
import time
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

from ricordo.storage import local as path_lock
from ricordo.storage.local import hold_lock

LOCKS = Path("/proc/locks")
pytestmark = [pytest.mark.skipif(os.name == "nt", reason="there filelock is what is used"), pytest.mark.req("DF-C52")]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The descriptors of lock files, as they are opened."""
    descriptors: list[int] = []
    real = path_lock._open_lock_file

    def noted(path: str) -> int:
        descriptors.append(real(path))
        return descriptors[-1]

    monkeypatch.setattr(path_lock, "_open_lock_file", noted)
    return descriptors


@pytest.mark.req("AS-FS-02", "GO-D9")
def test_what_is_locked_is_locked_for_everybody_until_it_is_let_go(tmp_path: Path) -> None:
    path = str(tmp_path / "one.lock")
    with hold_lock(path, 0):
        with pytest.raises(Timeout), hold_lock(path, 0.01):
            pass
        with pytest.raises(Timeout), FileLock(path, timeout=0):
            pass
    # who has given up waiting still leaves the queue
    with FileLock(path, timeout=20), pytest.raises(Timeout), hold_lock(path, 0):
        pass
    with hold_lock(path, 0):
        pass


@pytest.mark.req("DF-C52")
@pytest.mark.skipif(not LOCKS.exists(), reason="who waits can't be seen there")
def test_those_who_wait_have_it_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    path, order = tmp_path / "one.lock", list[int]()

    def wait(number: int) -> None:
        with hold_lock(str(path), 60):
            order.append(number)

    def count_waiting() -> int:
        return sum("->" in line and f":{path.stat().st_ino} " in line for line in LOCKS.read_text("ascii").splitlines())

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(8)]
    with hold_lock(str(path), 0):
        for number, thread in enumerate(threads):
            thread.start()
            while count_waiting() <= number:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert order == list(range(8))


@pytest.mark.req("GO-D9")
def test_threads_have_it_one_after_the_other(tmp_path: Path) -> None:
    path, inside, most = str(tmp_path / "one.lock"), [0], [0]

    def work() -> None:
        for _ in range(20):
            with hold_lock(path, 10):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (inside[0], most[0]) == (0, 1)


def test_an_error_lets_it_go(tmp_path: Path) -> None:
    path = str(tmp_path / "one.lock")
    with pytest.raises(ZeroDivisionError), hold_lock(path, 0):
        _ = 1 // 0
    with hold_lock(path, 0):
        pass


def test_a_child_that_was_forked_meanwhile_does_not_keep_it(tmp_path: Path, opened: list[int]) -> None:
    path = str(tmp_path / "one.lock")
    with hold_lock(path, 0):
        # the very same open file, as a child has it
        childs = os.dup(opened[0])
    try:
        with hold_lock(path, 0):
            pass
    finally:
        os.close(childs)


def test_a_lock_file_that_was_removed_meanwhile_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "one.lock"
    path.touch()
    real = path_lock._open_lock_file

    def removed(name: str) -> int:
        descriptor = real(name)
        monkeypatch.undo()
        path.unlink()
        return descriptor

    monkeypatch.setattr(path_lock, "_open_lock_file", removed)
    with hold_lock(str(path), 1), pytest.raises(Timeout), FileLock(path, timeout=0):
        pass


@pytest.mark.req("GO-D13")
def test_its_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o777)
    try:
        with hold_lock(str(tmp_path / "one.lock"), 0):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "one.lock").stat().st_mode) == 0o600


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "one.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"one\.lock"), hold_lock(str(tmp_path / "one.lock"), 0):
        pass
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(("code", "is_done_without"), [(errno.ENOSYS, True), (errno.EIO, False)])
def test_where_there_is_no_such_lock_filelock_finds_another_way(
    code: int, is_done_without: bool, tmp_path: Path, opened: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []

    class Other(FileLock):
        def _acquire(self) -> None:
            taken.append(self.lock_file)
            super()._acquire()

    def refused(descriptor: int, operation: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(path_lock, "_lock_file", refused)
    monkeypatch.setattr(path_lock, "FileLock", Other)
    path = str(tmp_path / "one.lock")
    if is_done_without:
        with hold_lock(path, 0):
            assert taken == [path]
    else:
        with pytest.raises(OSError, match=os.strerror(code)), hold_lock(path, 0):
            pass
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        os.fstat(opened[0])
