"""Signals in what a person says, such as a correction or a preference; and acknowledgements, which say nothing.

A text is cut into sentences; code, quotations and questions are left alone. The packs of the scripts that a sentence
holds are tried. Patterns of one's own, from a directory, take the place of all packs.

Invariant: the time is linear in the text, and nothing raises for any text.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ricordo.language.acts import blank_quotes
from ricordo.language.languages import Script, script_of
from ricordo.language.packs import (
    SIGNALS,
    Signal,
    SignalPack,
    chinese,
    english,
    french,
    german,
    italian,
    japanese,
    other,
    portuguese,
    spanish,
)
from ricordo.language.sentences import split_sentences
from ricordo.lazy import lazy_compile

__all__ = [
    "SIGNALS",
    "CompiledPack",
    "Signal",
    "SignalDetector",
    "SignalPack",
    "compile_pack",
    "default_detector",
    "is_acknowledgement",
    "iter_statements",
]


_SPACED = r"""
ok|okay|okey|k|kk|okie|alright|all right|got it|gotcha|noted|understood|i see|makes sense|sounds good|will do|fine
cool|sure|thanks|thank you|thanks a lot|thanks so much|many thanks|thank you so much|thank you very much|thx|ty
  |cheers
yes|yep|yeah|yup|right|great|nice|good|very good|perfect thanks|no problem|np|much appreciated
danke|danke dir|danke schön|dankeschön|vielen dank|besten dank|alles klar|verstanden|ja|gut|in ordnung|passt|super
prima|klar|genau|merci|merci beaucoup|d'accord|ça marche|compris|bien reçu|entendu|oui|très bien|parfait merci
c'est noté|super merci|gracias|muchas gracias|mil gracias|vale|de acuerdo|entendido|está bien|sí|si|bien|muy bien
perfecto gracias|claro|listo|grazie|grazie mille|va bene|ho capito|capito|d'accordo|sì|bene|molto bene|ricevuto
perfetto grazie|chiaro|obrigado|obrigada|muito obrigado|muito obrigada|valeu|tá bom|está bem|beleza|entendi|certo
sim|combinado|tudo bem|dank je|dank je wel|bedankt|begrepen|duidelijk|oké|dzięki|dziękuję|jasne|rozumiem|dobrze
tak|tack|tack så mycket|förstått|okej|teşekkürler|teşekkür ederim|tamam|anladım|sağ ol
спасибо|большое спасибо|понял|поняла|понятно|ясно|хорошо|ок|окей|ладно|да|принято|благодарю
네|넵|예|응|알겠습니다|알겠어요|알았어|알았어요|감사합니다|고마워|고마워요|고맙습니다|좋아요|확인했습니다|오케이
شكرا|شكرا جزيلا|شكراً|شكراً جزيلاً|شكرا لك|حسنا|حسناً|تمام|فهمت|مفهوم|نعم|طيب
धन्यवाद|शुक्रिया|ठीक है|ठीक|अच्छा|समझ गया|समझ गई|जी|हाँ|हां|बहुत धन्यवाद
"""
_UNSPACED = (
    "好的呢|好的|好滴|好嘞|好吧|好|嗯嗯|嗯|谢谢你|谢谢您|謝謝|谢谢|感谢|感謝|多谢|多謝|对的|对|對|是的|收到|明白了|明白|了解了|了解|"
    "知道了|懂了|没问题|沒問題|可以|行|辛苦了|わかりました|分かりました|わかった|了解です|了解しました|承知しました|はい|"
    "ありがとうございます|ありがとうございました|ありがとう|どうも|なるほど|うん|オーケー|ok"
)
_MAX_ACKNOWLEDGEMENT_CHARS = 80


def _normalize(text: str) -> str:
    """Letters and spaces only, small, composed: "OK, thanks! 🙏" becomes "ok thanks"."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").strip()
    kept = "".join(
        char if char.isalnum() or char == "'" or unicodedata.combining(char) or _is_mark(char) else " "
        for char in plain
    )
    return " ".join(kept.split())


def _is_mark(char: str) -> bool:
    return unicodedata.category(char) in {"Mn", "Mc"}


_SPACED_PHRASES = "|".join(
    re.escape(_normalize(phrase))
    for phrase in sorted(
        (phrase for line in _SPACED.split("\n") for phrase in line.split("|") if phrase), key=len, reverse=True
    )
)
_ACKNOWLEDGEMENT = lazy_compile(rf"(?:{_SPACED_PHRASES})(?: (?:{_SPACED_PHRASES})){{0,5}}|(?:(?:{_UNSPACED}) ?){{1,6}}")


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
_CONTINUED = lazy_compile(r"\n +")
_ENDS_IN_WORD = lazy_compile(r"(?<!\\)[^\W\d_]$|(?<!\\)\)$")
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


_SIGNAL_PACKS = (
    english.SIGNAL_PACK,
    german.SIGNAL_PACK,
    french.SIGNAL_PACK,
    spanish.SIGNAL_PACK,
    italian.SIGNAL_PACK,
    portuguese.SIGNAL_PACK,
    *other.CORRECTION_PACKS,
    chinese.SIGNAL_PACK,
    japanese.SIGNAL_PACK,
    other.KOREAN_PACK,
    other.RUSSIAN_PACK,
    other.ARABIC_PACK,
    other.HINDI_PACK,
)


@lru_cache(maxsize=1)
def default_detector() -> SignalDetector:
    """Return the detector with the packs that come with the package."""
    return SignalDetector(packs=_SIGNAL_PACKS)
