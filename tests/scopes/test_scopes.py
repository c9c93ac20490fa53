"""Scope: never empty, never ambiguous as a folder."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.errors import InvalidScope
from ricordo.files.paths import safe_path
from ricordo.scopes import Scope, path_part

NAMES = st.text(min_size=1, max_size=200).filter(lambda name: name.isprintable() and bool(name.strip()))


@pytest.mark.parametrize("parts", [{}, {"user": ""}, {"user": "  "}, {"project": "x" * 201}, {"agent": "a\nb"}])
def test_a_scope_without_a_usable_part_is_refused(parts: dict[str, str]) -> None:
    """Nothing can be read or written for nobody."""
    with pytest.raises(InvalidScope):
        Scope(**parts)


@given(NAMES, NAMES)
def test_different_names_get_different_folders_on_any_file_system(first: str, second: str) -> None:
    """Also where upper and lower case are the same, and always a name that stays inside."""
    assert (path_part(first).casefold() == path_part(second).casefold()) == (first == second)
    assert safe_path(path_part(first)) == path_part(first)
    assert "/" not in path_part(first)
    assert len(path_part(first)) <= 120


def test_a_scope_is_written_from_wide_to_narrow() -> None:
    """Whatever the order it was given in."""
    scope = Scope(session="s1", agent="coder", project="shop", user="me")
    assert str(scope) == "user=me project=shop agent=coder session=s1"


def test_the_parts_are_all_fields_from_wide_to_narrow() -> None:
    given = {field.name: f"a {field.name}" for field in fields(Scope)}
    assert [*Scope(**given).parts().items()] == [*given.items()]
    assert Scope(session="s", tenant="t").parts() == {"tenant": "t", "session": "s"}
