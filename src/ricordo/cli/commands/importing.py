"""`import`: the histories of other programs, conversations and memories become transcripts and entries."""

import os
import shutil
import sys
from contextlib import asynccontextmanager
from dataclasses import field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.json_output import entry_document
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, SharedOption, UserOption
from ricordo.cli.render import (
    bold,
    dim,
    escape,
    format_size,
    pluralize,
    print_error,
    print_json,
    print_line,
    print_note,
    progress_bar,
    wrap,
)
from ricordo.cli.target import Target, find_target, open_memory, open_personal_memory, run_async
from ricordo.errors import FileMissing, RicordoError
from ricordo.lazy import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from ricordo.importers import FormatCounts, FoundSource, ImportPlan, ImportProblem, ImportReport
    from ricordo.language import NameKind
    from ricordo.messages.types import JsonValue
    from ricordo.runtime.memory import Memory

__all__ = ["import_"]


_STANDARD_INPUT = "-"
_PROBLEMS_SHOWN = 20
_IGNORED_SHOWN = 5
_TELLING_OF_SEVERAL = 5
_NAME_HEADINGS: "dict[str, NameKind | None]" = {"People": "person", "Projects": "project", "Other names": None}
_LEARNING_SECONDS = 30.0
"""How long a closing memory may consolidate what was learned; the rest waits for the next process."""


@dataclass(frozen=True, kw_only=True)
class _Task:
    """What goes into one memory."""

    target: Target
    sources: "Sequence[FoundSource]"


@dataclass(kw_only=True)
class _Choice:
    """What goes into which memory, and how many files of other projects, or of folders that are gone, are left out.

    `refused` says which memories can't be opened, and why.
    """

    tasks: list[_Task] = field(default_factory=list)
    other_files: int = 0
    other_projects: int = 0
    homeless: int = 0
    refused: list[str] = field(default_factory=list)


def import_(
    *,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WHAT",
            help="A program whose history is on this machine: claude-code, codex, gemini or opencode. Or files, "
            "folders and zip archives, or - for standard input. Without any: show what is there.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be imported, and write nothing.")] = False,
    all_projects: Annotated[
        bool,
        typer.Option(
            "--all-projects",
            help="Import the sessions of every project, each into its own memory; with --root all into that one.",
        ),
    ] = False,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="ID", show_default=False, help="Gather all messages in this one session."),
    ] = None,
    trusted: Annotated[
        bool, typer.Option("--trust", help="Memories of other systems count as confirmed, and go into prompts.")
    ] = False,
    shared: SharedOption = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import histories and memories of other programs, and learn from them.

    Every message is kept with its own time, and what is worth remembering is learned. Of a program's history the
    sessions of this project are imported. A root is created when there is none. What is there already is not added
    again, so the same command goes on where it was interrupted, and one `undo` takes all of it back. A broken record is
    reported and skipped; the exit code is 1 when a file holds nothing to import.
    """
    target = find_target(root, user, project, shared=shared)
    if not what:
        _show_histories(target, as_json=as_json)
        return
    with TemporaryDirectory() as folder:
        choice = _choose(what, target, Path(folder), all_projects=all_projects, is_named=root is not None)
        if dry_run:
            _show_plans(choice, as_json=as_json)
            return
        reports = [(task.target, _run(task, session, trusted=trusted)) for task in choice.tasks]
    if as_json:
        documents = [_report_document(target, report) for target, report in reports]
        print_json(documents[0] if len(documents) == 1 else {"projects": list(documents)})
    else:
        _print_reports(reports)
        _print_left_out(choice)
    if choice.refused or any(report.unreadable or report.is_empty for _, report in reports):
        raise typer.Exit(1)


def _run(task: _Task, session: str | None, *, trusted: bool) -> "ImportReport":
    """Import what goes into one memory; where that is cut off, say what was done until then."""
    from ricordo.importers import ImportReport, import_sources

    report = ImportReport(on_problem=_print_problem)
    target = _with_time_to_learn(task.target)

    @asynccontextmanager
    async def open_for(user: str | None) -> "AsyncIterator[Memory]":
        async with open_memory(target if user is None else replace(target, user=user)) as memory:
            yield memory

    def open_personal(user: str | None) -> "AbstractAsyncContextManager[Memory]":
        return open_personal_memory(target if user is None else replace(target, user=user))

    with progress_bar(sum(map(_find_size, task.sources)), "Importing") as on_bytes:
        try:
            run_async(
                lambda: import_sources(
                    open_for,
                    task.sources,
                    report,
                    session=session,
                    trusted=trusted,
                    open_personal=open_personal,
                    on_bytes=on_bytes,
                )
            )
        except RicordoError:
            _print_note_of_interruption(report)
            raise
        except KeyboardInterrupt:
            _print_note_of_interruption(report)
            raise
    return report


def _print_note_of_interruption(report: "ImportReport") -> None:
    if report.new or report.new_memories:
        print_note(f"Until then {_count_new(report)} were imported. The same command goes on from there.")


def _with_time_to_learn(target: Target) -> Target:
    """Return `target` with time to consolidate what was learned before it is closed, unless its settings give none."""
    flush = target.settings.flush
    if flush is None or not flush.closing_seconds:
        return target
    flush = replace(flush, closing_seconds=max(flush.closing_seconds, _LEARNING_SECONDS))
    return replace(target, settings=replace(target.settings, flush=flush))


def _print_problem(problem: "ImportProblem", number: int) -> None:
    """Show the first problems as they come."""
    if not problem.skipped:
        print_note(f"{escape(problem.place)}: {escape(problem.reason)}")
    elif number <= _PROBLEMS_SHOWN:
        print_note(f"{escape(problem.place)}: skipped: {escape(problem.reason)}")


def _choose(what: list[str], target: Target, folder: Path, *, all_projects: bool, is_named: bool) -> _Choice:
    """Return what goes into which memory. Raises: FileMissing if there is nothing."""
    from ricordo.importers import divide_by_root, find_histories, list_hosts

    hosts = set(list_hosts())
    own = [found for name in what if name not in hosts for found in _find_in_path(name, folder)]
    history = [found for name in what if name in hosts for found in find_histories(name, Path.home(), os.environ)]
    divided = divide_by_root(history, target.root, Path.cwd(), Path.home())
    choice = _Choice(homeless=len(divided.homeless))
    if all_projects and is_named:
        own, choice.homeless = [*own, *history], 0
    elif all_projects:
        own += divided.own
        for root, sources in divided.others.items():
            try:
                choice.tasks.append(_Task(target=find_target(root, target.user, None), sources=sources))
            except RicordoError as error:
                choice.refused.append(str(error))
    else:
        own += divided.own
        choice.other_projects = len(divided.others)
        choice.other_files = sum(map(len, divided.others.values()))
    if own:
        choice.tasks.insert(0, _Task(target=target, sources=own))
    if not choice.tasks:
        count = choice.other_files
        elsewhere = f" There are {pluralize(count, 'file')} of other projects: --all-projects." if count else ""
        raise FileMissing(f"There is nothing of {', '.join(what)} to import for {target.project_folder}.{elsewhere}")
    return choice


def _find_in_path(name: str, folder: Path) -> "list[FoundSource]":
    from ricordo.importers import FoundSource, ImportSource, find_sources

    # arguments are texts in UTF-8; the locale, which reads names of files, may have another encoding
    source = ImportSource(Path(os.fsdecode(name.encode("utf-8"))))
    if name == _STANDARD_INPUT:
        with (folder / "stdin").open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        source = ImportSource(folder / "stdin", name="standard input")
    try:
        return list(find_sources(source))
    except RicordoError as error:
        return [FoundSource(source=source, form=None, reason=str(error))]


def _find_size(found: "FoundSource") -> int:
    try:
        return found.source.size if found.form else 0
    except RicordoError:
        return 0


def _show_histories(target: Target, *, as_json: bool) -> None:
    """Show whose histories are on this machine, and how they are imported."""
    from ricordo.importers import divide_by_root, find_histories, list_hosts

    rows: list[JsonValue] = []
    for name in list_hosts():
        history = find_histories(name, Path.home(), os.environ)
        own = divide_by_root(history, target.root, Path.cwd(), Path.home()).own
        rows.append({"name": name, "files": len(history), "here": len(own), "bytes": sum(map(_find_size, history))})
    if as_json:
        print_json({"histories": rows})
        return
    for row in rows:
        assert isinstance(row, dict)
        amount = f"{pluralize(int(str(row['files'])), 'file')}, {row['here']} of this project"
        print_line(f"{row['name']:<12} {amount if row['files'] else 'nothing found'}")
    print_line("`ricordo import NAME --dry-run` shows what is in it; `ricordo import PATH` takes any file or folder.")


def _show_plans(choice: _Choice, *, as_json: bool) -> None:
    """Count what would be imported, and show it."""
    from ricordo.importers import plan_import

    plans = []
    for task in choice.tasks:
        with progress_bar(sum(map(_find_size, task.sources)), "Reading") as on_bytes:
            plans.append((task.target, plan_import(task.sources, on_bytes)))
    if as_json:
        print_json({"plans": [_plan_document(target, plan) for target, plan in plans], **_left_out_document(choice)})
        return
    for target, plan in plans:
        new = "" if target.exists else ", which would be created"
        print_line(f"Into the memory in {escape(str(target.root))}{new}:")
        for counts in plan.formats.values():
            print_line(f"  {_describe_counts(counts)}")
        for _, reason in plan.unreadable:
            print_error(escape(reason))
        print_line(f"  about {_describe_seconds(plan.seconds)}")
    _print_left_out(choice)
    print_line("Nothing was written. What is there already would not be added again.")


def _describe_counts(counts: "FormatCounts") -> str:
    parts = [
        pluralize(counts.files, "file"),
        format_size(counts.bytes),
        pluralize(len(counts.sessions), "session") if counts.sessions else "",
        pluralize(counts.messages, "message") if counts.messages else "",
        pluralize(counts.memories, "memory", "memories") if counts.memories else "",
        f"{counts.first:%Y-%m-%d} to {counts.last:%Y-%m-%d}" if counts.first and counts.last else "",
        pluralize(counts.problems, "record") + " can't be read" if counts.problems else "",
    ]
    return f"{counts.name:<12} {', '.join(filter(None, parts))}"


def _describe_seconds(seconds: float) -> str:
    return "a second" if seconds < 1 else f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _plan_document(target: Target, plan: "ImportPlan") -> "dict[str, JsonValue]":
    return {
        "root": str(target.root),
        "created": not target.exists,
        "formats": [
            {
                "name": each.name,
                "files": each.files,
                "bytes": each.bytes,
                "sessions": len(each.sessions),
                "messages": each.messages,
                "memories": each.memories,
                "problems": each.problems,
                "first": each.first.isoformat() if each.first else None,
                "last": each.last.isoformat() if each.last else None,
            }
            for each in plan.formats.values()
        ],
        "seconds": round(plan.seconds, 1),
        "unreadable": [{"file": name, "message": reason} for name, reason in plan.unreadable],
    }


def _left_out_document(choice: _Choice) -> "dict[str, JsonValue]":
    return {
        "left_out": {
            "files": choice.other_files,
            "projects": choice.other_projects,
            "without_project": choice.homeless,
            "refused": list(choice.refused),
        }
    }


def _print_left_out(choice: _Choice) -> None:
    for message in choice.refused:
        print_error(message)
    if choice.other_files:
        files, projects = pluralize(choice.other_files, "file"), pluralize(choice.other_projects, "other project")
        print_line(f"Left out: {files} of {projects}; --all-projects imports each into its own memory.")
    if choice.homeless:
        files = pluralize(choice.homeless, "file")
        print_line(f"Left out: {files} of folders that are gone or no project; --all-projects --root DIR takes all.")


def _print_reports(reports: "list[tuple[Target, ImportReport]]") -> None:
    for target, report in reports:
        if len(reports) > 1:
            print_line(bold(escape(str(target.project_folder))))
        _print_failures(report)
        _print_summary(target, report, telling=_TELLING_OF_SEVERAL if len(reports) > 1 else None)


def _print_failures(report: "ImportReport") -> None:
    hidden = report.problem_count - _PROBLEMS_SHOWN
    if hidden > 0:
        print_note(f"… and {pluralize(hidden, 'more record')} skipped")
    for _, message in report.unreadable:
        print_error(message)
    if report.is_empty and report.empty:
        from ricordo.importers import describe_formats

        for name in report.empty:
            print_error(f"{name} holds nothing to import.")
        print_note(describe_formats())
    if report.ignored:
        names = ", ".join(escape(name) for name in report.ignored[:_IGNORED_SHOWN])
        more = f" and {len(report.ignored) - _IGNORED_SHOWN:,} more" if len(report.ignored) > _IGNORED_SHOWN else ""
        print_note(f"Not understood, and left out: {names}{more}.")


def _count_new(report: "ImportReport") -> str:
    messages = pluralize(report.new, "message") if report.new or not report.new_memories else ""
    memories = pluralize(report.new_memories, "memory", "memories") if report.new_memories else ""
    return " and ".join(filter(None, (messages, memories)))


def _print_summary(target: Target, report: "ImportReport", *, telling: int | None) -> None:
    """Print what an import brought; `telling` is the number of memories to show, all that tell most if None."""
    if report.is_empty:
        return
    if not target.exists:
        print_line(f"Created a memory in {escape(str(target.root))}.")
    if report.read:
        heading = f"Read {pluralize(report.read, 'message')} in {pluralize(len(report.sessions), 'session')}"
        print_line(f"{heading}: {report.new:,} new, {report.known_messages:,} known.")
    if report.memories:
        _print_memories(report)
    if not (report.changes or report.waiting_jobs):
        print_line(f"Nothing was added{'' if report.forgotten_memories else ': all of it was there already'}.")
        return
    _print_learned(report)
    if report.problem_count:
        print_line(f"Skipped {pluralize(report.problem_count, 'record')}.")
    _print_telling(report, telling)
    _print_next(report)


def _print_memories(report: "ImportReport") -> None:
    counts = [f"{report.new_memories:,} new", f"{report.known_memories:,} known"]
    if report.forgotten_memories:
        counts.append(f"{report.forgotten_memories:,} forgotten here and left out")
    print_line(f"Read {pluralize(report.memories, 'memory', 'memories')} of other systems: {', '.join(counts)}.")
    if report.replaced_memories:
        replaced = pluralize(report.replaced_memories, "memory", "memories")
        print_line(f"Superseded: {replaced} of an earlier import, as the words have changed there.")
    if report.confirmed_memories:
        confirmed = pluralize(report.confirmed_memories, "known memory", "known memories")
        undo = ", ".join(f"`ricordo undo {change}`" for change in report.confirmations)
        print_line(f"Confirmed: {confirmed}. {undo} takes that back.")
    if report.quarantined_memories:
        waiting = pluralize(report.quarantined_memories, "memory that gives", "memories that give")
        print_line(f"In quarantine: {waiting} orders to an assistant. `ricordo review` decides.")


def _print_learned(report: "ImportReport") -> None:
    if report.uses_model:
        waiting = f"; {pluralize(report.waiting_jobs, 'job waits', 'jobs wait')} for it" if report.waiting_jobs else ""
        print_line(f"A model learns from it in the background{waiting}: `ricordo memory list` shows what it learned.")
    elif report.read:
        kinds = ", ".join(pluralize(count, escape(kind)) for kind, count in report.learned.most_common())
        print_line(f"Learned {bold(pluralize(report.learned.total(), 'entry'))}{f': {kinds}' if kinds else ''}.")


def _print_telling(report: "ImportReport", count: int | None) -> None:
    entries = report.telling_entries()[:count]
    if entries:
        print_line("What tells most:")
    for entry in entries:
        print_line(wrap(escape(" ".join(entry.content.split())), "    ", first=f"  - {dim(escape(entry.kind))} "))
    for heading, kind in _NAME_HEADINGS.items():
        least = 1 if kind else 2
        named = [f"{escape(name)} ({count:,})" for name, count in report.frequent_names(kind) if count >= least]
        if named:
            print_line(wrap(", ".join(named), "    ", first=f"{heading}: "))


def _print_next(report: "ImportReport") -> None:
    if report.new_memories:
        print_line(
            "Memories of other systems are found by search; `ricordo review` lets prompts have those that you accept."
        )
    if report.doubtful:
        doubtful = pluralize(report.doubtful, "memory is", "memories are")
        print_line(f"{doubtful} doubtful: `ricordo review`.")
    for user, change in report.changes.items():
        option = f" --user {user}" if user else ""
        print_line(f"`ricordo undo {change}{option}` takes all of it back.")


def _report_document(target: Target, report: "ImportReport") -> "dict[str, JsonValue]":
    from ricordo.importers import describe_formats

    unreadable: list[JsonValue] = [{"file": name, "message": message} for name, message in report.unreadable]
    decay = target.settings.decay
    return {
        "root": str(target.root),
        "created": not report.is_empty and not target.exists,
        "files": report.sources,
        "sessions": len(report.sessions),
        "messages": {"read": report.read, "new": report.new, "known": report.known_messages},
        "memories": {
            "read": report.memories,
            "new": report.new_memories,
            "known": report.known_memories,
            "forgotten": report.forgotten_memories,
            "replaced": report.replaced_memories,
            "confirmed": report.confirmed_memories,
            "quarantined": report.quarantined_memories,
        },
        "entries": report.learned.total(),
        "learned": dict(report.learned.most_common()),
        "waiting": report.waiting_jobs,
        "telling": [entry_document(entry, decay) for entry in report.telling_entries()],
        **{
            heading.lower().replace(" ", "_"): [
                {"name": name, "entries": count} for name, count in report.frequent_names(kind)
            ]
            for heading, kind in _NAME_HEADINGS.items()
        },
        "doubtful": report.doubtful,
        "confirmations": list(report.confirmations),
        "changes": [{"user": user, "id": change} for user, change in report.changes.items()],
        "problems": _problem_documents(report.problems),
        "problem_count": report.problem_count,
        "unreadable": unreadable,
        "empty": list(report.empty),
        "ignored": list(report.ignored),
        "understood": describe_formats() if report.is_empty else None,
        "notes": _problem_documents(report.notes),
    }


def _problem_documents(problems: "list[ImportProblem]") -> "list[JsonValue]":
    return [
        {"file": each.path, "line": each.line, "record": each.record or None, "reason": each.reason}
        for each in problems
    ]
