"""What a sentence does: greet, ask, decide, prefer, correct.

One pack of patterns for each language, matched against a sentence whose quoted and code parts have been blanked, so
that talking about a phrase is not using it. A pack is data: to improve a language, edit its file; to add an act, add
it to `Act` and to the packs that know it. Corrections are recognised in further languages that have no pack of their
own.

Invariant: every pattern repeats a bounded number of times, so `acts` is linear in the sentence, and it never raises.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from ricordo.language.cues import chinese, english, french, german, italian, japanese, portuguese, spanish
from ricordo.language.cues.corrections import CORRECTIONS
from ricordo.language.cues.types import Act, CuePack
from ricordo.language.languages import Language, detect_language

__all__ = ["Act", "acts", "blank_quoted", "is_correction"]

_PACKS: Mapping[Language, CuePack] = {
    "en": english.PACK,
    "de": german.PACK,
    "fr": french.PACK,
    "es": spanish.PACK,
    "it": italian.PACK,
    "pt": portuguese.PACK,
    "zh": chinese.PACK,
    "ja": japanese.PACK,
}
_LONGEST = 600
_QUOTED = re.compile(
    r"`[^`\n]{1,300}`|\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|«[^»\n]{1,300}»|„[^“”\n]{1,300}[“”]|「[^」\n]{1,300}」"
)
_ENDS_IN_WORD = re.compile(r"(?<!\\)[^\W\d_]$|(?<!\\)\)$")
_CONTINUED = re.compile(r"\n +")
_WIDE = frozenset[Language]({"zh", "ja"})


def acts(sentence: str, language: Language | None = None) -> frozenset[Act]:
    """Return every act that a sentence's first 600 characters give a cue for; empty for a plain statement."""
    tongue = language or detect_language(sentence)
    return _acts(sentence[:_LONGEST].replace("’", "'"), tongue)


@lru_cache(maxsize=4096)
def is_correction(text: str) -> bool:
    """Say whether a text sets an earlier statement right, in any language that has correction cues.

    Quoted phrases, code and a mere question ("right?") are no corrections.
    """
    plain = blank_quoted(text[:_LONGEST].replace("’", "'")).strip()
    return any(pattern.search(plain) for pattern in _corrections())


def blank_quoted(text: str) -> str:
    """Return the text with what stands in quotation marks or backticks replaced by as many spaces."""
    return _QUOTED.sub(lambda match: " " * len(match.group()), text)


@lru_cache(maxsize=4096)
def _acts(sentence: str, language: Language) -> frozenset[Act]:
    plain = blank_quoted(sentence).strip(" \t\n*_-–—\"'“”(")
    return frozenset(act for act, pattern in _compiled(language).items() if pattern.search(plain))


@lru_cache(maxsize=16)
def _compiled(language: Language) -> Mapping[Act, re.Pattern[str]]:
    return {act: _pattern(lines, edges=language not in _WIDE) for act, lines in _PACKS[language].items()}


@lru_cache(maxsize=1)
def _corrections() -> tuple[re.Pattern[str], ...]:
    own = [_compiled(language)["correction"] for language in _PACKS]
    return (*own, *(_pattern(lines, edges=wide) for lines, wide in CORRECTIONS.values()))


def _pattern(lines: str, *, edges: bool) -> re.Pattern[str]:
    """Join the lines of one act; where words have edges, a pattern starts and ends at one."""
    options = []
    for line in filter(None, _CONTINUED.sub("", lines).split("\n")):
        anchored, body = line.startswith("^"), line.removeprefix("^")
        before = "^" if anchored else (r"(?<!\w)" if edges and (body[0].isalnum() or body[0] == "(") else "")
        after = r"(?!\w)" if edges and _ENDS_IN_WORD.search(body) else ""
        options.append(f"{before}(?:{body}){after}")
    return re.compile("|".join(options), re.IGNORECASE)
