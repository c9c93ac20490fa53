"""A reranker that is given to a memory has a say where it answers in time, and what keeps it from that is told."""

from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import pytest

from ricordo import Memory, Scope

pytestmark = pytest.mark.anyio

ME = Scope(user="me", project="p")
SAID = (
    "The shop is green after a deploy.",
    "A deploy of the shop failed on Monday.",
    "Each deploy of the shop waits for Ines.",
)


class Judge:
    """Scores each text by `score`, `seconds` late."""

    def __init__(self, score: Callable[[str], float], *, seconds: float = 0.0) -> None:
        self._score, self._seconds = score, seconds

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a score for each text."""
        await anyio.sleep(self._seconds)
        return [self._score(text) for text in texts]


def green(text: str) -> float:
    return float("green" in text)


def failing(text: str) -> float:
    raise RuntimeError(text)


async def order(root: Path, judge: Judge | None) -> tuple[list[list[str]], str]:
    """Return what recall, search and explain find, best first, and what is told of the reranker."""
    async with Memory.open(root, scope=ME, reranker=judge) as memory:
        if not await memory.entries():
            for text in SAID:
                await memory.remember(text)
        told = await memory.explain("deploy of the shop")
        found = [await memory.recall("deploy of the shop"), await memory.search("deploy of the shop"), told.hits]
        return [[hit.entry.content for hit in hits] for hits in found], told.trouble


async def test_one_in_time_gives_its_order_to_recall_search_and_explain(tmp_path: Path) -> None:
    plain, _ = await order(tmp_path, None)
    ranked, trouble = await order(tmp_path, Judge(green))
    assert SAID[0] not in {hits[0] for hits in plain}
    assert ({hits[0] for hits in ranked}, trouble) == ({SAID[0]}, "")


@pytest.mark.parametrize(
    ("judge", "trouble"),
    [
        (Judge(green, seconds=60), "it did not answer within 0.2 s"),
        (Judge(failing), "it failed: RuntimeError"),
        (Judge(lambda text: 7.0), "it did not give a score in 0..1 for each text"),
    ],
    ids=["late", "failing", "nonsense"],
)
async def test_one_that_can_not_be_had_changes_nothing_and_is_told(tmp_path: Path, judge: Judge, trouble: str) -> None:
    plain, _ = await order(tmp_path, None)
    assert await order(tmp_path, judge) == (plain, trouble)
