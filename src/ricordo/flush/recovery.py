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
from ricordo.flush.cursor import Cursor, load_cursor, save_cursor
from ricordo.workspace.changes import CURATION_LOCK, replaced_memory
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import Located, parse_entries
from ricordo.workspace.ledger import read_memory
from ricordo.workspace.tombstones import content_digest, read_tombstones

__all__ = ["ever_extracted", "settled_cursor"]

_FIELDS = b" [at:: "


async def settled_cursor(files: FileStore, at: str, session: str, *, key: bytes) -> Cursor:
    """Return the cursor with its block whole in the ledger; the caller holds the lock of the session.

    A damaged one is set aside as `<name>.broken-<n>` and made anew. `key` recognises what was forgotten meanwhile.
    """
    cursor = await load_cursor(files, at)
    if cursor.damaged:
        return await _rebuilt(files, cursor, session)
    if not cursor.next:
        return cursor
    async with files.lock(CURATION_LOCK):
        missing = await _never_appended(files, cursor)
        if missing:
            await _cut_torn(files, cursor, missing[0])
            heading = cursor.path.rpartition("/")[2].removesuffix(".md")
            wanted = await _unforgotten(files, missing, key)
            if wanted:
                await files.append(cursor.path, b"".join(wanted), header=f"# {heading}\n\n".encode())
    return await save_cursor(files, cursor.settled())


async def ever_extracted(files: FileStore, session: str) -> list[Entry]:
    """Return what was extracted from a session, oldest first, with what was undone since; from all that is kept."""
    found = [located.entry for located in await _ever_remembered(files)]
    mine = {entry.id: entry for entry in found if entry.by == "flush" and entry.source.session == session}
    return [mine[name] for name in sorted(mine)]


async def _rebuilt(files: FileStore, damaged: Cursor, session: str) -> Cursor:
    with suppress(FileMissing):
        await _set_aside(files, damaged.at)
    entries = await ever_extracted(files, session)
    done = dict.fromkeys(name for entry in entries for name in reversed(entry.source.messages))
    return await save_cursor(files, replace(damaged, done=tuple(done), rebuilt=True))


async def _set_aside(files: FileStore, at: str) -> None:
    data = (await files.read(at)).data
    number = 1
    while True:
        with suppress(AlreadyExists):
            await files.create(f"{at}.broken-{number}", data)
            return
        number += 1


async def _never_appended(files: FileStore, cursor: Cursor) -> list[bytes]:
    data = cursor.block.encode("utf-8", "surrogatepass")
    bullets = [(found.entry.id, data[found.offset : found.offset + found.length]) for found in parse_entries(data, "")]
    seen = {located.entry.id for located in await _entries_at(files, cursor.path)}
    if bullets and bullets[-1][0] not in seen:
        seen |= {located.entry.id for located in await _ever_remembered(files)}
        seen |= (await read_tombstones(files)).ids
    written = max((number for number, (name, _) in enumerate(bullets, start=1) if name in seen), default=0)
    return [bullet for _, bullet in bullets[written:]]


async def _unforgotten(files: FileStore, bullets: list[bytes], key: bytes) -> list[bytes]:
    digests = (await read_tombstones(files)).digests
    said = [content_digest(found.entry.content, key) for bullet in bullets for found in parse_entries(bullet, "")]
    return [bullet for bullet, digest in zip(bullets, said, strict=True) if digest not in digests]


async def _ever_remembered(files: FileStore) -> list[Located]:
    """Return the entries of memory as it stands and of what change sets replaced."""
    found = await read_memory(files)
    async for path, data in replaced_memory(files):
        found += await run_sync(parse_entries, data, path)
    return found


async def _entries_at(files: FileStore, path: str) -> list[Located]:
    try:
        return parse_entries((await files.read(path)).data, path)
    except FileMissing:
        return []


async def _cut_torn(files: FileStore, cursor: Cursor, bullet: bytes) -> None:
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
        if torn and start >= cursor.offset and (_FIELDS in piece or not stored.data.endswith(b"\n")):
            await files.replace(cursor.path, stored.data[:start] + stored.data[end:], expected=stored.version)
            return
