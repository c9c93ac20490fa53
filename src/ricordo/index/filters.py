"""What a query may be filtered by, as callers write it: one name or several, a moment in several forms. Pure."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from typing import TypeAlias

from ricordo.errors import InvalidQuery

__all__ = ["Moment", "parse_moment", "parse_names"]

Moment: TypeAlias = datetime | date | str
"""A time with its offset, a day, or either as a text in ISO 8601; a day and a text without offset are in local time."""


def parse_names(name: str, given: object) -> tuple[str, ...]:
    """Return several texts as they are and one text as the only one. Raises: InvalidQuery for anything else."""
    several = [given] if isinstance(given, str) else given
    if isinstance(several, Iterable):
        found = tuple(several)
        if all(isinstance(each, str) and each.strip() for each in found):
            return found
    raise InvalidQuery(
        f"{name} is a text, or several in a list, such as {_EXAMPLES.get(name, ['a'])!r}, not {given!r}."
    )


def parse_moment(name: str, given: object) -> datetime | None:
    """Return the moment that is meant, None for none. Raises: InvalidQuery for what is none, and lacks an offset."""
    if given is None:
        return None
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise InvalidQuery(f"{name} is a moment with an offset, such as {given.isoformat()}+00:00.")
        return given
    try:
        if isinstance(given, date):
            return datetime.combine(given, time.min).astimezone()
        if isinstance(given, str):
            found = datetime.fromisoformat(given.strip())
            return found if found.tzinfo else found.astimezone()
    except (ValueError, OverflowError, OSError):
        pass
    raise InvalidQuery(f"{name} is a moment, such as 2026-11-22 or 2026-11-22T08:00:00+00:00, not {given!r}.")


_EXAMPLES: dict[str, Sequence[str]] = {"kinds": ["decision"], "tags": ["tooling"], "sorts": ["curated", "ledger"]}
