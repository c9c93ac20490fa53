"""`demo`: the main job, seen from outside. An agent lives through a conversation, and a new process answers.

Nothing is scripted: both are the ordinary commands, run in processes of their own, and what is shown is what they say.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory, mkdtemp
from typing import Annotated, Any

import typer

from ricordo.cli.options import JsonOption, RootOption
from ricordo.cli.render import bold, counted, dim, emit, say, shown, size, wrapped
from ricordo.errors import RicordoError

__all__ = ["demo"]

_PROJECT = "demo"
_KEPT = frozenset({"RICORDO_EMBEDDER"})
_QUESTIONS = 3
_BUDGET = 2_000
_SESSIONS_SHOWN = 12
_SUMMARY_LINES = 12
_MEMORY_LINES = 60
_PREAMBLE_LINES = 6
_LINE = 160
_MARK = "[secret:"
_LONGEST = 400
_FIELDS = re.compile(r"( \[[a-z_-]+:: [^\]]*\])+( \^[0-9A-Za-z-]+)?$")
_BUILT_IN = files("ricordo.cli") / "demo_data"


@dataclass(frozen=True, kw_only=True)
class _Stage:
    """Where the demo plays: the root and the environment of its processes."""

    root: Path
    environment: Mapping[str, str]

    @property
    def place(self) -> Path:
        """Where the user of the demo has what it writes."""
        from ricordo.runtime import Settings
        from ricordo.runtime.roots import place_root
        from ricordo.scopes import Scope

        return place_root(self.root, Scope(user=Settings.load(None, self.environment).user, project="demo"))


@dataclass(frozen=True, kw_only=True)
class _Question:
    """A question, and words that a right answer holds, where they are known beforehand."""

    text: str
    expects: str | None = None
    is_checked: bool = False

    def is_met(self, answer: Mapping[str, Any]) -> bool:
        """Tell whether the answer holds the words, or is that it is not in memory where there are none."""
        hit = answer["hit"]
        if self.expects is None:
            return hit is None
        return hit is not None and self.expects.casefold() in hit["entry"]["content"].casefold()


def demo(
    *,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", show_default=False, help="A conversation of yours; else one that is built in."),
    ] = None,
    ask: Annotated[
        list[str] | None,
        typer.Option("--ask", metavar="QUESTION", help="Ask this instead; more than one may be given."),
    ] = None,
    budget: Annotated[
        int, typer.Option("--budget", metavar="TOKENS", min=500, help="How large the agent's window may get.")
    ] = _BUDGET,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the folder that the demo writes.")] = False,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """See it work, with no key and no network.

    An agent lives through a conversation with a small window, and a new process answers questions about it. It plays in
    a temporary folder.
    """
    if file:
        _check(file)
    with ExitStack() as stack:
        stage = _stage(stack, root, keep=keep)
        conversation = file or stack.enter_context(as_file(_BUILT_IN / "conversation.jsonl"))
        if as_json:
            first, told = _lived(stage, conversation, budget)
            questions, _ = _questions(ask, file, stage)
            second, answers = _answers(stage, questions)
            emit({"lived": told, "answers": list(answers), "processes": [first, second]})
            return
        name = file or "a built-in conversation"
        window = f"with a window of about {budget:,} tokens"
        say(wrapped(f"An agent lives through {name} {window}, and its process ends."))
        say("A new process answers from what was kept. No key, no server, no network.")
        first = _live(stage, conversation, budget)
        _show_memory(stage)
        questions, are_made = _questions(ask, file, stage)
        second = _answer(stage, questions, made=are_made)
        processes = f"Process {first} lived and learned, process {second} answered"
        say(wrapped(f"\n{processes}; between them lay nothing but files."))
        _go_on(stage, is_kept=keep or root is not None)


def _check(file: Path) -> None:
    """Look whether there is a conversation before anything is promised. Raises: FileMissing, HistoryUnreadable."""
    from ricordo.importers import read_history

    next(iter(read_history(file, on_problem=lambda problem: None)), None)


def _questions(asked: Sequence[str] | None, file: Path | None, stage: _Stage) -> tuple[list[_Question], bool]:
    """Return what is asked, and whether it was made from what was learned."""
    if asked:
        return [_Question(text=text) for text in asked], False
    if file:
        from ricordo.cli.questions import own_questions

        return [_Question(text=text) for text in own_questions(_entries(stage), _QUESTIONS)], True
    return _known_questions(json.loads((_BUILT_IN / "questions.json").read_text(encoding="utf-8"))), False


def _stage(stack: ExitStack, root: Path | None, *, keep: bool) -> _Stage:
    """Return a place where neither the person's own memory nor their settings play a part."""
    if keep:
        folder = Path(mkdtemp(prefix="ricordo-demo-"))
    else:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="ricordo-demo-")))
    environment = {
        name: value for name, value in os.environ.items() if name in _KEPT or not name.startswith("RICORDO_")
    }
    environment |= {"RICORDO_DATA": str(folder / "data"), "RICORDO_CACHE": str(folder / "cache")}
    return _Stage(root=(root or folder / ".ricordo").absolute(), environment=environment)


def _lived(stage: _Stage, conversation: Path, budget: int) -> tuple[int, Any]:
    return _run(stage, "replay", str(conversation.absolute()), "--project", _PROJECT, "--budget", str(budget))


def _live(stage: _Stage, conversation: Path, budget: int) -> int:
    process, told = _lived(stage, conversation, budget)
    lives = told["sessions"]
    say(f"\n{bold(f'1. Living (process {process})')}")
    say("   session, and its tokens:      said   largest window sent   left at the end")
    for life in lives[:_SESSIONS_SHOWN]:
        sizes = f"{life['said_tokens']:>9,}{life['largest_tokens']:>22,}{life['left_tokens']:>18,}"
        say(f"   {shown(life['session'])[:24]:<24} {sizes}")
    if len(lives) > _SESSIONS_SHOWN:
        say(f"   … and {counted(len(lives) - _SESSIONS_SHOWN, 'more session')}")
    _show_reductions(lives)
    learned = ", ".join(counted(count, shown(kind)) for kind, count in told["learned"].items())
    total = counted(sum(told["learned"].values()), "entry")
    say(wrapped(f"learned {total}{f': {learned}' if learned else ''}", "   ", first="\n   "))
    kept, replaced = told["curated"].get("kept", 0), told["curated"].get("superseded", 0)
    older = f", {replaced:,} in the place of what no longer holds" if replaced else ""
    say(f"   curated {kept:,} of them{older}")
    if told["known"]:
        say(f"   left alone {counted(len(told['known']), 'session')} that had been there before")
    if told["problems"]:
        say(f"   skipped {counted(told['problems'], 'record')}")
    return process


def _show_reductions(lives: Sequence[Mapping[str, Any]]) -> None:
    """Show the largest eviction, and one window before and after its compaction."""
    evicted = _largest(lives, "evict")
    if evicted:
        name = evicted[0]["session"]
        say(
            wrapped(
                f"In {name} a tool's result was too wide: it is in a file now, and a preview stayed.",
                "   ",
                first="\n   ",
            )
        )
        say(f"   The window before: {_measure(evicted[1], 'before')}; after: {_measure(evicted[1], 'after')}.")
    compacted = _largest(lives, "compact")
    if compacted:
        life, act = compacted
        what = "the window was full: a summary took the place of what was oldest"
        say(wrapped(f"In {life['session']} {what}.", "   ", first="\n   "))
        say(f"   The window before: {_measure(act, 'before')}; after: {_measure(act, 'after')}.")
        say("   It then began with this summary:")
        for line in _body_of_summary(act["summary"] or "")[:_SUMMARY_LINES]:
            say(dim(_line(line, "     ")))


def _largest(lives: Sequence[Mapping[str, Any]], act: str) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    found = [(life, each) for life in lives for each in life["reductions"] if each["act"] == act]
    return max(found, key=lambda row: row[1]["tokens_before"] - row[1]["tokens_after"], default=None)


def _measure(act: Mapping[str, Any], when: str) -> str:
    return f"{counted(act[f'messages_{when}'], 'message')}, {act[f'tokens_{when}']:,} tokens"


def _body_of_summary(summary: str) -> list[str]:
    """Return the lines of a summary, of its headings only those with something below them."""
    lines = [line for line in summary.splitlines() if line.startswith(("- ", "## "))]
    following = [*lines[1:], "## "]
    return [line for line, below in zip(lines, following, strict=False) if "-" in {line[0], below[0]}]


def _line(text: str, indent: str) -> str:
    """Return one line of a file, shortened, and broken to the terminal with what is broken off standing further in."""
    short = text if len(text) <= _LINE else f"{text[: _LINE - 1].rstrip()}…"
    return wrapped(short, f"{indent}  " if text.startswith("- ") else indent, first=indent)


def _show_memory(stage: _Stage) -> None:
    """Show what was written: the files, curated memory as it is on disk, and what of it enters a prompt."""
    say(f"\n{bold('2. What it wrote')}")
    for path, weight in _written(stage.root, stage.place):
        say(f"     {size(weight):>9}  {shown(path)}")
    memory = stage.place / "workspace" / "MEMORY.md"
    if memory.is_file():
        say(f"\n   {shown(_below(stage.root, memory))}, without the fields that each line ends with:\n")
        lines = memory.read_text(encoding="utf-8", errors="replace").splitlines()
        for line in lines[:_MEMORY_LINES]:
            said = _FIELDS.sub("", line)
            say(wrapped(said, "       " if said.startswith("- ") else "     ", first="     "))
        if len(lines) > _MEMORY_LINES:
            say(f"     … and {counted(len(lines) - _MEMORY_LINES, 'more line')}")
    _, told = _run(stage, "context")
    length = f"in {told['tokens']:,} tokens"
    say(wrapped(f"The next session's prompt is told this memory {length}. Its preamble begins:", "   ", first="\n   "))
    for line in told["preamble"].splitlines()[:_PREAMBLE_LINES]:
        say(dim(_line(line, "     ")))
    _show_redaction(stage)


def _show_redaction(stage: _Stage) -> None:
    places = list(_redacted(stage.root, stage.place))
    others = f", and in {counted(len(places) - 1, 'more line')}" if len(places) > 1 else ""
    for path, number, mark in places[:1]:
        say(f"\n   A secret was said. In its place stands {shown(mark)}")
        say(dim(f"   — {shown(path)}:{number}{others}"))


def _answers(stage: _Stage, questions: Sequence[_Question]) -> tuple[int, list[Any]]:
    first, *rest = questions
    also = [part for question in rest for part in ("--also", question.text)]
    process, told = _run(stage, "ask", first.text, *also)
    return process, [{key: value for key, value in told.items() if key != "also"}, *told.get("also", [])]


def _answer(stage: _Stage, questions: Sequence[_Question], *, made: bool) -> int:
    process, answers = _answers(stage, questions)
    say(f"\n{bold(f'3. Answering (process {process})')}")
    if made:
        say(f"   No --ask was given, so up to {_QUESTIONS} questions are made from what was learned.")
    for question, answer in zip(questions, answers, strict=True):
        say(f"\n   {bold(shown(question.text))}")
        _print_answer(answer, stage)
    curated = sum(_rests_on_curated(answer) for answer in answers)
    say(f"\n   {curated} of {counted(len(answers), 'answer')} {'rests' if curated == 1 else 'rest'} on curated memory.")
    checked = [(question, answer) for question, answer in zip(questions, answers, strict=True) if question.is_checked]
    if checked:
        met = sum(question.is_met(answer) for question, answer in checked)
        say(f"   {met} of {len(checked)} hold the words that the demo's list of questions expects.")
    return process


def _rests_on_curated(answer: Mapping[str, Any]) -> bool:
    path = answer["hit"]["path"] if answer["hit"] else ""
    return path == "workspace/MEMORY.md" or path.startswith("workspace/memory/topics/")


def _print_answer(answer: Mapping[str, Any], stage: _Stage) -> None:
    if answer["hit"] is None:
        say(f"   {shown(answer['text'])}")
        return
    for hit, label in [(answer["hit"], ""), *((old, "superseded: ") for old in answer["superseded"])]:
        content = hit["entry"]["content"].strip()
        say(wrapped(content if len(content) <= _LONGEST else f"{content[:_LONGEST]}…", "   ", first=f"   {label}"))
        place = f"{_below(stage.root, stage.place / hit['path'])}:{hit['line']}"
        say(dim(f"   — {shown(place)}"))


def _go_on(stage: _Stage, *, is_kept: bool) -> None:
    say(f"\n{bold('With a model')}")
    say("   pip install 'ricordo[models]'")
    say("   set its key (ANTHROPIC_API_KEY, OPENAI_API_KEY, …), and name it:")
    say("   ricordo chat --model anthropic:claude-sonnet-5")
    say("   or set RICORDO_MODEL. Without a model, chat quotes memory.")
    say(f"\n{bold('Go on')}")
    if is_kept:
        place = shown(quote(str(stage.root)))
        say(f'   ricordo ask "QUESTION" --root {place}')
        say(f"   ricordo memory list --root {place}")
    else:
        say("   ricordo demo FILE       the same with a conversation of yours")
        say("   ricordo demo --keep     keep the files, to look at them")
    say("   ricordo ingest FILE     begin a memory here")


def _run(stage: _Stage, *arguments: str) -> tuple[int, Any]:
    """Run a command in a process of its own to its end; return the process's id and the JSON it printed."""
    command = [sys.executable, "-m", "ricordo", *arguments, "--root", str(stage.root), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=dict(stage.environment), encoding="utf-8") as process:
        output, _ = process.communicate()
    told = json.loads(output or "{}")
    problems = [each["message"] for each in told.get("unreadable", [])] + [told.get("understood") or ""]
    if process.returncode:
        raise RicordoError(
            " ".join(filter(None, problems)) or told.get("message") or f"`ricordo {arguments[0]}` did not end well."
        )
    return process.pid, told


def _entries(stage: _Stage) -> list[Mapping[str, Any]]:
    _, told = _run(stage, "memory", "list", "--limit", "1000")
    found: list[Mapping[str, Any]] = told["entries"]
    return found


def _known_questions(listed: Sequence[Mapping[str, Any]]) -> list[_Question]:
    """Return the questions that are marked for the demo."""
    return [
        _Question(text=each["question"], expects=each["expects"], is_checked=True) for each in listed if each["shown"]
    ]


def _written(root: Path, place: Path) -> list[tuple[str, int]]:
    """Return the files with their sizes in bytes, transcripts as one."""
    found = sorted(path for path in (place / "workspace").rglob("*") if path.is_file())
    logs = [path for path in found if path.name.endswith(".log.jsonl")]
    hidden = {path for path in found if "/state/" in path.as_posix()}
    rows = [(_below(root, path), path.stat().st_size) for path in found if path not in {*logs, *hidden}]
    if logs:
        rows.append(
            (
                f"{_below(root, logs[0].parent)}/ ({counted(len(logs), 'transcript')})",
                sum(p.stat().st_size for p in logs),
            )
        )
    index = place / "memory_index.db"
    if index.is_file():
        rows.append((f"{_below(root, index)} (the index, a cache)", index.stat().st_size))
    return rows


def _redacted(root: Path, place: Path) -> Iterator[tuple[str, int, str]]:
    """Give the places in the transcripts where a secret was replaced, and what stands there."""
    for path in sorted((place / "workspace").rglob("*.log.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
            if _MARK in line:
                start = line.index(_MARK)
                yield _below(root, path), number, line[start : line.find("]", start) + 1]


def _below(root: Path, path: Path) -> str:
    return path.relative_to(root.parent).as_posix()
