"""forget: one memory out again, when a person approves. It is offered only where somebody asks for it.

Invariant: what is forgotten is exactly one entry, which the person saw.
"""

from collections.abc import Sequence
from typing import Annotated

from ricordo.audit import Remaining, resolve_id
from ricordo.errors import EntryNotFound, InvalidSetting, ToolFailed
from ricordo.stores import Forgets, Lists, Store, Undoes
from ricordo.stores.remaining import remaining
from ricordo.tools.contract import Approval, ApprovalHandler, Tool, ToolContext
from ricordo.tools.function import tool
from ricordo.workspace.entry import Entry

__all__ = ["forget_tool"]

_ID_SHOWN = 8


def forget_tool(store: Store, *, approve: ApprovalHandler | None = None) -> Tool:
    """Return the tool over `store`; `approve` is asked before each memory, and without it only a rule lets one go.

    Raises: InvalidSetting for a store that can't list and forget.
    """
    lists, forgets = store.offers(Lists), store.offers(Forgets)
    if lists is None or forgets is None:
        raise InvalidSetting(
            "This store can't forget: a tool for it needs one that lists its entries and forgets them."
        )
    restorable = " It can be brought back for 30 days." if store.offers(Undoes) else ""

    async def forget(
        entry_id: Annotated[str, "the id of the memory, or its last 6 or more characters, as `recall` tells it"],
        context: ToolContext,
        why: Annotated[str, "why, in a few words"] = "",
    ) -> str:
        """Forget one memory, when the user asks for it or it has proved wrong; a person is asked first.

        Not for tidying up, and not for what has only changed: save what holds now instead.
        """
        entry = await _find_entry(lists, entry_id)
        if not context.approved:
            await _ask_approval(approve, entry)
        gone = await forgets.forget(entry.id, who="agent", why=why)
        # the text itself would stay in the conversation
        told = f"forgotten: the {gone.kind} …{gone.id[-_ID_SHOWN:]}.{restorable}"
        return f"{told}{_told(await remaining(store, gone))}"

    return tool(forget)


def _told(found: Sequence[Remaining]) -> str:
    """Name what still says it by ids and places, without its words."""
    if not found:
        return ""
    where = {"memory": "memory", "fact": "fact of the profile", "file": "file", "todo": "todo of session"}
    # the last characters of an id name a memory
    names = [f"{where[one.kind]} {f'…{one.id[-_ID_SHOWN:]}' if one.kind == 'memory' else one.id}" for one in found]
    return f" These still say it, or nearly: {', '.join(dict.fromkeys(names))}. Ask the user whether they go too."


async def _find_entry(lists: Lists, wanted: str) -> Entry:
    """Return the one entry that an id or a part of it names. Raises `ToolFailed`."""
    entries = {entry.id: entry for entry in await lists.entries()}
    try:
        return entries[resolve_id([*entries], wanted.strip().lstrip("^"))]
    except EntryNotFound as error:
        raise ToolFailed(str(error).partition(": `")[0].rstrip(".") + ". `recall` shows the ids.") from error


async def _ask_approval(approve: ApprovalHandler | None, entry: Entry) -> None:
    if approve is None:
        raise ToolFailed("Forgetting needs a person's approval, and there is nobody to ask: nothing was forgotten.")
    target = f"memory …{entry.id[-_ID_SHOWN:]}"
    if not await approve(Approval(tool="forget", act="forget", target=target, change=f"- {entry.content}\n")):
        raise ToolFailed("It was not approved: nothing was forgotten.")
