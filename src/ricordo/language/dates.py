"""Dates in a text, absolute and relative, resolved to days; and the words of the calendar in each language.

Seen from a reference day. A date of the calendar without a year is the nearest one. What can't be resolved is no date.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

from ricordo.lazy import lazy_compile

__all__ = [
    "DAY_WORDS",
    "MONTHS",
    "NUMBERS",
    "PERIOD_WORDS",
    "UNITS",
    "WEEKDAYS",
    "DateGrain",
    "DateMention",
    "annotate_dates",
    "find_dates",
]


def _number_words(*rows: str) -> Mapping[str, int]:
    """Number the words of each row by their place; words joined by a slash share one."""
    return {word: at for row in rows for at, group in enumerate(row.split()) for word in group.split("/")}


WEEKDAYS: Mapping[str, int] = _number_words(
    "monday/mon tuesday/tue/tues wednesday/wed thursday/thu/thur/thurs friday/fri saturday/sat sunday/sun",
    "montag dienstag mittwoch donnerstag freitag samstag/sonnabend sonntag",
    "lundi mardi mercredi jeudi vendredi samedi dimanche",
    "lunes martes miércoles jueves viernes sábado domingo",
    "lunedì martedì mercoledì giovedì venerdì sabato domenica",
    "segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado domingo",
)
"""Weekday word to its number, Monday 0."""
MONTHS: Mapping[str, int] = {
    word: at + 1
    for word, at in _number_words(
        "january/jan february/feb march/mar april/apr may june/jun july/jul august/aug september/sept/sep october/oct "
        "november/nov december/dec",
        "januar februar märz april mai juni juli august september oktober november dezember",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    ).items()
}
"""Month word to its number, January 1."""
DAY_WORDS: Mapping[str, int] = {
    "today": 0, "tonight": 0, "this morning": 0, "this afternoon": 0, "this evening": 0, "yesterday": -1,
    "last night": -1, "tomorrow": 1, "tomorrow morning": 1, "tomorrow afternoon": 1, "tomorrow evening": 1,
    "tomorrow night": 1, "yesterday morning": -1, "yesterday afternoon": -1, "yesterday evening": -1,
    "day before yesterday": -2, "day after tomorrow": 2,
    "heute": 0, "gestern": -1, "vorgestern": -2, "übermorgen": 2,
    "aujourd'hui": 0, "hier": -1, "avant-hier": -2, "demain": 1, "après-demain": 2,
    "hoy": 0, "ayer": -1, "anteayer": -2, "pasado mañana": 2,
    "oggi": 0, "ieri": -1, "domani": 1, "dopodomani": 2,
    "hoje": 0, "ontem": -1, "anteontem": -2, "amanhã": 1,
    "今天": 0, "昨天": -1, "前天": -2, "明天": 1, "后天": 2, "昨晚": -1,
    "今日": 0, "昨日": -1, "一昨日": -2, "明日": 1, "明後日": 2,
}  # fmt: skip
"""Phrase to its distance from today in days; "the other day" names no day and is left out."""
PERIOD_WORDS: Mapping[str, tuple[str, int]] = {
    "letzte woche": ("week", -1), "nächste woche": ("week", 1), "diese woche": ("week", 0),
    "letzten monat": ("month", -1), "nächsten monat": ("month", 1), "letztes jahr": ("year", -1),
    "nächstes jahr": ("year", 1),
    "la semaine dernière": ("week", -1), "la semaine prochaine": ("week", 1), "le mois dernier": ("month", -1),
    "le mois prochain": ("month", 1), "l'année dernière": ("year", -1), "l'an dernier": ("year", -1),
    "l'année prochaine": ("year", 1),
    "la semana pasada": ("week", -1), "la próxima semana": ("week", 1), "el mes pasado": ("month", -1),
    "el próximo mes": ("month", 1), "el año pasado": ("year", -1), "el próximo año": ("year", 1),
    "la settimana scorsa": ("week", -1), "la prossima settimana": ("week", 1), "il mese scorso": ("month", -1),
    "il prossimo mese": ("month", 1), "l'anno scorso": ("year", -1), "l'anno prossimo": ("year", 1),
    "semana passada": ("week", -1), "próxima semana": ("week", 1), "mês passado": ("month", -1),
    "próximo mês": ("month", 1), "ano passado": ("year", -1), "próximo ano": ("year", 1),
    "上周": ("week", -1), "下周": ("week", 1), "本周": ("week", 0), "这周": ("week", 0), "上星期": ("week", -1),
    "下星期": ("week", 1), "上个星期": ("week", -1), "下个星期": ("week", 1),
    "上个月": ("month", -1), "下个月": ("month", 1), "去年": ("year", -1),
    "明年": ("year", 1),
    "先週": ("week", -1), "来週": ("week", 1), "今週": ("week", 0),
    "先月": ("month", -1), "来月": ("month", 1), "昨年": ("year", -1),
    "来年": ("year", 1),
}  # fmt: skip
"""Phrase to its unit and its distance from the current one."""
UNITS: Mapping[str, str] = {
    "day": "day", "days": "day", "week": "week", "weeks": "week", "month": "month", "months": "month", "year": "year",
    "years": "year", "yr": "year", "yrs": "year", "weekend": "weekend", "weekends": "weekend",
    "tag": "day", "tagen": "day", "tage": "day", "woche": "week", "wochen": "week", "monat": "month",
    "monaten": "month", "jahr": "year", "jahren": "year",
    "jour": "day", "jours": "day", "semaine": "week", "semaines": "week", "mois": "month", "an": "year", "ans": "year",
    "día": "day", "días": "day", "semana": "week", "semanas": "week", "mes": "month", "meses": "month", "año": "year",
    "años": "year",
    "giorno": "day", "giorni": "day", "settimana": "week", "settimane": "week", "mese": "month", "mesi": "month",
    "anno": "year", "anni": "year",
    "dia": "day", "dias": "day", "mês": "month", "ano": "year", "anos": "year",
    "天": "day", "周": "week", "个月": "month", "年": "year", "日": "day", "週間": "week", "か月": "month",
}  # fmt: skip
"""Unit word to day, week, weekend, month or year."""
NUMBERS: Mapping[str, int] = {
    **_number_words("zero one two three four five six seven eight nine ten eleven twelve"),
    **_number_words("null ein/eine/einem/einer zwei drei vier fünf sechs sieben acht neun zehn"),
    **_number_words("zéro un/une deux trois quatre cinq six sept huit neuf dix"),
    **_number_words("cero un/una/uno dos tres cuatro cinco seis siete ocho nueve diez"),
    **_number_words("zero un/una due tre quattro cinque sei sette otto nove dieci"),
    **_number_words("zero um/uma dois/duas três quatro cinco seis sete oito nove dez"),
    **_number_words("零 一 二/两 三 四 五 六 七 八 九 十"),
    "a": 1, "an": 1, "couple": 2,
}  # fmt: skip
"""Number word to its value; "a few" and "several" are no numbers and stay unresolved."""


DateGrain = Literal["day", "weekend", "week", "month", "year"]


@dataclass(frozen=True, kw_only=True, slots=True)
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


def _alternation(*tables: object) -> str:
    """Alternation of the words of some tables, longest first."""
    listed = sorted({str(word) for table in tables for word in table}, key=len, reverse=True)  # type: ignore[attr-defined]
    return "|".join(re.escape(word) for word in listed)


_WESTERN = {word for word in (*DAY_WORDS, *PERIOD_WORDS) if word < "\u2e80"}
_EASTERN = {word for word in (*DAY_WORDS, *PERIOD_WORDS) if word >= "\u2e80"}
_UNIT = _alternation(unit for unit in UNITS if unit < "\u2e80")
_COUNT = _alternation(NUMBERS)
_LONG_MONTH = _alternation(month for month in MONTHS if month.isascii() and len(month) > 3)
# "Mon" is also a word of French, and "sat" one of English.
_LONG_WEEKDAY = _alternation(weekday for weekday in WEEKDAYS if len(weekday) > 4)
_YEAR = r"(?:19|20)\d\d"
_PATTERN = lazy_compile(
    rf"""
      (?P<iso>(?<!\d){_YEAR}-\d\d-\d\d(?!\d))
    | (?<!\w)(?P<phrase>{_alternation(_WESTERN)})(?!\w)
    | (?P<eastern>{_alternation(_EASTERN)})
    | (?<!\w)(?P<which>last|next|this|past|coming|letzten?|nächsten?|kommenden?)\s+
      (?P<weekday>{_alternation(WEEKDAYS)})(?!\w)
    | (?<!\w)(?P<side>last|next|this|past|coming|previous)\s+(?P<unit>weekend|week|month|year)(?!\w)
    | (?<!\w)(?:last|past|this|next)\s+(?P<named_month>{_LONG_MONTH})(?!\w)
    | (?<!\w)(?P<number>\d{{1,3}}|{_COUNT})(?:\s+of)?\s+(?P<ago_unit>{_UNIT})\s+(?:ago|back|earlier|fa|atrás)(?!\w)
    | (?<!\w)(?:in\s+)?(?P<from_number>\d{{1,3}}|{_COUNT})\s+(?P<from_unit>days?|weeks?|months?|years?)
      \s+from\s+(?P<from_day>today|now|tomorrow)(?!\w)
    | (?<!\w)(?P<lead>vor|il\s+y\s+a|hace|há|in|en|dans|dentro\s+de|fra|tra|em)
      \s+(?P<lead_number>\d{{1,3}}|{_COUNT})\s+(?P<lead_unit>{_UNIT})(?!\w)
    | (?P<cjk_number>\d{{1,3}}|[一二两三四五六七八九十])(?P<cjk_unit>天|周|个月|年|日|週間|か月)(?P<cjk_side>前|后|後)
    | (?<!\w)(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.|\s+de|º)?\s+(?:of\s+)?(?P<month>{_alternation(MONTHS)})
      (?:,?\s+(?:de\s+|del\s+)?(?P<year>{_YEAR}))?(?!\w)
    | (?<!\w)(?P<month_first>{_alternation(MONTHS)})\.?\s+(?P<day_second>\d{{1,2}})(?:st|nd|rd|th)?
      (?:,?\s+(?P<year_third>{_YEAR}))?(?![\w:])
    | (?<!\w)(?P<month_only>{_alternation(MONTHS)})(?:\s+(?:of|de))?,?\s+(?P<year_only>{_YEAR})(?!\w)
    | (?<!\w)(?:in|since|during|im\s+jahr|en|nel|em|seit|depuis|desde)\s+(?P<bare_year>{_YEAR})(?![\w%])
    """,
    re.IGNORECASE | re.VERBOSE,
)
# "One page in seven days" and "lost in two weeks" tell how long something took, not when it will be.
_DURATION = lazy_compile(
    r"\b(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|no|once|twice|first|only|most|best|worst)"
    r"\s+(?:[\w-]+\s+){0,2}$"
    r"|\b(?:was|were|has|have|had|did|lost|took|went|got|made|wrote|'ve|\w{2,20}ed)(?:\s+[\w-]+){0,4}\s+$",
    re.IGNORECASE,
)
# What belongs to a date that stands before it: "next Monday morning", "nächste Woche Montag", "下周一", "来週の月曜".
_EASTERN_NUMBER = r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
_HOUR = rf"(?:{_EASTERN_NUMBER}[点點时時](?:半|\d{{1,2}}分)?)?"
_WEEKDAY_AFTER = lazy_compile(
    rf"""
      ,?\s+(?:on\s+|am\s+|le\s+|el\s+|il\s+|na\s+|no\s+)?(?P<western>{_LONG_WEEKDAY})(?!\w)
    | (?P<chinese>[一二三四五六日天])(?![个周次年月些起样直定共切般旦同名人种本气只位件篇天])
    | の?(?P<japanese>[月火水木金土日])曜日?
    | (?P<weekend>末)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_DATE_TAIL = {
    "day": lazy_compile(
        rf"""
          \s+(?:morning|afternoon|evening|night|noon|früh|morgen|vormittag|mittag|nachmittag|abend|nacht|matin|midi|soir
          |après-midi|por\s+la\s+(?:mañana|tarde|noche)|mattina|pomeriggio|sera|notte|de\s+(?:manhã|tarde|noite)
          |à\s+(?:tarde|noite))(?!\w)
        | の?(?:早上|早晨|上午|中午|下午|傍晚|晚上|夜里|凌晨|朝|昼|夕方|夜|晩|午前|午後|正午){_HOUR}
        """,
        re.IGNORECASE | re.VERBOSE,
    ),
    "month": lazy_compile(rf"の?{_EASTERN_NUMBER}[号號日]|[初底末]|[上中下]旬"),
    "year": lazy_compile(rf"の?{_EASTERN_NUMBER}月(?:份|{_EASTERN_NUMBER}[号號日])?|の?[春夏秋冬](?:天|季)?|[初底末]"),
}
_EASTERN_WEEKDAYS = {"chinese": "一二三四五六日", "japanese": "月火水木金土日"}
_BACKWARD = frozenset(["last", "past", "previous", "letzte", "letzten"])
_FORWARD = frozenset(["next", "coming", "nächste", "nächsten", "kommende", "kommenden"])


def find_dates(text: str, reference: date) -> tuple[DateMention, ...]:
    """Return the resolvable dates of a text in order, seen from the reference day (a datetime counts by its date)."""
    today = date(reference.year, reference.month, reference.day)
    return tuple(mention for match in _PATTERN.finditer(text) for mention in _build_mention(match, today))


def annotate_dates(text: str, said: date) -> str:
    """Return a text with the day behind each date such as "tomorrow" that needs the day on which it was said.

    A day that stands in the text already, or behind an earlier date, is not put there again.
    """
    mentions = find_dates(text, said)
    given = {mention.iso for mention in mentions if not mention.relative}
    unclear: list[DateMention] = []
    for mention in mentions:
        if mention.iso not in given:
            given.add(mention.iso)
            unclear.append(mention)
    for mention in reversed(unclear):
        text = f"{text[: mention.end]} ({mention.iso}){text[mention.end :]}"
    return text


def _build_mention(match: re.Match[str], today: date) -> Iterator[DateMention]:
    if (match["lead"] or "").casefold() == "in" and _DURATION.search(
        match.string[max(0, match.start() - 60) : match.start()]
    ):
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


_DateSpan = tuple[date, date, DateGrain, bool]


def _extend_span(span: _DateSpan, match: re.Match[str]) -> tuple[_DateSpan, int]:
    """Return the days with what follows them in the same expression, such as a weekday, and where that ends."""
    end = match.end()
    first, last, grain, relative = span
    if not relative:
        return span, end
    if grain == "week" and (named := _WEEKDAY_AFTER.match(match.string, end)):
        end = named.end()
        if named["weekend"]:
            return (first + timedelta(days=5), last, "weekend", True), end
        day, grain = first + timedelta(days=_weekday_number(named)), "day"
        span = day, day, grain, True
    rest = _DATE_TAIL[grain].match(match.string, end) if grain in _DATE_TAIL else None
    return span, rest.end() if rest else end


def _weekday_number(named: re.Match[str]) -> int:
    if named["western"]:
        return WEEKDAYS[named["western"].casefold()]
    return next(row.index(named[name].replace("天", "日")) for name, row in _EASTERN_WEEKDAYS.items() if named[name])


def _resolve(found: dict[str, str], today: date) -> _DateSpan | None:
    """Pick the rule that the matched groups call for."""
    phrase = found.get("phrase") or found.get("eastern")
    if phrase is not None:
        return _resolve_phrase(" ".join(phrase.split()), today)
    if "weekday" in found:
        return _resolve_weekday(WEEKDAYS[found["weekday"]], found["which"], today)
    if "unit" in found:
        return _shift_unit(found["unit"], _direction(found["side"]), today)
    return _resolve_absolute(found, today) or _resolve_distance(found, today) or _resolve_calendar_day(found, today)


def _resolve_absolute(found: dict[str, str], today: date) -> _DateSpan | None:
    """A full date, a month or a year."""
    if "iso" in found:
        day = date.fromisoformat(found["iso"])
        return day, day, "day", False
    if "bare_year" in found:
        return _year_span(int(found["bare_year"]), relative=False)
    if "month_only" in found:
        return _month_span(MONTHS[found["month_only"]], int(found["year_only"]), today)
    return _month_span(MONTHS[found["named_month"]], None, today) if "named_month" in found else None


def _resolve_phrase(phrase: str, today: date) -> _DateSpan:
    if phrase in DAY_WORDS:
        day = today + timedelta(days=DAY_WORDS[phrase])
        return day, day, "day", True
    unit, steps = PERIOD_WORDS[phrase]
    return _shift_unit(unit, steps, today)


def _resolve_weekday(weekday: int, which: str, today: date) -> _DateSpan:
    if _direction(which) < 0:
        day = today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)
    elif _direction(which) > 0:
        day = today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)
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
        at = today.year * 12 + today.month - 1 + steps
        first, last, grain, _ = _month_span(at % 12 + 1, at // 12, today)
        return first, last, grain, True
    return _year_span(today.year + steps, relative=True)


def _resolve_distance(found: dict[str, str], today: date) -> _DateSpan | None:
    """ "Two weeks ago", "in three days", "three weeks from today", "vor zwei Wochen", "三天前"."""
    if "from_unit" in found:
        return _resolve_from_day(found, today)
    for number, unit, sign in (
        ("number", "ago_unit", -1),
        ("lead_number", "lead_unit", 1),
        ("cjk_number", "cjk_unit", 1),
    ):
        if unit in found and number in found:
            lead = " ".join(found.get("lead", "").split())
            past = sign < 0 or lead in {"vor", "il y a", "hace", "há"} or found.get("cjk_side") == "前"
            count = int(found[number]) if found[number].isdigit() else NUMBERS[found[number]]
            return _shift_unit(UNITS[found[unit]], -count if past else count, today)
    return None


def _resolve_from_day(found: dict[str, str], today: date) -> _DateSpan:
    """Count from a named day: three weeks from today is a day, three months from now a month."""
    number, unit = found["from_number"], UNITS[found["from_unit"]]
    count = int(number) if number.isdigit() else NUMBERS[number]
    if unit in {"month", "year"}:
        return _shift_unit(unit, count, today)
    days = count * (7 if unit == "week" else 1) + DAY_WORDS.get(found["from_day"], 0)
    return _shift_unit("day", days, today)


def _resolve_calendar_day(found: dict[str, str], today: date) -> _DateSpan | None:
    month = found.get("month") or found.get("month_first")
    number = found.get("day") or found.get("day_second")
    if month is None or number is None:
        return None
    given = found.get("year") or found.get("year_third")
    years = [int(given)] if given else [today.year - 1, today.year, today.year + 1]
    days = [date(year, MONTHS[month], int(number)) for year in years]
    day = min(days, key=lambda candidate: abs((candidate - today).days))
    return day, day, "day", given is None


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


def _direction(word: str) -> int:
    return -1 if word in _BACKWARD else 1 if word in _FORWARD else 0
