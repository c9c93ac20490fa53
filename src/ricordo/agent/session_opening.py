"""Opening a session: its root and its store are located, opened, and closed at the end."""

import logging
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from ricordo.agent.agent_store import AgentStore, open_agent_store, uses_root_memory
from ricordo.agent.options import AgentOptions
from ricordo.agent.session import AgentSession
from ricordo.agent.session_factory import SessionFactory
from ricordo.agent.tools import Approval, ApprovalHandler
from ricordo.errors import DocumentInvalid, InvalidInput, RicordoError, ScopeError, StorageError, StorageFailed
from ricordo.events import Event, EventSink
from ricordo.models import ChatModel
from ricordo.models.config import OFFLINE
from ricordo.runtime.models import load_agent_model
from ricordo.runtime.roots import default_root
from ricordo.runtime.settings import Settings
from ricordo.runtime.workspace import Dependencies, Workspace, open_workspace
from ricordo.scope import Scope
from ricordo.stores import Store

__all__ = ["open_session"]


_LOG = logging.getLogger("ricordo.agent")
_NO_STORE = "none:"
_CORRECTION_STAGES = frozenset({"forget", "undo"})


@asynccontextmanager
async def open_session(options: AgentOptions) -> AsyncIterator[AgentSession]:
    """Open the root and the store, resume or start the session, and close everything at the end.

    A root or store that can't be opened is logged once, and the session runs without memory, unless memory is required.
    A read-only root is logged too, and nothing of the session is saved. The store is closed before the root, also if
    the block raises. An incognito session opens neither. Raises: RootNotTrusted; ScopeMismatch; InvalidSetting;
    ModelNotFound, ModelKeyMissing, ExtraMissing; with a `required` memory the error from opening the root or the store.
    """
    configured = options.settings
    root = await run_sync(_locate_root, options.memory.root or (configured.root if configured else None))
    settings = await run_sync(partial(_load_settings, root, configured, trusted=options.memory.trusted))
    if configured is None and options.recommended:
        settings = settings.with_default_embedder()
    if options.memory.incognito:
        # The root is not opened, but the rules in it are still read.
        await run_sync(settings.check_trust, root)
    if isinstance(options.model, str) and options.model != OFFLINE:
        settings = settings.with_model(options.model)
    learns = await run_sync(uses_root_memory, options.memory.store, settings, root)
    settings = settings if learns else replace(settings, consolidation=None)
    prompts = _PromptInvalidator()
    parts = Dependencies.create(
        settings=_with_flush(_with_evictions(settings, options), options),
        clock=options.clock,
        disk=options.disk,
        sink=prompts.wrap_sink(options.on_event),
    )
    options = replace(options, model=await _load_model(options, settings), model_settings=None)
    parts = replace(parts, model=None if isinstance(options.model, str) else options.model)
    async with AsyncExitStack() as stack:
        workspace = None
        if not options.memory.incognito:
            workspace = await _open_workspace(stack, root, options.scope, parts, required=options.memory.required)
        folders = [root, workspace.folder] if workspace else []
        is_writable = bool(folders) and all([await run_sync(_is_writable, folder) for folder in folders])
        if workspace and not is_writable:
            _LOG.warning("The memory in %s can only be read: nothing that is said now is kept.", root)
            if workspace.memory_root.usage:
                workspace.memory_root.usage.disable()
        memory = await _open_store(stack, options, parts, root=root, workspace=workspace)
        session_options = replace(options, approve=_serialize_approvals(options.approve))
        factory = SessionFactory(
            options=session_options, parts=parts, root=root, workspace=workspace, memory=memory, is_writable=is_writable
        )
        session = await factory.create_session()
        prompts.session = session
        await stack.enter_async_context(session.services.task_runner.lifespan())
        if session.turn_memories:
            await stack.enter_async_context(session.turn_memories.search_in_background())
        if session.closing:
            await stack.enter_async_context(session.closing.close_on_exit())
        yield session


class _PromptInvalidator:
    """Invalidates a session's prompt after a person had something forgotten or undid a write."""

    session: AgentSession | None = None

    def wrap_sink(self, other: EventSink | None) -> EventSink:
        """Return a sink that also passes events to `other`."""

        def handle_event(event: Event) -> None:
            if self.session and event.stage in _CORRECTION_STAGES and event.status == "finished":
                self.session.prompt.invalidate()
            if other:
                other(event)

        return handle_event


def _serialize_approvals(approve: ApprovalHandler | None) -> ApprovalHandler | None:
    """Return a handler that asks one question at a time, for the agent and its sub-agents together."""
    if approve is None:
        return None
    lock = anyio.Lock()

    async def ask_alone(asked: Approval) -> bool:
        async with lock:
            return await approve(asked)

    return ask_alone


def _locate_root(root: str | Path | None) -> Path:
    return Path(root or Settings.from_environment().root or default_root()).absolute()


def _load_settings(root: Path, settings: Settings | None, *, trusted: bool) -> Settings:
    """Return the settings for the root. Raises: RootNotTrusted, InvalidSetting, DocumentInvalid."""
    effective = settings or Settings.from_environment()
    effective = effective.with_trusted_root(root) if trusted else effective
    try:
        effective.check_trust(root)
    except StorageError:
        # A root that can't be read is reported when it is opened.
        return settings or Settings.load(own=True)
    try:
        return effective if settings else Settings.load(root, trusted=trusted)
    except DocumentInvalid:
        raise
    except StorageError:
        return Settings.load(own=True)


def _with_evictions(settings: Settings, options: AgentOptions) -> Settings:
    """Return the settings with the agent's eviction configuration, so that its evicted files are cleaned up."""
    eviction = options.reductions.get("tool_result_eviction")
    if eviction is None:
        return settings
    return replace(settings, reductions={**settings.reductions, "tool_result_eviction": eviction})


def _with_flush(settings: Settings, options: AgentOptions) -> Settings:
    """Return the settings with the agent's flush configuration, so that all its extractions use it."""
    return replace(settings, flush=options.memory.flush) if options.memory.flush else settings


async def _load_model(options: AgentOptions, settings: Settings) -> str | ChatModel:
    """Return the agent's model, which memory uses too; `offline` stays a name."""
    if not isinstance(options.model, str) or options.model == OFFLINE:
        return options.model
    return await run_sync(partial(load_agent_model, options.model, settings, options.model_settings))


async def _open_store(
    stack: AsyncExitStack, options: AgentOptions, parts: Dependencies, *, root: Path, workspace: Workspace | None
) -> AgentStore:
    """Return the agent's store; for an incognito agent one that saves nothing. A store passed open is closed anyway."""
    open_store = partial(
        open_agent_store,
        scope=options.scope,
        parts=parts,
        root=root,
        workspace=workspace,
        required=options.memory.required,
    )
    if not options.memory.incognito:
        return await stack.enter_async_context(open_store(options.memory.store))
    if isinstance(options.memory.store, Store):
        await stack.enter_async_context(open_store(options.memory.store))
    return await stack.enter_async_context(open_store(_NO_STORE))


def _is_writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK)


async def _open_workspace(
    stack: AsyncExitStack, root: Path, scope: Scope, parts: Dependencies, *, required: bool
) -> Workspace | None:
    try:
        return await stack.enter_async_context(open_workspace(root, scope, parts))
    except (ScopeError, InvalidInput):
        raise
    except (RicordoError, OSError) as error:
        if required and isinstance(error, RicordoError):
            raise
        if required:
            raise StorageFailed(f"{root} can't be opened: {error}") from error
        _LOG.warning("The memory in %s can't be opened, so this session goes on without one: %s", root, error)
        return None
