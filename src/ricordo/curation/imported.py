"""The messages of an import, as the undo of it removes them, and the entries that rest on them.

A transcript whose messages all came with the import is removed, with the cursor that says how far it was learned from.
From a transcript that has other messages too, only the lines of the import are removed. A line that can't be read
stays with them; where there is none, it is the rest of a message that an import could not write to its end.
"""

from collections.abc import Mapping
from dataclasses import replace

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, InvalidMessage
from ricordo.lazy import dataclass
from ricordo.messages.codec import decode_message, encode_message
from ricordo.messages.types import get_import
from ricordo.storage import FileStore
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.change_sets import Edit
from ricordo.workspace.layout import AGENTS_FOLDER, cursor_path_for, parse_transcript_path
from ricordo.workspace.ledger import read_all_entries

__all__ = ["ImportedMessages", "find_imported", "find_imported_entries"]


@dataclass(frozen=True, kw_only=True)
class ImportedMessages:
    """What an import brought: the edits that remove it, and the ids of its messages by session."""

    edits: tuple[Edit, ...]
    ids: Mapping[str, frozenset[str]]


async def find_imported(files: FileStore, change_id: str) -> ImportedMessages:
    """Return the messages that the import `change_id` brought. Raises: StorageError."""
    edits, ids = list[Edit](), dict[str, frozenset[str]]()
    for info in await files.list(AGENTS_FOLDER):
        parsed_path = parse_transcript_path(info.path)
        if parsed_path is None:
            continue
        try:
            stored = await files.read(info.path)
        except FileMissing:
            continue
        rest, removed = await run_sync(_split_log, stored.data, change_id)
        if not removed:
            continue
        session = parsed_path[1]
        ids[session] = ids.get(session, frozenset()) | removed
        edits.append(Edit(path=info.path, expected_hash=stored.version, data=rest or None))
        if not rest:
            edits += await _remove_file(files, cursor_path_for(info.path))
    return ImportedMessages(edits=tuple(edits), ids=ids)


async def find_imported_entries(files: FileStore, ids: Mapping[str, frozenset[str]]) -> list[Entry]:
    """Return the entries that were learned from these messages alone."""
    if not ids:
        return []
    located = await read_all_entries(files, only=lambda bullet: b"[by:: flush]" in bullet)
    return [
        each.entry
        for each in located
        if each.entry.source.messages
        and each.entry.source.session is not None
        and ids.get(each.entry.source.session, frozenset()).issuperset(each.entry.source.messages)
    ]


def _split_log(data: bytes, change_id: str) -> tuple[bytes, frozenset[str]]:
    """Return the log without the messages of an import, and their ids; what stays keeps a chain without a gap."""
    if change_id.encode() not in data:
        return data, frozenset()
    kept, removed, last = list[bytes](), set[str](), None
    for line in data.splitlines(keepends=True):
        try:
            message = decode_message(line)
        except InvalidMessage:
            kept += [line] if line.strip() else []
            continue
        if get_import(message) == change_id:
            removed.add(message.id)
            continue
        kept.append(encode_message(replace(message, parent=last)) if message.parent in removed else line)
        last = message.id
    return b"".join(kept) if last is not None else b"", frozenset(removed)


async def _remove_file(files: FileStore, path: str) -> list[Edit]:
    try:
        return [Edit(path=path, expected_hash=(await files.read(path)).version, data=None)]
    except FileMissing:
        return []
