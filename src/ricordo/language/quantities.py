"""Numbers and amounts of a text in one form: "two weeks", "14 days" and "a fortnight" are one duration.

A quantity has a unit if its unit is known: a duration counts in seconds, data in bytes, money in its currency. Pure.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from ricordo.language.languages import Language, detect_language, word_bounds
from ricordo.language.packs import pack_table
from ricordo.lazy import lazy_compile

__all__ = ["Quantity", "find_quantities"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantity:
    """A number in a text and where it stands (character offsets, the unit included).

    `unit` is the family of its unit, such as `time`, `data` or `EUR`; empty for a bare number, in which `value` is the
    number as it is. With a family, `value` counts in its base: seconds, bytes, or the unit itself. `number` is the
    number before its unit.
    """

    value: float
    number: float
    unit: str
    start: int
    end: int


# signs of units that are the same in every language
_SIGNS: Mapping[str, tuple[str, float]] = {
    "ms": ("time", 0.001), "s": ("time", 1.0), "sec": ("time", 1.0), "min": ("time", 60.0), "h": ("time", 3600.0),
    "hr": ("time", 3600.0), "kb": ("data", 1e3), "mb": ("data", 1e6), "gb": ("data", 1e9), "tb": ("data", 1e12),
    "kib": ("data", 1024.0), "mib": ("data", 1024.0**2), "gib": ("data", 1024.0**3), "%": ("share", 1.0),
    "hz": ("rate", 1.0), "khz": ("rate", 1e3), "mhz": ("rate", 1e6), "fps": ("rate", 1.0), "€": ("EUR", 1.0),
    "$": ("USD", 1.0), "£": ("GBP", 1.0), "¥": ("CNY", 1.0), "eur": ("EUR", 1.0), "usd": ("USD", 1.0),
    "gbp": ("GBP", 1.0), "chf": ("CHF", 1.0), "mg": ("mass", 0.001), "g": ("mass", 1.0), "kg": ("mass", 1e3),
    "ml": ("volume", 0.001), "l": ("volume", 1.0), "mm": ("length", 0.001), "cm": ("length", 0.01),
    "km": ("length", 1e3), "px": ("px", 1.0), "°c": ("degree", 1.0), "rpm": ("rpm", 1.0),
}  # fmt: skip
# a script without spaces has no edge before a number
_DIGITS = rf"{word_bounds('0')[0]}(?<![.,:/-])[+-]?\d+(?:[.,]\d+)*(?![\d:]|[.,:/-]\d)"
_EASTERN = "\u2e80"
_GROUPS = lazy_compile(r"\d{1,3}(?:[.,]\d{3})+")
_TEN, _HUNDRED, _THOUSAND = 10, 100, 1000


@dataclass(frozen=True, kw_only=True)
class _Vocabulary:
    """The numerals and the units of one language: the same word is a number in one and an article in another."""

    numerals: Mapping[str, float]
    units: Mapping[str, tuple[str, float]]
    pattern: re.Pattern[str]
    numeral: re.Pattern[str]


@cache
def _vocabulary(language: Language) -> _Vocabulary:
    numerals = {word: float(value) for word, value in pack_table("numeral", language).items()}
    sizes = {word: value.split() for word, value in pack_table("measure", language).items()}
    units = {**_SIGNS, **{word: (family, float(size)) for word, (family, size) in sizes.items()}}
    pattern = _quantity_pattern(language, numerals, units)
    return _Vocabulary(
        numerals=numerals,
        units=units,
        pattern=re.compile(pattern, re.IGNORECASE | re.VERBOSE),
        numeral=re.compile(_alternation(numerals)),
    )


def _alternation(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True))) or "(?!)"


def _quantity_pattern(language: Language, numerals: Mapping[str, float], units: Mapping[str, tuple[str, float]]) -> str:
    western = _alternation(word for word in numerals if word < _EASTERN)
    eastern = _alternation(word for word in numerals if word >= _EASTERN)
    western_unit = _alternation(word for word in units if word < _EASTERN and word[0].isalpha())
    eastern_unit = _alternation(word for word in units if word >= _EASTERN)
    sign = _alternation(word for word in units if word < _EASTERN and not word[0].isalpha())
    joiner = _alternation(pack_table("numeral_join", language))
    article = _alternation(pack_table("numeral_article", language))
    scale = _alternation(word for word, value in numerals.items() if value >= _HUNDRED and word < _EASTERN)
    return rf"""
      (?P<currency>[€$£¥])\s?(?P<paid>\d+(?:[.,]\d+)*)
    | (?:(?P<digits>{_DIGITS})(?P<scale>\s(?:{scale})(?!\w)|[kK](?!\w))?
        |(?<!\w)(?P<words>(?:{western})(?:[\s-]+(?:(?:{joiner})\s+)?(?:{western})|(?:{joiner})?(?:{western}))*)(?!\w)(?:\s+(?P<each>{article})(?=\s+(?:{western_unit})(?!\w)))?)
      (?:[\s-]?(?P<sign>{sign})|[\s-]{{0,2}}(?P<unit>{western_unit})(?!\w)|\s?(?P<eastern_unit>{eastern_unit}))?
    | (?P<eastern>(?:{eastern})+)(?P<measure>{eastern_unit})?
    | (?<!\w)(?P<article>{article})\s+(?P<one>{western_unit})(?!\w)
    """


@lru_cache(maxsize=4096)
def find_quantities(text: str, language: Language | None = None) -> tuple[Quantity, ...]:
    """Return the quantities of a text in order; a clock time, a version and a date are none.

    `language` is detected from the text if it is None.
    """
    return tuple(_read_matches(text, _vocabulary(language or detect_language(text))))


def _read_matches(text: str, words: _Vocabulary) -> Iterator[Quantity]:
    end = -2
    for match in words.pattern.finditer(text):
        value = _read_value(match, words)
        # "euros a month" is a price, and no duration
        is_rate = match["one"] is not None and match.start() - end <= 1
        end = match.end()
        if value is None or is_rate:
            continue
        names = ("sign", "unit", "eastern_unit", "measure", "currency", "one")
        # "ten a month" is ten of something, and "half a month" a duration
        is_for_each = match["each"] is not None and value >= 1
        unit = None if is_for_each else next((match[name] for name in names if match[name]), None)
        family, size = words.units[unit.casefold()] if unit else ("", 1.0)
        yield Quantity(value=round(value * size, 6), number=value, unit=family, start=match.start(), end=end)


def _read_value(match: re.Match[str], words: _Vocabulary) -> float | None:
    numerals = words.numerals
    if match["article"]:
        return numerals.get(match["article"].casefold(), 1.0)
    digits = match["digits"] or match["paid"]
    if digits:
        scale = match["scale"]
        factor = 1.0 if not scale else float(_THOUSAND) if scale in "kK" else numerals[scale.strip().casefold()]
        number = _read_digits(digits)
        return None if number is None else number * factor
    if match["words"]:
        return _add_up([numerals[word] for word in words.numeral.findall(match["words"].casefold())])
    # a lone character, as in "together" or "Monday", is a number only before a unit
    values = [numerals[character] for character in match["eastern"]]
    if not match["measure"] and (len(values) == 1 or max(values) < _TEN):
        return None
    return _add_up_eastern(values)


def _read_digits(text: str) -> float | None:
    if _GROUPS.fullmatch(text):
        return float(re.sub(r"[.,]", "", text))
    whole, _, rest = text.replace(",", ".").rpartition(".")
    if "." in whole and not _GROUPS.fullmatch(whole):
        return None
    return float(f"{whole.replace('.', '')}.{rest}") if whole else float(rest)


def _add_up(values: list[float]) -> float:
    """Return the number of its numerals in order: "two hundred and ten" is 2, 100, 10."""
    total = current = 0.0
    for value in values:
        if value >= _THOUSAND:
            total, current = total + (current or 1.0) * value, 0.0
        elif value >= _HUNDRED or (value == _TEN and 0 < current < _TEN):
            current = (current or 1.0) * value
        else:
            current += value
    return total + current


def _add_up_eastern(values: list[float]) -> float:
    """Return the number of its numerals in order: 一百二十 is 1, 100, 2, 10, and 一百二 is the same number."""
    total = digit = 0.0
    scale = 1.0
    for value in values:
        if value > _THOUSAND:
            total, digit, scale = (total + digit or 1.0) * value, 0.0, value
        elif value >= _TEN:
            total, digit, scale = total + (digit or 1.0) * value, 0.0, value
        else:
            digit, scale = value, scale if value else _TEN
    return total + digit * max(scale / _TEN, 1.0)
