"""`history`, `diff`, `undo` and `why`: every write, what it changed, and where a memory is from.

A change is summarized by the words of the entries that it took out or put in, as long as the history keeps what it
replaced.
"""

import re
from contextlib import suppress
from dataclasses import field, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.commands.hosts import describe_given, explain_session, given_document, list_given
from ricordo.cli.json_output import change_document, entry_document, explanation_document, memory_usage_document
from ricordo.cli.memory_output import (
    FileLocation,
    SourceMessage,
    explain_hits,
    load_contradictions,
    load_source_messages,
    locate_entry,
    print_conflicts,
    print_explanation,
)
from ricordo.cli.options import JsonOption, LimitOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import bold, dim, escape, pluralize, print_json, print_line, wrap
from ricordo.cli.target import Target, load_redactor, read_memory, require_target, with_memory
from ricordo.errors import ChangeNotFound, EntryNotFound, FileMissing, InvalidQuery, StorageError
from ricordo.lazy import dataclass, lazy_compile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ricordo.extraction.relevance import Relevance
    from ricordo.guard import Redactor
    from ricordo.hooks.given import GivenMemory, GivenToSession
    from ricordo.jobs.runs import BackgroundRun
    from ricordo.messages.types import JsonValue
    from ricordo.runtime.memory import Memory
    from ricordo.search.contract import Explanation
    from ricordo.workspace.entry import Entry
    from ricordo.workspace.history.change_sets import Change, ChangeSets
    from ricordo.workspace.history.log import HistoryItem
    from ricordo.workspace.history.usage import MemoryUsage

__all__ = ["ChangeSummary", "diff", "history", "summarize_changes", "undo", "why"]


_MAX_QUOTE_CHARS = 60


@dataclass(frozen=True, kw_only=True)
class ChangeSummary:
    """A write, with the first words of what it was about and the act that it took back; empty where not known.

    `label` is `user` for the user's own root, `shared` for what the project shares, else `project`. `ids` are the
    memories that it was about.
    """

    item: "HistoryItem"
    subject: str = ""
    undone_action: str = ""
    label: str = "project"
    ids: tuple[str, ...] = ()

    @property
    def paths(self) -> str:
        """The files that were touched, and whose they are where they are not the user's alone in the project."""
        paths = ", ".join(self.item.paths)
        origins = {"user": " (in your own root)", "shared": " (shared by the project)"}
        return paths + origins.get(self.label, "")

    @property
    def description(self) -> str:
        """What was done to which memory, such as `undid forget "We use uv."`; empty when nothing is known."""
        quoted = f'"{self.subject}"' if self.subject else ""
        return " ".join(filter(None, [f"undid {self.undone_action}" if self.undone_action else "", quoted]))


async def summarize_changes(target: Target, items: "Sequence[HistoryItem]") -> list[ChangeSummary]:
    """Return the deed of each item, in their order."""
    from ricordo.clock import MonotonicIds, SystemClock
    from ricordo.runtime.workspace import root_files
    from ricordo.workspace.history.change_sets import ChangeSets

    clock = SystemClock()
    change_sets = {
        label: ChangeSets(root_files(folder), clock=clock, ids=MonotonicIds(clock))
        for label, folder in target.folders().items()
        if label != "own" and folder.is_dir()
    }
    redactor = await load_redactor(target)
    return [await _summarize_change(target, change_sets, item, redactor) for item in items]


async def _summarize_change(
    target: Target, change_sets: "Mapping[str, ChangeSets]", item: "HistoryItem", redactor: "Redactor"
) -> ChangeSummary:
    for label, changes in change_sets.items():
        with suppress(ChangeNotFound, StorageError):
            change = await changes.get_change(item.id)
            entries = await _changed_entries(changes, change) or await _load_saved_entries(target, label, item)
            undid = await _find_undone_act(changes, change.undoes, entries) if change.undoes else ""
            return ChangeSummary(
                item=item,
                subject=_quote_entries(entries, redactor),
                undone_action=undid,
                label=label,
                ids=_entry_ids(entries),
            )
    for label in change_sets:
        entries = await _load_saved_entries(target, label, item)
        if entries:
            return ChangeSummary(
                item=item, subject=_quote_entries(entries, redactor), label=label, ids=_entry_ids(entries)
            )
    return ChangeSummary(item=item)


async def _load_saved_entries(target: Target, label: str, item: "HistoryItem") -> "list[Entry]":
    from ricordo.runtime.workspace import root_files
    from ricordo.workspace.ledger import read_entries

    saved_entries: dict[str, Entry] = {}
    for path in item.paths if item.entries else ():
        with suppress(FileMissing, StorageError):
            located = await read_entries(root_files(target.folders()[label]), path)
            saved_entries.update((each.entry.id, each.entry) for each in located)
    return [saved_entries[entry_id] for entry_id in item.entries if entry_id in saved_entries]


async def _changed_entries(changes: "ChangeSets", change: "Change") -> "list[Entry]":
    """Return the entries that a change took out, else those that it put in, else those that it marked, each once."""
    marked: dict[str, Entry] = {}
    removed: dict[str, Entry] = {}
    added: dict[str, Entry] = {}
    for file in change.files:
        with suppress(FileMissing, StorageError):
            before = _parse_entries(await changes.read_content(file.before), file.path)
            after = _parse_entries(await changes.read_content(file.after), file.path)
            removed |= {entry_id: entry for entry_id, entry in before.items() if entry_id not in after}
            added |= {entry_id: entry for entry_id, entry in after.items() if entry_id not in before}
            marked |= {entry_id: entry for entry_id, entry in after.items() if before.get(entry_id) != entry}
    return list((removed or added or marked).values())


def _parse_entries(document: bytes | None, path: str) -> "dict[str, Entry]":
    from ricordo.workspace.entry_codec import parse_entries
    from ricordo.workspace.layout import is_profile
    from ricordo.workspace.profile import locate_facts

    if document is not None and is_profile(path):
        return {located.entry.id: located.entry for located in locate_facts(document, path)}
    if document is None or not path.endswith(".md"):
        return {}
    return {located.entry.id: located.entry for located in parse_entries(document, path)}


async def _find_undone_act(changes: "ChangeSets", undone: str, entries: "Sequence[Entry]") -> str:
    """Return the act of the change that was undone; an append left no record, and its entries tell who made it."""
    with suppress(ChangeNotFound, StorageError):
        return (await changes.get_change(undone)).action
    authors = {entry.by for entry in entries if entry.id == undone}
    return ("extract" if "flush" in authors else "save") if authors else "a write"


def _entry_ids(entries: "Sequence[Entry]") -> tuple[str, ...]:
    return tuple(entry.id for entry in entries)


def _quote_entries(entries: "Sequence[Entry]", redactor: "Redactor") -> str:
    if not entries:
        return ""
    text = " ".join(redactor.clean(entries[0].content).split())
    first = text if len(text) <= _MAX_QUOTE_CHARS else f"{text[:_MAX_QUOTE_CHARS].rsplit(' ', 1)[0]}…"
    return first if len(entries) == 1 else f"{first} (and {len(entries) - 1:,} more)"


# so many writes of other processes may follow an undo before it is told
_UNDO_LOOKBACK = 20


def undo(
    *,
    change: Annotated[
        str | None,
        typer.Argument(
            metavar="CHANGE",
            help="The id of a change, its beginning, or the id of a memory it added; else what you did last.",
        ),
    ] = None,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take back one write; an undo can be undone by its own id.

    Without an id it is what you did last, in this root or for all of your projects. What an agent saved, and what was
    learned or consolidated in the background, is undone by its id, which `ricordo history` shows.
    """
    target = require_target(root, user, project)

    async def undo_change(memory: "Memory") -> "tuple[HistoryItem, ChangeSummary | None]":
        item = await memory.undo(change)
        newest = [each for each in await memory.history(limit=_UNDO_LOOKBACK) if each.undoes == item.id]
        summaries = await summarize_changes(target, newest[:1])
        return item, summaries[0] if summaries else None

    item, summary = with_memory(target, undo_change)
    if as_json:
        print_json({"undone": change_document(item), "about": summary.subject or None if summary else None})
        return
    about = f' "{escape(summary.subject)}"' if summary and summary.subject else ""
    print_line(f"Took back {escape(item.action)}{about} of {item.at.astimezone():%Y-%m-%d %H:%M}")
    print_line(dim(f"  {item.id}  {escape(summary.paths if summary else ', '.join(item.paths))}"))


def history(
    *,
    limit: LimitOption = 20,
    runs: Annotated[
        bool, typer.Option("--runs", help="Show what was done in the background, and what it cost.")
    ] = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show who changed what, when and why, newest first.

    What other users did to what the project shares is shown with their name. With --runs: what was done in the
    background, with what each phase counted, how it ended and what it cost.
    """
    target = require_target(root, user, project)
    if runs:
        _print_runs(read_memory(target, lambda memory: memory.background_runs(limit=limit)), as_json=as_json)
        return

    async def load(memory: "Memory") -> list[ChangeSummary]:
        return await summarize_changes(target, await memory.history(limit=limit))

    summaries = read_memory(target, load)
    if as_json:
        print_json({"changes": [{**change_document(each.item), "about": each.subject or None} for each in summaries]})
        return
    if not summaries:
        print_line("Nothing was written yet.")
    for each in summaries:
        _print_change(each, target.user)


def diff(
    *,
    change: Annotated[
        str | None,
        typer.Argument(
            metavar="CHANGE", help="The id of a change, its beginning, or the id of a memory it added; else the newest."
        ),
    ] = None,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what one write did to each of its files, line by line."""
    target = require_target(root, user, project)
    change_diff = read_memory(target, lambda memory: memory.diff(change))
    if as_json:
        files: list[JsonValue] = [
            {"path": each.path, "created": each.created, "deleted": each.deleted, "added": each.added_lines,
             "removed": each.removed_lines, "diff": each.text}
            for each in change_diff.files
        ]  # fmt: skip
        print_json({"change": change_document(change_diff.item), "files": files})
        return
    item = change_diff.item
    print_line(
        f"{bold(item.id)}  {item.at.astimezone():%Y-%m-%d %H:%M}  {item.action} by {escape(_writer(item, target.user))}"
    )
    for each in change_diff.files:
        state = " (new)" if each.created else " (deleted)" if each.deleted else ""
        print_line(f"\n{dim(escape(each.path) + state)}  +{each.added_lines} -{each.removed_lines}")
        for line in each.text.split("\n")[2:]:
            print_line(escape(line))


def _print_runs(runs: "Sequence[BackgroundRun]", *, as_json: bool) -> None:
    if as_json:
        print_json({"runs": [_run_document(run) for run in runs]})
        return
    if not runs:
        print_line("Nothing was done in the background lately.")
    for run in runs:
        about = f" of {escape(run.session)}" if run.session else ""
        error = f"  {escape(run.error)}" if run.error else ""
        print_line(f"{bold(run.kind)}{about}  {run.queued_at.astimezone():%Y-%m-%d %H:%M}  {run.state}{error}")
        for phase, counts in run.phases.items():
            print_line(
                f"  {escape(phase):<12} {escape(', '.join(f'{name} {count:,}' for name, count in counts.items()))}"
            )
        spent = run.spent
        if spent.requests:
            print_line(dim(f"  {pluralize(spent.requests, 'request')}, {spent.tokens:,} tokens, ${spent.cost:,.4f}"))


def _run_document(run: "BackgroundRun") -> "JsonValue":
    return {
        "id": run.id,
        "kind": run.kind,
        "state": run.state,
        "session": run.session or None,
        "asked": run.queued_at.isoformat(),
        "ended": run.ended_at.isoformat() if run.ended_at else None,
        "phases": {phase: dict(counts) for phase, counts in run.phases.items()},
        "error": run.error or None,
        "requests": run.spent.requests,
        "tokens": run.spent.tokens,
        "cost": float(run.spent.cost),
    }


def _writer(item: "HistoryItem", user: str) -> str:
    """Return the author as shown to `user`; another user is named."""
    from ricordo.workspace.history.log import PERSON

    if item.user in {"", user}:
        return item.actor
    return item.user if item.actor == PERSON else f"{item.actor} of {item.user}"


def _print_change(summary: ChangeSummary, user: str) -> None:
    item = summary.item
    added = f"  {pluralize(len(item.entries), 'entry', 'entries')}" if item.entries else ""
    state = "  (undone)" if item.is_undone else ""
    description = f"{item.action} by {escape(_writer(item, user))}"
    print_line(f"{bold(item.id)}  {item.at.astimezone():%Y-%m-%d %H:%M}  {description}{added}{state}")
    if summary.description:
        print_line(f"  {escape(summary.description)}")
    print_line(dim(f"  {escape(summary.paths)}{f': {escape(item.reason)}' if item.reason else ''}"))


_MAX_CHANGES = 100
_MAX_GIVEN = 5
_MIN_ID_SIMILARITY = 0.85
_ID_OR_WORD = lazy_compile(r"\S{6,}")
_ID = lazy_compile(r"(?=.*\d)[0-9a-z]{20,}", re.IGNORECASE)
_ID_PART = lazy_compile(r"(?=.*\d)(?=.*[a-z])[0-9a-z]{6,}", re.IGNORECASE)
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
    given: "list[tuple[GivenToSession, GivenMemory]]" = field(default_factory=list)

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
    what: Annotated[
        str, typer.Argument(metavar="ID or QUERY", show_default=False, help="The id of a memory, or plain words.")
    ] = "",
    session: Annotated[
        str,
        typer.Option(
            "--session",
            metavar="ID",
            show_default=False,
            help="What a session of a coding agent was given: its id or the beginning of it, or last.",
        ),
    ] = "",
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
    words: what is found with what each signal gave, where it was said, and what was left out and why. With --session:
    which memories hooks gave to a session of a coding agent, and when.
    """
    if not what.strip() and not session:
        raise InvalidQuery("Say which memory: write its id, or words that it is found by.")
    target = require_target(root, user, project)
    if session:
        explain_session(target, session, as_json=as_json)
        return

    async def look(memory: "Memory") -> "_MemoryReport | None":
        entry = await _find_named_entry(memory, what.strip())
        return await _load_report(memory, entry, target, asked, limit) if entry else None

    report = read_memory(target, look, finds=bool(asked))
    report = report and replace(report, given=list_given(target, report.entry.id))
    if report is None:
        explain_hits(target, asked or what, as_json=as_json, limit=limit, said=True)
    elif as_json:
        print_json(_report_document(report, target))
    else:
        _print_report(report, target)


async def _find_named_entry(memory: "Memory", name: str) -> "Entry | None":
    """Return the memory with this id; None for words. Raises: EntryNotFound for an id that no memory has."""
    from ricordo.workspace.ledger import matches_id
    from ricordo.workspace.profile import FACT_ID_PREFIX

    if not _ID_OR_WORD.fullmatch(name):
        return None
    try:
        return await memory.entry(name)
    except EntryNotFound as error:
        ids = [entry.id for entry in await memory.entries()]
        similar_ids = get_close_matches(name, ids, n=1, cutoff=_MIN_ID_SIMILARITY)
        if (
            _ID.fullmatch(name)
            or name.startswith(FACT_ID_PREFIX)
            or any(matches_id(name, one) for one in ids)
            or similar_ids
        ):
            hint = f" The nearest is {similar_ids[0]}." if similar_ids else ""
            raise EntryNotFound(f"{error}{hint}") from error
        if _ID_PART.fullmatch(name) and not any(
            hit.matched_words for hit in await memory.recall(name, limit=1, said=False)
        ):
            raise
        return None


async def _load_report(memory: "Memory", entry: "Entry", target: Target, query: str, limit: int) -> _MemoryReport:
    from ricordo.runtime.finding import read_preamble

    summaries = await summarize_changes(target, await memory.history(limit=_MAX_CHANGES))
    successor = next((each.id for each in await memory.entries() if each.supersedes == entry.id), "")
    return _MemoryReport(
        entry=entry,
        position=await locate_entry(target, entry.id),
        source_messages=await load_source_messages(target, memory, entry),
        changes=[summary for summary in summaries if entry.id in {*summary.ids, *summary.item.entries}],
        successor=successor,
        is_in_prompt=entry.id in {listed.id for listed in (await read_preamble(memory)).entries},
        usage=await memory.usage(entry.id),
        contradictions=await load_contradictions(memory, entry.id),
        explanation=await memory.explain(query, limit=limit) if query else None,
    )


def _print_report(report: _MemoryReport, target: Target) -> None:
    from ricordo.search.config import measure_decay

    entry = report.entry
    print_line(wrap(entry.content))
    print_line(dim(f"  {entry.kind}, saved by {escape(entry.by)}; id {entry.id}"))
    print_line(f"  {escape(str(report.position)) if report.position else 'stands in no file'}")
    print_line(wrap(_format_validity(entry, report.successor), "  "))
    print_line(wrap(report.prompt_status, "  "))
    print_line(wrap(measure_decay(entry, datetime.now(UTC), target.settings.decay).explanation, "  "))
    again = entry.confirmations - (entry.confirmed is not None)
    said_again = f"; said again {'once' if again == 1 else f'{again:,} times'}" if again else ""
    print_line(wrap(f"{_format_usage(report.usage)}{said_again}", "  "))
    for given, memory in report.given[:_MAX_GIVEN]:
        print_line(wrap(describe_given(given, memory), "  "))
    print_conflicts(entry, report.contradictions)
    for origin in report.source_messages:
        speaker = origin.message.name or origin.message.role
        print_line(
            f"  said in {escape(str(origin.position))} by {escape(speaker)}, message {escape(origin.message.id)}"
        )
        print_line(dim(wrap(entry.source.quote or origin.message.text, "    ")))
    if relevance := _find_relevance(report):
        cues = f": {', '.join(relevance.cues)}" if relevance.cues else ""
        print_line(wrap(f"worth remembering without a model: {relevance.score:.0%}{cues}", "  "))
    for each in report.changes:
        print_line(
            f"  {each.item.at.astimezone():%Y-%m-%d %H:%M}  {each.item.action} by {escape(each.item.actor)}"
            f"  {each.item.id}"
        )
    if report.explanation:
        print_line("")
        print_explanation(report.explanation, target)


def _format_validity(entry: "Entry", successor: str) -> str:
    """Return when it was said, since when and until when it holds, what took its place, and when it was confirmed."""
    until = f" until {entry.valid_until}" if entry.valid_until else ""
    later = successor or entry.superseded_by
    parts = [
        f"observed {entry.said_at.astimezone():%Y-%m-%d}" if entry.said_at else "",
        f"valid from {entry.valid_from}{until}" if entry.valid_from else "",
        f"superseded by {escape(later)}{' then' * (entry.state == 'active' and not successor)}" if later else "",
        f"confirmed {entry.confirmed.astimezone():%Y-%m-%d}" if entry.confirmed else "",
    ]
    return "; ".join(filter(None, parts))


def _find_relevance(report: _MemoryReport) -> "Relevance | None":
    """Return why extraction without a model finds the memory worth keeping; None for what somebody saved."""
    from ricordo.extraction.contract import Utterance
    from ricordo.extraction.selection import explain_relevance

    entry = report.entry
    if entry.by != "flush":
        return None
    messages = [each.message for each in reversed(report.source_messages) if each.message.role in {"user", "assistant"}]
    utterances = [
        Utterance(message_id=message.id, role=message.role, text=message.text, speaker=message.name)
        for message in messages
    ]
    return explain_relevance(utterances, entry.source.quote or entry.content)


def _format_usage(usage: "MemoryUsage") -> str:
    """Return how often it was shown, used and confirmed, and when last."""
    parts = []
    for act, counted in (("shown", usage.shown), ("used", usage.used), ("confirmed", usage.confirmed)):
        times = "once" if counted.count == 1 else f"{counted.count:,} times"
        last = f", last {counted.last.astimezone():%Y-%m-%d}" if counted.last else ""
        parts.append(f"{act} {times}{last}" if counted.count else f"never {act}")
    return "; ".join(parts)


def _report_document(report: _MemoryReport, target: Target) -> "dict[str, JsonValue]":
    position, relevance = report.position, _find_relevance(report)
    origins: list[JsonValue] = [
        {
            "session": report.entry.source.session,
            "message": each.message.id,
            "file": each.position.file,
            "line": each.position.line,
        }
        for each in report.source_messages
    ]
    return {
        **entry_document(report.entry, target.settings.decay, [other.id for other in report.contradictions]),
        "file": position.file if position else None,
        "line": position.line if position else None,
        "rests_on": origins,
        "superseded_by": report.successor or report.entry.superseded_by or None,
        "in_prompt": report.is_in_prompt,
        "standing": report.prompt_status,
        "usage": memory_usage_document(report.usage),
        "given": [given_document(*each) for each in report.given],
        "relevance": {"score": relevance.score, "cues": list(relevance.cues)} if relevance else None,
        "changes": [change_document(each.item) for each in report.changes],
        "explained": explanation_document(report.explanation, target) if report.explanation else None,
    }
