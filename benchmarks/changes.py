"""How well a later statement takes the place of the one that it changes, with a perfect extractor in front.

    python benchmarks/changes.py [PATH ...] [--wrong]

Each path is a labelled conversation (`*.txt`), a folder of them, or the `expect.json` of a diary; without one, the
held-out conversations of `benchmarks/learning` and `benchmarks/near_misses`. Every labelled statement is fed, day by
day, straight to consolidation. A change is held when the statement with the earlier value of a key is superseded, and
marked when that statement is said to be maybe outdated; a replacement or a mark is wrong when it joins two keys.

A sentence of the person (`U:`) has its label behind it, `[F:port=8080]`: F fact, D decision, R rule, P preference,
L lesson, C correction, A answer to the question before it; what has another letter is not kept. The key names what
the value is one of. A line `# 2026-01-05` begins a session.
"""

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from ricordo.curation.config import ConsolidationConfig
from ricordo.curation.contradictions import link_fields, with_links
from ricordo.curation.reconciliation import reconcile
from ricordo.curation.types import CandidateEntry, Reconciliation
from ricordo.scope import Scope
from ricordo.workspace.entry import Entry

FOLDERS = tuple(Path(__file__).with_name(name) for name in ("near_misses", "learning"))
KINDS = {
    "F": "fact",
    "D": "decision",
    "R": "convention",
    "P": "preference",
    "L": "lesson",
    "C": "fact",
    "A": "fact",
}
_LABEL = re.compile(r"\s*\[([A-Z])(?::([^\]=]+)(?:=([^\]]*))?)?\]\s*")
_SPEAKER = re.compile(r"^(?:U|A|R)(?:@(?P<name>[^:]+))?:\s*")


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A labelled statement: `key` names what it says the `value` of, empty where it can't change."""

    text: str
    day: date
    kind: str = "fact"
    key: str = ""
    value: str = ""
    user: str | None = None


@dataclass(kw_only=True)
class Outcome:
    """Counts of one stream of statements; `changes` are pairs of an earlier and a later statement."""

    held: list[tuple[Statement, Statement]] = field(default_factory=list)
    marked: list[tuple[Statement, Statement]] = field(default_factory=list)
    missed: list[tuple[Statement, Statement]] = field(default_factory=list)
    wrong: list[tuple[Statement, Statement]] = field(default_factory=list)
    wrongly_marked: list[tuple[Statement, Statement]] = field(default_factory=list)
    undecided: int = 0

    def __add__(self, other: "Outcome") -> "Outcome":
        """Return the counts of both."""
        return Outcome(
            held=self.held + other.held,
            marked=self.marked + other.marked,
            missed=self.missed + other.missed,
            wrong=self.wrong + other.wrong,
            wrongly_marked=self.wrongly_marked + other.wrongly_marked,
            undecided=self.undecided + other.undecided,
        )


def read_conversation(path: Path) -> list[Statement]:
    """Return the statements of a labelled conversation that are worth keeping; an answer follows its question."""
    day, question, statements = date(2026, 1, 1), "", []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            day = date.fromisoformat(line[2:12])
        elif match := _SPEAKER.match(line):
            body = line[match.end() :]
            if not line.startswith("R"):
                statements += list(_read_message(body, day, question, match["name"]))
            if line.startswith("A"):
                question = _last_question(_LABEL.sub(" ", body))
    return statements


def _read_message(body: str, day: date, question: str, user: str | None) -> Iterator[Statement]:
    start = 0
    for match in _LABEL.finditer(body):
        text, start = body[start : match.start()].strip(), match.end()
        if match[1] in KINDS and text:
            text = f"User, asked “{question}”: {text}" if match[1] == "A" and question else text
            yield Statement(
                text=text, day=day, kind=KINDS[match[1]], key=(match[2] or "").strip(), value=(match[3] or "").strip(),
                user=user,
            )  # fmt: skip


def _last_question(text: str) -> str:
    found = re.findall(r"[^.!?。！？]*[?？]", text)
    return found[-1].strip() if found else ""


def read_diary(path: Path) -> list[Statement]:
    """Return the labelled items of a diary, those that change with their first form as the key."""
    items = json.loads(path.read_text(encoding="utf-8"))["items"]
    before = {item["superseded_by"]: item["id"] for item in items if item.get("superseded_by")}

    def first(name: str) -> str:
        while name in before:
            name = before[name]
        return name

    return [
        Statement(
            text=item["text"], day=date.fromisoformat(item["said_on"]), kind=item["kind"], key=first(item["id"]),
            value=item["id"], user=item["speakers"][0] if item.get("speakers") else None,
        )
        for item in sorted(items, key=lambda item: item["said_on"] or "")
        if item.get("said_on") and item.get("text")
    ]  # fmt: skip


def replay(statements: Sequence[Statement]) -> Outcome:
    """Feed the statements to consolidation day by day, and count."""
    by_id: dict[str, Statement] = {}
    active: dict[str, CandidateEntry] = {}
    gone: dict[str, str] = {}
    outcome = Outcome()
    config = ConsolidationConfig(max_superseded=1_000)
    for day in sorted({statement.day for statement in statements}):
        fresh = []
        for at, statement in enumerate(each for each in statements if each.day == day):
            name = f"s{len(by_id):05}"
            by_id[name] = statement
            moment = datetime(day.year, day.month, day.day, 9, tzinfo=UTC) + timedelta(seconds=at)
            entry = Entry(
                content=statement.text, kind=statement.kind, id=name, time=moment, by="user",
                scope=Scope(user=statement.user) if statement.user else None,
            )  # fmt: skip
            fresh.append(CandidateEntry(entry=entry))
        done = reconcile(list(active.values()), fresh, fixed=(), config=config)
        active = {
            name: replace(one, entry=with_links(one.entry, link_fields(newer=_find_newer(done, name))))
            for name, one in done.active.items()
        }
        gone |= {one.old: one.new for one in done.superseded}
        outcome.undecided += len(done.undecided)
    marks = {name: one.entry.maybe_outdated_by for name, one in active.items() if one.entry.maybe_outdated_by}
    _judge(by_id, gone, marks, outcome)
    return outcome


def _find_newer(done: Reconciliation, name: str) -> Entry | None:
    """Return the entry that may have made this one outdated."""
    return done.active[done.outdated[name]].entry if name in done.outdated else None


def _judge(by_id: dict[str, Statement], gone: dict[str, str], marks: dict[str, str], outcome: Outcome) -> None:
    last: dict[str, str] = {}
    for name, statement in by_id.items():
        if not statement.key:
            continue
        earlier = last.get(statement.key)
        if earlier and by_id[earlier].value != statement.value:
            pair = by_id[earlier], statement
            if _same_key(by_id, gone.get(earlier), statement.key):
                outcome.held.append(pair)
            elif _same_key(by_id, marks.get(earlier), statement.key):
                outcome.marked.append(pair)
            else:
                outcome.missed.append(pair)
        last[statement.key] = name
    outcome.wrong += _find_wrong(by_id, gone)
    outcome.wrongly_marked += _find_wrong(by_id, marks)


def _find_wrong(by_id: dict[str, Statement], newer: dict[str, str]) -> list[tuple[Statement, Statement]]:
    """Return the pairs of an earlier and a newer statement that are not about one key."""
    return [
        (by_id[old], by_id[new])
        for old, new in newer.items()
        if not (by_id[old].key and by_id[old].key == by_id[new].key)
    ]


def _same_key(by_id: dict[str, Statement], name: str | None, key: str) -> bool:
    return name is not None and by_id[name].key == key


def find_corpus(part: str) -> list[Path]:
    """Return the folders of the labelled conversations of a part, `train` or `test`."""
    return [folder / part for folder in FOLDERS if (folder / part).is_dir()]


def read_streams(paths: Iterable[Path]) -> dict[str, list[Statement]]:
    """Return the statements of each file by its name."""
    files = [file for path in paths for file in (sorted(path.rglob("*.txt")) if path.is_dir() else [path])]
    return {
        f"{file.parent.name}/{file.stem}": read_diary(file) if file.suffix == ".json" else read_conversation(file)
        for file in files
    }


def main() -> None:
    """Print a row for each file, and the sum."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("paths", nargs="*", type=Path, default=find_corpus("test"))
    parser.add_argument("--wrong", action="store_true", help="print what was missed and what was wrongly replaced")
    args = parser.parse_args()
    total = Outcome()
    print(
        f"{'file':<40}{'statements':>11}{'changes':>9}{'held':>6}{'wrong':>7}{'marked':>8}{'wrong':>7}{'undecided':>11}"
    )
    for name, statements in read_streams(args.paths).items():
        one = replay(statements)
        total += one
        print(_row(name, len(statements), one))
        if args.wrong:
            print("\n".join(_details(one)))
    print(_row("all", 0, total))


def _row(name: str, count: int, one: Outcome) -> str:
    changes = len(one.held) + len(one.marked) + len(one.missed)
    decided = f"{len(one.held):>6}{len(one.wrong):>7}{len(one.marked):>8}{len(one.wrongly_marked):>7}"
    return f"{name:<40}{count:>11}{changes:>9}{decided}{one.undecided:>11}"


def _details(one: Outcome) -> list[str]:
    rows = (
        ("held", one.held),
        ("marked", one.marked),
        ("missed", one.missed),
        ("WRONG", one.wrong),
        ("WRONG MARK", one.wrongly_marked),
    )
    return [
        f"    {label}: {old.text!r} ({old.key}) -> {new.text!r} ({new.key})"
        for label, pairs in rows
        for old, new in pairs
    ]


if __name__ == "__main__":
    main()
