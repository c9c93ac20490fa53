"""Dates in a text, absolute and relative, resolved to days; and the words of the calendar in each language.

Seen from a reference day. A date of the calendar without a year is the nearest one. What can't be resolved is no date.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from functools import cache
from typing import Literal

from ricordo.language.packs import TableKind, pack_phrases, pack_table, pack_words
from ricordo.language.sentences import blank_quotes
from ricordo.lazy import dataclass, lazy_compile

__all__ = ["DateGrain", "DateMention", "Validity", "annotate_dates", "find_dates", "find_validity", "month_numbers"]


@cache
def month_numbers() -> Mapping[str, int]:
    """Return each word for a month with its number, January 1."""
    return _number_table("month")


@cache
def _number_table(kind: TableKind) -> Mapping[str, int]:
    return {word: int(value) for word, value in pack_table(kind).items()}


DateGrain = Literal["day", "weekend", "week", "month", "year"]


@dataclass(frozen=True, kw_only=True)
class DateMention:
    """A date phrase, where it stands (character offsets), the days it covers (both included) and how it was given.

    `relative` is true when the phrase needs the reference day to be understood.
    """

    text: str
    start: int
    end: int
    first: date
    last: date
    grain: DateGrain
    relative: bool = True

    @property
    def iso(self) -> str:
        """The days in ISO form, as short as the grain allows: 2023-05-07, 2023-05, 2023, a span for (week)ends."""
        if self.grain == "day":
            return self.first.isoformat()
        if self.grain in {"week", "weekend"}:
            return f"{self.first.isoformat()} to {self.last.isoformat()}"
        return f"{self.first:%Y-%m}" if self.grain == "month" else str(self.first.year)


def _alternation(words: Iterable[str]) -> str:
    """Return the alternation of words, longest first, for a verbose pattern; it matches nothing if empty."""
    longest_first = sorted(set(words), key=len, reverse=True)
    return "|".join(map(re.escape, longest_first)) or "(?!)"


def _date_pattern() -> str:
    """Return the pattern of all dates; a word from U+2E80 on is of a script without spaces."""
    phrases = {*pack_table("day"), *pack_table("period")}
    months, weekdays = _alternation(pack_table("month")), _alternation(pack_table("weekday"))
    long_months = _alternation(word for word in pack_table("month") if word.isascii() and len(word) > 3)
    unit = _alternation(word for word in pack_table("unit") if word < _EASTERN)
    eastern_unit = _alternation(word for word in pack_table("unit") if word >= _EASTERN)
    lead = _alternation(pack_table("distance_lead")).replace(r"\ ", r"\s+")
    count = rf"\d{{1,3}}|{_alternation(pack_table('number'))}"
    return rf"""
      (?P<iso>(?<!\d){_YEAR}-\d\d-\d\d(?!\d))
    | (?<!\w)(?P<phrase>{_alternation(word for word in phrases if word < _EASTERN)})(?!\w)
    | (?P<eastern>{_alternation(word for word in phrases if word >= _EASTERN)})
    | (?<!\w)(?P<ahead>{_alternation(pack_table("weeks_ahead"))})\s+(?P<ahead_day>{weekdays})(?!\w)
    | (?<!\w)(?P<behind_day>{weekdays})\s+(?P<behind>{_alternation(pack_table("weeks_behind"))})(?!\w)
    | (?<!\w)(?P<dated_day>{weekdays}),?\s+(?P<article>(?:{pack_phrases("time_article")})\s+)?(?P<day_number>\d{{1,2}})
      (?P<ordinal>{pack_phrases("ordinal_suffix")})?(?(article)|(?(ordinal)|(?=[,;:!?)]?(?:\s*$|[,;!?)]|\.(?:\s|$)))))
      (?![\w:./%-]*\d)(?!\w|\s*(?:(?:(?:{pack_phrases("day_of")})\s+)?(?:{months})|[ap]\.?m\b))
    | (?<!\w)(?P<which>{_alternation(pack_table("weekday_side"))})\s+(?P<weekday>{weekdays})(?!\w)
    | (?<!\w)(?P<side>{_alternation(pack_table("unit_side"))})\s+(?P<unit>{pack_phrases("side_unit")})(?!\w)
    | (?<!\w)(?:{pack_phrases("month_side")})\s+(?P<named_month>{long_months})(?!\w)
    | (?<!\w)(?P<number>{count})(?:\s+(?:{pack_phrases("count_of")}))?\s+(?P<ago_unit>{unit})
      \s+(?:{pack_phrases("ago")})(?!\w)
    | (?<!\w)(?:(?:{_alternation(pack_words("duration_preposition"))})\s+)?(?P<from_number>{count})
      \s+(?P<from_unit>{pack_phrases("from_unit")})\s+(?:{pack_phrases("from_now")})\s+(?P<from_day>{pack_phrases("from_day")})(?!\w)
    | (?<!\w)(?P<lead>{lead})\s+(?P<lead_number>{count})\s+(?P<lead_unit>{unit})(?!\w)
    | (?P<cjk_number>\d{{1,3}}|{pack_phrases("count_character")})(?P<cjk_unit>{eastern_unit})
      (?P<cjk_side>{_alternation(pack_table("distance_tail"))})
    | (?<!\w)(?P<day>\d{{1,2}})(?:{pack_phrases("ordinal_suffix")})?\s+(?:(?:{pack_phrases("day_of")})\s+)?
      (?P<month>{months})(?:,?\s+(?:(?:{pack_phrases("year_of")})\s+)?(?P<year>{_YEAR}))?(?!\w)
    | (?<!\w)(?P<month_first>{months})\.?\s+(?P<day_second>\d{{1,2}})(?:{pack_phrases("day_suffix")})?
      (?:,?\s+(?P<year_third>{_YEAR}))?(?![\w:])
    | (?<!\w)(?P<month_only>{months})(?:\s+(?:{pack_phrases("month_of")}))?,?\s+(?P<year_only>{_YEAR})(?!\w)
    | (?<!\w)(?:{pack_phrases("year_lead")})\s+(?P<bare_year>{_YEAR})(?![\w%])
    """


_EASTERN = "\u2e80"
_NEXT_SIDE, _NEAR_DAYS = 2, 2
_NEAR_MONTHS, _JUST_PAST = 62, 10
"""Days before and after today in which a weekday with a number is looked for, and those in which a past one counts."""
_YEAR = r"(?:19|20)\d\d"
_ASCII_WORD = lazy_compile(r"[a-z]+")
_PATTERN = lazy_compile(_date_pattern, re.IGNORECASE | re.VERBOSE)
# "One page in seven days" and "lost in two weeks" tell how long something took, not when it will be.
_DURATION = lazy_compile(
    lambda: (
        rf"\b(?:\d+|{pack_phrases('duration_lead')})\s+(?:[\w-]+\s+){{0,2}}$"
        rf"|\b(?:{pack_phrases('duration_verb')})(?:\s+[\w-]+){{0,4}}\s+$"
    ),
    re.IGNORECASE,
)


_NO_DATE = lazy_compile(lambda: rf"(?<!\w)(?:{pack_phrases('no_date')})(?!\w)", re.IGNORECASE)
_PART_OF = lazy_compile(lambda: rf"\s+(?:{pack_phrases('count_of')})\b", re.IGNORECASE)
_NARRATED = lazy_compile(lambda: rf"\b(?:{pack_phrases('narrated')})\s+$", re.IGNORECASE)
_EACH_TIME = lazy_compile(lambda: rf"(?<!\w)(?:{pack_phrases('each_time')})\s+$", re.IGNORECASE)
_RECURRING = lazy_compile(
    lambda: rf"(?<!\w)(?:{pack_phrases('recurring', edges=True)})(?!\w)|{pack_phrases('recurring', edges=False)}",
    re.IGNORECASE,
)
_POSSESSIVE = lazy_compile(r"['’]s(?!\w)")


def _weekday_after() -> str:
    """Return the pattern of a day that belongs to the week before it; "Mon" is also a word of French."""
    long_weekday = _alternation(word for word in pack_table("weekday") if len(word) > 4)
    return (
        rf",?\s+(?:(?:{pack_phrases('weekday_lead')})\s+)?(?P<western>{long_weekday})(?!\w)"
        rf"|{pack_phrases('weekday_tail')}|(?P<weekend>{pack_phrases('weekend_tail')})"
    )


# What belongs to a date that stands before it: "next Monday morning", "nächste Woche Montag", "下周一", "来週の月曜".
_WEEKDAY_AFTER = lazy_compile(_weekday_after, re.IGNORECASE)
_DATE_TAIL = {
    "day": lazy_compile(lambda: rf"\s+(?:{pack_phrases('day_time')})(?!\w)|{pack_phrases('day_tail')}", re.IGNORECASE),
    "month": lazy_compile(lambda: pack_phrases("month_tail")),
    "year": lazy_compile(lambda: pack_phrases("year_tail")),
}


def find_dates(text: str, reference: date) -> tuple[DateMention, ...]:
    """Return the resolvable dates of a text in order, seen from the reference day (a datetime counts by its date)."""
    if not _may_name_date(text):
        return ()
    today = date(reference.year, reference.month, reference.day)
    idioms = [match.span() for match in _NO_DATE.finditer(text)]
    return tuple(
        mention
        for match in _PATTERN.finditer(text)
        if not any(start <= match.start() < end for start, end in idioms)
        for mention in _build_mention(match, today)
    )


def _may_name_date(text: str) -> bool:
    """Return False for a text that names no date for sure, without compiling the pattern of all dates."""
    if not text.isascii() or any(map(str.isdigit, text)):
        return True
    return not _calendar_words().isdisjoint(_ASCII_WORD.findall(text.lower()))


@cache
def _calendar_words() -> frozenset[str]:
    """Return words of which each date in ASCII without a digit has one: the longest of each phrase of the calendar."""
    kinds: tuple[TableKind, ...] = ("day", "period", "weekday", "month", "unit")
    phrases = (phrase for kind in kinds for phrase in pack_table(kind) if phrase.isascii())
    return frozenset(max(_ASCII_WORD.findall(phrase), key=len) for phrase in phrases)


def annotate_dates(text: str, reference: date) -> str:
    """Return a text with the day behind each date such as "tomorrow" that needs the day on which it was said.

    A day that stands in the text already, or behind an earlier date, is not put there again, and none is put into a
    quotation or a name, or behind the day of a birthday, which comes again each year.
    """
    mentions = find_dates(text, reference)
    absolute_dates = {mention.iso for mention in mentions if not mention.relative}
    unclear: list[DateMention] = []
    for mention in mentions:
        if mention.iso not in absolute_dates and _may_annotate(text, mention):
            absolute_dates.add(mention.iso)
            unclear.append(mention)
    for mention in reversed(unclear):
        possessive = _POSSESSIVE.match(text, mention.end)
        end = possessive.end() if possessive else mention.end
        text = f"{text[:end]} ({mention.iso}){text[end:]}"
    return text


def _may_annotate(text: str, mention: DateMention) -> bool:
    if not blank_quotes(text)[mention.start : mention.end].strip():
        return False
    words = mention.text.casefold().split()
    in_calendar = any(word.strip(".,") in month_numbers() for word in words)
    if in_calendar and any(map(str.isdigit, mention.text)):
        return _RECURRING.search(text) is None
    return in_calendar or not _is_in_name(text, mention)


def _is_in_name(text: str, mention: DateMention) -> bool:
    """Return whether a phrase is part of a name, as in "Tomorrow Labs"; weekdays have capitals of their own."""
    before, after = text[: mention.start].split(" "), text[mention.end :].lstrip("'’s").strip().split(" ")
    has_capitals = all(word[:1].isupper() for word in mention.text.split())
    is_day = any(word.casefold() in _number_table("weekday") for word in mention.text.split())
    return has_capitals and not is_day and (after[0][:1].isupper() or before[-1][:1].isupper())


def _build_mention(match: re.Match[str], today: date) -> Iterator[DateMention]:
    if (match["lead"] or "").casefold() in pack_words("duration_preposition") and _DURATION.search(
        match.string[max(0, match.start() - 60) : match.start()]
    ):
        return
    if _is_seen_from_elsewhere(match):
        return
    try:
        span = _resolve({key: value.casefold() for key, value in match.groupdict().items() if value}, today)
    except (ValueError, OverflowError):
        return
    if span is not None:
        (first, last, grain, relative), end = _extend_span(span, match)
        yield DateMention(
            text=match.string[match.start() : end],
            start=match.start(),
            end=end,
            first=first,
            last=last,
            grain=grain,
            relative=relative,
        )


def _is_seen_from_elsewhere(match: re.Match[str]) -> bool:
    """Return whether "last week of May", "the next day" or "once a week on Friday" names no day seen from today."""
    text, before = match.string, match.string[max(0, match.start() - 20) : match.start()]
    if match["unit"]:
        return _PART_OF.match(text, match.end()) is not None or _NARRATED.search(before) is not None
    return bool(match["ahead"] and _EACH_TIME.search(before))


_DateSpan = tuple[date, date, DateGrain, bool]


def _extend_span(span: _DateSpan, match: re.Match[str]) -> tuple[_DateSpan, int]:
    """Return the days with what follows them in the same expression, such as a weekday, and where that ends."""
    end = match.end()
    first, last, grain, relative = span
    if not relative:
        return span, end
    if grain == "week" and (weekday_match := _WEEKDAY_AFTER.match(match.string, end)):
        end = weekday_match.end()
        if weekday_match["weekend"]:
            return (first + timedelta(days=5), last, "weekend", True), end
        day, grain = first + timedelta(days=_weekday_number(weekday_match)), "day"
        span = day, day, grain, True
    rest = _DATE_TAIL[grain].match(match.string, end) if grain in _DATE_TAIL else None
    return span, rest.end() if rest else end


def _weekday_number(match: re.Match[str]) -> int:
    """Return the number of the day; a character for it stands in the group of its language."""
    if match["western"]:
        return _number_table("weekday")[match["western"].casefold()]
    language = next(name for name, group in match.groupdict().items() if group)
    return _number_table("weekday_character")[match[language]]


def _resolve(groups: dict[str, str], today: date) -> _DateSpan | None:
    """Pick the rule that the matched groups call for."""
    phrase = groups.get("phrase") or groups.get("eastern")
    if phrase is not None:
        return _resolve_phrase(" ".join(phrase.split()), today)
    if "weekday" in groups:
        side = _number_table("weekday_side")[groups["which"]]
        return _resolve_weekday(_number_table("weekday")[groups["weekday"]], side, today)
    if "ahead_day" in groups or "behind_day" in groups:
        weekday = groups.get("ahead_day") or groups["behind_day"]
        weeks = _number_table("weeks_ahead" if "ahead" in groups else "weeks_behind")[
            " ".join((groups.get("ahead") or groups["behind"]).split())
        ]
        day = _resolve_weekday(_number_table("weekday")[weekday], 1, today)[0] + timedelta(weeks=weeks)
        return day, day, "day", True
    if "dated_day" in groups:
        return _find_dated_weekday(_number_table("weekday")[groups["dated_day"]], int(groups["day_number"]), today)
    if "unit" in groups:
        return _shift_unit(groups["unit"], _number_table("unit_side")[groups["side"]], today)
    return _resolve_absolute(groups, today) or _resolve_distance(groups, today) or _resolve_calendar_day(groups, today)


def _find_dated_weekday(weekday: int, number: int, today: date) -> _DateSpan | None:
    """Return the next day with this weekday and number, "Friday the 13th", or one just past; None if none is near."""
    days = (today + timedelta(days=distance) for distance in range(-_NEAR_MONTHS, _NEAR_MONTHS + 1))
    near = sorted(days, key=lambda day: ((day - today).days < -_JUST_PAST, abs((day - today).days)))
    day = next((each for each in near if each.day == number and each.weekday() == weekday), None)
    return (day, day, "day", True) if day else None


def _resolve_absolute(groups: dict[str, str], today: date) -> _DateSpan | None:
    """A full date, a month or a year."""
    if "iso" in groups:
        day = date.fromisoformat(groups["iso"])
        return day, day, "day", False
    if "bare_year" in groups:
        return _year_span(int(groups["bare_year"]), relative=False)
    if "month_only" in groups:
        return _month_span(month_numbers()[groups["month_only"]], int(groups["year_only"]), today)
    return _month_span(month_numbers()[groups["named_month"]], None, today) if "named_month" in groups else None


def _resolve_phrase(phrase: str, today: date) -> _DateSpan:
    days = _number_table("day").get(phrase)
    if days is not None:
        return _shift_unit("day", days, today)
    unit, steps = pack_table("period")[phrase].split()
    return _shift_unit(unit, int(steps), today)


def _resolve_weekday(weekday: int, side: int, today: date) -> _DateSpan:
    if side < 0:
        day = today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)
    elif side > 0:
        ahead = (weekday - today.weekday() - 1) % 7 + 1
        # who means tomorrow or the day after says so: "next Tuesday" on a Monday is in the week after
        day = today + timedelta(days=ahead + 7 if side == _NEXT_SIDE and ahead <= _NEAR_DAYS else ahead)
    else:
        day = today - timedelta(days=today.weekday()) + timedelta(days=weekday)
    return day, day, "day", True


def _shift_unit(unit: str, steps: int, today: date) -> _DateSpan:
    """The day, weekend, week, month or year so many steps away from the current one."""
    if unit == "day":
        day = today + timedelta(days=steps)
        return day, day, "day", True
    if unit in {"week", "weekend"}:
        monday = today - timedelta(days=today.weekday()) + timedelta(weeks=steps)
        if unit == "week":
            return monday, monday + timedelta(days=6), "week", True
        return monday + timedelta(days=5), monday + timedelta(days=6), "weekend", True
    if unit == "month":
        month_index = today.year * 12 + today.month - 1 + steps
        first, last, grain, _ = _month_span(month_index % 12 + 1, month_index // 12, today)
        return first, last, grain, True
    return _year_span(today.year + steps, relative=True)


def _resolve_distance(groups: dict[str, str], today: date) -> _DateSpan | None:
    """ "Two weeks ago", "in three days", "three weeks from today", "vor zwei Wochen", "三天前"."""
    if "from_unit" in groups:
        return _resolve_from_day(groups, today)
    for number, unit, side in (
        ("number", "ago_unit", -1),
        ("lead_number", "lead_unit", 1),
        ("cjk_number", "cjk_unit", 1),
    ):
        if unit in groups and number in groups:
            lead, tail = " ".join(groups.get("lead", "").split()), groups.get("cjk_side", "")
            sign = _number_table("distance_lead").get(lead) or _number_table("distance_tail").get(tail) or side
            return _shift_unit(pack_table("unit")[groups[unit]], sign * _read_number(groups[number]), today)
    return None


def _read_number(text: str) -> int:
    return int(text) if text.isdigit() else _number_table("number")[text]


def _resolve_from_day(groups: dict[str, str], today: date) -> _DateSpan:
    """Count from a named day: three weeks from today is a day, three months from now a month."""
    count, unit = _read_number(groups["from_number"]), pack_table("unit")[groups["from_unit"]]
    if unit in {"month", "year"}:
        return _shift_unit(unit, count, today)
    days = count * (7 if unit == "week" else 1) + _number_table("day").get(groups["from_day"], 0)
    return _shift_unit("day", days, today)


def _resolve_calendar_day(groups: dict[str, str], today: date) -> _DateSpan | None:
    month = groups.get("month") or groups.get("month_first")
    number = groups.get("day") or groups.get("day_second")
    if month is None or number is None:
        return None
    stated_year = groups.get("year") or groups.get("year_third")
    years = [int(stated_year)] if stated_year else [today.year - 1, today.year, today.year + 1]
    days = [date(year, month_numbers()[month], int(number)) for year in years]
    day = min(days, key=lambda candidate: abs((candidate - today).days))
    return day, day, "day", stated_year is None


def _month_span(month: int, year: int | None, today: date) -> _DateSpan:
    if year is None:
        year = min((today.year - 1, today.year, today.year + 1), key=lambda y: abs((date(y, month, 15) - today).days))
        relative = True
    else:
        relative = False
    first = date(year, month, 1)
    following = date(year + month // 12, month % 12 + 1, 1)
    return first, following - timedelta(days=1), "month", relative


def _year_span(year: int, *, relative: bool) -> _DateSpan:
    return date(year, 1, 1), date(year, 12, 31), "year", relative


@dataclass(frozen=True, kw_only=True, slots=True)
class Validity:
    """The first day on which a statement holds, and the day on which it ends; None where the text does not say."""

    start: date | None = None
    end: date | None = None


def _day_words() -> str:
    """Return the pattern of a weekday, a month, a day of a month or a time, such as "next week", alone."""
    weekdays, months = _alternation(_day_table("weekday")), _alternation(_day_table("month"))
    # a day or a year behind it makes it a date, and any other number is none of its parts
    return (
        rf"(?:(?:{pack_phrases('time_article')})\s+)?(?:(?P<period>{_alternation(pack_table('bound_period'))})"
        rf"|(?:(?P<next>{pack_phrases('next_weekday')})\s+)?(?P<weekday>{weekdays})"
        rf"(?:\s+(?P<next_behind>{pack_phrases('next_weekday_behind')}))?"
        rf"|(?:(?P<number>\d{{1,2}})\s+)?(?P<month>{months}))s?(?![\w])(?!\s+(?:\d{{1,2}}|(?:19|20)\d\d)(?!\d))"
    )


@cache
def _day_table(kind: Literal["weekday", "month"]) -> Mapping[str, int]:
    """Return the words and the further forms of the weekdays or months with their numbers."""
    if kind == "weekday":
        return {**_number_table("weekday_form"), **_number_table("weekday")}
    return {**_number_table("month_form"), **month_numbers()}


_LONE_DAY = lazy_compile(_day_words, re.IGNORECASE)
_BOUND_WORDS = lazy_compile(
    lambda: (
        rf"(?<!\w)(?:(?P<from>{pack_phrases('valid_from')})|(?P<since>{pack_phrases('valid_since')})"
        rf"|(?P<until>{pack_phrases('valid_until')}))\s+"
    ),
    re.IGNORECASE,
)
_BOUND_BEHIND = lazy_compile(
    lambda: rf"\s?(?:(?P<from>{pack_phrases('valid_from_behind')})|(?P<until>{pack_phrases('valid_until_behind')}))"
)
_JOINED_DAY = lazy_compile(
    lambda: (
        rf"(?:(?<![\d/])(?P<month>1[0-2]|[1-9])(?:{pack_phrases('month_sign')})"
        rf"(?:\s?(?P<number>\d{{1,2}})(?:{pack_phrases('day_sign')}))?"
        rf"|(?:(?P<next>{pack_phrases('next_weekday', edges=False)})\s?)?"
        rf"(?P<weekday>{_alternation(word for word in pack_table('weekday_form') if word >= _EASTERN)})"
        rf"(?:{pack_phrases('day_sign')})?"
        rf"|(?P<period>{_alternation(word for word in pack_table('bound_period') if word >= _EASTERN)}))\s?"
        rf"(?:(?P<from>{pack_phrases('valid_from_behind')})|(?P<until>{pack_phrases('valid_until_behind')}))"
    )
)
_PAST_STATE = lazy_compile(
    lambda: rf"(?<!\w)(?:{pack_phrases('past_state', edges=True)})(?!\w)|{pack_phrases('past_state', edges=False)}",
    re.IGNORECASE,
)
_ONGOING_STATE = lazy_compile(lambda: pack_phrases("ongoing_state"))
_ARTICLE_LENGTH = 4


def find_validity(text: str, reference: date) -> Validity:
    """Return from when and until when a statement holds by its words, seen from the day on which it was said.

    "From Monday we use pnpm" begins on the coming Monday, "the port was 8080 until March" ended on the last first of
    March. A day that begins or ends a list of hours, as in "from Monday to Friday", is no bound.
    """
    bounds = [*_BOUND_WORDS.finditer(text)]
    if not bounds and text.isascii():
        return Validity()
    today = date(reference.year, reference.month, reference.day)
    mentions = find_dates(text, today)
    start = end = None
    is_past = _PAST_STATE.search(text) is not None
    day_end = -2
    for bound in bounds:
        is_range = bound["until"] and bound.start() == day_end + 1
        lone = _LONE_DAY.match(text, bound.end())
        day_end = lone.end() if lone else -2
        day = None if is_range else _bound_day(text, bound, mentions, today, is_past=is_past)
        if day is not None and bound["until"]:
            end = end or day
        elif day is not None:
            start = start or day
    for mention in mentions:
        if behind := _BOUND_BEHIND.match(text, mention.end):
            start, end = (start or mention.first, end) if behind["from"] else (start, end or mention.first)
    for joined in _JOINED_DAY.finditer(text):
        looks_back = bool(is_past if joined["until"] else _ONGOING_STATE.search(text))
        day = _resolve_lone_day(joined, today, looks_back=looks_back, nearest=True)
        start, end = (start or day, end) if joined["from"] else (start, end or day)
    return Validity(start=start, end=end) if start is None or end is None or start < end else Validity()


def _bound_day(
    text: str, bound: re.Match[str], mentions: Iterable[DateMention], today: date, *, is_past: bool
) -> date | None:
    """Return the day that stands right behind the words of a bound."""
    for mention in mentions:
        if 0 <= mention.start - bound.end() <= _ARTICLE_LENGTH:
            return mention.first
    lone = _LONE_DAY.match(text, bound.end())
    if lone is None or _BOUND_WORDS.match(text, lone.end() + 1) or _RANGE_BEHIND.match(text, lone.end()):
        return None
    looks_back = bound["since"] is not None or (bound["until"] is not None and is_past)
    return _resolve_lone_day(lone, today, looks_back=looks_back, begins=bound["from"] is not None)


def _resolve_lone_day(
    lone: re.Match[str], today: date, *, looks_back: bool, begins: bool = False, nearest: bool = False
) -> date | None:
    """Return the day of a weekday, month or time that stands alone; None for a day that its month does not have.

    It is the next one, with `looks_back` the last one, with `nearest` the nearest month. The month that runs is the
    next one for what `begins`.
    """
    if lone["period"]:
        unit, steps = pack_table("bound_period")[lone["period"].casefold()].split()
        return _shift_unit(unit, int(steps), today)[0]
    if lone["weekday"]:
        weekday = _day_table("weekday")[lone["weekday"].casefold()]
        if lone["next"] and nearest:
            return _shift_unit("week", 1, today)[0] + timedelta(days=weekday)
        is_next = lone["next"] or (not nearest and lone["next_behind"])
        return _resolve_weekday(weekday, -1 if looks_back else _NEXT_SIDE if is_next else 1, today)[0]
    month = int(lone["month"]) if nearest else _day_table("month")[lone["month"].casefold()]
    try:
        days = [date(today.year + years, month, int(lone["number"] or 1)) for years in (-1, 0, 1)]
    except ValueError:
        return None
    if nearest and not looks_back:
        return min(days, key=lambda each: abs((each - today).days))
    # what holds from the month on that runs began with it
    ahead = (day for day in days if day > today or (begins and (day.year, day.month) == (today.year, today.month)))
    return max(day for day in days if day <= today) if looks_back else min(ahead)


_RANGE_BEHIND = lazy_compile(
    lambda: rf"\s*(?:[-\u2013]|(?:{pack_phrases('to')}|{pack_phrases('valid_until')})(?!\w))\s*(?:\d|{_day_words()})",
    re.IGNORECASE,
)
