"""What is remembered already, as a model is shown it, and as repeats are told by it."""

from contextlib import suppress
from datetime import date, timedelta

from ricordo.errors import FileMissing, StorageError
from ricordo.files import FileStore
from ricordo.flush.request import Known
from ricordo.language import words
from ricordo.workspace.layout import LEDGERS, MEMORY, is_ledger, ledger_path
from ricordo.workspace.ledger import read_entries

__all__ = ["known_memory", "known_words"]

_BYTES_A_TOKEN = 8


async def known_memory(files: FileStore, today: date, *, reference: str, most_tokens: int) -> Known:
    """Return MEMORY.md and today's ledger as they stand; with the `reference` "all" the older ledgers too.

    Of these, newest first, no more is read than could stand in `most_tokens` tokens.
    """
    ledgers = [(ledger_path(today), await _text(files, ledger_path(today)))]
    if reference == "all":
        room = most_tokens * _BYTES_A_TOKEN
        listed = [info for info in await files.list(LEDGERS) if is_ledger(info.path) and info.path != ledgers[0][0]]
        for info in sorted(listed, key=lambda each: each.path.rpartition("/")[2], reverse=True):
            room -= info.size
            if room < 0:
                break
            ledgers.append((info.path, await _text(files, info.path)))
    return Known(memory=await _text(files, MEMORY), ledgers=tuple(ledgers))


async def known_words(files: FileStore, today: date) -> frozenset[tuple[str, ...]]:
    """Return the words of each memory that MEMORY.md holds, or that was saved today or yesterday by hand or by a tool.

    What a flush has learned is none of them: that it is said anew is for consolidation to weigh.
    """
    found = set()
    with suppress(FileMissing, StorageError):
        found = {words(located.entry.content) for located in await read_entries(files, MEMORY)}
    for day in (today, today - timedelta(days=1)):
        with suppress(FileMissing, StorageError):
            saved = [located.entry for located in await read_entries(files, ledger_path(day))]
            found |= {words(entry.content) for entry in saved if entry.by != "flush"}
    return frozenset(found - {()})


async def _text(files: FileStore, path: str) -> str:
    try:
        return (await files.read(path)).data.decode("utf-8", "replace")
    except (FileMissing, StorageError):
        return ""
