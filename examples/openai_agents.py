"""An agent of the OpenAI Agents SDK with a memory. Run it twice: the second run remembers the first.

Run `pip install '.[openai-agents]'` in the source folder of Ricordo, set OPENAI_API_KEY, then run
`python examples/openai_agents.py "What can I cook tonight?"`.
"""

import asyncio
import sys

from agents import Agent, RunConfig, Runner

from ricordo import Scope
from ricordo.adapters.openai_agents import RicordoSession


async def main(question: str) -> None:
    """Ask one question in the session `cooking` of Ann."""
    async with RicordoSession("cooking", scope=Scope(project="kitchen", user="ann"), memory_tools=True) as session:
        agent = Agent(name="Cook", instructions="Answer in one sentence.", tools=[*await session.tools()])
        config = RunConfig(call_model_input_filter=session.add_memory)
        result = await Runner.run(agent, question, session=session, run_config=config)
        print(result.final_output)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "I never eat nuts. What can I cook tonight?"))
