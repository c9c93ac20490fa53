"""Links seen through: a path is told by the name of what it leads to, as a rule would name that."""

from pathlib import Path

import pytest

from ricordo.agent.permissions import PathResolver

pytestmark = pytest.mark.anyio


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name in ("secret/deep", "src", ".ricordo/workspace/plans"):
        (folder / name).mkdir(parents=True)
    (folder / "secret" / "key").write_text("k")
    (folder / "link").symlink_to("secret")
    (folder / "src" / "key.txt").symlink_to("../secret/key")
    (folder / "src" / "far").symlink_to("../link/deep")
    (folder / "out").symlink_to("../elsewhere")
    (folder / "notes").symlink_to(".ricordo/workspace")
    (folder / "loop").symlink_to("loop")
    (folder / ".ricordo/workspace/plans/all").symlink_to("../../../secret")
    return folder


@pytest.mark.req("AS-FS-01")
@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("link/key", "secret/key"),
        ("./src/../link//key", "secret/key"),
        ("link", "secret"),
        ("link/", "secret"),
        ("link/new/file", "secret/new/file"),
        ("src/key.txt", "secret/key"),
        ("src/far/x", "secret/deep/x"),
        ("src/far/../x", "secret/x"),
        ("link/" + "./" * 4_000 + "key", "secret/key"),
        ("notes", "/"),
        ("notes/plans/a.md", "/plans/a.md"),
        ("/plans/all/key", "secret/key"),
    ],
)
async def test_what_a_link_leads_to_is_told(folder: Path, path: str, real: str) -> None:
    found = await PathResolver(folder, folder / ".ricordo" / "workspace")([path, "a text"])
    assert real in found


async def test_a_path_from_the_top_of_the_disk_is_told_from_the_folder(folder: Path) -> None:
    seen = PathResolver(folder, folder / ".ricordo" / "workspace")
    assert await seen([str(folder / "secret" / "key")]) == ["secret/key"]
    assert await seen([str(folder)]) == ["."]
    assert await seen(["out/a", "src"]) == [str(folder.parent / "elsewhere" / "a")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "secret/key",
        "src/../secret/key",
        "loop",
        "nothing/here",
        "/plans/a.md",
        "a\nb",
        "a\0b",
        "\ud83d",
        "x" * 200_000,
        "é",
    ],
)
async def test_what_leads_nowhere_else_is_told_of_nothing(folder: Path, text: str) -> None:
    assert await PathResolver(folder, folder / ".ricordo" / "workspace")([text]) == []
    assert await PathResolver(folder / "gone", folder / "gone" / "too")([text]) == []
