"""Roots: found from anywhere below, claimed once, and put together from the settings that were given."""

import errno
import os
from pathlib import Path

import anyio
import pytest

from ricordo import Entry
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.errors import DocumentInvalid, ScopeMismatch, StorageFailed, StorageFull
from ricordo.runtime import Dependencies, Settings, find_root, new_root_path, open_workspace
from ricordo.runtime.roots import cache_folder, claim_root, digest_key, owning_scope, read_marker, user_root_path
from ricordo.scope import Scope
from ricordo.storage import Disk
from ricordo.storage.local import LocalFiles

SHOP = Scope(user="me", project="shop")
CLOCK = SystemClock()


@pytest.mark.req("HE-C5-project")
def test_a_root_is_found_from_anywhere_below_it(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    assert find_root(tmp_path / "a" / "b" / "c") is None
    (tmp_path / "a" / ".ricordo").mkdir()
    assert find_root(tmp_path / "a" / "b") is None
    (tmp_path / "a" / ".ricordo" / "project.json").write_text("{}")
    assert find_root(tmp_path / "a" / "b" / "c") == tmp_path / "a" / ".ricordo" == find_root(tmp_path / "a")
    (tmp_path / "a" / "b" / ".ricordo").mkdir()
    (tmp_path / "a" / "b" / ".ricordo" / "project.json").write_text("{}")
    assert find_root(tmp_path / "a" / "b" / "c") == tmp_path / "a" / "b" / ".ricordo"


@pytest.mark.parametrize("work_tree", ["folder", "file"])
def test_a_new_root_goes_to_the_top_of_the_work_tree(work_tree: str, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert new_root_path(tmp_path / "a" / "b") == tmp_path / "a" / "b" / ".ricordo"
    git = tmp_path / "a" / ".git"
    git.mkdir() if work_tree == "folder" else git.write_text("gitdir: elsewhere\n")
    assert new_root_path(tmp_path / "a" / "b") == tmp_path / "a" / ".ricordo"


@pytest.mark.parametrize(
    ("scope", "owner"),
    [
        (Scope(user="me", project="shop", agent="a", session="s"), Scope(project="shop")),
        (Scope(tenant="t", user="me", project="shop"), Scope(tenant="t", project="shop")),
        (Scope(user="me", agent="a"), Scope(user="me")),
        (Scope(team="x", user="me"), Scope(team="x")),
        (Scope(tenant="t"), Scope(tenant="t")),
    ],
)
def test_a_root_belongs_to_the_first_of_project_team_and_user_within_its_tenant(scope: Scope, owner: Scope) -> None:
    assert owning_scope(scope) == owner


@pytest.mark.anyio
async def test_a_root_is_claimed_once(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "root")
    ids = MonotonicIds(CLOCK)
    assert await read_marker(files) is None
    assert await claim_root(files, SHOP, clock=CLOCK, ids=ids) == Scope(project="shop")
    marker = (await files.read("project.json")).data
    assert await claim_root(files, Scope(user="you", project="shop"), clock=CLOCK, ids=ids) == Scope(project="shop")
    with pytest.raises(ScopeMismatch):
        await claim_root(files, Scope(user="me", project="garden"), clock=CLOCK, ids=ids)
    assert (await files.read("project.json")).data == marker
    assert (await files.read(".gitignore")).data == b"*\n"


@pytest.mark.anyio
async def test_of_two_that_claim_a_new_root_at_once_one_is_refused(tmp_path: Path) -> None:
    outcomes: list[str] = []

    async def claim(project: str) -> None:
        files = LocalFiles(tmp_path / "root")
        try:
            await claim_root(files, Scope(project=project), clock=CLOCK, ids=MonotonicIds(CLOCK))
            outcomes.append(project)
        except ScopeMismatch:
            outcomes.append("refused")

    async with anyio.create_task_group() as group:
        for project in ("one", "two", "three"):
            group.start_soon(claim, project)
    assert outcomes.count("refused") == 2
    owner = await read_marker(LocalFiles(tmp_path / "root"))
    assert owner is not None
    assert owner.project in outcomes


@pytest.mark.anyio
@pytest.mark.parametrize(
    "marker",
    [
        *(b"{", b"", b"\xff", b"[]", b"{}", b"[" * 100_000, b'{"scope": 5}', b'{"scope": {}}'),
        *(b'{"scope": {"project": 5}}', b'{"scope": {"project": ""}}', b'{"scope": {"colour": "red"}}'),
        b'{"scope": {"project": "shop", "user": []}}',
    ],
    ids=lambda marker: repr(marker[:30]),
)
async def test_a_marker_that_can_not_be_read_is_not_replaced(marker: bytes, tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "root")
    await files.create("project.json", marker)
    with pytest.raises(DocumentInvalid):
        await read_marker(files)
    with pytest.raises(DocumentInvalid):
        await claim_root(files, SHOP, clock=CLOCK, ids=MonotonicIds(CLOCK))
    assert (await files.read("project.json")).data == marker


class NoNewKey(Disk):
    """A disk on which no file can be made that could become the key."""

    def __init__(self, number: int) -> None:
        """Refuse with the system's error `number`."""
        self._number = number

    def make_file(self, path: str, flags: int = 0) -> int:
        if ".lock" in path:
            return super().make_file(path, flags)
        raise OSError(self._number, os.strerror(self._number))


def vouching(root: Path) -> Settings:
    return Settings.from_environment().with_trusted_root(root)


async def claimed_without_a_key(root: Path) -> None:
    async with open_workspace(root, SHOP, Dependencies.create()) as workspace:
        await workspace.store.save(Entry(content="The door is red."))
    await anyio.Path(root / "guard.key").unlink()


@pytest.mark.anyio
async def test_without_room_for_the_key_a_root_is_not_opened_with_one_that_would_be_forgotten(tmp_path: Path) -> None:
    root = tmp_path / "root"
    await claimed_without_a_key(root)
    for number, error in ((errno.ENOSPC, StorageFull), (errno.EIO, StorageFailed)):
        with pytest.raises(error):
            async with open_workspace(root, SHOP, Dependencies.create(settings=vouching(root), disk=NoNewKey(number))):
                pass
    assert not await anyio.Path(root / "guard.key").exists()


@pytest.mark.anyio
async def test_a_root_that_can_only_be_read_is_read_without_a_key(tmp_path: Path) -> None:
    root = tmp_path / "root"
    await claimed_without_a_key(root)
    parts = Dependencies.create(settings=vouching(root), disk=NoNewKey(errno.EROFS))
    async with open_workspace(root, SHOP, parts) as workspace:
        assert [hit.entry.content for hit in await workspace.store.recall("door")] == ["The door is red."]
    assert not await anyio.Path(root / "guard.key").exists()


@pytest.mark.anyio
async def test_the_key_that_another_process_made_first_is_used(tmp_path: Path) -> None:
    root = tmp_path / "root"
    keys: set[bytes] = set()

    async def look() -> None:
        async with open_workspace(root, SHOP, Dependencies.create()) as workspace:
            keys.add(workspace.memory_root.key)

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(look)
    assert keys == {digest_key(await anyio.Path(root / "guard.key").read_bytes())}


@pytest.mark.anyio
@pytest.mark.parametrize("tenant", [None, "acme"])
async def test_reading_makes_no_root_out_of_a_folder_that_is_none(tenant: str | None, tmp_path: Path) -> None:
    settings = Settings(root=None, user="me", data=tmp_path / "data", cache=tmp_path / "cache")
    folder = user_root_path(settings.data, "me", tenant)
    await anyio.Path(folder).mkdir(parents=True)
    scope = Scope(tenant=tenant, user="me", project="shop")
    async with open_workspace(tmp_path / "root", scope, Dependencies.create(settings=settings)) as workspace:
        await workspace.store.save(Entry(content="The door is red."))
        assert await workspace.store.recall("door")
        assert await workspace.store.preamble()
        assert os.listdir(folder) == []
        await workspace.store.save(Entry(content="Tea.", scope=Scope(tenant=tenant, user="me"), reason="always"))
        assert [hit.entry.content for hit in await workspace.store.recall("tea")] == ["Tea."]
    assert "project.json" in os.listdir(folder)


def test_settings_come_from_the_environment_that_is_given() -> None:
    given = {
        "RICORDO_ROOT": "/r",
        "RICORDO_USER": "ana",
        "RICORDO_DATA": "/d",
        "RICORDO_CACHE": "/c",
        "RICORDO_INDEX": "/i",
    }
    assert Settings.from_environment(given) == Settings(
        root=Path("/r"), user="ana", data=Path("/d"), cache=Path("/c"), index=Path("/i")
    )
    empty = Settings.from_environment({"RICORDO_ROOT": "", "RICORDO_USER": "", "RICORDO_INDEX": ""})
    assert empty.root is None
    assert empty.index is None
    assert empty.user


@pytest.mark.req("DF-C52")
def test_users_and_roots_never_share_a_folder() -> None:
    names = ["me", "Me", "ME", "me ", "a/b", "a%2Fb", "..", ".", "ünï", "x" * 200, "x" * 199]
    folders = [str(user_root_path(Path("/data"), name)).casefold() for name in names]
    assert len(set(folders)) == len(names)
    assert all(Path(folder).parent == Path("/data/users") for folder in folders)
    caches = {cache_folder(Path("/cache"), Path(root)) for root in ("/a", "/b", "/a/b")}
    assert len(caches) == 3


@pytest.mark.req("HE-C5-required")
@pytest.mark.anyio
async def test_a_store_of_a_workspace_stamps_who_saves(tmp_path: Path) -> None:
    settings = Settings(root=None, user="me", data=tmp_path / "data", cache=tmp_path / "cache")
    scope = Scope(user="me", project="shop", agent="coder", session="s1")
    async with open_workspace(tmp_path / "root", scope, Dependencies.create(settings=settings)) as workspace:
        saved = await workspace.store.save(Entry(content="One."))
        assert saved.scope == Scope(user="me", project="shop", agent="coder")
        assert saved.source.session == "s1"
    line = next((tmp_path / "root/users/me/workspace/memory").glob("*.md")).read_text()
    assert "[agent:: coder]" in line
    assert "[user::" not in line
    assert "[project::" not in line
    assert not (tmp_path / "data" / "users").exists()
