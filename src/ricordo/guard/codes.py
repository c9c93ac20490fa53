"""Codes of numbers, passphrases of several words, and what commands are given to log in.

"PIN: …", "passphrase: … … … …", `http -a bob:…`. A number and a plain word are everywhere, so each is one only under
its own name. Invariant: repeats are bounded, so a search is linear in the text.
"""

import re
from collections.abc import Callable, Iterator

from ricordo.guard.rule import SecretSpan
from ricordo.guard.values import is_word_passphrase, is_placeholder

__all__ = ["CODE_FINDERS"]

_CODE_OWNER = r"(?:[ \t](?:of|for|von|der|de[rsl]?|du|für|zu[rm]?)[ \t][^\n.,;:=]{1,24}?)?"
_CODE_SIGN = r"(?:[ \t]?[:=][ \t]?|[ \t](?:is|was|ist|lautet|est|es|è|é|jest|är|er)[ \t:]{1,2})"
_UNIT = r"[ \t](?:digit|Ziffer|Stelle|chiffre|d[ií]gito|cifr|character|times|attempts|years?\b)"
_PIN_CODE = re.compile(
    r"(?<![A-Za-z0-9_.-])(?:PIN|PUK|[Pp]uk|[Pp]in[ -]?[Cc]ode|(?:my|sim|card|bank|phone|door|meine?|mon|mi)[ \t][Pp]in)"
    rf"[12]?(?:[ -][Cc]ode)?{_CODE_OWNER}{_CODE_SIGN}[\"'`*]{{0,2}}(?P<value>\d{{4,8}})(?![\w-]|[.,:/]\d|{_UNIT})"
)
# In India a PIN code is that of a place, and has six digits.
_POSTAL_NAME = re.compile(r"(?:pin[ ]?code|postal[ \t]pin|post[ \t]pin)\W", re.IGNORECASE)
_PLACE = re.compile(r",?[ \t][A-Z]")
_CODE_HINTS = (
    b"pin:", b"pin =", b"pin=", b"pin is", b"pin ist", b"pin est", b"pin es ", b"pin lautet", b"pin code", b"pin-code",
    b"pincode", b"pin of ", b"pin for ", b"puk",
)  # fmt: skip

_PHRASE = re.compile(
    r"(?:passphrase|diceware)(?:[ \t]?[:=][ \t]{0,2}|[ \t](?:is|ist|lautet)[ \t])[\"'`]?"
    r"(?P<value>[^\W\d_]{3,12}(?:[ ][^\W\d_]{3,12}){3,9})(?=[\"'`.]{0,2}[ \t]*(?:\r|\n|\Z))",
    re.IGNORECASE,
)

_USER = r"[\"']?[\w.@\\/-]{1,64}"
_AFTER_USER = r"(?P<value>[^\s\"'$<>{}]{3,256})"
_HTTPIE = re.compile(rf"(?<![\w/:.-])https?[ \t][^\n|;]{{0,200}}?(?<=[ \t])(?:-a[ \t]|--auth[ =]){_USER}:{_AFTER_USER}")
_SHARE = re.compile(rf"(?<!\w)(?:smb|rpc)client\b[^\n|;]{{0,200}}?[ \t]-U[ \t]{_USER}%{_AFTER_USER}")
_LFTP = re.compile(rf"(?<!\w)lftp\b[^\n|;]{{0,200}}?[ \t]-u[ \t]{_USER},{_AFTER_USER}")
_LOGINS = ((b" -a ", _HTTPIE), (b"--auth", _HTTPIE), (b" -u ", _SHARE), (b" -u ", _LFTP))


def _find_codes(text: str) -> Iterator[SecretSpan]:
    low = text.encode("ascii", "replace").lower()
    for found in _PIN_CODE.finditer(text) if any(hint in low for hint in _CODE_HINTS) else ():
        if not _is_postal(text, found):
            yield _code_span(found)


def _is_postal(text: str, found: re.Match[str]) -> bool:
    if len(found["value"]) != 6:
        return False
    named = _POSTAL_NAME.search(text[max(0, found.start() - 8) : found.start("value")])
    return named is not None or _PLACE.match(text, found.end()) is not None


def _find_phrases(text: str) -> Iterator[SecretSpan]:
    for found in _PHRASE.finditer(text):
        if is_word_passphrase(found["value"]):
            yield _code_span(found)


def _login_finder(pattern: re.Pattern[str]) -> Callable[[str], Iterator[SecretSpan]]:
    def find(text: str) -> Iterator[SecretSpan]:
        for found in pattern.finditer(text):
            if not is_placeholder(found["value"]):
                yield _code_span(found)

    return find


def _code_span(found: re.Match[str]) -> SecretSpan:
    return SecretSpan(start=found.start("value"), end=found.end("value"), type="password", rank=1)


CODE_FINDERS: tuple[tuple[bytes, Callable[[str], Iterator[SecretSpan]]], ...] = (
    (b"pin", _find_codes),
    (b"puk", _find_codes),
    *((hint, _find_phrases) for hint in (b"passphrase", b"diceware")),
    *((hint, _login_finder(pattern)) for hint, pattern in _LOGINS),
)
"""By a literal of the lower-cased text: what finds secrets where it stands."""
