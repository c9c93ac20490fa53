"""Limits as a number or a share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.errors import InvalidSetting
from ricordo.messages import Tokens
from ricordo.messages.tokens import Share, resolve_budget


@pytest.mark.req("AS-COMPACT-17")
def test_a_share_is_of_the_window_and_rounded_down() -> None:
    assert resolve_budget(Share(0.8), 128_000) == 102_400
    assert resolve_budget(Share(0.5), 3) == 1
    assert resolve_budget(Share(1), 7) == 7


def test_a_count_is_itself_but_never_more_than_the_window() -> None:
    assert resolve_budget(Tokens(80_000), 200_000) == 80_000
    assert resolve_budget(Tokens(80_000), 32_000) == 32_000
    assert resolve_budget(Tokens(0), 32_000) == 0


@given(
    st.one_of(st.integers(0, 10**7).map(Tokens), st.floats(0, 1, exclude_min=True).map(Share)), st.integers(1, 10**7)
)
def test_a_limit_is_never_outside_the_window(budget: Tokens | Share, window: int) -> None:
    assert 0 <= resolve_budget(budget, window) <= window


@pytest.mark.req("AS-CFG-01")
@pytest.mark.parametrize("count", [-1, 0.8, True, "5"])
def test_a_count_that_is_no_whole_number_is_refused(count: int) -> None:
    with pytest.raises(InvalidSetting, match="Tokens"):
        Tokens(count)


@pytest.mark.parametrize("part", [0, -0.1, 1.01, 80_000, float("nan"), True, "0.5"])
def test_a_share_that_is_no_part_is_refused(part: float) -> None:
    with pytest.raises(InvalidSetting, match="Share"):
        Share(part)


def test_a_window_without_tokens_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="window"):
        resolve_budget(Share(0.5), 0)


def test_the_two_kinds_of_limit_are_never_equal() -> None:
    assert len({Tokens(1), Share(1)}) == 2
