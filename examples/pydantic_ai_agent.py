"""An agent of pydantic-ai with a memory. Run it twice: the second run remembers the first.

Run `pip install '.[models]'` in the source folder of Ricordo, set OPENAI_API_KEY, then run
`python examples/pydantic_ai_agent.py "What can I cook tonight?"`.
"""

import asyncio
import sys

from pydantic_ai import Agent

from ricordo import Scope
from ricordo.adapters.pydantic_ai import RicordoCapability


async def main(question: str) -> None:
    """Ask one question in the session `cooking` of Ann."""
    async with RicordoCapability("cooking", scope=Scope(project="kitchen", user="ann"), memory_tools=True) as memory:
        agent = Agent("openai-chat:gpt-5", instructions="Answer in one sentence.", capabilities=[memory])
        print((await agent.run(question)).output)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "I never eat nuts. What can I cook tonight?"))
