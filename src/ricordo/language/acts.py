"""What a sentence does: greet, ask, decide, prefer, correct.

One pack of patterns for each language, matched against a sentence whose quoted and code parts have been blanked, so
that talking about a phrase is not using it. A pack is data: to improve a language, edit its file; to add an act, add
it to `Act` and to the packs that know it. Corrections are recognised in further languages that have no pack of their
own.

Invariant: every pattern repeats a bounded number of times, so `detect_acts` is linear in the sentence, and it never
raises.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from ricordo.language.languages import Language, detect_language
from ricordo.language.packs import (
    Act,
    CuePack,
    chinese,
    english,
    french,
    german,
    italian,
    japanese,
    portuguese,
    spanish,
)
from ricordo.language.packs.other import CORRECTIONS
from ricordo.lazy import lazy_compile

__all__ = ["Act", "blank_quotes", "detect_acts", "is_correction"]

_CUE_PACKS: Mapping[Language, CuePack] = {
    "en": english.CUE_PACK,
    "de": german.CUE_PACK,
    "fr": french.CUE_PACK,
    "es": spanish.CUE_PACK,
    "it": italian.CUE_PACK,
    "pt": portuguese.CUE_PACK,
    "zh": chinese.CUE_PACK,
    "ja": japanese.CUE_PACK,
}
_MAX_CHARS = 600
_QUOTATION = lazy_compile(
    r"`[^`\n]{1,300}`|\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|«[^»\n]{1,300}»|„[^“”\n]{1,300}[“”]|「[^」\n]{1,300}」"
)
_ENDS_IN_WORD = lazy_compile(r"(?<!\\)[^\W\d_]$|(?<!\\)\)$")
_CONTINUED = lazy_compile(r"\n +")
_WITHOUT_WORD_EDGES = frozenset[Language]({"zh", "ja"})


def detect_acts(sentence: str, language: Language | None = None) -> frozenset[Act]:
    """Return every act that a sentence's first 600 characters give a cue for; empty for a plain statement."""
    tongue = language or detect_language(sentence)
    return _match_acts(sentence[:_MAX_CHARS].replace("’", "'"), tongue)


@lru_cache(maxsize=4096)
def is_correction(text: str) -> bool:
    """Say whether a text sets an earlier statement right, in any language that has correction cues.

    Quoted phrases, code and a mere question ("right?") are no corrections.
    """
    plain = blank_quotes(text[:_MAX_CHARS].replace("’", "'")).strip()
    return any(pattern.search(plain) for pattern in _correction_patterns())


def blank_quotes(text: str) -> str:
    """Return the text with what stands in quotation marks or backticks replaced by as many spaces."""
    return _QUOTATION.sub(lambda match: " " * len(match.group()), text)


@lru_cache(maxsize=4096)
def _match_acts(sentence: str, language: Language) -> frozenset[Act]:
    plain = blank_quotes(sentence).strip(" \t\n*_-–—\"'“”(")
    return frozenset(act for act, pattern in _compile_cues(language).items() if pattern.search(plain))


@lru_cache(maxsize=16)
def _compile_cues(language: Language) -> Mapping[Act, re.Pattern[str]]:
    return {
        act: _compile_act(lines, edges=language not in _WITHOUT_WORD_EDGES)
        for act, lines in _CUE_PACKS[language].items()
    }


@lru_cache(maxsize=1)
def _correction_patterns() -> tuple[re.Pattern[str], ...]:
    own = [_compile_cues(language)["correction"] for language in _CUE_PACKS]
    return (*own, *(_compile_act(lines, edges=wide) for lines, wide in CORRECTIONS.values()))


def _compile_act(lines: str, *, edges: bool) -> re.Pattern[str]:
    """Join the lines of one act; where words have edges, a pattern starts and ends at one."""
    options = []
    for line in filter(None, _CONTINUED.sub("", lines).split("\n")):
        anchored, body = line.startswith("^"), line.removeprefix("^")
        before = "^" if anchored else (r"(?<!\w)" if edges and (body[0].isalnum() or body[0] == "(") else "")
        after = r"(?!\w)" if edges and _ENDS_IN_WORD.search(body) else ""
        options.append(f"{before}(?:{body}){after}")
    return re.compile("|".join(options), re.IGNORECASE)
