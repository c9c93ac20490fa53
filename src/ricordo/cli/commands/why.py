"""`why`: where a memory is from, what changed it, where it stands, and why it is found or shown, or is not."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import Target, require_target, with_memory
from ricordo.cli.contradictions import load_contradictions, print_contradictions
from ricordo.cli.deeds import ChangeSummary, summarize_changes
from ricordo.cli.documents import change_document, entry_document, explanation_document, memory_usage_document
from ricordo.cli.explaining import explain_hits
from ricordo.cli.hits import print_explanation
from ricordo.cli.locate import SourceMessage, FileLocation, load_source_messages, locate_entry
from ricordo.cli.options import JsonOption, LimitOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import dim, print_json, print_line, escape, wrap
from ricordo.errors import EntryNotFound, InvalidQuery

if TYPE_CHECKING:
    from ricordo.audit import MemoryUsage
    from ricordo.memory import Memory
    from ricordo.messages.types import JsonValue
    from ricordo.recall.hits import Explanation
    from ricordo.workspace.entry import Entry

__all__ = ["why"]

_MAX_CHANGES = 100
_MIN_ID_SIMILARITY = 0.85
_ID_OR_WORD = re.compile(r"\S{6,}")
_ID = re.compile(r"(?=.*\d)[0-9a-z]{20,}", re.IGNORECASE)
_ID_PART = re.compile(r"(?=.*\d)(?=.*[a-z])[0-9a-z]{6,}", re.IGNORECASE)
"""What may be a part of an id, and a word too, such as `python3`."""


@dataclass(frozen=True, kw_only=True)
class _MemoryReport:
    """What is known of one memory; `explanation` is what a question finds, None where none was asked."""

    entry: "Entry"
    position: FileLocation | None
    source_messages: list[SourceMessage]
    changes: list[ChangeSummary]
    successor: str
    is_in_prompt: bool
    usage: "MemoryUsage"
    contradictions: "list[Entry]"
    explanation: "Explanation | None"

    @property
    def prompt_status(self) -> str:
        """Why it is in the prompt of a new session, or why not."""
        if self.is_in_prompt:
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
    target = require_target(root, user, project)

    async def look(memory: "Memory") -> "_MemoryReport | None":
        entry = await _find_named_entry(memory, what.strip())
        return await _load_report(memory, entry, target, asked, limit) if entry else None

    known = with_memory(target, look, finds=bool(asked))
    if known is None:
        explain_hits(target, asked or what, as_json=as_json, limit=limit)
    elif as_json:
        print_json(_report_document(known, target))
    else:
        _print_report(known, target)


async def _find_named_entry(memory: "Memory", what: str) -> "Entry | None":
    """Return the memory with this id; None for words. Raises: EntryNotFound for an id that no memory has."""
    from ricordo.audit.find import matches_id
    from ricordo.workspace.profile import FACT_ID_PREFIX

    if not _ID_OR_WORD.fullmatch(what):
        return None
    try:
        return await memory.entry(what)
    except EntryNotFound as error:
        ids = [entry.id for entry in await memory.entries()]
        near = get_close_matches(what, ids, n=1, cutoff=_MIN_ID_SIMILARITY)
        if _ID.fullmatch(what) or what.startswith(FACT_ID_PREFIX) or any(matches_id(what, one) for one in ids) or near:
            hint = f" The nearest is {near[0]}." if near else ""
            raise EntryNotFound(f"{error}{hint}") from error
        if _ID_PART.fullmatch(what) and not any(hit.words for hit in await memory.recall(what, limit=1)):
            raise
        return None


async def _load_report(memory: "Memory", entry: "Entry", target: Target, asked: str, limit: int) -> _MemoryReport:
    deeds = await summarize_changes(target, await memory.history(limit=_MAX_CHANGES))
    successor = next((each.id for each in await memory.entries() if each.supersedes == entry.id), "")
    return _MemoryReport(
        entry=entry,
        position=await locate_entry(target, entry.id),
        source_messages=await load_source_messages(target, memory, entry),
        changes=[deed for deed in deeds if entry.id in {*deed.ids, *deed.item.entries}],
        successor=successor,
        is_in_prompt=_preamble_holds(await memory.preamble(), entry),
        usage=await memory.usage(entry.id),
        contradictions=await load_contradictions(memory, entry.id),
        explanation=await memory.explain(asked, limit=limit) if asked else None,
    )


def _preamble_holds(preamble: str, entry: "Entry") -> bool:
    from ricordo.stores.preamble import normalize_words

    return f' id="{entry.id}"' in preamble or f" {normalize_words(entry.content)} " in f" {normalize_words(preamble)} "


def _print_report(known: _MemoryReport, target: Target) -> None:
    entry = known.entry
    print_line(wrap(entry.content))
    print_line(dim(f"  {entry.kind}, saved by {escape(entry.by)}; id {entry.id}"))
    print_line(f"  {escape(str(known.position)) if known.position else 'stands in no file'}")
    print_line(wrap(known.prompt_status, "  "))
    print_line(wrap(_format_usage(known.usage), "  "))
    print_contradictions(known.contradictions, entry.id)
    for origin in known.source_messages:
        speaker = origin.message.name or origin.message.role
        print_line(
            f"  said in {escape(str(origin.position))} by {escape(speaker)}, message {escape(origin.message.id)}"
        )
        print_line(dim(wrap(entry.source.quote or origin.message.text, "    ")))
    for deed in known.changes:
        print_line(
            f"  {deed.item.at.astimezone():%Y-%m-%d %H:%M}  {deed.item.act} by {escape(deed.item.who)}  {deed.item.id}"
        )
    if known.explanation:
        print_line("")
        print_explanation(known.explanation, target)


def _format_usage(usage: "MemoryUsage") -> str:
    """Return how often it was shown, used and confirmed, and when last."""
    parts = []
    for act, counted in (("shown", usage.shown), ("used", usage.used), ("confirmed", usage.confirmed)):
        times = "once" if counted.count == 1 else f"{counted.count:,} times"
        last = f", last {counted.last.astimezone():%Y-%m-%d}" if counted.last else ""
        parts.append(f"{act} {times}{last}" if counted.count else f"never {act}")
    return "; ".join(parts)


def _report_document(known: _MemoryReport, target: Target) -> "dict[str, JsonValue]":
    position = known.position
    origins: list[JsonValue] = [
        {
            "session": known.entry.source.session,
            "message": each.message.id,
            "file": each.position.file,
            "line": each.position.line,
        }
        for each in known.source_messages
    ]
    return {
        **entry_document(known.entry, [other.id for other in known.contradictions]),
        "file": position.file if position else None,
        "line": position.line if position else None,
        "rests_on": origins,
        "superseded_by": known.successor or None,
        "in_prompt": known.is_in_prompt,
        "standing": known.prompt_status,
        "usage": memory_usage_document(known.usage),
        "changes": [change_document(each.item) for each in known.changes],
        "explained": explanation_document(known.explanation, target) if known.explanation else None,
    }
