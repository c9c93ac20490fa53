"""Finding signals: phrases of a language in what a person says, and not in what is quoted, denied or asked.

A text is cut into sentences; code, quoted lines, quotation marks and questions are left alone. The packs of the scripts
that a sentence holds are tried, since a short sentence does not tell one language from its neighbour. Patterns of one's
own, from a directory, take the place of all packs; then only the sentences are cut as ever.

Invariant: the time is linear in the text, and nothing raises for any text.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ricordo.language.cues import blank_quotes
from ricordo.language.scripts import Script, script_of
from ricordo.language.sentences import split_sentences
from ricordo.language.signals.types import SIGNALS, Signal, SignalPack

__all__ = ["CompiledPack", "SignalDetector", "compile_pack", "iter_statements"]

_MAX_TEXT_CHARS = 20_000
_MAX_SENTENCE_CHARS = 400
_CLAUSE_CHARS = 60
_CONTINUED = re.compile(r"\n +")
_ENDS_IN_WORD = re.compile(r"(?<!\\)[^\W\d_]$|(?<!\\)\)$")
_OTHER_QUOTES = re.compile(r"‘[^’\n]{1,300}’(?!\w)|『[^』\n]{1,300}』|(?<!\w)'[^'\n]{1,300}'(?!\w)|《[^》\n]{1,300}》")
_QUESTION = re.compile(r"[?？؟][\"”』」’»)\s]*$")
_EDGE = " \t\n*_-–—\"'“”(¡¿"
_CLAUSE_END = re.compile(r"[,;:—–.!،؛，；：。！、]")


@dataclass(frozen=True, kw_only=True)
class CompiledPack:
    """The patterns of one language, ready for use."""

    signals: Mapping[Signal, Sequence[re.Pattern[str]]]
    denied: re.Pattern[str] | None = None
    mentioned: re.Pattern[str] | None = None
    asked: re.Pattern[str] | None = None
    scripts: frozenset[str] | None = None

    def find_signals(self, sentence: str) -> Iterator[Signal]:
        """Yield each signal that stands in a sentence without quotes, once."""
        if self.asked and self.asked.search(sentence):
            return
        for signal, patterns in self.signals.items():
            matches = (match for pattern in patterns for match in pattern.finditer(sentence))
            if any(not self._is_negated(sentence, match.start()) for match in matches):
                yield signal

    def _is_negated(self, sentence: str, at: int) -> bool:
        """Say whether what stands before a match makes it denied or merely talked about."""
        clause = _CLAUSE_END.split(sentence[max(0, at - _CLAUSE_CHARS) : at])[-1]
        if self.denied and self.denied.search(clause):
            return True
        return self.mentioned is not None and self.mentioned.search(sentence[:at]) is not None


@dataclass(frozen=True)
class SignalDetector:
    """Finds signals in a text by the patterns of its packs."""

    packs: Sequence[SignalPack] = ()
    custom: Sequence[CompiledPack] = ()

    def detect(self, text: str) -> frozenset[Signal]:
        """Return the signals that a person gives with a text; only its first 20,000 characters count."""
        found: set[Signal] = set()
        for sentence in iter_statements(text):
            scripts = _scripts_of(sentence)
            for pack in self._compiled_packs:
                if pack.scripts is None or not pack.scripts.isdisjoint(scripts):
                    found.update(pack.find_signals(sentence))
        return frozenset(found)

    @cached_property
    def _compiled_packs(self) -> tuple[CompiledPack, ...]:
        return (*(compile_pack(pack) for pack in self.packs), *self.custom)


def iter_statements(text: str) -> Iterator[str]:
    """Yield the sentences of a text that state something, quotations blanked, apostrophes straight."""
    plain = _OTHER_QUOTES.sub(_blank, blank_quotes(text[:_MAX_TEXT_CHARS]).replace("’", "'"))
    for sentence in split_sentences(plain):
        said = sentence.text.strip(_EDGE)
        if sentence.kind in {"prose", "item"} and said and not _QUESTION.search(said):
            yield " ".join(said[:_MAX_SENTENCE_CHARS].split())


def compile_pack(pack: SignalPack) -> CompiledPack:
    """Return the patterns of a pack, joined and compiled."""
    return CompiledPack(
        signals={
            signal: (_compile_signal(pack.signals[signal], edges=pack.edges),)
            for signal in SIGNALS
            if signal in pack.signals
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
    found = frozenset(script_of(char) for char in sentence)
    return found - {"han"} if found & {"hiragana", "katakana"} else found


def _compile_optional(pattern: str) -> re.Pattern[str] | None:
    return re.compile(pattern, re.IGNORECASE) if pattern else None


def _compile_signal(lines: str, *, edges: bool) -> re.Pattern[str]:
    """Join the lines of one signal; where words have edges, a pattern starts and ends at one."""
    options = []
    for line in filter(None, _CONTINUED.sub("", lines).split("\n")):
        anchored, body = line.startswith("^"), line.removeprefix("^")
        before = "^" if anchored else (r"(?<!\w)" if edges and (body[0].isalnum() or body[0] == "(") else "")
        after = r"(?!\w)" if edges and _ENDS_IN_WORD.search(body) else ""
        options.append(f"{before}(?:{body}){after}")
    return re.compile("|".join(options), re.IGNORECASE)
