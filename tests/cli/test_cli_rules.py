"""Rules on the command line: saved with a memory, seen in every listing, and refused when they are none."""

import pytest

from command_line import ricordo

pytestmark = pytest.mark.req("CC-ENFORCE")

PUSH = "shell(git push --force*)"


@pytest.mark.parametrize("decision", ["deny", "ask"])
def test_a_rule_is_saved_with_a_memory_and_shown_with_it(decision: str) -> None:
    rule = f"{decision} {PUSH}"
    told = ricordo("remember", "Never force-push.", f"--{decision}", PUSH).out
    assert f"rule: {rule}" in told
    ricordo("remember", "We use uv.")
    assert ricordo("memory", "list").out.count(f"rule: {rule}") == 1
    listed = ricordo("memory", "list", "--json").document["entries"]
    assert [entry["rule"] for entry in listed] == [None, rule]
    only = ricordo("memory", "list", "--rules", "--json").document
    assert [entry["rule"] for entry in only["entries"]] == [rule]
    entry_id = only["entries"][0]["id"]
    assert rule in ricordo("memory", "show", entry_id).out
    assert ricordo("memory", "show", entry_id, "--json").document["rule"] == rule
    ricordo("forget", entry_id)
    assert "No memory matches." in ricordo("memory", "list", "--rules").out


def test_a_rule_either_refuses_or_asks() -> None:
    refused = ricordo("remember", "Never force-push.", "--deny", PUSH, "--ask", PUSH)
    assert refused.code == 2
    assert "not both" in refused.err


@pytest.mark.parametrize("pattern", ["", "shell(git push", "allow shell(x)"])
def test_what_is_no_rule_is_refused_with_the_form_to_use(pattern: str) -> None:
    refused = ricordo("remember", "Never force-push.", "--deny", pattern)
    assert refused.code != 0
    assert "deny shell(git push --force*)" in refused.err
