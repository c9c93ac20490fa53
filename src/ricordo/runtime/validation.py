"""Checks of arguments that types can't make; each error says what is expected. Pure."""

import math

from ricordo.errors import InvalidInput, InvalidQuery, InvalidScope, InvalidSetting, ScopeRequired
from ricordo.messages.tokens import Tokens
from ricordo.scope import Scope

__all__ = ["check_budget", "check_limit", "check_scope", "check_seconds", "check_type", "short_repr"]


_MAX_SHOWN_CHARS = 80


def check_type(name: str, value: object, *kinds: type, words: str, error: type[InvalidInput] = InvalidSetting) -> None:
    """Refuse a value that is of none of these kinds; `words` say what it is to be. A truth value is no number."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise error(f"{name} is {words}, not {short_repr(value)}.")


def check_scope(given: object) -> Scope:
    """Return whose memory it is. Raises: ScopeRequired for None; InvalidScope for what is no scope."""
    if given is None:
        raise ScopeRequired
    if not isinstance(given, Scope):
        raise InvalidScope(f'A scope is a value such as Scope(user="me", project="shop"), not {short_repr(given)}.')
    return given


def check_budget(given: object) -> Tokens | None:
    """Return a budget, None for none. Raises: InvalidSetting for what says no unit, such as 500."""
    if given is None or isinstance(given, Tokens):
        return given
    raise InvalidSetting(f"A budget is `Tokens(500)` or None, not {short_repr(given)}.")


def check_limit(given: object, *, least: int = 1) -> int:
    """Return how many are wanted at most. Raises: InvalidQuery for no whole number of at least `least`."""
    words = f"a whole number of at least {least}"
    check_type("limit", given, int, words=words, error=InvalidQuery)
    if not isinstance(given, int) or given < least:
        raise InvalidQuery(f"limit is {words}, not {given!r}.")
    return given


def check_seconds(given: object) -> float:
    """Return a number of seconds. Raises: InvalidSetting for no finite number of at least 0."""
    words = "a number of at least 0"
    check_type("seconds", given, int, float, words=words)
    if not isinstance(given, int | float) or not 0 <= given < math.inf:
        raise InvalidSetting(f"seconds is {words}, not {given!r}.")
    return given


def short_repr(value: object) -> str:
    """Return what a value looks like, in so many characters that a message can show it."""
    shown = repr(value)
    return shown if len(shown) <= _MAX_SHOWN_CHARS else f"{shown[: _MAX_SHOWN_CHARS - 1]}…"
