"""What the README and the documentation show is run, page by page, as a reader would.

The code of the README and of a page of the design runs in real processes, all else in such as begin with everything
imported.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from snippets import Block, blocks, commands, missing_line
from source_tree import ROOT
from warm_processes import executables, run_warm

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUNNING = [page for page in PAGES if any(block.reason is None for block in blocks(page.read_text(encoding="utf-8")))]
REAL = {"README.md", "docs/design/index.md"}


@pytest.mark.parametrize("page", RUNNING, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_shows_is_what_happens(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed, is_real = "", page.relative_to(ROOT).as_posix() in REAL
    for block in blocks(page.read_text(encoding="utf-8")):
        where = f"{page.name}, line {block.line}"
        if block.reason is not None:
            printed = ""
        elif block.language == "file":
            (tmp_path / block.name).write_text(block.body, encoding="utf-8")
        elif block.language == "python":
            printed = _printed(block.body, where, is_real=is_real)
        elif block.language == "console":
            _play(block, where)
        else:
            assert missing_line(tuple(block.body.splitlines()), printed) is None, f"{where}: printed was\n{printed}"


def _play(block: Block, where: str) -> None:
    path = os.pathsep.join([str(executables()), str(Path(sys.executable).parent), os.environ["PATH"]])
    for command in commands(block.body):
        done = subprocess.run(
            ["/bin/sh", "-c", command.line],
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        output = _output(done, f"{where}: $ {command.line}")
        lacking = missing_line(command.shows, output)
        assert lacking is None, f"{where}: $ {command.line}\ndid not print {lacking!r}, but\n{output}"


def _printed(code: str, where: str, *, is_real: bool) -> str:
    if not is_real:
        return _output(run_warm(["python", "-c", code]), where)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return _output(done, where)


def _output(done: subprocess.CompletedProcess[str], where: str) -> str:
    assert done.returncode == 0, f"{where} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def test_a_page_imports_by_name_what_it_uses_of_the_package() -> None:
    """`import ricordo` would show its modules where they happen to be imported already, and only there."""
    for page in RUNNING:
        for block in blocks(page.read_text(encoding="utf-8")):
            if block.language == "python" and block.reason is None:
                nodes = [node for node in ast.walk(ast.parse(block.body)) if isinstance(node, ast.Import)]
                names = [each.name for node in nodes for each in node.names]
                assert not [name for name in names if name.split(".")[0] == "ricordo"], f"{page}, line {block.line}"


def test_a_block_is_left_out_only_with_a_reason() -> None:
    skipped = "<!-- not run: needs a key -->\n```python\nraise SystemExit\n```\n"
    page = f"{skipped}\n```python\nprint(1)\n```\n<!-- prints -->\n```text\n1\n```\n"
    assert [(block.language, block.reason) for block in blocks(page)] == [
        ("python", "needs a key"),
        ("python", None),
        ("printed", None),
    ]


def test_a_block_can_be_a_file_for_the_others() -> None:
    assert [
        (block.language, block.name, block.body) for block in blocks("<!-- file: a.json -->\n```json\n[]\n```\n")
    ] == [("file", "a.json", "[]\n")]


def test_a_console_block_is_split_into_commands_and_what_they_show() -> None:
    found = commands("$ one\nfirst\n\nsecond\n$ two \\\n  more\nthird\n")
    assert [(command.line, command.shows) for command in found] == [
        ("one", ("first", "second")),
        ("two \\\n  more", ("third",)),
    ]


@pytest.mark.parametrize(
    ("shows", "output", "lacking"),
    [
        (("a", "b"), "a\nx\nb\n", None),
        (("b", "a"), "a\nb\n", "a"),
        (("id …",), "id 01ABC\n", None),
        (("id … end",), "id 01ABC\n", "id … end"),
        (("…", "last"), "first\nlast\n", None),
        (("a",), "ab\n", "a"),
    ],
)
def test_shown_lines_have_to_appear_in_order(shows: tuple[str, ...], output: str, lacking: str | None) -> None:
    assert missing_line(shows, output) == lacking
