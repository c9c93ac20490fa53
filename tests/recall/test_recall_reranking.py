"""A reranker joins where it answers in time, and changes nothing where it does not."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from ricordo import Message
from ricordo.messages import Text, encode_message
from ricordo.search import RecallConfig, SearchSource, search
from ricordo.search.index import WorkspaceIndex
from ricordo.search.recall import explain
from ricordo.testing import InMemoryFiles

pytestmark = [pytest.mark.anyio, pytest.mark.req("CC-RECALLFAST")]

NOW = datetime(2026, 11, 22, tzinfo=UTC)
SAID = ("The deploy of the shop failed.", "We deploy the shop from main.", "The deploy button is green.")
QUESTION = "deploy of the shop"


class Scripted:
    """Scores each text by `judge`, `seconds` late, and keeps what it was asked."""

    def __init__(self, judge: Callable[[str], float], *, seconds: float = 0.0) -> None:
        self._judge, self._seconds = judge, seconds
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        self.asked.append((query, tuple(texts)))
        await anyio.sleep(self._seconds)
        return [self._judge(text) for text in texts]


class Short:
    """Answers with too few scores."""

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return [1.0]


async def sources(tmp_path: Path) -> list[SearchSource]:
    files = InMemoryFiles()
    for at, text in enumerate(SAID):
        message = Message(role="user", name="Ada", id=f"m{at}", time=NOW, parts=(Text(text=text),))
        await files.append("workspace/agents/main/sessions/s1.log.jsonl", encode_message(message))
    return [SearchSource(label="project", index=await WorkspaceIndex.open(tmp_path / "index.db", files))]


def fails(text: str) -> float:
    raise RuntimeError(text)


@pytest.mark.req("FC-WHY")
async def test_a_reranker_in_time_moves_what_it_prefers_to_the_top_and_its_share_is_told(tmp_path: Path) -> None:
    found = await sources(tmp_path)
    plain = await search(found, QUESTION, now=NOW)
    judge = Scripted(lambda text: float("green" in text))
    hits = await search(found, QUESTION, now=NOW, reranker=judge)
    assert plain[0].entry.content != SAID[2]
    assert hits[0].entry.content == SAID[2]
    assert hits[0].score_parts["rerank"] == pytest.approx(RecallConfig().rerank)
    assert {hit.entry.content for hit in hits} == {hit.entry.content for hit in plain}
    ((query, texts),) = judge.asked
    assert (query, set(texts)) == (QUESTION, set(SAID))
    explained = await explain(found, QUESTION, now=NOW, reranker=judge)
    assert list(explained.hits) == hits


@pytest.mark.parametrize(
    "reranker",
    [
        Scripted(fails),
        Scripted(lambda text: float("nan")),
        Scripted(lambda text: 7.0),
        Scripted(lambda text: float("green" in text), seconds=60),
        Short(),
    ],
    ids=["failing", "no number", "out of range", "late", "too few"],
)
async def test_a_reranker_that_fails_or_is_late_changes_nothing(tmp_path: Path, reranker: Scripted | Short) -> None:
    found = await sources(tmp_path)
    quick = RecallConfig(rerank_seconds=0.01)
    assert await search(found, QUESTION, now=NOW, config=quick, reranker=reranker) == await search(
        found, QUESTION, now=NOW
    )


async def test_only_the_best_are_reranked_and_nothing_is_asked_for_an_empty_query(tmp_path: Path) -> None:
    found = await sources(tmp_path)
    judge = Scripted(lambda text: 0.5)
    await search(found, QUESTION, now=NOW, config=RecallConfig(reranked=1), reranker=judge)
    await search(found, "", now=NOW, reranker=judge)
    assert [len(texts) for _, texts in judge.asked] == [1]
