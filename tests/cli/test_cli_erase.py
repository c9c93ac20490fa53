"""Erasing on the command line: asked for, told, and final."""

from pathlib import Path

import pytest

from command_line import ricordo


@pytest.mark.req("HE-T1")
def test_a_memory_is_erased_only_with_a_yes_and_can_not_be_brought_back() -> None:
    saved = ricordo("remember", "The vault opens with Xanthippe.", "--json").document
    ricordo("remember", "We deploy only from main.")
    gone, root = saved["entry"]["id"], Path(saved["root"])
    refused = ricordo("erase", gone)
    assert refused.code != 0
    assert "give --yes" in refused.err
    ricordo("forget", gone)
    done = ricordo("erase", gone, "--yes")
    assert done.code == 0
    assert f"Erased {gone}" in done.out
    assert "Nothing of it is left in" in done.out
    assert not [path for path in root.rglob("*") if path.is_file() and b"Xanthippe" in path.read_bytes()]
    forgotten = next(each for each in ricordo("history", "--json").document["changes"] if each["action"] == "forget")
    undone = ricordo("undo", forgotten["id"])
    assert undone.code != 0
    assert "erased" in undone.err
    listed = ricordo("memory", "list", "--json").document["entries"]
    assert [each["content"] for each in listed] == ["We deploy only from main."]


@pytest.mark.req("HE-O-audit-forget")
def test_a_text_is_erased_from_every_memory_and_a_wrong_call_erases_nothing() -> None:
    root = Path(ricordo("remember", "Nadia owns the staging database.", "--json").document["root"])
    for wrong in ([], ["--text", "Nadia", "abcdef12"], ["abcdef12"]):
        assert ricordo("erase", *wrong, "--yes").code != 0
    assert [each["content"] for each in ricordo("memory", "list", "--json").document["entries"]] == [
        "Nadia owns the staging database."
    ]
    done = ricordo("erase", "--text", "Nadia", "--yes", "--json").document
    assert done["scanned"] > 3
    assert not [path for path in root.rglob("*") if path.is_file() and b"Nadia" in path.read_bytes()]
