"""Tool sets: which tools a session offers its model, by what the agent is described with."""

import logging
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path

from ricordo.compaction.config import ToolResultEvictionConfig
from ricordo.compaction.evict import READER
from ricordo.compaction.placeholder import evicted_parts
from ricordo.files import FileStore
from ricordo.harness.compactions import Compactions
from ricordo.messages import Message
from ricordo.runtime.agent_options import AgentOptions
from ricordo.runtime.agent_store import AgentStore
from ricordo.runtime.assembly import Parts, Workspace, working_files
from ricordo.runtime.incognito import forgetful_tools
from ricordo.runtime.reductions import Reductions
from ricordo.scopes import path_part
from ricordo.stores import Forgets, Lists
from ricordo.stores.place import Place
from ricordo.tools import Tool
from ricordo.tools.expand import Opened, expand_tool
from ricordo.tools.file_roots import FileRoots, SharedFiles
from ricordo.tools.file_tools import file_tools
from ricordo.tools.forget import forget_tool
from ricordo.tools.grep_files import grep_files_tool
from ricordo.tools.memory_files import memory_files_tool
from ricordo.tools.memory_tools import OPT_IN_TOOLS, memory_tools
from ricordo.tools.read_file import read_file_tool
from ricordo.tools.session_tools import session_tools
from ricordo.tools.task_tools import Tasks
from ricordo.workspace.hiding import HidingFiles
from ricordo.workspace.layout import DEFAULT_AGENT

__all__ = ["MEMORY_TOOLS", "SESSION_TOOLS", "ToolSet", "reader_name"]

_LOG = logging.getLogger("ricordo.agent")

MEMORY_TOOLS = frozenset({"remember", "recall", "memory_search", "memory_get"})
"""What a sub-agent has only where it is named, or memory's tools are switched on for it."""

SESSION_TOOLS = frozenset({"session_list", "session_history", "session_search"})
"""What a sub-agent has only where it is named: these look into what its parent's user said."""


_READ_RESULT = "read_result"


def reader_name(tools: Sequence[Tool]) -> str:
    """Return the name of the tool that reads evicted results beside the program's own `tools`."""
    return _READ_RESULT if any(tool.spec.name == READER for tool in tools) else READER


@dataclass(frozen=True, kw_only=True)
class ToolSet:
    """Puts the tools of one session together; `keeps` tells whether its root can be written to.

    `folder` is the working directory. `tasks` are where a shell may run commands in the background.
    """

    options: AgentOptions
    parts: Parts
    root: Path
    folder: Path
    workspace: Workspace | None
    memory: AgentStore
    keeps: bool
    on: Reductions
    session: str
    tasks: Tasks | None = None

    def tools(
        self, compactions: Compactions, standing: Sequence[Tool] = (), window: Sequence[Message] = ()
    ) -> tuple[Tool, ...]:
        """Return the tools in the order in which the model is told of them; a sub-agent's are those it is given.

        `standing` are those for plans, todos and tasks. What opens a compaction is always there, and what reads evicted
        results where those are on, or where the `window` has some.
        """
        given = [tool for tool in [*self.inheritable(), *self._past()] if self._has(tool)]
        names = {tool.spec.name for tool in given}
        for name in sorted({*self._wanted} - names):
            _LOG.warning("The tool `%s` is not there: the store of this session lacks what it needs.", name)
        reading = [tool for tool in self._evicted(window) if tool.spec.name not in names]
        return (*given, *self._expand(compactions), *reading, *standing)

    def inheritable(self) -> list[Tool]:
        """Return what a sub-agent can be given: all but what belongs to one session."""
        return [*self.options.tools, *self._memory(), *self._opted_in(), *self._files()]

    def known(self) -> frozenset[str]:
        """Return the names that a sub-agent's tools may have."""
        return frozenset(tool.spec.name for tool in self.inheritable()) | MEMORY_TOOLS | SESSION_TOOLS | {*OPT_IN_TOOLS}

    @property
    def _agent(self) -> str:
        return self.options.scope.agent or DEFAULT_AGENT

    @property
    def _own(self) -> frozenset[str]:
        return frozenset(tool.spec.name for tool in self.options.tools)

    @property
    def _user(self) -> str:
        return self.options.scope.user or ""

    def _has(self, tool: Tool) -> bool:
        parentage = self.options.parentage
        return parentage is None or parentage.has(tool.spec.name)

    def _memory(self) -> Sequence[Tool]:
        if self.memory.standing == "off" or not (self.options.memory_tools or self._names(MEMORY_TOOLS)):
            return ()
        place = self.workspace.place if self.workspace and self.memory.is_own else None
        return memory_tools(
            self.memory.store if self.memory.keeps else None,
            place.files if place else None,
            shared=self._shared.files if self._shared else None,
            clock=self.parts.clock,
            redactor=place.redactor if place else None,
        )

    @property
    def _shared(self) -> SharedFiles | None:
        """What the project shares, where the user has a place of their own."""
        shared = self.workspace.shared if self.workspace else None
        return SharedFiles(files=shared, root=self.root) if shared else None

    @property
    def _wanted(self) -> list[str]:
        """The names of what is there only where it is asked for; a tool of the program that is called so is instead."""
        if not self.memory.keeps:
            return []
        named = self.options.opt_in_tools
        named = self.parts.settings.opt_in_tools if named is None else named
        asked = [name for name in OPT_IN_TOOLS if (self.options.memory_tools and name in named) or self._names({name})]
        return [name for name in asked if name not in self._own]

    def _opted_in(self) -> Sequence[Tool]:
        """Return what was asked for by name, as far as the store and the root have what it needs."""
        store, place = self.memory.store, self.workspace.place if self.workspace else None
        found: list[Tool] = []
        for name in self._wanted:
            if name == "forget" and store.offers(Lists) is not None and store.offers(Forgets) is not None:
                found.append(forget_tool(store, approve=self.options.approve))
            if name == "memory" and place is not None:
                changes = place.changes if self.keeps else None
                found.append(memory_files_tool(place.files, changes, redactor=place.redactor, root=Path(place.folder)))
        return found

    def _names(self, tools: AbstractSet[str]) -> bool:
        """Tell whether a sub-agent is given one of these, whatever its parent has."""
        parentage = self.options.parentage
        return parentage is not None and any(map(parentage.has, tools - self._own))

    def _past(self) -> Sequence[Tool]:
        if not (self.options.session_tools or self._names(SESSION_TOOLS)) or self.workspace is None:
            return ()
        return session_tools(self._shown(self.workspace.place), agent=self._agent, user=self._user, expand=True)

    def _expand(self, compactions: Compactions) -> Sequence[Tool]:
        """Return what opens what a reduction took away, which a person can ask for whatever is on.

        Messages of other sessions are opened only with the session tools.
        """
        place = self.workspace.place if self.workspace else None
        if place is None:
            return (expand_tool(compactions.expand, agent=self._agent, user=self._user),)

        async def expand(handle: str) -> Opened:
            opened, forgotten = await compactions.expand(handle), await place.forgotten()
            messages = tuple(forgotten.without(message, self.session) for message in opened.messages)
            return replace(opened, messages=messages)

        files = self._shown(place) if self.options.session_tools else None
        return (expand_tool(expand, files, agent=self._agent, user=self._user),)

    def _files(self) -> Sequence[Tool]:
        options, place = self.options, self.workspace.place if self.workspace else None
        if options.incognito and (options.file_tools or options.shell):
            return forgetful_tools(
                self.root, self.folder, self.parts, approve=options.approve, shell=options.shell, tasks=self.tasks
            )
        if place is None or not (options.file_tools or options.shell):
            return ()
        return file_tools(
            self._shown(place),
            working_files(self.folder, self.root, self.parts, place.files),
            changes=place.changes,
            approve=options.approve,
            folder=self.folder,
            redactor=place.redactor,
            root=Path(place.folder),
            closed=self.root,
            shared=self._shared,
            shell=options.shell,
            tasks=self.tasks,
            bounds=self.parts.settings.consolidation.bounds if self.parts.settings.consolidation else None,
        )

    def _shown(self, place: Place) -> FileStore:
        """Return the files of a root as a model reads them."""
        return HidingFiles(place.files, place.key)

    def _evicted(self, window: Sequence[Message]) -> Sequence[Tool]:
        """Return what reads the results that were evicted in this session, where there are no other file tools."""
        config = self.on.tool_result_eviction
        if self.workspace is None or not (any(map(evicted_parts, window)) or (config and self.keeps)):
            return ()
        config = config or ToolResultEvictionConfig()
        folder = f"{config.eviction_path.strip('/')}/{path_part(self.session)}"
        redactor = self.workspace.place.redactor
        roots = FileRoots(self.workspace.place.files, root=self.workspace.folder, below=folder)
        reading = read_file_tool(roots, redactor, name=reader_name(self.options.tools))
        return (reading, grep_files_tool(roots, redactor))
