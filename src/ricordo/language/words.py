"""Text to words in any script, and the stop words of each language.

A run of a script without spaces becomes its overlapping bigrams. An identifier, path or compound is kept whole and
followed by its parts. Words are case-folded and NFKC-normalised. Stop words are closed classes only, and a few fillers.

Invariant: one pass over disjoint character classes, so the time is linear in the text.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import chain, repeat

from ricordo.language.languages import Language, detect_language, is_unsegmented, is_unsegmented_language
from ricordo.language.packs import pack_words
from ricordo.language.stemming import stem
from ricordo.lazy import lazy_compile

__all__ = ["GENERIC_WEIGHT", "content_words", "is_generic", "is_stop_word", "split_identifier", "split_words"]


GENERIC_WEIGHT = 0.2
"""How much a generic word weighs, of what any other word that is as rare weighs."""


def is_stop_word(word: str, language: Language = "en") -> bool:
    """Say whether a case-folded word (or bigram) is grammar in that language.

    A single Latin letter is one in every language; a single digit is content.
    """
    listed = pack_words("stop", language)
    if is_unsegmented_language(language):
        return all(char in listed for char in word) or word in pack_words("stop", "en")
    return word in listed or (len(word) == 1 and word.isascii() and word.isalpha())


@cache
def is_generic(word: str, language: Language) -> bool:
    """Tell whether any form of `word` is generic in that language, or in English, which is mixed into all.

    Most questions hold generic words (`use`, `call`, `kind`) and few answers repeat them: "Which database do we use?"
    is answered by "The main database is PostgreSQL", and is not by "We use Fastify".
    """
    return any(stem(word, tongue) in _generic_stems(tongue) for tongue in (language, *_MIXED_IN))


_MIXED_IN: tuple[Language, ...] = ("en",)


@cache
def _generic_stems(language: Language) -> frozenset[str]:
    return frozenset(stem(word, language) for word in pack_words("generic", language))


# Letters and digits of every script, plus the combining signs that str.isalnum leaves out of Indic, Semitic and
# South-East Asian words. The danda (U+0964, U+0965) is a full stop and stays outside.
_CHAR = (
    r"[^\W_]|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
    r"\u0e31-\u0e4e\u0eb1-\u0ecd\u102b-\u103e\u17b4-\u17d3]"
)
_WORD = lazy_compile(rf"(?:{_CHAR})+(?:[-_./:@'’&+\\]{{1,3}}(?:{_CHAR})+)*(?:\+\+|#)?")
# what the same finds in a text of ASCII alone, for much less
_ASCII_WORD = lazy_compile(r"[A-Za-z0-9]+(?:[-_./:@'&+\\]{1,3}[A-Za-z0-9]+)*(?:\+\+|#)?")
_SEPARATORS = lazy_compile(r"[-_./:@'’&+\\#]+")
_CAMEL = lazy_compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_POSSESSIVE = lazy_compile(r"['’]s$", re.IGNORECASE)
_MAX_RUN_CHARS = 200


def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a text in order, repeats kept, case-folded; empty for a text without letters or digits.

    A compound is followed by its parts; characters of unsegmented scripts come as bigrams (a lone one as itself).
    A single run of more than 200 characters is a blob (base64, minified code) and gives nothing.
    """
    return tuple(chain.from_iterable(map(_split_run, _split_runs(text))))


def split_identifier(name: str) -> tuple[str, ...]:
    """Return the parts of an identifier, path or compound in order, case kept; one part when it has no seams.

    Seams are punctuation and changes from lower to upper case: `parseHTTPHeader` gives parse, HTTP, Header.
    """
    parts: list[str] = []
    for piece in _SEPARATORS.split(name):
        camel = _CAMEL.findall(piece) if piece.isascii() and _has_inner_capital(piece) else [piece]
        parts.extend(part for part in camel if part)
    return tuple(parts)


def content_words(text: str, language: Language | None = None) -> tuple[str, ...]:
    """Return the words that carry meaning, in order, repeats kept: stop words out, inflection folded.

    Two texts are comparable when both were read in the same language; `None` detects it from the text (English when
    unsure). Empty for a text of stop words only.
    """
    tongue = language or detect_language(text)
    return tuple(chain.from_iterable(map(_content_words_of_run, _split_runs(text), repeat(tongue))))


def _split_runs(text: str) -> Sequence[str]:
    """Return what stands between white space and most signs, without blobs."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    found: list[str] = (_ASCII_WORD if plain.isascii() else _WORD).findall(plain)
    if len(plain) <= _MAX_RUN_CHARS:
        return found
    return [run for run in found if len(run) <= _MAX_RUN_CHARS or is_unsegmented(run[0])]


@lru_cache(maxsize=32_768)
def _content_words_of_run(run: str, language: Language) -> tuple[str, ...]:
    return tuple(stem(word, language) for word in _split_run(run) if not is_stop_word(word, language))


@lru_cache(maxsize=16_384)
def _split_run(run: str) -> tuple[str, ...]:
    if any(is_unsegmented(char) for char in run):
        return tuple(_split_mixed_run(run))
    plain = _POSSESSIVE.sub("", run.replace("’", "'"))
    whole = plain.casefold()
    parts = split_identifier(plain)
    if len(parts) < 2 or _is_contraction(plain):
        return (whole,)
    return (whole, *(part.casefold() for part in parts if len(part) > 1 or part.isdigit()))


def _split_mixed_run(run: str) -> list[str]:
    """Cut a run that holds unsegmented characters: bigrams there, ordinary words between them."""
    found: list[str] = []
    start = 0
    for at in range(1, len(run) + 1):
        if at < len(run) and is_unsegmented(run[at]) == is_unsegmented(run[start]):
            continue
        piece = run[start:at]
        if not is_unsegmented(piece[0]):
            found.extend(word.casefold() for word in split_identifier(piece))
        elif len(piece) == 1:
            found.append(piece)
        else:
            found.extend(piece[i : i + 2] for i in range(len(piece) - 1))
        start = at
    return found


def _has_inner_capital(word: str) -> bool:
    return any(char.isupper() for char in word[1:]) and any(char.islower() for char in word)


def _is_contraction(word: str) -> bool:
    """Say whether the only seam is an apostrophe (don't, l'eau keep their French or English parts apart elsewhere)."""
    return "'" in word and _SEPARATORS.sub("", word).isalpha() and len(word.rpartition("'")[2]) <= 2
