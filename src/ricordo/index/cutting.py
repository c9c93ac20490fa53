"""Cutting: which of many candidates are worth reading, told from their numbers alone.

Ranking looks at a candidate's text only where it may be among the best; the others are not even read. A candidate
that has to do with others is always kept: what is no entry, as sessions are judged by all that they hold; entries of
such a session; an entry that stands in several places; and one that took the place of another.

Invariant: what is left out is an entry that stands once, and it is no nearer than `unseen` tells.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ricordo.index.contract import Cut
from ricordo.index.corpus import ENTRY, Corpus
from ricordo.index.lexical import Found
from ricordo.index.postings import Array

__all__ = ["worth_reading"]


def worth_reading(
    corpus: Corpus, found: Sequence[Found], cut: Cut, successors: Collection[int]
) -> tuple[list[Found], float | None]:
    """Return what to read of what was found, and how near the nearest other is; None where there is none.

    `successors` are the numbers of entries that took the place of others.
    """
    if len(found) <= cut.least:
        return [*found], None
    near = np.array([_nearness(one.measured.signals, cut.weights) for one in found])
    rows = corpus.positions([one.number for one in found])
    least = np.partition(near, len(near) - cut.least)[len(near) - cut.least] - cut.leeway
    entry = (corpus["shape"][rows] & ENTRY) > 0
    keep = ~entry | (near >= least)
    if not np.all(entry):
        company = _companies(corpus, rows)
        keep |= np.isin(company, company[~entry])
    ids = corpus["entry"][rows]
    _, place, times = np.unique(ids, return_inverse=True, return_counts=True)
    keep |= (times[place] > 1) | (ids == 0)
    if successors:
        keep |= np.isin(corpus["number"][rows], [*successors])
    unseen = near[~keep]
    return [found[at] for at in np.flatnonzero(keep).tolist()], float(np.max(unseen)) if len(unseen) else None


def _companies(corpus: Corpus, rows: Array) -> Array:
    """Return a number for what each row stands among: its session, or else its document."""
    sessions, none = corpus["session"][rows], corpus.names["session"].get("", -1)
    companies: Array = np.where(sessions == none, -1 - corpus["document"][rows], sessions)
    return companies


def _nearness(signals: Mapping[str, float], weights: Mapping[str, float]) -> float:
    total = near = 0.0
    for name, weight in weights.items():
        if name in signals:
            near += weight * signals[name]
            total += weight
    return near / total if total else 0.0
