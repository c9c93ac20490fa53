"""Thousands of files: each is read once and costs as much as any other, and a search reads none of them again."""

import os
import time
from pathlib import Path

import pytest

from ricordo.search.index import WorkspaceIndex
from ricordo.search.tables import SCHEMA
from ricordo.storage import Connection
from ricordo.storage.local import LocalFiles
from ricordo.workspace import INDEX_FILE
from watched_files import WatchedFiles

pytestmark = [pytest.mark.anyio, pytest.mark.may_block("the test writes the files itself")]

LONG_AGO = 1_795_000_000


def path_of(number: int) -> str:
    return f"workspace/notes/{number // 1000:03d}/n{number:06d}.md"


def write(root: Path, number: int, text: str) -> None:
    target = root / path_of(number)
    target.write_text(text, encoding="utf-8")
    # what was written a moment ago would be looked at again in any case
    os.utime(target, (LONG_AGO, LONG_AGO))


class Work:
    """Counts what a database does, in hundreds of its own steps, at every commit."""

    def __init__(self) -> None:
        """Begin with nothing done."""
        self.steps = 0
        self.at_commits: list[int] = []
        self._connection: Connection | None = None

    def commit(self, connection: Connection) -> None:
        if connection is not self._connection:
            self._connection = connection
            connection.set_progress_handler(self._count, 100)
        connection.execute("COMMIT")
        self.at_commits.append(self.steps)

    def _count(self) -> int:
        self.steps += 1
        return 0


async def check(root: Path, count: int) -> None:
    """Hold that so many files are taken in, followed and searched at a cost that grows as they do."""
    for folder in range(0, count, 1000):
        (root / path_of(folder)).parent.mkdir(parents=True)
    for number in range(count):
        write(root, number, f"# Note {number}\n\nThe animal{number} lives beside the harbour.\n")
    reads: list[str] = []

    async def before(verb: str, path: str) -> None:
        if verb.startswith("read"):
            reads.append(path)

    work, files = Work(), WatchedFiles(LocalFiles(root), before)
    index = await WorkspaceIndex.open(root / INDEX_FILE, files, commit=work.commit)
    report = await index.refresh()
    assert (len(report.indexed), report.failed) == (count, {})
    assert sorted(reads) == [path_of(number) for number in range(count)]
    # one for each step of the schema, one for each file, and one more
    assert len(work.at_commits) <= len(SCHEMA.steps) + count + 1
    begun = len(SCHEMA.steps) - 1
    first, middle, last = (work.at_commits[begun + at] for at in (0, count // 2, count))
    # what follows is the fold; the second half costs the database what the first does, but for trees that grew in depth
    assert last - middle < 1.2 * (middle - first), (first, middle, last)

    reads.clear()
    for number in (0, count // 2, count - 1):
        assert [match.path for match in await index.search(f"animal{number}")] == [path_of(number)]
    assert len(await index.search("harbour", 50)) == 50
    for number in range(10):
        (root / path_of(number)).unlink()
        write(root, 10 + number, f"The animal{number} moved in with {number}.\n")
    assert [match.path for match in await index.search("animal7")] == [path_of(17)]
    assert await index.search("animal17") == []
    assert sorted(set(reads)) == [path_of(number) for number in range(10, 20)]
    assert index.freshness().state == "fresh"
    await index.close()

    reads.clear()
    index = await WorkspaceIndex.open(root / INDEX_FILE, files)
    assert [match.path for match in await index.search("animal7")] == [path_of(17)]
    assert (await index.refresh()).unchanged == count - 10
    assert len(reads) <= 10
    await index.close()


async def test_two_thousand_files_cost_about_twice_what_one_thousand_do(tmp_path: Path) -> None:
    await check(tmp_path, 2_000)


@pytest.mark.soak
@pytest.mark.timeout(1_200)
async def test_a_hundred_thousand_files_are_taken_in_and_followed(tmp_path: Path) -> None:
    begun = time.process_time()
    await check(tmp_path / "few", 10_000)
    few = time.process_time() - begun
    begun = time.process_time()
    await check(tmp_path / "many", 100_000)
    assert time.process_time() - begun < 15 * few
