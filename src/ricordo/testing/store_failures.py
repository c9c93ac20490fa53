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
from functools import partial
from pathlib import Path

from anyio.to_thread import run_sync

from ricordo.errors import StorageError
from ricordo.lazy import dataclass
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
    [case] = await run_sync(_run_driver, subject, folder, "together", subject.save_count)
    expected_texts = [f"Walnut {number} of {name}." for name in ("one", "two") for number in range(subject.save_count)]
    counts = Counter(_case_texts(case, "kept"))
    require(
        counts == Counter([*expected_texts, "An old walnut."]),
        f"two processes saved {len(expected_texts)} entries, and there are {counts}",
    )


@store_check("I7", "memory", "keeping")
async def _a_kill_at_any_moment_loses_at_most_the_save_that_had_not_returned(
    subject: StoreSubject, folder: Path
) -> None:
    cases = await run_sync(_run_driver, subject, folder, "kills", subject.kill_count)
    require(any(case["killed"] for case in cases), "nothing was killed")
    for case in cases:
        acked, kept_texts, again = (_case_texts(case, name) for name in ("acked", "kept", "again"))
        before = f"killed at {case['where']}"
        require(
            len(kept_texts) == len(set(kept_texts)),
            f"{before} it keeps something twice or does not find it: {kept_texts}",
        )
        missing = {*acked, "An old walnut."} - set(kept_texts)
        require(not missing, f"{before} it has lost {sorted(missing)}, whose save had returned")
        require(len(kept_texts) <= len(acked) + 2, f"{before} it keeps more than was saved")
        require({*kept_texts} < {*again} and len(again) == len(kept_texts) + 1, f"{before} it does not go on saving")


@store_check("I8", "memory", "keeping")
async def _a_damaged_file_takes_nothing_with_it_and_what_is_left_of_it_stays(
    subject: StoreSubject, folder: Path
) -> None:
    for case in await _damaged_cases(subject, folder):
        context = f"with {case.path} damaged ({case.damage})"
        require(case.later, f"{context} it keeps nothing new")
        require(not case.lost_elsewhere, f"{context} it loses what stands in other files")
        require(case.left or not case.lost, f"{context} what is left of the file is thrown away")


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
        entry_ids = {entry.id for entry in await list_entries(subject, store)}
    require({entry.id for entry in saved} < entry_ids, "with foreign files in its folders entries are lost")
    changed = [path for path in foreign if not await run_sync(_is_unchanged, path)]
    require(not changed, f"it changes files that are not its own: {changed}")


@store_check("I9", "memory", "keeping", "disk")
async def _on_a_full_or_read_only_disk_a_save_is_a_typed_error_and_reading_goes_on(
    subject: StoreSubject, folder: Path
) -> None:
    saved = await _prepare(subject, folder)
    async with subject.open_store(folder) as store:
        recalled, preamble = await recall_newest(store), await store.preamble()
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
                require(await store.preamble() == preamble, f"with a {name} the preamble is another one")
    async with subject.open_store(folder) as store:
        await store.save(Entry(content="A walnut that came later."))
        entries = await list_entries(subject, store)
    require(len(entries) == len(saved) + 1, "when there is room again it does not have what it had, and one more")


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
    with _collect_warnings() as warnings:
        async with subject.open_store(copy) as store:
            await store.recall("walnut")
            await store.preamble()
            later = await store.save(Entry(content="A walnut that came later."))
        async with subject.open_store(copy) as store:
            entry_ids = {entry.id for entry in await list_entries(subject, store)}
    has_set_aside = len(await run_sync(_own_files, copy)) > len(await run_sync(_own_files, prepared))
    lost_entries = [entry for entry in saved if entry.id not in entry_ids]
    return _DamageCase(
        path=path,
        damage=damage,
        later=later.id in entry_ids,
        lost=bool(lost_entries),
        lost_elsewhere=any(entry.content.encode() not in before for entry in lost_entries),
        left=await run_sync(_is_left, copy, after),
        told=bool(warnings) or has_set_aside,
    )


async def _prepare(subject: StoreSubject, folder: Path) -> list[Entry]:
    """Save a few entries in `folder`, in two openings of the store."""
    await run_sync(partial(folder.mkdir, exist_ok=True))
    saved = []
    for words in (("ochre", "cobalt"), ("amber", "umber")):
        async with subject.open_store(folder) as store:
            saved += [await store.save(Entry(content=f"The {word} door is a walnut.")) for word in words]
    return saved


def _run_driver(subject: StoreSubject, folder: Path, mode: str, count: int) -> list[dict[str, object]]:
    """Run the driver in its own process and return its cases."""
    kind = type(subject)
    require("<locals>" not in kind.__qualname__, "the class of the suite has to stand at the top of its module")
    arguments = [inspect.getfile(kind), kind.__qualname__, str(folder), mode, str(count)]
    process = subprocess.run(  # noqa: S603 - this program, and a path of the caller's
        [sys.executable, "-c", _DRIVER_CODE, json.dumps(sys.path), *arguments],
        capture_output=True,
        text=True,
        timeout=_DRIVER_SECONDS,
        check=False,
    )
    require(process.returncode == 0, f"it fails beside other processes, or after a kill: {process.stderr[-1_500:]}")
    return [json.loads(line) for line in process.stdout.splitlines()]


def _case_texts(case: dict[str, object], name: str) -> list[str]:
    texts = case[name]
    return [str(text) for text in texts] if isinstance(texts, list) else []


def _own_files(folder: Path) -> list[Path]:
    """Return the files of the store below `folder`, without locks and the files common to all stores."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size)
    return [
        path.relative_to(folder)
        for path in paths
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
    folder_paths = {folder / path.parent for path in _own_files(folder)}
    written_paths = [folder_path / name for folder_path in sorted(folder_paths) for name in _FOREIGN_FILES]
    for path in written_paths:
        path.write_bytes(_FOREIGN_FILES[path.name])
    return written_paths


def _is_unchanged(path: Path) -> bool:
    return path.is_file() and path.read_bytes() == _FOREIGN_FILES[path.name]


@contextmanager
def _collect_warnings() -> Iterator[list[str]]:
    """Collect the log messages of level warning or higher."""
    messages: list[str] = []

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    handler = Told(logging.WARNING)
    logging.getLogger().addHandler(handler)
    try:
        yield messages
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
