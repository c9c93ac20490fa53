"""What the server serves: one open memory with the files of its places."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

from ricordo.lazy import dataclass

if TYPE_CHECKING:
    from ricordo.guard import Redactor
    from ricordo.runtime.memory import Memory
    from ricordo.storage import FileStore
    from ricordo.workspace.session_search import PastSessions

__all__ = ["DEFAULT_BUDGET", "MemoryOpener", "ServedMemory"]


DEFAULT_BUDGET = 2_000
"""The default budget of one result, in tokens."""


@dataclass(frozen=True, kw_only=True)
class ServedMemory:
    """An open memory. `files` are those of the user's place, `shared` those that the project shares, if it does.

    `sessions` are those that the user may see. `redactor` replaces secrets that people wrote into the files. A result
    has at most `budget` tokens.
    """

    memory: "Memory"
    files: "FileStore"
    redactor: "Redactor"
    sessions: "PastSessions"
    shared: "FileStore | None" = None
    budget: int = DEFAULT_BUDGET


class MemoryOpener(Protocol):
    """Opens the memory that is served. The scope is fixed when the server starts."""

    def __call__(self, *, create: bool) -> Awaitable[ServedMemory]:
        """Open the memory; a root that is not there is created with `create`, else it raises `RootNotFound`."""
        ...
