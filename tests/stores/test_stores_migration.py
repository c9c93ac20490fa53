"""Every entry of a store arrives in another one as it was, once, or is named."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ricordo import Entry, Scope
from ricordo.errors import InvalidEntry, InvalidInput, StorageFull
from ricordo.runtime import Settings, open_store
from ricordo.stores import Lists, Store
from ricordo.stores.migration import Migration, list_entries, migrate, plan_migration, verify_migration
from ricordo.workspace import Source

pytestmark = pytest.mark.anyio

SCOPE = Scope(user="me", project="shop")
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
SAID = datetime(2026, 11, 2, 9, 0, 0, 123_000, tzinfo=UTC)
ENTRIES = (
    Entry(content="We deploy only from main.", kind="decision", tags=("deploy", "größe"), time=SAID, confidence=0.5),
    Entry(content="# A heading\n\n- and \U0001f600 日本語\n", kind="my-own", time=SAID, since=SAID, by="flush"),
    Entry(content="Pinned.", kind="preamble", pinned=True, confirmed=SAID, extra=(("colour", "blue"),)),
    Entry(
        content="Old.",
        state="superseded",
        supersedes="01jd0000000000000000000000",
        source=Source(session="monday", messages=("m1",), quote="Old", origin="chat.jsonl"),
    ),
    Entry(content="Never force-push.", rule="deny shell(git push --force*)"),
)


def settings(folder: Path) -> Settings:
    return Settings(root=None, user="me", data=folder / "data", cache=folder / "cache", consolidation=None)


@asynccontextmanager
async def opened(address: str, folder: Path) -> AsyncIterator[Store]:
    async with open_store(address, scope=SCOPE, settings=settings(folder)) as store:
        yield store


async def filled(address: str, folder: Path) -> list[Entry]:
    """Save the entries and return them as the store lists them, newest first."""
    async with opened(address, folder) as store:
        for entry in ENTRIES:
            await store.save(entry)
        return await list_entries(store, address)


async def moved(source: str, target: str, folder: Path) -> Migration:
    async with opened(source, folder) as store:
        entries = await list_entries(store, source)
    told: list[int] = []
    async with opened(target, folder) as store:
        plan = plan_migration(entries, await list_entries(store, target))
        done = await migrate(plan, store, told.append)
    assert sum(told) == len(plan.pending)
    async with opened(target, folder) as store:
        return verify_migration(done, entries, await list_entries(store, target))


def bare(entry: Entry) -> Entry:
    return replace(entry, scope=None)


@pytest.mark.parametrize(
    ("source", "target"),
    [("layered", "jsonl"), ("jsonl", "layered"), ("jsonl", "kv"), ("kv", "json"), ("json", "jsonl")],
)
async def test_every_entry_arrives_as_it_was_in_its_order_and_once(tmp_path: Path, source: str, target: str) -> None:
    first, second = f"{source}:{tmp_path / 'first'}", f"{target}:{tmp_path / 'second'}"
    entries = await filled(first, tmp_path)
    before = {path: path.read_bytes() for path in (tmp_path / "first").rglob("*.[jm]*") if "lock" not in path.name}
    done = await moved(first, second, tmp_path)
    assert (done.total, len(done.copied), done.already_there, done.failed) == (len(ENTRIES), len(ENTRIES), 0, ())
    again = await moved(first, second, tmp_path)
    assert (len(again.copied), again.already_there, again.failed) == (0, len(ENTRIES), ())
    async with opened(second, tmp_path) as store:
        arrived = await list_entries(store, second)
    assert sorted(map(repr, map(bare, arrived))) == sorted(map(repr, map(bare, entries)))
    if "layered" not in {source, target}:
        assert [entry.id for entry in arrived] == [entry.id for entry in entries]
    assert before == {path: path.read_bytes() for path in before}


async def test_a_secret_in_a_source_that_was_edited_by_hand_arrives_as_its_mark(tmp_path: Path) -> None:
    first, second = f"jsonl:{tmp_path / 'first'}", f"json:{tmp_path / 'second'}"
    async with opened(first, tmp_path) as store:
        await store.save(Entry(content="The key is HERE."))
    (file,) = (tmp_path / "first").glob("*.jsonl")
    file.write_text(file.read_text().replace("HERE", SECRET))
    for there in (0, 1):
        done = await moved(first, second, tmp_path)
        assert (done.redacted, done.already_there, done.failed) == (1 - there, there, ())
    assert SECRET not in "".join(path.read_text() for path in (tmp_path / "second").glob("*.json"))


async def test_what_a_store_refuses_is_named_and_the_rest_arrives() -> None:
    kept: list[Entry] = []

    class Choosy:
        async def save(self, entry: Entry) -> Entry:
            if entry.id == "2":
                raise InvalidEntry("Not this one.")
            if entry.id == "4":
                raise StorageFull("No room.")
            kept.append(entry)
            return entry

    waiting = tuple(Entry(content=f"Number {number}.", id=str(number)) for number in range(1, 6))
    done = await migrate(Migration(total=5, pending=waiting), Choosy(), lambda more: None)  # type: ignore[arg-type]
    assert [entry.id for entry in kept] == ["1", "3"]
    assert [(each.id, each.reason) for each in done.failed] == [
        ("2", "Not this one."),
        ("4", "No room."),
        ("5", "No room."),
    ]


async def test_what_can_not_be_read_back_as_it_was_is_not_called_moved() -> None:
    source = [Entry(content=f"Number {number}.", id=str(number)) for number in range(1, 5)]
    there = [source[0], replace(source[1], tags=("other",)), source[2], source[2]]
    done = verify_migration(Migration(total=4, copied=tuple(source)), source, there)
    assert [entry.id for entry in done.copied] == ["1"]
    whys = {each.id: each.reason for each in done.failed}
    assert "tags" in whys["2"]
    assert "2 times" in whys["3"]
    assert "can't be read back" in whys["4"]


def test_another_memory_with_the_same_id_is_not_written_over() -> None:
    mine, other = Entry(content="Mine.", id="1"), Entry(content="Other.", id="1")
    plan = plan_migration([mine], [other])
    assert plan.pending == ()
    assert [each.id for each in plan.failed] == ["1"]


def test_a_memory_that_stands_twice_in_a_source_counts_once_and_the_newer_of_two_is_taken() -> None:
    newer, older = Entry(content="Newer.", id="1"), Entry(content="Older.", id="1")
    twice = Entry(content="Twice.", id="2")
    source = [newer, twice, older, twice]
    plan = plan_migration(source, [])
    assert (plan.total, plan.pending) == (3, (twice, newer))
    assert [each.id for each in plan.failed] == ["1"]
    done = verify_migration(replace(plan, copied=plan.pending), source, [newer, twice])
    assert done.copied == plan.pending
    again = plan_migration(source, [newer, twice])
    assert (again.total, again.already_there, again.pending, len(again.failed)) == (3, 2, (), 1)


async def test_a_store_that_lists_nothing_is_neither_source_nor_target() -> None:
    async with open_store("none:", scope=SCOPE) as store:
        assert store.offers(Lists) is None
        with pytest.raises(InvalidInput, match="can't list"):
            await list_entries(store, "none:")
