"""An agent of the Claude Agent SDK with a memory. Run it twice: the second run resumes the session of the first.

Run `pip install '.[claude-agent-sdk]'` in the source folder of Ricordo, set ANTHROPIC_API_KEY, then run
`python examples/claude_agent.py "What can I cook tonight?"`.
"""

import asyncio
import sys

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

from ricordo import Scope
from ricordo.adapters.claude_agent_sdk import RicordoSessionStore


async def main(question: str) -> None:
    """Ask one question in the newest session of Ann in this folder."""
    async with RicordoSessionStore(scope=Scope(project="kitchen", user="ann")) as store:
        options = ClaudeAgentOptions(session_store=store, hooks=store.hooks(), continue_conversation=True)
        async for message in query(prompt=question, options=options):
            if isinstance(message, ResultMessage):
                print(message.result)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "I never eat nuts. What can I cook tonight?"))
