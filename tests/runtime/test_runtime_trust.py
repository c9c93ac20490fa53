"""A root is used where it was made or trusted on this machine, and nothing of any other one is."""

import errno
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync

from cloned_roots import PLANTED, SESSION, cloned_root, everything_below
from disks import FailingDisk
from ricordo import HarnessAgent, Memory, MemoryConfig, Scope
from ricordo.clock import SystemClock
from ricordo.errors import InvalidSetting, RootNotTrusted, StorageError
from ricordo.runtime import Dependencies, Settings, open_store, open_workspace
from ricordo.runtime.claiming import trust_root, untrust_root
from ricordo.runtime.roots import digest_key, identity_from_key
from ricordo.runtime.sync import SyncMemory as BlockingMemory
from ricordo.runtime.trust import IGNORE_ALL_BUT_CURATED
from ricordo.runtime.workspace import trust_list_files
from ricordo.storage import Disk
from ricordo.storage.local import LocalFiles
from ricordo.testing import ScriptedModel

pytestmark = pytest.mark.anyio

SCOPE = Scope(user="me", project="shop")


class ClosedList(Disk):
    """A disk on which the list of trusted roots can't be written to."""

    def make_folder(self, path: str) -> None:
        """Refuse the folder of the list."""
        if "trusted" in Path(path).parts:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        super().make_folder(path)


async def held(root: Path, **options: object) -> list[str]:
    """Return what is remembered in a root."""
    async with Memory.open(root, scope=SCOPE, **options) as memory:  # type: ignore[arg-type]
        return [entry.content for entry in await memory.entries()]


async def made(root: Path) -> Path:
    """Make a root that holds one memory."""
    async with Memory.open(root, scope=SCOPE) as memory:
        await memory.remember("The door is red.")
    return root


def files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


async def trusted(root: Path, *, keeps_key: bool = True) -> None:
    """Do what `ricordo trust` does."""
    parts = Dependencies.create()
    await trust_root(
        root, LocalFiles(root), trust_list=trust_list_files(parts), clock=SystemClock(), keeps_key=keeps_key
    )


async def _memory(root: Path) -> None:
    await held(root)


async def _memory_with_settings(root: Path) -> None:
    await held(root, settings=await run_sync(Settings.from_environment))


async def _blocking(root: Path) -> None:
    def look() -> None:
        with BlockingMemory.open(root, scope=SCOPE):
            pass

    await run_sync(look)


async def _store(root: Path) -> None:
    async with open_store(f"layered:{root}", scope=SCOPE):
        pass


async def _plain_store(root: Path) -> None:
    async with open_store(f"jsonl:{root}", scope=SCOPE):
        pass


async def _workspace(root: Path) -> None:
    async with open_workspace(root, SCOPE, Dependencies.create()):
        pass


async def _load(root: Path) -> None:
    await run_sync(Settings.load, root)


async def _agent(root: Path) -> None:
    async with HarnessAgent(ScriptedModel([]), memory=root, scope=SCOPE, session=SESSION):
        pass


async def _incognito(root: Path) -> None:
    async with HarnessAgent(ScriptedModel([]), memory=MemoryConfig(root=root, incognito=True), scope=SCOPE):
        pass


DOORS = (
    _memory, _memory_with_settings, _blocking, _store, _plain_store, _workspace, _load, _agent, _incognito,
)  # fmt: skip


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__.strip("_"))
async def test_a_cloned_root_is_refused_wherever_it_is_opened_and_stays_as_it_is(
    door: Callable[[Path], Awaitable[None]], tmp_path: Path, home: Path
) -> None:
    root = await cloned_root(tmp_path)
    before = everything_below(root.parent)
    with pytest.raises(RootNotTrusted, match=r"ricordo trust") as caught:
        await door(root)
    assert caught.value.root == str(root)
    assert everything_below(root.parent) == before
    assert files_below(home) == []


@pytest.mark.parametrize(
    "planted",
    [
        "config.toml", "project.json", "guard.key", "workspace/MEMORY.md", "workspace/rules/house.md",
        "workspace/profile.json", f"workspace/agents/main/state/{SESSION}.json", ".gitignore", "queue.db",
        "users/me/workspace/MEMORY.md", "trash/x",
    ],
)  # fmt: skip
async def test_a_folder_in_which_anything_lies_already_is_not_made_a_root_unasked(planted: str, tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    (root / planted).parent.mkdir(parents=True)
    (root / planted).write_text("!*\n")
    if planted == "guard.key":
        (root / planted).write_bytes(bytes(64))
    before = everything_below(root)
    with pytest.raises(RootNotTrusted):
        await held(root)
    assert everything_below(root) == before


async def test_a_root_that_was_made_here_is_trusted_wherever_it_is_moved_to(tmp_path: Path) -> None:
    root = await made(tmp_path / "project" / ".ricordo")
    moved = tmp_path / "elsewhere" / "renamed"
    moved.parent.mkdir()
    root.rename(moved)
    assert await held(moved) == ["The door is red."]
    shutil.copytree(moved, tmp_path / "copy")
    assert await held(tmp_path / "copy") == ["The door is red."]


@pytest.mark.req("GO-D13")
async def test_the_list_is_private_and_names_no_key(tmp_path: Path, home: Path) -> None:
    root = await made(tmp_path / ".ricordo")
    key = (root / "guard.key").read_bytes()
    listed = [path for path in files_below(home) if path.suffix == ".json"]
    assert [path.stem for path in listed] == [identity_from_key(key)]
    assert [oct(path.stat().st_mode & 0o777) for path in listed] == ["0o600"]
    assert key.hex() not in listed[0].read_text()
    assert key[32:].hex() not in listed[0].read_text()


async def test_what_was_trusted_once_does_not_vouch_for_another_clone_with_the_same_key(tmp_path: Path) -> None:
    first = await cloned_root(tmp_path)
    second = tmp_path / "second"
    shutil.copytree(first, second)
    await trusted(first)
    assert PLANTED in await held(first, embedder="none")
    with pytest.raises(RootNotTrusted):
        await held(second)
    shutil.copy(second / "guard.key", first / "guard.key")
    with pytest.raises(RootNotTrusted):
        await held(first)


@pytest.mark.parametrize("keeps", [True, False])
async def test_a_root_of_an_earlier_version_is_trusted_once_and_keeps_its_digests_where_its_key_is_secret(
    keeps: bool, tmp_path: Path
) -> None:
    root = await made(tmp_path / ".ricordo")
    old = digest_key((root / "guard.key").read_bytes())
    (root / "guard.key").write_bytes(old)
    with pytest.raises(RootNotTrusted):
        await held(root)
    await trusted(root, keeps_key=keeps)
    assert await held(root) == ["The door is red."]
    assert (digest_key((root / "guard.key").read_bytes()) == old) is keeps


async def test_a_root_that_is_trusted_no_longer_is_refused_again(tmp_path: Path, home: Path) -> None:
    root = await made(tmp_path / ".ricordo")
    async with HarnessAgent(ScriptedModel([]), memory=root, scope=SCOPE, session="s") as agent:
        await agent.permissions.allow("shell(git status)")
    granted = [path for path in files_below(home) if "permissions" in path.parts]
    assert len(granted) == 1
    identity = identity_from_key((root / "guard.key").read_bytes())
    await untrust_root(identity, trust_list=trust_list_files(Dependencies.create()))
    assert not granted[0].exists()
    with pytest.raises(RootNotTrusted):
        await held(root)


@pytest.mark.parametrize("name", ["", "workspace", "history", "users", "guard.key", "config.toml", "project.json"])
async def test_a_link_in_a_root_opens_nothing_else(name: str, tmp_path: Path) -> None:
    other, root = await made(tmp_path / "other" / ".ricordo"), await made(tmp_path / "mine" / ".ricordo")
    (other / "config.toml").write_text("max_iters = 3\n")
    (other / "users").mkdir(exist_ok=True)
    linked = root / name if name else root
    if linked.is_dir():
        shutil.rmtree(linked)
    linked.unlink(missing_ok=True)
    linked.symlink_to(other / name if name else other)
    before = everything_below(tmp_path)
    kind = f"the {'file' if '.' in name else 'folder'} in its place"
    advice = ("Put " if name else "Name .*, or put ") + kind if linked.exists() else "It leads nowhere"
    with pytest.raises(RootNotTrusted, match=f"symbolic link.*{advice}"):
        await held(root)
    assert everything_below(tmp_path) == before


async def test_a_link_in_the_place_of_a_users_folder_opens_nothing_else(tmp_path: Path) -> None:
    other, root = await made(tmp_path / "other" / ".ricordo"), await made(tmp_path / "mine" / ".ricordo")
    shutil.rmtree(root / "users" / "me")
    (root / "users" / "me").symlink_to(other / "users" / "me")
    before = everything_below(other)
    with pytest.raises(RootNotTrusted, match="symbolic link"):
        await held(root)
    assert everything_below(other) == before


async def test_a_link_into_the_own_data_folder_is_no_way_in(tmp_path: Path) -> None:
    data = Settings.from_environment().data
    async with Memory.open(data / "users" / "me", scope=Scope(user="me")) as memory:
        await memory.remember("My salary is mine.")
    (tmp_path / ".ricordo").symlink_to(data / "users" / "me")
    with pytest.raises(RootNotTrusted, match="symbolic link"):
        async with Memory.open(tmp_path / ".ricordo", scope=Scope(user="me")):
            pass


async def test_a_root_of_another_user_of_this_machine_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = await made(tmp_path / ".ricordo")
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    with pytest.raises(RootNotTrusted, match=f"another user of this machine \\(uid {uid}\\)"):
        await held(root)
    monkeypatch.setenv("RICORDO_TRUST", str(root))
    assert await held(root) == ["The door is red."]


@pytest.mark.req("GO-D13")
async def test_a_root_that_others_could_use_is_closed_to_them_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = await made(tmp_path / ".ricordo")
    for path in root.rglob("*"):
        path.chmod(path.stat().st_mode | 0o066)
    root.chmod(0o777)
    (root / "guard.key").chmod(0o644)
    assert await held(root) == ["The door is red."]
    assert [oct(path.stat().st_mode & 0o777) for path in (root, root / "guard.key")] == ["0o700", "0o600"]
    assert "mode 777" in caplog.text
    assert "mode 644" in caplog.text
    # what is moved out of the root is closed too
    assert [path for path in root.rglob("*") if path.stat().st_mode & 0o077] == []
    caplog.clear()
    await held(root)
    assert caplog.text == ""


@pytest.mark.parametrize("said", ["1", "{root}", "{parent}", "/nowhere, {root}"])
async def test_the_environment_vouches_for_roots(said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = await cloned_root(tmp_path)
    monkeypatch.setenv("RICORDO_TRUST", said.format(root=root, parent=root.parent))
    assert PLANTED in await held(root, embedder="none")


async def test_the_environment_vouches_for_no_other_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = await cloned_root(tmp_path)
    monkeypatch.setenv("RICORDO_TRUST", str(tmp_path / "clone" / ".ric"))
    with pytest.raises(RootNotTrusted):
        await held(root)
    monkeypatch.setenv("RICORDO_TRUST", ".")
    with pytest.raises(InvalidSetting, match="absolute"):
        await held(root)


async def test_a_program_vouches_for_a_root_in_code_and_for_no_other_one(tmp_path: Path) -> None:
    root = await cloned_root(tmp_path)
    assert PLANTED in await held(root, embedder="none", trusted=True)
    given = Settings.from_environment()
    assert PLANTED in await held(root, settings=given, trusted=True)
    with pytest.raises(RootNotTrusted):
        await held(root, settings=given)
    async with open_store(f"layered:{root}", scope=SCOPE, trusted=True) as store:
        assert len(await store.recall("keys")) > 0


async def test_without_a_place_for_the_list_no_root_is_begun_and_the_way_out_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RootNotTrusted, match="RICORDO_DATA"):
        await held(tmp_path / "new", disk=ClosedList())
    assert not (tmp_path / "new" / "guard.key").exists()
    monkeypatch.setenv("RICORDO_TRUST", str(tmp_path / "new"))
    assert await held(tmp_path / "new", disk=ClosedList()) == []


async def test_a_root_whose_making_was_cut_off_is_made_by_the_next_process(tmp_path: Path) -> None:
    for acts in range(1, 60):
        root, disk = tmp_path / str(acts), FailingDisk(acts, errno.EIO)
        try:
            await held(root, disk=disk)
        except StorageError:
            assert await held(root) == []
        else:
            return
    pytest.fail("the disk failed each time")


async def test_eight_processes_that_make_one_root_all_find_it_trusted(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(held, root)
    assert await held(root) == []


@pytest.mark.req("GO-PRIV")
@pytest.mark.parametrize("shipped", ["!*\n", "", "*\n!/workspace/\n"])
async def test_what_would_show_the_root_to_git_is_put_right_and_said(
    shipped: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = await made(tmp_path / ".ricordo")
    (root / ".gitignore").write_text(shipped)
    await held(root)
    assert (root / ".gitignore").read_text() == "*\n"
    assert ".gitignore" in caplog.text


@pytest.mark.req("GO-PRIV")
async def test_curated_memory_that_a_person_shows_to_git_stays_so_unless_more_would_be_seen(tmp_path: Path) -> None:
    root = await made(tmp_path / ".ricordo")
    (root / ".gitignore").write_bytes(IGNORE_ALL_BUT_CURATED)
    await held(root)
    assert (root / ".gitignore").read_bytes() == IGNORE_ALL_BUT_CURATED
    (root / "workspace").mkdir(exist_ok=True)
    (root / "workspace" / ".gitignore").write_text("!*\n")
    await held(root)
    assert (root / ".gitignore").read_text() == "*\n"
