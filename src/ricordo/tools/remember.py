"""remember: what the agent saves of its own accord. It writes only through the store, so nobody is asked."""

from typing import Annotated

from ricordo.stores import Lists, Store
from ricordo.tools.contract import Tool, ToolContext
from ricordo.tools.function import tool
from ricordo.workspace.entry import Entry, Source

__all__ = ["remember_tool"]

_ID_SHOWN = 8


def remember_tool(store: Store | None) -> Tool:
    """Return the tool over `store`; where there is none, or one that keeps nothing, it answers that memory is off."""

    async def remember(
        content: Annotated[str, "one statement that is understood without this conversation"],
        context: ToolContext,
        kind: Annotated[str, "fact, decision, preference, lesson, convention or goal"] = "fact",
        tags: Annotated[tuple[str, ...], "a few single words to find it by"] = (),
    ) -> str:
        """Save one thing for later sessions.

        Use it sparingly: for what the user asks to be remembered, and for what will still matter in another session.
        Not for what the files show, for the state of a task, or for secrets.
        """
        if store is None:
            return _MEMORY_OFF
        source = Source(session=context.session or None)
        kept = await store.save(Entry(content=content, kind=kind, tags=tags, by="agent", source=source))
        if not await _holds_entries(store):
            return _MEMORY_OFF
        return f"remembered. Its id ends in {kept.id[-_ID_SHOWN:]}."

    return tool(remember)


_MEMORY_OFF = "Memory is off: nothing was saved."


async def _holds_entries(store: Store) -> bool:
    """Tell whether the store holds anything, which it does after a save: a store that is off takes all and has none."""
    return store.offers(Lists) is not None or bool(await store.recall("", 1))
