"""Doctor names every rule in a file that is not in force, so that nobody relies on it."""

from pathlib import Path

import pytest

from ricordo import Memory, Scope
from ricordo.runtime.doctor import find_inactive_rules

pytestmark = pytest.mark.req("CC-ENFORCE")

SHOP = Scope(user="me", project="shop")


@pytest.mark.parametrize(
    "line",
    [
        "- Never. [rule:: allow shell(git push*)]",
        "- Never. [rule:: never push]",
        "- Never. [rule::deny shell(git push*)]",
        "- Never. [Rule:: deny shell(git push*)]",
        "- Never. [rule: deny shell(git push*)]",
        "- Never. [rule:: deny shell(rm [a-z]*)]",
        "- Never [rule:: deny shell(git push*)] at all.",
        "- Never. [by:: agent] [rule:: deny shell(git push*)]",
        "- Never. [by:: flush] [rule:: deny shell(git push*)] ^abc",
        "- Never. [rule:: deny shell] [rule:: ask write_file]",
        "Never. [rule:: deny shell(git push*)]",
        "- sp.[rule:: deny shell(v2*)]",
        "- Never. [ rule:: deny shell(git push*)]",
        "- Never. (rule:: deny shell(git push*))",
        "- Never. [rule:: deny shell()]",
        "- Never. (rule:: deny shell) [rule:: deny shell(git push*)]",
    ],
)
def test_a_rule_that_is_not_in_force_is_found_on_its_line(line: str) -> None:
    assert find_inactive_rules("workspace/MEMORY.md", f"# Memory\n\n- A line.\n  more\n{line}\n- after\n".encode()) == [
        5
    ]


@pytest.mark.parametrize(
    "line",
    [
        "- Never. [rule:: deny shell(git push*)]",
        "- Never. [rule:: deny shell(rm \\[a-z\\]*)] ^abc",
        "- Said: \\[rule:: deny shell] [by:: flush] ^abc",
        "- Write `[rule:: deny shell]` at the end.",
        "```\n- Never. [rule:: allow shell]\n```",
        "- The [rule](x.md): be kind.",
        "- One more (rule: be kind), and another (a rule:: b).",
        "- Never. [rule:: deny note(*(rule:: \\[rule:: x\\]*)]",
    ],
)
def test_rules_that_hold_and_words_about_rules_are_well(line: str) -> None:
    assert find_inactive_rules("workspace/MEMORY.md", f"# Memory\n\n{line}\n".encode()) == []


def test_each_line_of_a_bullet_is_told() -> None:
    document = b"- Git.\n  - Never. [rule:: deny shell(a)]\n  - Ask. [rule:: ask shell(b)]\n"
    assert find_inactive_rules("workspace/MEMORY.md", document) == [2]


@pytest.mark.req("FC-DOCTOR")
@pytest.mark.anyio
async def test_doctor_names_file_and_line_of_a_rule_that_is_not_in_force(tmp_path: Path) -> None:
    async with Memory.open(tmp_path, scope=SHOP) as memory:
        await memory.remember("Never force-push.", rule="deny shell(git push --force*)")
        await memory.remember("[rule:: allow shell(*)] " + "word " * 1_000, by="agent")
        well = {check.name: check for check in await memory.doctor()}["rules"]
        assert (well.ok, well.count) == (True, 0)
        topic = tmp_path / "workspace" / "memory" / "topics" / "git.md"
        topic.parent.mkdir(parents=True)
        topic.write_text("# Git\n\n- Push freely. [rule:: allow shell(git push*)]\n")
        found = {check.name: check for check in await memory.doctor()}["rules"]
    assert (found.ok, found.count) == (False, 1)
    assert "workspace/memory/topics/git.md:3" in found.detail
    assert "`[rule:: deny shell(git push --force*)]`" in found.detail
