"""Which root a command works on, and what it leaves alone."""

import json
import subprocess
from pathlib import Path

import pytest

from command_line import Done, chat, ricordo
from places import place_of

READING = [
    ["recall", "anything"],
    ["ask", "anything?"],
    ["forget", "01k00000000000000000000000"],
    ["undo"],
    ["history"],
    ["memory", "list"],
    ["memory", "show", "01k00000000000000000000000"],
    ["memory", "search", "anything"],
    ["memory", "track", "--yes"],
    ["memory", "untrack"],
    ["session", "list"],
    ["session", "show", "s"],
    ["session", "search", "anything"],
    ["doctor"],
]


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def _saved_in(done: Done) -> str:
    assert done.code == 0, done.err
    return str(done.document["root"])


def test_without_a_command_it_says_where_memory_would_be_created_and_creates_nothing() -> None:
    done = ricordo()
    assert done.code == 0
    assert str(Path.cwd() / ".ricordo") in done.out
    assert done.out.count("  ricordo ") == 3
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_command_that_reads_says_in_one_line_that_there_is_no_memory_and_creates_none(command: list[str]) -> None:
    done = ricordo(*command)
    assert done.code == 1
    assert done.out == ""
    assert done.err.count("\n") == 1
    assert done.err.startswith("ricordo: There is no memory yet")
    assert list(Path.cwd().iterdir()) == []


def test_from_anywhere_below_a_project_its_root_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    ricordo("remember", "We deploy only from main.")
    top = Path.cwd()
    (top / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(top / "src" / "deep")
    assert "only from main" in ricordo("recall", "deploy").out
    assert _saved_in(ricordo("remember", "Another.", "--json")) == str(top / ".ricordo")
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.req("GO-PRIV")
def test_a_new_root_lies_at_the_top_of_the_work_tree_and_belongs_to_the_project_named_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    top = Path.cwd() / "shop"
    (top / "src").mkdir(parents=True)
    _git("init", "-q", str(top))
    monkeypatch.chdir(top / "src")
    assert _saved_in(ricordo("remember", "A.", "--json")) == str(top / ".ricordo")
    assert json.loads((top / ".ricordo" / "project.json").read_text(encoding="utf-8"))["scope"] == {"project": "shop"}


def test_a_root_is_moved_with_its_folder_and_keeps_its_project(monkeypatch: pytest.MonkeyPatch) -> None:
    (Path.cwd() / "old").mkdir()
    monkeypatch.chdir("old")
    ricordo("remember", "We deploy only from main.")
    moved = Path.cwd().rename(Path.cwd().parent / "new")
    monkeypatch.chdir(moved)
    done = ricordo("recall", "deploy", "--json")
    assert [hit["entry"]["scope"].split()[-1] for hit in done.document["hits"]] == ["project=old"]


def test_the_root_may_be_named_before_the_command_or_after_it(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert _saved_in(ricordo("--root", first, "remember", "A.", "--json")) == str(first)
    assert _saved_in(ricordo("--root", first, "--json", "remember", "B.", "--root", second)) == str(second)
    assert ricordo("--root", first, "memory", "list", "--json").document["total"] == 1
    assert list(Path.cwd().iterdir()) == []


def test_the_environment_names_the_root_where_no_option_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RICORDO_ROOT", str(tmp_path / "named"))
    assert _saved_in(ricordo("remember", "A.", "--json")) == str(tmp_path / "named")


@pytest.mark.req("HE-C5-project")
def test_the_root_of_another_project_is_refused(tmp_path: Path) -> None:
    ricordo("remember", "A.", "--root", tmp_path / "root", "--project", "shop")
    done = ricordo("recall", "A", "--root", tmp_path / "root", "--project", "bank")
    assert done.code == 1
    assert done.err.startswith("ricordo: This root belongs to project=shop")


@pytest.mark.req("HE-C5-project", "HE-C5-user")
def test_two_projects_do_not_see_each_other_but_both_see_what_holds_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    base = Path.cwd()
    for name in ("shop", "bank"):
        (base / name).mkdir()
        monkeypatch.chdir(base / name)
        ricordo("remember", f"Pears are only for the {name}.")
    everywhere = ricordo("remember", "Pears ripen in a bag.", "--everywhere", "--reason", "it is so", "--json")
    assert not Path(everywhere.document["file"]).is_relative_to(base)
    monkeypatch.chdir(base / "shop")
    found = [hit["entry"]["content"] for hit in ricordo("recall", "pears", "--json").document["hits"]]
    assert sorted(found) == ["Pears are only for the shop.", "Pears ripen in a bag."]


@pytest.mark.req("HE-C5-required")
def test_what_holds_everywhere_needs_a_reason() -> None:
    assert ricordo("remember", "A.", "--everywhere").code == 2
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.req("GO-PRIV")
@pytest.mark.parametrize("rule", ["!*\n", "", "history/\n"])
def test_git_sees_nothing_of_a_new_root_whatever_rule_its_folder_had(rule: str) -> None:
    _git("init", "-q", ".")
    Path(".ricordo").mkdir()
    Path(".ricordo", ".gitignore").write_text(rule, encoding="utf-8")
    assert ricordo("remember", "A.", "--shared").code == 1
    assert ricordo("trust", ".ricordo").code == 0
    assert ricordo("remember", "A.", "--shared").code == 0
    assert _git("status", "--porcelain", "--untracked-files=all") == ""


@pytest.mark.req("GO-PRIV", "GO-AT7", "GO-D13")
def test_git_sees_nothing_of_a_new_root_until_a_person_confirms_that_it_may() -> None:
    _git("init", "-q", ".")
    ricordo("import", chat(Path("chat.jsonl")), "--shared")
    ricordo("remember", "A.", "--shared")
    ricordo("remember", "B.")
    (place_of(Path(".ricordo")) / "workspace" / "MEMORY.md").write_text("- This is mine.\n", encoding="utf-8")
    (Path(".ricordo") / "workspace" / "MEMORY.md").write_text("- We deploy only from main.\n", encoding="utf-8")
    (Path(".ricordo") / "workspace" / "memory" / "topics").mkdir()
    (Path(".ricordo") / "workspace" / "memory" / "topics" / "shop.md").write_text("- A fact.\n", encoding="utf-8")
    untracked = ("status", "--porcelain", "--untracked-files=all")
    assert _git(*untracked) == "?? chat.jsonl\n"

    refused = ricordo("memory", "track")
    assert refused.code == 1
    assert "confirmation" in refused.err
    assert _git(*untracked) == "?? chat.jsonl\n"

    assert ricordo("memory", "track", "--yes").code == 0
    assert sorted(_git(*untracked).splitlines()) == [
        "?? .ricordo/workspace/MEMORY.md",
        "?? .ricordo/workspace/memory/topics/shop.md",
        "?? chat.jsonl",
    ]
    assert ricordo("memory", "untrack").code == 0
    assert _git(*untracked) == "?? chat.jsonl\n"


@pytest.mark.parametrize("command", [["remember", "A."], ["import", "chat.jsonl"], ["recall", "a"], []], ids=str)
def test_a_folder_with_other_things_in_it_is_no_root_and_stays_as_it_is(command: list[str]) -> None:
    chat(Path("chat.jsonl"))
    Path(".gitignore").write_text("build\n", encoding="utf-8")
    done = ricordo(*command, "--root", ".")
    assert (done.code, done.out) == (1, "")
    assert "no root and not empty" in done.err
    assert sorted(path.name for path in Path.cwd().iterdir()) == [".gitignore", "chat.jsonl"]


def test_a_file_is_no_root() -> None:
    Path("notes").write_text("mine", encoding="utf-8")
    done = ricordo("remember", "A.", "--root", "notes")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "is a file" in done.err


@pytest.mark.parametrize("name", ["new", "empty"])
def test_a_new_or_an_empty_folder_can_become_a_root(name: str) -> None:
    Path("empty").mkdir()
    assert _saved_in(ricordo("remember", "A.", "--root", name, "--json")) == str(Path.cwd() / name)


def test_the_folder_that_holds_a_root_stands_for_it() -> None:
    _saved_in(ricordo("remember", "We deploy only from main.", "--root", "tour/.ricordo", "--json"))
    assert "only from main" in ricordo("recall", "deploy", "--root", "tour").out
    assert _saved_in(ricordo("remember", "B.", "--root", "tour", "--json")) == str(Path.cwd() / "tour" / ".ricordo")


def test_a_root_whose_making_was_cut_off_is_made_whole_by_the_next_command() -> None:
    Path(".ricordo").mkdir()
    Path(".ricordo/.gitignore").write_text("*\n", encoding="utf-8")
    assert _saved_in(ricordo("remember", "A.", "--json")) == str(Path.cwd() / ".ricordo")


def test_a_clone_with_only_curated_memory_becomes_a_root_that_has_it_once_it_is_trusted() -> None:
    Path(".ricordo/workspace/memory/topics").mkdir(parents=True)
    Path(".ricordo/workspace/MEMORY.md").write_text("- We deploy only from main.\n", encoding="utf-8")
    assert ricordo("remember", "A.").code == 1
    assert ricordo("trust").code == 0
    assert ricordo("remember", "A.").code == 0
    assert "only from main" in ricordo("recall", "deploy").out


@pytest.mark.parametrize(
    "command", [["recall", "deploy"], ["remember", "B."], ["import", "../chat.jsonl"], []], ids=str
)
def test_a_root_without_its_marker_is_said_to_be_one_and_is_not_made_anew(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chat(Path("chat.jsonl"))
    ricordo("remember", "We deploy only from main.")
    Path(".ricordo/project.json").unlink()
    Path("below").mkdir()
    monkeypatch.chdir("below")
    before = {path: path.read_bytes() for path in Path("..").rglob("*") if path.is_file()}
    done = ricordo(*command)
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "project.json is missing" in done.err
    assert "1 file of a memory" in done.err
    assert {path: path.read_bytes() for path in Path("..").rglob("*") if path.is_file()} == before


def test_the_marker_that_the_error_shows_makes_a_lost_root_whole_again() -> None:
    ricordo("remember", "We deploy only from main.")
    Path(".ricordo/project.json").unlink()
    shown = ricordo("recall", "deploy").err.strip()
    Path(".ricordo/project.json").write_text(shown[shown.index("{") : -1], encoding="utf-8")
    assert "only from main" in ricordo("recall", "deploy").out


@pytest.mark.req("FC-DOCTOR")
def test_doctor_looks_at_the_rest_of_a_root_without_its_marker() -> None:
    ricordo("remember", "We deploy only from main.")
    Path(".ricordo/project.json").unlink()
    done = ricordo("doctor", "--json")
    assert done.code == 1
    checks = {check["name"]: check for check in done.document["checks"]}
    assert "project.json is missing" in checks["root"]["detail"]
    assert checks["entries"]["count"] == 1
