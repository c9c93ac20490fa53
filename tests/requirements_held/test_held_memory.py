"""Memories as a user meets them: their kinds, the day they are written under, who sees them, what a bad disk does."""

import errno
import json
import os
import sqlite3
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from command_line import ricordo
from hand_made_roots import begun
from places import place_of
from ricordo import Entry, Memory, Message, Scope
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.errors import RicordoError, ScopeMismatch, StorageFull, StorageReadOnly
from ricordo.extraction import Finding, Flusher
from ricordo.guard import Redactor
from ricordo.messages import Text
from ricordo.storage import Disk
from ricordo.storage.local import LocalFiles
from ricordo.workspace import Transcript, transcript_path
from ricordo.workspace.entry import PREDEFINED_KINDS
from warm_processes import run_warm

pytestmark = pytest.mark.anyio

SHOP = Scope(user="me", project="shop")


def said(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


async def contents(memory: Memory, query: str, limit: int = 9) -> list[str]:
    return sorted(hit.entry.content for hit in await memory.recall(query, limit=limit))


@pytest.mark.req("GO-G1", "HE-A6", "HE-MEM-01")
async def test_the_named_kinds_are_predefined_and_any_other_is_kept(tmp_path: Path) -> None:
    assert {"fact", "decision", "session-summary", "preference"} <= set(PREDEFINED_KINDS)
    assert Entry(content="Plain.").kind in PREDEFINED_KINDS
    others = ("recipe of the house", "Ключ #1 [x:: y]", "FACT")
    start = datetime.now(UTC) - timedelta(milliseconds=1)
    async with Memory.open(tmp_path / "root", scope=SHOP) as memory:
        for kind in (*PREDEFINED_KINDS, *others):
            await memory.remember(f"About {kind}", kind=kind, tags=["one", kind])
    end = datetime.now(UTC)
    async with Memory.open(tmp_path / "root", scope=SHOP) as memory:
        for kind in (*PREDEFINED_KINDS, *others):
            [hit] = await memory.recall("about", kinds=[kind])
            assert (hit.entry.kind, hit.entry.content) == (kind, f"About {kind}")
            assert hit.entry.tags == ("one", kind)
            assert hit.entry.time is not None
            assert start <= hit.entry.time <= end


# POSIX zones: the sign says how far behind UTC, so these are 14 hours before it and 12 after; they never share a date.
@pytest.mark.req("AS-LEDGER-01")
@pytest.mark.parametrize(("zone", "ahead"), [("EARLY-14", 14), ("LATE+12", -12), ("UTC0", 0)])
def test_the_ledger_is_named_by_the_local_date_and_only_appended_to(zone: str, ahead: int, tmp_path: Path) -> None:
    script = """
import sys, anyio
from ricordo import Memory, Message, Scope
from ricordo.messages import Text
async def main():
    async with Memory.open(sys.argv[1], scope=Scope(user="me", project="shop")) as memory:
        told = await memory.ingest([Message(role="user", parts=(Text(text=sys.argv[2]),))], session="s1")
        assert told.entries
anyio.run(main)
"""
    day = timedelta(hours=ahead)
    ledgers = place_of(tmp_path / "root") / "workspace" / "memory"
    earlier = b""
    for text in ("I prefer tea over coffee.", "We decided to use PostgreSQL for the orders."):
        before = (datetime.now(UTC) + day).date()
        run(script, str(tmp_path / "root"), text, zone=zone)
        days = {before.isoformat(), (datetime.now(UTC) + day).date().isoformat()}
        written = {path.stem: path.read_bytes() for path in ledgers.glob("*.md")}
        assert set(written) <= days
        if len(days) == 1:
            assert written[before.isoformat()].startswith(earlier)
            assert len(written[before.isoformat()]) > len(earlier)
            earlier = written[before.isoformat()]


def run(script: str, *arguments: str, zone: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", zone)
        done = run_warm(["python", "-c", script, *arguments])
    assert done.returncode == 0, done.stderr


@pytest.mark.req("AS-LEDGER-02")
async def test_the_same_bullet_from_two_flushes_stands_in_the_days_file_twice(tmp_path: Path) -> None:
    def answered(messages: Sequence[Message]) -> list[Finding]:
        return [
            Finding(
                content="The user drinks tea.",
                kind="preference",
                confidence=0.9,
                message_ids=(messages[-1].id,),
                quote=messages[-1].text,
            )
        ]

    files, clock, redactor = LocalFiles(place_of(tmp_path / "root")), SystemClock(), Redactor(bytes(32))
    transcript = Transcript(files, transcript_path("main", "s1"), session="s1", redactor=redactor)
    flusher = Flusher(
        files=files, redactor=redactor, key=bytes(32), clock=clock, ids=MonotonicIds(clock), extract=answered
    )
    for text in ("Tea, please.", "Tea again."):
        await transcript.append([said(text)])
        assert (await flusher.flush("main", "s1")).block is not None
    [*ledgers] = (place_of(tmp_path / "root") / "workspace" / "memory").glob("*.md")
    bullets = [line for ledger in ledgers for line in ledger.read_text().splitlines() if line.startswith("- ")]
    assert len(bullets) == 2
    assert all(line.startswith("- The user drinks tea. ") for line in bullets)


@pytest.mark.req("AS-TRANS-01", "AS-BUG-log-duplicates")
async def test_a_message_without_an_id_gets_one_that_depends_on_its_session_and_is_stored_once(tmp_path: Path) -> None:
    told = [said("yes"), said("no"), said("yes")]
    ids: dict[tuple[str, str], list[str]] = {}
    for root in ("a", "b"):
        for session in ("s1", "s2"):
            for added in (3, 0):
                async with Memory.open(tmp_path / root, scope=SHOP) as memory:
                    taken = await memory.ingest(told, session=session, known={})
                    assert taken.added_count == added
                    found = [message.id for message in (await memory.session(session)).messages]
                assert ids.setdefault((root, session), found) == found
    assert ids["a", "s1"] == ids["b", "s1"]
    assert ids["a", "s2"] == ids["b", "s2"]
    assert len({*ids["a", "s1"], *ids["a", "s2"]}) == 6


def markdown_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*.md") if path.is_file()]


def work_tree(folder: Path) -> Path:
    (folder / "src" / "deep").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def in_project(name: str, user: str = "me") -> Scope:
    return Scope(user=user, project=name)


@pytest.mark.may_block("the test makes its work trees itself")
@pytest.mark.req("HE-C5-project")
async def test_what_holds_for_a_project_is_loaded_and_recalled_only_inside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = {name: work_tree(tmp_path / name) for name in ("shop", "bank")}
    folders["farm"] = tmp_path / "farm"
    (folders["farm"] / "src" / "deep").mkdir(parents=True)
    for name, folder in folders.items():
        monkeypatch.chdir(folder)
        async with Memory.open(scope=in_project(name)) as memory:
            await memory.remember(f"Pears are sold by the {name}.")
            await memory.ingest([said(f"We decided to paint the {name} green.")], session="s1")
    for name, folder in folders.items():
        other = next(each for each in folders if each != name)
        for below in (folder, folder / "src" / "deep"):
            monkeypatch.chdir(below)
            async with Memory.open(scope=in_project(name)) as memory:
                assert await contents(memory, "pears") == [f"Pears are sold by the {name}."]
                assert f"Pears are sold by the {name}." in await memory.preamble()
                assert other not in await memory.preamble()
                assert other not in repr(await memory.search("green")) + repr(await memory.entries())
                assert await contents(memory, f"sold by the {other}") in ([], [f"Pears are sold by the {name}."])
            with pytest.raises(ScopeMismatch):
                async with Memory.open(scope=in_project(other)):
                    pass
            found = ricordo_contents("pears")
            assert found == [f"Pears are sold by the {name}."]
    (tmp_path / "garden").mkdir()
    monkeypatch.chdir(tmp_path / "garden")
    async with Memory.open(scope=in_project("garden")) as memory:
        assert await contents(memory, "pears") == []
        assert await memory.preamble() == ""


def ricordo_contents(query: str) -> list[str]:
    return sorted(hit["entry"]["content"] for hit in recalled_from_the_shell(query))


def recalled_from_the_shell(query: str) -> list[dict[str, dict[str, str]]]:
    done = run_warm(["ricordo", "recall", query, "--json", "--user", "me"])
    assert done.returncode == 0, done.stderr
    hits: list[dict[str, dict[str, str]]] = json.loads(done.stdout)["hits"]
    return hits


@pytest.mark.may_block("the test makes its work trees itself")
@pytest.mark.req("HE-C5-user", "HE-C5")
async def test_what_holds_for_a_user_is_recalled_in_each_of_their_projects_and_for_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = {name: work_tree(tmp_path / name) for name in ("shop", "bank", "farm")}
    told = {"me": "I am allergic to walnuts.", "you": "I am allergic to peanuts."}
    monkeypatch.chdir(folders["shop"])
    for user, text in told.items():
        async with Memory.open(scope=in_project("shop", user)) as memory:
            await memory.remember(text, scope=Scope(user=user), reason="holds everywhere")
    for name, folder in folders.items():
        monkeypatch.chdir(folder / "src" / "deep")
        for user in ("me", "you", "Me", "else"):
            async with Memory.open(scope=in_project(name, user)) as memory:
                mine = [told[user]] if user in told else []
                assert await contents(memory, "allergic") == mine
                assert [hit.entry.content for hit in await memory.search("allergic")] == mine
                assert [entry.content for entry in await memory.entries()] == mine
                preamble = await memory.preamble()
                assert [text for text in told.values() if text in preamble] == mine
        async with Memory.open(scope=Scope(project=name)) as memory:
            assert await contents(memory, "allergic") == []
    assert [path for path in markdown_below(tmp_path) if "allergic" in path.read_text(encoding="utf-8")] == []


class BadDisk(Disk):
    """A disk that nothing can be written to any more."""

    def __init__(self, number: int, database: int) -> None:
        """Refuse what changes the disk with the system's error `number`, and a commit with SQLite's `database`."""
        self._number = number
        self._database = database

    def _refuse(self) -> OSError:
        return OSError(self._number, os.strerror(self._number))

    def make_file(self, path: str, flags: int = 0) -> int:
        raise self._refuse()

    def write(self, descriptor: int, data: bytes) -> None:
        raise self._refuse()

    def make_folder(self, path: str) -> None:
        raise self._refuse()

    def commit(self, connection: sqlite3.Connection) -> None:
        del connection
        error = sqlite3.OperationalError("The disk refuses.")
        error.sqlite_errorcode = self._database
        raise error


@pytest.mark.req("GO-I9")
@pytest.mark.parametrize(
    ("disk", "error"),
    [
        (BadDisk(errno.ENOSPC, sqlite3.SQLITE_FULL), StorageFull),
        (BadDisk(errno.EROFS, sqlite3.SQLITE_READONLY), StorageReadOnly),
    ],
    ids=["full", "read-only"],
)
@pytest.mark.parametrize("indexed", [True, False])
async def test_on_a_bad_disk_saving_is_a_typed_error_and_reading_goes_on(
    disk: Disk, error: type[RicordoError], tmp_path: Path, *, indexed: bool
) -> None:
    root = tmp_path / "root"
    async with Memory.open(root, scope=SHOP) as memory:
        await memory.remember("The door of the shop is red.")
        await memory.remember("I am allergic to walnuts.", scope=Scope(user="me"), reason="holds everywhere")
        shown = await memory.preamble()
    if not indexed:
        for path in root.glob("memory_index.db*"):
            path.unlink()
    async with Memory.open(root, scope=SHOP, disk=disk) as memory:
        for _ in range(2):
            for content in ("Not this.", "Not this. " * 1000):
                with pytest.raises(error):
                    await memory.remember(content)
            with pytest.raises(error):
                await memory.remember("Not this.", scope=Scope(user="me"), reason="holds everywhere")
            assert await contents(memory, "door of the shop") == ["The door of the shop is red."]
            assert await contents(memory, "walnuts") == ["I am allergic to walnuts."]
            assert await memory.preamble() == shown
    async with Memory.open(root, scope=SHOP) as memory:
        assert len(await memory.entries()) == 2


def test_the_user_of_a_tenant_is_shown_the_file_of_their_own_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    begun(root)
    marker = {"version": 1, "kind": "project", "scope": {"tenant": "acme", "project": "shop"}}
    (root / "project.json").write_text(json.dumps(marker))
    done = ricordo("remember", "I like tea.", "--everywhere", "--reason", "always", "--root", root, "--json")
    assert done.code == 0, done.err
    assert "/tenants/acme/users/" in done.document["file"]
    assert Path(done.document["file"]).is_file()
