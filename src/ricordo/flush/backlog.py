"""What is still to be extracted, told from the files alone: transcripts that hold more than their cursor says.

Invariant: a session whose state says that it is not to be learned from is never among them, and neither is one whose
state can't be read: whoever works in it asks for that itself.
"""

from functools import partial

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, InvalidMessage, StorageError
from ricordo.files import FileStore
from ricordo.flush.cursor import ExtractionCursor, load_cursor
from ricordo.state.codec import decode_state
from ricordo.workspace.layout import WORKSPACE, agent_from_folder, cursor_path_for, parse_transcript_path, state_path
from ricordo.workspace.transcript import TranscriptContents, read_transcript, read_transcript_from

__all__ = ["find_unextracted_sessions", "read_log_from_cursor"]


async def find_unextracted_sessions(files: FileStore) -> list[tuple[str, str]]:
    """Return the agent and session of each transcript that was not extracted to its end, by path.

    What is not to be learned from is left out, and a session whose agent's name its folder does not tell; the next
    flush of that takes in everything.
    """
    found = []
    for info in await files.list(f"{WORKSPACE}/agents"):
        named = parse_transcript_path(info.path)
        agent = agent_from_folder(named[0]) if named else None
        if (
            named
            and agent is not None
            and await _is_behind(files, info.path)
            and await _may_learn(files, agent, named[1])
        ):
            found.append((agent, named[1]))
    return found


async def read_log_from_cursor(files: FileStore, path: str, cursor: ExtractionCursor) -> TranscriptContents:
    """Return the log from where the cursor needs it on, all of it when that place is not what it was."""
    if cursor.anchor:
        logged = await read_transcript_from(files, path, offset=cursor.place, message_id=cursor.anchor)
        if logged is not None and cursor.position(message.id for message in logged.messages):
            return logged
    return await read_transcript(files, path)


async def _may_learn(files: FileStore, agent: str, session: str) -> bool:
    """Tell whether a session may be learned from; one without a state, such as an imported one, may be."""
    try:
        path = state_path(agent, session)
        try:
            data = (await files.read(path)).data
        except FileMissing:
            return await files.info(f"{path}.broken-1") is None
        return (await run_sync(partial(decode_state, data, agent=agent, session=session))).learns
    except (InvalidMessage, StorageError):
        return False


async def _is_behind(files: FileStore, path: str) -> bool:
    cursor = await load_cursor(files, cursor_path_for(path))
    if cursor.damaged or cursor.next:
        return True
    logged = await read_log_from_cursor(files, path, cursor)
    return cursor.position(message.id for message in logged.messages) < len(logged.messages)
