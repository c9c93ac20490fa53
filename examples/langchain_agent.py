"""An agent of LangChain with a memory. Run it twice: the second run remembers the first.

Run `pip install '.[langchain]' langchain-openai` in the source folder of Ricordo, set OPENAI_API_KEY, then run
`python examples/langchain_agent.py "What can I cook tonight?"`.
"""

import sys

from langchain.agents import create_agent

from ricordo import Scope
from ricordo.adapters.langchain import RicordoMiddleware


def main(question: str) -> None:
    """Ask one question in the session `cooking` of Ann."""
    with RicordoMiddleware("cooking", scope=Scope(project="kitchen", user="ann"), memory_tools=True) as memory:
        agent = create_agent("openai:gpt-5", system_prompt="Answer in one sentence.", middleware=[memory])
        result = agent.invoke({"messages": [{"role": "user", "content": question}]})
        print(result["messages"][-1].text)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "I never eat nuts. What can I cook tonight?")
