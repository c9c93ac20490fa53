"""The page of the quality of recall: tables from the numbers that `quality.py` keeps, and charts of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from retrieval_sets import Json

__all__ = ["ABLATED", "WITH_MEANING", "draw", "page"]

ABLATED = ("R@10", "NDCG@10", "all@10")
"""The scores that are shown of each weight."""

WITH_MEANING = "Ricordo, static embedder"
"""What is found by words and by the embedder that comes as a package."""

_SCORES = ("R@1", "R@5", "R@10", "any@10", "all@10", "NDCG@10", "MRR")
_HEAD = """# How well recall finds things

Rendered by `python benchmarks/quality.py` from the numbers in `retrieval.json` beside it. All scores are per cent,
means over questions.

A question is labelled with the turns that answer it. **R@k** is the share of these turns among the first k hits,
**any@k** whether at least one is there, **all@k** whether every one is. The level is a single turn, unless
*session* is said: then the hits are folded to the sessions that they are from, which is far easier. The interval is
95 %, by drawing whole conversations (themes in the own set) again. No language model takes part, neither when
something is written nor when it is asked for.

*Ricordo* is `Memory.ingest` for every session and `Memory.search` for every question, over memories and
transcripts; a hit that is a memory counts as the message that it was learned from, once. 50 hits are asked for.
With the *static embedder* (the extra `embed`) it finds by meaning too; everything else goes by words alone.
*SQLite FTS5* is the yardstick: Porter's stemmer, the bare turns, the words joined by OR.
"""
_OWN = """
The project's own set lies in `benchmarks/retrieval_set/`: conversations with coding agents (code, paths, tool
output), with a personal assistant, and in teams, in English, Chinese, Russian and Hindi. It was written for this
project; half of its themes are held out, so no weight is chosen on them. CI holds floors a little below these
numbers (`tests/recall/test_recall_quality.py`). It is harder than it looks: in one question of eight the
evidence shares hardly a word with the question, and often the turn before holds the word that the answer lacks.
"""


def page(found: Mapping[str, Json]) -> str:
    """Return the page as Markdown."""
    parts = [_HEAD, _bars(found)]
    for name, made in found["sets"].items():
        parts.append(_set(name, made))
    if found.get("ablation"):
        parts.append(_ablation(found["ablation"]))
    return "\n".join(parts)


def draw(found: Mapping[str, Json], folder: Path) -> bool:
    """Write the charts as PNG; False where matplotlib is not there."""
    try:
        import matplotlib as mpl
    except ImportError:
        return False
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    sets = found["sets"]
    figure, axes = plt.subplots(1, len(sets), figsize=(5.2 * len(sets), 3.6), sharey=True, squeeze=False)
    for axis, (name, made) in zip(axes[0], sets.items(), strict=True):
        rows = {label: [100 * held["turns"][key] for key in _SCORES] for label, held in made["retrievers"].items()}
        _grouped(axis, _SCORES, rows, f"{_title(name)}: {_questions(made)} questions")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="lower center", ncols=len(rows), fontsize=8)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(folder / "retrieval-scores.png", dpi=110)
    figure, axes = plt.subplots(len(sets), 1, figsize=(9, 3.2 * len(sets)), squeeze=False)
    for axis, (name, made) in zip(axes[:, 0], sets.items(), strict=True):
        kinds = list(made["retrievers"]["Ricordo"]["category"])
        rows = {
            label: [100 * held["category"][kind]["R@10"] for kind in kinds]
            for label, held in made["retrievers"].items()
        }
        _grouped(axis, kinds, rows, f"{_title(name)}: R@10 by category")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="lower center", ncols=len(rows), fontsize=8)
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.savefig(folder / "retrieval-categories.png", dpi=110)
    return True


def _grouped(axis: Json, names: Sequence[str], rows: Mapping[str, Sequence[float]], title: str) -> None:
    width = 0.8 / len(rows)
    for number, (label, values) in enumerate(rows.items()):
        axis.bar([place + number * width for place in range(len(names))], values, width, label=label)
    axis.set_xticks([place + 0.4 - width / 2 for place in range(len(names))], names, fontsize=8)
    axis.set_ylim(0, 100)
    axis.set_title(title, fontsize=10)


def _bars(found: Mapping[str, Json]) -> str:
    told = "; ".join(
        f"{_title(name)}: R@10 {_cent(made['retrievers']['Ricordo']['turns']['R@10'])} with Ricordo, "
        f"{_cent(made['retrievers']['SQLite FTS5']['turns']['R@10'])} with FTS5"
        for name, made in found["sets"].items()
    )
    kinds = "![Bars of R@10 by category; the tables below have the numbers.](retrieval-categories.png)"
    return f"![Bars of all scores. {told}.](retrieval-scores.png)\n\n{kinds}\n"


def _set(name: str, made: Mapping[str, Json]) -> str:
    held = made["retrievers"]
    lines = [f"## {_title(name)}", _OWN if name == "own" else "", _about(made), ""]
    lines += _table(
        ("", *_SCORES, "session R@5", "session any@5"),
        [
            (
                label,
                *(_cent(of["turns"][key]) for key in _SCORES),
                *(_cent(of["sessions"][key]) for key in ("R@5", "any@5")),
            )
            for label, of in held.items()
        ],
    )
    low, high = held["Ricordo"]["interval"]["R@10"]
    lines += ["", f"The interval of Ricordo's R@10 is {_cent(low)} to {_cent(high)}."]
    if "never" in made:
        never = made["never"]
        lines += [f"Of {never['questions']} questions about what nobody said, `answer` answers {never['answered']}."]
    for label in ("Ricordo", WITH_MEANING):
        for kind in ("split", "category", "script"):
            rows = held.get(label, {}).get(kind) or {}
            if len(rows) > 1 and (kind != "script" or label == "Ricordo"):
                lines += ["", *_parts(f"{label}, by {'part' if kind == 'split' else kind}", rows)]
    return "\n".join([*lines, "", "```sh", made["command"], "```", ""])


def _parts(head: str, rows: Mapping[str, Mapping[str, float]]) -> list[str]:
    return _table(
        (head, "questions", *_SCORES),
        [(label, str(of.get("questions", "")), *(_cent(of[key]) for key in _SCORES)) for label, of in rows.items()],
    )


def _ablation(found: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]) -> str:
    lines = [
        "## What each weight is worth",
        "",
        "Each weight of `RecallConfig` is set to 0 in turn, the others stay. Shown is what that changes, in points,",
        "where ten hits are asked for, the most valuable first; a weight that is not named changes no ranking",
        "here, such as those of `answer`.",
    ]
    for embedder, sets in found.items():
        lines += ["", "By words alone:" if embedder == "none" else f"With the {embedder} embedder:", ""]
        lines += _weights(sets)
    return "\n".join([*lines, "", "```sh", "python benchmarks/quality.py --ablate", "```", ""])


def _weights(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[str]:
    sets = list(found)
    names = sorted({name for rows in found.values() for name in rows} - {"all"})
    head = ("without", *(f"{_title(of)}, {key}" for of in sets for key in ABLATED))
    every = (_cent(found[of]["all"][key]) for of in sets for key in ABLATED)
    rows: list[Sequence[str]] = [("nothing (all weights)", *every)]
    for name in sorted(names, key=lambda name: -sum(_loss(found[of], name, "R@10") for of in sets)):
        losses = (_loss(found[of], name, key) for of in sets for key in ABLATED)
        rows.append((f"`{name}`", *(_points(-loss) for loss in losses)))
    return _table(head, rows)


def _loss(rows: Mapping[str, Mapping[str, float]], name: str, key: str) -> float:
    return rows["all"][key] - rows.get(name, rows["all"])[key]


def _about(made: Mapping[str, Json]) -> str:
    many = f"{made['haystacks']} memories" if made["haystacks"] > 1 else "One memory"
    return f"{many}, {made['sessions']} sessions, {made['turns']:,} turns, {_questions(made)} questions with evidence."


def _questions(made: Mapping[str, Json]) -> int:
    return int(made["retrievers"]["Ricordo"]["questions"])


def _title(name: str) -> str:
    return "The own set" if name == "own" else name


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]


def _points(change: float) -> str:
    shown = f"{100 * change:+.1f}"
    return "0.0" if float(shown) == 0 else shown


def _cent(share: float) -> str:
    return f"{100 * share:.1f}"
