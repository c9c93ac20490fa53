"""The reference pages say what the code says: commands, options, errors, public names, and the stages of events."""

import re
import typing

import pytest

import render_reference
import ricordo.errors
from ricordo import Memory
from ricordo.events import Stage, Status
from source_tree import ROOT, modules

REFERENCE = ROOT / "docs" / "reference"
NAMED_ROOMS = {
    "ricordo.client",
    "ricordo",
    *(f"ricordo.{name}" for name in ("agent", "context", "errors", "events", "guard", "jobs", "messages", "models")),
    *(f"ricordo.{name}" for name in ("runtime", "storage", "stores", "testing", "workspace")),
    *(f"ricordo.{name}" for name in ("agent.sync", "agent.tools", "messages.formats", "importers")),
    "ricordo.adapters.anthropic_memory",
    *(f"ricordo.adapters.{name}" for name in ("clients", "claude_agent_sdk", "langchain", "langgraph")),
    *(f"ricordo.adapters.{name}" for name in ("openai_agents", "pydantic_ai")),
    "ricordo.language.packs",
}


@pytest.mark.parametrize("page", sorted(render_reference.PAGES))
def test_a_reference_page_is_what_the_code_renders(page: str) -> None:
    rendered = render_reference.PAGES[page]()
    assert (REFERENCE / page).read_text(encoding="utf-8") == rendered, "run `make format`"


def test_guides_import_from_the_package_and_a_few_named_rooms_only() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs" / "guide").glob("*.md")]
    imported = {
        (path.name, name)
        for path in pages
        for name in re.findall(r"^ *(?:from|import) (ricordo[\w.]*)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert len(imported) > len(pages)
    assert {row for row in imported if row[1] not in NAMED_ROOMS} == set()


def test_no_text_names_a_package_index_that_has_no_ricordo_yet() -> None:
    pages = [
        ROOT / "README.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "benchmarks").rglob("*.py"),
    ]
    named = re.compile(r"(?:pip|pipx|uv tool|uv) (?:install|add|run) [^\n`]*ricordo(?:\[|\b(?!/))")
    found = {(path.name, hit) for path in pages for hit in named.findall(path.read_text(encoding="utf-8"))}
    assert len(pages) > 100
    assert found == set()


def test_the_python_reference_has_every_public_method_and_what_it_returns() -> None:
    page = (REFERENCE / "python.md").read_text(encoding="utf-8")
    methods = [f"### Memory.{name}" for name, member in vars(Memory).items() if name[0] != "_" and callable(member)]
    assert len(methods) > 30
    assert [heading for heading in methods if f"\n{heading}\n" not in page] == []
    returned = {
        "Answer",
        "ChangeDiff",
        "DeleteResult",
        "ForgetResult",
        "HistoryItem",
        "Hit",
        "TurnResult",
        "UserProfile",
    }
    assert [name for name in returned if f"\n## {name}\n" not in page] == []


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
