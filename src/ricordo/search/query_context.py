"""The analysis of a question: the expected kind of answer, its times and speaker, and the sessions near to it. Pure.

A time without a year is the latest one. Passages of the two weeks after a time still count, the later the less.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import date, datetime, timedelta
from functools import lru_cache, reduce
from operator import add
from typing import Literal, TypeAlias

from ricordo.language import DateMention, detect_language, find_dates
from ricordo.language.dates import month_numbers
from ricordo.language.packs import PhraseKind, language_pack, pack_phrases, pack_table, pack_words
from ricordo.lazy import dataclass, lazy_compile, lazy_property
from ricordo.search.config import RecallConfig
from ricordo.search.contract import Passage, SourceContext
from ricordo.search.documents import ends_with_question, query_words

__all__ = [
    "FOLLOW_UP_DAYS",
    "SESSION_PASSAGES",
    "DateRange",
    "ExpectedAnswer",
    "PassageLocation",
    "QueryContext",
    "Question",
    "build_query_context",
    "core_words",
    "date_closeness",
    "find_date_ranges",
    "holds_expected",
    "named_words",
    "parse_question",
    "passage_location",
    "passage_similarity",
    "past_day",
    "reply_score",
    "session_key",
]


ExpectedAnswer: TypeAlias = Literal["time", "number", "place", "person", ""]
_QUESTION_KINDS: tuple[tuple[PhraseKind, ExpectedAnswer], ...] = (
    ("ask_number", "number"),
    ("ask_time", "time"),
    ("ask_time_kind", "time"),
    ("ask_place", "place"),
    ("ask_person", "person"),
)
_ONE_TIME = lazy_compile(
    lambda: rf"\b(?:{pack_phrases('ask_one_time', edges=True)})\b|{pack_phrases('ask_one_time', edges=False)}"
)
_FIRST_PERSON = lazy_compile(lambda: rf"\b(?:{pack_phrases('ask_first_person')})\b")
_PERIOD = lazy_compile(lambda: rf"\b(?:{pack_phrases('named_period')})\b", re.IGNORECASE)
_DATE = lazy_compile(r"\b(?:\d{4}-\d\d|(?:19|20)\d\d|\d{1,2}:\d\d)\b")
_DIGIT = lazy_compile(r"\d")
_WORD = lazy_compile(r"\w+")
_NAME_WORD = r"[A-ZÀ-Þ\u0401\u0410-\u042f]\w*[a-zß-ÿ\u0430-\u044f\u0451][\w-]*"
_CAPITALISED = lazy_compile(rf"(?<=\s){_NAME_WORD}")
_NAMED = lazy_compile(rf"(?<=[^\s.!?:] ){_NAME_WORD}")
_FULL_NAME = lazy_compile(rf"(?<=[^\s.!?:] )({_NAME_WORD}) ({_NAME_WORD})")
_TITLED_NAME = lazy_compile(lambda: rf"([^\W\d_]{{1,6}})(?:{pack_phrases('name_title_joined')})")
_POSSESSIVE = lazy_compile(r"[’']s?$")
_MAX_CHARS = 500
_FEW, _MANY = 2, 5
_NAME = lazy_compile(r"(?<=[^.!?\s] )[A-Z][a-z]+")
_PLACE = lazy_compile(
    lambda: rf"\b(?:{pack_phrases('place_phrase')}) (?:(?:{pack_phrases('place_article')}) )?[A-Z]\w+|[\w.-]+/[\w./-]+"
)


@dataclass(frozen=True, kw_only=True)
class Question:
    """A parsed question: its text in lower case, the expected kind of answer, and whether it is in the first person.

    `words` are its content words, `original_text` is the text as typed, and `asks_for_one_time` is true if it asks for
    a single time.
    """

    text: str
    expected: ExpectedAnswer
    is_first_person: bool
    words: tuple[str, ...] = ()
    original_text: str = ""
    asks_for_one_time: bool = False

    def breadth(self, people: Collection[str]) -> float:
        """Return how likely the answer is spread over several passages, in 0..1; names of `people` are not counted.

        A question of few words names a subject with possibly more than one statement on it. The result is 1 up to two
        words and 0 from five words on.
        """
        if self.asks_for_one_time:
            return 0.0
        names = {name.casefold() for name in people}
        count = sum(_POSSESSIVE.sub("", word) not in names for word in self.words)
        return min(max((_MANY - count) / (_MANY - _FEW), 0.0), 1.0)


@lru_cache(maxsize=256)
def parse_question(text: str) -> Question:
    """Parse a question; only its first 500 characters are used."""
    lowered = text[:_MAX_CHARS].lower()
    expected: ExpectedAnswer = next(
        (answer for kind, answer in _QUESTION_KINDS if re.search(pack_phrases(kind), lowered)), ""
    )
    return Question(
        text=lowered,
        expected=expected,
        is_first_person=_FIRST_PERSON.search(lowered) is not None,
        words=query_words(text).words,
        original_text=text[:_MAX_CHARS],
        asks_for_one_time=expected == "time" or _ONE_TIME.search(lowered) is not None,
    )


def core_words(text: str, people: Iterable[str]) -> frozenset[str]:
    """Return the words that name what is asked for: no generic words, no names of things or `people`, no dates."""
    shortened = _without_dates(text[:_MAX_CHARS])
    capitalised = _find_names(shortened, _CAPITALISED)
    names = {name.casefold() for name in (*people, *capitalised)}
    words = query_words(shortened)
    own = (word for word, share in zip(words.words, words.weights, strict=True) if share == 1.0)
    # word parts of a name count as names too, such as `sql` in PostgreSQL
    names |= {part for name in capitalised for part in query_words(name).words}
    return frozenset(word for word in own if _POSSESSIVE.sub("", word) not in names)


def named_words(text: str) -> frozenset[str]:
    """Return the words of a question that are names: capitalised, and not at the beginning of a sentence.

    Where every noun has a capital, only a first name with a family name is known to be a name. In a script without
    capitals it is what stands before a title.
    """
    shortened = _without_dates(text[:_MAX_CHARS])
    names = {name.casefold() for name in _find_names(shortened, _NAMED)}
    words = query_words(shortened).words
    return frozenset(word for word in words if _POSSESSIVE.sub("", word) in names)


@lru_cache(maxsize=256)
def _without_dates(text: str) -> str:
    """Return a question without the times that it names: they say when it was, not what is asked for."""
    spans = [(each.start, each.end) for each in find_dates(text, _ANY_DAY)]
    spans += [match.span() for pattern in (_JOINED_DATE, _BARE_MONTH) for match in pattern.finditer(text)]
    for start, end in spans:
        text = f"{text[:start]}{' ' * (end - start)}{text[end:]}"
    return text


def _find_names(text: str, pattern: re.Pattern[str]) -> list[str]:
    """Return the names that a pattern finds in a text."""
    joined = [part for match in _TITLED_NAME.finditer(text) for part in query_words(match[1]).words]
    if language_pack(detect_language(text)).capital_nouns:
        return joined + [name for match in _FULL_NAME.finditer(text) for name in match.groups()]
    return joined + pattern.findall(text)


def holds_expected(text: str, expected: ExpectedAnswer) -> bool:
    """Return whether `text` contains something of the expected kind; False if nothing is expected."""
    if not expected:
        return False
    shortened = text[:4_000]
    if expected == "number":
        return _DIGIT.search(shortened) is not None or not pack_words("number_word").isdisjoint(
            _WORD.findall(shortened.lower())
        )
    if expected == "time":
        dated = (
            not pack_words("time_word").isdisjoint(_WORD.findall(shortened.lower()))
            or _PERIOD.search(shortened) is not None
        )
        return dated or (_DIGIT.search(shortened) is not None and _DATE.search(shortened) is not None)
    return (_PLACE if expected == "place" else _NAME).search(shortened) is not None


_ANY_DAY = date(2000, 1, 1)
FOLLOW_UP_DAYS = 14
"""The days after a time in which what is said may still tell of it."""
_NEAR_FUTURE_DAYS = 45
_FEBRUARY = 2


def _time_side(kind: PhraseKind) -> str:
    return rf"(?:\b(?:{pack_phrases(kind)}))\s+(?:(?:{pack_phrases('time_article')})\s+)?$"


def _bare_month() -> str:
    month = "|".join(sorted(month_numbers(), key=len, reverse=True))
    leads = "|".join(map(pack_phrases, ("month_lead", "month_begin", "month_end")))
    lead = rf"\b(?:{leads})\s+"
    return rf"{lead}(?P<month>{month})\b(?!\s*,?\s*\d)"


_BEFORE = lazy_compile(lambda: _time_side("before"), re.IGNORECASE)
_AFTER = lazy_compile(lambda: _time_side("after"), re.IGNORECASE)
_BARE_MONTH = lazy_compile(_bare_month, re.IGNORECASE)
_JOINED_DATE = lazy_compile(lambda: pack_phrases("number_month"))
_MONTH_BEGIN = lazy_compile(lambda: rf"\b(?:{pack_phrases('month_begin')})\s+$", re.IGNORECASE)
_MONTH_END = lazy_compile(lambda: rf"\b(?:{pack_phrases('month_end')})\s+$", re.IGNORECASE)
_LEAD_CHARS, _MONTH_PART_DAYS, _LEAST_MONTH_DAYS = 24, 10, 27
_BEFORE_SUFFIX = lazy_compile(lambda: rf"\s*(?:{pack_phrases('before_behind')})")
_AFTER_SUFFIX = lazy_compile(lambda: rf"\s*(?:{pack_phrases('after_behind')})")


@dataclass(frozen=True, kw_only=True)
class DateRange:
    """A range of days that a question names, both ends inclusive."""

    first: date
    last: date


@lru_cache(maxsize=256)
def find_date_ranges(text: str, today: date) -> tuple[DateRange, ...]:
    """Return the date ranges that `text` names, relative to `today`; empty if it names no time."""
    joined = [(match, _joined_range(match, today)) for match in _JOINED_DATE.finditer(text)]
    found = [_date_range(text, match.start(), match.end(), *days) for match, days in joined if days]
    mentions = [
        each
        for each in find_dates(text, today)
        if not any(match.start() < each.end and each.start < match.end() for match, days in joined if days)
    ]
    found += [_date_range(text, each.start, each.end, *_shift_to_past(each, today)) for each in mentions]
    for match in _BARE_MONTH.finditer(text):
        at = match.start("month")
        if not any(each.start < match.end() and at < each.end for each in mentions):
            days = _latest_month(month_numbers()[match["month"].casefold()], today)
            found.append(_date_range(text, at, match.end(), *days))
    return tuple(found)


def date_closeness(day: date, spans: Sequence[DateRange]) -> float:
    """Return 1 for a day inside a span, less for the days after it, 0 before it and from two weeks after it."""
    return max((_range_closeness(day, span) for span in spans), default=0.0)


def _shift_to_past(mention: DateMention, today: date) -> tuple[date, date]:
    """Return the days of a year earlier if a date without a year was resolved to the far future."""
    first, last = mention.first, mention.last
    has_month = any(word in month_numbers() for word in mention.text.casefold().split())
    soon = today + timedelta(days=_NEAR_FUTURE_DAYS if mention.grain == "day" else 0)
    if not (mention.relative and has_month and first > soon):
        return first, last
    return _latest_month(first.month, today) if mention.grain == "month" else (_year_before(first), _year_before(last))


def _year_before(day: date) -> date:
    return day.replace(year=day.year - 1, day=min(day.day, 28) if day.month == _FEBRUARY else day.day)


def _latest_month(month: int, today: date) -> tuple[date, date]:
    """Return the first and last day of the latest such month that has begun."""
    year = today.year if month <= today.month else today.year - 1
    following = date(year + month // 12, month % 12 + 1, 1)
    return date(year, month, 1), following - timedelta(days=1)


def _joined_range(match: re.Match[str], today: date) -> tuple[date, date] | None:
    """Return the first and last day of a date in a script without spaces, None if there is no such day."""
    month, day = _read_number(match["number"]), _read_number(match["day"] or "")
    if not 1 <= month <= 12:
        return None
    year = match["year"] or ""
    first, last = _latest_month(month, today)
    if year:
        years = today.year + int(pack_table("year_side").get(year, "0")) if not year.isdigit() else int(year)
        first, last = _latest_month(month, date(years, 12, 31)) if 1 <= years <= date.max.year - 1 else (first, last)
    if day:
        return (first.replace(day=day),) * 2 if day <= last.day else None
    part = pack_table("month_part").get(match["part"] or "")
    return _part_of_month(first, last, part) if part else (first, last)


def _read_number(text: str) -> int:
    """Return a number below a hundred in digits or in number characters; 0 for an empty text."""
    if text.isdigit():
        return int(text)
    number = 0
    for value in (int(pack_table("number").get(char, "0")) for char in text):
        number = (number or 1) * value if value == 10 else number + value
    return number


def _part_of_month(first: date, last: date, part: str) -> tuple[date, date]:
    """Return the days of the part `begin`, `middle` or `end` of a month."""
    days = timedelta(days=_MONTH_PART_DAYS)
    begin, middle = first + days, first + 2 * days
    one = timedelta(days=1)
    return {"begin": (first, begin - one), "middle": (begin, middle - one)}.get(part, (middle, last))


def _date_range(text: str, start: int, end: int, first: date, last: date) -> DateRange:
    lead = text[max(start - _LEAD_CHARS, 0) : start]
    if _BEFORE.search(lead) or _BEFORE_SUFFIX.match(text, end):
        return DateRange(first=date.min, last=max(first, date.min + timedelta(days=1)) - timedelta(days=1))
    if _AFTER.search(lead) or _AFTER_SUFFIX.match(text, end):
        return DateRange(first=first, last=date.max)
    if _LEAST_MONTH_DAYS <= (last - first).days < 2 * _LEAST_MONTH_DAYS:
        part = "begin" if _MONTH_BEGIN.search(lead) else "end" if _MONTH_END.search(lead) else ""
        first, last = _part_of_month(first, last, part) if part else (first, last)
    return DateRange(first=first, last=last)


def _range_closeness(day: date, span: DateRange) -> float:
    if day <= span.last:
        return float(day >= span.first)
    # a range that is open to the past has no follow-up days
    late = (day - span.last).days if span.first != date.min else FOLLOW_UP_DAYS
    return max(1 - late / FOLLOW_UP_DAYS, 0.0)


PassageLocation: TypeAlias = tuple[str, str, int, int]
"""The location of a passage: label of the source, path, line and part."""
SESSION_PASSAGES = 3
"""How many of its best passages tell how near a session is."""
_ROLES = frozenset({"user", "assistant", "tool"})
_CONJUNCTION = lazy_compile(lambda: rf"\s*(?:,|&|/|{pack_phrases('name_join')})\s*")
"""The text between two names that are asked about together."""


@dataclass(frozen=True, kw_only=True)
class QueryContext:
    """The context that all passages are scored against.

    `speaker` is the one speaker whom the question is about, or empty; `absent_words` are its words that no source
    contains; `date_ranges` are the times that it names; `as_of` is the last day of the earliest one if that is past:
    what held then is asked for. `breadth` is how likely its answer is spread over sessions.
    `sources` are the sessions and the lines that end with a question, by the label of the source. `rerank_scores` are a
    reranker's scores by passage location.
    """

    question: Question
    now: datetime
    config: RecallConfig
    speaker: str = ""
    absent_words: frozenset[str] = frozenset()
    date_ranges: tuple[DateRange, ...] = ()
    as_of: date | None = None
    date_words: frozenset[str] = frozenset()
    breadth: float = 0.0
    sources: Mapping[str, SourceContext] = field(default_factory=dict)
    rerank_scores: Mapping[PassageLocation, float] = field(default_factory=dict)

    @lazy_property
    def is_blank(self) -> bool:
        """Whether the query has no text and asks for the newest passages."""
        return not self.question.text.strip()


def build_query_context(
    question: Question,
    passages: Sequence[Passage],
    *,
    now: datetime,
    config: RecallConfig,
    sources: Mapping[str, SourceContext] | None = None,
    reranked: Mapping[PassageLocation, float] | None = None,
) -> QueryContext:
    """Return the context for scoring, derived from the question and all passages.

    `sources` are the contexts of the sources whose passages are not all here, by label.
    """
    known = dict(sources or {})
    for label in {passage.label for passage in passages}.difference(known):
        known[label] = _measure_source([each for each in passages if each.label == label], question, config)
    people = {speaker.casefold() for source in known.values() for speaker in source.speakers} - {""}
    spans = find_date_ranges(question.original_text, now.date()) if config.dates and question.original_text else ()
    return QueryContext(
        question=question,
        now=now,
        config=config,
        speaker=_find_speaker(question, people),
        absent_words=_find_absent_words(passages),
        date_ranges=spans,
        as_of=past_day(question.original_text, now.date()) if spans else None,
        date_words=_date_words(question) if spans else frozenset(),
        breadth=0.0 if spans or not config.breadth else question.breadth(people),
        sources=known,
        rerank_scores=reranked or {},
    )


def _date_words(question: Question) -> frozenset[str]:
    """Return the words that only tell the time of a question; empty if it asks for all that was then."""
    text = question.original_text
    if not core_words(text, ()):
        return frozenset()
    return frozenset(question.words).difference(query_words(_without_dates(text)).words)


def past_day(text: str, today: date) -> date | None:
    """Return the last day of the earliest time that `text` names; None if it names none, or that day is not past."""
    last = min((span.last for span in find_date_ranges(text, today) if span.first != date.min), default=today)
    return last if last < today else None


def passage_location(passage: Passage) -> PassageLocation:
    """Return the location of a passage."""
    chunk = passage.match.chunk
    return passage.label, chunk.path, chunk.line_number, chunk.part


def _find_absent_words(passages: Iterable[Passage]) -> frozenset[str]:
    """Return the words of the question that no source contains."""
    by_source = {passage.label: passage.match.missing_words for passage in passages}
    return frozenset.intersection(*map(frozenset, by_source.values())) if by_source else frozenset()


def _find_speaker(question: Question, people: Collection[str]) -> str:
    """Return the one speaker whom the question is about; empty if it names none, or begins with several together.

    Of several speakers it is the first: "What did Ann say to Bo about it?" asks for words of Ann. A name takes
    precedence over a role, as in "Which tool did Ann take?".
    """
    places = sorted(
        (match.start(), match.end(), name)
        for name in people
        if name in question.text and (match := re.search(rf"\b{re.escape(name)}\b", question.text))
    )
    found = [place for place in places if place[2] not in _ROLES] or places
    if not found:
        return "user" if question.is_first_person else ""
    if len(found) > 1 and _CONJUNCTION.fullmatch(question.text[found[0][1] : found[1][0]]):
        return ""
    return found[0][2]


def passage_similarity(passage: Passage, config: RecallConfig) -> float:
    """Return how near a passage is by its words and its meaning, in 0..1."""
    score, signals = passage.match.score, passage.match.signals
    weight = config.passage + config.context
    similarity = config.passage * signals.get("bm25", score) + config.context * signals.get("context", score)
    if "dense" in signals:
        similarity += config.dense * signals["dense"]
        weight += config.dense
    if "dense_context" in signals:
        similarity += config.dense_context * signals["dense_context"]
        weight += config.dense_context
    return similarity / weight if weight else 0.0


def session_key(passage: Passage) -> tuple[str, str]:
    """Return the key of a passage's group: its source, and its session or else its file."""
    chunk = passage.match.chunk
    return passage.label, chunk.session or chunk.path


def _measure_source(passages: Sequence[Passage], question: Question, config: RecallConfig) -> SourceContext:
    """Return the context of a source from all of its passages."""
    speakers = frozenset(passage.match.chunk.speaker for passage in passages)
    # entries are scored without their session, so if all passages are entries the sessions are not measured
    if all(passage.match.chunk.markup for passage in passages):
        return SourceContext(speakers=speakers)
    scores: defaultdict[str, list[float]] = defaultdict(list)
    words: defaultdict[str, set[str]] = defaultdict(set)
    questions: dict[tuple[str, int], tuple[float, str]] = {}
    for passage in passages:
        match, (_, key) = passage.match, session_key(passage)
        scores[key].append(passage_similarity(passage, config))
        words[key].update(match.matched_words)
        if match.chunk.message and ends_with_question(match.content):
            near = match.signals.get("bm25", match.score), match.chunk.speaker
            at = match.chunk.path, match.chunk.line_number
            questions[at] = max(near, questions.get(at, near))
    count = max(len(question.words), 1)
    sessions = {
        # not `sum`, which rounds otherwise from Python 3.12 on
        key: (reduce(add, sorted(near)[-SESSION_PASSAGES:]) / SESSION_PASSAGES, min(len(words[key]) / count, 1.0))
        for key, near in scores.items()
    }
    return SourceContext(speakers=speakers, sessions=sessions, questions=questions)


def reply_score(passage: Passage, context: QueryContext) -> float:
    """Return the nearness of the question on the line above; 0 if there is none, or the same speaker asks it."""
    chunk = passage.match.chunk
    questions = context.sources[passage.label].questions if chunk.message and context.config.reply else {}
    near, speaker = questions.get((chunk.path, chunk.line_number - 1), (0.0, ""))
    return near if speaker != chunk.speaker else 0.0
