"""The time that a question names: "in June", "last week", "before May 2023", and how near a passage is to it. Pure.

People tell of a thing when it happens or soon after, so what was said in the two weeks after the time still counts, the
later the less. "Before" and "after", and their like in the languages that dates are read in, open the time on one side.
A month or day without a year is the latest one: memory is asked for what was.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

from ricordo.language import DateMention, find_dates
from ricordo.language.date_words import MONTHS

__all__ = ["DateRange", "find_date_ranges", "date_closeness"]

_FOLLOW_UP_DAYS = 14
_NEAR_FUTURE_DAYS = 45
_FEBRUARY = 2
_ARTICLE = r"\s+(?:(?:the|dem|der|le|la|el|il|o|a|de|del|di|do|da)\s+)?$"
_BEFORE = re.compile(
    rf"(?:\b(?:before|until|till|by|vor|bis|avant|jusqu'(?:à|en|au)|antes|hasta|prima|fino a|até)){_ARTICLE}", re.I
)
_AFTER = re.compile(
    rf"(?:\b(?:after|since|nach|seit|après|depuis|después|desde|dopo|dal|depois)){_ARTICLE}", re.I
)  # fmt: skip
_PREPOSITIONS = (
    r"in|during|of|last|before|until|till|after|since|im|seit|vor|nach|bis|letzten|en|avant|après|depuis|antes de|desde"
    r"|después de|a|prima di|dopo|da|em|até|depois de"
)
_BARE_MONTH = re.compile(
    rf"\b(?:{_PREPOSITIONS})\s+(?P<month>{'|'.join(sorted(MONTHS, key=len, reverse=True))})\b(?!\s*,?\s*\d)"
    r"|(?<![\d年])(?P<number>1[0-2]|[1-9])月(?!\s*\d)",
    re.IGNORECASE,
)
_BEFORE_SUFFIX = re.compile(r"\s*(?:之前|以前|までに|より前)")
_AFTER_SUFFIX = re.compile(r"\s*(?:之后|之後|以后|以後|以来|以降|から)")


@dataclass(frozen=True, kw_only=True)
class DateRange:
    """Days that a question means, both included."""

    first: date
    last: date


@lru_cache(maxsize=256)
def find_date_ranges(text: str, today: date) -> tuple[DateRange, ...]:
    """Return the times that `text` names, understood on the day `today`; none where it names no time."""
    mentions = find_dates(text, today)
    found = [_date_range(text, each.start, each.end, *_shift_to_past(each, today)) for each in mentions]
    for match in _BARE_MONTH.finditer(text):
        at = match.start("month") if match["month"] else match.start()
        if not any(each.start < match.end() and at < each.end for each in mentions):
            month = MONTHS[match["month"].casefold()] if match["month"] else int(match["number"])
            found.append(_date_range(text, at, match.end(), *_latest_month(month, today)))
    return tuple(found)


def date_closeness(day: date, spans: Sequence[DateRange]) -> float:
    """Return 1 for a day inside a span, less for the days after it, 0 two weeks after it and before it."""
    return max((_range_closeness(day, span) for span in spans), default=0.0)


def _shift_to_past(mention: DateMention, today: date) -> tuple[date, date]:
    """Return the days a year earlier where a day or month without a year was taken for one that is far off."""
    first, last = mention.first, mention.last
    named = any(word in MONTHS for word in mention.text.casefold().split())
    soon = today + timedelta(days=_NEAR_FUTURE_DAYS if mention.grain == "day" else 0)
    if not (mention.relative and named and first > soon):
        return first, last
    return _latest_month(first.month, today) if mention.grain == "month" else (_year_before(first), _year_before(last))


def _year_before(day: date) -> date:
    return day.replace(year=day.year - 1, day=min(day.day, 28) if day.month == _FEBRUARY else day.day)


def _latest_month(month: int, today: date) -> tuple[date, date]:
    """Return the days of the latest such month that has begun."""
    year = today.year if month <= today.month else today.year - 1
    following = date(year + month // 12, month % 12 + 1, 1)
    return date(year, month, 1), following - timedelta(days=1)


def _date_range(text: str, start: int, end: int, first: date, last: date) -> DateRange:
    lead = text[max(start - 16, 0) : start]
    if _BEFORE.search(lead) or _BEFORE_SUFFIX.match(text, end):
        return DateRange(first=date.min, last=max(first, date.min + timedelta(days=1)) - timedelta(days=1))
    if _AFTER.search(lead) or _AFTER_SUFFIX.match(text, end):
        return DateRange(first=first, last=date.max)
    return DateRange(first=first, last=last)


def _range_closeness(day: date, span: DateRange) -> float:
    if day <= span.last:
        return float(day >= span.first)
    # a time that is open to the past ends where it says
    late = (day - span.last).days if span.first != date.min else _FOLLOW_UP_DAYS
    return max(1 - late / _FOLLOW_UP_DAYS, 0.0)
