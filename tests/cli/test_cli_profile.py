"""`ricordo profile`: what is known is shown, edited as text, and taken out and in."""

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from command_line import Done, ricordo
from places import place_of

PATH = "users/ann/workspace/profile.json"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RICORDO_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("RICORDO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("RICORDO_USER", "ann")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path / ".ricordo"


def profile(root: Path, *arguments: str | Path, stdin: str | None = None) -> Done:
    return ricordo("--root", root, "--project", "shop", "profile", *arguments, stdin=stdin)


def _editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, code: int = 0) -> None:
    """Let the editor be a program that replaces a text and ends with this code."""
    script = tmp_path / "editor.py"
    script.write_text(
        "import pathlib, sys\n"
        "path = pathlib.Path(sys.argv[1])\n"
        f"path.write_text(path.read_text().replace({old!r}, {new!r}))\n"
        f"sys.exit({code})\n"
    )
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} -S -E {script}")


@pytest.mark.req("DF-FACTS-find", "FC-UNDO")
def test_a_fact_is_added_shown_removed_and_brought_back(root: Path) -> None:
    assert "Added fact_" in profile(root, "add", "Likes tea", "--category", "preference", "--pin").out
    added = profile(root, "add", "Deploys from main", "-c", "correction", "--avoid", "from dev", "--json").document
    name = added["fact"]["id"]
    shown = profile(root, "show").out
    assert f"- [correction | 1.00] Deploys from main (avoid: from dev)  {name}" in shown
    assert "Likes tea" in shown
    assert "pinned" in shown
    found = profile(root, "show", "tea", "--json").document
    assert [fact["content"] for fact in found["profile"]["facts"]] == ["Likes tea"]
    assert profile(root, "show", "-c", "correction", "--json").document["total"] == 1
    assert "1 more fact" in profile(root, "show", "--limit", "1").out
    assert profile(root, "remove", name[:9]).code == 0
    assert name not in profile(root, "show").out
    assert profile(root, "remove", name).code == 1
    assert profile(root, "remove", "fact_", "--json").code in {0, 1}
    assert "profile" in ricordo("--root", root, "undo").out


def test_without_anything_known_it_says_so(root: Path) -> None:
    ricordo("--root", root, "--project", "shop", "remember", "We deploy from main.")
    assert "Nothing is known" in profile(root, "show").out
    assert profile(root, "show", "--json").document["profile"]["facts"] == []


@pytest.mark.req("DF-FACTS-find")
def test_an_edited_text_becomes_changes_of_facts(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profile(root, "add", "Likes tea")
    before = json.loads((root / PATH).read_text())["facts"][0]
    _editor(tmp_path, monkeypatch, "Likes tea", "Likes coffee")
    assert "1 changed" in profile(root, "edit").out
    after = json.loads((root / PATH).read_text())["facts"][0]
    assert (after["id"], after["content"], after["createdAt"]) == (before["id"], "Likes coffee", before["createdAt"])
    _editor(tmp_path, monkeypatch, "- Work:", "- Work: Builds ships.\n# ")
    assert profile(root, "edit", "--json").document["summaries"] == 1
    _editor(tmp_path, monkeypatch, "nothing of it", "")
    assert "Nothing was changed" in profile(root, "edit").out
    assert "Builds ships." in profile(root, "show").out
    assert not list(tmp_path.glob("ricordo-profile-*.txt"))


def test_a_text_that_cannot_be_read_changes_nothing_and_is_kept(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile(root, "add", "Likes tea")
    before = (root / PATH).read_bytes()
    _editor(tmp_path, monkeypatch, "| 1.00] Likes tea", "| sure] Likes coffee")
    done = profile(root, "edit")
    assert done.code == 1
    assert "line " in done.err
    assert "'sure' is no confidence" in done.err
    assert (root / PATH).read_bytes() == before
    (kept,) = tmp_path.glob("ricordo-profile-*.txt")
    assert str(kept) in done.err
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    kept.write_text(kept.read_text().replace("sure", "0.9"))
    assert "1 changed" in profile(root, "edit", "--from", kept).out
    assert "Likes coffee" in profile(root, "show").out
    assert profile(root, "edit", "--from", kept).code == 1
    assert profile(root, "edit", "--from", tmp_path / "no").code == 1


def test_an_editor_that_fails_changes_nothing(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profile(root, "add", "Likes tea")
    before = (root / PATH).read_bytes()
    _editor(tmp_path, monkeypatch, "Likes tea", "Likes coffee", code=1)
    assert profile(root, "edit").code == 1
    monkeypatch.setenv("EDITOR", str(tmp_path / "no-such-editor"))
    assert "name another one in EDITOR" in profile(root, "edit").err
    assert (root / PATH).read_bytes() == before


@pytest.mark.req("DF-B5")
def test_an_export_is_taken_in_again_and_told_before(root: Path, tmp_path: Path) -> None:
    profile(root, "add", "Likes tea")
    file = tmp_path / "out.json"
    assert profile(root, "export", file).code == 0
    assert profile(root, "export", file).code == 1
    assert profile(root, "export").out == file.read_text()
    profile(root, "add", "Rides")
    dry = profile(root, "import", file, "--replace", "--dry-run")
    assert "removed: fact_" in dry.out
    assert "without --dry-run" in dry.out
    assert "Rides" in profile(root, "show").out
    assert profile(root, "import", file, "--replace", "--json").document["saved"] is True
    assert "Rides" not in profile(root, "show").out
    assert "all of it is known" in profile(root, "import", "-", stdin=file.read_text()).out
    changed = file.read_text().replace("Likes tea", "Likes coffee")
    assert profile(root, "import", "-", stdin=changed).code == 1
    assert "changed: fact_" in profile(root, "import", "-", "--prefer", "document", stdin=changed).out
    assert profile(root, "import", "-", "--prefer", "nobody", stdin=changed).code == 2
    assert profile(root, "import", tmp_path / "no.json").code == 1


@pytest.mark.req("DF-B14", "FC-DOCTOR")
def test_a_broken_profile_is_told_and_cleared_only_when_asked_for(root: Path) -> None:
    profile(root, "add", "Likes tea")
    document = json.loads((root / PATH).read_text())
    document["facts"].append(7)
    (root / PATH).write_text(json.dumps(document))
    assert "1 record of the profile can't be read: facts[1]" in profile(root, "show").err
    told = ricordo("--root", root, "doctor")
    assert told.code == 1
    assert "workspace/profile.json: facts[1]" in told.out
    (root / PATH).write_text("{")
    done = profile(root, "show")
    assert done.code == 1
    assert "ricordo profile clear" in done.err
    assert profile(root, "clear").code == 1
    assert (root / PATH).read_text() == "{"
    assert profile(root, "clear", "--yes").code == 0
    assert (place_of(root, "ann") / "workspace/profile.broken-1.json").read_text() == "{"
    assert "Nothing is known" in profile(root, "show").out
    told = ricordo("--root", root, "doctor")
    assert told.code == 0
    assert "profile.broken-1.json" in told.out


def test_an_export_is_for_its_owner_alone_and_carries_no_control_characters(root: Path, tmp_path: Path) -> None:
    profile(root, "add", "Likes \x9b31m tea \u202e and \u200b milk")
    file = tmp_path / "profile.json"
    old = os.umask(0)
    try:
        assert profile(root, "export", file).code == 0
    finally:
        os.umask(old)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for text in (file.read_text(encoding="utf-8"), profile(root, "export").out):
        assert not any(character in text for character in "\x9b\u202e\u200b")
        assert json.loads(text)["facts"][0]["content"] == "Likes \x9b31m tea \u202e and \u200b milk"
    assert profile(root, "export", tmp_path / "missing" / "profile.json").code == 1


@pytest.mark.req("DF-B5")
@pytest.mark.parametrize("document", ['{"name": "a package", "version": "1"}', "{}", '{"facts": "none"}', "[1]"])
def test_json_that_is_no_profile_is_refused_and_changes_nothing(root: Path, tmp_path: Path, document: str) -> None:
    profile(root, "add", "Likes tea")
    before = profile(root, "export").out
    file = tmp_path / "other.json"
    file.write_text(document, encoding="utf-8")
    for options in ((), ("--replace",)):
        assert profile(root, "import", file, *options).code == 1
    assert profile(root, "export").out == before


@pytest.mark.req("DF-FACTS-find", "FC-WHY")
def test_the_commands_for_memories_take_a_fact_and_a_review_decides_about_it(root: Path) -> None:
    name = profile(root, "add", "It is always like that.", "--json").document["fact"]["id"]
    assert ricordo("--root", root, "memory", "list", "--json").document["entries"][0]["id"] == name
    shown = ricordo("--root", root, "memory", "show", name, "--json").document
    assert shown["file"].endswith("profile.json")
    assert ricordo("--root", root, "why", name, "--json").document["in_prompt"]
    assert f"Pinned {name}" in ricordo("--root", root, "pin", name).out
    changed = ricordo("--root", root, "memory", "update", name, "--text", "Ann lives in Porto.", "--json").document
    assert changed["updated"]["content"] == "Ann lives in Porto."
    assert "update" in ricordo("--root", root, "history").out
    ricordo("--root", root, "undo")
    assert ricordo("--root", root, "review", "later", name, "--json").document["verb"] == "later"
    edited = ricordo("--root", root, "review", "edit", name, "--text", "Ann sails.", "--json").document
    assert edited["entries"][0]["content"] == "Ann sails."
    assert f"Rejected {name}" in ricordo("--root", root, "review", "reject", name).out
    assert ricordo("--root", root, "memory", "list", "--json").document["total"] == 0
    assert "Nothing is doubtful." in ricordo("--root", root, "review").out
    assert ricordo("--root", root, "review", "--json").document == {"doubts": []}
    ricordo("--root", root, "undo")
    assert ricordo("--root", root, "memory", "list", "--json").document["total"] == 1
