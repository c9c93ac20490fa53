"""What is erased is in no file of the root any more: not in its history, not in its index, not in its transcripts."""

import errno
import json
import os
import shutil
import sqlite3
import zlib
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from anyio import to_thread

from disks import StepDisk
from places import place_of
from ricordo import FlushConfig, HarnessAgent, Memory, MemoryConfig, Scope
from ricordo.curation import ConsolidationConfig
from ricordo.errors import EntryNotFound, EraseIncomplete, InvalidEntry, StorageError, UndoRefused
from ricordo.messages import Message, Text
from ricordo.models import OFFLINE
from ricordo.runtime import Settings
from ricordo.testing import Call, Say, ScriptedModel

if TYPE_CHECKING:
    from ricordo.testing import ScriptItem

pytestmark = pytest.mark.anyio

SHOP = Scope(user="me", project="shop")
WORD = "Xanthippe"
DOCTOR = f'The user\'s doctor is "{WORD} Müller", room <12>.'
MAIN = "We deploy only from main."


def settings(root: Path) -> Settings:
    return Settings(
        root=None, user="me", data=root.parent / "data", cache=root.parent / "cache", embedder="static",
        consolidation=ConsolidationConfig(model=OFFLINE), flush=FlushConfig(model=OFFLINE),
    )  # fmt: skip


async def lived_in(root: Path) -> str:
    """Let an agent remember two things, talk about them, and consolidate; return the id of the one to be erased."""
    script: list[ScriptItem] = [
        Call("remember", {"content": DOCTOR}),
        Call("remember", {"content": MAIN}),
        Say(f'Noted: your doctor is "{WORD} Müller", room <12>.'),
        Call("recall", {"query": "Who is the user's doctor?"}),
        Say(f"{DOCTOR} You deploy only from main."),
        Say(f"A talk. {DOCTOR} They deploy from main."),
    ]
    async with HarnessAgent(
        ScriptedModel(script),
        memory=MemoryConfig(root=root, closing_summary="sync"),
        scope=SHOP,
        session="one",
        settings=settings(root),
    ) as agent:
        await agent.send(f'Remember that my doctor is "{WORD} Müller", room <12>. We deploy only from main.')
        await agent.send("Who is my doctor?")
        await agent.consolidate()
    workspace = place_of(root) / "workspace"
    (workspace / "plans").mkdir(exist_ok=True)
    (workspace / "plans" / "visit.md").write_text(f"# Visit\n\n{DOCTOR}\nBring the card.\n")
    evicted = workspace / "large_tool_results" / "one"
    evicted.mkdir(parents=True, exist_ok=True)
    (evicted / "read_file-1.txt").write_text(f"first line\n{DOCTOR}\nlast line\n")
    (place_of(root) / "trash").mkdir(exist_ok=True)
    (place_of(root) / "trash" / "old.json").write_text(json.dumps({"said": json.dumps({"content": DOCTOR})}))
    (workspace / "memory" / f".~2026-11-20.md.{'0' * 12}").write_text(f"- {DOCTOR}\n")
    with sqlite3.connect(root / "kept.db") as database:
        database.execute("CREATE TABLE kept (name TEXT, value TEXT)")
        database.execute("INSERT INTO kept VALUES ('a', ?), ('b', ?)", (DOCTOR, MAIN))
    async with Memory.open(root, scope=SHOP, settings=settings(root)) as memory:
        await memory.profile().add_fact(DOCTOR)
        await memory.embed()
        return next(entry.id for entry in await memory.entries() if entry.content == DOCTOR)


def left(root: Path) -> list[str]:
    """Return the files below the root and its surroundings that hold the word, however they are written."""
    found = []
    for path in [*root.parent.rglob("*")]:
        if not path.is_file():
            continue
        data = path.read_bytes()
        if path.suffix == ".z":
            data += zlib.decompress(data)
        if data.startswith(b"SQLite format 3\0"):
            with sqlite3.connect(path) as database:
                data += "\n".join(database.iterdump()).encode()
        if WORD.lower().encode() in data.lower():
            found.append(path.relative_to(root.parent).as_posix())
    return found


@pytest.mark.req("HE-O-audit-forget")
@pytest.mark.parametrize("forgotten", [False, True])
async def test_no_file_holds_what_was_erased_and_all_else_is_there(tmp_path: Path, *, forgotten: bool) -> None:
    root = tmp_path / ".ricordo"
    gone = await lived_in(root)
    assert len(left(root)) > 10
    async with Memory.open(root, scope=SHOP, settings=settings(root)) as memory:
        if forgotten:
            await memory.forget(gone)
            assert left(root)
        others = {entry.id: entry for entry in await memory.entries() if WORD not in repr(entry)}
        lines = (await memory.session("one")).lines
        done = await memory.erase(gone[-8:])
        assert left(root) == []
        assert done.ids[0] == gone
        assert done.scanned > 10
        assert {entry.id: entry for entry in await memory.entries()} == others
        assert WORD not in (await memory.answer("Who is the user's doctor?")).text
        assert "main" in (await memory.answer("What do we deploy from?")).text
        session = await memory.session("one")
        assert session.lines == lines
        assert session.broken_lines == ()
        assert "[erased]" in session.messages[0].text
        assert "We deploy only from main." in session.messages[0].text
    assert left(root) == []
    assert (
        place_of(root) / "workspace" / "plans" / "visit.md"
    ).read_text() == "# Visit\n\n[erased].\nBring the card.\n"
    with sqlite3.connect(root / "kept.db") as database:
        assert database.execute("SELECT value FROM kept WHERE name = 'b'").fetchone() == (MAIN,)
    assert not [*(place_of(root) / "history" / "erasing").glob("*")]


@pytest.mark.req("HE-O-audit-forget")
async def test_what_was_erased_can_not_be_brought_back_and_is_not_learned_again(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    gone = await lived_in(root)
    async with Memory.open(root, scope=SHOP, settings=settings(root)) as memory:
        await memory.erase(gone)
        taken = [item for item in await memory.history() if item.action == "forget"]
        assert taken
        with pytest.raises(UndoRefused, match="erased"):
            await memory.undo(taken[0].id)
    model = ScriptedModel([Say("Hello."), Say("A talk.")])
    async with HarnessAgent(
        model,
        memory=MemoryConfig(root=root, closing_summary="sync"),
        scope=SHOP,
        session="two",
        settings=settings(root),
    ) as agent:
        await agent.send("Hello.")
        await agent.consolidate()
    assert left(root) == []


async def test_a_text_is_erased_wherever_it_stands(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    await lived_in(root)
    async with Memory.open(root, scope=SHOP, settings=settings(root)) as memory:
        before = len(await memory.entries())
        await memory.erase(text=f"{WORD} Müller")
        assert left(root) == []
        assert len(await memory.entries()) == before
        with pytest.raises(InvalidEntry):
            await memory.erase()
        with pytest.raises(EntryNotFound):
            await memory.erase("01zzzzzzzzzzzzzzzzzzzzzzzz")


@pytest.mark.req("FC-DOCTOR")
async def test_an_erasing_that_was_cut_off_is_finished_by_the_next_one(tmp_path: Path) -> None:
    gone = await lived_in(tmp_path / "whole" / ".ricordo")
    cut = 0
    for step in (1, 10, 35, 80):
        root = tmp_path / str(step) / ".ricordo"
        await to_thread.run_sync(shutil.copytree, tmp_path / "whole", root.parent)
        with suppress(StorageError):
            async with Memory.open(root, scope=SHOP, settings=settings(root), disk=stopping(root, step)) as memory:
                await memory.erase(gone)
        pending = [path.read_text() for path in (place_of(root) / "history" / "erasing").glob("*")]
        cut += len(pending)
        assert WORD not in repr(pending)
        async with Memory.open(root, scope=SHOP, settings=settings(root)) as memory:
            checks = {check.name: check for check in await memory.doctor()}
            assert ("erasing" in checks) == bool(pending)
            assert not pending or (gone in checks["erasing"].detail and not checks["erasing"].ok)
            await memory.erase(gone)
        assert left(root) == [], step
        assert not [*(place_of(root) / "history" / "erasing").glob("*")]
    assert cut > 2


def stopping(root: Path, at: int) -> StepDisk:
    """Return a disk that fails for good from the step `at` on, counted from the beginning of an erasing."""
    steps = count(1)

    def reached(step: int) -> None:
        if any((place_of(root) / "history" / "erasing").glob("*")) and next(steps) >= at:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    return StepDisk(reached)


async def test_an_erasing_that_can_not_reach_a_file_names_it(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    gone = await lived_in(root)
    (place_of(root) / "workspace" / "plans" / "a\\b.md").write_text(DOCTOR)
    async with Memory.open(root, scope=SHOP, settings=settings(root)) as memory:
        with pytest.raises(EraseIncomplete, match=r"a\\b\.md"):
            await memory.erase(gone)
        (place_of(root) / "workspace" / "plans" / "a\\b.md").unlink()
        await memory.erase(gone)
    assert left(root) == []


FOREIGN = {
    "words.db": "CREATE VIRTUAL TABLE notes USING fts5(body)",
    "bare.db": "CREATE VIRTUAL TABLE notes USING fts5(body, content='')",
    "rowless.db": "CREATE TABLE notes(body TEXT PRIMARY KEY) WITHOUT ROWID",
    "strict.db": "CREATE TABLE notes(body TEXT CHECK (body NOT LIKE '%erased%'))",
}


async def test_a_database_of_another_program_is_erased_from_and_stays_whole_or_is_named_with_what_to_do(
    tmp_path: Path,
) -> None:
    root = tmp_path / ".ricordo"
    async with Memory.open(root, scope=SHOP, settings=settings(root)) as memory:
        await memory.remember(DOCTOR)
        for name, made in FOREIGN.items():
            with closing(sqlite3.connect(root / name)) as database, database:
                database.execute(made)
                database.executemany("INSERT INTO notes VALUES (?)", [(DOCTOR,), (MAIN,)])
        with pytest.raises(EraseIncomplete, match="with the program that the database belongs to, or move") as told:
            await memory.erase(text=WORD)
        assert [name for name in FOREIGN if f"/{name}" in str(told.value)] == ["bare.db", "rowless.db", "strict.db"]
        assert "End what writes" not in str(told.value)
        assert {*left(root)} == {".ricordo/bare.db", ".ricordo/rowless.db", ".ricordo/strict.db"}
        with closing(sqlite3.connect(root / "words.db")) as database:
            assert database.execute("SELECT body FROM notes WHERE notes MATCH 'deploy'").fetchall() == [(MAIN,)]
            assert database.execute("SELECT body FROM notes WHERE notes MATCH 'room'").fetchall() == [
                (DOCTOR.replace(WORD, "[erased]"),)
            ]
        for name in ("bare.db", "rowless.db", "strict.db"):
            (root / name).unlink()
        await memory.erase(text=WORD)
    assert left(root) == []


@pytest.mark.parametrize(
    ("said", "content", "word"),
    [
        ("请记住秘密计划蓝鲸在周一启动谢谢你的帮助我们晚上再聊", "秘密计划蓝鲸在周一启动", "蓝鲸"),
        ("秘密の計画クジラは東京で始まりますよろしくお願いします", "秘密の計画クジラは東京で始まります", "クジラ"),
        ("จำไว้ว่าแผนลับวาฬเริ่มที่กรุงเทพขอบคุณมาก", "แผนลับวาฬเริ่มที่กรุงเทพ", "วาฬ"),
        ("비밀 계획 고래는 서울에서 시작합니다. 고래가 좋다.", "비밀 계획 고래는 서울에서 시작합니다", "고래"),
    ],
)
async def test_a_text_in_a_script_that_joins_words_is_forgotten_and_erased_wherever_it_stands(
    said: str, content: str, word: str, tmp_path: Path
) -> None:
    root = tmp_path / ".ricordo"
    async with Memory.open(root, scope=SHOP, settings=settings(root)) as memory:
        await memory.ingest([Message(role="user", parts=(Text(text=said),))], session="one")
        saved = await memory.remember(content)
        await memory.forget(saved.id)
        said_again = [hit for hit in await memory.search(word) if content in hit.entry.content]
        assert not [hit for hit in said_again if hit.entry.kind == "message"]
        await memory.erase(saved.id)
        assert not [path for path in files_of(root) if content.encode() in path.read_bytes()]
        await memory.erase(text=word)
    assert not [path for path in files_of(root) if word.encode() in path.read_bytes()]


async def test_a_text_inside_longer_words_is_named_and_erased_when_asked_for(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    async with Memory.open(root, scope=SHOP, settings=settings(root)) as memory:
        await memory.remember("The account ACC12345X belongs to Blauwalstrategie.")
        await memory.remember("Blauwal is a code name.")
        with sqlite3.connect(place_of(root) / "kept.db") as database:
            database.execute("CREATE TABLE kept (name TEXT, value TEXT)")
            database.execute("INSERT INTO kept VALUES ('a', 'Blauwalstrategie'), ('b', 'our Blauwal')")
        done = await memory.erase(text="Blauwal")
        assert {entry.content for entry in await memory.entries()} == {
            "The account ACC12345X belongs to Blauwalstrategie.", "[erased] is a code name.",
        }  # fmt: skip
        assert {Path(path).name for path in done.inside_words} >= {"kept.db"}
        assert not [path for path in files_of(root) if b"our Blauwal" in path.read_bytes()]
        assert (await memory.erase(text="12345")).inside_words
        for text in ("Blauwal", "12345"):
            done = await memory.erase(text=text, inside_words=True)
            assert done.inside_words == ()
            assert not [path for path in files_of(root) if text.encode() in path.read_bytes()]


@pytest.mark.parametrize("said", ["Ann earns heron euros.", 'Ann calls it "heron euros"', "heron\teuros\nand more"])
async def test_records_that_say_nothing_but_what_was_erased_can_be_read_afterwards(said: str, tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    talk = [Message(role="user", parts=(Text(text=said),)), Message(role="assistant", parts=(Text(text="Noted."),))]
    async with Memory.open(root, scope=SHOP, settings=settings(root)) as memory:
        await memory.ingest(talk, session="one")
        await memory.profile().add_fact(said)
        await memory.profile().add_fact("Likes tea.")
        saved = await memory.remember(said)
        (place_of(root) / "trash").mkdir()
        document = {"said": said, "more": [said, {"deep": json.dumps({"said": said})}]}
        (place_of(root) / "trash" / "old.json").write_text(json.dumps(document, indent=1))
        await memory.forget(saved.id)
        await memory.erase(saved.id)
        kept = json.loads((place_of(root) / "trash" / "old.json").read_text())
        assert kept.keys() == {"said", "more"}
        assert json.loads(kept["more"][1]["deep"]).keys() == {"said"}
        session = await memory.session("one")
        assert session.broken_lines == ()
        assert [message.text for message in session.messages][1:] == ["Noted."]
        assert [fact.content for fact in (await memory.profile().show()).facts] == ["Likes tea."]
        assert [check.name for check in await memory.doctor() if not check.ok] == []
    assert not [path for path in files_of(root) if b"heron" in path.read_bytes()]


async def test_a_text_whose_erasing_was_cut_off_is_erased_by_naming_it_again(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    async with Memory.open(root, scope=SHOP, settings=settings(root)) as memory:
        for number in range(3):
            await memory.remember(f"Ann saw a heron in {number}.")
    with suppress(StorageError):
        async with Memory.open(root, scope=SHOP, settings=settings(root), disk=stopping(root, 20)) as memory:
            await memory.erase(text="heron")
    [pending] = (place_of(root) / "history" / "erasing").glob("*")
    assert "heron" not in pending.read_text()
    async with Memory.open(root, scope=SHOP, settings=settings(root)) as memory:
        told = {check.name: check.detail for check in await memory.doctor()}
        assert f"`ricordo erase --text` with the same text finishes it: {pending.stem}" in told["erasing"]
        with pytest.raises(InvalidEntry, match="give the same text"):
            await memory.erase(pending.stem)
        await memory.erase(text="another")
        assert pending.exists()
        await memory.erase(text="Heron")
        assert not pending.exists()
        assert not [path for path in files_of(root) if b"heron" in path.read_bytes()]


async def test_a_text_that_many_memories_say_is_erased_from_all_of_them_and_nothing_else_is(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    said = Message(role="user", parts=(Text(text="We saw it. Ann saw a heron in 3. We took a walk."),))
    async with Memory.open(root, scope=SHOP, settings=settings(root)) as memory:
        await memory.ingest([said], session="one")
        for number in range(8):
            await memory.remember(f"Ann saw a heron in {number}.")
        assert len(await memory.recall("heron", limit=20, said=False)) == 8
    async with Memory.open(root, scope=SHOP, settings=settings(root)) as memory:
        await memory.erase(text="heron")
        assert not [path for path in files_of(root) if b"heron" in path.read_bytes()]
        contents = {entry.content for entry in await memory.entries()}
        assert {f"Ann saw a [erased] in {number}." for number in range(8)} <= contents
        [message] = (await memory.session("one")).messages
        assert message.text == "We saw it. Ann saw a * in 3. We took a walk."


@pytest.mark.parametrize("text", ["a", "to", "¿?", "蓝"])
async def test_a_text_that_is_too_short_is_not_erased_everywhere(text: str, tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    async with Memory.open(root, scope=SHOP, settings=settings(root)) as memory:
        await memory.remember("We want to deploy a new 蓝 service.")
        with pytest.raises(InvalidEntry, match="too short"):
            await memory.erase(text=text)
        assert [entry.content for entry in await memory.entries()] == ["We want to deploy a new 蓝 service."]


def files_of(root: Path) -> list[Path]:
    return [path for path in root.parent.rglob("*") if path.is_file()]
