"""Messages and files of a session without forgotten content, so that no request or summary repeats it.

Invariant: while nothing is forgotten, messages do not change.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

from anyio.to_thread import run_sync

from ricordo.agent.contract import ModelRequest, ModelResponse, StepHandler, StepMiddleware
from ricordo.context.plan import find_newest_request
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

__all__ = ["ForgottenMiddleware", "create_forgotten_middleware", "read_unforgotten_messages", "searchable_files"]


class ForgottenMiddleware:
    """Step middleware, outside all middleware that reads or shortens the window."""

    def __init__(self, load_forgotten: Callable[[], Awaitable[Sequence[ForgottenStatements]]]) -> None:
        """Hide what `load_forgotten` recognises; it is called before each request and is cheap if nothing changed."""
        self._forgotten = load_forgotten
        self._known: Sequence[ForgottenStatements] = ()
        self._hidden_messages: dict[str, Message] = {}

    async def __call__(self, request: ModelRequest, step: StepHandler) -> ModelResponse:
        """Continue with a window without forgotten content, except in the newest request of the user."""
        statements = await self._forgotten()
        if statements != self._known:
            self._known = statements
            self._hidden_messages = {}
        if not any(statements):
            return await step(request)
        # The user's new request is not a copy, even with the same words.
        newest_request = find_newest_request(request.window)
        new = [
            message
            for index, message in enumerate(request.window)
            if index != newest_request and self._hidden_messages.get(message.id) != message
        ]
        if new:
            masked = await run_sync(self._hide_forgotten, new, request.turn.session)
            self._hidden_messages |= {message.id: message for message in masked.values()}
            request = replace(request, window=tuple(masked.get(id(each), each) for each in request.window))
        return await step(request)

    def _hide_forgotten(self, messages: Sequence[Message], session: str) -> dict[int, Message]:
        masked = {}
        for message in messages:
            result = message
            for each in self._known:
                result = each.mask_message(result, session)
            masked[id(message)] = result
        return masked


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
    remaining = [message for message in messages if (session, message.id) not in forgotten.messages]
    forgotten_texts = [text for message in remaining for text in forgotten.find("\n".join(collect_texts(message)))]
    return (
        [message for message in remaining if not find_repetitions(collect_texts(message), forgotten_texts)]
        if forgotten_texts
        else remaining
    )
