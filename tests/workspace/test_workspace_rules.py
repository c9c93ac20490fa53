"""A memory that is a rule: what it may say, who may make it, and that a person's line is never lost."""

from dataclasses import replace

import pytest

from ricordo import Entry
from ricordo.errors import InvalidEntry
from ricordo.workspace import Author, parse_entry, render_entry
from ricordo.workspace.entry import parse_memory_rule

pytestmark = pytest.mark.req("CC-ENFORCE")

RULE = Entry(content="Never force-push.", rule="deny shell(git push --force*)")


@pytest.mark.parametrize("text", ["deny shell(rm -rf [a-z]*)", "ask write_file(src/*)", "Deny web_fetch"])
def test_a_rule_stands_in_the_line_of_its_memory_and_is_read_back(text: str) -> None:
    entry = replace(RULE, rule=text).validate()
    assert parse_entry(render_entry(entry)) == entry
    assert entry.is_rule


def test_the_pattern_of_a_rule_keeps_its_brackets() -> None:
    entry = parse_entry(render_entry(replace(RULE, rule="deny shell(rm [a-z]*)")))
    assert entry.rule is not None
    assert parse_memory_rule(entry.rule).pattern.argument == "rm [a-z]*"


@pytest.mark.parametrize(
    "text", ["", "allow shell(git push*)", "shell(git push*)", "deny", "deny shell(git", "forbid x"]
)
def test_what_is_no_rule_or_permits_something_is_refused_with_the_form_to_use(text: str) -> None:
    with pytest.raises(InvalidEntry, match=r"`deny shell\(git push --force\*\)`"):
        replace(RULE, rule=text).validate()


@pytest.mark.parametrize("by", ["agent", "flush"])
def test_only_people_make_rules(by: Author) -> None:
    entry = replace(RULE, by=by)
    with pytest.raises(InvalidEntry, match="Only a person"):
        entry.validate()
    assert not entry.is_rule


def test_an_imported_rule_is_one_when_a_person_has_confirmed_it() -> None:
    entry = parse_entry("- Never. [by:: import] [rule:: deny shell] ^a\n")
    assert not entry.is_rule
    assert parse_entry("- Never. [by:: import] [confirmed:: 2026-11-21T08:00:00Z] [rule:: deny shell] ^a\n").is_rule


@pytest.mark.parametrize("field", ["[rule:: allow shell(git push*)]", "[rule:: never push]", "[rule:: deny]"])
def test_a_rule_that_a_person_wrote_wrongly_is_no_rule_and_survives_every_rewrite(field: str) -> None:
    bullet = f"- Never force-push. [kind:: fact] [by:: hand] {field} ^abc\n"
    entry = parse_entry(bullet)
    assert entry.rule is None
    assert render_entry(entry) == bullet


def test_of_two_rules_on_one_line_the_first_counts_and_the_other_is_kept() -> None:
    bullet = "- Never. [kind:: fact] [by:: hand] [rule:: deny shell] [rule:: ask write_file] ^abc\n"
    entry = parse_entry(bullet)
    assert (entry.rule, entry.extra) == ("deny shell", (("rule", "ask write_file"),))
    assert render_entry(entry) == bullet


def test_a_bullet_without_an_author_is_a_persons_rule() -> None:
    assert parse_entry("- Never force-push. [rule:: deny shell(git push --force*)]\n").is_rule


@pytest.mark.parametrize("by", ["agent", "flush", "user"])
def test_words_that_look_like_a_rule_are_words(by: Author) -> None:
    entry = Entry(content="Never [rule:: deny shell(*)]", by=by)
    found = parse_entry(render_entry(entry))
    assert found == entry
    assert found.rule is None
