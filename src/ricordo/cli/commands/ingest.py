"""`ingest`: conversations that happened elsewhere become transcripts and memories.

A file is read in a worker thread and never held whole: a batch is ingested when enough has been read, sessions that
have ended first, so that most are learned from at once. Nothing is opened or created before a first message was read.
"""

import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.options import JsonOption, ProjectOption, RootOption, SharedOption, UserOption
from ricordo.cli.render import bold, escape, pluralize, print_error, print_json, print_line, print_note
from ricordo.cli.target import Target, find_target, open_memory, run_async
from ricordo.errors import FileMissing, HistoryUnreadable, RicordoError
from ricordo.lazy import dataclass

if TYPE_CHECKING:
    from ricordo.importers import ImportedMessage, ImportProblem
    from ricordo.messages import Message
    from ricordo.messages.types import JsonValue
    from ricordo.runtime.memory import Memory

__all__ = ["ImportFile", "ImportTotals", "import_files", "ingest"]


_BATCH_MESSAGES = 2_000
_BATCH_BYTES = 16 * 1024 * 1024
_LEARNING_SECONDS = 30.0
"""How long to wait for a model, and for the consolidation at the end; the rest waits for the next process."""


@dataclass(kw_only=True)
class ImportTotals:
    """What taking in did; `unreadable` names the files without a conversation and why.

    `notes` are what was read with losses, `understood` the forms that are, once a file had none of them. `change` is
    the id by which all that was learned is undone. With `uses_model` a model learns from what was read, and so many
    jobs are `waiting_jobs` for it.
    """

    files: int = 0
    read: int = 0
    new: int = 0
    sessions: set[str] = field(default_factory=set)
    learned: Counter[str] = field(default_factory=Counter)
    problems: "list[ImportProblem]" = field(default_factory=list)
    notes: "list[ImportProblem]" = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    understood: str = ""
    change: str = ""
    uses_model: bool = False
    waiting_jobs: int = 0

    @property
    def known_messages(self) -> int:
        """How many messages were there before."""
        return self.read - self.new


@dataclass(kw_only=True)
class ImportFile:
    """One file on its way in; `session` gathers all its messages in one session, `name` is what people call it."""

    path: Path
    name: str
    on_problem: "Callable[[ImportProblem], None]"
    on_progress: Callable[[int, int], None]
    session: str | None = None
    done: int = 0

    def batches(self) -> "Iterator[tuple[str, list[Message]]]":
        """Give messages of one session at a time. Raises what `read_history` raises."""
        waiting: defaultdict[str, list[Message]] = defaultdict(list)
        batch_start = count = 0
        for imported in self._read_messages():
            waiting[imported.session].append(imported.message)
            count += 1
            if count >= _BATCH_MESSAGES or self.done - batch_start >= _BATCH_BYTES:
                ended_sessions = [name for name in waiting if name != imported.session] or list(waiting)
                yield from [(name, waiting.pop(name)) for name in ended_sessions]
                count, batch_start = sum(map(len, waiting.values())), self.done
        yield from waiting.items()

    def _read_messages(self) -> "Iterator[ImportedMessage]":
        from ricordo.importers import read_history

        history = read_history(self.path, on_problem=self._report_problem, on_progress=self._report_progress)
        if self.session is None:
            yield from history
            return
        ids: set[str] = set()
        for imported in history:
            # ids are unique in a session of the file, and several of them become one here
            message = imported.message if imported.message.id not in ids else replace(imported.message, id="")
            ids.add(imported.message.id)
            yield replace(imported, session=self.session, message=message)

    def _report_problem(self, problem: "ImportProblem") -> None:
        self.on_problem(replace(problem, path=self.name))

    def _report_progress(self, bytes_read: int, total: int) -> None:
        self.done = bytes_read
        self.on_progress(bytes_read, total)


async def import_files(target: Target, imports: Sequence[ImportFile], totals: ImportTotals) -> None:
    """Import the files, one after the other, and add the results to `totals`.

    A file that can't be read is tallied and the next one read.
    """
    async with AsyncExitStack() as stack:
        memory: Memory | None = None
        for import_file in imports:
            batches = import_file.batches()
            fingerprint_counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
            while (batch := await _next_batch(batches, import_file, totals)) is not None:
                if memory is None:
                    memory = await stack.enter_async_context(open_memory(_with_time_to_learn(target)))
                await _ingest_batch(memory, *batch, fingerprint_counts[batch[0]], totals)
            totals.files += 1
        if memory is not None and totals.uses_model:
            totals.waiting_jobs = await memory.drain(seconds=_LEARNING_SECONDS)
        if memory is not None and totals.new:
            await memory.index()


def _with_time_to_learn(target: Target) -> Target:
    """Return `target` with time to consolidate what was learned before it is closed."""
    flush = target.settings.flush
    if flush is None:
        return target
    flush = replace(flush, closing_seconds=max(flush.closing_seconds, _LEARNING_SECONDS))
    return replace(target, settings=replace(target.settings, flush=flush))


async def _next_batch(
    batches: "Iterator[tuple[str, list[Message]]]", import_file: ImportFile, totals: ImportTotals
) -> "tuple[str, list[Message]] | None":
    from anyio import to_thread

    from ricordo.importers import describe_formats

    try:
        return await to_thread.run_sync(next, batches, None)
    except RicordoError as error:
        message = str(error).replace(str(import_file.path), import_file.name)
        understood = await to_thread.run_sync(describe_formats)
        if message.endswith(understood):
            totals.understood = understood
        totals.unreadable.append((import_file.name, message.removesuffix(understood).strip()))
        return None


async def _ingest_batch(
    memory: "Memory", session: str, messages: "list[Message]", fingerprint_counts: "Counter[str]", totals: ImportTotals
) -> None:
    from ricordo.messages.codec import count_fingerprints

    result = await memory.ingest(messages, session=session, known=fingerprint_counts, part_of=totals.change)
    totals.change = totals.change or result.change_id
    fingerprint_counts.update(count_fingerprints(result.messages))
    totals.sessions.add(session)
    totals.read += len(messages)
    totals.new += result.added_count
    totals.uses_model = totals.uses_model or result.is_queued
    totals.learned.update(entry.kind for entry in result.entries)


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
    totals = ImportTotals()
    with TemporaryDirectory() as folder, _show_progress() as on_bytes:
        sources = _choose_files(files or [], target, Path(folder), claude_code=claude_code)
        report = _ProblemReporter(totals)
        imports = [
            ImportFile(path=path, name=name, session=session, on_problem=report, on_progress=on_bytes)
            for path, name in sources
        ]
        run_async(lambda: import_files(target, imports, totals))
    if as_json:
        print_json(_totals_document(target, totals))
    else:
        _print_summary(target, totals)
    if totals.unreadable:
        raise typer.Exit(1)


class _ProblemReporter:
    """Shows the first problems as they come and counts all of them."""

    def __init__(self, totals: ImportTotals) -> None:
        self._totals = totals

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
    sources: list[tuple[Path, str]] = []
    for file in files:
        if str(file) == _STANDARD_INPUT:
            with (folder / "stdin").open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
            sources.append((folder / "stdin", "standard input"))
        elif file.is_dir():
            sources += [(inner, str(inner)) for inner in _list_conversations(file)]
        else:
            sources.append((file, str(file)))
    if claude_code:
        sources += [(path, str(path)) for path in _find_claude_code(target)]
    return sources


def _list_conversations(folder: Path) -> list[Path]:
    conversation_paths = sorted(
        path for path in folder.iterdir() if path.suffix in {".json", ".jsonl"} and path.is_file()
    )
    if not conversation_paths:
        raise HistoryUnreadable(f"{folder} holds no .json or .jsonl file.")
    return conversation_paths


def _find_claude_code(target: Target) -> list[Path]:
    from ricordo.importers import find_claude_code

    folders = dict.fromkeys([target.project_folder, Path.cwd()])
    transcript_paths = dict.fromkeys(path for folder in folders for path in find_claude_code(folder, Path.home()))
    if not transcript_paths:
        raise FileMissing(f"Claude Code kept no transcript of {target.project_folder}.")
    return list(transcript_paths)


@contextmanager
def _show_progress() -> Iterator[Callable[[int, int], None]]:
    """Show on a terminal how far the reading of the current file is."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    with typer.progressbar(length=1, label="Reading", file=sys.stderr) as bar:

        def show(bytes_read: int, total: int) -> None:
            bar.length = max(total, 1)
            bar.update(bytes_read - bar.pos)

        yield show


def _print_summary(target: Target, totals: ImportTotals) -> None:
    hidden = len(totals.problems) - _PROBLEMS_SHOWN
    if hidden > 0:
        print_note(f"… and {pluralize(hidden, 'more record')} skipped")
    for _, message in totals.unreadable:
        print_error(message)
    if totals.understood:
        print_note(totals.understood)
    if not totals.read:
        return
    if not target.exists:
        print_line(f"Created a memory in {escape(str(target.root))}.")
    heading = f"Read {pluralize(totals.read, 'message')} in {pluralize(len(totals.sessions), 'session')}"
    print_line(f"{heading}: {totals.new:,} new, {totals.known_messages:,} known.")
    if not totals.new and not totals.learned and not totals.waiting_jobs:
        print_line("Nothing was added: all of it was there already.")
        return
    if totals.uses_model:
        waiting = f"; {pluralize(totals.waiting_jobs, 'job waits', 'jobs wait')} for it" if totals.waiting_jobs else ""
        print_line(f"A model learns from it in the background{waiting}: `ricordo memory list` shows what it learned.")
        return
    kinds = ", ".join(pluralize(count, escape(kind)) for kind, count in totals.learned.most_common())
    print_line(f"Learned {bold(pluralize(totals.learned.total(), 'entry'))}{f': {kinds}' if kinds else ''}.")
    if totals.problems:
        print_line(f"Skipped {pluralize(len(totals.problems), 'record')}.")


def _totals_document(target: Target, totals: ImportTotals) -> "dict[str, JsonValue]":
    return {
        "root": str(target.root),
        "created": bool(totals.read) and not target.exists,
        "files": totals.files,
        "sessions": len(totals.sessions),
        "messages": {"read": totals.read, "new": totals.new, "known": totals.known_messages},
        "entries": totals.learned.total(),
        "learned": dict(totals.learned.most_common()),
        "waiting": totals.waiting_jobs,
        "problems": _problem_documents(totals.problems[:_PROBLEMS_KEPT]),
        "problem_count": len(totals.problems),
        "unreadable": [{"file": name, "message": message} for name, message in totals.unreadable],
        "understood": totals.understood or None,
        "notes": _problem_documents(totals.notes),
    }


def _problem_documents(problems: "list[ImportProblem]") -> "list[JsonValue]":
    return [{"file": each.path, "line": each.line, "reason": each.reason} for each in problems]
