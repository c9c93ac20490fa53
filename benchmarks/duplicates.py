"""How well two statements are told to say the same: precision and recall over thresholds, on labelled pairs.

    python benchmarks/duplicates.py [--wrong]

Prints a table for the pairs that the rules were tuned on and one for those that were held out; with `--wrong` also
which pairs of the former are told wrong.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ricordo.language.duplicates import DUPLICATE_THRESHOLD, is_same_statement

PAIRS = Path(__file__).parents[1] / "tests" / "language" / "statement_pairs"
THRESHOLDS = (0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 1.0)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two statements, and whether a person takes them for the same."""

    same: bool
    language: str
    one: str
    other: str


@dataclass(frozen=True, kw_only=True)
class Score:
    """How many were found, wrongly found and missed."""

    found: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        """The share of what was found that is right; 1 when nothing was found."""
        return self.found / (self.found + self.wrong) if self.found + self.wrong else 1.0

    @property
    def recall(self) -> float:
        """The share of what is the same that was found."""
        return self.found / (self.found + self.missed) if self.found + self.missed else 1.0


def read_pairs(name: str) -> tuple[Pair, ...]:
    """Return the pairs of `tuned` or `held_out`."""
    lines = (PAIRS / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return tuple(_pair(line) for line in lines if line.startswith(("=", "!")))


def score(pairs: Sequence[Pair], threshold: float = DUPLICATE_THRESHOLD) -> Score:
    """Return how the pairs are told at a threshold."""
    told = [(pair.same, is_same_statement(pair.one, pair.other, threshold=threshold)) for pair in pairs]
    return Score(found=told.count((True, True)), wrong=told.count((False, True)), missed=told.count((True, False)))


def tables() -> str:
    """Return a table for each set of pairs; the threshold that holds is marked."""
    lines: list[str] = []
    for name in ("tuned", "held_out"):
        pairs = read_pairs(name)
        lines += [
            f"{name}: {len(pairs)} pairs, {sum(pair.same for pair in pairs)} of them the same",
            f"{'threshold':>10}{'precision':>11}{'recall':>8}{'found':>7}{'wrong':>7}{'missed':>8}",
        ]
        for threshold in THRESHOLDS:
            one = score(pairs, threshold)
            mark = " *" if threshold == DUPLICATE_THRESHOLD else ""
            told = f"{threshold:>10.2f}{one.precision:>11.3f}{one.recall:>8.3f}"
            lines.append(f"{told}{one.found:>7}{one.wrong:>7}{one.missed:>8}{mark}")
    return "\n".join(lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--wrong", action="store_true", help="show which of the tuned pairs are told wrong")
    given = parser.parse_args()
    print(tables())
    for pair in read_pairs("tuned") if given.wrong else ():
        if is_same_statement(pair.one, pair.other) != pair.same:
            print("missed" if pair.same else "wrong ", pair.language, "|", pair.one, "|", pair.other)


def _pair(line: str) -> Pair:
    head, one, other = (part.strip() for part in line.split("|"))
    sign, language = head.split()
    return Pair(same=sign == "=", language=language, one=one, other=other)


if __name__ == "__main__":
    main()
