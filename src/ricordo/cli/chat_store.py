"""What another store than the root's own holds, as `/memory` of a chat shows it and takes memories out of it.

Invariant: what can't be listed is shown as the prompt has it, so an empty answer means an empty store.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

from ricordo.cli.chat_commands import SlashCommand
from ricordo.cli.render import format_age, bold, dim, escape, wrap
from ricordo.errors import EntryNotFound, InvalidInput
from ricordo.guard import parse_fence
from ricordo.stores import Forgets, Lists
from ricordo.stores.remaining import remaining

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ricordo.agent import HarnessAgent
    from ricordo.tools import Approval
    from ricordo.workspace.entry import Entry

__all__ = ["NO_UNDO_MESSAGE", "run_memory_command"]

NO_UNDO_MESSAGE = (
    "This chat remembers in another store, which takes nothing back: /memory forget ID takes a memory out of it. "
    "/undo CHANGE takes back a change of the root."
)
"""What `/undo` says: the newest write of the root is none of this chat's memories."""

_MAX_LISTED = 100
_MAX_FOUND = 10
_MAX_MEMORY_CHARS = 300
_MEMORY_USAGE = "over this store /memory takes list, show ID, search QUERY or forget ID, and no options"


async def run_memory_command(
    agent: "HarnessAgent", slash: SlashCommand, approve: "Callable[[Approval], Awaitable[bool]] | None"
) -> list[str]:
    """Carry out `/memory` on the store of `agent` and return what is said of it; `approve` asks before one goes.

    Raises `RicordoError`.
    """
    act, _, rest = slash.rest.partition(" ")
    match act, rest.strip():
        case (("" | "list"), ""):
            return await _list_memories(agent)
        case "search", query if query:
            hits = await agent.store.recall(query, _MAX_FOUND)
            return [line for hit in hits for line in _format_memory(hit.entry)] or ["Nothing found."]
        case "show", wanted if wanted:
            entry = await _find_memory(agent, wanted)
            return [*_format_memory(entry)[:1], wrap(entry.content, "  ")]
        case "forget", wanted if wanted:
            return [await _forget_memory(agent, wanted, approve)]
    raise InvalidInput(f"{_MEMORY_USAGE}.")


async def _list_memories(agent: "HarnessAgent") -> list[str]:
    lists = agent.store.offers(Lists)
    if lists is None:
        return [wrap(text) for text in parse_fence(await agent.store.preamble()) or ()] or ["Nothing is remembered."]
    entries = await lists.entries()
    more = [dim(f"… and {len(entries) - _MAX_LISTED:,} more")] if len(entries) > _MAX_LISTED else []
    return [*(line for entry in entries[:_MAX_LISTED] for line in _format_memory(entry)), *more] or [
        "Nothing is remembered."
    ]


async def _find_memory(agent: "HarnessAgent", wanted: str) -> "Entry":
    from ricordo.audit import resolve_id

    lists = agent.store.offers(Lists)
    if lists is None:
        raise InvalidInput("This store can't list its memories, so none can be named.")
    entries = {entry.id: entry for entry in await lists.entries()}
    try:
        with suppress(EntryNotFound):
            return entries[resolve_id([*entries], wanted)]
        # the store knows whether it was forgotten
        return await lists.get(wanted)
    except EntryNotFound as error:
        raise EntryNotFound(str(error).replace("`ricordo memory list`", "`/memory list`")) from error


async def _forget_memory(
    agent: "HarnessAgent", wanted: str, approve: "Callable[[Approval], Awaitable[bool]] | None"
) -> str:
    from ricordo.tools import Approval

    entry, forgets = await _find_memory(agent, wanted), agent.store.offers(Forgets)
    if forgets is None:
        raise InvalidInput("This store can't forget.")
    change = f"- {entry.content}\n"
    if approve and not await approve(Approval(tool="forget", act="forget", target=entry.id, change=change)):
        return "Nothing was forgotten."
    try:
        gone = await forgets.forget(entry.id, who="user")
    except EntryNotFound:
        return "It was forgotten already."
    told = [f"Forgot {escape(gone.id)}."]
    for one in await remaining(agent.store, gone):
        told += [wrap(f"Still said, or nearly: {one.text}", "  "), dim(f"    /memory forget {escape(one.id)}")]
    return "\n".join(told)


def _format_memory(entry: "Entry") -> list[str]:
    tags = "".join(f" #{tag}" for tag in entry.tags)
    facts = [bold(escape(entry.id)), escape(entry.kind), format_age(entry.time), escape(entry.by)]
    text = (
        entry.content
        if len(entry.content) <= _MAX_MEMORY_CHARS
        else f"{entry.content[: _MAX_MEMORY_CHARS - 1].rstrip()}…"
    )
    return ["  ".join(filter(None, facts)), wrap(f"{text}{tags}", "  ")]
