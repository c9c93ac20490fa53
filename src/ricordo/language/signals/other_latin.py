"""Languages of which only corrections are known: Dutch, Polish, Swedish and Turkish."""

from ricordo.language.cues.corrections import CORRECTIONS
from ricordo.language.signals.types import SignalPack

__all__ = ["CORRECTION_PACKS"]

_MENTIONED = {
    "nl": r"\b(?:als|zegt|zei|staat|melding|knop|hij|zij)\b",
    "pl": r"\b(?:jeśli|mówi|powiedział|powiedziała|napis|komunikat|on|ona)\b",
    "sv": r"\b(?:om|säger|sa|står|meddelande|knapp|han|hon)\b",
    "tr": r"\b(?:eğer|diyor|dedi|yazıyor|mesaj|düğme)\b",
}

CORRECTION_PACKS = tuple(
    SignalPack(signals={"correction": CORRECTIONS[language][0]}, mentioned=mentioned)
    for language, mentioned in _MENTIONED.items()
)
"""One pack a language, in the order of their codes."""
