"""An edited document is indexed like a new one: its rows are those of an index that is made anew."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ricordo.search.index import WorkspaceIndex
from ricordo.storage.local import LocalFiles

pytestmark = pytest.mark.anyio

PIECES = (
    "# 2026-11-02",
    "## Harbour",
    "- The pier is closed. [kind:: fact] [at:: 2026-11-02T09:00:00.000Z] ^01pier",
    "- The crane lifts forty tons. #crane ^01crane",
    "- Two lines of\n  one memory. ^01lines",
    "- By hand.",
    "- By hand, again.",
    "The office opens at nine.",
    "Nobody swims here.",
    "",
    "```\n- code ^01code\n```",
    "- Windows wrote this. ^01crlf\r",
    "- The key is AKIAIOSFODNN7EXAMPLE. ^01secret",
)


async def rows_after(folder: Path, database: Path) -> list[tuple[object, ...]]:
    """Return the rows of the index at `database` after it caught up."""
    index = await WorkspaceIndex.open(database, LocalFiles(folder))
    await index.refresh()
    await index.close()
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(
            """SELECT path, line, end_line, part, hex(digest), kind, tags, time, entry, heading, markup, content, own,
            around FROM chunk JOIN document ON document.id = chunk.document JOIN words ON words.rowid = chunk.id
            ORDER BY path, line, part"""
        ).fetchall()


@pytest.mark.req("AS-BUG-26")
@pytest.mark.parametrize("name", ["memory/2026-11-02.md", "memory/topics/harbour.md"])
async def test_the_rows_of_an_edited_document_are_those_of_an_index_made_anew(tmp_path: Path, name: str) -> None:
    choose = random.Random(7)
    root = tmp_path / "root"
    document = root / "workspace" / name
    document.parent.mkdir(parents=True)
    for number in range(12):
        document.write_text("\n".join(choose.choices(PIECES, k=choose.randrange(14))) + "\n", encoding="utf-8")
        edited = await rows_after(root, tmp_path / "kept.db")
        assert edited == await rows_after(root, tmp_path / f"{number}.db")
