"""Two processes on the same stores, both killed without warning: every save that returned is there, in its order."""

from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync

from forking import Case, driven
from plain_stores import SHOP, Shelves
from ricordo.stores import Lists

pytestmark = [pytest.mark.anyio, pytest.mark.req("GO-I6", "GO-I7", "GO-G6")]

ADDRESSES = ["jsonl:lines", "json:document", "kv:database", "fanout:kv:first,jsonl:second"]
COUNT = 8


async def test_nothing_that_was_saved_is_lost_when_two_processes_are_killed(tmp_path: Path) -> None:
    cases: dict[str, list[Case]] = {}

    async def drive(name: str) -> None:
        driver = Path(__file__).with_name("simple_stores_driver.py")
        cases[name] = await run_sync(lambda: driven(driver, tmp_path, name, COUNT, *ADDRESSES))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(drive, "one")
        tasks.start_soon(drive, "other")
    for number, address in enumerate(ADDRESSES):
        async with Shelves(folder=tmp_path).open(address) as backend:
            lists = backend.bind(SHOP).offers(Lists)
            assert lists is not None
            oldest_first = (await lists.entries())[::-1]
            assert len(oldest_first) == 2 * COUNT
            for name in ("one", "other"):
                mine = [entry for entry in oldest_first if entry.content.startswith(f"{name} ")]
                assert [entry.content for entry in mine] == [f"{name} {each}" for each in range(COUNT)]
                assert [entry.id for entry in mine] == cases[name][number]["ids"]
    async with Shelves(folder=tmp_path).open("jsonl:second") as backend:
        second = backend.bind(SHOP).offers(Lists)
        assert second is not None
        assert {entry.id for entry in await second.entries()} == {entry.id for entry in oldest_first}
