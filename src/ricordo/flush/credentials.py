"""Statements that are about a secret itself: they are never learned, whether redaction has marked the secret or not.

A mark keeps the place of what was there, so "my token is [secret:…]" tells nothing any more; a PIN, the number of a
card and a password of plain letters have no shape that redaction could know, but the sentence around them tells.

Invariant: pure, and linear in the statement.
"""

import re

from ricordo.guard.rules import MARK
from ricordo.guard.values import is_placeholder
from ricordo.language import content_words

__all__ = ["asks_for_credential", "bears_credential"]

_FEWEST_WORDS = 5
_ABOUT_SECRETS = """
access account api auth aws bearer basic client cred credential db database default env export github header http https
id key keys login name new old our pass passphrase password pin prod remember safe save secret set staging stripe token
tokens url use user username using value wifi
"""
_VOCABULARY = frozenset(_ABOUT_SECRETS.split())
_MARKED_WORD = re.compile(r"\S*" + MARK.pattern + r"\S*")
_NAMES = (
    r"pass(?:word|phrase|code|wort)|kennwort|contraseña|mot de passe|senha|wachtwoord|密码|密碼|口令|パスワード|"
    r"비밀번호"
)
_CODE = (
    r"pin(?: (?:code|number))?|cvv|cvc|(?:door|alarm|gate|safe|lock|entry|unlock|access|security|recovery|backup|"
    r"verification|bank) code|otp|geheimzahl"
)
_FOR = r"(?: (?:for|to|of|on|für|von|de|del|para|pour|per) [^.,;:=\n]{1,40}?)?"
_SIGN = r"[*_`]{0,2}\s{0,3}(?::=|[:=：]|(?<![a-z])(?:is|was|are|ist|war|lautet|es|est|è|é)(?![a-z])|是|は|는|은)\s{0,3}"
_VALUE = r"[\"'“`*]{0,2}(?P<value>[^\s\"'”`*,;]{3,64})[\"'”`*]{0,2}(?=[\s.]*(?:$|[.,;!)]|(?:and|but|und|please)\b))"
_SAID_PASSWORD = re.compile(rf"(?<![^\W_])(?:{_NAMES}){_FOR}{_SIGN}{_VALUE}", re.IGNORECASE)
_SAID_CODE = re.compile(rf"(?<!\w)(?:{_CODE}){_FOR}{_SIGN}[\"'“`*]{{0,2}}#?(?P<value>\d{{3,10}})(?!\d)", re.IGNORECASE)
_DESCRIBED = re.compile(
    r"\w+(?:ed|ing|able|ible|ive|ful|ly|-\w+)|(?:too )?(?:old|new|long|short|easy|mine|yours|same|different|unique|"
    r"public|private|safe|bad|good|fine|okay|gone|lost|known|there|broken|falsch|richtig|sicher|wrong|weak|nothing)",
    re.IGNORECASE,
)
_ASKED = re.compile(
    rf"(?<!\w)(?:{_NAMES}|{_CODE}|api key|access key|token|card number|credit card)"
    r"(?=\s*(?:$|[?.,]|(?:is|was|for|to|of|on)\b))",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.]?\d)")
_GROUPED = re.compile(r"\d{4}(?:[ -]\d{4}){2}[ -]\d{1,7}|\d{4}[ -]\d{6}[ -]\d{5}")
_CARD = re.compile(r"card|visa|amex|karte|tarjeta|carte|carta|cartão|kredit|credit|debit|卡|カード", re.IGNORECASE)


def bears_credential(text: str) -> bool:
    """Say whether a statement gives away a secret, or tells nothing but that one stood there."""
    if "[secret:" in text and MARK.search(text):
        rest = {word.casefold() for word in content_words(_MARKED_WORD.sub(" ", text), "en")}
        if len(rest - _VOCABULARY) < _FEWEST_WORDS:
            return True
    return _gives_password(text) or _SAID_CODE.search(text) is not None or _gives_card(text)


def asks_for_credential(question: str) -> bool:
    """Say whether the answer to a question would be a secret: "What is the PIN?", not "Which password manager?"."""
    return _ASKED.search(question) is not None


def _gives_password(text: str) -> bool:
    return any(
        not is_placeholder(said["value"].rstrip(".")) and not _DESCRIBED.fullmatch(said["value"].rstrip("."))
        for said in _SAID_PASSWORD.finditer(text)
    )


def _gives_card(text: str) -> bool:
    """A number of 13 to 19 digits that passes the Luhn check (ISO/IEC 7812-1), grouped as on a card or called one."""
    return any(
        _passes_luhn([int(digit) for digit in number.group() if digit.isdigit()])
        and (_GROUPED.fullmatch(number.group()) is not None or _CARD.search(text) is not None)
        for number in _DIGITS.finditer(text)
    )


def _passes_luhn(digits: list[int]) -> bool:
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
