"""The page of Ricordo beside other memories: tables of one run from the numbers that `peer_adapter.py` keeps."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from retrieval_sets import Json

__all__ = ["draw", "page"]

_OWN = "ricordo"
_COMPARED = "ricordo_hybrid"
_TIMES = ("search_p50_ms", "search_cpu_p50_ms")
_HEAD = """# Beside other memories

Rendered by `python benchmarks/peer_adapter.py` from the numbers in `peers.json` beside it. One run for all: each peer
in a process of its own, one after the other, through its own public API and with the embedded store that its
documentation names, over the same made-up entries, queries and vectors. No model is timed: every peer that wants
vectors is handed the same. A query is some words of one entry, and its vector.

| column | what it is |
| --- | --- |
| finds by | words, vectors, or both; who looks at one of them does less work |
| lasts | what an add survives when it returns: power (of the machine), process (its end), none |
| add | one entry, until the call returns: median, by the clock |
| search | ten hits: median and 95th percentile by the clock, and the median of the processor time of all its threads |
| x, x processor | these two medians, as multiples of those of `ricordo_hybrid` |
| found | the share of queries whose entry is among the ten |
| reopen | opening and the first search |
"""
_COLUMNS = (
    "peer", "finds by", "lasts", "add, ms", "search, ms", "95 %, ms", "processor, ms", "x", "x processor", "found",
    "reopen, ms", "memory, MB", "disk, MB", "installed, MB",
)  # fmt: skip


def page(found: Mapping[str, Json]) -> str:
    """Return the page as Markdown."""
    machine = found["machine"]
    lines = [
        _HEAD,
        f"The machine had {machine['cores']} cores, and the run took {machine['seconds']:,} s. "
        f"Its load was {machine['load_before']:.2f} before; while it ran, other processes kept "
        f"{machine['others']:.2f} cores busy. Where that is not near 0, the times by the clock are too long, for "
        "all peers alike, and the processor time says more.",
        "",
        f"![Bars of the time of a search; {_told(found)}.](peers-search.png)",
        "",
    ]
    for size in _sizes(found):
        lines += [f"## {size:,} entries", "", *_table(found, size), ""]
    failed = [row for row in found["results"] if "error" in row]
    if failed:
        lines += ["Not measured: " + "; ".join(f"{row['peer']} at {row['n']:,}" for row in failed) + ".", ""]
    lines += ["## What each of them is", "", *_notes(found), ""]
    lines += ["```sh", "python benchmarks/peer_adapter.py SCRIPT --venvs FOLDER --page docs/benchmarks", "```", ""]
    return "\n".join(lines)


def draw(found: Mapping[str, Json], folder: Path) -> bool:
    """Write the chart of searches as PNG; False where matplotlib is not there."""
    try:
        import matplotlib as mpl
    except ImportError:
        return False
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    sizes = _sizes(found)
    figure, axes = plt.subplots(1, len(sizes), figsize=(5.5 * len(sizes), 3.4), squeeze=False)
    for axis, size in zip(axes[0], sizes, strict=True):
        rows = sorted(_rows(found, size), key=lambda row: -row["search_p50_ms"])
        colours = ["tab:orange" if row["peer"].startswith(_OWN) else "tab:blue" for row in rows]
        axis.barh([row["peer"] for row in rows], [row["search_p50_ms"] for row in rows], color=colours)
        axis.set_xscale("log")
        axis.set_title(f"Search, ms (median), {size:,} entries", fontsize=10)
    figure.tight_layout()
    figure.savefig(folder / "peers-search.png", dpi=110)
    return True


def _told(found: Mapping[str, Json]) -> str:
    """Return the chart in words: how long a search of the slowest and the fastest takes."""
    told = []
    for size in _sizes(found):
        rows = sorted(_rows(found, size), key=lambda row: row["search_p50_ms"])
        ends = (f"{row['search_p50_ms']:.2f} ms by {row['peer']}" for row in (rows[0], rows[-1]))
        told.append(f"{size:,} entries: {' to '.join(ends)}")
    return "; ".join(told)


def _sizes(found: Mapping[str, Json]) -> list[int]:
    return sorted({row["n"] for row in found["results"] if "error" not in row})


def _rows(found: Mapping[str, Json], size: int) -> list[dict[str, Json]]:
    """Return a row for each peer: its medians where it was measured in several rounds."""
    held: dict[str, list[dict[str, Json]]] = {}
    for row in found["results"]:
        if row["n"] == size and "error" not in row:
            held.setdefault(row["peer"], []).append(row)
    return [
        {
            key: statistics.median(row[key] for row in rows if key in row) if type(value) in {int, float} else value
            for key, value in rows[0].items()
        }
        for rows in held.values()
    ]


def _table(found: Mapping[str, Json], size: int) -> list[str]:
    rows = _rows(found, size)
    compared = next((row for row in rows if row["peer"] == _COMPARED), {})
    shown = [_shown(row, compared) for row in sorted(rows, key=lambda row: row["search_p50_ms"])]
    table = ["| " + " | ".join(row) + " |" for row in (_COLUMNS, ["---"] * len(_COLUMNS), *shown)]
    cut = [f"{row['peer']} ({row['bulk_added']:,})" for row in rows if row.get("truncated")]
    note = f"The time for adding was up before all entries were in: {', '.join(cut)}."
    return [*table, "", note] if cut else table


def _shown(row: Mapping[str, Json], compared: Mapping[str, Json]) -> Sequence[str]:
    by = "both" if row["hybrid"] else "words" if row["peer"] == _OWN else "vectors"
    return (
        f"**{row['peer']}**" if row["peer"].startswith(_OWN) else row["peer"], by, row["durable"],
        f"{row['add1_p50_ms']:.2f}", f"{row['search_p50_ms']:.2f}", f"{row['search_p95_ms']:.2f}",
        f"{row['search_cpu_p50_ms']:.2f}" if "search_cpu_p50_ms" in row else "",
        *(f"{row[key] / compared[key]:.1f}" if row.get(key) and compared.get(key) else "" for key in _TIMES),
        f"{row['target_hit10']:.2f}" if "target_hit10" in row else "",
        f"{row['reopen_first_search_ms']:,.0f}" if "reopen_first_search_ms" in row else "",
        f"{row['rss_delta_mb']:,.0f}", f"{row['disk_mb']:,.0f}", f"{row['install_mb']:,.0f}",
    )  # fmt: skip


def _notes(found: Mapping[str, Json]) -> list[str]:
    notes = {row["peer"]: row["note"] for row in found["results"] if "note" in row}
    return [f"- {peer}: {note}." for peer, note in notes.items()]
