"""Argument checks that types can't express; each error says what is expected. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, get_args

from ricordo.errors import InvalidEntry, InvalidInput, InvalidQuery, InvalidScope, InvalidSetting, ScopeRequired
from ricordo.messages.tokens import Tokens
from ricordo.scope import Scope
from ricordo.search.contract import parse_moment, parse_names
from ricordo.stores.root_reader import newest_key
from ricordo.workspace.entry import Entry, EntryFilter, EntryState
from ricordo.workspace.ledger import resolve_id

__all__ = [
    "MetadataFilter",
    "check_budget",
    "check_limit",
    "check_metadata",
    "check_scope",
    "check_seconds",
    "check_several",
    "check_texts",
    "check_type",
    "make_filter",
    "parse_metadata_filter",
    "short_repr",
    "skip_to",
]


MetadataFilter: TypeAlias = Mapping[str, str | Iterable[str]]
"""Values of metadata by name: the value that an entry has, or several of which it has one."""
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


def check_texts(*given: object) -> None:
    """Raise InvalidQuery unless all of these ids and reasons are texts."""
    for each in given:
        check_type("An id, and a reason,", each, str, words="a text", error=InvalidQuery)


def check_metadata(given: object) -> dict[str, str]:
    """Return metadata as a dict, empty for None. Raises: InvalidEntry unless it has texts by name."""
    found = {} if given is None else given
    if not isinstance(found, Mapping) or not all(isinstance(one, str) for pair in found.items() for one in pair):
        raise InvalidEntry(f'Metadata are texts by name, such as {{"area": "payments"}}, not {short_repr(given)}.')
    return dict(found)


def check_several(given: object) -> tuple[Any, ...]:
    """Return several values as a tuple. Raises: InvalidEntry for a single text, or for what holds no values."""
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise InvalidEntry(f"Several values are expected, such as [{short_repr(given)}], not one.")
    return tuple(given)


def make_filter(
    *, kinds: object, tags: object, states: object, since: object, until: object, metadata: object
) -> EntryFilter:
    """Return the filter of these arguments of a public method. Raises: InvalidQuery for an invalid one."""
    wanted = EntryFilter(
        kinds=parse_names("kinds", kinds),
        tags=parse_names("tags", tags),
        states=parse_names("states", states),
        since=parse_moment("since", since),
        until=parse_moment("until", until),
        metadata=parse_metadata_filter(metadata),
    )
    if unknown := {*wanted.states}.difference(get_args(EntryState)):
        known = ", ".join(get_args(EntryState))
        raise InvalidQuery(f"states are of {known}, not {', '.join(sorted(map(repr, unknown)))}.")
    return wanted


def skip_to(found: Sequence[Entry], after: object) -> list[Entry]:
    """Return the entries, newest first, that come after the entry `after`, or after the one with this id.

    Raises: EntryNotFound if none has the id; InvalidQuery for anything else.
    """
    check_type("after", after, str, Entry, words="the last entry of the page before, or its id", error=InvalidQuery)
    if isinstance(after, str):
        chosen = resolve_id([entry.id for entry in found], after)
        after = next(entry for entry in found if entry.id == chosen)
    assert isinstance(after, Entry)
    last = newest_key(after)
    return [entry for entry in found if newest_key(entry) < last]


def parse_metadata_filter(given: object) -> dict[str, tuple[str, ...]]:
    """Return the wanted values of metadata by name, empty for None. Raises: InvalidQuery unless it has such values."""
    found = {} if given is None else given
    if not isinstance(found, Mapping) or not all(isinstance(name, str) for name in found):
        raise InvalidQuery(f'metadata has values by name, such as {{"area": "payments"}}, not {short_repr(given)}.')
    return {name: parse_names("metadata", value) for name, value in found.items()}


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
