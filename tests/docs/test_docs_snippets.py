"""What the README and the documentation show is run, page by page, as a reader would."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from snippets import Block, blocks, commands, missing_line
from source_tree import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUNNING = [page for page in PAGES if any(block.reason is None for block in blocks(page.read_text(encoding="utf-8")))]


@pytest.mark.parametrize("page", RUNNING, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_shows_is_what_happens(page: Path, tmp_path: Path) -> None:
    printed = ""
    for block in blocks(page.read_text(encoding="utf-8")):
        where = f"{page.name}, line {block.line}"
        if block.reason is not None:
            printed = ""
        elif block.language == "file":
            (tmp_path / block.name).write_text(block.body, encoding="utf-8")
        elif block.language == "python":
            printed = _run([sys.executable, "-c", block.body], tmp_path, where)
        elif block.language == "console":
            _play(block, tmp_path, where)
        else:
            assert missing_line(tuple(block.body.splitlines()), printed) is None, f"{where}: printed was\n{printed}"


def _play(block: Block, folder: Path, where: str) -> None:
    for command in commands(block.body):
        output = _run(["/bin/sh", "-c", command.line], folder, f"{where}: $ {command.line}")
        lacking = missing_line(command.shows, output)
        assert lacking is None, f"{where}: $ {command.line}\ndid not print {lacking!r}, but\n{output}"


def _run(command: list[str], folder: Path, where: str) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command, cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{where} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


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
