"""A path from a model or a person stays inside the root, whatever it looks like."""

import os
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ricordo.clock import MonotonicIds, SystemClock
from ricordo.errors import PathRefused, RicordoError
from ricordo.guard import Redactor
from ricordo.storage.contract import safe_path
from ricordo.storage.local import LocalFiles
from ricordo.testing import InMemoryFiles
from ricordo.workspace import ChangeSets
from ricordo.workspace.documents import TextReplacement, create_document, edit_document, read_memory_lines

if TYPE_CHECKING:
    from ricordo.storage import FileStore

PIECES = st.sampled_from(
    [
        "..",
        ".",
        "...",
        "a",
        "a..b",
        "/",
        "//",
        "\\",
        "\x00",
        "\n",
        "．．",
        "․․",
        "／",
        "＼",
        "‥",
        " ",
        "\u202e",
        "~",
        "C:",
    ]
)
REFUSED = [
    "..",
    "../a",
    "a/..",
    "a/../b",
    "/..",
    "a/ ../b",
    "a/.. /b",
    "a\x00b",
    "a\\b",
    "..\\a",
    "a\nb",
    "．．/a",
    "a/．./b",
    "․․/a",
    "‥/a",
    "a／b",
    "a＼b",
    "a/．/b",
    " /a",
    "a\u202eb",
    "a\ud800b",
    "x" * 256,
    "é" * 128,
    "/".join(["abc"] * 400),
]


@pytest.mark.req("AS-FS-01")
@given(path=st.one_of(st.lists(PIECES, max_size=6).map("".join), st.text(max_size=30)))
@example(path="/../../etc/passwd")
@example(path="a/．．/．．/b")
def test_a_path_is_refused_or_stays_inside(path: str) -> None:
    try:
        safe = safe_path(path)
    except PathRefused:
        return
    folded = unicodedata.normalize("NFKC", safe)
    assert not safe.startswith("/")
    assert ".." not in [part.strip() for part in folded.split("/")]
    assert "\\" not in folded
    assert "\x00" not in folded
    assert os.path.normpath(os.path.join("/root", folded)).startswith("/root")
    assert safe_path(safe) == safe


@pytest.mark.req("AS-FS-01")
@pytest.mark.parametrize("path", REFUSED)
@pytest.mark.parametrize("kind", ["local", "in memory"])
@pytest.mark.anyio
async def test_every_verb_refuses_a_path_that_is_not_allowed(path: str, kind: str, tmp_path: Path) -> None:
    files: FileStore = LocalFiles(tmp_path / "root") if kind == "local" else InMemoryFiles()
    for verb in (
        lambda: files.read(path),
        lambda: files.read_from(path, 0),
        lambda: files.info(path),
        lambda: files.append(path, b"x\n"),
        lambda: files.create(path, b"x"),
        lambda: files.replace(path, b"x", expected=""),
        lambda: files.delete(path),
        lambda: files.list(path),
    ):
        with pytest.raises(PathRefused):
            await verb()
    with pytest.raises(PathRefused):
        async with files.lock(path):
            pass
    assert os.listdir(tmp_path) == []


@pytest.mark.req("AS-FS-01")
@pytest.mark.parametrize("path", ["a..b", "..a", "a..", "notes..2026..md", "...", "a/..b/c..", "½", "über/straße.md"])
@pytest.mark.anyio
async def test_dots_inside_a_name_are_part_of_it(path: str, tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "root", locks=tmp_path / "locks")
    await files.create(path, b"x")
    assert (tmp_path / "root" / path).read_bytes() == b"x"
    assert [info.path for info in await files.list()] == [path]


@pytest.fixture
def linked(tmp_path: Path) -> LocalFiles:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "inside").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (root / "inside" / "file").write_bytes(b"ours")
    (root / "out").symlink_to(outside)
    (root / "up").symlink_to("../outside")
    (root / "out-file").symlink_to(outside / "secret")
    (root / "nowhere").symlink_to(outside / "new")
    (root / "round").symlink_to("round")
    (root / "in").symlink_to("inside")
    (root / "in-file").symlink_to("inside/file")
    (root / "there-and-back").symlink_to(f"../{root.name}/inside")
    return LocalFiles(root, locks=tmp_path / "locks")


@pytest.mark.req("AS-FS-01")
@pytest.mark.parametrize("path", ["out/secret", "up/secret", "out-file", "nowhere", "out", "in/../../outside/secret"])
@pytest.mark.anyio
async def test_a_link_out_of_the_root_is_not_followed(linked: LocalFiles, path: str, tmp_path: Path) -> None:
    for verb in (
        lambda: linked.read(path),
        lambda: linked.info(path),
        lambda: linked.append(path, b"x\n"),
        lambda: linked.create(path, b"x"),
        lambda: linked.replace(path, b"x", expected=""),
        lambda: linked.delete(path),
        lambda: linked.list(path),
    ):
        with pytest.raises(PathRefused):
            await verb()
    assert [found.name for found in (tmp_path / "outside").iterdir()] == ["secret"]
    assert (tmp_path / "outside" / "secret").read_bytes() == b"secret"


@pytest.mark.req("AS-FS-01")
@pytest.mark.anyio
async def test_a_root_that_begins_like_another_folder_does_not_reach_it(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root-of-another").mkdir()
    (tmp_path / "root-of-another" / "file").write_bytes(b"theirs")
    (tmp_path / "root" / "link").symlink_to("../root-of-another")
    with pytest.raises(PathRefused):
        await LocalFiles(tmp_path / "root").read("link/file")


@pytest.mark.req("AS-FS-01")
@pytest.mark.anyio
async def test_a_link_inside_the_root_is_followed(linked: LocalFiles) -> None:
    for path in ("in/file", "in-file", "there-and-back/file"):
        assert (await linked.read(path)).data == b"ours"
    await linked.create("in/new", b"new")
    assert (await linked.read("inside/new")).data == b"new"


@pytest.mark.req("AS-FS-01")
@pytest.mark.anyio
async def test_a_listing_shows_each_file_once_and_no_links(linked: LocalFiles) -> None:
    assert [info.path for info in await linked.list()] == ["inside/file"]


@pytest.mark.anyio
async def test_a_listing_holds_only_paths_that_can_be_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for name in (b"good.md", b"back\\slash.md", b"bell\x07.md", b"no-utf8-\xff.md", "．．.md".encode()):
        (root / os.fsdecode(name)).write_bytes(b"x")
    files = LocalFiles(root, locks=tmp_path / "locks")
    found = [info.path for info in await files.list()]
    assert "good.md" in found
    for path in found:
        assert (await files.read(path)).data == b"x"


@pytest.mark.req("AS-FS-01")
@pytest.mark.anyio
async def test_a_link_that_leads_to_itself_is_an_error_and_no_hang(linked: LocalFiles) -> None:
    with pytest.raises(RicordoError):
        await linked.read("round")


@pytest.mark.req("AS-FS-01")
@pytest.mark.anyio
async def test_a_link_does_not_leave_the_folder_at_the_top_either(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "root", locks=tmp_path / "locks")
    await files.create("guard.key", b"key")
    await files.create("workspace/memory/a.md", b"x\n")
    (tmp_path / "root/workspace/memory/key.md").symlink_to("../../guard.key")
    (tmp_path / "root/workspace/memory/same.md").symlink_to("a.md")
    with pytest.raises(PathRefused):
        await read_memory_lines(files, "memory/key.md", redactor=Redactor(bytes(32)))
    assert (await read_memory_lines(files, "memory/same.md", redactor=Redactor(bytes(32)))).text == "x"


@pytest.mark.req("AS-FS-01")
@pytest.mark.parametrize("path", ["..", "../x", "a/../x", "/..", "a/..", "./../x", " .. ", "．．/x"])
def test_a_parent_segment_is_refused_by_the_text_alone(path: str) -> None:
    with pytest.raises(PathRefused):
        safe_path(path)


@pytest.mark.req("AS-FS-01")
@pytest.mark.anyio
async def test_a_listing_follows_neither_links_to_folders_nor_links_to_files(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / "workspace" / "real", outside):
        folder.mkdir(parents=True)
        (folder / "a.md").write_text("x")
    for name, target in {
        "folder": outside,
        "file.md": outside / "a.md",
        "inner": root / "workspace" / "real",
        "inner.md": root / "workspace" / "real" / "a.md",
    }.items():
        (root / "workspace" / name).symlink_to(target)
    for prefix in ("", "workspace"):
        assert [info.path for info in await LocalFiles(root).list(prefix)] == ["workspace/real/a.md"]


@pytest.mark.req("AS-FS-01")
@pytest.mark.anyio
async def test_a_workspace_path_stays_in_the_workspace(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "root")
    workspace, outside = tmp_path / "root" / "workspace", tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("theirs")
    clock = SystemClock()
    changes = ChangeSets(files, clock=clock, ids=MonotonicIds(clock))

    async def create(path: str, content: str) -> None:
        await create_document(files, changes, path, content, redactor=Redactor(bytes(32)), who="user")

    async def edit(path: str, old: str, new: str) -> int:
        replaced = TextReplacement(old=old, new=new)
        return await edit_document(files, changes, path, replaced, redactor=Redactor(bytes(32)), who="user")

    await create("/plans/a..b.md", "mine")
    await create("..notes..", "mine too")
    assert (workspace / "plans" / "a..b.md").read_text() == "mine"
    assert (workspace / "..notes..").read_text() == "mine too"
    assert await edit("/plans/a..b.md", "mine", "changed") == 1
    (workspace / "out").symlink_to(outside)
    (workspace / "out-file").symlink_to(outside / "file")
    (workspace / "up").symlink_to("..")
    for path in (
        "../x",
        "plans/../../x",
        "/..",
        "out/new",
        "out/file",
        "out-file",
        "up/project.json",
        "../../outside/x",
    ):
        with pytest.raises(PathRefused):
            await create(path, "bad")
        with pytest.raises(PathRefused):
            await edit(path, "theirs", "bad")
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("file", "theirs")]
    assert sorted(path.name for path in (tmp_path / "root").iterdir()) == ["history", "locks", "workspace"]
