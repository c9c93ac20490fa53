"""Argument checks that types can't express; each error says what is expected. Pure."""

import math

from ricordo.errors import InvalidInput, InvalidQuery, InvalidScope, InvalidSetting, ScopeRequired
from ricordo.messages.tokens import Tokens
from ricordo.scope import Scope

__all__ = ["check_budget", "check_limit", "check_scope", "check_seconds", "check_type", "short_repr"]


_MAX_SHOWN_CHARS = 80


def check_type(name: str, value: object, *kinds: type, words: str, error: type[InvalidInput] = InvalidSetting) -> None:
    """Refuse a value of another type; `words` describe the expected one. A bool does not count as a number."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise error(f"{name} is {words}, not {short_repr(value)}.")


def check_scope(given: object) -> Scope:
    """Return the given scope. Raises: ScopeRequired for None; InvalidScope for anything but a scope."""
    if given is None:
        raise ScopeRequired
    if not isinstance(given, Scope):
        raise InvalidScope(f'A scope is a value such as Scope(user="me", project="shop"), not {short_repr(given)}.')
    return given


def check_budget(given: object) -> Tokens | None:
    """Return the given budget or None. Raises: InvalidSetting for a value without a unit, such as 500."""
    if given is None or isinstance(given, Tokens):
        return given
    raise InvalidSetting(f"A budget is `Tokens(500)` or None, not {short_repr(given)}.")


def check_limit(given: object, *, least: int = 1) -> int:
    """Return the given limit. Raises: InvalidQuery unless it is a whole number of at least `least`."""
    words = f"a whole number of at least {least}"
    check_type("limit", given, int, words=words, error=InvalidQuery)
    if not isinstance(given, int) or given < least:
        raise InvalidQuery(f"limit is {words}, not {given!r}.")
    return given


def check_seconds(given: object) -> float:
    """Return the given seconds. Raises: InvalidSetting unless it is a finite number of at least 0."""
    words = "a number of at least 0"
    check_type("seconds", given, int, float, words=words)
    if not isinstance(given, int | float) or not 0 <= given < math.inf:
        raise InvalidSetting(f"seconds is {words}, not {given!r}.")
    return given


def short_repr(value: object) -> str:
    """Return the repr of a value, shortened for a message."""
    shown = repr(value)
    return shown if len(shown) <= _MAX_SHOWN_CHARS else f"{shown[: _MAX_SHOWN_CHARS - 1]}…"
