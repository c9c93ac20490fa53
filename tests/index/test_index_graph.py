"""The approximate index: most of the nearest are found by it, it is never the truth, and can be thrown away."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ricordo.search import ann as graph
from ricordo.search import vector_cache
from ricordo.search.ann import VectorGraph
from ricordo.search.vector_cache import VectorCache
from ricordo.search.vector_search import (
    ApproximateSimilarities,
    CosineScale,
    ExactSimilarities,
    RowVectors,
    Similarities,
    VectorReader,
)

pytestmark = pytest.mark.anyio

MODEL = "clusters:one"
FILE = "vectors.ann"
COUNT, DIMENSION = 2_600, 24
SCALE = CosineScale(min_cosine=0.1, max_cosine=1.0)


def clustered(seed: int, count: int) -> NDArray[np.float32]:
    """Return vectors of the length 1 around fifty places, the same for every seed."""
    places = np.random.default_rng(0).standard_normal((50, DIMENSION))
    random = np.random.default_rng(seed)
    rows = places[random.integers(0, 50, count)] + 0.5 * random.standard_normal((count, DIMENSION))
    unit: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


ROWS = clustered(1, COUNT)
MEANINGS = np.random.default_rng(9).permutation(np.arange(-COUNT // 2, COUNT // 2)) * 10**15


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the file of a graph of all vectors but the last 100."""
    path = tmp_path_factory.mktemp("graph") / FILE
    assert VectorGraph.build(path, MODEL, MEANINGS[:-100], ROWS[:-100], lambda: False) is not None
    return path.read_bytes()


async def opened(folder: Path, *, count: int = COUNT, least: int | None = 1_000) -> VectorCache:
    cache = VectorCache(folder / "vectors.db", MODEL, ann_vectors=least)
    await cache.load()
    if not len(cache.current.text_ids):
        await cache.add(MEANINGS[:count], ROWS[:count])
    return cache


async def made(cache: VectorCache) -> None:
    cache.start_build()
    await cache.wait_for_build()


def held(cache: VectorCache) -> int:
    """Return how many vectors the approximate index holds, -1 without one."""
    return -1 if cache.current.graph_lookup is None else len(cache.current.graph_lookup.graph.text_ids)


def reading(cache: VectorCache, vector: NDArray[np.float32], beside: NDArray[np.int32] | None = None) -> VectorReader:
    rows = cache.current.rows
    places = RowVectors(
        vector_rows=np.arange(len(rows), dtype=np.int32), is_straight=True, is_whole=True, is_alone=beside is None,
        beside=np.full((2, len(rows)), -1, dtype=np.int32) if beside is None else beside,
    )  # fmt: skip
    return VectorReader(rows, vector, places, SCALE)


def guided(read: VectorReader, cache: VectorCache) -> ApproximateSimilarities:
    assert cache.current.graph_lookup is not None
    return ApproximateSimilarities(read, cache.current.graph_lookup)


def best(near: Similarities, count: int = 10) -> list[int]:
    # far more are asked for than are shown, as some are of one text or do not pass
    rows, _ = near.nearest(6 * count)
    ordered: list[int] = rows[np.argsort(-near.similarity(rows), kind="stable")][:count].tolist()
    return ordered


def recall(cache: VectorCache, *, beside: NDArray[np.int32] | None = None) -> float:
    """Return the share of the ten nearest that is found, over forty queries."""
    shares = []
    for vector in clustered(2, 40):
        read = reading(cache, vector, beside)
        exact, found = read.exact, guided(read, cache)
        assert isinstance(exact, ExactSimilarities)
        shares.append(len({*best(exact)} & {*best(found)}) / 10)
        rows, more = found.nearest(60)
        assert more
        assert np.allclose(found.similarity(rows), exact.similarity(rows), atol=1e-5)
    return float(np.mean(shares))


async def test_of_the_ten_nearest_at_least_nineteen_in_twenty_are_found(tmp_path: Path) -> None:
    cache = await opened(tmp_path)
    await made(cache)
    assert held(cache) == COUNT
    assert recall(cache) >= 0.95
    before, after = np.arange(COUNT) - 1, np.append(np.arange(1, COUNT), -1)
    assert recall(cache, beside=np.array([before, after], dtype=np.int32)) >= 0.95
    await cache.close()


async def test_another_process_takes_the_file_as_it_is(
    tmp_path: Path, kept: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / FILE).write_bytes(kept)
    monkeypatch.delattr(VectorGraph, "build")
    cache = await opened(tmp_path)
    await made(cache)
    assert held(cache) == COUNT - 100
    assert recall(cache) >= 0.95
    await cache.close()


async def test_what_it_does_not_hold_is_found_at_once(tmp_path: Path, kept: bytes) -> None:
    (tmp_path / FILE).write_bytes(kept)
    cache = await opened(tmp_path, count=COUNT - 50)
    await made(cache)
    await cache.add(MEANINGS[-50:], ROWS[-50:])
    assert held(cache) == COUNT - 100
    for place in (COUNT - 90, COUNT - 51, COUNT - 50, COUNT - 1):
        assert best(guided(reading(cache, ROWS[place]), cache), 1) == [place]
    await cache.close()


async def test_what_was_removed_is_never_found(tmp_path: Path, kept: bytes) -> None:
    (tmp_path / FILE).write_bytes(kept)
    cache = await opened(tmp_path)
    await made(cache)
    await cache.prune(np.arange(0, 600, 3))
    assert held(cache) == COUNT - 100
    assert recall(cache) >= 0.95
    near = guided(reading(cache, ROWS[3]), cache)
    assert {*cache.current.text_ids[best(near, 5)].tolist()}.isdisjoint(MEANINGS[:600:3].tolist())
    await cache.close()


async def test_what_was_added_since_joins_once_it_is_much_and_what_is_gone_leaves_once_it_is_much(
    tmp_path: Path, kept: bytes
) -> None:
    (tmp_path / FILE).write_bytes(kept)
    cache = await opened(tmp_path)
    await made(cache)
    await cache.add(np.arange(1, 401), clustered(3, 400))
    await made(cache)
    assert held(cache) == COUNT + 400
    await cache.prune(np.arange(0, 1_000))
    await made(cache)
    assert held(cache) == COUNT - 600
    assert recall(cache) >= 0.95
    await cache.close()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1], lambda data: data[:2_000], lambda data: b"", lambda data: b"\xa5" * 9_000,
        lambda data: data[:5_000] + bytes([data[5_000] ^ 1]) + data[5_001:],
        lambda data: data.replace(MODEL.encode(), b"clusters:two"),
    ],
)  # fmt: skip
def test_a_damaged_or_foreign_file_counts_as_none(
    tmp_path: Path, kept: bytes, damage: Callable[[bytes], bytes]
) -> None:
    (tmp_path / FILE).write_bytes(kept)
    assert VectorGraph.read(tmp_path / FILE, MODEL, DIMENSION) is not None
    assert VectorGraph.read(tmp_path / FILE, MODEL, DIMENSION - 1) is None
    (tmp_path / FILE).write_bytes(damage(kept))
    assert VectorGraph.read(tmp_path / FILE, MODEL, DIMENSION) is None


async def test_a_damaged_file_is_made_anew(tmp_path: Path, kept: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / FILE).write_bytes(kept[:9_000])
    cache = await opened(tmp_path, count=1_200)
    await made(cache)
    assert held(cache) == 1_200
    await cache.close()
    again = await opened(tmp_path)
    monkeypatch.delattr(VectorGraph, "build")
    await made(again)
    assert held(again) == 1_200
    await again.close()


def test_an_end_in_the_middle_leaves_what_was_there(
    tmp_path: Path, kept: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / FILE
    path.write_bytes(kept)
    asked = iter([False, True])
    rows = clustered(4, 3_000)
    assert VectorGraph.build(path, MODEL, np.arange(3_000), rows, lambda: next(asked)) is None
    assert path.read_bytes() == kept
    # a disk that is full when it is written
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    assert VectorGraph.build(path, MODEL, np.arange(500), rows[:500], lambda: False) is None
    assert path.read_bytes() == kept
    assert [entry.name for entry in tmp_path.iterdir()] == [FILE]


def test_what_a_killed_process_left_is_cleared_away_later(tmp_path: Path) -> None:
    left, fresh = tmp_path / f"{FILE}.11.new", tmp_path / f"{FILE}.12.new"
    for path in (left, fresh):
        path.write_bytes(b"half")
    os.utime(left, (time.time() - 7_200, time.time() - 7_200))
    assert VectorGraph.build(tmp_path / FILE, MODEL, MEANINGS[:200], ROWS[:200], lambda: False) is not None
    assert not left.exists()
    assert fresh.exists()


@pytest.mark.parametrize(("least", "installed"), [(None, True), (0, True), (COUNT + 1, True), (1_000, False)])
async def test_without_the_extra_below_the_threshold_or_unasked_for_all_vectors_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int | None, installed: bool
) -> None:
    monkeypatch.setattr(vector_cache, "is_graph_available", lambda: installed)
    cache = await opened(tmp_path, least=least)
    for _ in range(2):
        await made(cache)
    assert held(cache) == -1
    assert not (tmp_path / FILE).exists()
    await cache.close()


async def test_where_it_can_not_be_written_it_is_not_tried_for_each_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / FILE).mkdir()
    cache = await opened(tmp_path, count=1_100)
    tried: list[Path] = []
    write = graph._write_graph

    def watched(path: Path, model: str, index: graph._Index, meanings: NDArray[np.int64], dimension: int) -> None:
        tried.append(path)
        write(path, model, index, meanings, dimension)

    monkeypatch.setattr(graph, "_write_graph", watched)
    for _ in range(3):
        await made(cache)
    assert (len(tried), held(cache)) == (1, -1)
    await cache.close()


def test_the_extra_is_only_loaded_where_it_is_asked_for() -> None:
    assert "usearch" not in vars(graph)
    assert graph.is_graph_available()


def test_a_model_can_be_loaded_in_a_process_that_has_a_graph(kept: bytes, tmp_path: Path) -> None:
    if find_spec("onnxruntime") is None:
        pytest.skip("onnxruntime is not installed")
    (tmp_path / FILE).write_bytes(kept)
    told = (
        "import sys; from pathlib import Path; from ricordo.search.ann import VectorGraph;"
        f"assert VectorGraph.read(Path({str(tmp_path / FILE)!r}), {MODEL!r}, {DIMENSION}) is not None;"
        "assert 'usearch.index' in sys.modules; import onnxruntime; print('loaded')"
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "loaded\n"), done.stderr
