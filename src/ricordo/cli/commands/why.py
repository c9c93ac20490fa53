"""`why`: where a memory is from, what changed it, where it stands, and why it is found or shown, or is not."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import Target, existing, with_memory
from ricordo.cli.contradictions import contradicting, print_contradictions
from ricordo.cli.deeds import Deed, deeds_of
from ricordo.cli.documents import change_document, entry_document, explained_document, usage_document
from ricordo.cli.explaining import explain_hits
from ricordo.cli.hits import print_explained
from ricordo.cli.locate import Origin, Position, origins_of, position_of
from ricordo.cli.options import JsonOption, LimitOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import dim, emit, say, shown, wrapped
from ricordo.errors import EntryNotFound, InvalidQuery

if TYPE_CHECKING:
    from ricordo.audit import MemoryUsage
    from ricordo.memory import Memory
    from ricordo.messages.types import JsonValue
    from ricordo.recall.hits import Explained
    from ricordo.workspace.entry import Entry

__all__ = ["why"]

_MOST_CHANGES = 100
_NEAR = 0.85
_ID_OR_WORD = re.compile(r"\S{6,}")
_ID = re.compile(r"(?=.*\d)[0-9a-z]{20,}", re.IGNORECASE)
_PART = re.compile(r"(?=.*\d)(?=.*[a-z])[0-9a-z]{6,}", re.IGNORECASE)
"""What may be a part of an id, and a word too, such as `python3`."""


@dataclass(frozen=True, kw_only=True)
class _Known:
    """What is known of one memory; `found` is what a question finds, None where none was asked."""

    entry: "Entry"
    position: Position | None
    origins: list[Origin]
    deeds: list[Deed]
    successor: str
    prompted: bool
    usage: "MemoryUsage"
    contradicting: "list[Entry]"
    found: "Explained | None"

    @property
    def standing(self) -> str:
        """Why it is in the prompt of a new session, or why not."""
        if self.prompted:
            return "in the prompt of each session"
        if self.successor:
            return f"not in the prompt: {self.successor} took its place"
        if self.entry.state != "active":
            return f"not in the prompt: it is {self.entry.state}"
        if self.entry.by == "flush" and self.position and "/topics/" not in self.position.file:
            return "not in the prompt: it was learned and is not curated yet; it is found when it is looked for"
        return "not in the prompt as it begins: it joins when a message has to do with it, as far as there is room"


def why(
    *,
    what: Annotated[str, typer.Argument(metavar="ID or QUERY", help="The id of a memory, or plain words.")],
    asked: Annotated[
        str,
        typer.Option("--for", metavar="QUERY", show_default=False, help="Why a memory is found for this, or is not."),
    ] = "",
    limit: LimitOption = 5,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show why memory is as it is.

    For the id of a memory: what it rests on, what changed it, where it stands, whether it is in the prompt, and how
    often it was shown, used and confirmed. For
    words: what is found with what each signal gave, where it was said, and what was left out and why.
    """
    if not what.strip():
        raise InvalidQuery("Say which memory: write its id, or words that it is found by.")
    target = existing(root, user, project)

    async def look(memory: "Memory") -> "_Known | None":
        entry = await _named(memory, what.strip())
        return await _known(memory, entry, target, asked, limit) if entry else None

    known = with_memory(target, look, finds=bool(asked))
    if known is None:
        explain_hits(target, asked or what, as_json=as_json, limit=limit)
    elif as_json:
        emit(_document(known, target))
    else:
        _print(known, target)


async def _named(memory: "Memory", what: str) -> "Entry | None":
    """Return the memory with this id; None for words. Raises: EntryNotFound for an id that no memory has."""
    from ricordo.audit.find import names
    from ricordo.workspace.profile import FACT_ID

    if not _ID_OR_WORD.fullmatch(what):
        return None
    try:
        return await memory.entry(what)
    except EntryNotFound as error:
        ids = [entry.id for entry in await memory.entries()]
        near = get_close_matches(what, ids, n=1, cutoff=_NEAR)
        if _ID.fullmatch(what) or what.startswith(FACT_ID) or any(names(what, one) for one in ids) or near:
            hint = f" The nearest is {near[0]}." if near else ""
            raise EntryNotFound(f"{error}{hint}") from error
        if _PART.fullmatch(what) and not any(hit.words for hit in await memory.recall(what, limit=1)):
            raise
        return None


async def _known(memory: "Memory", entry: "Entry", target: Target, asked: str, limit: int) -> _Known:
    deeds = await deeds_of(target, await memory.history(limit=_MOST_CHANGES))
    successor = next((each.id for each in await memory.entries() if each.supersedes == entry.id), "")
    return _Known(
        entry=entry,
        position=await position_of(target, entry.id),
        origins=await origins_of(target, memory, entry),
        deeds=[deed for deed in deeds if entry.id in {*deed.ids, *deed.item.entries}],
        successor=successor,
        prompted=_holds(await memory.preamble(), entry),
        usage=await memory.usage(entry.id),
        contradicting=await contradicting(memory, entry.id),
        found=await memory.explain(asked, limit=limit) if asked else None,
    )


def _holds(preamble: str, entry: "Entry") -> bool:
    from ricordo.stores.preamble import said

    return f' id="{entry.id}"' in preamble or f" {said(entry.content)} " in f" {said(preamble)} "


def _print(known: _Known, target: Target) -> None:
    entry = known.entry
    say(wrapped(entry.content))
    say(dim(f"  {entry.kind}, saved by {shown(entry.by)}; id {entry.id}"))
    say(f"  {shown(str(known.position)) if known.position else 'stands in no file'}")
    say(wrapped(known.standing, "  "))
    say(wrapped(_used(known.usage), "  "))
    print_contradictions(known.contradicting, entry.id)
    for origin in known.origins:
        speaker = origin.message.name or origin.message.role
        say(f"  said in {shown(str(origin.position))} by {shown(speaker)}, message {shown(origin.message.id)}")
        say(dim(wrapped(entry.source.quote or origin.message.text, "    ")))
    for deed in known.deeds:
        say(f"  {deed.item.at.astimezone():%Y-%m-%d %H:%M}  {deed.item.act} by {shown(deed.item.who)}  {deed.item.id}")
    if known.found:
        say("")
        print_explained(known.found, target)


def _used(usage: "MemoryUsage") -> str:
    """Return how often it was shown, used and confirmed, and when last."""
    parts = []
    for act, counted in (("shown", usage.shown), ("used", usage.used), ("confirmed", usage.confirmed)):
        times = "once" if counted.count == 1 else f"{counted.count:,} times"
        last = f", last {counted.last.astimezone():%Y-%m-%d}" if counted.last else ""
        parts.append(f"{act} {times}{last}" if counted.count else f"never {act}")
    return "; ".join(parts)


def _document(known: _Known, target: Target) -> "dict[str, JsonValue]":
    position = known.position
    origins: list[JsonValue] = [
        {
            "session": known.entry.source.session,
            "message": each.message.id,
            "file": each.position.file,
            "line": each.position.line,
        }
        for each in known.origins
    ]
    return {
        **entry_document(known.entry, [other.id for other in known.contradicting]),
        "file": position.file if position else None,
        "line": position.line if position else None,
        "rests_on": origins,
        "superseded_by": known.successor or None,
        "in_prompt": known.prompted,
        "standing": known.standing,
        "usage": usage_document(known.usage),
        "changes": [change_document(each.item) for each in known.deeds],
        "explained": explained_document(known.found, target) if known.found else None,
    }
