"""An agent of LangChain that keeps what it learns in a store of LangGraph. Run it twice: the second run finds it.

Run `pip install '.[langchain,langgraph]' langchain-openai langmem` in the source folder of Ricordo, set
OPENAI_API_KEY, then run `python examples/langgraph_store.py "What can I cook tonight?"`.
"""

import sys

from langchain.agents import create_agent
from langmem import create_manage_memory_tool, create_search_memory_tool

from ricordo import Scope
from ricordo.adapters.langgraph import RicordoStore


def main(question: str) -> None:
    """Ask one question, with LangMem's tools over the memory of Ann."""
    namespace = ("cooking",)
    tools = [create_manage_memory_tool(namespace), create_search_memory_tool(namespace)]
    with RicordoStore(scope=Scope(project="kitchen", user="ann")) as store:
        agent = create_agent("openai:gpt-5", tools, store=store)
        result = agent.invoke({"messages": [{"role": "user", "content": question}]})
        print(result["messages"][-1].text)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "I never eat nuts. What can I cook tonight?")
