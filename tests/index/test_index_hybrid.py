"""Search by words and by meaning: what shares no word is found, nothing that words find is lost, nothing goes stale."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path

import anyio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concepts import Concepts
from ricordo import Message
from ricordo.messages import Text, encode_message
from ricordo.search import Match, Query
from ricordo.search import segments as hybrid
from ricordo.search.chunking import embedding_text
from ricordo.search.index import WorkspaceIndex
from ricordo.search.vector_search import cosines
from ricordo.storage.local import LocalFiles
from ricordo.workspace import INDEX_FILE

pytestmark = pytest.mark.anyio

TOPIC = "workspace/memory/topics/home.md"
LOG = "workspace/agents/main/sessions/s1.log.jsonl"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def place(root: Path, path: str, content: str) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content)


def home(root: Path, before: str = "") -> None:
    place(root, TOPIC, f"{before}- The dog sleeps in the kitchen.\n- We sail on Sundays.\n- A loaf costs two coins.\n")


@asynccontextmanager
async def opened(root: Path, embedder: Concepts | None = None) -> AsyncIterator[WorkspaceIndex]:
    index = await WorkspaceIndex.open(root / INDEX_FILE, LocalFiles(root), embedder=embedder)
    try:
        yield index
    finally:
        await index.close()


def contents(matches: list[Match]) -> list[str]:
    return [match.content for match in matches]


def told(matches: list[Match]) -> list[tuple[str, float, dict[str, float]]]:
    return [(match.content, match.score, dict(match.signals)) for match in matches]


async def test_what_shares_no_word_with_the_query_is_found_by_its_meaning(tmp_path: Path) -> None:
    home(tmp_path)
    async with opened(tmp_path, Concepts()) as index:
        assert await index.search("Where is the puppy?") == []
        await index.refresh()
        (found,) = await index.search("Where is the puppy?")
        assert found.content == "The dog sleeps in the kitchen."
        assert found.matched_words == ()
        assert found.signals["bm25"] == 0.0
        assert 0 < found.score < 1
        assert 0.9 < found.signals["dense"] <= 1
        assert index.freshness().not_embedded == 0
        # words and meaning agree here, and only meaning there
        both = await index.search("Does the dog or the ship sleep?")
        assert contents(both) == ["The dog sleeps in the kitchen.", "We sail on Sundays."]
        assert [match.rank for match in both] == [1, 2]


@pytest.mark.req("FC-NOKEY")
async def test_without_an_embedder_there_is_no_signal_and_no_file(tmp_path: Path) -> None:
    home(tmp_path)
    async with opened(tmp_path) as index:
        await index.refresh()
        assert set((await index.search("dog"))[0].signals) == {"bm25", "context", "coverage", "reach", "missing_words"}
    assert not (tmp_path / "memory_index_vectors.db").exists()


async def test_filters_hold_for_what_is_found_by_meaning(tmp_path: Path) -> None:
    home(tmp_path)
    place(tmp_path, "workspace/memory/topics/other.md", "- The hound is old.\n")
    async with opened(tmp_path, Concepts()) as index:
        await index.refresh()
        assert len(await index.search("puppy")) == 2
        assert contents(await index.search(Query(text="puppy", path=TOPIC))) == ["The dog sleeps in the kitchen."]
        assert await index.search(Query(text="puppy", document_types=("transcript",))) == []
        assert await index.search(Query(text="puppy", since=NOON)) == []


async def test_a_passage_is_near_by_its_neighbours_too_and_an_entry_by_itself_alone(tmp_path: Path) -> None:
    said = ["Our puppy ran.", "Far away.", "The boat leaks.", "Yes."]
    rows = [
        encode_message(Message(role="user", id=f"m{n}", time=NOON, parts=(Text(text=t),))) for n, t in enumerate(said)
    ]
    place(tmp_path, LOG, "".join(row.decode() for row in rows))
    place(tmp_path, TOPIC, "- A hound barks.\n- It is late.\n")
    async with opened(tmp_path, Concepts()) as index:
        await index.refresh()
        found = {match.content: match.signals for match in await index.search("dog")}
    assert set(found) == {"Our puppy ran.", "Far away.", "A hound barks."}
    assert found["Far away."]["dense"] < found["Far away."]["dense_context"] < found["Our puppy ran."]["dense"]
    assert found["A hound barks."]["dense"] == found["A hound barks."]["dense_context"]


async def test_among_passages_that_are_equally_near_neighbours_change_nothing(tmp_path: Path) -> None:
    said = ["The dog on the boat.", "A puppy in a ship.", "A hound can sail.", "Our dog has a boat."]
    rows = [
        encode_message(Message(role="user", id=f"m{n}", time=NOON, parts=(Text(text=t),))) for n, t in enumerate(said)
    ]
    place(tmp_path, LOG, "".join(row.decode() for row in rows))
    async with opened(tmp_path, Concepts()) as index:
        await index.refresh()
        found = {match.content: match.signals for match in await index.search("dog")}
    assert set(found) == set(said)
    assert all(0 < signals["dense"] < 1 for signals in found.values())
    assert all(signals["dense_context"] == pytest.approx(signals["dense"]) for signals in found.values())


async def test_a_reopened_index_and_a_rebuilt_one_answer_the_same_and_embed_nothing_again(tmp_path: Path) -> None:
    home(tmp_path)
    async with opened(tmp_path, Concepts()) as index:
        await index.refresh()
        before = told(await index.search("puppy on a ship, sleeps"))
    later = Concepts()
    async with opened(tmp_path, later) as index:
        assert told(await index.search("puppy on a ship, sleeps")) == before
    for ending in ("", "-wal", "-shm"):
        (tmp_path / f"{INDEX_FILE}{ending}").unlink(missing_ok=True)
    async with opened(tmp_path, later) as index:
        await index.refresh()
        assert told(await index.search("puppy on a ship, sleeps")) == before
    assert set(later.asked) == {"puppy on a ship, sleeps"}


async def test_lines_that_move_and_files_that_are_renamed_need_nothing_embedded_again(tmp_path: Path) -> None:
    home(tmp_path)
    embedder = Concepts()
    async with opened(tmp_path, embedder) as index:
        await index.refresh()
        embedder.asked.clear()
        home(tmp_path, before="- A new first line.\n")
        await index.refresh()
        assert [text for text in embedder.asked if "new first" not in text] == []
        (tmp_path / TOPIC).rename(tmp_path / "workspace/memory/topics/house.md")
        await index.search("anything")
        (found,) = await index.search("puppy")
        assert (found.path, found.line_number) == ("workspace/memory/topics/house.md", 2)


@pytest.mark.req("AS-BUG-26")
async def test_what_is_gone_is_never_found_by_its_vector_which_is_forgotten(tmp_path: Path) -> None:
    home(tmp_path)
    embedder = Concepts()
    async with opened(tmp_path, embedder) as index:
        await index.refresh()
        place(tmp_path, TOPIC, "- We sail on Sundays.\n")
        assert await index.search("puppy") == []
        await index.refresh()
        place(tmp_path, TOPIC, "- We sail on Sundays.\n- The dog sleeps in the kitchen.\n")
        embedder.asked.clear()
        await index.refresh()
        assert len(embedder.asked) == 1
        assert contents(await index.search("puppy")) == ["The dog sleeps in the kitchen."]


async def test_what_is_added_is_embedded_beside_everything_else(tmp_path: Path) -> None:
    home(tmp_path)
    files = LocalFiles(tmp_path)
    async with opened(tmp_path, Concepts()) as index, anyio.create_task_group() as group:
        group.start_soon(index.serve)
        block = b"- A hound is here. ^01jd0000000000000000000001\n"
        appended = await files.append("workspace/memory/2026-11-21.md", block)
        await index.index_appended("workspace/memory/2026-11-21.md", appended.offset, block)
        for _ in range(500):
            if len(await index.search("puppy")) == 2:
                break
            await anyio.sleep(0.01)
        assert len(await index.search("puppy")) == 2
        group.cancel_scope.cancel()


async def test_two_processes_share_what_one_of_them_embedded(tmp_path: Path) -> None:
    home(tmp_path)
    first, second = Concepts(), Concepts()
    async with opened(tmp_path, first) as one, opened(tmp_path, second) as other:
        assert await other.search("puppy") == []
        await one.refresh()
        await other.refresh()
        assert told(await one.search("puppy")) == told(await other.search("puppy")) != []
    assert set(second.asked) == {"puppy"}


async def test_vectors_of_another_model_are_made_anew_and_never_compared(tmp_path: Path) -> None:
    home(tmp_path)
    async with opened(tmp_path, Concepts()) as index:
        await index.refresh()
    changed = Concepts("concepts:two", dimension=8)
    async with opened(tmp_path, changed) as index:
        assert await index.search("puppy") == []
        assert contents(await index.search("dog")) == ["The dog sleeps in the kitchen."]
        await index.refresh()
        assert contents(await index.search("puppy")) == ["The dog sleeps in the kitchen."]
    assert len(changed.asked) == len(set(changed.asked)) == 4


WORDS = ("dog", "puppy", "boat", "ship", "bread", "stone", "river", "cloud")


@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), min_size=1, max_size=30),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3, unique=True),
    st.integers(1, 12),
)
@settings(max_examples=12)
def test_meaning_adds_to_what_words_find_and_takes_nothing_from_the_first_half(
    tmp_path_factory: pytest.TempPathFactory, texts: list[list[str]], asked: list[str], limit: int
) -> None:
    root = tmp_path_factory.mktemp("half")
    place(root, TOPIC, "".join(f"- {' '.join(words)} {number}.\n" for number, words in enumerate(texts)))

    async def compare() -> None:
        async with opened(root) as index:
            await index.refresh()
            plain = await index.search(" ".join(asked), limit)
        async with opened(root, Concepts()) as index:
            await index.refresh()
            found = await index.search(" ".join(asked), limit)
        assert len(plain) <= len(found) <= limit
        assert set(contents(plain)[: limit // 2]) <= set(contents(found))
        assert [match.score for match in found] == sorted((match.score for match in found), reverse=True)

    anyio.run(compare)


async def test_where_meaning_counts_nothing_the_order_is_that_of_the_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(tmp_path, TOPIC, "".join(f"- {WORDS[n % 8]} {WORDS[n % 5]} {n}.\n" for n in range(40)))
    async with opened(tmp_path) as index:
        await index.refresh()
        plain = contents(await index.search("dog river", 30))
    monkeypatch.setattr(hybrid, "SEMANTIC_WEIGHT", 0.0)
    async with opened(tmp_path, Concepts()) as index:
        await index.refresh()
        found = contents(await index.search("dog river", 30))
    assert found[: len(plain)] == plain


@pytest.mark.parametrize("count", [0, 1, 1_023, 1_025, 5_000])
def test_cosines_are_those_of_all_rows_however_many_there_are(count: int) -> None:
    random = np.random.default_rng(count)
    rows = random.standard_normal((count, 256)).astype(np.float32)
    vector = random.standard_normal(256).astype(np.float32)
    assert np.allclose(cosines(rows, vector), rows.astype(np.float64) @ vector, atol=1e-3)


async def test_a_chunk_is_embedded_as_it_was_stored(tmp_path: Path) -> None:
    place(tmp_path, "workspace/notes.md", "# Trips\n\nA \ud7ff walk.\n".encode("utf-8").decode())
    embedder = Concepts()
    async with opened(tmp_path, embedder) as index:
        await index.refresh()
        (found,) = await index.search("walk")
    assert embedder.asked[0] == embedding_text(found.chunk) == "Trips: A \ud7ff walk."


async def test_a_date_is_no_part_of_what_is_embedded(tmp_path: Path) -> None:
    row = encode_message(Message(role="user", name="Ines", id="m1", time=NOON, parts=(Text(text="A walk."),)))
    place(tmp_path, LOG, row.decode())
    place(tmp_path, "workspace/memory/2026-11-21.md", "# 2026-11-21\n\n- A boat. [time:: 2026-11-21]\n")
    embedder = Concepts()
    async with opened(tmp_path, embedder) as index:
        await index.refresh()
    assert sorted(embedder.asked) == ["A boat.", "Ines: A walk."]


async def test_an_index_that_embedded_other_texts_of_its_chunks_is_made_anew(tmp_path: Path) -> None:
    home(tmp_path)
    async with opened(tmp_path, Concepts()) as index:
        await index.refresh()
    with closing(sqlite3.connect(tmp_path / INDEX_FILE, isolation_level=None)) as database:
        database.execute("UPDATE chunk SET meaning = meaning + 1")
        database.execute("PRAGMA user_version = 5")
    embedder = Concepts()
    async with opened(tmp_path, embedder) as index:
        await index.refresh()
        assert index.freshness().not_embedded == 0
        assert contents(await index.search("puppy")) == ["The dog sleeps in the kitchen."]
    assert embedder.asked == ["puppy"]
