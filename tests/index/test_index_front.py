"""The front of vectors bounds every product, so that what is found with it is what is found without."""

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ricordo.search import vector_cache
from ricordo.search import vector_search as nearness
from ricordo.search.ann import VectorBounds, bounds_along_axes, build_bounds, cosines
from ricordo.search.index import WorkspaceIndex
from ricordo.search.vector_cache import VectorCache
from ricordo.search.vector_search import BoundedSimilarities, CosineScale, ExactSimilarities, RowVectors, VectorReader
from ricordo.storage.local import LocalFiles
from ricordo.workspace import INDEX_FILE

SCALE = CosineScale(min_cosine=0.1, max_cosine=0.7)


def uneven(random: np.random.Generator, count: int, dimension: int, fall: float) -> NDArray[np.float32]:
    """Return vectors of the length 1, whose numbers fall off along hidden axes."""
    axes = np.linalg.qr(random.standard_normal((dimension, dimension)))[0]
    rows = (random.standard_normal((count, dimension)) * fall ** np.arange(dimension)) @ axes
    unit: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def axes_of(rows: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    _, axes = np.linalg.eigh((rows.T @ rows).astype(np.float64))
    return np.ascontiguousarray(axes[:, ::-1][:, :size], dtype=np.float32)


@given(
    st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(2, 40), st.sampled_from([0.5, 0.9, 1.0]),
    st.sampled_from([1e-3, 1.0, 50.0]), st.data(),
)  # fmt: skip
@settings(max_examples=60)
def test_no_product_is_larger_than_its_bound(
    seed: int, count: int, dimension: int, fall: float, length: float, data: st.DataObject
) -> None:
    random = np.random.default_rng(seed)
    rows = uneven(random, count, dimension, fall) * np.float32(length)
    # axes of other vectors are as good, and so are rows that come later
    of = data.draw(st.sampled_from([rows, uneven(random, 30, dimension, 1.0)]))
    first = data.draw(st.integers(1, count))
    front = bounds_along_axes(rows[:first], axes_of(of, data.draw(st.integers(1, dimension))))
    front = front.extend(rows) or bounds_along_axes(rows, front.axes)
    assert len(front) == count
    for vector in (*rows[:3], uneven(random, 1, dimension, 1.0)[0] * np.float32(length)):
        assert np.all(front.upper_bounds(vector)[0].astype(np.float64) >= rows.astype(np.float64) @ vector)


def test_a_bound_is_near_to_the_product_where_the_front_holds_most_of_the_length() -> None:
    rows = uneven(np.random.default_rng(1), 200, 32, 0.6)
    front = bounds_along_axes(rows, axes_of(rows, 16))
    assert np.max(front.upper_bounds(rows[0])[0] - rows @ rows[0]) < 0.02


def places_of(random: np.random.Generator, count: int, rows: int, *, sparse: bool) -> RowVectors:
    """Return rows of a corpus that stand alone, of which some may have no vector, or share one."""
    at = random.integers(-1, count, rows) if sparse else np.arange(rows)
    return RowVectors(
        vector_rows=at.astype(np.int32), beside=np.full((2, rows), -1, dtype=np.int32), is_straight=not sparse,
        is_whole=not sparse, is_alone=True,
    )  # fmt: skip


@given(
    st.integers(0, 2**32 - 1), st.booleans(), st.integers(1, 12), st.sampled_from([0.6, 0.8, 1.0]),
    st.sampled_from([0.3, 0.9, 1.0]),
)  # fmt: skip
@settings(max_examples=60)
def test_what_is_found_with_a_front_is_what_is_found_without(
    seed: int, sparse: bool, wanted: int, fall: float, covered: float
) -> None:
    random = np.random.default_rng(seed)
    rows = uneven(random, 400, 24, fall)
    # some are equal, and have to be equally near
    rows[random.integers(0, 400, 60)] = rows[random.integers(0, 400, 60)]
    front = bounds_along_axes(rows[: int(covered * len(rows))], axes_of(rows, 12))
    places = places_of(random, len(rows), 500 if sparse else 400, sparse=sparse)
    vector = rows[3] if seed % 2 else uneven(random, 1, 24, fall)[0]
    whole, bounded = (
        ExactSimilarities.compute(rows, vector, places, SCALE),
        BoundedSimilarities(VectorReader(rows, vector, places, SCALE), front),
    )
    every = np.arange(len(places.vector_rows))
    assert np.array_equal(bounded.has_vectors(every), whole.has_vectors(every))
    for mine, theirs in zip(
        (*bounded.own_and_context(every), bounded.similarity(every)),
        (*whole.own_and_context(every), whole.similarity(every)),
        strict=True,
    ):
        assert np.allclose(mine, theirs, atol=1e-5)
    found, more = bounded.nearest(wanted)
    expected, expected_more = whole.nearest(wanted)
    assert more == expected_more
    assert np.all(np.diff(found) > 0)
    near = np.where(whole.has_vectors(every), whole.similarity(every), -1.0)
    assert np.all(bounded.has_vectors(found))
    missed = np.setdiff1d(expected, found)
    assert np.all(near[missed] < near[expected].min(initial=1.0) + 1e-5)
    least = np.partition(near, len(near) - wanted)[len(near) - wanted]
    assert len(found) >= min(wanted, int(np.sum(near > 1e-5))) - len(missed)
    assert np.all(near[found] >= min(least, 1.0) - 1e-5)
    assert set(np.flatnonzero(near > max(least, 0.0) + 1e-5)) <= set(found.tolist())


def test_few_vectors_are_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    rows = uneven(random, 4_000, 64, 0.93)
    places = places_of(random, len(rows), len(rows), sparse=False)
    front = bounds_along_axes(rows, axes_of(rows, 32))
    read: list[int] = []

    def watched(some: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float32]:
        read.append(len(some))
        return cosines(some, vector)

    monkeypatch.setattr(nearness, "cosines", watched)
    found, _ = BoundedSimilarities(VectorReader(rows, rows[7], places, SCALE), front).nearest(40)
    assert sum(read) < len(rows) // 4
    monkeypatch.undo()
    assert set(found) == set(ExactSimilarities.compute(rows, rows[7], places, SCALE).nearest(40)[0])


def test_equal_vectors_are_equally_near_wherever_they_stand() -> None:
    random = np.random.default_rng(2)
    rows = uneven(random, 333, 24, 0.8)
    rows[[5, 77, 332]] = rows[100]
    places = places_of(random, 333, 333, sparse=False)
    near = BoundedSimilarities(VectorReader(rows, rows[8], places, SCALE), bounds_along_axes(rows, axes_of(rows, 12)))
    assert len({*near.similarity(np.array([5, 77, 100, 332])).tolist()}) == 1


def test_a_front_is_made_only_where_it_is_quicker() -> None:
    random = np.random.default_rng(3)
    sharp = build_bounds(uneven(random, 30_000, 64, 0.9))
    assert sharp is not None
    assert len(sharp) == sharp.sample_size == 30_000
    assert sharp.heads.shape[1] <= 32
    assert build_bounds(uneven(random, 30_000, 64, 1.0)) is None


def test_a_front_takes_in_later_vectors_until_its_axes_are_too_old() -> None:
    random = np.random.default_rng(4)
    rows = uneven(random, 100, 16, 0.7)
    front = bounds_along_axes(rows[:25], axes_of(rows, 8))
    later = front.extend(rows)
    assert later is not None
    assert np.allclose(later.heads, bounds_along_axes(rows, front.axes).heads, atol=1e-6)
    assert np.allclose(later.rests, bounds_along_axes(rows, front.axes).rests, atol=1e-6)
    assert bounds_along_axes(rows[:24], front.axes).extend(rows) is None


def test_a_front_without_some_vectors_is_that_of_the_others() -> None:
    rows = uneven(np.random.default_rng(6), 50, 16, 0.7)
    kept = np.arange(60) % 3 > 0
    left: VectorBounds = bounds_along_axes(rows, axes_of(rows, 8)).select(kept)
    assert np.array_equal(left.heads, bounds_along_axes(rows[kept[:50]], axes_of(rows, 8)).heads)
    assert len(left.rests) == len(left) == int(kept[:50].sum())


class Spread:
    """An embedder whose vectors are uneven, as those of texts are, and told by the first number in a text."""

    model_id = "spread:one"
    dimension = 64

    def __init__(self) -> None:
        self.rows = uneven(np.random.default_rng(8), 6_000, self.dimension, 0.85)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the row of each number."""
        return self.rows[[int(text.split()[-1]) for text in texts]]


def covered(cache: VectorCache) -> int:
    """Return of how many vectors there is a front, -1 without one."""
    return -1 if cache.current.bounds is None else len(cache.current.bounds)


async def filled(cache: VectorCache, first: int, last: int) -> None:
    await cache.add(np.arange(first, last) * 7, Spread().rows[first:last])


@pytest.mark.anyio
async def test_a_front_is_made_beside_and_follows_what_is_added_and_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_cache, "MIN_BOUNDED_NUMBERS", 4_000 * Spread.dimension)
    cache = VectorCache(tmp_path / "vectors.db", "spread:one")
    await filled(cache, 0, 3_999)
    cache.start_build()
    await cache.wait_for_build()
    assert covered(cache) == -1
    await filled(cache, 3_999, 4_100)
    cache.start_build()
    await cache.wait_for_build()
    assert covered(cache) == 4_100
    # a few more are looked at one by one, many get a front too
    await filled(cache, 4_100, 4_200)
    cache.start_build()
    await cache.wait_for_build()
    assert (covered(cache), len(cache.current.text_ids)) == (4_100, 4_200)
    await filled(cache, 4_200, 5_000)
    cache.start_build()
    await cache.wait_for_build()
    assert covered(cache) == 5_000
    await cache.prune(np.arange(10, 300))
    assert covered(cache) == len(cache.current.text_ids) == 4_710
    assert cache.current.bounds is not None
    for vector in cache.current.rows[::900]:
        assert np.all(cache.current.bounds.upper_bounds(vector)[0] >= cache.current.rows @ vector)
    await cache.clear()
    assert covered(cache) == -1
    await cache.close()


@pytest.mark.anyio
async def test_where_a_front_gains_nothing_it_is_not_tried_again_for_each_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_cache, "MIN_BOUNDED_NUMBERS", 0)
    tried: list[int] = []
    monkeypatch.setattr(vector_cache, "build_bounds", lambda rows: tried.append(len(rows)))
    cache = VectorCache(tmp_path / "vectors.db", "spread:one")
    for size in (100, 150, 199, 200, 250):
        await filled(cache, len(cache.current.text_ids), size)
        for _ in range(2):
            cache.start_build()
            await cache.wait_for_build()
    assert tried == [100, 200]
    await cache.close()
    cache.start_build()
    assert len(tried) == 2


@pytest.mark.anyio
@pytest.mark.may_block("the check waits for a thread that is being made")
async def test_what_was_made_of_vectors_that_are_gone_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_cache, "MIN_BOUNDED_NUMBERS", 0)
    begun, go = threading.Event(), threading.Event()

    def slow(rows: NDArray[np.float32]) -> VectorBounds:
        begun.set()
        assert go.wait(5)
        return bounds_along_axes(rows, axes_of(rows, 8))

    monkeypatch.setattr(vector_cache, "build_bounds", slow)
    cache = VectorCache(tmp_path / "vectors.db", "spread:one")
    await filled(cache, 0, 100)
    cache.start_build()
    assert begun.wait(5)
    await filled(cache, 100, 120)
    await cache.prune(np.arange(50))
    go.set()
    await cache.wait_for_build()
    assert covered(cache) == -1
    cache.start_build()
    await cache.wait_for_build()
    assert covered(cache) == 70
    await cache.close()


@pytest.mark.anyio
async def test_an_index_finds_the_same_once_it_is_quicker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_cache, "MIN_BOUNDED_NUMBERS", 0)
    monkeypatch.setattr(vector_cache, "build_bounds", lambda rows: bounds_along_axes(rows, axes_of(rows, 32)))
    for share in ("_MOST_WANTED", "_MOST_READ"):
        monkeypatch.setattr(nearness, share, 1.0)
    notes = tmp_path / "workspace/memory/topics/notes.md"
    notes.parent.mkdir(parents=True)
    notes.write_text("".join(f"- Note {number}\n" for number in range(3_000)))
    index = await WorkspaceIndex.open(tmp_path / INDEX_FILE, LocalFiles(tmp_path), embedder=Spread())
    await index.refresh()
    asked = [f"Something near {number}" for number in (5, 99, 1_234, 2_999)]
    before = [await index.search(text) for text in asked]
    assert index._index_embedder is not None
    cache = index._index_embedder._cache
    assert covered(cache) == -1
    for text in asked[:2]:
        await index.search(text)
    await cache.wait_for_build()
    assert covered(cache) == 3_000
    after = [await index.search(text) for text in asked]
    for mine, theirs in zip(after, before, strict=True):
        assert len(mine) == 10
        assert [match.content for match in mine] == [match.content for match in theirs]
        assert np.allclose([match.score for match in mine], [match.score for match in theirs], atol=1e-5)
    await index.close()
