"""Agents: the root of a session is found and opened, and closed at the end."""

import logging
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from ricordo.errors import (
    DocumentInvalid,
    InvalidInput,
    RicordoError,
    ScopeError,
    StorageError,
    StorageFailed,
)
from ricordo.events import Event, Sink
from ricordo.harness.offline import OFFLINE
from ricordo.models import ChatModel
from ricordo.runtime.agent_options import AgentOptions
from ricordo.runtime.agent_store import AgentStore, opened_store, remembers_in_root
from ricordo.runtime.assembly import Parts, Workspace, open_workspace
from ricordo.runtime.making import Making
from ricordo.runtime.named_model import load_named
from ricordo.runtime.roots import nearest_root
from ricordo.runtime.session import Session
from ricordo.runtime.settings import Settings
from ricordo.scopes import Scope
from ricordo.stores import Store
from ricordo.tools import Approval, Approve

__all__ = ["open_session"]

_LOG = logging.getLogger("ricordo.agent")
_NOWHERE = "none:"
_CORRECTING = frozenset({"forget", "undo"})


@asynccontextmanager
async def open_session(options: AgentOptions) -> AsyncIterator[Session]:
    """Open the root and the store, take up the session or begin it, and close everything at the end.

    A root, or a store, that can't be opened is told to the log once, and the session goes on without memory, unless
    that is required; one that can only be read is told too, and nothing of the session is kept. The store is closed
    before the root, also when the block raises. An incognito session opens neither. Raises: RootNotTrusted;
    ScopeMismatch; InvalidSetting; ModelNotFound, ModelKeyMissing, ExtraMissing; with `require_memory` what kept the
    root or the store closed.
    """
    given = options.settings
    root = await run_sync(_located, options.root or (given.root if given else None))
    settings = await run_sync(partial(_settings, root, given, trusted=options.trusted))
    if given is None and options.recommended:
        settings = settings.finding_by_meaning()
    if options.incognito:
        # its root is not opened, and the rules in it are read all the same
        await run_sync(settings.check_trust, root)
    if isinstance(options.model, str) and options.model != OFFLINE:
        settings = settings.for_model(options.model)
    learns = await run_sync(remembers_in_root, options.store, settings, root)
    settings = settings if learns else replace(settings, consolidation=None)
    prompts = _Prompts()
    parts = Parts.standard(
        settings=_with_flush(_with_evictions(settings, options), options),
        clock=options.clock,
        disk=options.disk,
        sink=prompts.told_too(options.on_event),
    )
    options = replace(options, model=await _loaded(options, settings), model_settings=None)
    parts = replace(parts, model=None if isinstance(options.model, str) else options.model)
    async with AsyncExitStack() as stack:
        workspace = None
        if not options.incognito:
            workspace = await _opened(stack, root, options.scope, parts, required=options.require_memory)
        folders = [root, workspace.folder] if workspace else []
        keeps = bool(folders) and all([await run_sync(_is_writable, folder) for folder in folders])
        if workspace and not keeps:
            _LOG.warning("The memory in %s can only be read: nothing that is said now is kept.", root)
            if workspace.place.usage:
                workspace.place.usage.stop()
        memory = await _memory(stack, options, parts, root=root, workspace=workspace)
        asking = replace(options, approve=_one_at_a_time(options.approve))
        making = Making(options=asking, parts=parts, root=root, workspace=workspace, memory=memory, keeps=keeps)
        session = await making.session()
        prompts.session = session
        await stack.enter_async_context(session.beside.runner.at_work())
        if session.memories:
            await stack.enter_async_context(session.memories.at_work())
        if session.closing:
            await stack.enter_async_context(session.closing.at_the_end())
        yield session


class _Prompts:
    """Lets a session's prompt be written anew once a person had something forgotten, or took a write back."""

    session: Session | None = None

    def told_too(self, other: Sink | None) -> Sink:
        """Return a sink that tells `other` as well."""

        def hear(event: Event) -> None:
            if self.session and event.stage in _CORRECTING and event.status == "finished":
                self.session.inject.refresh(self.session.name)
            if other:
                other(event)

        return hear


def _one_at_a_time(approve: Approve | None) -> Approve | None:
    """Return what asks a person one question after the other, whether an agent asks or one of its sub-agents."""
    if approve is None:
        return None
    asking = anyio.Lock()

    async def alone(asked: Approval) -> bool:
        async with asking:
            return await approve(asked)

    return alone


def _located(named: Path | None) -> Path:
    return (named or Settings.from_environment().root or nearest_root()).absolute()


def _settings(root: Path, given: Settings | None, *, trusted: bool) -> Settings:
    """Return the settings that hold in the root. Raises: RootNotTrusted, InvalidSetting, DocumentInvalid."""
    held = given or Settings.from_environment()
    held = held.vouching_for(root) if trusted else held
    try:
        held.check_trust(root)
    except StorageError:
        # a root that can't be read is told when it is opened
        return given or Settings.load(own=True)
    try:
        return held if given else Settings.load(root, trusted=trusted)
    except DocumentInvalid:
        raise
    except StorageError:
        return Settings.load(own=True)


def _with_evictions(settings: Settings, options: AgentOptions) -> Settings:
    """Let what the agent evicts be tidied up where it puts it."""
    eviction = options.reductions.tool_result_eviction
    return replace(settings, tool_result_eviction=eviction) if eviction else settings


def _with_flush(settings: Settings, options: AgentOptions) -> Settings:
    """Let every path of this agent extract as it was told to."""
    return replace(settings, flush=options.flush) if options.flush else settings


async def _loaded(options: AgentOptions, settings: Settings) -> str | ChatModel:
    """Return the model of the agent, which is asked for what memory does too; `offline` stays a name."""
    if not isinstance(options.model, str) or options.model == OFFLINE:
        return options.model
    return await run_sync(partial(load_named, options.model, settings, options.model_settings))


async def _memory(
    stack: AsyncExitStack, options: AgentOptions, parts: Parts, *, root: Path, workspace: Workspace | None
) -> AgentStore:
    """Return what the agent remembers with: nothing where it is incognito, which closes a given store all the same."""
    opening = partial(
        opened_store, scope=options.scope, parts=parts, root=root, workspace=workspace, required=options.require_memory
    )
    if not options.incognito:
        return await stack.enter_async_context(opening(options.store))
    if isinstance(options.store, Store):
        await stack.enter_async_context(opening(options.store))
    return await stack.enter_async_context(opening(_NOWHERE))


def _is_writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK)


async def _opened(stack: AsyncExitStack, root: Path, scope: Scope, parts: Parts, *, required: bool) -> Workspace | None:
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
