"""The page of the speed of a memory: tables of the numbers that `speed.py` keeps, and a chart of them."""

from collections.abc import Mapping
from pathlib import Path

from retrieval_sets import Json

__all__ = ["draw", "page"]

_KINDS = {"words": "By words", "both": "By words and meaning, static embedder"}
_ROWS = {
    "recall ms": "recall, ten hits: median, ms",
    "recall p95 ms": "95th percentile, ms",
    "recall cpu ms": "median of the processor time, ms",
    "add ms": "add: durable and found when it returns, median, ms",
    "reopen ms": "opening and the first recall, ms",
    "reopen cpu ms": "processor time of that, ms",
    "rebuild s": "the index made from the files, s",
    "rebuild cpu s": "processor time of that, s",
}
_HEAD = """# How fast a memory is

Rendered by `python benchmarks/speed.py` from the numbers in `speed.json` beside it. All of it goes through the public
API: `Memory.open`, `Memory.recall`, `Memory.remember`, over made-up entries of 80 to 400 characters; a question is
five to eight words of one of them. Recalls are warm. Processor time is that of all threads of this process, which
a busy machine does not lengthen. *SQLite FTS5* is its own ranking of the same texts, without what memory adds (files as
the truth, filters, neighbours, what holds now). A *bare add* is an append with fsync and one commit in SQLite.
"""


def page(found: Mapping[str, Json]) -> str:
    """Return the page as Markdown."""
    sizes = found["sizes"]
    lines = [_HEAD, f"The machine had {found['cores']} cores, and a load of {found['load']:.2f} when this ended.", ""]
    lines += [f"![Bars of the time of a recall; {_told(found)}.](speed-recall.png)", ""]
    for kind, title in _KINDS.items():
        if any(f"{kind}, recall ms" in figures for figures in sizes.values()):
            rows = [
                (label, *(_number(of.get(f"{kind}, {key}")) for of in sizes.values())) for key, label in _ROWS.items()
            ]
            lines += [f"## {title}", "", *_table(("", *(f"{int(size):,}" for size in sizes)), rows), ""]
    beside = {"FTS5 ms": "SQLite FTS5, ten rows, median, ms", "bare add ms": "bare add, median, ms"}
    rows = [(label, *(_number(of.get(key)) for of in sizes.values())) for key, label in beside.items()]
    lines += ["## Beside them", "", *_table(("", *(f"{int(size):,}" for size in sizes)), rows), ""]
    return "\n".join([*lines, "```sh", "python benchmarks/speed.py", "```", ""])


def draw(found: Mapping[str, Json], folder: Path) -> bool:
    """Write the chart as PNG; False where matplotlib is not there."""
    try:
        import matplotlib as mpl
    except ImportError:
        return False
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    bars = {"words, recall ms": "by words", "both, recall ms": "by words and meaning", "FTS5 ms": "SQLite FTS5"}
    figure, axis = plt.subplots(figsize=(7, 3.4))
    places = range(len(found["sizes"]))
    for number, (key, label) in enumerate(bars.items()):
        heights = [figures.get(key, 0.0) for figures in found["sizes"].values()]
        axis.bar([place + 0.27 * number for place in places], heights, 0.27, label=label)
    axis.set_xticks([place + 0.27 for place in places], [f"{int(size):,}" for size in found["sizes"]])
    axis.set_yscale("log")
    axis.set_ylabel("ms, median")
    axis.set_xlabel("entries")
    axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(folder / "speed-recall.png", dpi=110)
    return True


def _told(found: Mapping[str, Json]) -> str:
    return "; ".join(
        f"{int(size):,} entries: {figures['words, recall ms']:.2f} ms by words, {figures['FTS5 ms']:.2f} ms with FTS5"
        for size, figures in found["sizes"].items()
    )


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in (head, ("---",) * len(head), *rows)]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"
