"""What a crash or damage left of an extraction is brought to its end here: once, and against nobody's will.

A bullet that is known to have stood in memory is not written again, whether it was undone, forgotten or archived since.
Bullets are appended in order, so one that was there proves that those before it were. Only a whole block that a person
deleted by hand before anybody looked can't be told from one that was never written.
"""

from contextlib import suppress
from dataclasses import replace

from anyio.to_thread import run_sync

from ricordo.errors import AlreadyExists, FileMissing
from ricordo.files import FileStore
from ricordo.flush.cursor import ExtractionCursor, load_cursor, save_cursor
from ricordo.workspace.changes import CURATION_LOCK, iter_replaced_memory
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry, parse_entries
from ricordo.workspace.ledger import read_all_entries
from ricordo.workspace.tombstones import content_digest, read_tombstones

__all__ = ["load_extracted_entries", "recover_cursor"]

_ENTRY_FIELDS = b" [at:: "


async def recover_cursor(files: FileStore, at: str, session: str, *, key: bytes) -> ExtractionCursor:
    """Return the cursor with its block whole in the ledger; the caller holds the lock of the session.

    A damaged one is set aside as `<name>.broken-<n>` and made anew. `key` recognises what was forgotten meanwhile.
    """
    cursor = await load_cursor(files, at)
    if cursor.damaged:
        return await _rebuild_cursor(files, cursor, session)
    if not cursor.next:
        return cursor
    async with files.lock(CURATION_LOCK):
        missing = await _missing_bullets(files, cursor)
        if missing:
            await _remove_torn_bullet(files, cursor, missing[0])
            heading = cursor.path.rpartition("/")[2].removesuffix(".md")
            wanted = await _drop_forgotten(files, missing, key)
            if wanted:
                await files.append(cursor.path, b"".join(wanted), header=f"# {heading}\n\n".encode())
    return await save_cursor(files, cursor.complete())


async def load_extracted_entries(files: FileStore, session: str) -> list[Entry]:
    """Return what was extracted from a session, oldest first, with what was undone since; from all that is kept."""
    found = [located.entry for located in await _load_all_entries(files)]
    mine = {entry.id: entry for entry in found if entry.by == "flush" and entry.source.session == session}
    return [mine[name] for name in sorted(mine)]


async def _rebuild_cursor(files: FileStore, damaged: ExtractionCursor, session: str) -> ExtractionCursor:
    with suppress(FileMissing):
        await _back_up_file(files, damaged.file_path)
    entries = await load_extracted_entries(files, session)
    done = dict.fromkeys(name for entry in entries for name in reversed(entry.source.messages))
    return await save_cursor(files, replace(damaged, done=tuple(done), rebuilt=True))


async def _back_up_file(files: FileStore, at: str) -> None:
    data = (await files.read(at)).data
    number = 1
    while True:
        with suppress(AlreadyExists):
            await files.create(f"{at}.broken-{number}", data)
            return
        number += 1


async def _missing_bullets(files: FileStore, cursor: ExtractionCursor) -> list[bytes]:
    data = cursor.block.encode("utf-8", "surrogatepass")
    bullets = [(found.entry.id, data[found.offset : found.offset + found.length]) for found in parse_entries(data, "")]
    seen = {located.entry.id for located in await _load_entries(files, cursor.path)}
    if bullets and bullets[-1][0] not in seen:
        seen |= {located.entry.id for located in await _load_all_entries(files)}
        seen |= (await read_tombstones(files)).ids
    written = max((number for number, (name, _) in enumerate(bullets, start=1) if name in seen), default=0)
    return [bullet for _, bullet in bullets[written:]]


async def _drop_forgotten(files: FileStore, bullets: list[bytes], key: bytes) -> list[bytes]:
    digests = (await read_tombstones(files)).digests
    said = [content_digest(found.entry.content, key) for bullet in bullets for found in parse_entries(bullet, "")]
    return [bullet for bullet, digest in zip(bullets, said, strict=True) if digest not in digests]


async def _load_all_entries(files: FileStore) -> list[LocatedEntry]:
    """Return the entries of memory as it stands and of what change sets replaced."""
    found = await read_all_entries(files)
    async for path, data in iter_replaced_memory(files):
        found += await run_sync(parse_entries, data, path)
    return found


async def _load_entries(files: FileStore, path: str) -> list[LocatedEntry]:
    try:
        return parse_entries((await files.read(path)).data, path)
    except FileMissing:
        return []


async def _remove_torn_bullet(files: FileStore, cursor: ExtractionCursor, bullet: bytes) -> None:
    """Take out the beginning of `bullet` that a crash left behind.

    It stands where the ledger ended before or after that, and is the file's torn end, or has some of the fields that
    nobody types. Anything else may be a person's own bullet.
    """
    try:
        stored = await files.read(cursor.path)
    except FileMissing:
        return
    for located in reversed(parse_entries(stored.data, cursor.path)):
        start, end = located.offset, located.offset + located.length
        piece = stored.data[start:end]
        torn = bullet.startswith(piece.rstrip(b"\n")) and piece.rstrip(b"\n") != bullet.rstrip(b"\n")
        if torn and start >= cursor.offset and (_ENTRY_FIELDS in piece or not stored.data.endswith(b"\n")):
            await files.replace(cursor.path, stored.data[:start] + stored.data[end:], expected=stored.version)
            return
