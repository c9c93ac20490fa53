"""What is still to be extracted, told from the files alone: transcripts that hold more than their cursor says."""

from ricordo.files import FileStore
from ricordo.flush.cursor import Cursor, load_cursor
from ricordo.workspace.layout import WORKSPACE, agent_of, cursor_beside, session_of
from ricordo.workspace.transcript import Logged, read_log, read_log_from

__all__ = ["backlog", "log_after"]


async def backlog(files: FileStore) -> list[tuple[str, str]]:
    """Return the agent and session of each transcript that was not extracted to its end, by path.

    A session whose agent's name its folder does not tell is left out; its next flush takes in everything.
    """
    found = []
    for info in await files.list(f"{WORKSPACE}/agents"):
        named = session_of(info.path)
        agent = agent_of(named[0]) if named else None
        if named and agent is not None and await _is_behind(files, info.path):
            found.append((agent, named[1]))
    return found


async def log_after(files: FileStore, path: str, cursor: Cursor) -> Logged:
    """Return the log from where the cursor needs it on, all of it when that place is not what it was."""
    if cursor.anchor:
        logged = await read_log_from(files, path, offset=cursor.place, message_id=cursor.anchor)
        if logged is not None and cursor.position(message.id for message in logged.messages):
            return logged
    return await read_log(files, path)


async def _is_behind(files: FileStore, path: str) -> bool:
    cursor = await load_cursor(files, cursor_beside(path))
    if cursor.damaged or cursor.next:
        return True
    logged = await log_after(files, path, cursor)
    return cursor.position(message.id for message in logged.messages) < len(logged.messages)
