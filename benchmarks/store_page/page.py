"""The tables of the stores' benchmark, for a terminal and for its page in the docs.

The prose of the page is written by hand; what stands between two marks in it is rendered from the numbers beside it.
"""

import json
import os
import platform
import re
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TypedDict

from ricordo.testing import BUILT_IN_STORES
from store_page.numbers import Row

__all__ = ["PAGE", "Numbers", "numbers_of", "printed", "rendered", "written"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks" / "stores.md"
_PART = re.compile(r"(<!-- rendered: (?P<name>[a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_MEGABYTE = 1_000_000


class Numbers(TypedDict):
    """What was measured, and on what."""

    date: str
    machine: dict[str, str]
    rows: list[Row]


def numbers_of(rows: Sequence[Row]) -> Numbers:
    """Return the rows with the machine and the versions they were measured on."""
    machine = {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        **{name: version(name) for name in ("ricordo", "anyio", "numpy", "lmdb")},
    }
    return Numbers(date=f"{datetime.now(UTC):%Y-%m-%d}", machine=machine, rows=[*rows])


def printed(rows: Sequence[Row]) -> str:
    """Return all tables for a terminal."""
    blocks = [table(rows) for table in _TABLES.values()]
    return "\n\n".join(_aligned(block) for block in blocks)


def rendered(page: str, numbers: Numbers) -> str:
    """Return the page with everything between its marks made of these numbers."""

    def part(match: re.Match[str]) -> str:
        name = match["name"]
        text = _told(numbers) if name == "machine" else _markdown(_TABLES[name](numbers["rows"]))
        return f"{match[1]}\n{text}\n\n{match[3]}"

    return _PART.sub(part, page)


def written(row: Row) -> None:
    """Put a row beside the page, in place of that of the same store and size, and render the page."""
    beside = PAGE.with_suffix(".json")
    rows: list[Row] = json.loads(beside.read_text(encoding="utf-8"))["rows"] if beside.exists() else []
    named = {(each["entries"], each["store"]): each for each in [*rows, row]}
    numbers = numbers_of(
        sorted(named.values(), key=lambda each: (each["entries"], [*BUILT_IN_STORES].index(each["store"])))
    )
    beside.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8"), numbers), encoding="utf-8")


def _saving(rows: Sequence[Row]) -> list[list[str]]:
    lines = [["store", "memories", "filling, ms each", "save p50, ms", "p95, ms", "bare append p50, ms", "times that"]]
    for row in rows:
        bare = row["limit_save_ms"][0]
        save = [_number(value) for value in row["save_ms"]]
        lines.append([*_named(row), _number(row["fill_ms"]), *save, _number(bare), _times(row["save_ms"][0], bare)])
    return lines


def _reading(rows: Sequence[Row]) -> list[list[str]]:
    lines = [["store", "memories", "recall p50, ms", "p95, ms", "after a save p50, ms", "p95, ms", "preamble p50, ms"]]
    for row in rows:
        values = [*row["recall_ms"], *row["recall_after_save_ms"], row["preamble_ms"]]
        lines.append([*_named(row), *map(_number, values)])
    return lines


def _questions(rows: Sequence[Row]) -> list[list[str]]:
    sorts = list(rows[0]["recall_by_question_ms"]) if rows else []
    return [
        ["store", "memories", *sorts],
        *([*_named(row), *(_number(row["recall_by_question_ms"][sort]) for sort in sorts)] for row in rows),
    ]


def _opening(rows: Sequence[Row]) -> list[list[str]]:
    lines = [
        ["store", "memories", "reopening, ms", "bare read, ms", "times that", "disk, MB", "files", "peak memory, MB"]
    ]
    for row in rows:
        room = [_number(row["file_bytes"] / _MEGABYTE), f"{row['files']:,}", f"{row['memory_bytes'] / _MEGABYTE:.0f}"]
        times = _times(row["reopen_ms"], row["limit_read_ms"])
        lines.append([*_named(row), _number(row["reopen_ms"]), _number(row["limit_read_ms"]), times, *room])
    return lines


_TABLES: dict[str, Callable[[Sequence[Row]], list[list[str]]]] = {
    "saving": _saving,
    "reading": _reading,
    "questions": _questions,
    "opening": _opening,
}


def _named(row: Row) -> list[str]:
    return [f"`{row['store']}`", f"{row['entries']:,}"]


def _number(value: float) -> str:
    return "-" if not value else f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def _times(value: float, limit: float) -> str:
    return f"{value / limit:,.1f}" if limit else "-"


def _markdown(block: Sequence[Sequence[str]]) -> str:
    head, *rows = block
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *rows))


def _aligned(block: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*block, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in block)


def _told(numbers: Numbers) -> str:
    told = ", ".join(f"{name} {value}" for name, value in numbers["machine"].items())
    return f"Measured on {numbers['date']}: {told}."


def _processor() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
