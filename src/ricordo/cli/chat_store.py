"""What another store than the root's own holds, as `/memory` of a chat shows it and takes memories out of it.

Invariant: what can't be listed is shown as the prompt has it, so an empty answer means an empty store.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

from ricordo.cli.chat_commands import Slash
from ricordo.cli.render import age, bold, dim, shown, wrapped
from ricordo.errors import EntryNotFound, InvalidInput
from ricordo.guard import unfence
from ricordo.stores import Forgets, Lists
from ricordo.stores.remaining import remaining

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ricordo.agent import HarnessAgent
    from ricordo.tools import Approval
    from ricordo.workspace.entry import Entry

__all__ = ["NOTHING_TAKEN_BACK", "remembered"]

NOTHING_TAKEN_BACK = (
    "This chat remembers in another store, which takes nothing back: /memory forget ID takes a memory out of it. "
    "/undo CHANGE takes back a change of the root."
)
"""What `/undo` says: the newest write of the root is none of this chat's memories."""

_MOST = 100
_FOUND = 10
_LONGEST = 300
_FORM = "over this store /memory takes list, show ID, search QUERY or forget ID, and no options"


async def remembered(
    agent: "HarnessAgent", slash: Slash, approve: "Callable[[Approval], Awaitable[bool]] | None"
) -> list[str]:
    """Carry out `/memory` on the store of `agent` and return what is said of it; `approve` asks before one goes.

    Raises `RicordoError`.
    """
    act, _, rest = slash.rest.partition(" ")
    match act, rest.strip():
        case (("" | "list"), ""):
            return await _listed(agent)
        case "search", query if query:
            hits = await agent.store.recall(query, _FOUND)
            return [line for hit in hits for line in _row(hit.entry)] or ["Nothing found."]
        case "show", wanted if wanted:
            entry = await _chosen(agent, wanted)
            return [*_row(entry)[:1], wrapped(entry.content, "  ")]
        case "forget", wanted if wanted:
            return [await _forgotten(agent, wanted, approve)]
    raise InvalidInput(f"{_FORM}.")


async def _listed(agent: "HarnessAgent") -> list[str]:
    lists = agent.store.offers(Lists)
    if lists is None:
        return [wrapped(text) for text in unfence(await agent.store.preamble()) or ()] or ["Nothing is remembered."]
    entries = await lists.entries()
    more = [dim(f"… and {len(entries) - _MOST:,} more")] if len(entries) > _MOST else []
    return [*(line for entry in entries[:_MOST] for line in _row(entry)), *more] or ["Nothing is remembered."]


async def _chosen(agent: "HarnessAgent", wanted: str) -> "Entry":
    from ricordo.audit import chosen_id

    lists = agent.store.offers(Lists)
    if lists is None:
        raise InvalidInput("This store can't list its memories, so none can be named.")
    entries = {entry.id: entry for entry in await lists.entries()}
    try:
        with suppress(EntryNotFound):
            return entries[chosen_id([*entries], wanted)]
        # the store knows whether it was forgotten
        return await lists.get(wanted)
    except EntryNotFound as error:
        raise EntryNotFound(str(error).replace("`ricordo memory list`", "`/memory list`")) from error


async def _forgotten(
    agent: "HarnessAgent", wanted: str, approve: "Callable[[Approval], Awaitable[bool]] | None"
) -> str:
    from ricordo.tools import Approval

    entry, forgets = await _chosen(agent, wanted), agent.store.offers(Forgets)
    if forgets is None:
        raise InvalidInput("This store can't forget.")
    change = f"- {entry.content}\n"
    if approve and not await approve(Approval(tool="forget", act="forget", target=entry.id, change=change)):
        return "Nothing was forgotten."
    try:
        gone = await forgets.forget(entry.id, who="user")
    except EntryNotFound:
        return "It was forgotten already."
    told = [f"Forgot {shown(gone.id)}."]
    for one in await remaining(agent.store, gone):
        told += [wrapped(f"Still said, or nearly: {one.text}", "  "), dim(f"    /memory forget {shown(one.id)}")]
    return "\n".join(told)


def _row(entry: "Entry") -> list[str]:
    tags = "".join(f" #{tag}" for tag in entry.tags)
    facts = [bold(shown(entry.id)), shown(entry.kind), age(entry.time), shown(entry.by)]
    text = entry.content if len(entry.content) <= _LONGEST else f"{entry.content[: _LONGEST - 1].rstrip()}…"
    return ["  ".join(filter(None, facts)), wrapped(f"{text}{tags}", "  ")]
