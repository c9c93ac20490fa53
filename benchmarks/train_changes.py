"""Train the model that tells whether a later statement changes an earlier one (`curation/change_model.py`).

    python benchmarks/train_changes.py [PATH ...] [--write]

Each path is one that `changes.py` reads; without one, the training conversations of
`benchmarks/learning` and `benchmarks/near_misses`. Prints how
many changes are found, and how many wrong ones, at several thresholds, each file judged by a model of the other files.
With `--write` the weights of all files are written into the package. The same input gives the same weights.
"""

import argparse
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from changes import Statement, find_corpus, read_streams
from ricordo.curation.change_model import change_features, have_different_subjects, read_statement

WEIGHTS = Path(__file__).parents[1] / "src" / "ricordo" / "curation" / "change_weights.json"
STRENGTH = 20.0
FOLDS = 6
STEPS = 12
THRESHOLDS = (2.0, 1.5, 1.2, 1.0, 0.8, 0.5, 0.0)
SMOOTHING = 20


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A later statement beside an earlier one that holds; `later` is the number of the later one in its file."""

    features: Mapping[str, float]
    is_change: bool
    later: int


def find_pairs(statements: Sequence[Statement]) -> tuple[list[Pair], int]:
    """Return the pairs that the model has to decide, and how many changes it never sees."""
    read = [read_statement(statement.text) for statement in statements]
    counts: Counter[str] = Counter()
    pairs: list[Pair] = []
    active: list[int] = []
    unreachable = 0
    for later, new in enumerate(statements):
        total = later + SMOOTHING

        def rarity(word: str, total: int = total) -> float:
            return math.log(total / (counts[word] + 1))

        for earlier in list(active):
            old = statements[earlier]
            is_same_key = bool(new.key) and new.key == old.key
            is_change = is_same_key and new.value != old.value
            if is_same_key:
                active.remove(earlier)
            if not read[later].subject & read[earlier].subject:
                unreachable += is_change
            elif have_different_subjects(new.text, old.text):
                # the rule decides, whatever the model says
                unreachable += is_change
            elif is_change or not is_same_key:
                features = change_features(
                    read[later], read[earlier], rarity, same_kind=new.kind == old.kind, same_day=new.day == old.day,
                    same_speaker=new.user == old.user,
                )  # fmt: skip
                pairs.append(Pair(features=features, is_change=is_change, later=later))
        active.append(later)
        counts.update(read[later].subject)
    return pairs, unreachable


def fit(pairs: Sequence[Pair]) -> dict[str, float]:
    """Return the weights of a logistic regression, by Newton's method on scaled features."""
    names = list(pairs[0].features)
    matrix, truth = _matrix(pairs, names), np.array([pair.is_change for pair in pairs], dtype=float)
    mean, scale = matrix.mean(axis=0), matrix.std(axis=0) + 1e-6
    scaled = np.c_[(matrix - mean) / scale, np.ones(len(pairs))]
    weights = np.zeros(len(names) + 1)
    penalty = np.eye(len(weights)) * STRENGTH
    penalty[-1, -1] = 1e-6
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-scaled @ weights))
        slope = scaled.T @ (chance - truth) + penalty @ weights
        curve = (scaled * (chance * (1 - chance))[:, None]).T @ scaled + penalty
        weights -= np.linalg.solve(curve, slope)
    plain = weights[:-1] / scale
    bias = weights[-1] - float(plain @ mean)
    return {
        "bias": round(float(bias), 4),
        **{name: round(float(value), 4) for name, value in zip(names, plain, strict=True)},
    }


def _matrix(pairs: Sequence[Pair], names: Sequence[str]) -> NDArray[np.float64]:
    return np.array([[pair.features[name] for name in names] for pair in pairs])


def cross_validate(files: Mapping[str, Sequence[Pair]]) -> list[tuple[float, bool]]:
    """Return the score of the best pair of each later statement, judged without its file, and whether it is right."""
    folds = [set(list(files)[number::FOLDS]) for number in range(FOLDS)]
    scored: list[tuple[float, bool]] = []
    for fold in folds:
        weights = fit([pair for name, pairs in files.items() if name not in fold for pair in pairs])
        for name in sorted(fold):
            best: dict[int, tuple[float, bool]] = {}
            for pair in files[name]:
                score = weights["bias"] + sum(weights[key] * value for key, value in pair.features.items())
                best[pair.later] = max(best.get(pair.later, (-math.inf, False)), (score, pair.is_change))
            scored += best.values()
    return scored


def main() -> None:
    """Print the table, and write the weights if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("paths", nargs="*", type=Path, default=find_corpus("train"))
    parser.add_argument("--write", action="store_true", help="write the weights into the package")
    args = parser.parse_args()
    read = {name: find_pairs(statements) for name, statements in read_streams(args.paths).items()}
    # in a conversation without a change nobody looked for changes
    files = {name: pairs for name, (pairs, _) in read.items() if any(pair.is_change for pair in pairs)}
    unreachable = sum(count for _, count in read.values())
    changes = unreachable + sum(pair.is_change for pairs in files.values() for pair in pairs)
    print(f"{len(files)} files, {changes} changes, {unreachable} of them without a shared word")
    scored = cross_validate(files)
    for threshold in THRESHOLDS:
        found = [is_right for score, is_right in scored if score >= threshold]
        print(f"{threshold:>6} found {sum(found):>4} wrong {len(found) - sum(found):>4}")
    if args.write:
        weights = fit([pair for pairs in files.values() for pair in pairs])
        WEIGHTS.write_text(json.dumps(weights, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
