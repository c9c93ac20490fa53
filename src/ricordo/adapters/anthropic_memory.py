"""The memory tool for Anthropic's SDK: its abstract classes, over our tool of six commands (extra `models`).

Every command goes through `memory_files_tool`, so its arguments are checked, its changes are change sets, and its
errors reach the model as error results.
"""

from typing import Protocol, Unpack
from uuid import uuid4

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types.beta import (
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)
from anyio.from_thread import BlockingPortal

from ricordo.adapters.core import Adapter, Conversation, ConversationOptions
from ricordo.agent.tools import Tool, ToolContext
from ricordo.errors import MemoryClosed, ToolFailed
from ricordo.messages import JsonValue

__all__ = ["AnthropicMemory", "AnthropicMemoryTool", "BlockingAnthropicMemoryTool"]


class _Command(Protocol):
    def model_dump(self, *, mode: str, exclude_unset: bool, warnings: bool) -> dict[str, JsonValue]: ...


class AnthropicMemoryTool(BetaAsyncAbstractMemoryTool):
    """The tool for `AsyncAnthropic().beta.messages.tool_runner(...)`."""

    def __init__(self, memory: Tool, context: ToolContext) -> None:
        """Use `memory`, which `memory_files_tool` made; `context` says whose calls these are."""
        super().__init__()
        self._memory = memory
        self._context = context

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Return a file with line numbers, or the names in a folder."""
        return await _run_tool(self._memory, command, self._context)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Write a new file."""
        return await _run_tool(self._memory, command, self._context)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once."""
        return await _run_tool(self._memory, command, self._context)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Put lines after a line."""
        return await _run_tool(self._memory, command, self._context)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file or a folder."""
        return await _run_tool(self._memory, command, self._context)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file or a folder."""
        return await _run_tool(self._memory, command, self._context)


class BlockingAnthropicMemoryTool(BetaAbstractMemoryTool):
    """The tool for `Anthropic().beta.messages.tool_runner(...)`, in a program that does not await."""

    def __init__(self, memory: Tool, context: ToolContext, portal: BlockingPortal) -> None:
        """Do the same on the event loop of `portal`, on which the root was opened."""
        super().__init__()
        self._memory = memory
        self._context = context
        self._portal = portal

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Return a file with line numbers, or the names in a folder."""
        return self._portal.call(_run_tool, self._memory, command, self._context)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Write a new file."""
        return self._portal.call(_run_tool, self._memory, command, self._context)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once."""
        return self._portal.call(_run_tool, self._memory, command, self._context)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Put lines after a line."""
        return self._portal.call(_run_tool, self._memory, command, self._context)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file or a folder."""
        return self._portal.call(_run_tool, self._memory, command, self._context)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file or a folder."""
        return self._portal.call(_run_tool, self._memory, command, self._context)


class AnthropicMemory(Adapter):
    """The notes of one scope for the memory tool. Use it as `async with` for `AsyncAnthropic`, else as `with`."""

    def __init__(self, **options: Unpack[ConversationOptions]) -> None:
        """Store the options, which are those of `Conversation`. Raises: what `Conversation` raises."""
        options["memory_tools"] = True
        super().__init__(Conversation(f"memory-tool-{uuid4().hex}", opt_in=("memory",), **options))
        self._tool: tuple[Tool, ToolContext] | None = None

    async def open(self) -> None:
        """Open the memory."""
        agent = await self.conversation.agent()
        context = ToolContext(call_id="memory", scope=agent.scope, agent=agent.state.agent, session=agent.session)
        self._tool = next(tool for tool in agent.tools if tool.spec.name == "memory"), context

    @property
    def tool(self) -> AnthropicMemoryTool:
        """The tool for a client that awaits. Raises: MemoryClosed outside of the block."""
        return AnthropicMemoryTool(*self._opened())

    @property
    def blocking_tool(self) -> BlockingAnthropicMemoryTool:
        """The tool for a client that blocks. Raises: MemoryClosed outside of the block."""
        memory, context = self._opened()
        assert self._portal is not None
        return BlockingAnthropicMemoryTool(memory, context, self._portal)

    def _opened(self) -> tuple[Tool, ToolContext]:
        if self._tool is None or self._portal is None:
            raise MemoryClosed("The notes are closed: use them in their `with` or `async with` block.")
        return self._tool


async def _run_tool(memory: Tool, command: _Command, context: ToolContext) -> str:
    """Return what the tool told. Raises `ToolError`, of which the SDK makes an error result."""
    # the SDK checks nothing of what a model wrote: what it left out is not set, and values may have any type
    arguments = command.model_dump(mode="json", exclude_unset=True, warnings=False)
    try:
        return str(await memory(arguments, context))
    except ToolFailed as error:
        raise ToolError(str(error)) from error
