"""An embedder that fails, hangs or changes, and a file of vectors that breaks: the search by words goes on."""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

import anyio
import numpy as np
import pytest
from numpy.typing import NDArray

from concepts import Concepts
from newer_databases import VECTORS_OWNER, write_newer_database
from ricordo.errors import ModelOverflow, ModelUnavailable
from ricordo.search import Match
from ricordo.search import embedding as meanings
from ricordo.search.corpus import Corpus
from ricordo.search.embedding import IndexEmbedder
from ricordo.search.index import WorkspaceIndex
from ricordo.search.vector_cache import VectorCache, VectorSnapshot
from ricordo.search.vector_search import ExactSimilarities, SemanticQuery, VectorPlacement
from ricordo.storage import Connection
from ricordo.storage.local import LocalFiles
from ricordo.workspace import INDEX_FILE

pytestmark = [pytest.mark.anyio, pytest.mark.may_block("the check breaks the file itself")]

TOPIC = "workspace/memory/topics/home.md"
VECTORS = "memory_index_vectors.db"


def home(root: Path) -> None:
    target = root / TOPIC
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("- The dog sleeps in the kitchen.\n- We sail on Sundays.\n- A loaf costs two coins.\n")


@asynccontextmanager
async def opened(root: Path, embedder: Concepts) -> AsyncIterator[WorkspaceIndex]:
    index = await WorkspaceIndex.open(root / INDEX_FILE, LocalFiles(root), busy_seconds=0.2, embedder=embedder)
    try:
        yield index
    finally:
        await index.close()


def contents(matches: list[Match]) -> list[str]:
    return [match.content for match in matches]


DOG = ["The dog sleeps in the kitchen."]


def test_a_search_with_vectors_from_before_those_that_were_seen_last_finds_by_its_own() -> None:
    corpus = Corpus()
    corpus.count, corpus.changed_documents = 3, set()
    corpus._columns = {
        name: np.arange(3) if name == "meaning" else np.zeros(3, dtype=column.dtype)
        for name, column in corpus._columns.items()
    }
    rows = np.eye(3, dtype=np.float32)
    newer = VectorSnapshot(1, np.arange(3), rows)
    older = VectorSnapshot(1, np.arange(2), rows[:2])
    standing = VectorPlacement()
    for vectors in (newer, older, newer):
        near = SemanticQuery(placement=standing, vectors=vectors, vector=rows[1], max_cosine=1.0).similarities(
            corpus, {}
        )
        assert isinstance(near, ExactSimilarities)
        assert near.own.tolist() == [0.0, 1.0, 0.0]
        assert near.places.is_whole == (vectors is newer)


@pytest.mark.parametrize(
    "error", [ModelUnavailable("no answer"), OSError("no route"), ValueError("bad reply"), RuntimeError("closed")]
)
async def test_a_failing_embedder_leaves_the_search_by_words_and_is_told_of(tmp_path: Path, error: Exception) -> None:
    home(tmp_path)
    embedder = Concepts()
    embedder.error = error
    async with opened(tmp_path, embedder) as index:
        await index.refresh()
        assert contents(await index.search("dog")) == DOG
        freshness = index.freshness()
        assert (freshness.state, freshness.not_embedded, freshness.embedding_error) == ("fresh", 3, str(error))
        # it is left in peace for a while
        await index.refresh()
        assert len(embedder.asked) == 3


@pytest.mark.req("CC-RECALLFAST")
async def test_an_embedder_that_fails_for_a_query_leaves_the_search_by_words(tmp_path: Path) -> None:
    home(tmp_path)
    embedder = Concepts()
    async with opened(tmp_path, embedder) as index:
        await index.refresh()
        embedder.error = ModelUnavailable("gone")
        assert contents(await index.search("dog")) == DOG
        assert await index.search("puppy") == []
        assert index.freshness().embedding_error == "gone"


@pytest.mark.req("CC-RECALLFAST")
async def test_a_hanging_embedder_is_waited_for_a_moment_and_not_again(tmp_path: Path) -> None:
    home(tmp_path)
    embedder = Concepts()
    async with opened(tmp_path, embedder) as index:
        await index.refresh()
        embedder.hangs = True
        with anyio.fail_after(20):
            assert contents(await index.search("dog")) == DOG
            asked = len(embedder.asked)
            assert contents(await index.search("dog")) == DOG
        assert len(embedder.asked) == asked
        assert "did not answer within 0.15 s" in index.freshness().embedding_error


async def test_a_batch_that_hangs_is_given_up(tmp_path: Path) -> None:
    home(tmp_path)
    embedder = Concepts()
    embedder.hangs = True
    async with opened(tmp_path, embedder) as index:
        index._index_embedder = IndexEmbedder(embedder, tmp_path / VECTORS, batch_seconds=0.01)
        await index.refresh()
        assert index.freshness().not_embedded == 3
        assert contents(await index.search("dog")) == DOG


async def test_on_a_busy_machine_a_batch_that_takes_too_long_is_embedded_in_smaller_ones(tmp_path: Path) -> None:
    class Slow(Concepts):
        async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if len(texts) > 4:
                await anyio.sleep_forever()
            return await super().embed(texts)

    target = tmp_path / TOPIC
    target.parent.mkdir(parents=True)
    target.write_text("".join(f"- The dog number {number} sleeps.\n" for number in range(50)))
    async with opened(tmp_path, Slow()) as index:
        index._index_embedder = IndexEmbedder(Slow(), tmp_path / VECTORS, batch_seconds=0.2)
        await index.refresh()
        assert (index.freshness().not_embedded, index.freshness().embedding_error) == (0, "")


async def test_what_a_failed_embedder_left_is_embedded_later_without_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meanings, "_PAUSE_SECONDS", 0.01)
    home(tmp_path)
    embedder = Concepts()
    embedder.error = ModelUnavailable("no answer")
    async with opened(tmp_path, embedder) as index, anyio.create_task_group() as group:
        await index.refresh()
        assert index.freshness().not_embedded == 3
        group.start_soon(index.serve)
        embedder.error = None
        for _ in range(2_000):
            if not index.freshness().not_embedded:
                break
            await anyio.sleep(0.01)
        assert index.freshness().not_embedded == 0
        group.cancel_scope.cancel()


async def test_a_text_without_a_vector_costs_no_other_text_its_own(tmp_path: Path) -> None:
    home(tmp_path)
    embedder = Concepts()
    embedder.no_number_for = "loaf"
    async with opened(tmp_path, embedder) as index:
        await index.refresh()
        assert contents(await index.search("puppy")) == DOG
        assert contents(await index.search("loaf")) == ["A loaf costs two coins."]
        freshness = index.freshness()
        assert freshness.not_embedded == 1
        assert freshness.embedding_error == "concepts:one gave no vector for a text."
        asked = len(embedder.asked)
        await index.refresh()
        assert len(embedder.asked) == asked


async def test_a_text_that_is_refused_is_found_out_and_left(tmp_path: Path) -> None:
    home(tmp_path)
    embedder = Concepts()
    embedder.refuses, embedder.error = "loaf", ModelOverflow("too long")
    async with opened(tmp_path, embedder) as index:
        await index.refresh()
        assert index.freshness().not_embedded == 1
        assert contents(await index.search("puppy")) == DOG


@pytest.mark.parametrize("numbers", [[float("nan")] * 8, [0.0] * 8])
async def test_a_query_without_a_vector_is_searched_by_words(tmp_path: Path, numbers: list[float]) -> None:
    home(tmp_path)
    embedder = Concepts()
    async with opened(tmp_path, embedder) as index:
        await index.refresh()

        async def nothing(texts: object) -> object:
            return np.array([numbers], dtype=np.float32)

        embedder.embed = nothing  # type: ignore[assignment, method-assign]
        assert contents(await index.search("dog")) == DOG


async def test_vectors_of_another_length_are_not_compared_and_take_the_place_of_the_others(tmp_path: Path) -> None:
    home(tmp_path)
    embedder = Concepts()
    async with opened(tmp_path, embedder) as index:
        await index.refresh()
        embedder.dimension = 12
        assert contents(await index.search("dog")) == DOG
        assert await index.search("puppy") == []
        await index.refresh()
        assert contents(await index.search("puppy")) == DOG
    async with opened(tmp_path, embedder) as index:
        assert contents(await index.search("puppy")) == DOG


async def test_a_damaged_file_of_vectors_is_put_aside_and_filled_again(tmp_path: Path) -> None:
    home(tmp_path)
    async with opened(tmp_path, Concepts()) as index:
        await index.refresh()
    (tmp_path / VECTORS).write_bytes(b"\xa5" * 8_192)
    async with opened(tmp_path, Concepts()) as index:
        assert contents(await index.search("dog")) == DOG
        await index.refresh()
        assert contents(await index.search("puppy")) == DOG
    assert (tmp_path / f"{VECTORS}.broken-1").exists()
    async with opened(tmp_path, Concepts()) as index:
        assert contents(await index.search("puppy")) == DOG


async def test_a_vector_that_is_damaged_in_the_file_is_made_again(tmp_path: Path) -> None:
    home(tmp_path)
    async with opened(tmp_path, Concepts()) as index:
        await index.refresh()
    with closing(sqlite3.connect(tmp_path / VECTORS)) as connection:
        connection.execute("UPDATE vector SET levels = zeroblob(8)")
        connection.commit()
    async with opened(tmp_path, Concepts()) as index:
        assert await index.search("puppy") == []
        await index.refresh()
        assert contents(await index.search("puppy")) == DOG


async def test_vectors_of_an_earlier_layout_are_kept_in_a_quarter_of_the_bytes(tmp_path: Path) -> None:
    home(tmp_path)
    async with opened(tmp_path, Concepts()) as index:
        await index.refresh()
        found = await index.search("puppy")
    with closing(sqlite3.connect(tmp_path / VECTORS)) as connection:
        rows = connection.execute("SELECT meaning, levels FROM vector").fetchall()
    (tmp_path / VECTORS).unlink()
    with closing(sqlite3.connect(tmp_path / VECTORS)) as connection:
        connection.execute(f"PRAGMA application_id = {VECTORS_OWNER}")
        connection.execute("PRAGMA user_version = 1")
        connection.execute(
            """CREATE TABLE vector (
                number INTEGER PRIMARY KEY AUTOINCREMENT, meaning INTEGER NOT NULL, model TEXT NOT NULL,
                dimension INTEGER NOT NULL, numbers BLOB NOT NULL, UNIQUE (model, meaning))"""
        )
        for meaning, levels in rows:
            numbers = np.frombuffer(levels, dtype=np.int8).astype("<f4")
            numbers /= np.linalg.norm(numbers)
            values = (meaning, Concepts().model_id, len(numbers), numbers.tobytes())
            connection.execute("INSERT INTO vector (meaning, model, dimension, numbers) VALUES (?, ?, ?, ?)", values)
        connection.commit()
    embedder = Concepts()
    async with opened(tmp_path, embedder) as index:
        await index.refresh()
        assert await index.search("puppy") == found
    assert embedder.asked == ["puppy"]
    with closing(sqlite3.connect(tmp_path / VECTORS)) as connection:
        assert sorted(connection.execute("SELECT meaning, levels FROM vector")) == sorted(rows)
        assert connection.execute("SELECT count(*) FROM float_vector").fetchone() == (0,)


async def test_where_no_file_can_be_written_vectors_live_as_long_as_the_process(tmp_path: Path) -> None:
    home(tmp_path)
    write_newer_database(tmp_path / VECTORS, VECTORS_OWNER)
    async with opened(tmp_path, Concepts()) as index:
        await index.refresh()
        assert contents(await index.search("puppy")) == DOG
        assert index.freshness().embedding_error


async def test_what_was_not_committed_is_embedded_by_the_next_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meanings, "_DEFAULT_BATCH_SIZE", 1)
    home(tmp_path)
    left = 4

    def commit(connection: Connection) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise sqlite3.OperationalError("disk I/O error")
        connection.execute("COMMIT")

    cache = VectorCache(tmp_path / VECTORS, "concepts:one", commit=commit)
    rows = np.eye(8, dtype=np.float32)
    for number in range(4):
        await cache.add(np.array([number]), rows[number : number + 1])
    await cache.close()
    again = VectorCache(tmp_path / VECTORS, "concepts:one")
    await again.load()
    assert again.current.text_ids.tolist() == [0, 1]
    await again.close()
