"""A reranker that is given to a memory has a say where it answers in time, and what keeps it from that is told."""

from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import pytest

from ricordo import Memory, Scope

pytestmark = [pytest.mark.anyio, pytest.mark.req("CC-RECALLFAST")]

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


def write_by_hand(root: Path, old: str, new: str) -> None:
    for file in root.rglob("memory/*.md"):
        file.write_text(file.read_text().replace(old, new))


async def order(root: Path, judge: Judge | None) -> tuple[list[list[str]], str]:
    """Return what recall, search and explain find, best first, and what is told of the reranker."""
    async with Memory.open(root, scope=ME, reranker=judge) as memory:
        if not await memory.entries():
            for text in SAID:
                await memory.remember(text)
        told = await memory.explain("deploy of the shop")
        found = [await memory.recall("deploy of the shop"), await memory.search("deploy of the shop"), told.hits]
        return [[hit.entry.content for hit in hits] for hits in found], told.reranker_error


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


async def test_it_is_shown_no_secret_of_a_question_or_of_a_file_written_by_hand(tmp_path: Path) -> None:
    seen: list[str] = []

    class Listener(Judge):
        async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
            seen.extend((query, *texts))
            return await super().scores(query, texts)

    asked, written = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8", "ghp_" + "z9Y8x7W6v5U4t3S2r1Q0p9O8n7M6l5K4j3I2"
    async with Memory.open(tmp_path, scope=ME) as memory:
        await memory.remember("The deploy of the shop uses HERE.")
    write_by_hand(tmp_path, "HERE", written)
    async with Memory.open(tmp_path, scope=ME, reranker=Listener(green)) as memory:
        question = f"Is {asked} for the deploy of the shop?"
        assert await memory.recall(question)
        await memory.search(question)
        await memory.explain(question)
    assert {text for text in seen if "[secret:github-token:" in text} == {*seen}
    assert len({*seen}) == 2
    assert not [text for text in seen if asked in text or written in text]
