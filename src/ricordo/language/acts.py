"""What a sentence does: its acts, such as a greeting or a decision; the signals of a person; and acknowledgements.

Patterns of the packs are matched against a sentence whose quoted and code parts have been blanked, so that talking
about a phrase is not using it. An act is looked for in the language of its sentence, corrections and signals in all
languages of its script. Questions give no signals. Patterns of one's own, from a directory, take the place of all
packs.

Invariant: every pattern repeats a bounded number of times, so the time is linear in the text, and nothing raises for
any text.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

from ricordo.language.languages import UNSEGMENTED, Language, Script, detect_language, script_of
from ricordo.language.packs import (
    SIGNALS,
    Act,
    LanguagePack,
    PatternTable,
    Signal,
    join_lines,
    language_pack,
    language_packs,
    split_lines,
)
from ricordo.language.sentences import blank_quotes, split_sentences
from ricordo.lazy import dataclass, lazy_compile

__all__ = [
    "SIGNALS",
    "Act",
    "CompiledPack",
    "Signal",
    "SignalDetector",
    "compile_pack",
    "default_detector",
    "detect_acts",
    "is_acknowledgement",
    "is_correction",
    "iter_statements",
]

_MAX_CHARS = 600


def detect_acts(sentence: str, language: Language | None = None) -> frozenset[Act]:
    """Return every act that a sentence's first 600 characters give a cue for; empty for a plain statement."""
    sentence_language = language or detect_language(sentence)
    return _match_acts(sentence[:_MAX_CHARS].replace("’", "'"), sentence_language)


@lru_cache(maxsize=4096)
def is_correction(text: str) -> bool:
    """Say whether a text sets an earlier statement right, in any language that has correction cues.

    Quoted phrases, code and a mere question ("right?") are no corrections.
    """
    plain = blank_quotes(text[:_MAX_CHARS].replace("’", "'")).strip()
    return bool(_corrections().find_matching(plain))


@lru_cache(maxsize=4096)
def _match_acts(sentence: str, language: Language) -> frozenset[Act]:
    plain = blank_quotes(sentence).strip(" \t\n*_-–—\"'“”(")
    return _cues(language).find_matching(plain)


@lru_cache(maxsize=32)
def _cues(language: Language) -> PatternTable[Act]:
    pack = language_pack(language)
    return PatternTable({act: join_lines(lines, edges=pack.edges) for act, lines in pack.cues.items()})


@lru_cache(maxsize=1)
def _corrections() -> PatternTable[str]:
    """Return the cues of corrections by language."""
    return PatternTable(
        {
            pack.code: join_lines(pack.cues["correction"], edges=pack.edges)
            for pack in language_packs()
            if "correction" in pack.cues
        }
    )


_MAX_ACKNOWLEDGEMENT_CHARS = 80


def _normalize(text: str) -> str:
    """Letters and spaces only, small, composed: "OK, thanks! 🙏" becomes "ok thanks"."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").strip()
    letters = "".join(
        char if char.isalnum() or char == "'" or unicodedata.combining(char) or _is_mark(char) else " "
        for char in plain
    )
    return " ".join(letters.split())


def _is_mark(char: str) -> bool:
    return unicodedata.category(char) in {"Mn", "Mc"}


def _acknowledgement_pattern() -> str:
    joined = [pack for pack in language_packs() if pack.scripts <= UNSEGMENTED]
    spaced = [pack for pack in language_packs() if pack not in joined]
    phrases = (_normalize(each) for pack in spaced for each in _split_phrases(pack))
    spaced_phrases = "|".join(map(re.escape, sorted(phrases, key=len, reverse=True)))
    joined_phrases = "|".join(each for pack in joined for each in _split_phrases(pack))
    return rf"(?:{spaced_phrases})(?: (?:{spaced_phrases})){{0,5}}|(?:(?:{joined_phrases}) ?){{1,6}}"


def _split_phrases(pack: LanguagePack) -> list[str]:
    lines = split_lines(pack.phrases.get("acknowledgement", ""))
    return [each for line in lines for each in line.split("|")]


_ACKNOWLEDGEMENT = lazy_compile(_acknowledgement_pattern)


def is_acknowledgement(text: str) -> bool:
    """Say whether a text is nothing but "ok", "thanks" and the like, in any of some twenty languages.

    Punctuation and emoji do not count. A text of signs alone ("👍") is one; an empty text is none.
    """
    if not text.strip() or len(text) > _MAX_ACKNOWLEDGEMENT_CHARS:
        return False
    plain = _normalize(text)
    return not plain or _ACKNOWLEDGEMENT.fullmatch(plain) is not None


_MAX_TEXT_CHARS = 20_000
_MAX_SENTENCE_CHARS = 400
_CLAUSE_CHARS = 60
_OTHER_QUOTES = lazy_compile(
    r"‘[^’\n]{1,300}’(?!\w)|『[^』\n]{1,300}』|(?<!\w)'[^'\n]{1,300}'(?!\w)|《[^》\n]{1,300}》"
)
_QUESTION = lazy_compile(r"[?？؟][\"”』」’»)\s]*$")
_EDGE = " \t\n*_-–—\"'“”(¡¿"
_CLAUSE_END = lazy_compile(r"[,;:—–.!،؛，；：。！、]")


@dataclass(frozen=True, kw_only=True)
class CompiledPack:
    """The patterns of one language, ready for use."""

    signals: Mapping[Signal, Sequence[re.Pattern[str]]]
    denied: re.Pattern[str] | None = None
    mentioned: re.Pattern[str] | None = None
    asked: re.Pattern[str] | None = None
    scripts: frozenset[str] | None = None

    def find_signals(self, sentence: str, among: Collection[Signal] = SIGNALS) -> Iterator[Signal]:
        """Yield each signal of those `among` that stands in a sentence without quotes, once."""
        if not among or (self.asked and self.asked.search(sentence)):
            return
        for signal in among:
            patterns = self.signals.get(signal, ())
            matches = (match for pattern in patterns for match in pattern.finditer(sentence))
            if any(not self._is_negated(sentence, match.start()) for match in matches):
                yield signal

    def _is_negated(self, sentence: str, position: int) -> bool:
        """Say whether what stands before a match makes it denied or merely talked about."""
        clause = _CLAUSE_END.split(sentence[max(0, position - _CLAUSE_CHARS) : position])[-1]
        if self.denied and self.denied.search(clause):
            return True
        return self.mentioned is not None and self.mentioned.search(sentence[:position]) is not None


@dataclass(frozen=True)
class SignalDetector:
    """Finds signals in a text by the patterns of its packs."""

    packs: Sequence[LanguagePack] = ()
    custom: Sequence[CompiledPack] = ()

    def detect(self, text: str) -> frozenset[Signal]:
        """Return the signals that a person gives with a text; only its first 20,000 characters count."""
        signals: set[Signal] = set()
        for sentence in iter_statements(text):
            scripts = _scripts_of(sentence)
            possible = self._table.find_possible(sentence)
            for code, pack in self._compiled_packs.items():
                if pack.scripts is None or not pack.scripts.isdisjoint(scripts):
                    among = [signal for signal in pack.signals if (code, signal) in possible]
                    signals.update(pack.find_signals(sentence, among))
            for pack in self.custom:
                signals.update(pack.find_signals(sentence))
        return frozenset(signals)

    @cached_property
    def _compiled_packs(self) -> dict[str, CompiledPack]:
        return {pack.code: compile_pack(pack) for pack in self.packs}

    @cached_property
    def _table(self) -> PatternTable[tuple[str, Signal]]:
        """The patterns of all packs by language and signal."""
        return PatternTable(
            {
                (pack.code, signal): join_lines(lines, edges=pack.edges)
                for pack in self.packs
                for signal, lines in pack.signals.items()
            }
        )


def iter_statements(text: str) -> Iterator[str]:
    """Yield the sentences of a text that state something, quotations blanked, apostrophes straight."""
    plain = _OTHER_QUOTES.sub(_blank, blank_quotes(text[:_MAX_TEXT_CHARS]).replace("’", "'"))
    for sentence in split_sentences(plain):
        statement = sentence.text.strip(_EDGE)
        if sentence.kind in {"prose", "item"} and statement and not _QUESTION.search(statement):
            yield " ".join(statement[:_MAX_SENTENCE_CHARS].split())


def compile_pack(pack: LanguagePack) -> CompiledPack:
    """Return the patterns of a pack, joined; those of signals are compiled at their first use."""
    return CompiledPack(
        signals={
            signal: (lazy_compile(join_lines(lines, edges=pack.edges), re.IGNORECASE),)
            for signal, lines in pack.signals.items()
        },
        denied=_compile_optional(pack.denied),
        mentioned=_compile_optional(pack.mentioned),
        asked=_compile_optional(pack.asked),
        scripts=pack.scripts,
    )


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


@lru_cache(maxsize=1024)
def _scripts_of(sentence: str) -> frozenset[Script]:
    """Japanese is read as Japanese also where it is written in Chinese characters."""
    scripts = frozenset(script_of(char) for char in sentence)
    return scripts - {"han"} if scripts & {"hiragana", "katakana"} else scripts


def _compile_optional(pattern: str) -> re.Pattern[str] | None:
    return re.compile(pattern, re.IGNORECASE) if pattern else None


@lru_cache(maxsize=1)
def default_detector() -> SignalDetector:
    """Return the detector with the packs that come with the package."""
    return SignalDetector(packs=tuple(pack for pack in language_packs() if pack.signals))
