"""The vector index: exactly the nearest, of one model and one length, whoever wrote them."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from sqlite3 import connect

import anyio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ricordo.search.vector_index import Vector, VectorIndex, text_digest

pytestmark = pytest.mark.anyio


def unit(*numbers: float) -> NDArray[np.float32]:
    row = np.array(numbers, dtype=np.float32)
    return (row / np.linalg.norm(row)).astype(np.float32)


def vectors(**rows: Sequence[float]) -> list[Vector]:
    return [Vector(id=name, digest=f"of {name}", numbers=unit(*row)) for name, row in rows.items()]


async def names(index: VectorIndex, *numbers: float, limit: int = 9) -> list[str]:
    return [near.id for near in (await index.search(unit(*numbers), limit)).matches]


@pytest.mark.req("HE-C7-ties")
async def test_the_nearest_come_first_and_of_equals_the_highest_id(tmp_path: Path) -> None:
    index = VectorIndex(tmp_path / "v.db", "m")
    assert (await index.search(unit(1, 0), 3)).matches == ()
    await index.add(vectors(east=(1, 0), north=(0, 1), west=(-1, 0), also=(2, 0)))
    found = await index.search(unit(3, 1), 3)
    assert [near.id for near in found.matches] == ["east", "also", "north"]
    assert found.matches[0].cosine == pytest.approx(3 / 10**0.5)
    assert found.digests["west"] == "of west"
    assert await names(index, -1, 0, limit=1) == ["west"]
    passing = await index.search(unit(1, 0), 2, passes=lambda name, digest: name != "east" and digest != "of also")
    assert [near.id for near in passing.matches] == ["north", "west"]
    await index.close()


@pytest.mark.req("HE-O-audit-forget")
@given(st.integers(1, 500), st.integers(1, 8), st.integers(1, 400), st.integers(0, 99))
@settings(max_examples=15)
def test_a_search_is_exact_whatever_was_added_replaced_and_removed(
    tmp_path_factory: pytest.TempPathFactory, count: int, dimension: int, limit: int, seed: int
) -> None:
    anyio.run(_compare, tmp_path_factory.mktemp("exact"), count, dimension, limit, seed)


async def _compare(folder: Path, count: int, dimension: int, limit: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    # few different numbers, so that many are equally near
    drawn = random.integers(-2, 3, (count + 50, dimension)).astype(np.float32)
    drawn[:, 0] += 9
    rows = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    index = VectorIndex(folder / "v.db", "m")
    first = [Vector(id=f"{at}", digest="1", numbers=rows[at]) for at in range(count)]
    again = [Vector(id=f"{at % count}", digest="2", numbers=rows[at]) for at in range(count, count + 50)]
    gone = {f"{at}" for at in range(0, count, 3)}
    await index.add(first)
    await names(index, *([1] * dimension))
    await index.add(again)
    await index.remove(gone)
    held = {vector.id: vector.numbers for vector in [*first, *again] if vector.id not in gone}
    other = VectorIndex(folder / "v.db", "m")
    for searched in (index, other):
        found = await searched.search(rows[0], limit)
        assert found.digests.keys() == held.keys()
        cosines = sorted((float(numbers @ rows[0]) for numbers in held.values()), reverse=True)[:limit]
        assert [near.cosine for near in found.matches] == pytest.approx(cosines, abs=1e-5)
        assert len({near.id for near in found.matches} & held.keys()) == len(cosines)
    await index.close()
    await other.close()


async def test_what_another_process_adds_replaces_and_removes_is_seen(tmp_path: Path) -> None:
    one, other = VectorIndex(tmp_path / "v.db", "m"), VectorIndex(tmp_path / "v.db", "m")
    await one.add(vectors(a=(1, 0), b=(0, 1)))
    assert await names(other, 1, 0) == ["a", "b"]
    await one.add(vectors(a=(-1, 0), c=(1, 0)))
    await other.add(vectors(d=(2, 1)))
    assert await names(other, 1, 0) == await names(one, 1, 0) == ["c", "d", "b", "a"]
    await one.remove(["c", "a"])
    assert await names(other, 1, 0) == ["d", "b"]
    await one.close()
    await one.close()
    await other.close()


async def test_two_models_in_one_file_never_meet(tmp_path: Path) -> None:
    one, other = VectorIndex(tmp_path / "v.db", "one"), VectorIndex(tmp_path / "v.db", "other")
    await one.add(vectors(a=(1, 0), b=(0, 1)))
    await other.add(vectors(a=(0, 1, 1)))
    assert await names(one, 1, 0) == ["a", "b"]
    assert await names(other, 0, 1, 1) == ["a"]
    assert await other.digests() == {"a": "of a"}
    with closing(connect(tmp_path / "v.db")) as file:
        kept = file.execute("SELECT id, model, dimension, length(numbers) FROM vector ORDER BY model, id").fetchall()
    assert kept == [("a", "one", 2, 8), ("b", "one", 2, 8), ("a", "other", 3, 12)]
    await other.retain({"a"})
    assert await names(one, 1, 0) == []
    await one.close()
    await other.close()


@pytest.mark.req("GO-BK-vector-model")
async def test_vectors_of_another_length_take_the_place_of_all_before(tmp_path: Path) -> None:
    index, other = VectorIndex(tmp_path / "v.db", "m"), VectorIndex(tmp_path / "v.db", "m")
    await index.add(vectors(a=(1, 0), b=(0, 1)))
    assert await names(other, 1, 0) == ["a", "b"]
    assert await names(index, 1, 0, 0) == []
    assert await index.digests() == {}
    await index.add(vectors(b=(0, 1, 0)))
    assert await names(index, 1, 0, 0) == ["b"]
    assert await names(other, 1, 0) == []
    assert await other.digests() == {}
    await other.close()
    other = VectorIndex(tmp_path / "v.db", "m")
    assert await other.digests() == {"b": "of b"}
    await index.close()
    await other.close()


@pytest.mark.parametrize("damage", [b"no database", b""])
async def test_a_damaged_file_is_empty_and_can_be_filled_again(damage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "v.db"
    index = VectorIndex(path, "m")
    await index.add(vectors(a=(1, 0)))
    await index.close()
    path.write_bytes(damage)
    index = VectorIndex(path, "m")
    assert await names(index, 1, 0) == []
    assert await index.add(vectors(b=(1, 0)))
    assert await names(index, 1, 0) == ["b"]
    path.unlink()
    assert await names(index, 1, 0) == []
    assert await index.add(vectors(c=(1, 0)))
    assert await names(index, 1, 0) == ["c"]
    await index.close()


async def test_a_place_that_can_hold_no_file_is_told_and_found_empty(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    index = VectorIndex(tmp_path / "file" / "v.db", "m")
    assert not await index.add(vectors(a=(1, 0)))
    assert index.error
    assert (await index.search(unit(1, 0), 3)).digests == {}
    assert await index.digests() == {}
    await index.remove(["a"])
    await index.close()


@given(st.text(), st.text())
def test_a_digest_tells_two_texts_apart(one: str, other: str) -> None:
    assert (text_digest(one) == text_digest(other)) == (one == other)
