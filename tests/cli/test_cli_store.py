"""Stores from the command line: which there are, moving between them, and what they take."""

import json
from pathlib import Path

import pytest

from command_line import ricordo
from ricordo.stores import SCHEMES

FACTS = ("We deploy only from main.", "Nadia owns the staging database.", "Test fixtures live in tests/data.")


@pytest.fixture
def remembered() -> None:
    """Remember three things in the root of the working directory."""
    for fact in FACTS:
        ricordo("remember", fact, "--kind", "decision", "--tag", "shop")


def _contents(store: str) -> list[str]:
    ricordo("store", "migrate", store, "json:./looked-at")
    document = json.loads(next(Path("looked-at").glob("*.json")).read_text(encoding="utf-8"))
    return [each["content"] for each in document["entries"]]


def _files(folder: str) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file() and "db" not in path.suffix}


def test_every_scheme_is_listed_with_what_it_keeps_and_needs() -> None:
    told = ricordo("store", "list").out
    assert all(scheme in told for scheme in SCHEMES)
    assert "needs the extra kv" in told
    rows = ricordo("store", "list", "--json").document["stores"]
    assert [row["scheme"] for row in rows][: len(SCHEMES)] == list(SCHEMES)
    assert {row["scheme"]: row["needs"] for row in rows}["kv"] == "the extra kv"


@pytest.mark.usefixtures("remembered")
def test_what_is_remembered_is_copied_read_back_and_copied_once() -> None:
    before = _files(".ricordo/workspace")
    done = ricordo("store", "migrate", "layered", "jsonl:./notes")
    assert done.code == 0
    assert "3 memories of 3 copied" in done.out
    again = ricordo("store", "migrate", "layered", "jsonl:./notes", "--json").document
    assert (again["total"], again["copied"], again["there"], again["failed"]) == (3, 0, 3, [])
    lines = [json.loads(line) for line in Path("notes/memory.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sorted(line["content"] for line in lines) == sorted(FACTS)
    assert {(line["kind"], *line["tags"]) for line in lines} == {("decision", "shop")}
    assert _files(".ricordo/workspace") == before


@pytest.mark.usefixtures("remembered")
def test_a_dry_run_says_what_it_would_copy_and_makes_nothing() -> None:
    told = ricordo("store", "migrate", "layered", "jsonl:./notes", "--dry-run")
    assert (told.code, Path("notes").exists()) == (0, False)
    assert "3 memories of 3 would be copied" in told.out
    document = ricordo("store", "migrate", "layered", "jsonl:./notes", "--dry-run", "--json").document
    assert (document["dry_run"], document["waiting"], document["copied"]) == (True, 3, 0)
    ricordo("store", "migrate", "layered", "jsonl:./notes")
    before = _files("notes")
    assert "3 are there already" in ricordo("store", "migrate", "layered", "jsonl:./notes", "--dry-run").out
    assert _files("notes") == before


@pytest.mark.req("HE-O-audit-forget")
@pytest.mark.usefixtures("remembered")
def test_what_was_forgotten_in_a_store_is_not_copied_back_into_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    ricordo("store", "migrate", "layered", "jsonl:./notes")
    gone = ricordo("memory", "list", "--json").document["entries"][0]["id"]
    ricordo("forget", gone)
    dry = ricordo("store", "migrate", "jsonl:./notes", "layered", "--dry-run")
    assert "0 memories of 3 would be copied" in dry.out
    assert "1 was forgotten there" in dry.out
    done = ricordo("store", "migrate", "jsonl:./notes", "layered", "--json")
    assert (done.code, done.document["forgotten"], done.document["copied"], done.document["failed"]) == (0, 1, 0, [])
    assert gone not in ricordo("memory", "list", "--json").out


@pytest.mark.usefixtures("remembered")
def test_a_memory_that_can_not_be_copied_is_named_and_the_exit_code_says_so() -> None:
    ricordo("store", "migrate", "layered", "jsonl:./notes")
    file = Path("notes/memory.jsonl")
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    lines[1]["content"] = "Something else."
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    done = ricordo("store", "migrate", "layered", "jsonl:./notes")
    assert done.code == 1
    assert lines[1]["id"] in done.err
    assert "another memory" in done.err
    failed = ricordo("store", "migrate", "layered", "jsonl:./notes", "--json")
    assert (failed.code, [each["id"] for each in failed.document["failed"]]) == (1, [lines[1]["id"]])


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [
        ("jsonl:./nowhere", "jsonl:./notes", "does not exist"),
        ("jsonl:./notes", "jsonl:./notes", "both where to read"),
        ("jsonl:", "json:./notes", "no folder"),
        ("jsonl:~nobody-has-this-name/a", "json:./notes", "home folder of nobody"),
        ("jsonl", "json:./notes", "jsonl:./notes"),
        ("jsnol:./x", "json:./notes", "jsnol"),
        ("none", "json:./notes", "keeps nothing"),
        ("layered", "fanout:jsonl:./a,kv:./b", "kv:./b`"),
    ],
)
def test_what_can_not_be_a_source_or_a_target_is_told_and_nothing_is_made(source: str, target: str, told: str) -> None:
    done = ricordo("store", "migrate", source, target)
    assert done.code == 1
    assert told in done.err
    assert not [path for path in Path().iterdir() if path.name != ".gitignore"]
