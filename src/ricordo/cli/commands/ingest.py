"""`ingest`: conversations that happened elsewhere become transcripts and memories."""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import Target, find_target, run_async
from ricordo.cli.intake import ImportFile, ImportTotals, import_files
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, SharedOption, UserOption
from ricordo.cli.render import bold, pluralize, print_json, print_error, print_note, print_line, escape
from ricordo.errors import FileMissing, HistoryUnreadable

if TYPE_CHECKING:
    from ricordo.importers import ImportProblem
    from ricordo.messages.types import JsonValue

__all__ = ["ingest"]

_PROBLEMS_SHOWN = 20
_PROBLEMS_KEPT = 1_000
_STANDARD_INPUT = "-"


def ingest(
    *,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE", help="Conversations: files, folders (their .json and .jsonl files), - for standard input."
        ),
    ] = None,
    claude_code: Annotated[
        bool, typer.Option("--claude-code", help="Take in the Claude Code transcripts of this project.")
    ] = False,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="ID", show_default=False, help="Gather all messages in this one session."),
    ] = None,
    shared: SharedOption = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take in conversations and learn from them.

    Every message is kept, and what is worth remembering is learned. A root is created when there is none. What is there
    already is not added again, so the same command goes on where it was interrupted. A broken record is reported and
    skipped; the exit code is 1 when a file holds no conversation.
    """
    target = find_target(root, user, project, shared=shared)
    tally = ImportTotals()
    with TemporaryDirectory() as folder, _show_progress() as on_bytes:
        chosen = _choose_files(files or [], target, Path(folder), claude_code=claude_code)
        report = _ProblemReporter(tally)
        readings = [
            ImportFile(path=path, name=name, session=session, on_problem=report, on_bytes=on_bytes)
            for path, name in chosen
        ]
        run_async(lambda: import_files(target, readings, tally))
    if as_json:
        print_json(_totals_document(target, tally))
    else:
        _print_summary(target, tally)
    if tally.unreadable:
        raise typer.Exit(1)


class _ProblemReporter:
    """Shows the first problems as they come and counts all of them."""

    def __init__(self, tally: ImportTotals) -> None:
        self._totals = tally

    def __call__(self, problem: "ImportProblem") -> None:
        if not problem.skipped:
            self._totals.notes.append(problem)
            print_note(f"{escape(problem.path)}:{problem.line}: {escape(problem.reason)}")
            return
        self._totals.problems.append(problem)
        if len(self._totals.problems) <= _PROBLEMS_SHOWN:
            print_note(f"{escape(problem.path)}:{problem.line}: skipped: {escape(problem.reason)}")


def _choose_files(files: list[Path], target: Target, folder: Path, *, claude_code: bool) -> list[tuple[Path, str]]:
    """Return the files to read, each with what people call it."""
    if not files and not claude_code:
        raise typer.BadParameter("Name a file, a folder, - for standard input, or give --claude-code.")
    chosen: list[tuple[Path, str]] = []
    for file in files:
        if str(file) == _STANDARD_INPUT:
            with (folder / "stdin").open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
            chosen.append((folder / "stdin", "standard input"))
        elif file.is_dir():
            chosen += [(inner, str(inner)) for inner in _list_conversations(file)]
        else:
            chosen.append((file, str(file)))
    if claude_code:
        chosen += [(path, str(path)) for path in _find_claude_code(target)]
    return chosen


def _list_conversations(folder: Path) -> list[Path]:
    found = sorted(path for path in folder.iterdir() if path.suffix in {".json", ".jsonl"} and path.is_file())
    if not found:
        raise HistoryUnreadable(f"{folder} holds no .json or .jsonl file.")
    return found


def _find_claude_code(target: Target) -> list[Path]:
    from ricordo.importers import find_claude_code

    places = dict.fromkeys([target.project_folder, Path.cwd()])
    found = dict.fromkeys(path for place in places for path in find_claude_code(place, Path.home()))
    if not found:
        raise FileMissing(f"Claude Code kept no transcript of {target.project_folder}.")
    return list(found)


@contextmanager
def _show_progress() -> Iterator[Callable[[int, int], None]]:
    """Show on a terminal how far the reading of the current file is."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    with typer.progressbar(length=1, label="Reading", file=sys.stderr) as bar:

        def show(done: int, total: int) -> None:
            bar.length = max(total, 1)
            bar.update(done - bar.pos)

        yield show


def _print_summary(target: Target, tally: ImportTotals) -> None:
    hidden = len(tally.problems) - _PROBLEMS_SHOWN
    if hidden > 0:
        print_note(f"… and {pluralize(hidden, 'more record')} skipped")
    for _, message in tally.unreadable:
        print_error(message)
    if tally.understood:
        print_note(tally.understood)
    if not tally.read:
        return
    if not target.exists:
        print_line(f"Created a memory in {escape(str(target.root))}.")
    heading = f"Read {pluralize(tally.read, 'message')} in {pluralize(len(tally.sessions), 'session')}"
    print_line(f"{heading}: {tally.new:,} new, {tally.known_messages:,} known.")
    if not tally.new and not tally.learned and not tally.waiting_jobs:
        print_line("Nothing was added: all of it was there already.")
        return
    if tally.uses_model:
        waiting = f"; {pluralize(tally.waiting_jobs, 'job waits', 'jobs wait')} for it" if tally.waiting_jobs else ""
        print_line(f"A model learns from it in the background{waiting}: `ricordo memory list` shows what it learned.")
        return
    kinds = ", ".join(pluralize(count, escape(kind)) for kind, count in tally.learned.most_common())
    print_line(f"Learned {bold(pluralize(tally.learned.total(), 'entry'))}{f': {kinds}' if kinds else ''}.")
    if tally.problems:
        print_line(f"Skipped {pluralize(len(tally.problems), 'record')}.")


def _totals_document(target: Target, tally: ImportTotals) -> "dict[str, JsonValue]":
    return {
        "root": str(target.root),
        "created": bool(tally.read) and not target.exists,
        "files": tally.files,
        "sessions": len(tally.sessions),
        "messages": {"read": tally.read, "new": tally.new, "known": tally.known_messages},
        "entries": tally.learned.total(),
        "learned": dict(tally.learned.most_common()),
        "waiting": tally.waiting_jobs,
        "problems": _problem_documents(tally.problems[:_PROBLEMS_KEPT]),
        "problem_count": len(tally.problems),
        "unreadable": [{"file": name, "message": message} for name, message in tally.unreadable],
        "understood": tally.understood or None,
        "notes": _problem_documents(tally.notes),
    }


def _problem_documents(problems: "list[ImportProblem]") -> "list[JsonValue]":
    return [{"file": each.path, "line": each.line, "reason": each.reason} for each in problems]
