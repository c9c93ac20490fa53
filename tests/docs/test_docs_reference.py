"""The reference pages say what the code says: commands, options, errors, public names, and the stages of events."""

import re
import typing

import pytest

import render_reference
import ricordo.errors
from ricordo.events import Stage, Status
from source_tree import ROOT, modules

REFERENCE = ROOT / "docs" / "reference"


@pytest.mark.parametrize("page", sorted(render_reference.PAGES))
def test_a_reference_page_is_what_the_code_renders(page: str) -> None:
    rendered = render_reference.PAGES[page]()
    assert (REFERENCE / page).read_text(encoding="utf-8") == rendered, "run `make format`"


def test_every_stage_and_status_of_an_event_is_explained_and_no_other() -> None:
    text = (REFERENCE / "events.md").read_text(encoding="utf-8")
    explained = re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE)
    assert sorted(explained) == sorted([*typing.get_args(Stage), *typing.get_args(Status)])


def test_every_page_can_be_reached_from_the_start() -> None:
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if page not in config} == set()


def test_the_readme_starts_with_the_two_commands_that_need_no_reading() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first = re.search(r"```\w*\n(.*?)```", text, re.DOTALL)
    assert first is not None
    assert re.findall(r"make (\w+)", first.group(1)) == ["demo", "test"]


def test_the_errors_that_troubleshooting_speaks_of_exist() -> None:
    text = (ROOT / "docs" / "guide" / "troubleshooting.md").read_text(encoding="utf-8")
    named = re.findall(r"`([A-Z][a-z]+[A-Z][A-Za-z]+)`", text)
    assert named
    assert [name for name in named if not hasattr(ricordo.errors, name)] == []


def test_every_setting_is_explained_and_no_other() -> None:
    read = {name for module in modules() for name in re.findall(r"\bRICORDO_[A-Z]+\b", module.text)}
    page = (ROOT / "docs" / "guide" / "command-line.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(RICORDO_[A-Z]+)` \|", page, re.MULTILINE)) == read
