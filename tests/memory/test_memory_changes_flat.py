"""A change of one memory reads what it changes, however many days were kept before."""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import date, timedelta
from pathlib import Path

import pytest

from counted_work import CountingDisk
from ricordo import Memory
from ricordo.errors import EntryNotFound

pytestmark = pytest.mark.anyio
Opened = Callable[..., AbstractAsyncContextManager[Memory]]


def write_days(ledgers: Path, count: int) -> None:
    ledgers.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        day = date(2025, 1, 1) + timedelta(days=number)
        text = f"# {day}\n\n- The lamp of day {number} is green. [kind:: fact] ^{entry_id(number)}\n"
        (ledgers / f"{day}.md").write_text(text, "utf-8")


def entry_id(number: int) -> str:
    return f"01jd{number:022d}"


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a file count as settled at once, as one of yesterday does."""
    monkeypatch.setattr("ricordo.workspace.ledger._SETTLED_NS", 0)


async def test_a_pin_reads_no_other_day_again_and_a_forgetting_looks_twice_for_what_says_the_same(
    tmp_path: Path, opened: Opened
) -> None:
    disk = CountingDisk()
    async with opened(folder=tmp_path / ".ricordo", disk=disk) as memory:
        write_days(memory.folder / "workspace" / "memory", 20)
        await memory.index()
        await memory.pin(entry_id(0))
        for act, ids, reads in ((memory.pin, range(1, 4), 0), (memory.forget, range(4, 7), 2)):
            counts = []
            for number in ids:
                disk.read.clear()
                await act(entry_id(number))
                found = Counter(Path(path).stem for path in disk.read)
                counts.append([found[f"2025-01-{day:02d}"] for day in range(8, 21)])
            # on a slow machine something else can read the days once in between
            assert min(counts) == [reads] * 13


async def test_an_entry_that_a_person_moves_by_hand_is_found_at_once(tmp_path: Path, opened: Opened) -> None:
    async with opened(folder=tmp_path / ".ricordo") as memory:
        ledgers = memory.folder / "workspace" / "memory"
        write_days(ledgers, 3)
        for number in range(3):
            assert (await memory.entry(entry_id(number))).content == f"The lamp of day {number} is green."
        first, last = ledgers / "2025-01-01.md", ledgers / "2025-01-03.md"
        moved = last.read_text("utf-8").splitlines()[-1]
        first.write_text(f"{first.read_text('utf-8')}{moved}\n", "utf-8")
        last.unlink()
        await memory.pin(entry_id(2))
        assert entry_id(2) in first.read_text("utf-8")
        assert "pinned" in first.read_text("utf-8")
        first.write_text("# 2025-01-01\n", "utf-8")
        with pytest.raises(EntryNotFound):
            await memory.pin(entry_id(2))
