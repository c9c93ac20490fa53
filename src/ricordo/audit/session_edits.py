"""Session edits: remove from session files what they say of entries that are forgotten or undone."""

from collections.abc import Collection, Sequence

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, StorageError
from ricordo.files import FileStore
from ricordo.workspace.changes import Edit
from ricordo.workspace.layout import SESSIONS, WORKSPACE
from ricordo.workspace.session_file import parse_session, update_session
from ricordo.workspace.striking import mask_session

__all__ = ["build_session_edits"]


async def build_session_edits(
    files: FileStore, contents: Sequence[str], ids: Collection[str], *, sessions: Collection[str] = ()
) -> list[Edit]:
    """Return the edits that remove the entries with these `ids`, and text that repeats `contents`, from session files.

    In the files of `sessions`, where the entries were said, text in other words is removed too. A file that can't be
    read is not changed.
    """
    edits = []
    for info in await files.list(SESSIONS):
        name = info.path.removeprefix(f"{SESSIONS}/")
        if not name.endswith(".md") or "/" in name or name.startswith("."):
            continue
        try:
            stored = await files.read(info.path)
        except (FileMissing, StorageError):
            continue
        data = await run_sync(
            _remove_mentions, stored.data, info.path.removeprefix(f"{WORKSPACE}/"), contents, ids, sessions
        )
        if data != stored.data:
            edits.append(Edit(path=info.path, expected=stored.version, data=data))
    return edits


def _remove_mentions(
    data: bytes, path: str, contents: Sequence[str], ids: Collection[str], sessions: Collection[str]
) -> bytes:
    file = parse_session(data, path)
    wanted = mask_session(file, contents, ids, near=file.session in sessions) if file else None
    return data if wanted is None or wanted == file else update_session(data, path, wanted)
