"""Step middleware for memory: the system prompt, the profile, updates of memory, and forgotten content.

The system prompt is built once per session, so that requests share a prefix. Later changes in memory are sent as a
message after the newest one. The update and the profile are marked as memory and never recorded. Forgotten content is
removed from the window.

Invariants: an update never comes between a call and its result. While nothing is forgotten, messages do not change.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

import anyio
from anyio.to_thread import run_sync

from ricordo.agent.contract import ModelRequest, ModelResponse, StepHandler
from ricordo.context.plan import find_newest_request
from ricordo.context.preamble import UPDATE_BUDGET, MemoryLine, MemorySnapshot, diff_snapshots, render_update
from ricordo.context.prompt import MEMORY_FILES
from ricordo.messages import Message, Text, count_fingerprints, with_ids, with_mark
from ricordo.messages.tokens import Tokens
from ricordo.scope import Scope
from ricordo.workspace.history.tombstones import ForgottenStatements

__all__ = [
    "ForgottenMiddleware",
    "MemoryUpdateMiddleware",
    "ProfileMiddleware",
    "ShownMemory",
    "SystemPromptMiddleware",
    "is_update",
]


_SessionKey: TypeAlias = tuple[Scope, str, str]


class SystemPromptMiddleware:
    """Step middleware that sets `ModelRequest.system`, with one prompt per session, agent and scope."""

    def __init__(self, make: Callable[[ModelRequest], Awaitable[str]]) -> None:
        """Build the prompt with `make` from the session's first request, which has the base prompt and the tools."""
        self._make = make
        self._prompts: dict[_SessionKey, str] = {}
        self._lock = anyio.Lock()

    async def __call__(self, request: ModelRequest, step: StepHandler) -> ModelResponse:
        """Continue with the session's prompt. Raises as `add_prompt` does."""
        return await step(await self.add_prompt(request))

    async def add_prompt(self, request: ModelRequest) -> ModelRequest:
        """Return `request` with the session's prompt. If building it fails, raise; the next request tries again."""
        turn = request.turn
        key = (turn.scope, turn.agent, turn.session)
        async with self._lock:
            if key not in self._prompts:
                self._prompts[key] = await self._make(request)
        return replace(request, system=self._prompts[key])

    def invalidate(self, session: str | None = None) -> None:
        """Rebuild the prompt with the next request, of `session` or of all if None.

        Every call starts a new prefix, so call it after a compaction or a person's correction.
        """
        self._prompts = {key: made for key, made in self._prompts.items() if session is not None and key[2] != session}


_UPDATE_KEY = "ricordo.update"


class ShownMemory(Protocol):
    """The memory that the system prompt shows, and the memory it would show now."""

    @property
    def write_count(self) -> int:
        """How often the prompt was built."""
        ...

    @property
    def snapshot(self) -> MemorySnapshot:
        """The memory when the prompt was built."""
        ...

    async def load_current(self) -> MemorySnapshot:
        """Return the current memory. Called before every request, so cheap if nothing changed."""
        ...

    async def is_own(self, line: MemoryLine, session: str) -> bool:
        """Return whether a line was saved or learned in `session`, which therefore knows it."""
        ...

    async def is_in_memory(self, line: MemoryLine) -> bool:
        """Return whether memory still holds a line that the preamble no longer shows."""
        ...


class MemoryUpdateMiddleware:
    """Step middleware for one session, inside all middleware that shortens the window or rebuilds the prompt."""

    def __init__(
        self,
        shown: ShownMemory,
        inject: SystemPromptMiddleware,
        *,
        base: str,
        at_once: bool = False,
        budget: Tokens = UPDATE_BUDGET,
        where: str = MEMORY_FILES,
    ) -> None:
        """Send changes since `snapshot`, in at most `budget` tokens per update; `where` names the place of the rest.

        With `at_once`, `inject` rebuilds the prompt from `base` instead, as it always does after a correction.
        """
        self._shown = shown
        self._inject = inject
        self._base = base
        self._at_once = at_once
        self._budget = budget
        self._where = where
        self._write_count = 0
        self._told_snapshots: dict[str, MemorySnapshot] = {}
        self._own_texts: set[str] = set()

    async def __call__(self, request: ModelRequest, step: StepHandler) -> ModelResponse:
        """Continue with an update if memory changed, and without updates that the prompt now includes."""
        now = await self._shown.load_current()
        if now != self._shown.snapshot and (self._at_once or now.corrections != self._shown.snapshot.corrections):
            self._inject.invalidate(request.turn.session)
            request = await self._inject.add_prompt(replace(request, system=self._base))
        if self._shown.write_count != self._write_count:
            self._write_count = self._shown.write_count
            self._told_snapshots.clear()
        request = self._drop_stale_updates(request)
        update = await self._build_update(request, now)
        return await step(replace(request, window=(*request.window, update)) if update else request)

    async def _build_update(self, request: ModelRequest, now: MemorySnapshot) -> Message | None:
        """Return the update that follows the updates in the window; None if there is nothing new."""
        told = [self._told_snapshots[message.id] for message in request.window if message.id in self._told_snapshots]
        before = told[-1] if told else self._shown.snapshot
        if now == before:
            return None
        added, missing = diff_snapshots(before, now)
        session = request.turn.session
        new = [line for line in added if not await self._is_known(line, session)]
        gone = [line for line in missing if not await self._shown.is_in_memory(line)]
        if not new and not gone:
            return None
        text = render_update(new, gone, self._budget.count, where=self._where)
        bare = replace(with_mark(Message(role="user", parts=(Text(text=text),)), "memory"))
        message = replace(bare, metadata={**bare.metadata, _UPDATE_KEY: True})
        (update,) = with_ids([message], session=session, known=count_fingerprints(request.window))
        self._told_snapshots[update.id] = now
        return update

    def _drop_stale_updates(self, request: ModelRequest) -> ModelRequest:
        """Remove the updates of an earlier prompt, also those restored by undoing a compaction."""
        window = tuple(each for each in request.window if not is_update(each) or each.id in self._told_snapshots)
        return replace(request, window=window) if len(window) < len(request.window) else request

    async def _is_known(self, line: MemoryLine, session: str) -> bool:
        """Return whether the agent saved this line itself, also after consolidation has placed it."""
        if line.normalized_text not in self._own_texts and await self._shown.is_own(line, session):
            self._own_texts.add(line.normalized_text)
        return line.normalized_text in self._own_texts


def is_update(message: Message) -> bool:
    """Return whether a message is an update about changes in memory."""
    return message.metadata.get(_UPDATE_KEY) is True


_PROFILE_KEY = "ricordo.profile"


class ProfileMiddleware:
    """Step middleware for one session, inside all middleware that shortens the window or rebuilds the prompt."""

    def __init__(self, shown: ShownMemory, block: Callable[[ModelRequest], Awaitable[str]]) -> None:
        """Add the text of `block` once each time that `shown` was built; add nothing if it is empty."""
        self._shown = shown
        self._block = block
        self._id = ""
        self._write_count = 0

    async def __call__(self, request: ModelRequest, step: StepHandler) -> ModelResponse:
        """Continue with the profile message."""
        if self._shown.write_count != self._write_count:
            self._write_count, self._id = self._shown.write_count, ""
        window = tuple(each for each in request.window if _PROFILE_KEY not in each.metadata or each.id == self._id)
        if not any(each.id == self._id for each in window):
            text = await self._block(request)
            if text:
                message = self._build_message(text, window, request.turn.session)
                window, self._id = (*window, message), message.id
        return await step(replace(request, window=window))

    def _build_message(self, text: str, window: tuple[Message, ...], session: str) -> Message:
        bare = with_mark(Message(role="user", parts=(Text(text=text),)), "memory")
        message = replace(bare, metadata={**bare.metadata, _PROFILE_KEY: True})
        return with_ids([message], session=session, known=count_fingerprints(window))[0]


class ForgottenMiddleware:
    """Step middleware, outside all middleware that reads or shortens the window."""

    def __init__(self, forgotten: Callable[[], Awaitable[Sequence[ForgottenStatements]]]) -> None:
        """Hide what `forgotten` recognises; it is called before each request and is cheap if nothing changed."""
        self._forgotten = forgotten
        self._known: Sequence[ForgottenStatements] = ()
        self._hidden_messages: dict[str, Message] = {}

    async def __call__(self, request: ModelRequest, step: StepHandler) -> ModelResponse:
        """Continue with a window without forgotten content, except in the newest request of the user."""
        known = await self._forgotten()
        if known != self._known:
            self._known = known
            self._hidden_messages = {}
        # The user's new request is not a copy, even with the same words.
        asked = find_newest_request(request.window)
        new = [
            message
            for at, message in enumerate(request.window)
            if at != asked and self._hidden_messages.get(message.id) != message
        ]
        if new and any(known):
            without = await run_sync(self._hide_forgotten, new, request.turn.session)
            self._hidden_messages |= {message.id: message for message in without.values()}
            request = replace(request, window=tuple(without.get(id(each), each) for each in request.window))
        return await step(request)

    def _hide_forgotten(self, messages: Sequence[Message], session: str) -> dict[int, Message]:
        found = {}
        for message in messages:
            rest = message
            for each in self._known:
                rest = each.mask_message(rest, session)
            found[id(message)] = rest
        return found
