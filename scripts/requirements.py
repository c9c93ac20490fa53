"""Which requirement rows hold, told by the tests that claim them.

A row of `tests/requirements.toml` holds when at least one test that claims its id passed and none of them failed.
Other origins of a row (`also`) are claimed by their own names and never stand in for the row, so a row cannot be green
because a narrower remark about it was tested.
"""

import json
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

__all__ = ["LEVELS", "Claims", "Row", "known_ids", "load_rows", "render_table", "report", "write_report"]

Level = Literal["must", "should", "beyond"]
LEVELS: tuple[Level, ...] = ("must", "should", "beyond")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One required behaviour."""

    id: str
    also: tuple[str, ...]
    area: str
    level: Level


@dataclass(kw_only=True)
class Claims:
    """What the tests of one run said about the ids they claim."""

    named: set[str] = field(default_factory=set)
    passed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    def record(self, ids: Iterable[str], *, outcome: Literal["passed", "failed", "skipped"]) -> None:
        """Take in one phase of one test; a test that is skipped names its ids and proves nothing."""
        ids = set(ids)
        self.named |= ids
        if outcome == "passed":
            self.passed |= ids
        elif outcome == "failed":
            self.failed |= ids

    def holding(self) -> set[str]:
        """Return the ids that some test proved and none disproved."""
        return self.passed - self.failed


def load_rows(path: Path) -> list[Row]:
    """Return the rows of the requirements file, in its order."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return [
        Row(id=entry["id"], also=tuple(entry.get("also", ())), area=entry["area"], level=entry["level"])
        for entry in document["requirement"]
    ]


def known_ids(rows: Iterable[Row]) -> set[str]:
    """Return every name a test may claim: the ids of rows and of their other origins."""
    return {name for row in rows for name in (row.id, *row.also)}


def report(rows: list[Row], claims: Claims) -> dict[str, list[str]]:
    """Return the sorted ids by state: `passing` and `open` share out the rows; `claimed` says which any test names."""
    ids = {row.id for row in rows}
    holding = claims.holding()
    return {
        "passing": sorted(ids & holding),
        "claimed": sorted(ids & claims.named),
        "open": sorted(ids - holding),
        "also": sorted({name for row in rows for name in row.also} & holding),
    }


def render_table(rows: list[Row], passing: Iterable[str]) -> str:
    """Return the table of areas: rows that hold of all rows, by level and in total, most open rows first."""
    held = set(passing)
    total = Counter((row.area, row.level) for row in rows)
    done = Counter((row.area, row.level) for row in rows if row.id in held)
    areas = sorted({row.area for row in rows}, key=lambda area: (-_open(area, total, done), area))
    lines = ["".join([f"{'requirements':<16}", *(f"{level:>11}" for level in LEVELS), f"{'holds':>11}{'open':>6}"])]
    lines += [_line(area, [area], total, done) for area in areas]
    lines.append(_line("all", areas, total, done))
    return "\n".join(lines)


def write_report(path: Path, rows: list[Row], claims: Claims) -> None:
    """Write the report as JSON with the four lists of `report`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report(rows, claims), indent=1) + "\n", encoding="utf-8")


def _open(area: str, total: Counter[tuple[str, Level]], done: Counter[tuple[str, Level]]) -> int:
    return sum(total[area, level] - done[area, level] for level in LEVELS)


def _line(label: str, areas: list[str], total: Counter[tuple[str, Level]], done: Counter[tuple[str, Level]]) -> str:
    cells = []
    for level in LEVELS:
        count = sum(total[area, level] for area in areas)
        cells.append(f"{sum(done[area, level] for area in areas)}/{count}" if count else "-")
    opened = sum(_open(area, total, done) for area in areas)
    everything = sum(total[area, level] for area in areas for level in LEVELS)
    cells.append(f"{everything - opened}/{everything}")
    return "".join([f"{label:<16}", *(f"{cell:>11}" for cell in cells), f"{opened:>6}"])
