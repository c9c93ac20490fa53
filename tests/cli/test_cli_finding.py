"""The command line finds by meaning where the extra is installed, and no command pays for it that looks for nothing."""

from pathlib import Path

import pytest

from command_line import ricordo
from ricordo.models.embedders import static

KNEE = "The physician looked at my knee."


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a root with a memory, in an environment that names no embedder."""
    monkeypatch.delenv("RICORDO_EMBEDDER")
    ricordo("remember", KNEE, "--root", tmp_path / ".ricordo")
    return tmp_path / ".ricordo"


def contents(root: Path, query: str) -> list[str]:
    return [hit["entry"]["content"] for hit in ricordo("recall", query, "--root", root, "--json").document["hits"]]


def told(root: Path) -> tuple[str, str]:
    """Return what doctor and the status say of how memory is found."""
    checks = ricordo("doctor", "--root", root, "--json").document["checks"]
    return next(each["detail"] for each in checks if each["name"] == "finding"), ricordo("--root", root).out


def test_what_a_command_before_saved_is_found_by_its_meaning_at_once(root: Path) -> None:
    assert contents(root, "doctor") == [KNEE]
    doctor, status = told(root)
    assert doctor == f"found by words and by meaning, with {static.StaticEmbedder.model_id}"
    assert f"Found     by words and by meaning, with {static.StaticEmbedder.model_id}" in status


def test_without_the_extra_words_are_looked_for_and_one_line_says_so(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ricordo.models.embedders.static._PACKAGE", "a_package_that_is_not_there")
    assert (contents(root, "doctor"), contents(root, "physician")) == ([], [KNEE])
    doctor, status = told(root)
    assert doctor == "found by words alone; `pip install '.[embed]'` in the source folder of Ricordo adds meaning"
    assert "Found     by words alone" in status
    monkeypatch.setenv("RICORDO_EMBEDDER", "none")
    assert told(root)[0] == "found by words alone"


@pytest.mark.req("FC-DOCTOR")
def test_an_embedder_that_is_not_there_is_told_and_the_doctor_fails(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RICORDO_EMBEDDER", "nothing")
    assert ricordo("--root", root, "--json").document["embedder"] is None
    assert told(root)[0].startswith("found by words alone: 'nothing' names no provider")
    assert ricordo("doctor", "--root", root).code == 1


def test_no_vectors_are_read_by_what_looks_for_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    table = static._load_table

    def looked(folder: Path) -> object:
        read.append(folder)
        return table(folder)

    monkeypatch.setattr(static, "_load_table", looked)
    for arguments in (
        ("--help",), ("remember", "The door is red."), ("recall", ""), ("memory", "list"), ("history",), ("context",),
        (),
    ):  # fmt: skip
        assert ricordo(*arguments, *(() if "--help" in arguments else ("--root", root))).code == 0
    assert read == []
    contents(root, "doctor")
    assert read
