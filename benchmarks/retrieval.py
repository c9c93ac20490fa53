"""How well recall finds the turns that hold an answer: what is measured, and beside what.

    python benchmarks/retrieval.py [DATA ...] [--only NAME] [--arg KEY=VALUE ...]

Without DATA it is the project's own set. Each retriever is asked for turns (`index(items)`, `search(query, k, now)`);
the scores are shares in 0..1: R@k is the share of a question's evidence among the first k, any@k whether one piece is
there, all@k whether every piece is, NDCG@10 with binary gain, MRR one over the rank of the first piece. One line of
JSON comes for each retriever. `quality.py` writes the page.
"""

import argparse
import json
import math
import random
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from retrieval_adapter import as_items, factory
from retrieval_sets import NEVER, Haystack, Json, Question, load, load_own
from ricordo.language import content_words

__all__ = [
    "KS",
    "LEFT_OUT",
    "Asked",
    "PlainFts5",
    "Retriever",
    "evaluated",
    "interval",
    "main",
    "means",
    "run",
    "scores",
]

KS = (1, 5, 10, 20)
LEFT_OUT = frozenset({NEVER, "adversarial"})
"""Categories that no mean of recall counts: what they ask for was never said."""
_DEPTH = 50
_ROUNDS = 500


class Retriever(Protocol):
    """What is measured."""

    def index(self, items: Sequence[Mapping[str, str]]) -> None:
        """Take the turns of one haystack, in order of time."""
        ...

    def search(self, query: str, k: int, now: str | None = None) -> list[str]:
        """Return at most `k` ids of turns, best first."""
        ...


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question that was put to a haystack, and the scores of what came back, for turns and for sessions."""

    haystack: str
    question: Question
    turns: Mapping[str, float]
    sessions: Mapping[str, float]
    milliseconds: float


class PlainFts5:
    """The yardstick: FTS5 with its own tokenizer and stemmer over the bare turns, the words joined by OR."""

    def index(self, items: Sequence[Mapping[str, str]]) -> None:
        """Fill a table in memory."""
        self._ids = [item["id"] for item in items]
        self._table = sqlite3.connect(":memory:", check_same_thread=False)
        self._table.execute("CREATE VIRTUAL TABLE turn USING fts5 (body, tokenize = 'porter unicode61')")
        rows = [(item["text"],) for item in items]
        self._table.executemany("INSERT INTO turn (body) VALUES (?)", rows)

    def search(self, query: str, k: int, now: str | None = None) -> list[str]:
        """Return the ids of the turns in the order of bm25."""
        del now
        wanted = " OR ".join(f'"{word}"' for word in dict.fromkeys(content_words(query, "en")) if '"' not in word)
        if not wanted:
            return []
        sql = "SELECT rowid FROM turn WHERE turn MATCH ? ORDER BY bm25(turn) LIMIT ?"
        return [self._ids[row[0] - 1] for row in self._table.execute(sql, (wanted, k))]


def scores(ranked: Sequence[str], evidence: Iterable[str], ks: Sequence[int] = KS) -> dict[str, float]:
    """Return what a ranking without repeats is worth, given the labels of the evidence, of which there is one."""
    wanted = set(evidence)
    places = [place for place, label in enumerate(ranked) if label in wanted]
    found: dict[str, float] = {}
    for k in ks:
        among = sum(place < k for place in places)
        found |= {f"R@{k}": among / len(wanted), f"any@{k}": float(among > 0), f"all@{k}": float(among == len(wanted))}
    ideal = sum(1 / math.log2(place + 2) for place in range(min(10, len(wanted))))
    gain = sum(1 / math.log2(place + 2) for place in places if place < 10)
    return found | {"NDCG@10": gain / ideal, "MRR": 1 / (places[0] + 1) if places else 0.0}


def run(haystacks: Iterable[Haystack], make: Callable[[], Retriever], *, depth: int = _DEPTH) -> list[Asked]:
    """Put every question that has evidence to a retriever of its own for each haystack."""
    rows: list[Asked] = []
    for haystack in haystacks:
        wanted = [asked for asked in haystack.questions if asked.evidence and asked.category not in LEFT_OUT]
        if wanted:
            retriever = make()
            retriever.index(as_items(haystack))
            rows += [_asked(retriever, haystack, question, depth) for question in wanted]
    return rows


def evaluated(rows: Sequence[Asked]) -> dict[str, Json]:
    """Return the means of all questions and of each category and script, with the interval of the headline."""
    groups = {"category": sorted({row.question.category for row in rows})}
    groups["script"] = sorted({row.question.script for row in rows} - {""})
    times = sorted(row.milliseconds for row in rows)
    return {
        "questions": len(rows),
        "milliseconds_p50": round(statistics.median(times), 2),
        "milliseconds_p95": round(times[int(0.95 * (len(times) - 1))], 2),
        "turns": means([row.turns for row in rows]),
        "sessions": means([row.sessions for row in rows]),
        "interval": {key: interval(rows, key) for key in ("R@10", "NDCG@10")},
        **{
            kind: {
                name: {
                    "questions": sum(getattr(row.question, kind) == name for row in rows),
                    **means([row.turns for row in rows if getattr(row.question, kind) == name]),
                }
                for name in names
            }
            for kind, names in groups.items()
        },
    }


def means(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each score over the questions that have any; empty without one."""
    held = [row for row in rows if row]
    return {key: round(statistics.fmean(row[key] for row in held), 4) for key in held[0]} if held else {}


def interval(rows: Sequence[Asked], key: str) -> tuple[float, float]:
    """Return the 95 % interval of a mean, whole groups resampled: questions on one conversation are not independent.

    A group is a haystack, or a theme of the own set, by which the ids of its questions begin.
    """
    groups: dict[str, list[float]] = {}
    for row in rows:
        if row.turns:
            groups.setdefault(row.haystack + row.question.id.partition("/")[0], []).append(row.turns[key])
    dice = random.Random(7)
    drawn: list[float] = []
    names = sorted(groups)
    for _ in range(_ROUNDS):
        drawn += [statistics.fmean(value for _ in names for value in groups[dice.choice(names)])]
    drawn.sort()
    return round(drawn[int(_ROUNDS * 0.025)], 4), round(drawn[int(_ROUNDS * 0.975) - 1], 4)


def _asked(retriever: Retriever, haystack: Haystack, question: Question, depth: int) -> Asked:
    begun = time.perf_counter()
    ranked = list(dict.fromkeys(retriever.search(question.query, depth, question.now)))
    took = 1000 * (time.perf_counter() - begun)
    session_of = {turn.id: turn.session for turn in haystack.items}
    turns = [label for label in question.evidence if label in session_of]
    folded = dict.fromkeys(session_of[label] for label in ranked)
    sessions = dict.fromkeys(session_of.get(label, label) for label in question.evidence)
    return Asked(
        haystack=haystack.id, question=question, milliseconds=took, sessions=scores(list(folded), sessions),
        turns=scores(ranked, turns) if turns else {},
    )  # fmt: skip


def main() -> None:
    """Measure and print one line of JSON for each retriever."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="*")
    parser.add_argument("--only", choices=("ricordo", "fts5"))
    parser.add_argument("--arg", action="append", default=[], metavar="KEY=VALUE", help="an option of the adapter")
    given = parser.parse_args()
    options = dict(pair.split("=", 1) for pair in given.arg)
    haystacks = load(given.data) if given.data else load_own()
    made: dict[str, Callable[[], Retriever]] = {"fts5": PlainFts5, "ricordo": lambda: factory(**options)}
    for name, make in made.items():
        if given.only in {None, name}:
            json.dump({"retriever": name, **evaluated(run(haystacks, make))}, sys.stdout)
            print(flush=True)


if __name__ == "__main__":
    main()
