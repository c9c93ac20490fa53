"""Vectors: what is near is found, and an embedder that fails, or is another, costs no entry and mixes nothing."""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from sqlite3 import connect
from types import SimpleNamespace

import anyio
import numpy as np
import pytest
from numpy.typing import NDArray

from ricordo import Entry
from ricordo.errors import InvalidSetting, ModelOverflow, ModelUnavailable
from ricordo.guard import parse_fence
from ricordo.models.embedders.static import HashingEmbedder
from ricordo.runtime import open_store
from ricordo.scope import Scope
from ricordo.search import Query
from ricordo.stores import Forgets, Store, vector
from ricordo.stores.vector import ListsUnembedded

pytestmark = [pytest.mark.anyio, pytest.mark.req("GO-BK-vector", "GO-BK-vector-model")]

SHOP = Scope(user="me", project="shop")
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@dataclass(kw_only=True)
class Colours:
    """An embedder that knows how much of some words a text has; `refuses` says why it does not embed a text."""

    words: Sequence[str] = ("red", "green", "blue")
    model_id: str = "colours"
    embedded: list[str] = field(default_factory=list)
    refuses: Callable[[str], Exception | None] = lambda _: None
    is_silent: bool = False
    asked_in_silence: anyio.Event = field(default_factory=anyio.Event)

    @property
    def dimension(self) -> int:
        return len(self.words)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.is_silent:
            self.asked_in_silence.set()
            await anyio.sleep_forever()
        for error in filter(None, map(self.refuses, texts)):
            raise error
        self.embedded += texts
        rows = np.array([[text.count(word) for word in self.words] for text in texts], dtype=np.float32)
        # of whatever length: what is compared is the angle
        rows += 1e-4
        return rows


def opened(tmp_path: Path, embedder: Colours, options: str = "") -> AbstractAsyncContextManager[Store]:
    return open_store(f"vector:{tmp_path / 'notes'}{options}", scope=SHOP, embedder=embedder)


async def texts(store: Store, query: str | Query, limit: int = 99) -> list[str]:
    return [hit.entry.content for hit in await store.recall(query, limit)]


async def save(store: Store, *contents: str) -> list[Entry]:
    return [await store.save(Entry(content=content, time=NOON)) for content in contents]


async def not_embedded(store: Store) -> list[str]:
    embeds = store.offers(ListsUnembedded)
    assert embeds is not None
    return [*await embeds.missing_vectors()]


def rows(tmp_path: Path) -> list[tuple[str, str, int]]:
    with closing(connect(tmp_path / "notes" / "memory_vectors.db")) as file:
        return file.execute("SELECT id, model, dimension FROM vector ORDER BY id, model").fetchall()


@pytest.mark.req("GO-BK-vector")
async def test_entries_are_embedded_on_save_found_by_cosine_and_the_newest_by_time_are_shown(tmp_path: Path) -> None:
    colours = Colours()
    async with opened(tmp_path, colours, "?newest=2") as store:
        reds = ["red red green", "red", "green blue", "red green green"]
        for age, content in enumerate(reds):
            await store.save(Entry(content=content, time=NOON - timedelta(hours=age % 3)))
            assert colours.embedded[-1] == content
        hits = await store.recall("red", 3)
        assert [hit.entry.content for hit in hits] == ["red", "red red green", "red green green"]
        assert [round(hit.score, 2) for hit in hits] == [1.0, 0.89, 0.45]
        assert [hit.explanation for hit in hits] == ["cosine 1.00", "cosine 0.89", "cosine 0.45"]
        assert [hit.signals for hit in hits] == [{"cosine": hit.score} for hit in hits]
        assert await texts(store, "green blue", 1) == ["green blue"]
        assert await texts(store, "", 2) == reds[:1:-1]
        assert parse_fence(await store.preamble()) == (reds[3], reds[0])
        assert "2 memories did not fit here" in await store.preamble()
    count = len(colours.embedded)
    async with opened(tmp_path, colours) as store:
        assert await texts(store, "red", 2) == ["red", "red red green"]
        assert parse_fence(await store.preamble()) == (reds[3], reds[0], reds[1], reds[2])
    assert len(colours.embedded) == count + 1
    async with opened(tmp_path, colours, "?newest=2") as store:
        [old] = [hit.entry for hit in await store.recall("green", 9) if hit.entry.content == reds[3]]
        await store.save(Entry(content="blue", time=NOON + timedelta(hours=1), supersedes=old.id))
        assert parse_fence(await store.preamble()) == ("blue", reds[0]), "what was replaced takes no place"


@pytest.mark.req("GO-BK-vector-model")
async def test_another_model_embeds_everything_anew_and_a_failure_costs_no_entry(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path, Colours()) as store:
        red, green = await save(store, "red", "green")
        assert rows(tmp_path) == [(red.id, "colours", 3), (green.id, "colours", 3)]
    # another model, which knows nothing of colours
    shapes = Colours(words=("round", "green"), model_id="shapes")
    async with opened(tmp_path, shapes) as store:
        assert rows(tmp_path) == [(red.id, "shapes", 2), (green.id, "shapes", 2)]
        assert await texts(store, "green") == ["green", "red"]
    # the same model with vectors of another length, which fails while it is to embed what is kept
    wider = Colours(words=("red", "green", "blue", "round"), model_id="shapes")
    wider.refuses = lambda text: ModelUnavailable("It is down.") if text in {"red", "green", "blue"} else None
    caplog.set_level(logging.WARNING, logger="ricordo.stores")
    async with opened(tmp_path, wider) as store:
        (blue,) = await save(store, "blue")
        (hit,) = await store.recall("blue")
        assert (hit.entry, hit.explanation) == (blue, "has blue; by its text, without a vector")
        # the query is embedded, and compared with none of the old vectors
        assert await texts(store, "a blue or green", 9) == []
        assert await texts(store, "green ", 9) == ["green"]
        # and what has no vector is found by its text by a query that has one
        assert [hit.explanation for hit in await store.recall("blue blue", 9)] == [
            "has blue; by its text, without a vector"
        ]
        assert await not_embedded(store) == [blue.id, green.id, red.id]
        wider.refuses = lambda _: None
        (round_one,) = await save(store, "round")
        assert await not_embedded(store) == []
        assert {row[1:] for row in rows(tmp_path)} == {("shapes", 4)}
        assert {row[0] for row in rows(tmp_path)} == {red.id, green.id, blue.id, round_one.id}
        assert (await texts(store, "blue red red"))[:2] == ["red", "blue"]
    assert [record.getMessage() for record in caplog.records][:1] == [
        "shapes: It is down. What is saved is kept, and found by its text until it can be embedded."
    ]


async def test_what_could_not_be_embedded_is_so_at_the_next_opening(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    colours = Colours(refuses=lambda _: ModelUnavailable("It is down."))
    caplog.set_level(logging.WARNING, logger="ricordo.stores")
    async with opened(tmp_path, colours) as store:
        red, _ = await save(store, "red", "green")
        assert await texts(store, "RED") == ["red"]
        assert await texts(store, "", 1) == ["green"]
    assert len(caplog.records) == 1
    colours.refuses = lambda _: None
    async with opened(tmp_path, colours) as store:
        assert colours.embedded == ["green", "red"]
        assert await not_embedded(store) == []
        assert (await store.recall("red", 1))[0].explanation == "cosine 1.00"
        assert (await store.recall("red", 1))[0].entry == red


async def test_a_text_that_the_model_refuses_keeps_no_other_from_its_vector(tmp_path: Path) -> None:
    colours = Colours(refuses=lambda text: ModelUnavailable() if text else None)
    async with opened(tmp_path, colours) as store:
        _, odd, _ = await save(store, "red", "odd green", "blue")
    colours.refuses = lambda text: ModelOverflow() if "odd" in text else None
    async with opened(tmp_path, colours) as store:
        assert await not_embedded(store) == [odd.id]
        assert colours.embedded == ["blue", "red"]
        assert await texts(store, "green") == ["odd green", "blue", "red"]
        assert (await texts(store, "blue green", 1)) == ["blue"]
        await save(store, "red blue")
        assert colours.embedded[-1] == "red blue"


async def test_an_embedder_that_does_not_answer_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector, "_ANSWER_SECONDS", 0.01)
    colours = Colours()
    async with opened(tmp_path, colours) as store:
        colours.is_silent = True
        await save(store, "red", "green")
        assert await texts(store, "red") == ["red"]
        colours.is_silent = False
        # it is not asked again at once
        await save(store, "blue")
        assert colours.embedded == []
        monkeypatch.setattr("ricordo.stores.vector.time", SimpleNamespace(monotonic=lambda: 1e12))
        await save(store, "red blue")
        assert colours.embedded == ["red blue", "blue", "green", "red"]
        assert await not_embedded(store) == []


async def test_a_save_that_is_cancelled_while_it_embeds_has_saved(tmp_path: Path) -> None:
    colours = Colours()
    async with opened(tmp_path, colours) as store:
        await save(store, "red")
        colours.is_silent = True
        async with anyio.create_task_group() as group:
            group.start_soon(save, store, "green")
            await colours.asked_in_silence.wait()
            group.cancel_scope.cancel()
        colours.is_silent = False
        await save(store, "blue")
        assert await not_embedded(store) == []
        assert (await store.recall("green", 1))[0].explanation == "cosine 1.00"


@pytest.mark.req("HE-O-audit-forget", "GO-I10")
async def test_what_is_kept_by_another_process_is_found_without_embedding_it_again(tmp_path: Path) -> None:
    one, other = Colours(), Colours()
    async with opened(tmp_path, one) as first, opened(tmp_path, other) as second:
        (red,) = await save(first, "red")
        assert (await second.recall("red"))[0].explanation == "cosine 1.00"
        await save(second, "green")
        assert await texts(first, "green", 1) == ["green"]
        forgets = second.offers(Forgets)
        assert forgets is not None
        assert await forgets.forget(red.id, who="me") == red
        assert await texts(first, "red") == ["green"]
        assert [row[0] for row in rows(tmp_path)].count(red.id) == 0
    # what each saved and what each asked for, once
    assert one.embedded == ["red", "green", "red"]
    assert other.embedded == ["red", "green"]


async def test_an_edit_by_hand_is_found_by_its_text_until_it_is_embedded(tmp_path: Path) -> None:
    colours = Colours()
    async with opened(tmp_path, colours) as store:
        (red, _) = await save(store, "red", "blue")
        (file,) = (tmp_path / "notes" / "memory").iterdir()
        file.write_text(file.read_text(encoding="utf-8").replace("- red", "- green"), encoding="utf-8")
        assert await not_embedded(store) == [red.id]
        (hit, *_) = await store.recall("green", 1)
        assert (hit.entry.id, hit.entry.content, hit.matched_words) == (red.id, "green", ("green",))
        assert await texts(store, "red") == ["blue"]
    async with opened(tmp_path, colours) as store:
        assert await not_embedded(store) == []
        assert (await store.recall("green", 1))[0].explanation == "cosine 1.00"
    file.write_text("# Nothing\n", encoding="utf-8")
    async with opened(tmp_path, colours):
        assert rows(tmp_path) == []


async def test_without_its_vectors_the_store_gives_the_same_answers(tmp_path: Path) -> None:
    path = tmp_path / "notes" / "memory_vectors.db"
    async with opened(tmp_path, Colours()) as store:
        await save(store, "red", "red green", "blue")
        before = await store.recall("red blue")
    for damage in (None, b"no database at all"):
        path.unlink()
        if damage:
            path.write_bytes(damage)
        async with opened(tmp_path, Colours()) as store:
            assert await store.recall("red blue") == before


async def test_filters_hold_for_vectors_and_for_texts(tmp_path: Path) -> None:
    colours = Colours(refuses=lambda text: ModelUnavailable() if "plain" in text else None)
    async with opened(tmp_path, colours) as store:
        old = await store.save(Entry(content="red old", kind="decision", time=NOON))
        await store.save(Entry(content="red new", supersedes=old.id, tags=("net",), time=NOON))
        await store.save(Entry(content="red gone", state="superseded", time=NOON))
        await store.save(Entry(content="red plain", kind="decision", time=NOON))
        assert await texts(store, Query(text="red", kinds=("decision",))) == ["red plain", "red old"]
        assert await texts(store, Query(text="red", tags=("net",))) == ["red new"]
        assert await texts(store, Query(text="red", since=NOON + timedelta(seconds=1))) == []
        assert await texts(store, Query(text="red", path="memory/1999")) == []
        assert await texts(store, Query(text="red", document_types=("transcript",))) == []
        hits = {hit.entry.content: hit for hit in await store.recall("red")}
        assert hits.keys() == {"red old", "red new", "red plain"}
        assert hits["red old"].superseded_by == hits["red new"].entry.id
        assert "superseded by" in hits["red old"].explanation


async def test_what_is_found_by_text_leaves_room_for_what_is_near(tmp_path: Path) -> None:
    colours = Colours(refuses=lambda text: ModelUnavailable() if "plain" in text else None)
    async with opened(tmp_path, colours) as store:
        await save(store, *(f"red {number}" for number in range(3)), *(f"plain red {number}" for number in range(5)))
        assert await texts(store, "red", 3) == ["plain red 4", "plain red 3", "red 2"]
        assert await texts(store, "red", 9) == [f"plain red {at}" for at in (4, 3, 2, 1, 0)] + [
            "red 2",
            "red 1",
            "red 0",
        ]


async def test_without_an_embedder_it_is_told_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"embedder=openai:.*embedder=hashing"):
        async with open_store(f"vector:{tmp_path / 'notes'}", scope=SHOP):
            pass


async def test_the_hashing_embedder_needs_nothing(tmp_path: Path) -> None:
    async with open_store(f"vector:{tmp_path / 'notes'}?embedder=hashing", scope=SHOP) as store:
        deploy, _ = await save(store, "We deploy only from main.", "Lunch is at noon.")
        assert (await store.recall("from which branch do we deploy?", 1))[0].entry == deploy
    assert {row[1:] for row in rows(tmp_path)} == {("hashing:1024", HashingEmbedder().dimension)}
