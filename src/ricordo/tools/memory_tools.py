"""The memory tools as one set, for any agent: they need a store and the files of its root, and no harness."""

from ricordo.clock import Clock
from ricordo.files import FileStore
from ricordo.guard import Redactor
from ricordo.stores import Store
from ricordo.tokens import Tokens
from ricordo.tools.contract import Tool
from ricordo.tools.memory_get import memory_get_tool
from ricordo.tools.memory_search import memory_search_tool
from ricordo.tools.recall import DEFAULT_BUDGET, recall_tool
from ricordo.tools.remember import remember_tool

__all__ = ["OPT_IN_TOOLS", "memory_tools"]

OPT_IN_TOOLS = ("forget", "memory")
"""The names of the tools that are not in the set: `forget_tool` and `memory_files_tool` make them."""


def memory_tools(
    store: Store | None,
    files: FileStore | None,
    *,
    shared: FileStore | None = None,
    budget: Tokens = DEFAULT_BUDGET,
    clock: Clock | None = None,
    redactor: Redactor | None = None,
) -> tuple[Tool, ...]:
    """Return remember, recall and memory_search over `store`, and memory_get where the root has `files`.

    Without a store there is no memory_search, and the other two answer that memory is off, and that nothing matches.
    `shared` are the files of the root that a project shares, where `files` are those of one of its users. `budget` is
    what one result of recall or memory_search takes at most. `redactor` is the root's own; without it the marks of
    secrets that people wrote into the files can't be compared with others.
    """
    saving: tuple[Tool, ...] = (remember_tool(store), recall_tool(store, budget=budget, clock=clock))
    finding = () if store is None else (memory_search_tool(store, budget=budget, clock=clock),)
    reading = () if files is None else (memory_get_tool(files, store, shared=shared, redactor=redactor),)
    return (*saving, *finding, *reading)
