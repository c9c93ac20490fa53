"""Full text: the order of BM25 over plain files, from an index that may be lost at any time."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hand_clock import HandClock
from places import place_of
from plain_stores import SHOP
from ricordo import Entry, Memory
from ricordo.errors import InvalidSetting
from ricordo.guard import parse_fence
from ricordo.runtime import open_store
from ricordo.search import Query
from ricordo.stores import Forgets, Lists, Store

pytestmark = [pytest.mark.anyio, pytest.mark.req("GO-BK-bm25")]

_NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


async def texts(store: Store, query: str | Query, limit: int = 99) -> list[str]:
    return [hit.entry.content for hit in await store.recall(query, limit)]


async def forget(store: Store, entry_id: str) -> Entry:
    forgets = store.offers(Forgets)
    assert forgets is not None
    return await forgets.forget(entry_id, who="me")


@pytest.mark.req("GO-BK-bm25")
async def test_each_entry_is_found_in_the_order_of_bm25_and_the_newest_are_shown(tmp_path: Path) -> None:
    async with open_store(f"fulltext:{tmp_path / 'notes'}?newest=3", scope=SHOP) as store:
        both = Entry(content="The cache is a queue.", time=_NOON - timedelta(days=900), tags=("ops",))
        rare = Entry(content="Behind the cache.", time=_NOON - timedelta(days=500))
        for entry in (both, rare, *(Entry(content=f"Step {number} of the queue.", time=_NOON) for number in range(9))):
            await store.save(entry)
        long = "The queue " + " ".join(f"word{number}" for number in range(300))
        await store.save(Entry(content=long, time=_NOON))
        hits = await store.recall("cache QUEUE", 99)
        assert [hit.entry.content for hit in hits][:2] == [both.content, rare.content]
        assert hits[-1].entry.content == long
        assert len(hits) == 12
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        assert scores == [hit.signals["bm25"] for hit in hits]
        assert scores[0] > scores[1] > scores[2] == scores[3] > scores[-1] > 0
        assert hits[0].explanation == f"BM25 {scores[0]:.2f}: has cache, queue"
        assert hits[0].path == f"memory/{both.time.astimezone().date() if both.time else ''}.md"
        assert await texts(store, "OPS") == [both.content]
        assert await texts(store, "nowhere") == []
        assert await texts(store, "", 2) == [long, "Step 8 of the queue."]
        shown = parse_fence(await store.preamble())
        assert shown == (long, "Step 8 of the queue.", "Step 7 of the queue.")
        assert "9 memories did not fit here" in await store.preamble()


@pytest.mark.parametrize("damage", ["gone", "broken", "foreign"])
async def test_without_its_index_the_store_gives_the_same_answers(damage: str, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    async with open_store(f"fulltext:{folder}", scope=SHOP) as store:
        for number in range(20):
            await store.save(Entry(content=f"Step {number}: {'queue ' * (number % 4)}and cache {number % 3}."))
        asked = ["queue", "cache 2", "step", ""]
        before = [await store.recall(query, 20) for query in asked]
    index = folder / "memory_fulltext.db"
    assert index.read_bytes()
    if damage == "gone":
        index.unlink()
    else:
        index.write_bytes(b"not a database at all" if damage == "broken" else index.read_bytes()[:5_000])
    async with open_store(f"fulltext:{folder}", scope=SHOP) as store:
        assert [await store.recall(query, 20) for query in asked] == before


@pytest.mark.req("HE-O-audit-forget", "GO-I10")
async def test_edits_by_hand_are_found_and_what_is_forgotten_is_cut_out_alone(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    async with open_store(f"fulltext:{folder}", scope=SHOP) as store:
        kept = await store.save(Entry(content="The port is 8080.", extra=(("stars", "5"),), time=_NOON))
        gone = await store.save(Entry(content="Zanzibar.", time=_NOON))
        (file,) = (folder / "memory").iterdir()
        by_hand = f"{file.read_text(encoding='utf-8')}\nSome prose.\n- By hand.\n"
        file.write_text(by_hand.replace("8080", "9090"), encoding="utf-8")
        (folder / "memory" / "more.md").write_text("- More, by hand. ^more\n", encoding="utf-8")
        assert [hit.entry.extra for hit in await store.recall("9090")] == [kept.extra]
        assert await texts(store, "8080") == []
        assert sorted(await texts(store, "hand")) == ["By hand.", "More, by hand."]
        lists = store.offers(Lists)
        assert lists is not None
        assert [entry.content[:5] for entry in await lists.entries()] == ["By ha", "Zanzi", "The p", "More,"]
        before = file.read_text(encoding="utf-8").splitlines()
        assert await forget(store, gone.id) == gone
        with closing(sqlite3.connect(folder / "memory_fulltext.db")) as index:
            assert index.execute("SELECT entry FROM chunk WHERE content LIKE '%anzibar%'").fetchall() == []
            assert index.execute("SELECT entry FROM chunk WHERE content LIKE '%port%'").fetchall() == [(kept.id,)]
        assert await texts(store, "Zanzibar") == []
        after = file.read_text(encoding="utf-8").splitlines()
        assert after == [line for line in before if "Zanzibar" not in line]


@pytest.mark.req("GO-I12", "HE-C7-ties")
async def test_a_clock_that_runs_backwards_changes_no_order(tmp_path: Path) -> None:
    clock = HandClock()
    async with open_store(f"fulltext:{tmp_path / 'notes'}", scope=SHOP, clock=clock) as store:
        for days in (0, 3, -9, 1):
            clock.turn(days=days)
            await store.save(Entry(content=f"Moved by {days}."))
        assert await texts(store, "") == ["Moved by 1.", "Moved by -9.", "Moved by 3.", "Moved by 0."]
        assert await texts(store, "moved") == ["Moved by 1.", "Moved by -9.", "Moved by 3.", "Moved by 0."]
        assert (parse_fence(await store.preamble()) or ())[0] == "Moved by 1."
    assert len(list((tmp_path / "notes" / "memory").iterdir())) == 2


@pytest.mark.req("HE-MEM-01", "HE-O-conflict")
async def test_filters_hold_and_what_was_superseded_is_named_so(tmp_path: Path) -> None:
    async with open_store(f"fulltext:{tmp_path / 'notes'}", scope=SHOP) as store:
        old = await store.save(Entry(content="The port is 80.", kind="decision", time=_NOON))
        new = await store.save(Entry(content="The port is 81.", supersedes=old.id, tags=("net",), time=_NOON))
        await store.save(Entry(content="The port was 79.", state="superseded", time=_NOON))
        found = {hit.entry.id: hit for hit in await store.recall("port")}
        assert found.keys() == {old.id, new.id}
        assert found[old.id].superseded_by == new.id
        assert f"superseded by {new.id}" in found[old.id].explanation
        for text in ("port", ""):
            assert await texts(store, Query(text=text, kinds=("decision",))) == [old.content]
            assert await texts(store, Query(text=text, tags=("net",))) == [new.content]
            assert await texts(store, Query(text=text, since=_NOON + timedelta(days=1))) == []
            assert await texts(store, Query(text=text, document_types=("transcript",))) == []
            assert {*await texts(store, Query(text=text, path="memory/2026"))} == {new.content, old.content}
            assert await texts(store, Query(text=text, path="memory/1999")) == []


@pytest.mark.parametrize("newest", ["0", "-1", "x", "", "²"])
async def test_a_preamble_of_nothing_is_refused(newest: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="from 1 up"):
        async with open_store(f"fulltext:{tmp_path / 'notes'}?newest={newest}", scope=SHOP):
            pass


async def test_a_ricordo_root_is_opened_in_place(tmp_path: Path) -> None:
    long = "A long story of the harbour. " * 300
    async with Memory.open(tmp_path / ".ricordo", scope=SHOP) as memory:
        for content in (long, "Short."):
            await memory.remember(content)
    async with open_store(f"fulltext:{tmp_path / '.ricordo'}", scope=SHOP) as store:
        assert await texts(store, "") == ["Short.", long]
        (hit,) = await store.recall("harbour")
        assert hit.entry.content == long
        await forget(store, hit.entry.id)
        assert await texts(store, "harbour") == []
    assert not list((place_of(tmp_path / ".ricordo") / "workspace" / "memory" / "long").iterdir())
    async with Memory.open(tmp_path / ".ricordo", scope=SHOP) as memory:
        assert [hit.entry.content for hit in await memory.recall("short")] == ["Short."]
