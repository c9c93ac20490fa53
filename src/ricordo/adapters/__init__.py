"""Adapters: what is here behind the interfaces of other libraries, each its own module with its own extra.

A name of an adapter is loaded at its first use, with the library that it is for. Raises: ExtraMissing without that.
"""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.adapters.claude_agent_sdk import RicordoSessionStore
    from ricordo.adapters.clients import SessionMemory
    from ricordo.adapters.core import Conversation, GivenContext
    from ricordo.adapters.langchain import RicordoMiddleware
    from ricordo.adapters.langgraph import RicordoStore
    from ricordo.adapters.openai_agents import RicordoSession
    from ricordo.adapters.pydantic_ai import RicordoCapability

__all__ = [
    "Conversation",
    "GivenContext",
    "RicordoCapability",
    "RicordoMiddleware",
    "RicordoSession",
    "RicordoSessionStore",
    "RicordoStore",
    "SessionMemory",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".claude_agent_sdk": "RicordoSessionStore",
        ".clients": "SessionMemory",
        ".core": "Conversation GivenContext",
        ".langchain": "RicordoMiddleware",
        ".langgraph": "RicordoStore",
        ".openai_agents": "RicordoSession",
        ".pydantic_ai": "RicordoCapability",
    },
)
