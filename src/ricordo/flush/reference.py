"""What is remembered already, as a model is shown it, and as repeats are told by it."""

from contextlib import suppress
from datetime import date, timedelta

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, StorageError
from ricordo.files import FileStore
from ricordo.flush.request import KnownMemory
from ricordo.language import split_words
from ricordo.workspace.entry_codec import parse_entries
from ricordo.workspace.layout import LEDGERS, MEMORY_PATH, is_ledger, ledger_path

__all__ = ["load_known_memory", "load_known_words"]

_BYTES_PER_TOKEN = 8
_EXTRACTED_FIELD = b"[by:: flush]"


async def load_known_memory(files: FileStore, today: date, *, reference: str, most_tokens: int) -> KnownMemory:
    """Return MEMORY.md and today's ledger as they stand; with the `reference` "all" the older ledgers too.

    Of these, newest first, no more is read than could stand in `max_prompt_tokens` tokens.
    """
    ledgers = [(ledger_path(today), await _read_text(files, ledger_path(today)))]
    if reference == "all":
        room = most_tokens * _BYTES_PER_TOKEN
        listed = [info for info in await files.list(LEDGERS) if is_ledger(info.path) and info.path != ledgers[0][0]]
        for info in sorted(listed, key=lambda each: each.path.rpartition("/")[2], reverse=True):
            room -= info.size
            if room < 0:
                break
            ledgers.append((info.path, await _read_text(files, info.path)))
    return KnownMemory(memory=await _read_text(files, MEMORY_PATH), ledgers=tuple(ledgers))


async def load_known_words(files: FileStore, today: date) -> frozenset[tuple[str, ...]]:
    """Return the words of each memory that MEMORY.md holds, or that was saved today or yesterday by hand or by a tool.

    What a flush has learned is none of them: that it is said anew is for consolidation to weigh.
    """
    found: set[tuple[str, ...]] = set()
    for path in (MEMORY_PATH, ledger_path(today), ledger_path(today - timedelta(days=1))):
        with suppress(FileMissing, StorageError):
            data = (await files.read(path)).data
            found |= await run_sync(_collect_words, data, path)
    return frozenset(found - {()})


def _collect_words(data: bytes, path: str) -> set[tuple[str, ...]]:
    """Return the words of each memory in a document; of a ledger, those that no flush has written."""
    if path == MEMORY_PATH:
        return {split_words(located.entry.content) for located in parse_entries(data, path)}
    # of a long ledger nearly all was written by flushes, and need not be taken apart
    if all(_EXTRACTED_FIELD in line for line in data.split(b"\n") if line.startswith(b"- ")):
        return set()
    saved = parse_entries(data, path, only=lambda bullet: _EXTRACTED_FIELD not in bullet)
    return {split_words(located.entry.content) for located in saved if located.entry.by != "flush"}


async def _read_text(files: FileStore, path: str) -> str:
    try:
        return (await files.read(path)).data.decode("utf-8", "replace")
    except (FileMissing, StorageError):
        return ""
