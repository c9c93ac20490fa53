"""Merging by lines: what either side changed is in the result, and what both changed differently is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.workspace.merge import merge_lines

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"d e\n"]), max_size=8)
DOCUMENTS = st.builds(lambda lines, tail: b"".join(lines) + tail, LINES, st.sampled_from([b"", b"torn", b"\r\n"]))


@given(base=DOCUMENTS, side=DOCUMENTS)
def test_a_side_that_changed_nothing_gives_way_to_the_byte(base: bytes, side: bytes) -> None:
    assert merge_lines(base, base, side) == side
    assert merge_lines(base, side, base) == side
    assert merge_lines(base, side, side) == side


@given(base=DOCUMENTS, ours=DOCUMENTS, theirs=DOCUMENTS)
def test_a_merge_never_raises_and_invents_no_line(base: bytes, ours: bytes, theirs: bytes) -> None:
    result = merge_lines(base, ours, theirs)
    if result is not None:
        known = b"".join([base, b"\n", ours, b"\n", theirs]).splitlines()
        assert set(result.splitlines()) <= {*known, b""} | {first + second for first in known for second in known}


@pytest.mark.req("FC-UNDO")
@given(gone=st.sets(st.integers(0, 19)), added=st.integers(0, 20))
def test_lines_removed_by_one_and_added_by_the_other_are_both_done(gone: set[int], added: int) -> None:
    base = [f"line {number}\n".encode() for number in range(20)]
    ours = [line for number, line in enumerate(base) if number not in gone]
    theirs = [*base[:added], b"new\n", *base[added:]]
    expected = [line for number, line in enumerate(theirs) if line == b"new\n" or line in ours]
    amid_what_is_gone = {added - 1, added} <= gone
    wanted = None if amid_what_is_gone else b"".join(expected)
    assert merge_lines(b"".join(base), b"".join(ours), b"".join(theirs)) == wanted
    assert merge_lines(b"".join(base), b"".join(theirs), b"".join(ours)) == wanted


@given(first=st.integers(0, 9), second=st.integers(0, 9))
def test_two_removals_are_both_done(first: int, second: int) -> None:
    base = [f"line {number}\n".encode() for number in range(10)]
    ours = b"".join(line for number, line in enumerate(base) if number != first)
    theirs = b"".join(line for number, line in enumerate(base) if number != second)
    both = b"".join(line for number, line in enumerate(base) if number not in {first, second})
    assert merge_lines(b"".join(base), ours, theirs) == both


@pytest.mark.req("FC-UNDO")
def test_a_line_that_both_changed_differently_is_a_conflict() -> None:
    assert merge_lines(b"a\nb\nc\n", b"a\nours\nc\n", b"a\ntheirs\nc\n") is None
    assert merge_lines(b"a\nb\nc\n", b"a\nc\n", b"a\ntheirs\nc\n") is None
    assert merge_lines(b"a\nb\nc\n", b"a\nours\nc\n", b"a\nb\ntheirs\n") is None


def test_a_change_that_both_made_is_made_once() -> None:
    assert merge_lines(b"a\nb\nc\nd\n", b"a\nX\nb\nd\n", b"a\nX\nb\nc\nd\nY\n") == b"a\nX\nb\nd\nY\n"


@pytest.mark.req("FC-UNDO")
def test_what_both_insert_at_one_place_is_kept_from_both() -> None:
    assert merge_lines(b"a\n", b"a\nours\n", b"a\ntheirs\n") == b"a\ntheirs\nours\n"
