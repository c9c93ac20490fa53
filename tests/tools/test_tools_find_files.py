"""list_files, glob_files and grep_files: sorted, bounded, and honest about what they leave out."""

import os
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desks import CONTEXT, Desks
from ricordo.agent.tools import file_search as find_files
from ricordo.agent.tools.file_roots import FileRoots
from ricordo.agent.tools.file_search import grep_files_tool, matches_glob, walk_files
from ricordo.errors import ToolFailed
from ricordo.guard import Redactor
from ricordo.storage.local import LocalFiles

pytestmark = pytest.mark.anyio


@pytest.fixture
def filled(desks: Desks) -> Desks:
    for path in ("src/a.py", "src/deep/b.py", "docs/c.md", "README.md", ".env", ".git/config", ".ricordo/guard.key"):
        desks.put(path, f"SECRET of {path}\nsecond line\n")
    desks.put(".ricordo/workspace/plans/next.md", "a plan\n")
    return desks


async def test_a_folder_is_listed_without_what_is_hidden(filled: Desks) -> None:
    desk = filled()
    assert await desk.use("list_files") == "[.: 3 entries]\nREADME.md (32 bytes)\ndocs/\nsrc/"
    assert await desk.use("list_files", path="src") == "[src: 2 entries]\na.py (31 bytes)\ndeep/"
    assert await desk.use("list_files", path="/") == "[/: 1 entries]\nplans/"
    assert await desk.use("list_files", path="src/a.py") == "[src/a.py: 1 entries]\na.py (31 bytes)"
    assert "There is no folder none" in await desk.use("list_files", path="none")
    assert "closed to file tools" in await desk.use("list_files", path=".ricordo")


async def test_files_are_found_by_name_under_both_roots(filled: Desks) -> None:
    desk = filled()
    assert await desk.use("glob_files", pattern="*.py") == "[.: 2 files]\nsrc/a.py\nsrc/deep/b.py"
    assert await desk.use("glob_files", pattern="src/*.py") == "[.: 1 files]\nsrc/a.py"
    assert await desk.use("glob_files", pattern="**/b.py", path="src") == "[src: 1 files]\nsrc/deep/b.py"
    assert await desk.use("glob_files", pattern="*.md", path="/") == "[/: 1 files]\n/plans/next.md"
    assert await desk.use("glob_files", pattern="/plans/*.md") == "[/: 1 files]\n/plans/next.md"
    assert await desk.use("glob_files", pattern="*.rs") == "[.: no files]"
    assert await desk.use("glob_files", pattern="*") == ("[.: 4 files]\nREADME.md\ndocs/c.md\nsrc/a.py\nsrc/deep/b.py")


async def test_what_does_not_fit_is_counted(desks: Desks) -> None:
    for number in range(203):
        desks.put(f"many/{number:03}.txt", "same line\n")
    desk = desks()
    listed = (await desk.use("list_files", path="many")).splitlines()
    assert listed[0].startswith("[many: the first 200 of 203 entries")
    assert listed[1:] == [f"{number:03}.txt (10 bytes)" for number in range(200)]
    found = (await desk.use("glob_files", pattern="*.txt")).splitlines()
    assert (found[0].split(";")[0], len(found)) == ("[.: the first 200 of 203 files", 201)
    lines = (await desk.use("grep_files", pattern="same")).splitlines()
    assert lines[0] == "[.: the first 100 lines, there are more in 203 files]"
    assert lines[1:] == [f"many/{number:03}.txt:1: same line" for number in range(100)]


async def test_installed_packages_are_only_searched_when_the_search_begins_there(desks: Desks) -> None:
    for path in ("node_modules/a/index.js", "web/node_modules/b/index.js", "src/__pycache__/a.pyc", "src/a.js"):
        desks.put(path, "needle\n")
    desk = desks()
    assert await desk.use("glob_files", pattern="*") == "[.: 1 files]\nsrc/a.js"
    assert await desk.use("grep_files", pattern="needle") == "[.: 1 lines in 1 files]\nsrc/a.js:1: needle"
    assert await desk.use("list_files") == "[.: 3 entries]\nnode_modules/\nsrc/\nweb/"
    assert await desk.use("glob_files", pattern="*", path="node_modules") == (
        "[node_modules: 1 files]\nnode_modules/a/index.js"
    )


@pytest.mark.req("AS-FS-01")
async def test_links_are_not_followed_and_an_empty_folder_is_one(desks: Desks) -> None:
    desks.put("a/b.txt", "x")
    (desks.folder / "empty").mkdir()
    os.symlink("a", desks.folder / "again")
    os.symlink("..", desks.folder / "a" / "up")
    desk = desks()
    assert await desk.use("list_files") == "[.: 2 entries]\na/\nempty/"
    assert await desk.use("list_files", path="empty") == "[empty: no entries]"
    assert await desk.use("glob_files", pattern="*") == "[.: 1 files]\na/b.txt"


def test_a_search_looks_at_the_nearest_names_first_and_says_when_there_are_more(tmp_path: Path) -> None:
    for path in ("a/deep/er/1.txt", "a/2.txt", "3.txt", "b/4.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    everything = ["3.txt", "a/2.txt", "a/deep/er/1.txt", "b/4.txt"]
    for most in range(10):
        found, more = walk_files(tmp_path, "", is_closed=lambda _: False, max_files=most)
        assert more == (most < 8)
        assert [info.path for info in found] == sorted(info.path for info in found)
        assert {info.path for info in found} <= set(everything)
        assert len(found) <= most
    assert [info.path for info in walk_files(tmp_path, "", is_closed=lambda _: False, max_files=5)[0]] == [
        "3.txt",
        "a/2.txt",
    ]
    found, _ = walk_files(tmp_path, "", is_closed=lambda folder: folder == tmp_path / "a")
    assert [info.path for info in found] == ["3.txt", "b/4.txt"]


async def test_a_search_that_looked_at_too_many_names_says_so(desks: Desks, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        desks.put(f"{number}.txt", "needle\n")
    monkeypatch.setattr(find_files, "walk_files", partial(walk_files, max_files=4))
    desk = desks()
    assert (await desk.use("glob_files", pattern="*.txt")).splitlines()[0] == (
        "[.: 4 files; only the nearest 4 files were looked at]"
    )
    assert (await desk.use("grep_files", pattern="needle")).splitlines()[0] == (
        "[.: 4 lines in 4 files; only the nearest 4 files were looked at]"
    )


async def test_a_pattern_meets_the_end_of_a_line_in_files_of_every_system(desks: Desks) -> None:
    desks.put("a.txt", "the end\r\nthe\r\n")
    assert await desks().use("grep_files", pattern="end$") == "[.: 1 lines in 1 files]\na.txt:1: the end"


async def test_lines_are_found_by_a_regular_expression(filled: Desks) -> None:
    desk = filled()
    assert await desk.use("grep_files", pattern=r"^secret of .*\.py", ignore_case=True) == (
        "[.: 2 lines in 4 files]\nsrc/a.py:1: SECRET of src/a.py\nsrc/deep/b.py:1: SECRET of src/deep/b.py"
    )
    assert await desk.use("grep_files", pattern="second", path="src", glob="deep/*") == (
        "[src: 1 lines in 1 files]\nsrc/deep/b.py:2: second line"
    )
    assert await desk.use("grep_files", pattern="plan", path="/plans/next.md") == (
        "[/plans/next.md: 1 lines in 1 files]\n/plans/next.md:1: a plan"
    )
    assert await desk.use("grep_files", pattern="nowhere") == "[.: 0 lines in 4 files]"
    assert "no regular expression" in await desk.use("grep_files", pattern="(")
    assert "at most 500 characters" in await desk.use("grep_files", pattern="x" * 501)


async def test_what_is_not_searched_is_counted(desks: Desks) -> None:
    desks.put("a.txt", "needle\n")
    desks.put("b.bin", b"\0needle\n")
    desks.put("c.txt", b"needle\n" * 1_300_000)
    assert await desks().use("grep_files", pattern="needle") == (
        "[.: 1 lines in 3 files; not searched: 1 not a text, 1 over 8 MB]\na.txt:1: needle"
    )


async def test_a_hit_in_a_very_long_line_tells_where_to_read_on(desks: Desks) -> None:
    desks.put("one.json", "x" * 50_000 + "needle" + "y" * 50_000)
    desk = desks()
    told = await desk.use("grep_files", pattern="needle")
    assert len(told) < 500
    assert "one.json:1: (from character 49925) xxx" in told
    assert "needle" in told
    assert "needle" in (await desk.use("read_file", path="one.json", character=49925))[:200]


async def test_a_pattern_that_never_ends_is_stopped(desks: Desks) -> None:

    desks.put("a.txt", "a" * 60 + "b\n")
    roots = FileRoots(LocalFiles(desks.folder / ".ricordo"), LocalFiles(desks.folder))
    grep = grep_files_tool(roots, Redactor(bytes(32)), seconds=1)
    with pytest.raises(ToolFailed, match="took more than 1 seconds"):
        await grep({"pattern": "(a+)+$"}, CONTEXT)


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/er/a.py", True),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/deep/er/a.py", True),
        ("**/a.py", "a.py", True),
        ("**", "any/thing", True),
        ("src/**", "src/a/b", True),
        ("src/**", "other/a", False),
        ("a?.py", "ab.py", True),
        ("[ab].py", "c.py", False),
        ("./src/a.py", "src/a.py", True),
        ("A.py", "a.py", False),
    ],
)
def test_a_pattern_matches_as_people_expect(pattern: str, path: str, matches: bool) -> None:
    assert matches_glob(pattern, path) == matches


@given(st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=6), st.data())
def test_a_path_matches_each_pattern_that_is_made_from_it(names: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(names) - 1))
    stop = data.draw(st.integers(start, len(names)))
    pattern = "/".join([*names[:start], "**", *("*" for _ in names[start:stop]), "**", *names[stop:]])
    assert matches_glob(pattern, "/".join(names))


def test_the_worst_pattern_takes_no_time_to_speak_of() -> None:
    assert not matches_glob("/".join(["**"] * 150) + "/x", "/".join(["a"] * 500))
    assert not matches_glob("*a" * 200 + "b", "a" * 255)
