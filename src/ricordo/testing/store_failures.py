"""Checks of failures: kills, other processes, damaged and foreign files, a full or read-only disk."""

import errno
import inspect
import json
import logging
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anyio.to_thread import run_sync

from ricordo.errors import StorageError
from ricordo.storage.disk import Disk
from ricordo.testing.store_subject import StoreCheck, StoreSubject, list_entries, recall_newest, require, store_check
from ricordo.workspace.entry import Entry

__all__ = ["FAILURE_CHECKS"]


_COMMON_FILES = frozenset({"project.json", "guard.key", ".gitignore"})
"""The files that opening a store writes into any folder."""
_GARBAGE = b"\x00\xff\xfe{rubbish [that \n nobody wrote\x80" * 9
_FOREIGN_FILES = {
    "notes.txt": b"Not a memory.\n",
    "foreign.md": b"# A page\n\nText.\n",
    "foreign.jsonl": b'{"a": 1}\n[2]\n',
}
_DRIVER_SECONDS = 300
_DRIVER_CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1));from ricordo.testing.store_driver import main; main()"
)


@store_check("I6", "memory", "keeping", "sharing")
async def _two_processes_that_save_at_once_lose_nothing(subject: StoreSubject, folder: Path) -> None:
    [case] = await run_sync(_run_driver, subject, folder, "together", subject.saves)
    wanted = [f"Walnut {number} of {name}." for name in ("one", "two") for number in range(subject.saves)]
    found = Counter(_case_texts(case, "kept"))
    require(
        found == Counter([*wanted, "An old walnut."]),
        f"two processes saved {len(wanted)} entries, and there are {found}",
    )


@store_check("I7", "memory", "keeping")
async def _a_kill_at_any_moment_loses_at_most_the_save_that_had_not_returned(
    subject: StoreSubject, folder: Path
) -> None:
    cases = await run_sync(_run_driver, subject, folder, "kills", subject.kills)
    require(any(case["killed"] for case in cases), "nothing was killed")
    for case in cases:
        acked, left, again = (_case_texts(case, name) for name in ("acked", "kept", "again"))
        before = f"killed at {case['where']}"
        require(len(left) == len(set(left)), f"{before} it keeps something twice or does not find it: {left}")
        missing = {*acked, "An old walnut."} - set(left)
        require(not missing, f"{before} it has lost {sorted(missing)}, whose save had returned")
        require(len(left) <= len(acked) + 2, f"{before} it keeps more than was saved")
        require({*left} < {*again} and len(again) == len(left) + 1, f"{before} it does not go on saving")


@store_check("I8", "memory", "keeping")
async def _a_damaged_file_takes_nothing_with_it_and_what_is_left_of_it_stays(
    subject: StoreSubject, folder: Path
) -> None:
    for case in await _damaged_cases(subject, folder):
        where = f"with {case.path} damaged ({case.damage})"
        require(case.later, f"{where} it keeps nothing new")
        require(not case.lost_elsewhere, f"{where} it loses what stands in other files")
        require(case.left or not case.lost, f"{where} what is left of the file is thrown away")


@store_check("I8", "memory", "keeping", "reporting")
async def _what_can_not_be_read_is_told_or_set_aside(subject: StoreSubject, folder: Path) -> None:
    for case in await _damaged_cases(subject, folder):
        require(case.told or not case.lost, f"with {case.path} damaged ({case.damage}) it says nothing")


@store_check("I8", "memory", "keeping")
async def _a_foreign_file_is_left_alone_and_does_no_harm(subject: StoreSubject, folder: Path) -> None:
    saved = await _prepare(subject, folder)
    foreign = await run_sync(_write_foreign_files, folder)
    async with subject.open_store(folder) as store:
        await store.save(Entry(content="A walnut that came later."))
        await store.preamble()
    async with subject.open_store(folder) as store:
        found = {entry.id for entry in await list_entries(subject, store)}
    require({entry.id for entry in saved} < found, "with foreign files in its folders entries are lost")
    changed = [path for path in foreign if not await run_sync(_is_unchanged, path)]
    require(not changed, f"it changes files that are not its own: {changed}")


@store_check("I9", "memory", "keeping", "disk")
async def _on_a_full_or_read_only_disk_a_save_is_a_typed_error_and_reading_goes_on(
    subject: StoreSubject, folder: Path
) -> None:
    saved = await _prepare(subject, folder)
    async with subject.open_store(folder) as store:
        recalled, shown = await recall_newest(store), await store.preamble()
    for disk in (_FullDisk(), _ReadOnlyDisk()):
        name = type(disk).__name__.strip("_")
        async with subject.open_store(folder, disk=disk) as store:
            for content in ("Not this.", "Not this. " * 1_000):
                try:
                    await store.save(Entry(content=content))
                except StorageError:
                    pass
                else:
                    raise AssertionError(f"A store: with a {name} it says that it saved.")
                require(await recall_newest(store) == recalled, f"with a {name} a recall finds something else")
                require(await store.preamble() == shown, f"with a {name} the preamble is another one")
    async with subject.open_store(folder) as store:
        await store.save(Entry(content="A walnut that came later."))
        found = await list_entries(subject, store)
    require(len(found) == len(saved) + 1, "when there is room again it does not have what it had, and one more")


@store_check("I9", "memory", "keeping", "own files")
async def _when_no_file_can_grow_a_save_is_a_typed_error_and_reading_goes_on(
    subject: StoreSubject, folder: Path
) -> None:
    [case] = await run_sync(_run_driver, subject, folder, "full", 2)
    require(_case_texts(case, "errors") == ["refused", "same"] * 2, f"where no file can grow, it {case['errors']}")
    require(_case_texts(case, "kept") == ["An old walnut."], f"where no file could grow, it has {case['kept']}")
    require(len(_case_texts(case, "again")) == 2, "when there is room again it does not go on saving")


class _FullDisk(Disk):
    """A full disk: no new bytes are written, except the first half of a write."""

    def make_file(self, path: str, flags: int = 0) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write(self, descriptor: int, data: bytes) -> None:
        super().write(descriptor, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class _ReadOnlyDisk(Disk):
    """A disk that is mounted read-only."""

    def open(self, path: str, flags: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return super().open(path, flags)

    def make_file(self, path: str, flags: int = 0) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def make_folder(self, path: str) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))


@dataclass(frozen=True, kw_only=True)
class _DamageCase:
    """One damaged file, and the result."""

    path: Path
    damage: str
    later: bool
    lost: bool
    lost_elsewhere: bool
    left: bool
    told: bool


async def _damaged_cases(subject: StoreSubject, folder: Path) -> list[_DamageCase]:
    """Damage each file of a store in two ways, each in a copy, use the store, and return the results."""
    prepared = folder / "prepared"
    saved = await _prepare(subject, prepared)
    cases = [(path, damage) for path in await run_sync(_own_files, prepared) for damage in ("rubbish", "cut")]
    return [
        await _damaged_case(subject, prepared, saved, path, damage, copy=folder / str(number))
        for number, (path, damage) in enumerate(cases)
    ]


async def _damaged_case(
    subject: StoreSubject, prepared: Path, saved: list[Entry], path: Path, damage: str, *, copy: Path
) -> _DamageCase:
    await run_sync(partial(shutil.copytree, prepared, copy))
    before, after = await run_sync(_damage_file, copy / path, damage)
    with _collect_warnings() as told:
        async with subject.open_store(copy) as store:
            await store.recall("walnut")
            await store.preamble()
            later = await store.save(Entry(content="A walnut that came later."))
        async with subject.open_store(copy) as store:
            found = {entry.id for entry in await list_entries(subject, store)}
    aside = len(await run_sync(_own_files, copy)) > len(await run_sync(_own_files, prepared))
    lost = [entry for entry in saved if entry.id not in found]
    return _DamageCase(
        path=path,
        damage=damage,
        later=later.id in found,
        lost=bool(lost),
        lost_elsewhere=any(entry.content.encode() not in before for entry in lost),
        left=await run_sync(_is_left, copy, after),
        told=bool(told) or aside,
    )


async def _prepare(subject: StoreSubject, folder: Path) -> list[Entry]:
    """Save a few entries in `folder`, in two openings of the store."""
    await run_sync(partial(folder.mkdir, exist_ok=True))
    saved = []
    for words in (("ochre", "cobalt"), ("amber", "umber")):
        async with subject.open_store(folder) as store:
            saved += [await store.save(Entry(content=f"The {word} door is a walnut.")) for word in words]
    return saved


def _run_driver(subject: StoreSubject, folder: Path, what: str, count: int) -> list[dict[str, object]]:
    """Run the driver in its own process and return its cases."""
    kind = type(subject)
    require("<locals>" not in kind.__qualname__, "the class of the suite has to stand at the top of its module")
    arguments = [inspect.getfile(kind), kind.__qualname__, str(folder), what, str(count)]
    done = subprocess.run(  # noqa: S603 - this program, and a path of the caller's
        [sys.executable, "-c", _DRIVER_CODE, json.dumps(sys.path), *arguments],
        capture_output=True,
        text=True,
        timeout=_DRIVER_SECONDS,
        check=False,
    )
    require(done.returncode == 0, f"it fails beside other processes, or after a kill: {done.stderr[-1_500:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def _case_texts(case: dict[str, object], name: str) -> list[str]:
    found = case[name]
    return [str(text) for text in found] if isinstance(found, list) else []


def _own_files(folder: Path) -> list[Path]:
    """Return the files of the store below `folder`, without locks and the files common to all stores."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size)
    return [
        path.relative_to(folder)
        for path in found
        if path.name not in _COMMON_FILES and "lock" not in str(path.relative_to(folder))
    ]


def _damage_file(path: Path, damage: str) -> tuple[bytes, bytes]:
    """Damage a file; return its earlier content, and a piece of its present content."""
    before = path.read_bytes()
    after = _GARBAGE if damage == "rubbish" else before[: len(before) // 2 - 9]
    path.write_bytes(after)
    return before, after


def _is_left(folder: Path, data: bytes) -> bool:
    return any(data in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def _write_foreign_files(folder: Path) -> list[Path]:
    """Write foreign files into every folder that holds files of the store."""
    places = {folder / path.parent for path in _own_files(folder)}
    made = [place / name for place in sorted(places) for name in _FOREIGN_FILES]
    for path in made:
        path.write_bytes(_FOREIGN_FILES[path.name])
    return made


def _is_unchanged(path: Path) -> bool:
    return path.is_file() and path.read_bytes() == _FOREIGN_FILES[path.name]


@contextmanager
def _collect_warnings() -> Iterator[list[str]]:
    """Collect the log messages of level warning or higher."""
    told: list[str] = []

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())

    handler = Told(logging.WARNING)
    logging.getLogger().addHandler(handler)
    try:
        yield told
    finally:
        logging.getLogger().removeHandler(handler)


FAILURE_CHECKS: tuple[StoreCheck, ...] = (
    _two_processes_that_save_at_once_lose_nothing,
    _a_kill_at_any_moment_loses_at_most_the_save_that_had_not_returned,
    _a_damaged_file_takes_nothing_with_it_and_what_is_left_of_it_stays,
    _what_can_not_be_read_is_told_or_set_aside,
    _a_foreign_file_is_left_alone_and_does_no_harm,
    _on_a_full_or_read_only_disk_a_save_is_a_typed_error_and_reading_goes_on,
    _when_no_file_can_grow_a_save_is_a_typed_error_and_reading_goes_on,
)
"""The checks of this module. Call each with its own folder."""
