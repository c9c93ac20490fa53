"""Damage in stores of Markdown: it is told once, in the log and by doctor, and nothing of it is changed."""

import logging
from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings
from places import place_of
from plain_stores import SHOP
from ricordo import Entry, Memory
from ricordo.runtime import open_store

pytestmark = pytest.mark.anyio

RUBBISH = b"- By hand. [kind:: fa\n\x00\xff rubbish\n"


@pytest.mark.parametrize("scheme", ["markdown", "fulltext"])
async def test_rubbish_is_told_once_and_stays(scheme: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    address = f"{scheme}:{tmp_path / 'notes'}"
    async with open_store(address, scope=SHOP) as store:
        await store.save(Entry(content="The door is red."))
    (file,) = [path for path in (tmp_path / "notes").rglob("*.md") if b"door" in path.read_bytes()]
    file.write_bytes(file.read_bytes() + RUBBISH)
    async with open_store(address, scope=SHOP) as store:
        for content in ("One.", "Two."):
            with caplog.at_level(logging.WARNING, logger="ricordo.stores"):
                await store.save(Entry(content=content))
                assert len(await store.recall("", limit=9)) > 1
                await store.preamble()
    (record,) = caplog.records
    assert "is damaged, and left as it is" in record.getMessage()
    assert (tmp_path / "notes" / record.getMessage().partition(" ")[0]).is_file()
    assert "bytes that are no text" in record.getMessage()
    assert "a field is cut off" in record.getMessage()
    assert RUBBISH in file.read_bytes()


@pytest.mark.req("FC-DOCTOR")
async def test_a_root_tells_damage_in_the_log_and_doctor_names_the_places(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Memory.open(tmp_path / "r", scope=SCOPE, settings=settings(tmp_path / "r")) as memory:
        await memory.remember("The door is red.")
        checks = {check.name: check for check in await memory.doctor()}
        assert (checks["damage"].ok, checks["damage"].count) == (True, 0)
        (ledger,) = (place_of(tmp_path / "r") / "workspace" / "memory").glob("*.md")
        ledger.write_bytes(ledger.read_bytes() + b"- By hand. [kind:: fa\n")
        with caplog.at_level(logging.WARNING, logger="ricordo.stores"):
            await memory.preamble()
            await memory.preamble()
        (record,) = caplog.records
        assert f"{ledger.name} is damaged" in record.getMessage()
        checks = {check.name: check for check in await memory.doctor()}
        assert (checks["damage"].ok, checks["damage"].count) == (False, 1)
        assert f"{ledger.name}: line 4: a field is cut off" in checks["damage"].detail
        assert b"[kind:: fa\n" in ledger.read_bytes()
