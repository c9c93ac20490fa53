"""A root that can't be used is told once, and the agent goes on without memory; a foreign one stays an error."""

import errno
import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, settings
from disks import FailingDisk
from hand_made_roots import begun
from places import place_of
from ricordo import HarnessAgent, MemoryConfig, Scope
from ricordo.errors import (
    DocumentInvalid,
    IndexUnavailable,
    RicordoError,
    ScopeMismatch,
    StorageBusy,
    StorageFailed,
    StorageFull,
    StorageReadOnly,
)
from ricordo.testing import Call, Say, ScriptedModel

pytestmark = pytest.mark.anyio


async def _chats_without_memory(root: Path, caplog: pytest.LogCaptureFixture, **options: object) -> None:
    model = ScriptedModel([Call("remember", {"content": "We deploy only from main."}), Say("Kept."), Say("Fine.")])
    given = {"settings": settings(root)} | options
    with caplog.at_level(logging.WARNING, "ricordo"):
        async with HarnessAgent(model, **agent_arguments(workspace=root, scope=SCOPE, **given)) as one:
            assert one.memory is None
            assert str(await one.send("Remember that we deploy only from main.")) == "Kept."
            assert str(await one.send("And?")) == "Fine."
            assert [report.status for report in await one.compact()] == ["skipped", "skipped"]
            assert (await one.get_context_usage()).messages == 6
            assert await one.drain() == 0
            assert (await one.consolidate()).skipped
            await one.clear()
    warnings = [each for each in caplog.records if each.name.startswith("ricordo") and each.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert str(root) in warnings[0].getMessage()
    assert "Memory is off" in model.requests[1].messages[-1].tool_results[0].text
    assert "<memory" not in model.requests[0].messages[0].text


@pytest.mark.req("GO-G22-fallback")
@pytest.mark.parametrize(
    "error",
    [
        IndexUnavailable(),
        StorageFull(),
        StorageReadOnly(),
        StorageBusy(),
        StorageFailed(),
        RicordoError("odd"),
        PermissionError("no"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_an_agent_whose_store_can_not_be_made_warns_once_and_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refused(*args: object, **named: object) -> object:
        raise error

    monkeypatch.setattr("ricordo.runtime.workspace.LayeredStore", refused)
    await _chats_without_memory(tmp_path / ".ricordo", caplog)


def _a_file(root: Path) -> None:
    root.write_text("a file")


def _a_damaged_marker(root: Path) -> None:
    begun(root, root.parent / "data")
    (root / "project.json").write_text("{")


def _a_damaged_key(root: Path) -> None:
    begun(root, root.parent / "data")
    (root / "guard.key").write_bytes(b"short")


@pytest.mark.req("GO-G22-fallback")
@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("damage", [_a_file, _a_damaged_marker, _a_damaged_key])
async def test_an_agent_with_a_root_that_is_none_warns_once_and_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], None], given: bool
) -> None:
    root = tmp_path / ".ricordo"
    damage(root)
    await _chats_without_memory(root, caplog, **({} if given else {"settings": None}))


@pytest.mark.req("GO-G22-fallback")
async def test_an_agent_on_a_disk_that_takes_no_root_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await _chats_without_memory(tmp_path / ".ricordo", caplog, disk=FailingDisk(1, errno.ENOSPC))


@pytest.mark.req("GO-G22-fallback")
async def test_a_root_of_another_project_stays_an_error(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    async with HarnessAgent("offline", memory=root, scope=SCOPE, settings=settings(root)):
        pass
    other = Scope(user="me", project="library")
    with pytest.raises(ScopeMismatch):
        async with HarnessAgent("offline", memory=root, scope=other, settings=settings(root)):
            pass
    assert json.loads((root / "project.json").read_text())["scope"] == {"project": "shop"}


async def test_an_error_in_the_block_of_an_agent_comes_out_as_it_is(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    with pytest.raises(StorageFull, match="mine"):
        async with HarnessAgent("offline", memory=root, scope=SCOPE, settings=settings(root)):
            raise StorageFull("mine")


@pytest.mark.req("GO-G22-fallback")
@pytest.mark.parametrize("damage", [_a_damaged_marker, _a_damaged_key])
async def test_where_memory_is_required_a_root_that_is_none_is_raised(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    root = tmp_path / ".ricordo"
    damage(root)
    with pytest.raises(DocumentInvalid):
        async with HarnessAgent(
            "offline", memory=MemoryConfig(root=root, required=True), scope=SCOPE, settings=settings(root)
        ):
            pass


@pytest.mark.req("GO-G3")
async def test_an_agent_without_model_and_memory_says_that_nothing_is_kept(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    _a_damaged_key(root)
    async with HarnessAgent("offline", memory=root, scope=SCOPE, settings=settings(root)) as one:
        assert one.memory is None
        assert not one.is_recorded
        assert str(await one.send("The treasure is under the oak.")) == "Nothing of this is kept."
        assert str(await one.send("Where is the treasure?")) == "Not in memory."


@pytest.mark.req("GO-G22-fallback", "GO-I9")
async def test_an_agent_on_a_root_that_can_only_be_read_shows_memory_and_keeps_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / ".ricordo"
    model = ScriptedModel([Say("From main."), Say("Fine.")])
    async with HarnessAgent("offline", memory=root, scope=SCOPE, session="s", settings=settings(root)) as one:
        assert one.is_recorded
        await one.send("Hello.")
        assert one.memory is not None
        await one.memory.remember("We deploy only from main.")
    before = {path: path.read_bytes() for path in (place_of(root) / "workspace").rglob("*") if path.is_file()}
    monkeypatch.setattr("ricordo.agent.session_factory._is_writable", lambda root: False)
    with caplog.at_level(logging.WARNING, "ricordo"):
        async with HarnessAgent(model, memory=root, scope=SCOPE, session="s", settings=settings(root)) as two:
            assert not two.is_recorded
            assert two.memory is not None
            assert str(await two.send("Nadia owns staging.")) == "From main."
            assert str(await two.send("And?")) == "Fine."
            assert [message.text for message in two.window][-3:] == ["From main.", "And?", "Fine."]
    assert "deploy only from main" in model.requests[0].messages[0].text
    assert [each.getMessage().count("can only be read") for each in caplog.records] == [1]
    assert before == {path: path.read_bytes() for path in (place_of(root) / "workspace").rglob("*") if path.is_file()}
