"""Argument checks that types can't express; each error says what is expected. Pure."""

import math
from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Any, TypeAlias, get_args

from ricordo.errors import InvalidEntry, InvalidInput, InvalidQuery, InvalidScope, InvalidSetting, ScopeRequired
from ricordo.messages.tokens import Tokens
from ricordo.scope import Scope
from ricordo.search.contract import parse_moment, parse_names
from ricordo.workspace.entry import Author, Entry, EntryFilter, EntryState, with_metadata
from ricordo.workspace.history.audit import AuditFilter

__all__ = [
    "MetadataFilter",
    "check_after",
    "check_budget",
    "check_entries",
    "check_limit",
    "check_metadata",
    "check_scope",
    "check_seconds",
    "check_several",
    "check_texts",
    "check_type",
    "make_audit_filter",
    "make_entry",
    "make_filter",
    "parse_metadata_filter",
    "short_repr",
]


MetadataFilter: TypeAlias = Mapping[str, str | Iterable[str]]
"""Values of metadata by name: the value that an entry has, or several of which it has one."""
_MAX_SHOWN_CHARS = 80


def check_type(name: str, value: object, *kinds: type, words: str, error: type[InvalidInput] = InvalidSetting) -> None:
    """Refuse a value of another type; `words` describe the expected one. A bool does not count as a number."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise error(f"{name} is {words}, not {short_repr(value)}.")


def check_scope(scope: object) -> Scope:
    """Return the given scope. Raises: ScopeRequired for None; InvalidScope for anything but a scope."""
    if scope is None:
        raise ScopeRequired
    if not isinstance(scope, Scope):
        raise InvalidScope(f'A scope is a value such as Scope(user="me", project="shop"), not {short_repr(scope)}.')
    return scope


def check_budget(budget: object) -> Tokens | None:
    """Return the given budget or None. Raises: InvalidSetting for a value without a unit, such as 500."""
    if budget is None or isinstance(budget, Tokens):
        return budget
    raise InvalidSetting(f"A budget is `Tokens(500)` or None, not {short_repr(budget)}.")


def check_limit(limit: object, *, minimum: int = 1) -> int:
    """Return the given limit. Raises: InvalidQuery unless it is a whole number of at least `minimum`."""
    words = f"a whole number of at least {minimum}"
    check_type("limit", limit, int, words=words, error=InvalidQuery)
    if not isinstance(limit, int) or limit < minimum:
        raise InvalidQuery(f"limit is {words}, not {limit!r}.")
    return limit


def check_texts(*texts: object) -> None:
    """Raise InvalidQuery unless all of these ids and reasons are texts."""
    for each in texts:
        check_type("An id, and a reason,", each, str, words="a text", error=InvalidQuery)


def check_metadata(metadata: object) -> dict[str, str]:
    """Return metadata as a dict, empty for None. Raises: InvalidEntry unless it has texts by name."""
    values = {} if metadata is None else metadata
    if not isinstance(values, Mapping) or not all(isinstance(one, str) for pair in values.items() for one in pair):
        raise InvalidEntry(f'Metadata are texts by name, such as {{"area": "payments"}}, not {short_repr(metadata)}.')
    return dict(values)


def check_several(values: object) -> tuple[Any, ...]:
    """Return several values as a tuple. Raises: InvalidEntry for a single text, or for what holds no values."""
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise InvalidEntry(f"Several values are expected, such as [{short_repr(values)}], not one.")
    return tuple(values)


def make_entry(
    content: str,
    kind: str,
    tags: object,
    metadata: object,
    *,
    scope: Scope | None,
    reason: str | None,
    rule: str | None,
    since: object,
    by: Author,
) -> Entry:
    """Return the entry of these arguments of `Memory.remember`. Raises: InvalidEntry; InvalidScope; InvalidQuery."""
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise InvalidEntry(f"The tags of an entry are several texts, such as [{tags!r}], not one.")
    for name, value in (("reason", reason), ("rule", rule)):
        check_type(name, value, str, NoneType, words="a text or None", error=InvalidEntry)
    entry = Entry(
        content=content,
        kind=kind,
        tags=tuple(tags),
        scope=None if scope is None else check_scope(scope),
        reason=reason,
        rule=rule,
        since=parse_moment("since", since),
        by=by,
    )
    return with_metadata(entry, check_metadata(metadata))


def check_entries(entries: object) -> list[Entry]:
    """Return several entries, one with the kind `fact` for each text. Raises: InvalidEntry for anything else."""
    given = [Entry(content=each) if isinstance(each, str) else each for each in check_several(entries)]
    for each in given:
        check_type("An entry to remember", each, Entry, words="an `Entry` or a text", error=InvalidEntry)
    return given


_NO_FILTER = EntryFilter()


def make_filter(
    *, kinds: object, tags: object, states: object, since: object, until: object, metadata: object
) -> EntryFilter:
    """Return the filter of these arguments of a public method. Raises: InvalidQuery for an invalid one."""
    if (kinds, tags, states, since, until, metadata) == ((), (), (), None, None, None):
        return _NO_FILTER
    entry_filter = EntryFilter(
        kinds=parse_names("kinds", kinds),
        tags=parse_names("tags", tags),
        states=parse_names("states", states),
        since=parse_moment("since", since),
        until=parse_moment("until", until),
        metadata=parse_metadata_filter(metadata),
    )
    if unknown := {*entry_filter.states}.difference(get_args(EntryState)):
        known_states = ", ".join(get_args(EntryState))
        raise InvalidQuery(f"states are of {known_states}, not {', '.join(sorted(map(repr, unknown)))}.")
    return entry_filter


def make_audit_filter(
    acts: object, texts: Mapping[str, object], scope: object, times: tuple[object, object]
) -> AuditFilter:
    """Return the filter of these arguments of `Memory.audit`; `times` are since and until.

    `texts` are the user, session and entry. Raises: InvalidQuery; InvalidScope.
    """
    for name, value in texts.items():
        check_type(name, value, str, NoneType, words="a text or None", error=InvalidQuery)
    since, until = times
    return AuditFilter(
        acts=frozenset(parse_names("acts", acts)),
        scope=None if scope is None else check_scope(scope),
        since=parse_moment("since", since),
        until=parse_moment("until", until),
        **{name: value for name, value in texts.items() if isinstance(value, str)},
    )


def check_after(after: object) -> Entry | str | None:
    """Return the entry, or its id, after which a page begins, or None. Raises: InvalidQuery for anything else."""
    words = "the last entry of the page before, or its id"
    check_type("after", after, str, Entry, NoneType, words=words, error=InvalidQuery)
    return after if isinstance(after, str | Entry) else None


def parse_metadata_filter(metadata: object) -> dict[str, tuple[str, ...]]:
    """Return the wanted values of metadata by name, empty for None. Raises: InvalidQuery unless it has such values."""
    values = {} if metadata is None else metadata
    if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
        raise InvalidQuery(f'metadata has values by name, such as {{"area": "payments"}}, not {short_repr(metadata)}.')
    return {name: parse_names("metadata", value) for name, value in values.items()}


def check_seconds(seconds: object) -> float:
    """Return the given seconds. Raises: InvalidSetting unless it is a finite number of at least 0."""
    words = "a number of at least 0"
    check_type("seconds", seconds, int, float, words=words)
    if not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise InvalidSetting(f"seconds is {words}, not {seconds!r}.")
    return seconds


def short_repr(value: object) -> str:
    """Return the repr of a value, shortened for a message."""
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN_CHARS else f"{text[: _MAX_SHOWN_CHARS - 1]}…"
