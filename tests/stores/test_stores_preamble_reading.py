"""A preamble reads what changed: a root that grew costs it no more, and an edit by hand is seen at once."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hand_made_roots import begun
from places import place_of
from ricordo import Entry, Memory, Scope
from ricordo.workspace import parse_entries, render_entry
from ricordo.workspace.entry_codec import LocatedEntry

pytestmark = pytest.mark.anyio

BEGUN = datetime(2026, 11, 1, 9, tzinfo=UTC)
LONG_AGO = 1_700_000_000_000_000_000


def ledgers(root: Path, days: int, each: int) -> list[Path]:
    """Write ledgers as they stand for long, of which one entry is pinned."""
    folder = place_of(begun(root)) / "workspace" / "memory"
    folder.mkdir(parents=True)
    written = []
    for day in range(days):
        moment = BEGUN + timedelta(days=day)
        entries = [
            Entry(content=f"The tide of day {day}, number {at}.", id=f"01jd{day:011d}{at:011d}", time=moment, by="user")
            for at in range(each)
        ]
        pinned = Entry(content="Pinned for good.", id="01jd" + "9" * 22, time=moment, by="user", pinned=True)
        path = folder / f"{moment:%Y-%m-%d}.md"
        path.write_text(f"# {moment:%Y-%m-%d}\n\n" + "".join(map(render_entry, [*entries, *[pinned] * (day == 2)])))
        os.utime(path, ns=(LONG_AGO, LONG_AGO))
        written.append(path)
    return written


async def test_a_preamble_parses_what_it_shows_and_then_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []

    def parsing(document: bytes, path: str, *, only: Callable[[bytes], bool] | None = None) -> list[LocatedEntry]:
        # the look for damage reads the newest bullets of each ledger
        if only is None or only.__name__ != "is_recent":
            parsed.append(path.removeprefix("workspace/memory/"))
        return parse_entries(document, path, only=only)

    monkeypatch.setattr("ricordo.stores.root_reader.parse_entries", parsing)
    paths = ledgers(tmp_path, days=9, each=110)
    async with Memory.open(tmp_path, scope=Scope(user="me", project="port")) as memory:
        first = await memory.preamble()
        assert "day 8, number 109" in first
        assert "Pinned for good." in first
        # the newest ledgers for what they say, and the one that has a pin
        assert sorted(set(parsed) - {"workspace/MEMORY.md"}) == ["2026-11-03.md", "2026-11-08.md", "2026-11-09.md"]
        parsed.clear()
        assert await memory.preamble() == first
        assert not [path for path in parsed if path != "workspace/MEMORY.md"]

        edited = paths[-1].read_text().replace("day 8, number 109", "ebb 8, number 109")
        paths[-1].write_text(edited)
        changed = await memory.preamble()
        assert "ebb 8, number 109" in changed
        assert "day 8, number 109" not in changed
        assert {path for path in parsed if path != "workspace/MEMORY.md"} == {"2026-11-09.md"}
        paths[-1].unlink()
        assert "ebb 8, number 109" not in await memory.preamble()
