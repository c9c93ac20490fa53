"""The setting `ann_vectors` says from how many vectors on a memory makes an approximate index, beside its vectors."""

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from ricordo import Memory, Scope
from ricordo.errors import InvalidSetting
from ricordo.runtime import Settings

pytestmark = pytest.mark.anyio

ME = Scope(user="me")


@pytest.mark.parametrize(("least", "expected"), [(6, True), (7, False), (0, False)])
async def test_a_memory_of_enough_vectors_makes_an_approximate_index(
    tmp_path: Path, least: int, expected: bool
) -> None:
    made = anyio.Path(tmp_path / "root" / "memory_index_vectors.ann")
    settings = replace(Settings.from_environment({}), ann_vectors=least, data=tmp_path / "data")
    async with Memory.open(tmp_path / "root", scope=ME, settings=settings, embedder="hashing") as memory:
        for number in range(6):
            await memory.remember(f"The ferry number {number} sails at noon")
        await memory.embed()
        before = await memory.recall("ferry at noon")
        for _ in range(5):
            await memory.recall("ferry at noon")
        for _ in range(300 if expected else 10):
            if await made.exists():
                break
            await anyio.sleep(0.01)
        after = await memory.recall("ferry at noon")
    assert [hit.entry.content for hit in after if hit.entry] == [hit.entry.content for hit in before if hit.entry]
    assert await made.exists() == expected


def test_a_number_below_nothing_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="ann_vectors"):
        replace(Settings.from_environment({}), ann_vectors=-1)
