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
from ricordo.language.packs import Act, compile_lines, language_pack, language_packs
from ricordo.lazy import lazy_compile

__all__ = ["Act", "blank_quotes", "detect_acts", "is_correction"]

_MAX_CHARS = 600
_QUOTATION = lazy_compile(
    r"`[^`\n]{1,300}`|\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|«[^»\n]{1,300}»|„[^“”\n]{1,300}[“”]|「[^」\n]{1,300}」"
)


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


@lru_cache(maxsize=32)
def _compile_cues(language: Language) -> Mapping[Act, re.Pattern[str]]:
    pack = language_pack(language)
    return {act: compile_lines(lines, edges=pack.edges) for act, lines in pack.cues.items()}


@lru_cache(maxsize=1)
def _correction_patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(
        compile_lines(pack.cues["correction"], edges=pack.edges)
        for pack in language_packs()
        if "correction" in pack.cues
    )
