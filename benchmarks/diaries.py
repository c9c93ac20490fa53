"""How much of months of conversations a memory keeps: `python benchmarks/diaries.py [--diary NAME] [--floors]`.

Each folder below `benchmarks/diaries` is a diary: sessions with an assistant, and labels that say what a careful reader
would keep of them. The script checks the labels, lets Ricordo live each diary by its public API under a clock that
stands at the end of each session, reads the curated memory, asks the questions, and counts.

`--check` only checks the labels. `--floors` compares with `floors.json`; the exit code is 1 if a number is worse.
`--lines` prints each line of curated memory behind the labels that it says, but not for a diary that is held out.
`--write` keeps the numbers in docs/benchmarks/diaries.json and renders the page beside it. `--root FOLDER` keeps the
memories there to be read. With `--model`, a model that knows the labels extracts and advises consolidation (see
`perfect_model.py`): what is lost with it, no model could save.
"""

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path

import anyio

from diaries_page import write_page
from diary_labels import (
    CLASSES,
    KINDS,
    Diary,
    Item,
    Json,
    Mention,
    Question,
    find_problems,
    plain_text,
    read_diary,
    says,
)
from perfect_model import make_perfect_model
from ricordo import FlushConfig, Memory, Message, Scope, read_history
from ricordo.curation.config import ConsolidationConfig
from ricordo.models import ChatModel
from ricordo.runtime.settings import Settings

__all__ = [
    "CLASSES",
    "KINDS",
    "Diary",
    "Item",
    "Life",
    "Mention",
    "Question",
    "find_problems",
    "find_shortfalls",
    "judge_answer",
    "judge_hits",
    "label_line",
    "live",
    "main",
    "read_diary",
    "says",
    "score",
]

FOLDER = Path(__file__).parent / "diaries"
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "diaries.md"
HITS = 10
DRAIN_SECONDS = 60
OPEN_BEFORE = timedelta(hours=1)
AT_MOST = (
    "noise kept",
    "planted instructions kept",
    "lines said twice",
    "stale first in recall",
    "stale first in search",
)

EXCERPT = 40

_ID = re.compile(r" \^[0-9a-z]{26}$")
_OLD = re.compile(
    r"supersed|replaced|outdated|no longer|not any ?more|former|previous|used to|until|was |were |instead of|"
    r"rather than|früher|nicht mehr|bisher|statt|war |不再|以前|之前|原来|改成|改为|换成|换到|而不是"
)
"""Marks by which a statement says of itself that its value is an old one."""


@dataclass(kw_only=True)
class Life:
    """What a memory holds and says after a diary: lines of curated memory, and the texts found for each question."""

    lines: list[str] = field(default_factory=list)
    recalled: dict[str, list[str]] = field(default_factory=dict)
    searched: dict[str, list[str]] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)


# Living --------------------------------------------------------------------------------------------------------------


class SessionClock:
    """A clock that is set by hand to the end of a session, and goes on from there."""

    def __init__(self, moment: datetime) -> None:
        self.moment, self.since = moment, time.monotonic()

    def now(self) -> datetime:
        """Return the moment it was set to and what has passed since, in milliseconds."""
        return self.moment + timedelta(milliseconds=int((time.monotonic() - self.since) * 1000))

    def today(self) -> date:
        """Return the date of `now`."""
        return self.now().date()


@dataclass(frozen=True, kw_only=True)
class _Session:
    name: str
    end: datetime
    messages: list[Message]


def live(diary: Diary, folder: Path, *, embedder: str = "static", model: ChatModel | None = None) -> Life:
    """Let a memory in `folder` take in the sessions of a diary one by one, then ask it the questions.

    With a `model`, it extracts and advises consolidation.
    """
    os.environ["RICORDO_DATA"] = str(folder / "data")
    life = anyio.run(_live, diary, _read_sessions(diary), folder / "root", embedder, model)
    life.lines = [*read_curated_lines(folder), *life.lines]
    return life


async def _live(diary: Diary, sessions: Sequence[_Session], root: Path, embedder: str, model: ChatModel | None) -> Life:
    scope, life, settings = Scope(user="me", project=diary.name), Life(), None
    if model:
        settings = replace(
            Settings.from_environment(),
            flush=FlushConfig(model=model),
            consolidation=ConsolidationConfig(model=model),
        )
    open_memory = partial(Memory.open, root, scope=scope, settings=settings, embedder=embedder)
    for session in sessions:
        # a model advises when enough time has passed since memory was opened, and not when it is closed
        clock = SessionClock(session.end - OPEN_BEFORE if model else session.end)
        async with open_memory(clock=clock) as memory:
            if model:
                await memory.drain(seconds=DRAIN_SECONDS)
                clock.moment = session.end
            await memory.ingest(session.messages, session=session.name)
            await memory.drain(seconds=DRAIN_SECONDS if model else 0)
    async with open_memory(clock=clock) as memory:
        await memory.drain(seconds=DRAIN_SECONDS if model else 0)
        await memory.embed()
        life.lines = [fact.content for fact in (await memory.profile().facts()).facts]
        for question in diary.questions:
            answer = await memory.answer(question.query)
            life.answers[question.id] = answer.text if answer.found else ""
            recalled = await memory.recall(question.query, limit=HITS)
            life.recalled[question.id] = [hit.entry.content for hit in recalled]
            searched = await memory.search(question.query, limit=HITS)
            life.searched[question.id] = [f"{hit.speaker}: {hit.entry.content}" for hit in searched]
    return life


def _read_sessions(diary: Diary) -> list[_Session]:
    """Return the sessions in order; each ends a minute after its last message. Raises: ValueError for a broken line."""
    sessions = []
    for file in sorted((diary.folder / "sessions").glob("*.jsonl")):
        messages = [each.message for each in read_history(file, on_problem=_refuse)]
        last = json.loads(file.read_text("utf-8").splitlines()[-1])
        end = datetime.fromisoformat(last["time"]) + timedelta(minutes=1)
        sessions.append(_Session(name=file.stem, end=end, messages=messages))
    return sessions


def _refuse(problem: object) -> None:
    raise ValueError(str(problem))


def read_curated_lines(folder: Path) -> list[str]:
    """Return the bullets of MEMORY.md and of the topics below a folder, without their ids."""
    files = [*folder.rglob("MEMORY.md"), *folder.rglob("memory/topics/*.md")]
    bullets: list[str] = []
    for file in sorted(files):
        in_bullet = False
        for line in re.sub(r"<!--.*?-->", "", file.read_text("utf-8"), flags=re.DOTALL).splitlines():
            if line.startswith("- "):
                bullets.append(line)
                in_bullet = True
            elif in_bullet and line.startswith("  "):
                bullets[-1] += " " + line.strip()
            else:
                in_bullet = False
    return [_ID.sub("", bullet[2:]) for bullet in bullets]


# Judging -------------------------------------------------------------------------------------------------------------


def score(diary: Diary, life: Life) -> Json:
    """Return what holds, by measure: each is `[how many, of how many]`; `details` names what is missing or wrong."""
    measures, details = _score_memory(diary, life.lines)
    for name, found in (("recall", life.recalled), ("search", life.searched)):
        ranks: dict[str, int] = {}
        stale = []
        asked = [question for question in diary.questions if question.gold]
        for question in asked:
            ranks[question.id], is_stale = judge_hits(diary, question, found.get(question.id, []))
            stale += [question.id] if is_stale else []
        measures[f"{name} hit@1"] = [sum(rank == 1 for rank in ranks.values()), len(asked)]
        measures[f"{name} hit@{HITS}"] = [sum(bool(rank) for rank in ranks.values()), len(asked)]
        measures[f"stale first in {name}"] = [len(stale), len(asked)]
        details[f"not in {name}"] = [name for name, rank in ranks.items() if not rank]
        details[f"stale first in {name}"] = stale
    right = {
        question.id: judge_answer(diary, question, life.answers.get(question.id, "")) for question in diary.questions
    }
    negative = {question.id for question in diary.questions if not question.gold}
    measures["ask right"] = [sum(right[name] for name in right if name not in negative), len(right) - len(negative)]
    measures["ask silent"] = [sum(right[name] for name in negative), len(negative)]
    details["ask wrong"] = [name for name, answer in life.answers.items() if answer and not right[name]]
    return {"lines": len(life.lines), "measures": measures, "details": details}


def _score_memory(diary: Diary, lines: Sequence[str]) -> tuple[dict[str, list[int]], dict[str, list[str]]]:
    current = [item for item in diary.items.values() if diary.is_current(item)]
    kept = {item.id for item in diary.items.values() if any(says(item.keys, line) for line in lines)}
    noise = [each.id for each in diary.noise if any(says(each.keys, line) for line in lines)]
    planted = [each.id for each in diary.planted if any(says(each.keys, line) for line in lines)]
    noisy = {line for line in lines if any(says(each.keys, line) for each in (*diary.noise, *diary.planted))}
    labelled = [line for line in lines if line not in noisy and any(says(i.keys, line) for i in diary.items.values())]
    replaced = [item for item in diary.items.values() if any(diary.successors(item))]
    held = [item.id for item in replaced if _is_change_held(diary, item, lines)]
    measures = {"labelled items": [sum(item.id in kept for item in current), len(current)]}
    for kind in CLASSES:
        of_kind = [item.id for item in current if item.kind == kind]
        measures[kind] = [len(kept.intersection(of_kind)), len(of_kind)]
    measures["changes held"] = [len(held), len(replaced)]
    measures["noise kept"] = [len(noise), len(diary.noise)]
    measures["planted instructions kept"] = [len(planted), len(diary.planted)]
    measures["lines with a label"] = [len(labelled), len(lines)]
    measures["lines said twice"] = [len(lines) - len({plain_text(line) for line in lines}), len(lines)]
    details = {
        "missing": [item.id for item in current if item.id not in kept],
        "changes missed": [item.id for item in replaced if item.id not in held],
        "noise kept": noise,
        "planted instructions kept": planted,
    }
    return measures, details


def _is_change_held(diary: Diary, item: Item, lines: Sequence[str]) -> bool:
    """Return whether a later value is kept, and no line gives the old one as if it still held."""
    later = [*diary.successors(item)]
    has_new = any(says(each.keys, line) for each in later for line in lines)
    return has_new and not any(
        says(item.keys, line) and not _OLD.search(line.casefold()) and not any(says(each.keys, line) for each in later)
        for line in lines
    )


def judge_hits(diary: Diary, question: Question, hits: Sequence[str]) -> tuple[int, bool]:
    """Return the rank by which hits answer a question, 0 if they do not, and whether another version came before.

    Several gold items may be in several hits: the rank is that of the last one.
    """
    gold = [diary.items[name] for name in question.gold]
    others = [other for item in gold for other in diary.other_versions(item)]
    left = {item.id for item in gold}
    stale = False
    for rank, text in enumerate(hits, 1):
        found = {item.id for item in gold if says(item.keys, text)}
        left -= found
        if not left:
            return rank, stale
        stale = stale or (not found and any(says(other.keys, text) for other in others))
    return 0, stale


def judge_answer(diary: Diary, question: Question, answer: str) -> bool:
    """Return whether an answer, read below its question, says all that is asked, and no other version before it.

    To a negative question silence is right.
    """
    if not question.gold:
        return not answer
    lines = [f"{question.query} {line}" for line in answer.splitlines()]
    rank, is_stale = judge_hits(diary, question, lines)
    return bool(rank) and not is_stale


def find_shortfalls(measures: Mapping[str, Sequence[int]], floors: Mapping[str, float]) -> list[str]:
    """Return which measures are worse than their floors, as sentences; floors are shares of the measure's whole.

    Of `AT_MOST` the floor is the largest share allowed, of all others the smallest. Raises: KeyError for a floor of
    no measure.
    """
    shortfalls = []
    for name, floor in floors.items():
        part, whole = measures[name]
        share = part / whole if whole else 0.0
        if (share > floor) if name in AT_MOST else (share < floor):
            wanted = "at most" if name in AT_MOST else "at least"
            shortfalls.append(f"{name}: {part} of {whole} ({share:.3f}), {wanted} {floor:.3f} is wanted")
    return shortfalls


# The command line ----------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, live and judge the diaries; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = sorted(path.parent.name for path in FOLDER.glob("*/labels.json"))
    parser.add_argument("--diary", action="append", choices=every, help="a name; every one by default")
    parser.add_argument("--embedder", default="static")
    parser.add_argument("--root", type=Path)
    for option in ("check", "json", "lines", "floors", "model", "write"):
        parser.add_argument(f"--{option}", action="store_true")
    given = parser.parse_args(arguments)
    if given.write and given.diary and not given.model:
        parser.error("The page is about every diary: give --write without --diary.")
    diaries = [read_diary(FOLDER / name) for name in given.diary or every]
    if given.root and any((given.root / diary.name).exists() for diary in diaries):
        parser.error(f"{given.root} holds the memory of an earlier run: give another folder.")
    problems = [f"{diary.name}: {problem}" for diary in diaries for problem in find_problems(diary)]
    print("".join(f"{problem}\n" for problem in problems), end="", file=sys.stderr)
    if given.check or problems:
        return bool(problems)
    reports = {diary.name: _live_and_score(diary, given) for diary in diaries}
    if given.json:
        print(json.dumps(reports, indent=1, ensure_ascii=False))
    else:
        for name, report in reports.items():
            print("\n".join(describe(name, report)))
    if given.write:
        write_page(PAGE, reports, with_model=given.model)
    failed = False
    if given.floors:
        floors = json.loads((FOLDER / "floors.json").read_text("utf-8"))
        for name, report in reports.items():
            for shortfall in find_shortfalls(
                report["measures"], floors[f"{name} with a model" if given.model else name]
            ):
                print(f"{name}: {shortfall}", file=sys.stderr)
                failed = True
    return failed


def _live_and_score(diary: Diary, given: argparse.Namespace) -> Json:
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.root or Path(temporary)) / diary.name
        folder.mkdir(parents=True)
        model = make_perfect_model(diary) if given.model else None
        life = live(diary, folder, embedder=given.embedder, model=model)
        sessions = len({place.split(":")[0] for place in diary.messages})
        about = {"held_out": diary.held_out, "sessions": sessions, "messages": len(diary.messages)}
        report = {**about, **score(diary, life), "excerpt": []}
        if diary.held_out:
            return {**report, "details": {}}
        if given.lines:
            report["details"]["curated memory"] = [f"\n    {label_line(diary, line)}" for line in life.lines]
        return {**report, "excerpt": _read_excerpt(folder)}


def label_line(diary: Diary, line: str) -> str:
    """Return a line behind the ids of the items, the noise and the planted instructions that it says."""
    labels = (*diary.items.values(), *diary.noise, *diary.planted)
    return f"[{' '.join(each.id for each in labels if says(each.keys, line))}] {line}"


def _read_excerpt(folder: Path) -> list[str]:
    (file,) = folder.rglob("MEMORY.md")
    return [_ID.sub("", line) for line in file.read_text("utf-8").splitlines()[:EXCERPT]]


def describe(name: str, report: Json) -> Iterator[str]:
    """Yield the lines that tell of a report on the terminal; of a diary that is held out the numbers alone."""
    yield f"{name}: {report['lines']} lines of curated memory"
    for measure, (part, whole) in report["measures"].items():
        share = f"{part / whole:.2f}" if whole else "-"
        yield f"  {measure:28} {part:4} of {whole:<4} {share}"
    for detail, ids in report["details"].items():
        yield f"  {detail}: {' '.join(ids) or 'none'}"


if __name__ == "__main__":
    sys.exit(main())
