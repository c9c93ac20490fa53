"""The audit log: who did what when, each record chained to the one before, and no word of what a memory says."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from command_line import ricordo
from ricordo import HarnessAgent, Memory, Scope
from ricordo.errors import InvalidQuery, InvalidScope, InvalidSetting
from ricordo.messages import Message, Text
from ricordo.runtime import Settings
from ricordo.testing import Call, Say, ScriptedModel
from ricordo.workspace import AuditRecord

pytestmark = pytest.mark.anyio

ANN = Scope(user="ann", project="shop", session="s1")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / ".ricordo"


@pytest.fixture
def all_acts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RICORDO_AUDIT__RECORD", "reads")


def log_of(folder: Path) -> Path:
    (path,) = (folder / "audit").glob("*.jsonl")
    return path


def read_logs(root: Path) -> bytes:
    return b"".join(path.read_bytes() for path in root.rglob("audit/*"))


async def breaks(root: Path) -> int:
    async with Memory.open(root, scope=ANN) as memory:
        return sum(check.count for check in await memory.doctor() if check.name == "audit")


@pytest.mark.usefixtures("all_acts")
async def test_each_act_is_recorded_with_who_what_and_whose_memory(root: Path) -> None:
    async with Memory.open(root, scope=ANN) as memory:
        saved = await memory.remember("We deploy only from main.")
        shared = await memory.remember("Tests run on the heron.", scope="project")
        (hit,) = await memory.recall("deploy from main", limit=1)
        await memory.move(saved.id, "user", reason="everywhere")
        await memory.forget(shared.id)
        await memory.erase(saved.id)
        records = (await memory.audit())[::-1]
    acts = [(record.act, record.scope, record.ids) for record in records]
    private, project, everywhere = Scope(user="ann", project="shop"), Scope(project="shop"), Scope(user="ann")
    assert ("save", private, (saved.id,)) in acts
    assert ("save", project, (shared.id,)) in acts
    assert ("read", private, (saved.id,)) in acts
    assert [where for act, where, _ in acts if act == "promote"] == [everywhere, private]
    assert ("forget", project, (shared.id,)) in acts
    assert ("erase", everywhere, (saved.id,)) in acts
    assert {record.who for record in records} == {ANN}
    (read,) = [record for record in records if record.act == "read"]
    (shown,) = read.entries
    assert (read.how, shown.id) == ("recall", saved.id)
    assert shown.score == pytest.approx(hit.score, abs=0.001)
    assert len(shown.version) == 16
    assert read.request


@pytest.mark.usefixtures("all_acts")
async def test_no_record_holds_a_word_of_a_memory_a_query_or_a_reason(root: Path) -> None:
    async with Memory.open(root, scope=ANN) as memory:
        saved = await memory.remember("The zebra sleeps in the attic.", tags=["quokka"], metadata={"area": "walrus"})
        await memory.recall("zebra attic tapir")
        await memory.answer("Where does the zebra sleep?")
        await memory.update(saved.id, content="The zebra sleeps in the cellar.")
        await memory.move(saved.id, "project", reason="okapi")
        await memory.forget(saved.id, reason="lemur")
    written = read_logs(root)
    assert written.count(b"\n") > 6
    for word in (b"zebra", b"attic", b"cellar", b"quokka", b"walrus", b"tapir", b"okapi", b"lemur"):
        assert word not in written


@pytest.mark.usefixtures("all_acts")
async def test_a_version_tells_the_words_that_were_shown_from_later_ones(root: Path) -> None:
    async with Memory.open(root, scope=ANN) as memory:
        saved = await memory.remember("The limit is 10.")
        await memory.entry(saved.id)
        await memory.entry(saved.id)
        await memory.update(saved.id, content="The limit is 12.")
        await memory.entry(saved.id)
        later, same, first = [each.entries[0].version for each in await memory.audit(acts=["read"])]
    assert first == same != later


@pytest.mark.usefixtures("all_acts")
async def test_what_an_agent_is_shown_is_traced_to_its_session(root: Path) -> None:
    async with Memory.open(root, scope=ANN) as memory:
        saved = await memory.remember("The staging server is called heron.")
    model = ScriptedModel([Call("recall", {"query": "staging server"}), Say("heron")])
    async with HarnessAgent(model, memory=root, scope=Scope(user="ann", project="shop", session="talk")) as agent:
        await agent.send("What is the staging server called?")
    async with Memory.open(root, scope=ANN) as memory:
        records = await memory.audit(session="talk", entry=saved.id, acts=["read"])
    assert {"prompt", "recall"} <= {record.how for record in records}
    assert all(entry.version for record in records for entry in record.entries)


@pytest.mark.usefixtures("all_acts")
async def test_what_is_learned_from_a_conversation_is_recorded(root: Path) -> None:
    async with Memory.open(root, scope=ANN) as memory:
        said = Message(role="user", parts=(Text(text="We decided to deploy only from main."),))
        await memory.ingest([said], session="t1")
        learned = [entry.id for entry in await memory.entries()]
        (record,) = await memory.audit(acts=["extract"])
    assert learned
    assert set(record.ids) >= {name for name in learned if not name.startswith("fact_")}
    assert record.by == "flush"


async def test_by_default_only_what_is_deleted_is_recorded(root: Path) -> None:
    async with Memory.open(root, scope=ANN) as memory:
        saved = await memory.remember("We deploy only from main.")
        await memory.recall("deploy")
        assert await memory.audit() == []
        assert not (root / "audit").exists()
        await memory.forget(saved.id)
        (record,) = await memory.audit()
        local = await memory.remember("Only now.", scope="session")
        await memory.end_session()
        ended = (await memory.audit(acts=["end"]))[0]
    assert (record.act, record.ids) == ("forget", (saved.id,))
    assert (ended.count, ended.ids) == (1, ())
    assert local.id.encode() not in read_logs(root)


async def test_nothing_is_recorded_when_the_log_is_off(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RICORDO_AUDIT__RECORD", "off")
    async with Memory.open(root, scope=ANN) as memory:
        saved = await memory.remember("We deploy only from main.")
        await memory.forget(saved.id)
        assert await memory.audit() == []
    assert read_logs(root) == b""


@pytest.mark.usefixtures("all_acts")
async def test_a_log_names_nothing_of_a_place_that_its_reader_does_not_see(root: Path) -> None:
    async with Memory.open(root, scope=ANN) as memory:
        own = await memory.remember("The crate of ann is blue.")
        shared = await memory.remember("The crates are in hall 3.", scope="project")
        await memory.recall("crate")
        await memory.entries()
        await memory.preamble()
        await memory.erase(own.id)
    async with Memory.open(root, scope=Scope(user="ben", project="shop")) as memory:
        records = await memory.audit()
    assert {name for record in records for name in record.ids} == {shared.id}
    assert own.id not in repr(records)


@pytest.mark.usefixtures("all_acts")
@pytest.mark.parametrize(
    ("written", "text", "places"),
    [
        ("The otter sings.", "otter", {"private", "shared"}),
        # these words are only in the history of the shared place
        ("The badger sings.", "otter", {"private", "shared"}),
        # a search that finds nothing is an act too, of the narrowest place
        ("The otter sings.", "walrus", {"private"}),
    ],
)
async def test_an_erasure_is_recorded_where_it_changed_something_and_in_the_narrowest_place(
    root: Path, written: str, text: str, places: set[str]
) -> None:
    async with Memory.open(root, scope=ANN) as memory:
        await memory.remember("The heron sleeps.")
        await memory.remember("The heron flies.", scope="user", reason="everywhere")
        shared = await memory.remember("The otter sings.", scope="project")
        await memory.update(shared.id, content=written) if written != shared.content else None
        await memory.erase(text=text)
        records = await memory.audit(acts=["erase"])
    private = Scope(user="ann", project="shop")
    scopes = {"private": private, "shared": Scope(project="shop"), "everywhere": Scope(user="ann")}
    assert sorted(map(str, (each.scope for each in records))) == sorted(str(scopes[name]) for name in places)
    assert all(each.ids == () and each.by == "user" for each in records)


@pytest.mark.usefixtures("all_acts")
async def test_records_are_filtered_by_who_what_scope_and_time(root: Path) -> None:
    async with Memory.open(root, scope=ANN) as memory:
        own = await memory.remember("The crate of ann is blue.")
        await memory.remember("The crates are in hall 3.", scope="project")
    async with Memory.open(root, scope=Scope(user="ben", project="shop")) as memory:
        await memory.remember("Hall 3 is closed on Sundays.", scope="project")
    async with Memory.open(root, scope=ANN) as memory:
        everything = await memory.audit()
        assert len(everything) == 3
        assert len(await memory.audit(user="ben")) == 1
        assert [record.ids for record in await memory.audit(entry=own.id[:20])] == [(own.id,)]
        assert len(await memory.audit(scope=Scope(project="shop"))) == 3
        assert len(await memory.audit(scope=Scope(user="ann"))) == 1
        middle = everything[1].at
        assert len(await memory.audit(since=middle)) == 2
        assert len(await memory.audit(until=middle)) == 1
        assert await memory.audit(limit=1) == everything[:1]
        assert await memory.audit(acts=["forget"]) == []
        with pytest.raises(InvalidQuery):
            await memory.audit(user=3)  # type: ignore[arg-type]
        with pytest.raises(InvalidScope):
            await memory.audit(scope="ann")  # type: ignore[arg-type]


def _change_a_line(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[1].replace(b'"act":"save"', b'"act":"read"'), *lines[2:]]


def _remove_a_line(lines: list[bytes]) -> list[bytes]:
    return [lines[0], *lines[2:]]


def _swap_lines(lines: list[bytes]) -> list[bytes]:
    return [lines[1], lines[0], *lines[2:]]


def _drop_the_end(lines: list[bytes]) -> list[bytes]:
    return lines[:-1]


def _drop_the_beginning(lines: list[bytes]) -> list[bytes]:
    return lines[1:]


def _change_the_last_line(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-1], lines[-1].replace(b'"user":"ann"', b'"user":"ben"')]


def _add_a_line(lines: list[bytes]) -> list[bytes]:
    return [*lines, lines[-1].replace(b'"n":4', b'"n":5')]


def _cut_within_a_line(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-2], lines[-2] + lines[-1]]


@pytest.mark.usefixtures("all_acts")
@pytest.mark.parametrize(
    "damage",
    [
        _change_a_line, _remove_a_line, _swap_lines, _drop_the_end, _drop_the_beginning, _change_the_last_line,
        _add_a_line, _cut_within_a_line,
    ],
)  # fmt: skip
async def test_a_changed_log_is_reported_and_stays_so(root: Path, damage: Callable[[list[bytes]], list[bytes]]) -> None:
    async with Memory.open(root, scope=ANN) as memory:
        for number in range(4):
            await memory.remember(f"Crate {number} is blue.")
    path = log_of(root / "users" / "ann")
    assert await breaks(root) == 0
    path.write_bytes(b"".join(line + b"\n" for line in damage(path.read_bytes().splitlines())))
    assert await breaks(root) > 0
    async with Memory.open(root, scope=ANN) as memory:
        await memory.remember("One more crate.")
    assert await breaks(root) > 0


@pytest.mark.usefixtures("all_acts")
async def test_a_log_without_its_head_is_reported_and_stays_so(root: Path) -> None:
    async with Memory.open(root, scope=ANN) as memory:
        await memory.remember("Crate 1 is blue.")
    (root / "users" / "ann" / "audit" / "head").unlink()
    assert await breaks(root) > 0
    async with Memory.open(root, scope=ANN) as memory:
        await memory.remember("One more crate.")
    assert await breaks(root) > 0


@pytest.mark.usefixtures("all_acts")
@pytest.mark.parametrize("written", [b'{"n":3,"prev":"ab', b"\xff"])
async def test_a_line_that_a_kill_left_half_written_heals(root: Path, written: bytes) -> None:
    async with Memory.open(root, scope=ANN) as memory:
        await memory.remember("Crate 1 is blue.")
        await memory.remember("Crate 2 is blue.")
    path = log_of(root / "users" / "ann")
    with path.open("ab") as file:
        file.write(written)
    assert await breaks(root) == 0
    async with Memory.open(root, scope=ANN) as memory:
        await memory.remember("Crate 3 is blue.")
        assert len(await memory.audit()) == 3
    assert await breaks(root) == 0
    assert [json.loads(line)["n"] for line in path.read_bytes().splitlines()] == [1, 2, 3]


@pytest.mark.usefixtures("all_acts")
async def test_a_kill_between_the_line_and_the_head_breaks_nothing(root: Path) -> None:
    head = root / "users" / "ann" / "audit" / "head"
    async with Memory.open(root, scope=ANN) as memory:
        await memory.remember("Crate 1 is blue.")
        before = head.read_bytes()
        await memory.remember("Crate 2 is blue.")
        head.write_bytes(before)
        await memory.remember("Crate 3 is blue.")
        assert [record.number for record in await memory.audit()] == [3, 2, 1]
    assert await breaks(root) == 0


@pytest.mark.usefixtures("all_acts")
@pytest.mark.may_block("it starts processes")
def test_several_processes_write_one_unbroken_log(root: Path) -> None:
    anyio.run(breaks, root)
    program = (
        "import asyncio, sys\n"
        "from ricordo import Memory, Scope\n"
        "async def main():\n"
        "    async with Memory.open(sys.argv[1], scope=Scope(user='ann', project='shop')) as memory:\n"
        "        for number in range(8):\n"
        "            await memory.remember(f'Crate {number} of {sys.argv[2]} is blue.')\n"
        "            await memory.recall('crate')\n"
        "asyncio.run(main())\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, str(root), str(number)]) for number in range(3)]
    assert [process.wait(120) for process in running] == [0, 0, 0]

    async def read() -> list[AuditRecord]:
        async with Memory.open(root, scope=ANN) as memory:
            return await memory.audit()

    records = anyio.run(read)
    assert anyio.run(breaks, root) == 0
    assert sum(record.count for record in records if record.act == "save") == 24
    assert sum(record.act == "read" for record in records) == 24
    assert sorted(record.number for record in records) == [*range(1, 49)]


@pytest.mark.usefixtures("all_acts")
async def test_a_log_that_cannot_be_written_fails_no_act_and_loses_no_record(root: Path) -> None:
    async with Memory.open(root, scope=ANN) as memory:
        await memory.remember("Crate 1 is blue.")
        folder = root / "users" / "ann" / "audit"
        folder.rename(folder.with_name("away"))
        folder.write_bytes(b"")
        saved = await memory.remember("Crate 2 is blue.")
        folder.unlink()
        folder.with_name("away").rename(folder)
        await memory.remember("Crate 3 is blue.")
        assert saved.id in {name for record in await memory.audit() for name in record.ids}
        assert len(await memory.audit()) == 3
    assert await breaks(root) == 0


@pytest.mark.usefixtures("all_acts")
async def test_a_recall_waits_for_no_record_of_it(root: Path) -> None:
    async with Memory.open(root, scope=ANN, background=False) as memory:
        await memory.remember("Crate 1 is blue.")
        size = log_of(root / "users" / "ann").stat().st_size
        await memory.recall("crate")
        await memory.recall("crate")
        assert log_of(root / "users" / "ann").stat().st_size == size
    assert log_of(root / "users" / "ann").read_bytes().count(b'"how":"recall"') == 2


@pytest.mark.usefixtures("all_acts")
async def test_reads_are_written_while_the_memory_stays_open(root: Path) -> None:
    async with Memory.open(root, scope=ANN) as memory:
        await memory.remember("Crate 1 is blue.")
        await memory.recall("crate")
        await anyio.sleep(2)
        assert b'"recall"' in log_of(root / "users" / "ann").read_bytes()


@pytest.mark.usefixtures("all_acts")
def test_the_command_shows_and_filters_the_log(root: Path) -> None:
    options = ("--root", root, "--user", "ann", "--project", "shop")
    saved = json.loads(ricordo("remember", "The crate is blue.", "--json", *options).out)["entry"]
    ricordo("recall", "crate", *options)
    ricordo("forget", saved["id"], *options)
    shown = json.loads(ricordo("audit", "--json", *options).out)["records"]
    assert {record["act"] for record in shown} >= {"save", "read", "forget"}
    only = json.loads(
        ricordo("audit", "--act", "forget", "--who", "ann", "--of", "project=shop", "--json", *options).out
    )
    assert [record["ids"] for record in only["records"]] == [[saved["id"]]]
    assert json.loads(ricordo("audit", "--until", "2020-01-01", "--json", *options).out) == {"records": []}
    text = ricordo("audit", "--limit", "1", *options).out
    assert "ann  forget" in text
    assert saved["id"] in text
    wrong = ricordo("audit", "--of", "colour=blue", *options)
    assert (wrong.code, "colour" in wrong.err) == (2, True)


@pytest.mark.usefixtures("all_acts")
async def test_files_of_the_log_are_private_and_no_document_of_the_memory(root: Path) -> None:
    async with Memory.open(root, scope=ANN) as memory:
        await memory.remember("Crate 1 is blue.")
        await memory.index()
        assert await memory.search("read save audit") == []
    folder = root / "users" / "ann" / "audit"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_an_unknown_level_is_refused_with_the_known_ones(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RICORDO_AUDIT__RECORD", "some")
    with pytest.raises(InvalidSetting, match="off, deletions, changes, reads"):
        Settings.load(root)
