"""What a question asks for, told by its words: whom it is about, and whether its answer is a date, a number or a name.

The signs are those of a few languages' question words; where none is found, nothing is expected and nothing is lost.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from ricordo.index.terms import query_words

__all__ = ["ExpectedAnswer", "Question", "core_words", "holds_expected", "parse_question"]

ExpectedAnswer: TypeAlias = Literal["time", "number", "place", "person", ""]

_ANSWER_PATTERNS: tuple[tuple[str, ExpectedAnswer], ...] = (
    (r"\bhow (?:many|much|often|long|old)\b|\bwie ?(?:viele?|oft|lange)\b", "number"),
    (r"\b(?:combien|cuánt[oa]s?|quant[ieo]s?)\b|多少|几个", "number"),
    (r"\b(?:when|wann|quand|cuándo|quando)\b|什么时候|何时|いつ", "time"),
    (r"\b(?:what|which) (?:year|month|day|date|time)\b", "time"),
    (r"\b(?:where|wohin|wo|où|dónde|dove|onde)\b|哪里|在哪|どこ", "place"),
    (r"\b(?:who|whom|whose|wer|wem|wen|qui|quién|chi|quem)\b|谁|誰", "person"),
)
_ONE_TIME = re.compile(
    r"\b(?:how (?:long|often|old)|first|last|latest|wie (?:lange|oft|alt)|erste[rsn]?|letzte[rsn]?"
    r"|combien de (?:temps|fois)|premi(?:er|ère)|derni(?:er|ère)|cuánto tiempo|primer[oa]?|últim[oa]"
    r"|quanto tempo|prim[oa]|ultim[oa]|primeir[oa])\b|多久|第一次|最后一次|最初|最後"
)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|my|me|mine|ich|mein\w*|mir|mich)\b")
_TIME_WORD_LIST = (
    "jan january feb february march apr april june july aug august sep sept september oct october nov november dec"
    " december monday tuesday wednesday thursday friday saturday sunday yesterday today tomorrow tonight ago"
)
_TIME_WORDS = frozenset(_TIME_WORD_LIST.split())
_PERIODS = "week weekend month year night summer winter spring fall"
_PERIOD = re.compile(rf"\b(?:last|next|this) (?:{_PERIODS.replace(' ', '|')})\b", re.IGNORECASE)
_DATE = re.compile(r"\b(?:\d{4}-\d\d|(?:19|20)\d\d|\d{1,2}:\d\d)\b")
_NUMBER_WORD_LIST = "one two three four five six seven eight nine ten eleven twelve once twice dozen several"
_NUMBER_WORDS = frozenset(_NUMBER_WORD_LIST.split())
_DIGIT = re.compile(r"\d")
_WORD = re.compile(r"\w+")
_CAPITALISED = re.compile(r"(?<=\s)[A-ZÀ-Þ]\w*[a-zß-ÿ][\w-]*")
_POSSESSIVE = re.compile(r"[’']s?$")
_MAX_CHARS = 500
_FEW, _MANY = 2, 5
_NAME = re.compile(r"(?<=[^.!?\s] )[A-Z][a-z]+")
_PLACE = re.compile(r"\b(?:in|at|to|from|near|on) (?:the )?[A-Z]\w+|[\w.-]+/[\w./-]+")


@dataclass(frozen=True, kw_only=True)
class Question:
    """What was asked: the text in lower case, what kind of answer it expects, whether it is about the one who asks.

    `words` are its content words, `original_text` the text as it was typed, and `asks_for_one_time` tells that it asks for one time
    alone.
    """

    text: str
    expected: ExpectedAnswer
    is_first_person: bool
    words: tuple[str, ...] = ()
    original_text: str = ""
    asks_for_one_time: bool = False

    def breadth(self, people: Collection[str]) -> float:
        """Return how likely the answer is spread over several passages, in 0..1, names of `people` not counted.

        A question of few words names a subject, on which more than one thing may have been said: it is 1 up to two
        words and 0 from five on, which single out one thing that was said.
        """
        if self.asks_for_one_time:
            return 0.0
        names = {name.casefold() for name in people}
        asked = sum(_POSSESSIVE.sub("", word) not in names for word in self.words)
        return min(max((_MANY - asked) / (_MANY - _FEW), 0.0), 1.0)


@lru_cache(maxsize=256)
def parse_question(text: str) -> Question:
    """Return what the question asks for, judged by its first 500 characters."""
    lowered = text[:_MAX_CHARS].lower()
    expected: ExpectedAnswer = next((kind for pattern, kind in _ANSWER_PATTERNS if re.search(pattern, lowered)), "")
    return Question(
        text=lowered,
        expected=expected,
        is_first_person=_FIRST_PERSON.search(lowered) is not None,
        words=query_words(text).words,
        original_text=text[:_MAX_CHARS],
        asks_for_one_time=expected == "time" or _ONE_TIME.search(lowered) is not None,
    )


def core_words(text: str, people: Iterable[str]) -> frozenset[str]:
    """Return the words of a question that say what is asked for: no generic words, no names of things or `people`."""
    asked = text[:_MAX_CHARS]
    capitalised = _CAPITALISED.findall(asked)
    names = {name.casefold() for name in (*people, *capitalised)}
    words = query_words(asked)
    own = (word for word, share in zip(words.words, words.weights, strict=True) if share == 1.0)
    # `sql` is a part of the name PostgreSQL
    names |= {part for name in capitalised for part in query_words(name).words}
    return frozenset(word for word in own if _POSSESSIVE.sub("", word) not in names)


def holds_expected(text: str, expected: ExpectedAnswer) -> bool:
    """Tell whether `text` holds something of the expected kind; False when nothing is expected."""
    if not expected:
        return False
    said = text[:4_000]
    if expected == "number":
        return _DIGIT.search(said) is not None or not _NUMBER_WORDS.isdisjoint(_WORD.findall(said.lower()))
    if expected == "time":
        dated = not _TIME_WORDS.isdisjoint(_WORD.findall(said.lower())) or _PERIOD.search(said) is not None
        return dated or (_DIGIT.search(said) is not None and _DATE.search(said) is not None)
    return (_PLACE if expected == "place" else _NAME).search(said) is not None
