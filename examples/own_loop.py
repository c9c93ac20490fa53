"""A loop of its own around OpenAI's SDK, with a memory. Run it twice: the second run remembers the first.

Run `pip install '.[models]'` in the source folder of Ricordo, set OPENAI_API_KEY, then run
`python examples/own_loop.py "What can I cook tonight?"`.
"""

import asyncio
import sys
from typing import Any

from openai import AsyncOpenAI

from ricordo import Scope
from ricordo.adapters.clients import SessionMemory


async def main(question: str) -> None:
    """Ask one question in the session `cooking` of Ann, and run the tools that the model calls."""
    async with SessionMemory("cooking", scope=Scope(project="kitchen", user="ann"), memory_tools=True) as memory:
        client = memory.wrap(AsyncOpenAI())
        tools = {tool.spec.name: tool for tool in await memory.conversation.tools()}
        offered: list[Any] = [{"type": "function", "function": vars_of(tool)} for tool in tools.values()]
        new: list[Any] = [{"role": "user", "content": question}]
        while new:
            reply = (
                (await client.chat.completions.create(model="gpt-5", messages=new, tools=offered)).choices[0].message
            )
            # the session has what was said before, so only results are passed
            new = [
                {
                    "role": "tool",
                    "tool_call_id": call.id,
                    "content": await memory.conversation.run_tool(
                        tools[call.function.name], call.function.arguments, call_id=call.id
                    ),
                }
                for call in reply.tool_calls or ()
            ]
        print(reply.content)


def vars_of(tool: Any) -> dict[str, Any]:
    """Return what the model is told of a tool."""
    return {"name": tool.spec.name, "description": tool.spec.description, "parameters": dict(tool.spec.parameters)}


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "I never eat nuts. What can I cook tonight?"))
