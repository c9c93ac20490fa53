"""pydantic-ai: a capability that remembers, and sends the model a window that never overflows (extra `models`)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from ricordo.adapters.core import Adapter, Conversation, ConversationOptions, framework_missing
from ricordo.agent import Tool as RicordoTool
from ricordo.messages import Message
from ricordo.messages.formats.pydantic_ai import from_pydantic_ai, to_pydantic_ai

try:
    from pydantic_ai import RunContext
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import (
        InstructionPart,
        ModelMessage,
        ModelMessagesTypeAdapter,
        ModelRequest,
        SystemPromptPart,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import Tool
    from pydantic_ai.toolsets import FunctionToolset
except ImportError as error:
    raise framework_missing("pydantic-ai", "models") from error

__all__ = ["RicordoCapability"]


class RicordoCapability(Adapter, AbstractCapability[Any]):
    """A capability for one session: `Agent(model, capabilities=[memory])` in its `async with` block.

    In a `with` block it is for `run_sync`.
    """

    def __init__(self, session: str, **options: Unpack[ConversationOptions]) -> None:
        """Store the options, which are those of `Conversation`. Raises: what `Conversation` raises."""
        super().__init__(Conversation(session, **options))

    def get_toolset(self) -> Any:
        """Return the tools of the model: `expand`, which opens what a compaction removed, and others."""

        async def list_tools(context: RunContext[Any]) -> FunctionToolset[Any]:
            del context
            return FunctionToolset([self._wrap_tool(tool) for tool in await self.run(self.conversation.tools)])

        return list_tools

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Record what is new in the run."""
        await self.run(partial(self._take_in, ctx.messages))
        return request_context

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Send the window of the session with its memory in the place of the messages; it is not kept in the run."""
        del ctx
        return await self.run(partial(self._prepare, request_context))

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Record the end of the run."""
        del ctx
        await self.run(partial(self._take_in, result.all_messages()))
        return result

    async def _prepare(self, request: ModelRequestContext) -> ModelRequestContext:
        parts = [part for each in request.messages if isinstance(each, ModelRequest) for part in each.parts]
        newest = next((part for part in reversed(parts) if isinstance(part, UserPromptPart)), None)
        asked = [] if newest is None else _read([ModelRequest(parts=[newest])])
        given = await self.conversation.give(asked)
        prompts = [part for part in parts if isinstance(part, SystemPromptPart)]
        parameters = request.model_request_parameters
        if given.memory:
            instructions = [*(parameters.instruction_parts or ()), InstructionPart(content=given.memory, dynamic=True)]
            parameters = replace(parameters, instruction_parts=instructions)
        return replace(
            request,
            messages=[
                *([ModelRequest(parts=prompts)] if prompts else []),
                *ModelMessagesTypeAdapter.validate_python(to_pydantic_ai(given.window)),
                *([ModelRequest(parts=[UserPromptPart(given.recalled)])] if given.recalled else []),
            ],
            model_request_parameters=parameters,
        )

    async def _take_in(self, messages: Sequence[ModelMessage]) -> None:
        """Record messages, each under an id made of its run and its place in it; system prompts are not part of it."""
        counts: dict[str, int] = {}
        new: list[Message] = []
        for message in messages:
            run = message.run_id or "history"
            place = counts[run] = counts.get(run, -1) + 1
            new += [
                replace(each, id=f"{run}-{place}-{index}")
                for index, each in enumerate(_read([message]))
                if each.role != "system"
            ]
        await self.conversation.take_in(new)

    def _wrap_tool(self, tool: RicordoTool) -> Tool[Any]:
        async def run(context: RunContext[Any], **arguments: Any) -> str:
            call = partial(self.conversation.run_tool, tool, arguments, call_id=context.tool_call_id or "pydantic-ai")
            return await self.run(call)

        spec = tool.spec
        return Tool.from_schema(
            run, name=spec.name, description=spec.description, json_schema=dict(spec.parameters), takes_ctx=True
        )


def _read(messages: Sequence[ModelMessage]) -> list[Message]:
    return from_pydantic_ai(ModelMessagesTypeAdapter.dump_python([*messages], mode="json"))
