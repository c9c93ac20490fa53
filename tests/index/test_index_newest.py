"""An empty query lists the newest: of two entries of one moment, the one that was written later."""

from pathlib import Path

import pytest

from ricordo.search import Query
from ricordo.search.index import WorkspaceIndex
from ricordo.storage.local import LocalFiles

pytestmark = pytest.mark.anyio

LEDGER = """- Earlier. [at:: 2026-11-21T08:00:00.000Z] ^01jd0000000000000000000001
- First of the moment. [at:: 2026-11-21T09:00:00.000Z] ^01jd0000000000000000000002
- Last of the moment. [at:: 2026-11-21T09:00:00.000Z] ^01jd0000000000000000000003
- Written later about an earlier time. [at:: 2026-11-21T07:00:00.000Z] ^01jd0000000000000000000004
"""


@pytest.mark.req("AS-INDEX-04")
@pytest.mark.parametrize("kept", [True, False], ids=["index", "scan"])
async def test_of_one_moment_the_later_line_comes_first(kept: bool, tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "root")
    await files.create("workspace/memory/2026-11-21.md", LEDGER.encode())
    path = tmp_path / "index.db" if kept else Path("/dev/null/none.db")
    index = await WorkspaceIndex.open(path, files)
    found = [match.content for match in await index.search(Query(text=""), 9)]
    await index.close()
    assert found == ["Last of the moment.", "First of the moment.", "Earlier.", "Written later about an earlier time."]


@pytest.mark.req("HE-C7-ties")
@pytest.mark.parametrize("kept", [True, False], ids=["index", "scan"])
async def test_of_lines_that_match_as_well_the_newer_comes_first(kept: bool, tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "root")
    lines = [
        f"- The wombat sleeps. [at:: 2026-11-{day}T08:00:00.000Z] ^01jd00000000000000000000{day}\n"
        for day in (12, 14, 11)
    ]
    await files.create("workspace/memory/2026-11-21.md", "".join(lines).encode())
    path = tmp_path / "index.db" if kept else Path("/dev/null/none.db")
    index = await WorkspaceIndex.open(path, files)
    found = [match.line_number for match in await index.search("wombat", 9)]
    await index.close()
    assert found == [2, 1, 3]
