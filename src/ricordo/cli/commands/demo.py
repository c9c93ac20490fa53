"""`demo`: the main job, seen from outside. One process takes in a conversation and ends; a new one answers from it.

Nothing is scripted: both are the ordinary commands, run in processes of their own, and what is shown is what they say.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Annotated, Any

import typer

from ricordo.cli.options import JsonOption, RootOption
from ricordo.cli.render import bold, counted, dim, emit, say, shown, size, wrapped
from ricordo.errors import RicordoError

__all__ = ["demo"]

_PROJECT = "demo"
_QUESTIONS = 3
_EXAMPLES = 5
_ANSWERED = 7
_MARK = "[secret:"
_LONGEST = 400
_BUILT_IN = files("ricordo.cli") / "demo_data"


@dataclass(frozen=True, kw_only=True)
class _Stage:
    """Where the demo plays: the root and the environment of its processes."""

    root: Path
    environment: Mapping[str, str]


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
    keep: Annotated[bool, typer.Option("--keep", help="Keep the folder that the demo writes.")] = False,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """See it work, with no key and no network.

    A conversation is taken in, and a new process answers questions about it. It plays in a temporary folder.
    """
    with ExitStack() as stack:
        stage = _stage(stack, root, keep=keep)
        conversation = file or stack.enter_context(as_file(_BUILT_IN / "conversation.jsonl"))
        if as_json:
            first, told = _taken_in(stage, conversation)
            questions, _ = _questions(ask, file, _entries(stage))
            second, answers = _answers(stage, questions)
            emit({"ingested": told, "answers": list(answers), "processes": [first, second]})
            return
        name = file or "a built-in conversation"
        say(f"One process takes in {shown(str(name))} and ends; then a new process answers questions about it.")
        first = _take_in(stage, conversation)
        entries = _entries(stage)
        questions, are_made = _questions(ask, file, entries)
        if are_made:
            say(f"\nNo --ask was given, so up to {_QUESTIONS} questions are made from what was learned.")
        second = _answer(stage, questions)
        _show_inside(stage, entries)
        say(f"\nProcess {first} learned, process {second} answered; between them lay nothing but files.")
        _go_on(stage, is_kept=keep or root is not None)


def _questions(
    asked: Sequence[str] | None, file: Path | None, entries: Sequence[Mapping[str, Any]]
) -> tuple[list[_Question], bool]:
    """Return what is asked, and whether it was made from what was learned."""
    if asked:
        return [_Question(text=text) for text in asked], False
    if file:
        return _own_questions(entries), True
    return _known_questions(json.loads((_BUILT_IN / "questions.json").read_text(encoding="utf-8"))), False


def _stage(stack: ExitStack, root: Path | None, *, keep: bool) -> _Stage:
    """Return a place where neither the person's own memory nor their settings play a part."""
    if keep:
        folder = Path(mkdtemp(prefix="ricordo-demo-"))
    else:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="ricordo-demo-")))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RICORDO_")}
    environment |= {"RICORDO_DATA": str(folder / "data"), "RICORDO_CACHE": str(folder / "cache")}
    return _Stage(root=(root or folder / ".ricordo").absolute(), environment=environment)


def _taken_in(stage: _Stage, conversation: Path) -> tuple[int, Any]:
    return _run(stage, "ingest", str(conversation.absolute()), "--project", _PROJECT)


def _take_in(stage: _Stage, conversation: Path) -> int:
    process, told = _taken_in(stage, conversation)
    say(f"\n{bold(f'1. Taking in (process {process})')}")
    messages = told["messages"]
    say(f"   {counted(messages['read'], 'message')} in {counted(told['sessions'], 'session')}: {messages['new']:,} new")
    kinds = ", ".join(f"{count} {shown(kind)}" for kind, count in told["learned"].items())
    say(f"   learned {counted(told['entries'], 'entry', 'entries')}{f': {kinds}' if kinds else ''}")
    if told["problem_count"]:
        say(f"   skipped {counted(told['problem_count'], 'record')}")
    say("   wrote:")
    for path, weight in _written(stage.root):
        say(f"     {size(weight):>9}  {shown(path)}")
    return process


def _answers(stage: _Stage, questions: Sequence[_Question]) -> tuple[int, list[Any]]:
    first, *rest = questions
    also = [part for question in rest for part in ("--also", question.text)]
    process, told = _run(stage, "ask", first.text, *also)
    return process, [{key: value for key, value in told.items() if key != "also"}, *told.get("also", [])]


def _answer(stage: _Stage, questions: Sequence[_Question]) -> int:
    process, answers = _answers(stage, questions)
    say(f"\n{bold(f'2. Answering (process {process})')}")
    for question, answer in zip(questions, answers, strict=True):
        say(f"\n   {bold(shown(question.text))}")
        _print_answer(answer, stage)
    checked = [(question, answer) for question, answer in zip(questions, answers, strict=True) if question.is_checked]
    if checked:
        met = sum(question.is_met(answer) for question, answer in checked)
        say(f"\n   {met} of {len(checked)} answers hold the words that the demo's list of questions expects.")
    return process


def _print_answer(answer: Mapping[str, Any], stage: _Stage) -> None:
    hit = answer["hit"]
    if hit is None:
        say(f"   {shown(answer['text'])}")
        return
    content = hit["entry"]["content"].strip()
    say(wrapped(content if len(content) <= _LONGEST else f"{content[:_LONGEST]}…", "   "))
    place = f"{stage.root.name}/{hit['path']}:{hit['line']}"
    say(dim(f"   — {shown(place)}"))


def _show_inside(stage: _Stage, entries: Sequence[Mapping[str, Any]]) -> None:
    say(f"\n{bold('3. What is in the files')}")
    for entry in _one_of_each_kind(entries)[:_EXAMPLES]:
        say(wrapped(f"{entry['content']}", "     ", first=f"   [{shown(entry['kind'])}] "))
    places = list(_redacted(stage.root))
    for path, line, mark in places[:1]:
        say(f"\n   A secret was said. In its place stands {shown(mark)}")
        say(dim(f"   — {shown(path)}:{line}{f', and in {len(places) - 1} more lines' if len(places) > 1 else ''}"))


def _go_on(stage: _Stage, *, is_kept: bool) -> None:
    say(f"\n{bold('Go on')}")
    if is_kept:
        place = shown(str(stage.root))
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
    """Return the first question about each sort of thing, then the first that was never spoken of."""
    firsts: dict[str, _Question] = {}
    unknown: list[_Question] = []
    for each in listed:
        question = _Question(text=each["question"], expects=each["expects"], is_checked=True)
        if question.expects is None:
            unknown.append(question)
        else:
            firsts.setdefault(each["about"], question)
    return [*list(firsts.values())[: _ANSWERED - 1], *unknown[:1]]


def _own_questions(entries: Sequence[Mapping[str, Any]]) -> list[_Question]:
    """Return questions made from what was learned, one for each kind first."""
    from ricordo.language.words import content_words

    asked: list[_Question] = []
    for entry in _one_of_each_kind(entries):
        words = [word for word in dict.fromkeys(content_words(entry["content"])) if len(word) > 1][:5]
        if words and len(asked) < _QUESTIONS:
            asked.append(_Question(text=f"What was said about {' '.join(words)}?"))
    return asked or [_Question(text="What was this conversation about?")]


def _one_of_each_kind(entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the entries in rounds, in each the surest of every kind that is left."""
    seen: Counter[str] = Counter()
    rounds: list[tuple[int, Mapping[str, Any]]] = []
    for entry in sorted(entries, key=lambda each: -float(each["confidence"])):
        rounds.append((seen[entry["kind"]], entry))
        seen[entry["kind"]] += 1
    return [entry for _, entry in sorted(rounds, key=lambda row: row[0])]


def _written(root: Path) -> list[tuple[str, int]]:
    """Return the files with their sizes in bytes, transcripts as one."""
    found = sorted(path for path in (root / "workspace").rglob("*") if path.is_file())
    logs = [path for path in found if path.name.endswith(".log.jsonl")]
    hidden = {path for path in found if "/state/" in path.as_posix()}
    rows = [(_below(root, path), path.stat().st_size) for path in found if path not in {*logs, *hidden}]
    if logs:
        rows.append((f"{_below(root, logs[0].parent)}/ ({len(logs)} transcripts)", sum(p.stat().st_size for p in logs)))
    index = root / "memory_index.db"
    if index.is_file():
        rows.append((f"{_below(root, index)} (the index, a cache)", index.stat().st_size))
    return rows


def _redacted(root: Path) -> Iterator[tuple[str, int, str]]:
    """Give the places in the transcripts where a secret was replaced, and what stands there."""
    for path in sorted((root / "workspace").rglob("*.log.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
            if _MARK in line:
                start = line.index(_MARK)
                yield _below(root, path), number, line[start : line.find("]", start) + 1]


def _below(root: Path, path: Path) -> str:
    return path.relative_to(root.parent).as_posix()
