"""A program that kills a store's process at each step, or lets several use it at once, and prints the results.

    FILE CLASS FOLDER together|kills|full COUNT

are its arguments. FILE defines CLASS, a `StoreSubject`. Each line of the output is one case as JSON. Forking requires a
process without threads, so this process has none, and only its children open stores.
"""

import gc
import importlib
import importlib.util
import json
import os
import resource
import shutil
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from anyio.to_thread import run_sync

from ricordo.errors import StorageError
from ricordo.storage.disk import Disk
from ricordo.stores.contract import Store
from ricordo.testing.store_subject import StoreSubject, list_entries
from ricordo.workspace.entry import Entry

__all__ = ["main"]


_Report: TypeAlias = Callable[[str], None]
_ChildWork: TypeAlias = Callable[[_Report], Awaitable[None]]
_SAVES = 3


class _KillingDisk(Disk):
    """A disk that kills its process just before step number `at`; in a write, after half of the bytes."""

    def __init__(self, step: int, report: _Report) -> None:
        self._at = step
        self._tell = report
        self._step = 0

    def _count_step(self) -> None:
        self._step += 1
        self._tell("step")
        if self._step == self._at:
            os.kill(os.getpid(), signal.SIGKILL)

    def make_file(self, path: str, flags: int = 0) -> int:
        self._count_step()
        return super().make_file(path, flags)

    def write(self, descriptor: int, data: bytes) -> None:
        half = len(data) // 2
        super().write(descriptor, data[:half])
        self._count_step()
        super().write(descriptor, data[half:])

    def sync(self, descriptor: int) -> None:
        """Return without syncing: data of a killed process survives without it."""
        self._count_step()

    def truncate(self, descriptor: int, size: int) -> None:
        self._count_step()
        super().truncate(descriptor, size)

    def rename(self, source: str, target: str) -> None:
        self._count_step()
        super().rename(source, target)

    def exchange(self, source: str, target: str) -> bool:
        self._count_step()
        return super().exchange(source, target)

    def rename_new(self, source: str, target: str) -> bool:
        self._count_step()
        return super().rename_new(source, target)

    def unlink(self, path: str) -> None:
        self._count_step()
        super().unlink(path)

    def make_folder(self, path: str) -> None:
        self._count_step()
        super().make_folder(path)

    def sync_folder(self, path: str) -> None:
        self._count_step()

    def commit(self, connection: Any) -> None:
        self._count_step()
        super().commit(connection)


def main() -> None:
    """Run the command of the arguments."""
    file, name, folder, mode, count = sys.argv[1:]
    subject = _load_subject(file, name)
    anyio.run(anyio.sleep, 0)
    act = {"together": _save_together, "kills": _kill_at_steps, "full": _save_to_full_disk}[mode]
    act(subject, Path(folder), int(count))


def _save_together(subject: StoreSubject, folder: Path, count: int) -> None:
    """Let two processes save `count` entries each at the same time, and report what is stored afterwards."""
    names = ("one", "two")
    _warm_up(_wait_for_child(_start_child(partial(_prepare, subject, folder)))[0])
    gate = os.pipe()
    running = [_start_child(partial(_save_many, subject, folder, name, count, gate=gate)) for name in names]
    os.close(gate[0])
    for _, readable in running:
        os.read(readable, 1)
    os.close(gate[1])
    for child in running:
        _wait_for_child(child)
    lines, _ = _wait_for_child(_start_child(partial(_report_entries, subject, folder)))
    _print_case({"kept": json.loads(lines[0])})


def _kill_at_steps(subject: StoreSubject, folder: Path, count: int) -> None:
    """Kill a saving process at about `count` of its steps and after each save, and report what is left."""
    prepared = folder / "prepared"
    _warm_up(_wait_for_child(_start_child(partial(_prepare, subject, prepared)))[0])
    lines, _ = _wait_for_child(
        _start_child(partial(_save, subject, _copy(prepared, folder / "count"), step=-1, returned=-1))
    )
    steps = lines.count("step") if subject.uses_disk else 0
    every = max(1, steps // max(count, 1))
    cases = [(step, -1) for step in range(1, steps + 1, every)] + [(-1, returned) for returned in range(1, _SAVES + 1)]
    for step, returned in cases:
        copy = _copy(prepared, folder / f"at-{step}-{returned}")
        reported, has_survived = _wait_for_child(
            _start_child(partial(_save, subject, copy, step=step, returned=returned))
        )
        output, _ = _wait_for_child(_start_child(partial(_report_entries, subject, copy)))
        shutil.rmtree(copy)
        _print_case({
            "where": f"step {step} of {steps}" if step > 0 else f"the return of save {returned}",
            "killed": not has_survived,
            "acked": [line.removeprefix("saved ") for line in reported if line.startswith("saved ")],
            "kept": json.loads(output[0]),
            "again": json.loads(output[1]),
        })  # fmt: skip


def _save_to_full_disk(subject: StoreSubject, folder: Path, count: int) -> None:
    """Let no file grow while `count` entries are saved; report the errors, and what is stored afterwards."""
    _warm_up(_wait_for_child(_start_child(partial(_prepare, subject, folder)))[0])
    errors, _ = _wait_for_child(_start_child(partial(_save_without_room, subject, folder, count)))
    output, _ = _wait_for_child(_start_child(partial(_report_entries, subject, folder)))
    _print_case({"errors": errors, "kept": json.loads(output[0]), "again": json.loads(output[1])})


async def _save_without_room(subject: StoreSubject, folder: Path, count: int, report: _Report) -> None:
    async with subject.open_store(folder) as store:
        before = (await store.recall(""), await store.preamble())
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        for _ in range(count):
            try:
                await store.save(Entry(content="Not this walnut. " * 1_000))
            except StorageError:
                report("refused")
            else:
                report("saved")
            report("same" if (await store.recall(""), await store.preamble()) == before else "changed")


async def _prepare(subject: StoreSubject, folder: Path, report: _Report) -> None:
    """Save one entry, and report which modules were loaded for it."""
    await anyio.Path(folder).mkdir(exist_ok=True)
    async with subject.open_store(folder) as store:
        await store.save(Entry(content="An old walnut."))
        await store.recall("walnut")
    for name in [*sys.modules]:
        report(name)


async def _save(subject: StoreSubject, folder: Path, report: _Report, *, step: int, returned: int) -> None:
    async with subject.open_store(folder, disk=_KillingDisk(step, report)) as store:
        for number in range(1, _SAVES + 1):
            saved = await store.save(Entry(content=f"Walnut number {number}."))
            report(f"saved {saved.content}")
            if number == returned:
                os.kill(os.getpid(), signal.SIGKILL)


async def _save_many(
    subject: StoreSubject, folder: Path, name: str, count: int, report: _Report, *, gate: tuple[int, int]
) -> None:
    """Save when all processes are ready, which is when no process can write to the gate any more."""
    os.close(gate[1])
    async with subject.open_store(folder) as store:
        report("ready")
        await run_sync(os.read, gate[0], 1)
        for number in range(count):
            await store.save(Entry(content=f"Walnut {number} of {name}."))


async def _report_entries(subject: StoreSubject, folder: Path, report: _Report) -> None:
    """Report what is stored, save one more entry, and report what is stored after reopening."""
    for _ in range(2):
        async with subject.open_store(folder) as store:
            entries = await list_entries(subject, store)
            report(json.dumps([*[entry.content for entry in entries], *await _find_errors(subject, store, entries)]))
            await store.save(Entry(content=f"A walnut after {len(entries)}."))


async def _find_errors(subject: StoreSubject, store: Store, entries: Sequence[Entry]) -> list[str]:
    """Return the errors: entries that are not found, and ids that do not belong to their entry."""
    hits = {hit.entry.id for hit in await store.recall("walnut", limit=len(entries) + 1)}
    ids = {entry.id for entry in entries}
    is_incomplete = subject.recalls != "sessions" and not ids <= hits
    return ["(not all are found)"] * is_incomplete + ["(two have one id)"] * (len(ids) < len(entries))


def _warm_up(names: Sequence[str]) -> None:
    """Import, without a thread, the modules that every child would have to import."""
    for name in names:
        with suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()


def _start_child(work: _ChildWork) -> tuple[int, int]:
    """Start `work` in a child process and return its id with the descriptor of its report."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(readable)
        try:
            anyio.run(work, partial(_write_line, writable))
        except BaseException:  # noqa: BLE001 - a forked child must not run on into its parent's code
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(writable)
    return child, readable


def _wait_for_child(started: tuple[int, int]) -> tuple[list[str], bool]:
    """Wait for a child; return its lines, and whether it ran to its end. A child that fails ends the program."""
    child, readable = started
    with os.fdopen(readable, encoding="utf-8") as stream:
        lines = stream.read().splitlines()
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        sys.exit(f"the child failed after {lines[-1:]}")
    return lines, os.WIFEXITED(status)


def _write_line(descriptor: int, text: str) -> None:
    os.write(descriptor, f"{text}\n".encode())


def _load_subject(file: str, name: str) -> StoreSubject:
    spec = importlib.util.spec_from_file_location("store_under_test", file)
    if spec is None or spec.loader is None:
        sys.exit(f"{file} is no module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    target: object = module
    for part in name.split("."):
        target = getattr(target, part)
    subject = target() if isinstance(target, type) else target
    if not isinstance(subject, StoreSubject):
        sys.exit(f"{name} is no StoreSubject")
    return subject


def _copy(prepared: Path, target: Path) -> Path:
    shutil.copytree(prepared, target)
    return target


def _print_case(case: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(case) + "\n")
    sys.stdout.flush()
