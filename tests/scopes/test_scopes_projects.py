"""A project is known by its root and its repository: it survives being moved, and its work trees share by setting."""

import json
import subprocess
from functools import partial
from pathlib import Path

import pytest
from anyio.to_thread import run_sync

from command_line import ricordo
from places import place_of
from ricordo import Memory, Scope
from ricordo.errors import InvalidSetting
from ricordo.runtime import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.req("CC-WORKTREE"), pytest.mark.may_block("the test looks at files")]

DEPLOY = "We deploy only from the branch heron."
TESTS = "The tests need the port 5433."


def git(folder: Path, *arguments: str) -> None:
    named = ("-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *named, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Return a repository with one commit and a linked work tree beside it, and one in it."""
    main = tmp_path / "shop"
    main.mkdir()
    git(main, "init")
    git(main, "commit", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "../beside")
    git(main, "worktree", "add", "trees/inside")
    (tmp_path / "beside" / "src").mkdir()
    return main


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    monkeypatch.chdir(folder)
    done = ricordo(*arguments)
    assert done.code == 0, done.err
    return done.out


def remembered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    listed = json.loads(run(folder, monkeypatch, "memory", "list", "--json"))
    return sorted(each["content"] for each in listed["entries"])


def test_work_trees_share_one_memory_by_default(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside, inside = shop.parent / "beside", shop / "trees" / "inside"
    # the first memory is made from a linked work tree, and lies in the main one
    run(beside / "src", monkeypatch, "remember", DEPLOY)
    assert (shop / ".ricordo" / "project.json").is_file()
    run(shop, monkeypatch, "remember", TESTS)
    for folder in (shop, beside, beside / "src", inside):
        assert remembered(folder, monkeypatch) == [TESTS, DEPLOY], folder
    assert not (beside / ".ricordo").exists()
    assert not (inside / ".ricordo").exists()


def test_work_trees_are_apart_by_setting(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside, inside = shop.parent / "beside", shop / "trees" / "inside"
    run(shop, monkeypatch, "remember", TESTS)
    monkeypatch.setenv("RICORDO_WORKTREES", "separate")
    for folder in (beside, inside):
        monkeypatch.chdir(folder)
        assert "There is no memory yet" in ricordo("memory", "list", "--json").out, folder
        run(folder, monkeypatch, "remember", DEPLOY)
        assert remembered(folder, monkeypatch) == [DEPLOY], folder
    assert remembered(shop, monkeypatch) == [TESTS]
    # a work tree that has a memory of its own keeps it
    monkeypatch.setenv("RICORDO_WORKTREES", "share")
    assert remembered(beside, monkeypatch) == [DEPLOY]


@pytest.mark.parametrize("setting", ["share", "separate"])
async def test_programs_find_the_same_memory_as_commands(
    shop: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setenv("RICORDO_WORKTREES", setting)
    for folder in (shop, shop.parent / "beside" / "src", shop / "trees" / "inside"):
        monkeypatch.chdir(folder)
        async with Memory.open(scope=Scope(user="me", project="shop")) as memory:
            top = shop if setting == "share" else folder.parent if folder.name == "src" else folder
            assert memory.root == top / ".ricordo"


def test_a_work_tree_whose_repository_is_gone_and_a_submodule_stand_for_themselves(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = shop.parent / "beside"
    sub = shop / "sub"
    sub.mkdir()
    (sub / ".git").write_text("gitdir: ../.git/modules/sub\n")
    run(sub, monkeypatch, "remember", TESTS)
    assert (sub / ".ricordo" / "project.json").is_file()
    shop.rename(shop.with_name("gone"))
    run(beside, monkeypatch, "remember", DEPLOY)
    assert (beside / ".ricordo" / "project.json").is_file()


def test_an_unknown_setting_says_what_is_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RICORDO_WORKTREES", "sometimes")
    with pytest.raises(InvalidSetting, match="share or separate"):
        Settings.from_environment()


async def test_a_project_that_is_moved_keeps_its_memories_and_its_name(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = Scope(user="me", project="shop")
    async with Memory.open(shop / ".ricordo", scope=scope) as memory:
        private = await memory.remember(DEPLOY)
        shared = await memory.remember(TESTS, scope="project", reason="All need it.")
        await memory.pin(private.id)
    moved = shop.parent / "elsewhere" / "store"
    moved.parent.mkdir()
    await run_sync(shop.rename, moved)
    async with Memory.open(moved / ".ricordo", scope=scope) as memory:
        assert {entry.id for entry in await memory.entries()} == {private.id, shared.id}
        assert [hit.entry.id for hit in await memory.recall("Which branch do we deploy from?", limit=1)] == [private.id]
        assert [item.action for item in await memory.history(private.id)] == ["pin", "save"]
    # a command asks for no new trust, and does not name the project after its new folder
    assert await run_sync(partial(remembered, moved, monkeypatch)) == [TESTS, DEPLOY]
    assert json.loads((moved / ".ricordo" / "project.json").read_text())["scope"] == {"project": "shop"}


async def test_a_move_between_scopes_keeps_id_and_history_and_is_undone(tmp_path: Path) -> None:
    root = tmp_path / "shop" / ".ricordo"
    async with Memory.open(root, scope=Scope(user="me", project="shop")) as memory:
        saved = await memory.remember(DEPLOY)
        up = await memory.move(saved.id, "project", reason="All of us deploy.")
        assert (up.id, up.scope, up.reason) == (saved.id, Scope(project="shop"), "All of us deploy.")
        assert "heron" not in (place_of(root) / "workspace" / "memory" / f"{saved.time:%Y-%m-%d}.md").read_text()
        down = await memory.move(saved.id, "private")
        assert (down.id, down.scope) == (saved.id, saved.scope)
        acts = [(item.action, item.actor) for item in await memory.history(saved.id)]
        assert next(act for act, _ in acts if act in {"promote", "demote", "save"}) == "demote"
        assert {"promote", "demote", "save"} <= {act for act, _ in acts}
        assert {actor for _, actor in acts} == {"user"}
        await memory.undo()
        assert (await memory.entry(saved.id)).scope == Scope(project="shop")
