"""Checks of notes: their names and numbers must occur in the text, and they must contain no credential. Pure.

A PIN, a card number and a password of plain letters have no shape that redaction could detect, but the sentence around
them shows it. A note with a name missing from the text was invented, or was translated and would not be found again.

Invariants: linear in the text. A note without names and numbers is supported by any text.
"""

import re
import unicodedata
from datetime import date
from functools import cached_property

from ricordo.guard.heuristics import is_placeholder
from ricordo.guard.scanner import SECRET_MARK
from ricordo.language import content_words, find_dates, find_names
from ricordo.language.packs import pack_phrases, pack_words
from ricordo.language.quantities import Quantity, find_quantities
from ricordo.lazy import lazy_compile

__all__ = ["GroundingText", "asks_for_credential", "contains_credential"]


_MIN_OTHER_WORDS = 5
_MARKED_WORD = lazy_compile(lambda: r"\S*" + SECRET_MARK.pattern + r"\S*")


def _purpose_and_sign() -> str:
    """Return the pattern between the name of a secret and its value."""
    purpose = rf"(?: (?:{pack_phrases('purpose_lead')}) [^.,;:=\n]{{1,40}}?)?"
    copula = rf"(?<![a-z])(?:{pack_phrases('secret_copula')})(?![a-z])|{pack_phrases('secret_copula_joined')}"
    return purpose + rf"[*_`]{{0,2}}\s{{0,3}}(?::=|[:=：]|{copula})\s{{0,3}}"


def _password_statement() -> str:
    value = r"[\"'“`*]{0,2}(?P<value>[^\s\"'”`*,;]{3,64})[\"'”`*]{0,2}"
    after = rf"(?=[\s.]*(?:$|[.,;!)]|(?:{pack_phrases('after_secret')})\b))"
    return rf"(?<![^\W_])(?:{pack_phrases('password_name')}){_purpose_and_sign()}{value}{after}"


def _code_statement() -> str:
    value = r"[\"'“`*]{0,2}#?(?P<value>\d{3,10})(?!\d)"
    return rf"(?<!\w)(?:{pack_phrases('code_name')}){_purpose_and_sign()}{value}"


def _credential_question() -> str:
    names = "|".join(map(pack_phrases, ("password_name", "code_name", "credential_name")))
    return rf"(?<!\w)(?:{names})(?=\s*(?:$|[?.,]|(?:{pack_phrases('after_credential')})\b))"


_PASSWORD_STATEMENT = lazy_compile(_password_statement, re.IGNORECASE)
_CODE_STATEMENT = lazy_compile(_code_statement, re.IGNORECASE)
_DESCRIPTION = lazy_compile(lambda: pack_phrases("secret_description"), re.IGNORECASE)
_CREDENTIAL_QUESTION = lazy_compile(_credential_question, re.IGNORECASE)
_CARD_DIGITS = lazy_compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.]?\d)")
_CARD_GROUPS = lazy_compile(r"\d{4}(?:[ -]\d{4}){2}[ -]\d{1,7}|\d{4}[ -]\d{6}[ -]\d{5}")
_CARD_WORDS = lazy_compile(lambda: pack_phrases("card_word"), re.IGNORECASE)


def contains_credential(text: str) -> bool:
    """Return whether a statement contains a secret, or little more than the mark of a redacted one."""
    if "[secret:" in text and SECRET_MARK.search(text):
        rest = {word.casefold() for word in content_words(_MARKED_WORD.sub(" ", text), "en")}
        if len(rest - pack_words("credential_word")) < _MIN_OTHER_WORDS:
            return True
    return _contains_password(text) or _CODE_STATEMENT.search(text) is not None or _contains_card_number(text)


def asks_for_credential(question: str) -> bool:
    """Return whether the answer to a question would be a secret: "What is the PIN?", not "Which password manager?"."""
    return _CREDENTIAL_QUESTION.search(question) is not None


def _contains_password(text: str) -> bool:
    return any(
        not is_placeholder(match["value"].rstrip(".")) and not _DESCRIPTION.fullmatch(match["value"].rstrip("."))
        for match in _PASSWORD_STATEMENT.finditer(text)
    )


def _contains_card_number(text: str) -> bool:
    """Return whether a text has a card number.

    It has 13 to 19 digits, passes the Luhn check (ISO/IEC 7812-1), and is grouped as on a card or called a card number.
    """
    return any(
        _passes_luhn([int(digit) for digit in number.group() if digit.isdigit()])
        and (_CARD_GROUPS.fullmatch(number.group()) is not None or _CARD_WORDS.search(text) is not None)
        for number in _CARD_DIGITS.finditer(text)
    )


def _passes_luhn(digits: list[int]) -> bool:
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


_NUMBER = lazy_compile(r"\d{2,}|(?<![\w.:/-])\d(?![\w/-]|[.:,]\d)")
_DIGITS = lazy_compile(r"\d+")
_YEAR = lazy_compile(r"(?:19|20)\d\d")
_THOUSANDS_MARK = lazy_compile(r"(?<=\d)[.,'’\s_](?=\d{3})")
_REFERENCE_DAY = date(2000, 1, 1)
_SENTENCE_END = ".!?:;\n"
_INFLECTION_CHARS = 2
_MIN_INFLECTED_CHARS = 5
_MIN_COUNT = 3
"""The least number without a unit that is looked up where it is a word: "two" may be "both", and "one" an article."""


class GroundingText:
    """A text in which names and numbers are looked up."""

    def __init__(self, text: str) -> None:
        """Look up names and numbers in `text`."""
        self._lines = text.splitlines()
        self._text = _normalize(text)

    def supports(self, note: str) -> bool:
        """Return whether the text has every name and every number of `note`, the numbers in digits or in words.

        Days are not checked, because they may be computed. A script without capitals does not show its names.
        """
        return all(map(self._has_name, _find_name_words(note))) and self._has_numbers(_without_days(note))

    def _has_name(self, name: str) -> bool:
        if name in self._text:
            return True
        # "SHA-256" is "sha256"
        if "-" in name and re.search(r"[-_ ]?".join(map(re.escape, name.split("-"))), self._text):
            return True
        # Other scripts inflect names, so the ending may differ.
        return not name.isascii() and len(name) >= _MIN_INFLECTED_CHARS and name[:-_INFLECTION_CHARS] in self._text

    def _has_numbers(self, note: str) -> bool:
        amounts = [each for each in find_quantities(note) if each.unit or each.number >= _MIN_COUNT]
        if any(map(self._has_other_unit, amounts)):
            return False
        missing = {*_find_numbers(note), *map(_number_of, amounts)} - self._digits
        if not missing:
            return True
        missing -= set(map(_number_of, self._quantities))
        # "14 days" is "two weeks"
        measured = {(each.value, each.unit) for each in self._quantities if each.unit}
        return missing <= {_number_of(each) for each in amounts if (each.value, each.unit) in measured}

    def _has_other_unit(self, amount: Quantity) -> bool:
        """Tell whether the number of an amount stands in the text only with another unit.

        "Two hundred a month" may be any amount.
        """
        same = [each for each in self._quantities if each.number == amount.number] if amount.unit else []
        is_other = all(each.unit and (each.unit != "time" or amount.unit == "time") for each in same)
        return bool(same) and is_other and (amount.value, amount.unit) not in {(each.value, each.unit) for each in same}

    @cached_property
    def _digits(self) -> frozenset[str]:
        """The numbers of the text that are written in digits."""
        joined = _THOUSANDS_MARK.sub("", self._text)
        return frozenset(_to_number(number) for text in (self._text, joined) for number in _DIGITS.findall(text))

    @cached_property
    def _quantities(self) -> tuple[Quantity, ...]:
        """The amounts of the text, each line in its own language."""
        return tuple(quantity for line in self._lines for quantity in find_quantities(line))


def _find_name_words(note: str) -> list[str]:
    """Return the words of names in a note, without a sentence's first word that may be capitalized as such."""
    names: list[str] = []
    amounts = find_quantities(note)
    for mention in find_names(note):
        if any(each.start <= mention.start < each.end for each in amounts):
            continue
        before = note[: mention.start].rstrip(" \"'“”‘’(*_`")
        is_sentence_start = not before or before[-1] in _SENTENCE_END
        words = mention.text.split()
        if is_sentence_start and words and words[0][1:] == words[0][1:].lower():
            words = words[1:]
        words = [word for word in words if word.lower() != word.upper()]
        names += [_normalize(word).removesuffix("'s").removesuffix("’s") for word in words]
    return [word for word in names if word not in pack_words("name_part") and word not in pack_words("always_grounded")]


def _without_days(note: str) -> str:
    """Return a note without its days and with plain digits."""
    for mention in reversed(find_dates(note, _REFERENCE_DAY)):
        note = f"{note[: mention.start]} {note[mention.end :]}"
    return re.sub(r"(?<=\d)[,'’_](?=\d{3})", "", unicodedata.normalize("NFKC", note))


def _find_numbers(note: str) -> list[str]:
    """Return the numbers of a note in digits, without years."""
    return [_to_number(each) for each in _NUMBER.findall(note) if not _YEAR.fullmatch(each)]


def _number_of(quantity: Quantity) -> str:
    number = quantity.number
    return str(int(number)) if number.is_integer() else str(number)


def _to_number(digits: str) -> str:
    return digits.lstrip("0") or "0"


def _normalize(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
