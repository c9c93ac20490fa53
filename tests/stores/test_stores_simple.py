"""What every simple backend keeps to: what is saved is there again, newest first, and nobody sees another's."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from anyio.to_thread import run_sync

from hand_clock import HandClock
from plain_stores import SHOP, Shelves
from ricordo import Entry
from ricordo.errors import EntryNotFound, InvalidQuery, InvalidSetting
from ricordo.guard import parse_fence
from ricordo.messages import Tokens, estimate_text
from ricordo.scope import Scope
from ricordo.search import Query
from ricordo.stores import Forgets, Lists, Store
from ricordo.workspace import Source

pytestmark = [pytest.mark.anyio, pytest.mark.req("GO-BK-jsonl", "GO-BK-md", "GO-BK-mock")]

LASTING = ["jsonl:notes", "json:notes", "kv:notes", "fanout:jsonl:a,kv:b"]
ALL = [*LASTING, "mock:", "ring:"]

CONTENTS = [
    "Plain.",
    "Two\nlines\r\n\n# and a heading\n```\ncode\n```\n",
    "🦊 emoji \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "שלום עולם, مرحبا بالعالم",
    "我们只从 main 部署。日本語も",
    "नमस्ते दुनिया",
    'Quotes " and \\ and \u2028 separators \x00 and \x1b',
    "<memory>not a fence</memory>",
    "line " * 200_000,
]


@pytest.fixture(params=ALL)
def address(request: pytest.FixtureRequest) -> str:
    """Return the address of a backend."""
    return str(request.param)


@pytest.fixture(params=LASTING)
def lasting(request: pytest.FixtureRequest) -> str:
    """Return the address of a backend that keeps what it is given on disk."""
    return str(request.param)


async def listed(store: Store) -> list[Entry]:
    lists = store.offers(Lists)
    assert lists is not None
    return await lists.entries()


@pytest.mark.req("HE-C5-required", "GO-I1", "GO-G1")
async def test_what_was_saved_is_there_after_opening_again(lasting: str, tmp_path: Path) -> None:
    shelves = Shelves(folder=tmp_path)
    given = [
        Entry(
            content=content,
            kind="a kind of our own",
            tags=("a b", "#x", "日本"),
            since=datetime(2024, 2, 29, tzinfo=UTC),
            scope=Scope(user="me"),
            reason="holds in every project",
            by="agent",
            source=Source(session="s1", messages=("m1", "m2"), quote="said\nso", origin="chat"),
            confidence=0.25,
            pinned=True,
            extra=(("due", "friday"), ("due", "json:1")),
        )
        for content in CONTENTS
    ]
    async with shelves.open(lasting) as backend:
        saved = [await backend.bind(SHOP).save(entry) for entry in given]
    async with shelves.open(lasting) as backend:
        store = backend.bind(SHOP)
        assert await listed(store) == saved[::-1]
        hits = await store.recall("", limit=50)
        assert [hit.entry for hit in hits] == saved[::-1]
        assert [replace(hit.entry, id="", time=None) for hit in hits] == given[::-1]


@pytest.mark.req("GO-I12", "GO-I2", "HE-C7-ties")
async def test_the_newest_is_what_was_saved_last_whatever_the_clock_says(address: str, tmp_path: Path) -> None:
    clock = HandClock()
    async with Shelves(folder=tmp_path, clock=clock).open(address) as backend:
        store = backend.bind(SHOP)
        saved: list[Entry] = []
        for step in (0, 0, -3600, 7200, -86_400, 0):
            clock.turn(step)
            saved.append(await store.save(Entry(content=f"Entry {len(saved)}.")))
        saved.append(await store.save(Entry(content="From long ago.", time=datetime(1999, 1, 1, tzinfo=UTC))))
        saved.append(await store.save(Entry(content="Equal.")))
        assert await listed(store) == saved[::-1]
        assert [hit.entry for hit in await store.recall("", limit=3)] == saved[:-4:-1]


@pytest.mark.req("GO-I2")
async def test_recall_keeps_to_its_limit_folds_case_and_reads_tags(address: str, tmp_path: Path) -> None:
    async with Shelves(folder=tmp_path).open(address) as backend:
        store = backend.bind(SHOP)
        for content, tag in (("Die Straße", "ops"), ("Σίσυφος", "DEPLOY"), ("İstanbul", "x"), ("We DEPLOY", "y")):
            await store.save(Entry(content=content, tags=(tag,)))
        for query, found in {
            "STRASSE": ["Die Straße"],
            "ΣΊΣΥΦΟΣ": ["Σίσυφος"],
            "istanbul": ["İstanbul"],
            "deploy": ["We DEPLOY", "Σίσυφος"],
            "nothing of it": [],
        }.items():
            assert [hit.entry.content for hit in await store.recall(query)] == found
        assert len(await store.recall("deploy", limit=1)) == 1
        assert [hit.entry.content for hit in await store.recall(Query(text="", tags=("ops",)))] == ["Die Straße"]
        with pytest.raises(InvalidQuery):
            await store.recall("x", limit=0)


@pytest.mark.req("GO-I11", "HE-O-tenancy")
async def test_tenants_projects_and_users_see_nothing_of_each_other(address: str, tmp_path: Path) -> None:
    owners = [
        SHOP,
        Scope(user="me", project="other"),
        Scope(user="me"),
        Scope(tenant="a", user="me", project="shop"),
        Scope(tenant="A", user="me", project="shop"),
    ]
    async with Shelves(folder=tmp_path).open(address) as backend:
        for number, scope in enumerate(owners):
            await backend.bind(scope).save(Entry(content=f"The secret of {number}.", kind="preamble"))
        for number, scope in enumerate(owners):
            store = backend.bind(scope)
            text = f"The secret of {number}."
            assert [hit.entry.content for hit in await store.recall("secret", limit=50)] == [text]
            assert [entry.content for entry in await listed(store)] == [text]
            shown = parse_fence(await store.preamble())
            assert shown is not None
            assert len(shown) == 1
            assert shown[0].removeprefix("- ") == text
        same = backend.bind(Scope(user="you", project="shop", session="s"))
        assert [entry.content for entry in await listed(same)] == ["The secret of 0."]


@pytest.mark.req("HE-O-audit-forget")
async def test_what_is_forgotten_is_gone_and_the_rest_is_not(address: str, tmp_path: Path) -> None:
    shelves = Shelves(folder=tmp_path)
    async with shelves.open(address) as backend:
        store = backend.bind(SHOP)
        saved = [await store.save(Entry(content=f"Entry {number}.", kind="preamble")) for number in range(4)]
        forgets, lists = store.offers(Forgets), store.offers(Lists)
        assert forgets is not None
        assert lists is not None
        assert await forgets.forget(saved[1].id, who="me") == saved[1]
        rest = [saved[3], saved[2], saved[0]]
        assert await lists.entries() == rest
        assert await store.recall("entry 1") == []
        assert "Entry 1" not in await store.preamble()
        assert await lists.get(saved[2].id) == saved[2]
        for missing, told in ((saved[1].id, "was forgotten at .* by me"), ("nobody", "No memory has")):
            with pytest.raises(EntryNotFound, match=told):
                await forgets.forget(missing, who="me")
            with pytest.raises(EntryNotFound):
                await lists.get(missing)
        if address in LASTING:
            async with shelves.open(address) as again:
                assert await listed(again.bind(SHOP)) == rest


async def test_a_store_that_was_never_written_to_is_empty(address: str, tmp_path: Path) -> None:
    async with Shelves(folder=tmp_path).open(address) as backend:
        store = backend.bind(SHOP)
        assert (await store.recall("x"), await store.preamble(), await listed(store)) == ([], "", [])
        forgets = store.offers(Forgets)
        assert forgets is not None
        with pytest.raises(EntryNotFound):
            await forgets.forget("nobody", who="me")
    made = {path.suffix for path in await run_sync(lambda: [*tmp_path.rglob("*")])}
    assert made <= {"", ".lock"}


@pytest.mark.req("GO-G4-scale")
async def test_the_preamble_is_within_its_budget_and_the_same_again(address: str, tmp_path: Path) -> None:
    async with Shelves(folder=tmp_path).open(address) as backend:
        store = backend.bind(SHOP)
        for number in range(60):
            await store.save(Entry(content=f"Note {number}: " + "word " * number, kind="preamble"))
        for tokens in (1, 60, 600, 3_000):
            text = await store.preamble(Tokens(tokens))
            assert estimate_text(text) <= tokens
            assert text == await store.preamble(Tokens(tokens))
        assert "Note 59:" in text
        assert "`recall` finds them" in text


async def test_an_option_that_means_nothing_is_refused(address: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="no option color"):
        async with Shelves(folder=tmp_path).open(f"{address}?color=red"):
            pass
