"""Learns from what hooks handed over: parts of transcripts are taken in as `ingest` does, each exactly once.

A cursor beside the spool says up to which byte a transcript was read. It moves on after the messages are durable, and
an item is removed after that; messages have the ids of the host. So whatever is interrupted is done again, and nothing
is doubled. One process at a time works on the spool of a place.
"""

import json
import os
import time
from contextlib import suppress
from functools import partial
from hashlib import sha256

import anyio
import anyio.lowlevel
from filelock import FileLock, Timeout

from ricordo.concurrency import run_in_thread
from ricordo.context.config import HooksConfig
from ricordo.errors import RicordoError
from ricordo.hooks.answers import prepare_preamble
from ricordo.hooks.contract import measure_file
from ricordo.hooks.hosts import load_host
from ricordo.hooks.log import HookRun, add_run
from ricordo.hooks.places import Place, make_private_folder
from ricordo.hooks.spool import SpoolItem, list_items, remove_item
from ricordo.hooks.transcripts import read_part
from ricordo.hooks.worker import lock_path
from ricordo.importers.sessions import safe_session_id
from ricordo.lazy import dataclass
from ricordo.messages import Message, Text, with_mark
from ricordo.runtime.memory import Memory

__all__ = ["DrainReport", "drain_spool"]


_MAX_AGE_SECONDS = 30 * 86_400
"""After that an item that can't be done is dropped."""
_MAX_ROUNDS = 3
_DEFAULTS = HooksConfig()


@dataclass(kw_only=True)
class DrainReport:
    """What was done: items, new messages and entries; how many items still wait, and what went wrong.

    With `is_elsewhere` another process is at work, and nothing was done.
    """

    items: int = 0
    messages: int = 0
    entries: int = 0
    left: int = 0
    troubles: tuple[str, ...] = ()
    is_elsewhere: bool = False


async def drain_spool(
    memory: Memory, place: Place, *, seconds: float = 10.0, config: HooksConfig | None = _DEFAULTS
) -> DrainReport:
    """Take in what waits in the spool of a place, for about `seconds`, and return what was done.

    With `config` None, as hooks are off for this root, what waits is passed over unread. What failed waits for the next
    time, and is in the hook log. Afterwards the preamble is prepared for the next session start. Raises:
    StorageError of the memory itself.
    """
    report = DrainReport()
    lock = await run_in_thread(_take_lock, place)
    if lock is None:
        return DrainReport(left=len(await run_in_thread(list_items, place)), is_elsewhere=True)
    begun = time.monotonic()
    try:
        items = await run_in_thread(list_items, place)
        for _ in range(_MAX_ROUNDS):
            await _drain_items(memory, place, items, report, deadline=begun + seconds, is_on=config is not None)
            # what hooks handed over meanwhile would otherwise wait for the next session
            done_items, items = items, await run_in_thread(list_items, place)
            if time.monotonic() >= begun + seconds or len(items) == 0 or items == done_items:
                break
        report.left = len(items)
        if report.items and config is not None:
            with suppress(OSError, RicordoError):
                await prepare_preamble(memory, place, config)
    finally:
        await run_in_thread(lock.release)
    if report.items or report.troubles:
        await run_in_thread(partial(_log, place, report, time.monotonic() - begun))
    return report


async def _drain_items(
    memory: Memory, place: Place, items: list[SpoolItem], report: DrainReport, *, deadline: float, is_on: bool
) -> None:
    for item in items:
        try:
            is_done = await _take_in(memory, place, item, report, deadline=deadline, is_on=is_on)
        except (OSError, RicordoError) as error:
            report.troubles = tuple(dict.fromkeys((*report.troubles, type(error).__name__)))
            is_done = time.time() - item.at > _MAX_AGE_SECONDS or isinstance(error, FileNotFoundError)
        if is_done:
            with suppress(OSError):
                await run_in_thread(remove_item, place, item.name)
                report.items += 1
        if time.monotonic() >= deadline:
            return


async def _take_in(
    memory: Memory, place: Place, item: SpoolItem, report: DrainReport, *, deadline: float, is_on: bool
) -> bool:
    """Take in the part of the transcript that an item names, and its summary; return whether all of it was done."""
    if item.summary and is_on:
        message = _make_summary(item)
        result = await memory.ingest([message], session=safe_session_id(item.session or "unknown"), known={})
        report.messages += result.added_count
    if not item.transcript:
        return True
    offset = await run_in_thread(_read_cursor, place, item.transcript)
    if not is_on or item.is_skipped:
        await run_in_thread(_write_cursor, place, item.transcript, max(offset, item.size))
        return True
    host = load_host(item.host)
    form = host.transcript_format if host else ""
    there = await run_in_thread(host.measure if host else measure_file, item.transcript)
    if not there:
        raise FileNotFoundError(item.transcript)
    end = min(item.size, there)
    if offset > item.size and end < item.size:
        # the host began its file anew
        offset = 0
    change = ""
    while offset < end:
        read = partial(read_part, item.transcript, form, start=offset, end=end, session=item.session)
        part = await run_in_thread(read)
        for session, messages in part.sessions.items():
            result = await memory.ingest(messages, session=session, known={}, part_of=change)
            change = change or result.change_id
            report.messages += result.added_count
            report.entries += len(result.entries)
        if part.end == offset:
            # the rest of the last line comes with the next item
            return True
        offset = part.end
        await run_in_thread(_write_cursor, place, item.transcript, offset)
        if time.monotonic() >= deadline:
            return offset >= end
        await anyio.lowlevel.checkpoint()
    return True


def _make_summary(item: SpoolItem) -> Message:
    """Return the host's summary as a message that nobody said, with an id of its own content."""
    name = sha256(f"{item.session}\0{item.size}\0{item.summary}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
    message = Message(role="user", parts=(Text(text=item.summary),), id=f"summary-{name}")
    return with_mark(message, "summary")


def _take_lock(place: Place) -> FileLock | None:
    lock = FileLock(lock_path(place), timeout=0, thread_local=False, mode=0o600)
    try:
        make_private_folder(os.path.dirname(lock_path(place)))
        lock.acquire()
    except (OSError, Timeout):
        return None
    return lock


def _cursor_path(place: Place, transcript: str) -> str:
    name = sha256(transcript.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return os.path.join(place.hooks_folder, "cursors", place.digest, f"{name}.json")


def _read_cursor(place: Place, transcript: str) -> int:
    try:
        with open(_cursor_path(place, transcript), encoding="ascii") as file:
            return max(int(json.load(file)["offset"]), 0)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return 0


def _write_cursor(place: Place, transcript: str, offset: int) -> None:
    """Store how far a transcript was read. Raises: OSError."""
    path = _cursor_path(place, transcript)
    make_private_folder(os.path.dirname(path))
    draft = f"{path}.new"
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
        json.dump({"offset": offset, "transcript": transcript}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)


def _log(place: Place, report: DrainReport, seconds: float) -> None:
    run = HookRun(
        at=time.time(), host="", event="learn", root=place.root, milliseconds=round(1_000 * seconds, 1),
        source="drain", given=report.entries, trouble=" ".join(report.troubles),
    )  # fmt: skip
    with suppress(OSError):
        add_run(place.hooks_folder, run)
