"""Scope: never empty, never ambiguous as a folder."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.errors import InvalidScope
from ricordo.scope import Scope, encode_folder_name, name_digest, owner_part
from ricordo.storage.contract import safe_path

pytestmark = pytest.mark.req("HE-C5-required", "HE-C5-user", "DF-C52")

NAMES = st.text(min_size=1, max_size=200).filter(lambda name: name.isprintable() and bool(name.strip()))


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"user": ""},
        {"user": "  "},
        {"project": "x" * 201},
        {"agent": "a\nb"},
        *({"user": f"a{mark}b"} for mark in "\u200b\u00a0\x7f"),
    ],
)
def test_a_scope_without_a_usable_part_is_refused(parts: dict[str, str]) -> None:
    """Nothing can be read or written for nobody."""
    with pytest.raises(InvalidScope):
        Scope(**parts)


@given(NAMES, NAMES)
def test_different_names_get_different_folders_on_any_file_system(first: str, second: str) -> None:
    """Also where upper and lower case are the same, and always a name that stays inside."""
    assert (encode_folder_name(first).casefold() == encode_folder_name(second).casefold()) == (first == second)
    assert safe_path(encode_folder_name(first)) == encode_folder_name(first)
    assert "/" not in encode_folder_name(first)
    assert len(encode_folder_name(first)) <= 120


@pytest.mark.parametrize("name", ["con", "nul", "aux.txt", "Aux.txt", "com1", "ann.", "ann-17239b6e", "annabe~1", ".."])
def test_a_name_that_a_file_system_reserves_changes_or_has_given_to_another_gets_a_digest(name: str) -> None:
    """No user meets the folder of another one, where case is ignored or on Windows."""
    part = owner_part(name)
    stem = part.partition(".")[0].lower()
    assert stem not in {"con", "nul", "aux", "com1", "ann-17239b6e"}
    assert not part.endswith((".", " "))
    assert "~" not in part or part != name
    assert part.lower() not in {owner_part(other).lower() for other in ("Ann", "ann", "con-1", "aux", ".")}
    assert owner_part("Ann") == "Ann-17239b6e"


@given(NAMES)
def test_a_user_has_the_folder_of_a_plain_name_as_it_is(name: str) -> None:
    assert owner_part(name) == encode_folder_name(name) or owner_part(name).endswith(f"-{name_digest(name)}")
    assert owner_part("ann") == "ann"
    assert owner_part("ann.b@example.com") == "ann.b%40example.com"


def test_a_scope_is_written_from_wide_to_narrow() -> None:
    """Whatever the order it was given in."""
    scope = Scope(session="s1", agent="coder", project="shop", user="me")
    assert str(scope) == "user=me project=shop agent=coder session=s1"


def test_the_parts_are_all_fields_from_wide_to_narrow() -> None:
    given = {field.name: f"a {field.name}" for field in fields(Scope)}
    assert [*Scope(**given).parts().items()] == [*given.items()]
    assert Scope(session="s", tenant="t").parts() == {"tenant": "t", "session": "s"}
