"""What a question asks for, told by its words: whom it is about, and whether its answer is a date, a number or a name.

The signs are those of a few languages' question words; where none is found, nothing is expected and nothing is lost.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ricordo.index.terms import query_words

__all__ = ["Expected", "Question", "core_words", "holds_expected", "read_question"]

Expected: TypeAlias = Literal["time", "number", "place", "person", ""]

_SIGNS: tuple[tuple[str, Expected], ...] = (
    (r"\bhow (?:many|much|often|long|old)\b|\bwie ?(?:viele?|oft|lange)\b", "number"),
    (r"\b(?:combien|cuánt[oa]s?|quant[ieo]s?)\b|多少|几个", "number"),
    (r"\b(?:when|wann|quand|cuándo|quando)\b|什么时候|何时|いつ", "time"),
    (r"\b(?:what|which) (?:year|month|day|date|time)\b", "time"),
    (r"\b(?:where|wohin|wo|où|dónde|dove|onde)\b|哪里|在哪|どこ", "place"),
    (r"\b(?:who|whom|whose|wer|wem|wen|qui|quién|chi|quem)\b|谁|誰", "person"),
)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|my|me|mine|ich|mein\w*|mir|mich)\b")
_TIME_WORDS = (
    "jan january feb february march apr april june july aug august sep sept september oct october nov november"
    " dec december"
    " monday tuesday wednesday thursday friday saturday sunday yesterday today tomorrow tonight ago"
)
_SPANS = "week weekend month year night summer winter spring fall"
_TIME = re.compile(
    rf"\b(?:\d{{4}}-\d\d|(?:19|20)\d\d|\d{{1,2}}:\d\d|{_TIME_WORDS.replace(' ', '|')}"
    rf"|(?:last|next|this) (?:{_SPANS.replace(' ', '|')}))\b",
    re.IGNORECASE,
)
_NUMBER_WORDS = "one two three four five six seven eight nine ten eleven twelve once twice dozen several"
_NUMBER = re.compile(rf"\d|\b(?:{_NUMBER_WORDS.replace(' ', '|')})\b", re.IGNORECASE)
_CAPITALISED = re.compile(r"(?<=\s)[A-ZÀ-Þ]\w*[a-zß-ÿ][\w-]*")
_POSSESSIVE = re.compile(r"[’']s?$")
_LONGEST = 500
_NAME = re.compile(r"(?<=[^.!?\s] )[A-Z][a-z]+")
_PLACE = re.compile(r"\b(?:in|at|to|from|near|on) (?:the )?[A-Z]\w+|[\w.-]+/[\w./-]+")


@dataclass(frozen=True, kw_only=True)
class Question:
    """What was asked: the text in lower case, what kind of answer it expects, whether it is about the one who asks."""

    text: str
    expected: Expected
    about_me: bool


def read_question(text: str) -> Question:
    """Return what the question asks for, judged by its first 500 characters."""
    lowered = text[:_LONGEST].lower()
    expected: Expected = next((kind for pattern, kind in _SIGNS if re.search(pattern, lowered)), "")
    return Question(text=lowered, expected=expected, about_me=_FIRST_PERSON.search(lowered) is not None)


def core_words(text: str, people: Iterable[str]) -> frozenset[str]:
    """Return the words of a question that say what is asked for: no generic words, no names of things or `people`."""
    asked = text[:_LONGEST]
    capitalised = _CAPITALISED.findall(asked)
    names = {name.casefold() for name in (*people, *capitalised)}
    words = query_words(asked)
    own = (word for word, share in zip(words.shown, words.shares, strict=True) if share == 1.0)
    # `sql` is a part of the name PostgreSQL
    names |= {part for name in capitalised for part in query_words(name).shown}
    return frozenset(word for word in own if _POSSESSIVE.sub("", word) not in names)


def holds_expected(text: str, expected: Expected) -> bool:
    """Tell whether `text` holds something of the expected kind; False when nothing is expected."""
    pattern = {"time": _TIME, "number": _NUMBER, "place": _PLACE, "person": _NAME}.get(expected)
    return pattern is not None and pattern.search(text[:4_000]) is not None
