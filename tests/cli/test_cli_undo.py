"""`ricordo undo` without an id takes back the command that was run last."""

from pathlib import Path

import pytest

from command_line import chat, ricordo

pytestmark = pytest.mark.req("FC-UNDO")


@pytest.mark.req("CC-DREAMCOPY", "FC-UNDO")
@pytest.mark.parametrize("command", ["consolidate", "maintain"])
def test_a_consolidation_that_a_person_ran_is_what_the_next_undo_takes_back(command: str) -> None:
    ricordo("remember", "We use uv for environments.")
    ricordo("remember", "We deploy only from main.", "--kind", "decision")
    done = ricordo(command, "--json")
    assert done.code == 0
    (run,) = [each for each in ricordo("history", "--json").document["changes"] if each["action"] == "consolidate"]
    assert command == "maintain" or run["id"] == done.document["change"]
    undone = ricordo("undo", "--json").document["undone"]
    assert (undone["id"], undone["action"], undone["actor"]) == (run["id"], "consolidate", "user")
    assert ricordo("undo", "--json").document["undone"]["action"] == "save"
    assert "uv for environments" in ricordo("memory", "list").out


def test_conversations_that_were_taken_in_are_undone_together_and_can_be_taken_in_again(tmp_path: Path) -> None:
    folder = tmp_path / "talks"
    folder.mkdir()
    chat(folder / "a.jsonl")
    chat(folder / "b.jsonl", (("user", "Paul owns billing."), ("assistant", "Noted.")))
    ricordo("remember", "We use uv for environments.")
    first = ricordo("import", folder, "--json").document
    assert first["sessions"] == 2
    assert first["entries"] > 2
    shown = ricordo("history", "--json").document["changes"]
    assert [item["action"] for item in shown if item["action"] in {"import", "extract", "save"}] == ["import", "save"]
    assert "import" in ricordo("undo").out
    assert ricordo("memory", "list", "--json").document["total"] == 1
    again = ricordo("import", folder, "--json").document
    assert (again["entries"], again["messages"]) == (first["entries"], first["messages"])
    assert ricordo("import", folder, "--json").document["entries"] == 0
    assert ricordo("memory", "list", "--json").document["total"] == first["entries"] + 1


def test_a_store_that_was_copied_here_is_undone_as_one_and_can_be_copied_again() -> None:
    for content in ("Paul owns billing.", "Nadia owns staging."):
        ricordo("remember", content, "--root", "one", "--project", "shop")
    ricordo("store", "migrate", "layered", "jsonl:./notes", "--root", "one", "--project", "shop")
    here = ("--root", "other", "--project", "shop", "--json")
    ricordo("remember", "We use uv for environments.", *here)
    copy = ("store", "migrate", "jsonl:./notes", "layered", *here)
    assert ricordo(*copy).document["copied"] == 2
    assert ricordo("undo", *here).document["undone"]["action"] == "import"
    assert ricordo("memory", "list", *here).document["total"] == 1
    assert ricordo(*copy).document["copied"] == 2


@pytest.mark.parametrize("act", ["remember", "import", "pin", "forget"])
def test_what_a_person_does_for_the_whole_project_is_their_newest_act(act: str) -> None:
    ricordo("remember", "Nadia owns the staging database.", "--user", "ann")
    ricordo("remember", "We deploy only from main.", "--shared", "--user", "ben")
    shared = ricordo("remember", "The build runs on Sundays.", "--shared", "--user", "ann", "--json").document["entry"]
    if act == "import":
        ricordo("import", chat(Path("chat.jsonl"), session="one"), "--shared", "--user", "ann")
    elif act != "remember":
        ricordo(act, shared["id"], "--user", "ann")
    told = ricordo("history", "--user", "ann").out
    [saved] = [line for line in told.splitlines() if "save by ben" in line]
    assert told.split(saved)[1].splitlines()[1] == '  "We deploy only from main."'
    assert "by ann" not in told
    assert "Nadia" not in ricordo("history", "--user", "ben").out
    undone = ricordo("undo", "--user", "ann")
    assert undone.code == 0
    contents = {each["content"] for each in ricordo("memory", "list", "--user", "ann", "--json").document["entries"]}
    kept = {"Nadia owns the staging database.", "We deploy only from main."}
    assert contents == (kept if act == "remember" else kept | {"The build runs on Sundays."})
    refused = ricordo("undo", "--user", "cleo")
    assert "nothing to undo" in refused.err


def test_a_consolidation_of_what_a_project_shares_is_undone_by_who_asked_for_it() -> None:
    ricordo("remember", "Nadia owns the staging database.", "--user", "ann")
    ricordo("remember", "We deploy only from main.", "--shared", "--user", "ben")
    ricordo("consolidate", "--shared", "--user", "ann")
    assert "nothing to undo" in ricordo("undo", "--user", "cleo").err
    assert "consolidate" in ricordo("undo", "--user", "ann").out
    assert "Nadia" in ricordo("undo", "--user", "ann").out
