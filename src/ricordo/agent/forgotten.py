"""Messages and files of a session without forgotten content, so that no request or summary repeats it."""

from collections.abc import Sequence
from pathlib import Path

from anyio.to_thread import run_sync

from ricordo.agent.contract import StepMiddleware
from ricordo.agent.memory_middleware import ForgottenMiddleware
from ricordo.messages import Message
from ricordo.runtime.roots import digest_key, load_guard_key
from ricordo.runtime.workspace import Workspace, root_files
from ricordo.search.memory_root import MemoryRoot
from ricordo.storage import FileStore
from ricordo.stores import LayeredMemory, Store
from ricordo.workspace.history.masked_files import MaskedFiles
from ricordo.workspace.history.tombstones import ForgottenStatements, collect_texts, find_repetitions
from ricordo.workspace.layout import transcript_path
from ricordo.workspace.transcript import read_transcript

__all__ = ["create_forgotten_middleware", "read_unforgotten_messages", "searchable_files"]


def create_forgotten_middleware(workspace: Workspace | None, store: Store) -> tuple[StepMiddleware, ...]:
    """Return the middleware that removes forgotten content from a session's window; empty without a root."""
    if workspace is None:
        return ()
    place, layers = workspace.memory_root, store.offers(LayeredMemory)

    async def list_forgotten() -> list[ForgottenStatements]:
        return [await each.read_forgotten() for each in (await layers.places() if layers else [place])]

    return (ForgottenMiddleware(list_forgotten),)


async def searchable_files(root: Path, place: Path) -> FileStore:
    """Return the files of a place in `root` for searching, with forgotten content masked in records.

    This opens and repairs nothing. Raises: DocumentInvalid for a damaged key.
    """
    return MaskedFiles(root_files(place), digest_key(await load_guard_key(root_files(root))))


async def read_unforgotten_messages(place: MemoryRoot, agent: str, session: str) -> Sequence[Message]:
    """Return the messages of a session without forgotten content, oldest first; empty for an unknown session."""
    messages = (await read_transcript(place.files, transcript_path(agent, session))).messages
    forgotten = await place.read_forgotten()
    return await run_sync(_filter_forgotten, messages, forgotten, session) if forgotten else messages


def _filter_forgotten(messages: Sequence[Message], forgotten: ForgottenStatements, session: str) -> Sequence[Message]:
    """Return the messages without those that repeat forgotten content, also paraphrased."""
    left = [message for message in messages if (session, message.id) not in forgotten.messages]
    gone = [text for message in left for text in forgotten.find("\n".join(collect_texts(message)))]
    return [message for message in left if not find_repetitions(collect_texts(message), gone)] if gone else left
