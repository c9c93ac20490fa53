"""Sessions whose ids differ only by case are apart, also on a file system that does not tell upper from lower case."""

from itertools import product
from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings, spoken
from places import place_of
from ricordo import BuiltinTools, CompactionConfig, HarnessAgent, Memory, Scope, ToolResultEvictionConfig
from ricordo.agent import tool
from ricordo.errors import InvalidMessage
from ricordo.storage.local import LocalFiles
from ricordo.testing import Call, Say, ScriptedModel
from ricordo.workspace import compactions_path, cursor_path, list_sessions, state_path, tasks_path, transcript_path
from ricordo.workspace.layout import parse_record_path, parse_transcript_path

ALIKE = ("Run-A", "run-a", "RUN-A", "Run-a")
PATHS = (transcript_path, state_path, cursor_path, compactions_path, tasks_path)
KINDS = ("transcript", "state", "cursor", "compactions", "tasks")


@tool
def look_up(what: str) -> str:
    """Look something up."""
    return f"{what}\n" + "a line of what was found\n" * 300


def agent(model: ScriptedModel, root: Path, session: str) -> HarnessAgent:
    return HarnessAgent(
        model,
        memory=root,
        scope=SCOPE,
        session=session,
        settings=settings(root),
        tools=[look_up],
        builtin_tools=BuiltinTools(planning=True),
        compaction=CompactionConfig(model="offline", trigger_messages=4, keep_messages=2),
        tool_result_eviction=ToolResultEvictionConfig(max_result_chars=4_000, preview_chars=500),
    )


async def work(root: Path, session: str, text: str) -> ScriptedModel:
    model = ScriptedModel([Call("look_up", {"what": session}), Say("Found."), Say("Yes.")])
    async with agent(model, root, session) as one:
        await one.send(text)
        await one.send("Thank you.")
        assert one.memory is not None
        await one.memory.remember(f"We know of {session}.")
    return model


def names(*folders: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for folder in folders for path in folder.rglob("*") if path.is_file()]


@pytest.mark.req("AS-STATE-04")
@pytest.mark.anyio
async def test_no_files_of_sessions_that_differ_by_case_have_names_that_do(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    for session in ALIKE:
        await work(root, session, f"This is said in {session}.")
    found = names(root, root.parent / "data")
    assert len({name.lower() for name in found}) == len(found)
    kinds = {
        (record.session, record.kind) for name in found if (record := parse_record_path(name.partition("/me/")[2]))
    }
    assert kinds == {*product(ALIKE, ("transcript", "state", "cursor", "compactions"))}
    plain = place_of(root) / "workspace/agents/main"
    assert (plain / "sessions/run-a.log.jsonl").is_file(), "a session in lower case has its id for a name"
    assert (plain / "state/run-a.json").is_file()
    for session in ALIKE:
        model = ScriptedModel([Say("Yes.")])
        async with agent(model, root, session) as again:
            await again.send("What was said?")
        told = str(spoken(model.requests[0].messages))
        assert [one for one in ALIKE if f"said in {one}." in told] == [session]


@pytest.mark.req("AS-STATE-04")
@pytest.mark.parametrize("path", PATHS)
def test_every_record_of_a_session_has_a_name_of_its_own_that_tells_the_session(path: object) -> None:
    ids = [*ALIKE, "a.cursor", "A.Cursor", "A.cursor", "B" * 120, "b" * 120, "x-00000000", "X-00000000"]
    paths = [path("main", each) for each in ids]  # type: ignore[operator]
    assert len({each.lower() for each in paths}) == len(ids)
    records = [parse_record_path(each) for each in paths]
    assert [record.session for record in records if record] == ids
    assert path("foreman", "s").startswith("workspace/agents/foreman/")  # type: ignore[operator]
    assert {record.kind for record in records if record} == {dict(zip(PATHS, KINDS, strict=True))[path]}  # type: ignore[index]


def test_no_two_kinds_of_records_share_a_path() -> None:
    paths = [path("main", each) for path in PATHS for each in ("a", "a.cursor", "A", "A.cursor", "A.Cursor")]
    assert len({each.lower() for each in paths}) == len(paths)


def before(root: Path, session: str) -> list[str]:
    """Give the records of a session the names that they had before, and return these."""
    old = []
    for path in (place_of(root) / "workspace/agents").rglob("*"):
        record = parse_record_path(path.relative_to(place_of(root)).as_posix()) if path.is_file() else None
        if record and record.session == session:
            ending = path.name[path.name.index(".") :]
            old.append(path.rename(path.with_name(session + ending)).relative_to(root).as_posix())
    return old


@pytest.mark.anyio
async def test_a_session_of_a_root_from_before_goes_on_and_has_its_new_name(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    await work(root, "Run-A", "The harbour opens at six.")
    before_names = names(root)
    old = before(root, "Run-A")
    assert len(old) == 4
    listed = await list_sessions(LocalFiles(place_of(root)))
    assert [(each.session, each.user) for each in listed] == [("Run-A", "me")], "also where nothing can be renamed"
    model = ScriptedModel([Say("Yes."), Say("Yes.")])
    async with agent(model, root, "Run-A") as again:
        await again.send("When does it open?")
        assert await again.compactions.all()
    assert "The harbour opens at six." in str(spoken(model.requests[0].messages))
    assert set(before_names) <= set(names(root))
    assert not set(old) & set(names(root))


@pytest.mark.anyio
async def test_a_kill_between_the_two_steps_of_a_renaming_leaves_nothing_twice(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    await work(root, "Run-A", "The harbour opens at six.")
    new = place_of(root) / transcript_path("main", "Run-A")
    whole = new.read_bytes()
    old, other = new.with_name("Run-A.log.jsonl"), new.with_name("Run-B.log.jsonl")
    old.write_bytes(whole)
    other.write_bytes(whole)
    new.with_name(Path(transcript_path("main", "Run-B")).name).write_bytes(b"another\n")
    async with Memory.open(root, scope=Scope(user="me", project="shop"), settings=settings(root)):
        pass
    assert new.read_bytes() == whole
    assert not old.exists()
    assert other.read_bytes() == whole, "what was written on under both names stays"


@pytest.mark.req("AS-BUG-28")
def test_an_id_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(InvalidMessage):
        transcript_path("main", "../up")
    assert parse_transcript_path("workspace/agents/main/state/a.json") is None
