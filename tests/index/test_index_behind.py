"""An index that is behind: what it has not taken in yet is read from the files, and answers are the same."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ricordo import Entry
from ricordo.search import MEMORY_DOCUMENT_TYPES, Query
from ricordo.search.index import WorkspaceIndex
from ricordo.storage.local import LocalFiles
from ricordo.workspace import render_entry

pytestmark = pytest.mark.anyio

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def ledger(root: Path, day: int, *minutes: int) -> None:
    """Write a ledger of entries, and one that is long, by hand."""
    target = root / "workspace" / "memory" / f"2026-11-{day}.md"
    (target.parent / "long").mkdir(parents=True, exist_ok=True)
    entries = [
        Entry(content=f"Walnut {minute}.", id=f"id{minute}", time=NOON + timedelta(minutes=minute))
        for minute in minutes
    ]
    target.write_text("".join(map(render_entry, entries)), encoding="utf-8")
    long = Entry(content=f"Long {day}.\n" + "It is old. " * 9, id=f"long{day}", time=NOON + timedelta(minutes=day))
    (target.parent / "long" / f"long{day}.md").write_text(long.content, encoding="utf-8")
    with target.open("a", encoding="utf-8") as file:
        file.write(render_entry(long, long=f"memory/long/long{day}.md"))
    for path in target.parent.rglob("*.md"):
        # what changed a moment ago is read again in any case
        os.utime(path, (NOON.timestamp() - 9_999, NOON.timestamp() - 9_999))


@pytest.mark.req("FC-STALE")
async def test_the_newest_come_in_one_order_whatever_was_taken_in_already(tmp_path: Path) -> None:
    ledger(tmp_path, 20, 1, 40, 5)
    files = LocalFiles(tmp_path)
    index = await WorkspaceIndex.open(tmp_path / "index.db", files, patience_seconds=0.0)
    await index.refresh()
    ledger(tmp_path, 21, 3, 50, 2)
    newest = Query(text="", document_types=MEMORY_DOCUMENT_TYPES)
    behind = await index.search(newest, 99)
    first = await index.search(newest, 3)
    assert index.freshness().state == "stale"
    await index.refresh()
    after = await index.search(newest, 99)
    assert [match.chunk.content for match in behind] == [match.chunk.content for match in after]
    assert [match.chunk.content for match in first] == [match.chunk.content for match in after][:3]
    await index.close()
