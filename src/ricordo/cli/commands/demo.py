"""`demo`: an agent replays a conversation, and a new process answers questions about it.

Nothing is scripted: both are the ordinary commands, run in processes of their own, and what is shown is what they
print.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from importlib.resources import as_file, files
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory, mkdtemp
from typing import Annotated, Any

import typer

from ricordo.cli.options import JsonOption, RootOption
from ricordo.cli.render import bold, dim, escape, format_size, pluralize, print_json, print_line, wrap
from ricordo.errors import RicordoError, install_command
from ricordo.lazy import dataclass, lazy_compile

__all__ = ["demo"]


_PROJECT = "demo"
_KEPT_VARIABLES = frozenset({"RICORDO_EMBEDDER"})
_BUDGET = 2_000
_SUMMARY_LINES = 12
_MEMORY_LINES = 60
_PREAMBLE_LINES = 6
_MAX_LINE_CHARS = 160
_SECRET_MARK = "[secret:"
_MAX_ANSWER_CHARS = 400
_ENTRY_FIELDS = lazy_compile(r"( \[[a-z_-]+:: [^\]]*\])+( \^[0-9A-Za-z-]+)?$")
_DEMO_DATA = files("ricordo.cli") / "demo_data"


@dataclass(frozen=True, kw_only=True)
class _DemoRoot:
    """Where the demo plays: the root and the environment of its processes."""

    root: Path
    environment: Mapping[str, str]

    @property
    def user_folder(self) -> Path:
        """Where the user of the demo has what it writes."""
        from ricordo.runtime import Settings
        from ricordo.runtime.roots import scope_folder
        from ricordo.scope import Scope

        return scope_folder(self.root, Scope(user=Settings.load(None, self.environment).user, project="demo"))


@dataclass(frozen=True, kw_only=True)
class _Question:
    """A question, and words that a right answer holds; None if the answer is not in memory."""

    text: str
    expects: str | None

    def is_answered_by(self, answer: Mapping[str, Any]) -> bool:
        """Return whether the answer contains the words; without words, whether nothing was found."""
        hit = answer["hit"]
        if self.expects is None:
            return hit is None
        return hit is not None and self.expects.casefold() in hit["entry"]["content"].casefold()


def demo(
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the folder that the demo writes.")] = False,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """See it work, with no key and no network.

    An agent goes through a conversation of several weeks with a small window, and a new process answers questions about
    it. It plays in a temporary folder.
    """
    documents = json.loads((_DEMO_DATA / "questions.json").read_text(encoding="utf-8"))
    questions = [_Question(text=each["question"], expects=each["expects"]) for each in documents if each["shown"]]
    with ExitStack() as stack:
        demo_root = _make_demo_root(stack, root, keep=keep)
        conversation = stack.enter_context(as_file(_DEMO_DATA / "conversation.jsonl"))
        if as_json:
            first, result = _run_replay(demo_root, conversation)
            second, answers = _run_ask(demo_root, questions)
            print_json({"replay": result, "answers": list(answers), "processes": [first, second]})
            return
        window = f"with a window of about {_BUDGET:,} tokens"
        print_line(wrap(f"An agent goes through a built-in conversation {window}, and its process ends."))
        print_line("A new process answers from what was kept. No key, no server, no network.")
        first = _show_replay(demo_root, conversation)
        _show_memory(demo_root)
        second = _show_answers(demo_root, questions)
        processes = f"Process {first} replayed and learned, process {second} answered"
        print_line(wrap(f"\n{processes}; between them lay nothing but files."))
        _show_next_steps(demo_root, is_kept=keep or root is not None)


def _make_demo_root(stack: ExitStack, root: Path | None, *, keep: bool) -> _DemoRoot:
    """Return a place where neither the person's own memory nor their settings play a part."""
    if keep:
        folder = Path(mkdtemp(prefix="ricordo-demo-"))
    else:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="ricordo-demo-")))
    environment = {
        name: value for name, value in os.environ.items() if name in _KEPT_VARIABLES or not name.startswith("RICORDO_")
    }
    environment |= {"RICORDO_DATA": str(folder / "data"), "RICORDO_CACHE": str(folder / "cache")}
    return _DemoRoot(root=(root or folder / ".ricordo").absolute(), environment=environment)


def _run_replay(demo_root: _DemoRoot, conversation: Path) -> tuple[int, Any]:
    return _run(demo_root, "replay", str(conversation.absolute()), "--project", _PROJECT, "--budget", str(_BUDGET))


def _show_replay(demo_root: _DemoRoot, conversation: Path) -> int:
    process, document = _run_replay(demo_root, conversation)
    reports = document["sessions"]
    print_line(f"\n{bold(f'1. Replay (process {process})')}")
    print_line("   session, and its tokens:      said   largest window sent   left at the end")
    for report in reports:
        sizes = f"{report['said_tokens']:>9,}{report['largest_tokens']:>22,}{report['left_tokens']:>18,}"
        print_line(f"   {escape(report['session'])[:24]:<24} {sizes}")
    _show_reductions(reports)
    kinds_text = ", ".join(pluralize(count, escape(kind)) for kind, count in document["learned"].items())
    total = pluralize(sum(document["learned"].values()), "entry")
    print_line(wrap(f"learned {total}{f': {kinds_text}' if kinds_text else ''}", "   ", first="\n   "))
    curated_count, replaced = document["curated"].get("kept", 0), document["curated"].get("superseded", 0)
    older = f", {replaced:,} in the place of what no longer holds" if replaced else ""
    print_line(f"   curated {curated_count:,} of them{older}")
    if document["known"]:
        print_line(f"   skipped {pluralize(len(document['known']), 'session')} that the root has")
    return process


def _show_reductions(reports: Sequence[Mapping[str, Any]]) -> None:
    """Show the largest eviction, and one window before and after its compaction."""
    evicted = _largest_reduction(reports, "evict")
    if evicted:
        name = evicted[0]["session"]
        print_line(
            wrap(
                f"In {name} a tool's result was too wide: it is in a file now, and a preview stayed.",
                "   ",
                first="\n   ",
            )
        )
        print_line(
            f"   The window before: {_format_measure(evicted[1], 'before')}; after: "
            f"{_format_measure(evicted[1], 'after')}."
        )
    compacted = _largest_reduction(reports, "compact")
    if compacted:
        report, act = compacted
        explanation = "the window was full: a summary took the place of what was oldest"
        print_line(wrap(f"In {report['session']} {explanation}.", "   ", first="\n   "))
        print_line(f"   The window before: {_format_measure(act, 'before')}; after: {_format_measure(act, 'after')}.")
        print_line("   It then began with this summary:")
        for line in _summary_lines(act["summary"] or "")[:_SUMMARY_LINES]:
            print_line(dim(_format_file_line(line, "     ")))


def _largest_reduction(
    reports: Sequence[Mapping[str, Any]], act: str
) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    reductions = [(report, each) for report in reports for each in report["reductions"] if each["action"] == act]
    return max(reductions, key=lambda row: row[1]["tokens_before"] - row[1]["tokens_after"], default=None)


def _format_measure(act: Mapping[str, Any], when: str) -> str:
    return f"{pluralize(act[f'messages_{when}'], 'message')}, {act[f'tokens_{when}']:,} tokens"


def _summary_lines(summary: str) -> list[str]:
    """Return the lines of a summary, of its headings only those with something below them."""
    lines = [line for line in summary.splitlines() if line.startswith(("- ", "## "))]
    following = [*lines[1:], "## "]
    return [line for line, below in zip(lines, following, strict=False) if "-" in {line[0], below[0]}]


def _format_file_line(text: str, indent: str) -> str:
    """Return one line of a file, shortened, and broken to the terminal with what is broken off standing further in."""
    short = text if len(text) <= _MAX_LINE_CHARS else f"{text[: _MAX_LINE_CHARS - 1].rstrip()}…"
    return wrap(short, f"{indent}  " if text.startswith("- ") else indent, first=indent)


def _show_memory(demo_root: _DemoRoot) -> None:
    """Show what was written: the files, curated memory as it is on disk, and what of it enters a prompt."""
    print_line(f"\n{bold('2. What it wrote')}")
    for path, weight in _list_files(demo_root.root, demo_root.user_folder):
        print_line(f"     {format_size(weight):>9}  {escape(path)}")
    memory = demo_root.user_folder / "workspace" / "MEMORY.md"
    if memory.is_file():
        print_line(
            f"\n   {escape(_relative_path(demo_root.root, memory))}, without the fields that each line ends with:\n"
        )
        lines = memory.read_text(encoding="utf-8", errors="replace").splitlines()
        for line in lines[:_MEMORY_LINES]:
            text = _ENTRY_FIELDS.sub("", line)
            print_line(wrap(text, "       " if text.startswith("- ") else "     ", first="     "))
        if len(lines) > _MEMORY_LINES:
            print_line(f"     … and {pluralize(len(lines) - _MEMORY_LINES, 'more line')}")
    _, report = _run(demo_root, "context")
    size_text = f"in {report['tokens']:,} tokens"
    print_line(
        wrap(f"The next session's prompt is told this memory {size_text}. Its preamble begins:", "   ", first="\n   ")
    )
    for line in report["preamble"].splitlines()[:_PREAMBLE_LINES]:
        print_line(dim(_format_file_line(line, "     ")))
    _show_redaction(demo_root)


def _show_redaction(demo_root: _DemoRoot) -> None:
    redactions = list(_find_redactions(demo_root.root, demo_root.user_folder))
    others = f", and in {pluralize(len(redactions) - 1, 'more line')}" if len(redactions) > 1 else ""
    for path, number, mark in redactions[:1]:
        print_line(f"\n   A secret was said. In its place stands {escape(mark)}")
        print_line(dim(f"   — {escape(path)}:{number}{others}"))


def _run_ask(demo_root: _DemoRoot, questions: Sequence[_Question]) -> tuple[int, list[Any]]:
    first, *rest = questions
    extra_arguments = [part for question in rest for part in ("--also", question.text)]
    process, document = _run(demo_root, "ask", first.text, *extra_arguments)
    return process, [{key: value for key, value in document.items() if key != "also"}, *document.get("also", [])]


def _show_answers(demo_root: _DemoRoot, questions: Sequence[_Question]) -> int:
    process, answers = _run_ask(demo_root, questions)
    print_line(f"\n{bold(f'3. Answering (process {process})')}")
    for question, answer in zip(questions, answers, strict=True):
        print_line(f"\n   {bold(escape(question.text))}")
        _print_answer(answer, demo_root)
    curated = sum(_rests_on_curated(answer) for answer in answers)
    print_line(
        f"\n   {curated} of {pluralize(len(answers), 'answer')} {'rests' if curated == 1 else 'rest'} on "
        f"curated memory."
    )
    right = sum(question.is_answered_by(answer) for question, answer in zip(questions, answers, strict=True))
    print_line(f"   {right} of {len(answers)} hold the words that the demo's list of questions expects.")
    return process


def _rests_on_curated(answer: Mapping[str, Any]) -> bool:
    path = answer["hit"]["path"] if answer["hit"] else ""
    return path == "workspace/MEMORY.md" or path.startswith("workspace/memory/topics/")


def _print_answer(answer: Mapping[str, Any], demo_root: _DemoRoot) -> None:
    if answer["hit"] is None:
        print_line(f"   {escape(answer['text'])}")
        return
    for hit, label in [(answer["hit"], ""), *((old, "superseded: ") for old in answer["superseded"])]:
        content = hit["entry"]["content"].strip()
        print_line(
            wrap(
                content if len(content) <= _MAX_ANSWER_CHARS else f"{content[:_MAX_ANSWER_CHARS]}…",
                "   ",
                first=f"   {label}",
            )
        )
        location = f"{_relative_path(demo_root.root, demo_root.user_folder / hit['path'])}:{hit['line']}"
        print_line(dim(f"   — {escape(location)}"))


def _show_next_steps(demo_root: _DemoRoot, *, is_kept: bool) -> None:
    print_line(f"\n{bold('With a model')}")
    print_line(f"   install the extra: {install_command('models')}")
    print_line("   set its key (ANTHROPIC_API_KEY, OPENAI_API_KEY, …), and name it:")
    print_line("   ricordo chat --model anthropic:claude-sonnet-5")
    print_line("   or set RICORDO_MODEL. Without a model, chat quotes memory.")
    print_line(f"\n{bold('Go on')}")
    if is_kept:
        root_argument = escape(quote(str(demo_root.root)))
        print_line(f'   ricordo ask "QUESTION" --root {root_argument}')
        print_line(f"   ricordo memory list --root {root_argument}")
    else:
        print_line("   ricordo demo --keep     keep the files, to look at them")
        print_line("   ricordo replay FILE --root trial      the same with a conversation of yours")
    print_line("   ricordo import PATH     begin a memory here")


def _run(demo_root: _DemoRoot, *arguments: str) -> tuple[int, Any]:
    """Run a command in a process of its own to its end; return the process's id and the JSON it printed."""
    command = [sys.executable, "-m", "ricordo", *arguments, "--root", str(demo_root.root), "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env=dict(demo_root.environment), encoding="utf-8"
    ) as process:
        output, _ = process.communicate()
    document = json.loads(output or "{}")
    if process.returncode:
        raise RicordoError(document.get("message") or f"`ricordo {arguments[0]}` failed.")
    return process.pid, document


def _list_files(root: Path, folder: Path) -> list[tuple[str, int]]:
    """Return the files with their sizes in bytes, transcripts as one."""
    file_paths = sorted(path for path in (folder / "workspace").rglob("*") if path.is_file())
    logs = [path for path in file_paths if path.name.endswith(".log.jsonl")]
    hidden = {path for path in file_paths if "/state/" in path.as_posix()}
    rows = [(_relative_path(root, path), path.stat().st_size) for path in file_paths if path not in {*logs, *hidden}]
    if logs:
        rows.append(
            (
                f"{_relative_path(root, logs[0].parent)}/ ({pluralize(len(logs), 'transcript')})",
                sum(p.stat().st_size for p in logs),
            )
        )
    index = folder / "memory_index.db"
    if index.is_file():
        rows.append((f"{_relative_path(root, index)} (the index, a cache)", index.stat().st_size))
    return rows


def _find_redactions(root: Path, folder: Path) -> Iterator[tuple[str, int, str]]:
    """Give the places in the transcripts where a secret was replaced, and what stands there."""
    for path in sorted((folder / "workspace").rglob("*.log.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
            if _SECRET_MARK in line:
                start = line.index(_SECRET_MARK)
                yield _relative_path(root, path), number, line[start : line.find("]", start) + 1]


def _relative_path(root: Path, path: Path) -> str:
    return path.relative_to(root.parent).as_posix()
