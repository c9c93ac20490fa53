"""LangChain: an `AgentMiddleware` that remembers, and sends the model a window that never overflows (extra
`langchain`).
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Unpack, cast

from ricordo.adapters.core import Adapter, Conversation, ConversationOptions, framework_missing
from ricordo.adapters.langchain_messages import from_langchain, to_langchain
from ricordo.agent import Tool
from ricordo.messages import Message

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, SystemMessage, messages_from_dict
    from langchain_core.tools import BaseTool, StructuredTool
    from langgraph.runtime import Runtime
except ImportError as error:
    raise framework_missing("LangChain", "langchain") from error

__all__ = ["RicordoMiddleware"]


class RicordoMiddleware(Adapter, AgentMiddleware):
    """A middleware for one session: `create_agent(model, tools, middleware=[memory])` in its `with` block.

    Put it first in the list, so that it records what the others made of a reply.
    """

    def __init__(self, session: str, **options: Unpack[ConversationOptions]) -> None:
        """Store the options, which are those of `Conversation`. Raises: what `Conversation` raises."""
        super().__init__(Conversation(session, **options))
        self.tools: Sequence[BaseTool] = ()
        self._taken: set[str] = set()

    async def open(self) -> None:
        """Open the session; `tools` are those of the model from then on."""
        await super().open()
        self.tools = [self._wrap_tool(tool) for tool in await self.conversation.tools()]

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        """Record what is new, and send the window of the session with its memory in the place of the messages."""
        return await handler(await self.run(partial(self._prepare, request)))

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
        """Do the same without awaiting."""
        return handler(self.run_blocking(partial(self._prepare, request)))

    async def aafter_model(self, state: AgentState, runtime: Runtime) -> None:
        """Record the reply, which is in the state of the agent by now: a retried call is recorded once."""
        del runtime
        await self.run(partial(self._take_in, state["messages"]))

    def after_model(self, state: AgentState, runtime: Runtime) -> None:
        """Do the same without awaiting."""
        del runtime
        self.run_blocking(partial(self._take_in, state["messages"]))

    async def aafter_agent(self, state: AgentState, runtime: Runtime) -> None:
        """Record what follows the last reply, such as the results of a tool that ends the turn."""
        del runtime
        await self.run(partial(self._take_in, state["messages"]))

    def after_agent(self, state: AgentState, runtime: Runtime) -> None:
        """Do the same without awaiting."""
        del runtime
        self.run_blocking(partial(self._take_in, state["messages"]))

    async def _prepare(self, request: ModelRequest) -> ModelRequest:
        await self._take_in(request.messages)
        newest = next((each for each in reversed(request.messages) if each.type == "human"), None)
        given = await self.conversation.give([] if newest is None else _read([newest]))
        recalled = [HumanMessage(given.recalled)] if given.recalled else []
        return request.override(
            system_message=_add_memory(request.system_message, given.memory),
            messages=[*_write(given.window), *recalled],
        )

    async def _take_in(self, messages: Sequence[AnyMessage]) -> None:
        new = [message for message in messages if message.id is None or message.id not in self._taken]
        await self.conversation.take_in(_read(new))
        self._taken.update(message.id for message in new if message.id is not None)

    def _wrap_tool(self, tool: Tool) -> StructuredTool:
        def prepare(arguments: dict[str, Any]) -> Callable[[], Awaitable[str]]:
            return partial(self.conversation.run_tool, tool, arguments, call_id="langchain")

        async def run(**arguments: Any) -> str:
            return await self.run(prepare(arguments))

        def run_blocking(**arguments: Any) -> str:
            return self.run_blocking(prepare(arguments))

        spec = tool.spec
        return StructuredTool(
            name=spec.name,
            description=spec.description,
            args_schema=dict(spec.parameters),
            func=run_blocking,
            coroutine=run,
        )


def _read(messages: Sequence[BaseMessage]) -> list[Message]:
    # an artifact can be any object, and no model sees it
    return from_langchain(
        [
            {"type": each.type, "data": each.model_dump(mode="json", exclude={"artifact"}, fallback=str)}
            for each in messages
        ]
    )


def _write(messages: Sequence[Message]) -> list[AnyMessage]:
    return cast("list[AnyMessage]", messages_from_dict(to_langchain(messages)))


def _add_memory(system: SystemMessage | None, memory: str) -> SystemMessage | None:
    if not memory or system is None:
        return SystemMessage(memory) if memory else system
    if isinstance(system.content, str):
        return SystemMessage(f"{system.content}\n\n{memory}")
    return SystemMessage([*system.content, {"type": "text", "text": memory}])
