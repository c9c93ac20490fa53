"""What was said in a session, without what was forgotten since: neither a request nor a summary says it again."""

from collections.abc import Sequence
from pathlib import Path

from anyio.to_thread import run_sync

from ricordo.files import FileStore
from ricordo.messages import Message
from ricordo.middleware import StepMiddleware
from ricordo.middleware.forgotten import HideForgotten
from ricordo.runtime.assembly import Workspace, files_of
from ricordo.runtime.guard_key import digest_key, guard_key
from ricordo.stores import Layers, Store
from ricordo.stores.place import Place
from ricordo.workspace.forgotten import Forgotten, copies, texts_of
from ricordo.workspace.hiding import HidingFiles
from ricordo.workspace.layout import transcript_path
from ricordo.workspace.transcript import read_log

__all__ = ["hiding", "searched_files", "still_said"]


def hiding(workspace: Workspace | None, store: Store) -> tuple[StepMiddleware, ...]:
    """Return what keeps out of the window of a session what was forgotten; nothing without a root."""
    if workspace is None:
        return ()
    place, layers = workspace.place, store.offers(Layers)

    async def forgotten() -> list[Forgotten]:
        return [await each.forgotten() for each in (await layers.places() if layers else [place])]

    return (HideForgotten(forgotten),)


async def searched_files(root: Path, place: Path) -> FileStore:
    """Return the files of a place in `root` as searches read them: records say nothing that was forgotten.

    Nothing is opened or mended by this. Raises: DocumentInvalid for a damaged key.
    """
    return HidingFiles(files_of(place), digest_key(await guard_key(files_of(root))))


async def still_said(place: Place, agent: str, session: str) -> Sequence[Message]:
    """Return the messages of a session that say nothing that was forgotten, oldest first; empty for no session."""
    messages = (await read_log(place.files, transcript_path(agent, session))).messages
    forgotten = await place.forgotten()
    return await run_sync(_unforgotten, messages, forgotten, session) if forgotten else messages


def _unforgotten(messages: Sequence[Message], forgotten: Forgotten, session: str) -> Sequence[Message]:
    """Return the messages without those that say it, also in other words than one of them does."""
    left = [message for message in messages if (session, message.id) not in forgotten.messages]
    gone = [text for message in left for text in forgotten.found("\n".join(texts_of(message)))]
    return [message for message in left if not copies(texts_of(message), gone)] if gone else left
