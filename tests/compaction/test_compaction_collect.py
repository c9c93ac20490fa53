"""Files of evicted results go when nothing refers to them any more, and not before."""

import os
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync
from hypothesis import given
from hypothesis import strategies as st

from conversation_strategies import call, result, said
from ricordo.context import EvictResults, ToolResultEvictionConfig, Window
from ricordo.guard import Redactor
from ricordo.messages import Message
from ricordo.storage import FileInfo
from ricordo.storage.local import LocalFiles
from ricordo.workspace import (
    AgentState,
    FileStateStore,
    Transcript,
    compactions_path,
    read_transcript,
    state_path,
    transcript_path,
)
from ricordo.workspace.evicted_files import CleanupResult, SessionReferences, remove_unreferenced, select_unreferenced

pytestmark = pytest.mark.anyio

KEY = Redactor(bytes(range(32)))
WIDE = "".join(f"line {number} of the output\n" for number in range(5_000))
DAYS_AGO = datetime.now(UTC) - timedelta(days=3)


class Today:
    """A clock that shows the machine's time, later by what a test says."""

    later = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.later

    def today(self) -> date:
        return self.now().date()


async def lived(files: LocalFiles, *, session: str = "s", agent: str = "main", text: str = WIDE) -> Window:
    """Let an agent have a wide result; what is returned is its window, with the placeholder in it."""
    asked = [said("Run it."), call("c1", name="bash"), result("c1", text)]
    log = Transcript(files, transcript_path(agent, session), session=session, redactor=KEY)
    messages = (await log.append(asked)).messages
    evict = EvictResults(ToolResultEvictionConfig.defaults(), files, KEY)
    window = Window(messages=messages, agent=agent, session=session)
    return replace(window, messages=(await evict.reduce(window)).messages)


async def keep(files: LocalFiles, window: Window, messages: tuple[Message, ...] | None = None) -> None:
    """Save where the agent stands: with `messages` as its window, by default with all of it."""
    states = FileStateStore(files, KEY)
    version = (await states.load(window.agent, window.session)).version
    state = AgentState(agent=window.agent, session=window.session, window=messages or window.messages)
    await states.save(state, expected=version)


async def aged(root: Path) -> None:
    """Let three days go by since the last change of anything."""

    def age() -> None:
        for path in root.rglob("*"):
            os.utime(path, (DAYS_AGO.timestamp(), DAYS_AGO.timestamp()))

    await run_sync(age)


def evicted(root: Path) -> list[Path]:
    return sorted((root / "workspace" / "large_tool_results").rglob("*.*"))


@pytest.mark.req("AS-BUG-31")
async def test_a_file_goes_once_the_window_has_let_go_of_it_and_the_transcript_still_has_all(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    window = await lived(files)
    await keep(files, window)
    await aged(tmp_path)
    assert await remove_unreferenced(files, Today()) == CleanupResult()
    (file,) = evicted(tmp_path)
    await keep(files, window, window.messages[:1])
    await aged(tmp_path)
    assert await remove_unreferenced(files, Today()) == CleanupResult(count=1, bytes=len(WIDE))
    assert not file.exists()
    assert (await read_transcript(files, transcript_path("main", "s"))).messages[-1].tool_results[0].text == WIDE
    assert await remove_unreferenced(files, Today()) == CleanupResult()


@pytest.mark.req("AS-EVICT-06", "AS-BUG-31")
async def test_a_file_that_a_compaction_can_bring_back_or_another_agent_shows_stays(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    for agent, session in (("main", "undone"), ("main", "shared")):
        window = await lived(files, agent=agent, session=session)
        await keep(files, window, window.messages[:1])
        placeholder = window.messages[-1].tool_results[0].text.encode()
        if session == "undone":
            await files.append(compactions_path(agent, session), placeholder)
        else:
            await keep(files, replace(window, agent="helper"))
    await aged(tmp_path)
    assert await remove_unreferenced(files, Today()) == CleanupResult()
    await files.delete(compactions_path("main", "undone"))
    await aged(tmp_path)
    assert (await remove_unreferenced(files, Today())).count == 1
    assert [path.parent.name for path in evicted(tmp_path)] == ["shared"]


@pytest.mark.req("AS-BUG-31")
async def test_a_state_that_was_set_aside_still_holds_what_it_shows(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    window = await lived(files)
    await keep(files, window)
    path = state_path("main", "s")
    await files.create(f"{path}.broken-1", b"torn " + (await files.read(path)).data)
    await keep(files, window, window.messages[:1])
    await aged(tmp_path)
    assert await remove_unreferenced(files, Today()) == CleanupResult()


@pytest.mark.req("AS-BUG-31")
@pytest.mark.parametrize("young", ["file", "transcript", "state"])
async def test_what_is_young_stays_and_so_does_all_of_a_session_in_use(tmp_path: Path, young: str) -> None:
    files = LocalFiles(tmp_path)
    window = await lived(files)
    await keep(files, window, window.messages[:1])
    await aged(tmp_path)
    (file,) = evicted(tmp_path)
    paths = {
        "file": file,
        "transcript": tmp_path / transcript_path("main", "s"),
        "state": tmp_path / state_path("main", "s"),
    }
    await run_sync(os.utime, paths[young])
    assert await remove_unreferenced(files, Today()) == CleanupResult()
    later = Today()
    later.later = timedelta(days=1, minutes=1)
    assert (await remove_unreferenced(files, later)).count == 1


@pytest.mark.req("AS-BUG-31")
@pytest.mark.parametrize("missing", ["transcript", "state"])
async def test_files_whose_session_can_not_be_told_are_left_alone(tmp_path: Path, missing: str) -> None:
    files = LocalFiles(tmp_path)
    window = await lived(files)
    await keep(files, window, window.messages[:1])
    await files.delete(transcript_path("main", "s") if missing == "transcript" else state_path("main", "s"))
    await files.create("workspace/large_tool_results/s/notes.txt", b"by a person")
    await files.create("workspace/large_tool_results/bash-0123456789abcdef.txt", b"of no session")
    await aged(tmp_path)
    before = evicted(tmp_path)
    assert await remove_unreferenced(files, Today()) == CleanupResult()
    assert evicted(tmp_path) == before


@pytest.mark.req("AS-BUG-31")
@pytest.mark.parametrize("session", ["S1", "a.cursor", "x.log", "2026-11-21-08h00-abc123"])
async def test_a_session_is_told_by_its_files_whatever_it_is_called(tmp_path: Path, session: str) -> None:
    files = LocalFiles(tmp_path)
    window = await lived(files, session=session)
    await keep(files, window)
    await aged(tmp_path)
    assert await remove_unreferenced(files, Today()) == CleanupResult()
    await keep(files, window, window.messages[:1])
    await aged(tmp_path)
    assert (await remove_unreferenced(files, Today())).count == 1


@pytest.mark.req("AS-EVICT-03", "AS-BUG-31")
async def test_another_folder_is_collected_too(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    window = await lived(files)
    await keep(files, window, window.messages[:1])
    workspace = tmp_path / "workspace"
    await run_sync((workspace / "large_tool_results").rename, workspace / "wide")
    await aged(tmp_path)
    assert await remove_unreferenced(files, Today()) == CleanupResult()
    assert (await remove_unreferenced(files, Today(), eviction_path="/wide/")).count == 1


@pytest.mark.req("AS-BUG-31")
@given(
    ages=st.lists(st.integers(0, 20), max_size=6),
    mentioned=st.sets(st.integers(0, 5)),
    changed=st.dictionaries(st.sampled_from(["state", "sessions"]), st.integers(0, 20)),
    before=st.integers(0, 20),
)
def test_a_plan_takes_only_what_is_old_unmentioned_and_of_a_session_at_rest(
    ages: list[int], mentioned: set[int], changed: dict[str, int], before: int
) -> None:
    names = [f"bash-{number:016x}.txt" for number in range(6)]
    files = [FileInfo(path=f"a/{name}", size=1, modified_ns=age) for name, age in zip(names, ages, strict=False)]
    told = {names[number].removeprefix("bash") for number in mentioned}
    going = select_unreferenced(files, SessionReferences(modified_ns=changed), told, before=before)
    rests = len(changed) == 2 and max(changed.values()) < before
    assert going == [
        info for number, info in enumerate(files) if rests and info.modified_ns < before and number not in mentioned
    ]


def test_collecting_begins_with_nothing(tmp_path: Path) -> None:
    assert anyio.run(remove_unreferenced, LocalFiles(tmp_path), Today()) == CleanupResult()
