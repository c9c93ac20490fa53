"""The OpenAI Agents SDK: a `Session` whose history never overflows, and a filter that adds memory (extra
`openai-agents`).
"""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Unpack, cast

from ricordo.adapters.core import Adapter, Conversation, ConversationOptions, framework_missing
from ricordo.agent import Tool
from ricordo.messages import Message, Text
from ricordo.messages.formats.openai_responses import from_openai_responses, to_openai_responses

if TYPE_CHECKING:
    from agents import FunctionTool, SessionSettings, TResponseInputItem
    from agents.memory import OpenAIResponsesCompactionArgs
    from agents.run import CallModelData, ModelInputData
    from agents.tool_context import ToolContext as SdkToolContext

__all__ = ["RicordoSession"]


class RicordoSession(Adapter):
    """A session of the OpenAI Agents SDK: `Runner.run(agent, "...", session=session)`.

    Pass `RunConfig(call_model_input_filter=session.add_memory)` to show the model its memory.
    """

    def __init__(
        self,
        session_id: str,
        *,
        session_settings: "SessionSettings | None" = None,
        **options: Unpack[ConversationOptions],
    ) -> None:
        """Store the options, which are those of `Conversation`; the memory is opened at the first use.

        Raises: ExtraMissing without the SDK; what `Conversation` raises.
        """
        if find_spec("agents") is None:
            raise framework_missing("the OpenAI Agents SDK", "openai-agents")
        super().__init__(Conversation(session_id, **options))
        self.session_id = session_id
        self.session_settings = session_settings

    async def get_items(self, limit: int | None = None) -> "list[TResponseInputItem]":
        """Return the window as input items, oldest first, or its last `limit` items; empty for a new session.

        It is compacted where it has to be, and has no forgotten content.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        items = _to_items((await self.conversation.give()).window)
        return items if limit is None else items[max(0, len(items) - limit) :]

    async def add_items(self, items: "list[TResponseInputItem]") -> None:
        """Record items, which are durable when this returns. Raises: InvalidMessage; StorageError."""
        await self.conversation.take_in(from_openai_responses(cast("Any", items)))

    async def pop_item(self) -> "TResponseInputItem | None":
        """Take the last item out of the window and return it, None if there is none; the transcript keeps it."""
        agent = await self.conversation.agent()
        if not agent.window:
            return None
        last = agent.window[-1]
        before = agent.window
        *rest, popped = _to_items([last])
        await agent.compactions.remove(last.id)
        kept = {message.id for message in agent.window}
        # the window removes a call together with its results, and this message together with its other items
        lost = [message for message in before[:-1] if message.id not in kept]
        await agent.record([*(_copy(each) for each in lost), *from_openai_responses(cast("Any", rest))])
        return popped

    async def clear_session(self) -> None:
        """Continue with an empty window; the transcript and the memory keep what was said."""
        await (await self.conversation.agent()).clear()

    async def run_compaction(self, args: "OpenAIResponsesCompactionArgs | None" = None) -> None:
        """Compact the window if `args` force it; otherwise `get_items` does where it has to be."""
        if args is not None and args.get("force"):
            await self.conversation.compact()

    async def add_memory(self, data: "CallModelData[Any]") -> "ModelInputData":
        """Return the input of a request with memory: use it as `call_model_input_filter` of a `RunConfig`.

        Memory that lasts for the session follows the instructions; what is recalled for the newest message of the user
        follows the input. Neither is recorded.
        """
        from agents.run import ModelInputData

        items = data.model_data.input
        newest = next((item for item in reversed(items) if cast("Any", item).get("role") == "user"), None)
        asked = [] if newest is None else from_openai_responses([cast("Any", newest)])
        given = await self.conversation.give(asked)
        recalled = [Message(role="user", parts=(Text(text=given.recalled),))] if given.recalled else []
        instructions = "\n\n".join(filter(None, (data.model_data.instructions, given.memory)))
        return ModelInputData(input=[*items, *_to_items(recalled)], instructions=instructions or None)

    async def tools(self) -> "list[FunctionTool]":
        """Return the tools for `Agent(tools=...)`: `expand`, which opens what a compaction removed, and others."""
        return [self._wrap_tool(tool) for tool in await self.conversation.tools()]

    def _wrap_tool(self, tool: Tool) -> "FunctionTool":
        from agents import FunctionTool

        async def invoke(context: "SdkToolContext[Any]", arguments: str) -> str:
            return await self.conversation.run_tool(tool, arguments, call_id=context.tool_call_id)

        spec = tool.spec
        return FunctionTool(
            name=spec.name,
            description=spec.description,
            params_json_schema=dict(spec.parameters),
            on_invoke_tool=invoke,
            strict_json_schema=False,
        )


def _to_items(messages: Sequence[Message]) -> "list[TResponseInputItem]":
    return cast("list[TResponseInputItem]", to_openai_responses(messages))


def _copy(message: Message) -> Message:
    return Message(role=message.role, parts=message.parts, metadata=message.metadata)
