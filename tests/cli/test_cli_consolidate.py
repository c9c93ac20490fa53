"""`consolidate`: what would change is shown, what is wanted is done, and undo takes it back."""

import json
from pathlib import Path

import pytest

from command_line import loopback_model, ricordo
from hand_made_roots import begun
from places import place_of
from ricordo.testing import Say

ROOT = Path(".ricordo")
MEMORY = place_of(ROOT) / "workspace" / "MEMORY.md"
SAVED = ("We deploy only from main.", "The staging server is called Heron.")


@pytest.fixture(autouse=True)
def root() -> None:
    """Make a root in the working directory, with two memories that no run has read."""
    begun(ROOT)
    (ROOT / "project.json").write_text('{"scope": {"project": "shop"}}', encoding="utf-8")
    ledger = place_of(ROOT) / "workspace" / "memory" / "2026-11-21.md"
    ledger.parent.mkdir(parents=True)
    ledger.write_text("# 2026-11-21\n\n" + "".join(f"- {text} [kind:: decision]\n" for text in SAVED), "utf-8")


def contents() -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() for path in sorted((place_of(ROOT) / "workspace").rglob("*")) if path.is_file()
    }


@pytest.mark.req("CC-DREAMCOPY")
def test_a_dry_run_shows_the_lines_that_would_change_and_changes_none() -> None:
    before = contents()
    done = ricordo("consolidate", "--dry-run")
    assert done.code == 0
    assert all(f"+- {text}" in done.out for text in SAVED)
    assert "Would be 2 memories curated" in done.out
    told = ricordo("consolidate", "--dry-run", "--deep", "--json").document
    assert (len(told["kept"]), told["dry_run"]) == (2, True)
    assert "+++ workspace/MEMORY.md" in told["diff"]
    assert contents() == before


@pytest.mark.req("CC-DREAMCOPY", "FC-UNDO")
def test_a_run_is_taken_back_by_one_command() -> None:
    before = contents()
    done = ricordo("consolidate", "--deep", "--json").document
    assert (done["kept"], done["files"]) == (2, ["MEMORY.md"])
    assert all(text in MEMORY.read_text(encoding="utf-8") for text in SAVED)
    assert ricordo("undo", done["change"]).code == 0
    assert not MEMORY.exists()
    state = {path for path in contents() if "/." in path.removeprefix(str(ROOT)) or path.endswith("tasks.json")}
    assert {path: data for path, data in contents().items() if path not in state} == before
    again = ricordo("consolidate")
    assert "Nothing was changed: nothing new" in again.out


@pytest.mark.req("CC-DREAMCOPY")
def test_what_the_background_proposed_waits_for_approval() -> None:
    (ROOT / "config.toml").write_text('[consolidation]\nmode = "preview"\n', encoding="utf-8")
    assert ricordo("consolidate", "--approve").code == 1
    ricordo("maintain")
    assert not MEMORY.exists()
    told = ricordo("consolidate", "--approve", "--json").document
    assert told["kept"] == 2
    assert all(text in MEMORY.read_text(encoding="utf-8") for text in SAVED)


@pytest.mark.req("FC-CAP")
def test_a_model_of_the_settings_is_asked_and_its_cost_told(monkeypatch: pytest.MonkeyPatch) -> None:
    said = json.dumps({"merged": [], "superseded": [], "retired": [], "topics": []})
    with loopback_model(lambda request: Say(said), monkeypatch):
        done = ricordo("consolidate", "--deep")
    assert (done.code, "1 request" in done.out) == (0, True)
    assert all(text in MEMORY.read_text(encoding="utf-8") for text in SAVED)


@pytest.mark.req("CC-DREAMCOPY", "CC-GATES")
def test_an_answer_of_no_use_changes_nothing_and_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback_model(lambda request: Say("I have deleted everything."), monkeypatch):
        done = ricordo("consolidate")
    assert (done.code, MEMORY.exists()) == (1, False)
    assert "rejected" in done.out


@pytest.mark.req("CC-DREAMCOPY")
def test_approval_goes_with_no_other_wish() -> None:
    assert ricordo("consolidate", "--approve", "--dry-run").code != 0
