"""Tool sets: the tools that a session offers its model, according to the options of the agent."""

import logging
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path

from ricordo.agent.agent_store import AgentResources, AgentStore
from ricordo.agent.compactions import Compactions
from ricordo.agent.options import AgentOptions
from ricordo.agent.tools import Tool
from ricordo.agent.tools.expand import ExpandedMessages, expand_tool
from ricordo.agent.tools.file_roots import FileRoots, SharedFiles
from ricordo.agent.tools.file_search import grep_files_tool
from ricordo.agent.tools.files import file_tools, read_file_tool
from ricordo.agent.tools.memory import forget_tool, memory_tools
from ricordo.agent.tools.memory_files import memory_files_tool
from ricordo.agent.tools.sessions import session_tools
from ricordo.agent.tools.tasks import SessionTasks
from ricordo.context.config import ToolResultEvictionConfig
from ricordo.context.strategies import Reductions
from ricordo.context.tool_results import READ_TOOL, evicted_parts
from ricordo.lazy import dataclass
from ricordo.messages import Message
from ricordo.runtime.roots import cache_folder
from ricordo.runtime.settings import OPT_IN_TOOLS
from ricordo.runtime.workspace import scratch_files, working_directory_files
from ricordo.scope import encode_folder_name
from ricordo.search.memory_root import MemoryRoot
from ricordo.storage import FileStore
from ricordo.stores import Forgets, Lists
from ricordo.workspace.history.masked_files import MaskedFiles

__all__ = ["MEMORY_TOOLS", "SESSION_TOOLS", "ToolSet", "reader_name"]


_LOG = logging.getLogger("ricordo.agent")
MEMORY_TOOLS = frozenset({"remember", "recall", "memory_search", "memory_get"})
"""Tools that a sub-agent gets only if they are named or its memory tools are enabled."""
SESSION_TOOLS = frozenset({"session_list", "session_history", "session_search"})
"""Tools that a sub-agent gets only if they are named, because they read the messages of its parent's user."""


_RESULT_READER = "read_result"


def reader_name(tools: Sequence[Tool]) -> str:
    """Return the name of the tool that reads evicted results, distinct from the program's own `tools`."""
    return _RESULT_READER if any(tool.spec.name == READ_TOOL for tool in tools) else READ_TOOL


@dataclass(frozen=True, kw_only=True)
class ToolSet:
    """Builds the tools of one session. `tasks` lets the shell run commands in the background."""

    resources: AgentResources
    reductions: Reductions
    session: str
    tasks: SessionTasks | None = None

    @property
    def _options(self) -> AgentOptions:
        return self.resources.options

    @property
    def _memory(self) -> AgentStore:
        return self.resources.memory

    @property
    def _place(self) -> MemoryRoot | None:
        return self.resources.place

    def build(
        self, compactions: Compactions, work_tools: Sequence[Tool] = (), window: Sequence[Message] = ()
    ) -> tuple[Tool, ...]:
        """Return the tools in the order in which the model sees them; a sub-agent gets only those it may have.

        `work_tools` are the tools for plans, todos and tasks. The tool that expands compactions is always included. The
        tool that reads evicted results is included if eviction is on or the `window` has evicted results.
        """
        allowed_tools = [tool for tool in [*self.list_inheritable(), *self._session_tools()] if self._is_allowed(tool)]
        names = {tool.spec.name for tool in allowed_tools}
        for name in sorted({*self._opt_in_names} - names):
            _LOG.warning("The tool `%s` is not there: the store of this session lacks what it needs.", name)
        reader_tools = [tool for tool in self._result_reader_tools(window) if tool.spec.name not in names]
        return (*allowed_tools, *self._expand_tools(compactions), *reader_tools, *work_tools)

    def list_inheritable(self) -> list[Tool]:
        """Return the tools that a sub-agent can get: all except those that belong to one session."""
        return [*self._options.tools, *self._memory_tools(), *self._opt_in_tools(), *self._file_tools()]

    def inheritable_names(self) -> frozenset[str]:
        """Return the names that a sub-agent's tools may have."""
        return (
            frozenset(tool.spec.name for tool in self.list_inheritable())
            | MEMORY_TOOLS
            | SESSION_TOOLS
            | {*OPT_IN_TOOLS}
        )

    @property
    def _own_names(self) -> frozenset[str]:
        return frozenset(tool.spec.name for tool in self._options.tools)

    def _is_allowed(self, tool: Tool) -> bool:
        parent = self._options.parent
        return parent is None or parent.has_tool(tool.spec.name)

    def _memory_tools(self) -> Sequence[Tool]:
        is_asked = self._options.builtin_tools.memory or self._inherits_any(MEMORY_TOOLS)
        if self._memory.status == "off" or not is_asked:
            return ()
        place = self._place if self._memory.is_own else None
        return memory_tools(
            self._memory.store if self._memory.is_active else None,
            place.files if place else None,
            shared=self._shared_files.files if self._shared_files else None,
            clock=self.resources.parts.clock,
            redactor=place.redactor if place else None,
        )

    @property
    def _shared_files(self) -> SharedFiles | None:
        """The files that the project shares, if the user has a separate place."""
        shared = self.resources.workspace.shared if self.resources.workspace else None
        return SharedFiles(files=shared, root=self.resources.root) if shared else None

    @property
    def _opt_in_names(self) -> list[str]:
        """The names of the enabled opt-in tools, except those replaced by a tool of the program with the same name."""
        if not self._memory.is_active:
            return []
        opt_in = self._options.builtin_tools.opt_in or ()
        requested = [
            name
            for name in OPT_IN_TOOLS
            if (self._options.builtin_tools.memory and name in opt_in) or self._inherits_any({name})
        ]
        return [name for name in requested if name not in self._own_names]

    def _opt_in_tools(self) -> Sequence[Tool]:
        """Return the enabled opt-in tools that the store and the root support."""
        store, place = self._memory.store, self._place
        tools: list[Tool] = []
        for name in self._opt_in_names:
            if name == "forget" and store.offers(Lists) is not None and store.offers(Forgets) is not None:
                tools.append(forget_tool(store, approve=self._options.approve))
            if name == "memory" and place is not None:
                changes = place.changes if self.resources.is_writable else None
                tools.append(memory_files_tool(place.files, changes, redactor=place.redactor, root=Path(place.folder)))
        return tools

    def _inherits_any(self, tools: AbstractSet[str]) -> bool:
        """Return whether a sub-agent gets one of these tools, whatever its parent has."""
        parent = self._options.parent
        return parent is not None and any(map(parent.has_tool, tools - self._own_names))

    def _session_tools(self) -> Sequence[Tool]:
        options, place = self._options, self._place
        if place is None or not (options.builtin_tools.sessions or self._inherits_any(SESSION_TOOLS)):
            return ()
        return session_tools(self._visible_files(place), agent=options.agent, user=options.user, expand=True)

    def _expand_tools(self, compactions: Compactions) -> Sequence[Tool]:
        """Return the tool that expands reductions; a person can ask for it in any configuration.

        Messages of other sessions are available only with the session tools.
        """
        place = self._place
        if place is None:
            return (expand_tool(compactions.expand, agent=self._options.agent, user=self._options.user),)

        async def expand(handle: str) -> ExpandedMessages:
            expanded, forgotten = await compactions.expand(handle), await place.read_forgotten()
            messages = tuple(forgotten.mask_message(message, self.session) for message in expanded.messages)
            return replace(expanded, messages=messages)

        files = self._visible_files(place) if self._options.builtin_tools.sessions else None
        return (expand_tool(expand, files, agent=self._options.agent, user=self._options.user),)

    def _file_tools(self) -> Sequence[Tool]:
        builtin_tools, approve = self._options.builtin_tools, self._options.approve
        if not (builtin_tools.files or builtin_tools.shell):
            return ()
        if self._options.memory.incognito:
            return self._incognito_file_tools()
        place, consolidation = self._place, self.resources.parts.settings.consolidation
        if place is None:
            return ()
        return file_tools(
            self._visible_files(place),
            working_directory_files(self.resources.folder, self.resources.root, self.resources.parts, place.files),
            changes=place.changes,
            approve=approve,
            folder=self.resources.folder,
            redactor=place.redactor,
            root=Path(place.folder),
            closed_folder=self.resources.root,
            shared=self._shared_files,
            shell=builtin_tools.shell,
            tasks=self.tasks,
            bounds=consolidation.bounds if consolidation else None,
        )

    def _incognito_file_tools(self) -> Sequence[Tool]:
        """Return the file tools of an incognito session: they can't access the root, and their workspace is empty.

        The locks of the folder are in the cache, so that nothing is written into the root.
        """
        root, folder, parts = self.resources.root, self.resources.folder, self.resources.parts
        working = working_directory_files(folder, cache_folder(parts.settings.cache, root), parts)
        approve, shell = self._options.approve, self._options.builtin_tools.shell
        return file_tools(
            scratch_files(), working, approve=approve, folder=folder, root=root, shell=shell, tasks=self.tasks
        )

    def _visible_files(self, place: MemoryRoot) -> FileStore:
        """Return the files of a root as the model may read them."""
        return MaskedFiles(place.files, place.key)

    def _result_reader_tools(self, window: Sequence[Message]) -> Sequence[Tool]:
        """Return the tools that read results evicted in this session, if there are no other file tools."""
        config = self.reductions.get("tool_result_eviction")
        workspace, place = self.resources.workspace, self._place
        is_on = any(map(evicted_parts, window)) or (config and self.resources.is_writable)
        if workspace is None or place is None or not is_on:
            return ()
        config = config or ToolResultEvictionConfig()
        folder = f"{config.eviction_path.strip('/')}/{encode_folder_name(self.session)}"
        roots = FileRoots(place.files, root=workspace.folder, below=folder)
        reader = read_file_tool(roots, place.redactor, name=reader_name(self._options.tools))
        return (reader, grep_files_tool(roots, place.redactor))
