"""Ricordo: memory that lasts, and a context window that never overflows, for LLM agents."""

from ricordo.errors import RicordoError
from ricordo.memory import Memory
from ricordo.messages import Message
from ricordo.scopes import Scope
from ricordo.workspace.entry import Entry

__all__ = ["Entry", "Memory", "Message", "RicordoError", "Scope", "__version__"]

__version__ = "0.1.0"
