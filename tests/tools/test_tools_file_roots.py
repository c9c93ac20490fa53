"""A model's paths: a leading slash is the workspace, anything else the working directory, and there is no way out."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desks import Desks, Person
from ricordo.agent.tools.file_roots import FileRoots
from ricordo.errors import RicordoError
from ricordo.testing import InMemoryFiles

pytestmark = pytest.mark.anyio

ESCAPES = [
    "../secret.txt",
    "../../secret.txt",
    "a/../../secret.txt",
    "a/..",
    "/../guard.key",
    "/../../secret.txt",
    "/..",
    "//../guard.key",
    "..\\secret.txt",
    "/..\\guard.key",
    "a\\..\\..\\secret.txt",
    "．．/secret.txt",
    "‥/secret.txt",
    "/plans/․․/guard.key",
    "a／../secret.txt",
    "%2e%2e/secret.txt",
    "%2e%2e%2fsecret.txt",
    "/%2e%2e/guard.key",
    "secret.txt\x00",
    "a\x00/../secret.txt",
    "..\u200b/secret.txt",
    "\u202e../secret.txt",
    "out/secret.txt",
    "out",
    "secret-link.txt",
    "chain/secret.txt",
    "/leak/guard.key",
    "/key",
    "~/secret.txt",
    "file:///secret.txt",
    "C:/secret.txt",
    "C:\\secret.txt",
    ".ricordo/guard.key",
    "./.ricordo/guard.key",
    ".RICORDO/guard.key",
    ".ricordo./guard.key",
    ".rico\u00adrdo/guard.key",
    "․ricordo/guard.key",
    "memory-link/guard.key",
    "key-link",
    "sub/.ricordo/guard.key",
    "",
]


def _with_secrets(desks: Desks) -> None:
    """Put a secret beside the working directory and one into the root, and links that lead to them."""
    outside = desks.folder.parent
    (outside / "secret.txt").write_text("TOP SECRET")
    (outside / "guard.key").write_text("TOP SECRET")
    desks.put(".ricordo/guard.key", "TOP SECRET")
    desks.put(".ricordo/workspace/plans/a.md", "fine")
    desks.put("sub/.ricordo/guard.key", "TOP SECRET")
    folder = desks.folder
    os.symlink(outside, folder / "out")
    os.symlink(outside / "secret.txt", folder / "secret-link.txt")
    os.symlink("out", folder / "chain")
    os.symlink(".ricordo", folder / "memory-link")
    os.symlink(".ricordo/guard.key", folder / "key-link")
    os.symlink("..", folder / ".ricordo" / "workspace" / "leak")
    os.symlink("../guard.key", folder / ".ricordo" / "workspace" / "key")


@pytest.mark.req("AS-FS-01")
@pytest.mark.parametrize("path", [*ESCAPES, "/etc/passwd", "/proc/self/environ"])
async def test_no_path_leads_out_of_its_root(desks: Desks, yes: Person, path: str) -> None:
    _with_secrets(desks)
    desk = desks(yes)
    everything = {str(found): found.read_bytes() for found in desks.folder.parent.rglob("*") if found.is_file()}
    for name, more in (
        ("read_file", {}),
        ("list_files", {}),
        ("glob_files", {"pattern": "*"}),
        ("grep_files", {"pattern": "TOP"}),
        ("edit_file", {"old_text": "TOP", "new_text": "NO"}),
    ):
        told = await desk.use(name, path=path, **more)
        assert "TOP SECRET" not in told
        assert "guard.key:1" not in told
    assert "root:" not in await desk.use("read_file", path=path)
    assert {str(found): found.read_bytes() for found in desks.folder.parent.rglob("*") if found.is_file()} == everything


@pytest.mark.req("AS-FS-01", "GO-G26-diff")
async def test_no_write_leads_out_of_its_root(desks: Desks, yes: Person) -> None:
    _with_secrets(desks)
    desk = desks(yes)
    outside = desks.folder.parent
    for path in ESCAPES:
        told = await desk.use("write_file", path=path, content="MINE")
        inside = {"%2e%2e/secret.txt", "%2e%2e%2fsecret.txt", "~/secret.txt", "file:///secret.txt", "C:/secret.txt"}
        assert told.startswith("failed: ") != (path in inside), (path, told)
    assert [path.read_text() for path in (outside / "secret.txt", outside / "guard.key")] == ["TOP SECRET"] * 2
    assert (desks.folder / ".ricordo" / "guard.key").read_text() == "TOP SECRET"
    assert sorted(found.name for found in outside.iterdir()) == ["guard.key", "project", "secret.txt"]


@pytest.mark.req("AS-FS-01")
async def test_the_same_name_is_another_file_under_each_root(desks: Desks) -> None:
    desks.put("plans/a.md", "of the project")
    desks.put(".ricordo/workspace/plans/a.md", "of the agent")
    desk = desks()
    assert (await desk.use("read_file", path="plans/a.md")).endswith("of the project")
    assert (await desk.use("read_file", path="/plans/a.md")).endswith("of the agent")
    assert (await desk.use("read_file", path="./plans//a.md")).endswith("of the project")


@pytest.mark.req("AS-FS-01")
async def test_a_link_inside_the_working_directory_has_the_name_of_what_it_leads_to(desks: Desks, yes: Person) -> None:
    desks.put("Makefile", "all:\n")
    desks.put(".git/hooks/pre-commit", "exit 0\n")
    os.symlink("Makefile", desks.folder / "notes.txt")
    os.symlink(".git/hooks", desks.folder / "docs")
    desk = desks(yes)
    assert (await desk.use("edit_file", path="notes.txt", old_text="all", new_text="none")).startswith("Makefile was")
    assert [(asked.target, "b/Makefile" in asked.change) for asked in yes.asked] == [("Makefile", True)]
    assert "belongs to git" in await desk.use("write_file", path="docs/pre-commit", content="rm -r .\n")
    assert "belongs to git" in await desk.use("write_file", path=".git/config", content="")


@pytest.mark.req("GO-G26-diff")
async def test_a_root_is_closed_by_its_place_whatever_its_name(tmp_path: Path, yes: Person) -> None:
    desks = Desks(tmp_path, "notes")
    desks.put("notes/guard.key", "TOP SECRET")
    desks.put("notes/history/a.txt", "TOP SECRET")
    desks.put("notes/workspace/plans/a.md", "of the agent")
    desks.put("docs/notes/a.md", "of the project")
    os.symlink("notes", desks.folder / "link")
    desk = desks(yes)
    for path in ("notes", "notes/guard.key", "notes/history", "Notes/guard.key", "link/guard.key", "./notes/new.md"):
        for name, more in (
            ("read_file", {}),
            ("list_files", {}),
            ("grep_files", {"pattern": "."}),
            ("write_file", {"content": "MINE"}),
        ):
            told = await desk.use(name, path=path, **more)
            assert told.startswith("failed: ")
            assert "closed to file tools" in told or "no file" in told
    assert await desk.use("list_files") == "[.: 1 entries]\ndocs/"
    assert await desk.use("glob_files", pattern="*") == "[.: 1 files]\ndocs/notes/a.md"
    assert await desk.use("grep_files", pattern=".") == "[.: 1 lines in 1 files]\ndocs/notes/a.md:1: of the project"
    assert (await desk.use("read_file", path="docs/notes/a.md")).endswith("of the project")
    assert (await desk.use("read_file", path="/plans/a.md")).endswith("of the agent")
    assert yes.asked == []


@pytest.mark.req("AS-FS-01")
async def test_a_working_directory_inside_the_root_is_closed_as_a_whole(desks: Desks, yes: Person) -> None:
    desks.put(".ricordo/workspace/plans/a.md", "TOP SECRET")
    desk = desks(yes, folder=desks.folder / ".ricordo" / "workspace")
    for path in (".", "plans/a.md"):
        for name in ("read_file", "list_files"):
            assert "closed to file tools" in await desk.use(name, path=path)


@pytest.mark.req("AS-FS-01")
@pytest.mark.parametrize(
    "path", ["/plans/rule.md", "/plans/folder/a.md", "/plans/folder/new.md", "/memory/topics/a.md"]
)
async def test_a_link_in_the_workspace_makes_no_other_file_a_tools_to_write(desks: Desks, path: str) -> None:
    rule = desks.put(".ricordo/workspace/rules/a.md", "Never push.\n")
    desks.put(".ricordo/workspace/memory/2026-11-21.md", "- said\n")
    (desks.folder / ".ricordo/workspace/plans").mkdir()
    os.symlink("../rules/a.md", desks.folder / ".ricordo/workspace/plans/rule.md")
    os.symlink("../rules", desks.folder / ".ricordo/workspace/plans/folder")
    os.symlink(".", desks.folder / ".ricordo/workspace/memory/topics")
    desk = desks()
    for name, more in (
        ("write_file", {"content": "Push.\n"}),
        ("edit_file", {"old_text": "Never p", "new_text": "P"}),
        ("read_file", {}),
    ):
        assert "goes through a symbolic link" in await desk.use(name, path=path, **more)
    assert rule.read_text() == "Never push.\n"
    assert sorted(found.name for found in rule.parent.iterdir()) == ["a.md"]


@pytest.mark.req("AS-FS-01")
async def test_without_a_working_directory_there_is_only_the_workspace() -> None:
    roots = FileRoots(InMemoryFiles())
    assert (await roots.locate("/a")).path == "workspace/a"
    with pytest.raises(RicordoError, match="no working directory"):
        await roots.locate("a")


@pytest.mark.req("AS-FS-01")
@given(st.text(alphabet=st.sampled_from("./\\%~ab2eE․．‥\u200b\x00:"), max_size=14))
async def test_what_a_path_names_lies_below_its_root(path: str) -> None:
    workspace, working = InMemoryFiles(), InMemoryFiles()
    try:
        located = await FileRoots(workspace, working).locate(path)
    except RicordoError:
        return
    assert located.files is (workspace if path.startswith("/") else working)
    assert located.in_workspace == path.startswith("/")
    assert not path.startswith("/") or located.path == "workspace" or located.path.startswith("workspace/")
    assert not {"..", "."} & set(located.path.split("/"))
    assert "//" not in located.path
