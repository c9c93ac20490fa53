"""Signals: what in a message tells that something is to be learned, in many languages and without a model."""

from functools import lru_cache

from ricordo.language.signals import (
    arabic,
    chinese,
    english,
    french,
    german,
    hindi,
    italian,
    japanese,
    korean,
    other_latin,
    portuguese,
    russian,
    spanish,
)
from ricordo.language.signals.acknowledgements import is_acknowledgement
from ricordo.language.signals.detector import CompiledPack, SignalDetector
from ricordo.language.signals.types import SIGNALS, Signal, SignalPack

__all__ = [
    "SIGNALS",
    "CompiledPack",
    "Signal",
    "SignalDetector",
    "SignalPack",
    "default_detector",
    "is_acknowledgement",
]

_SIGNAL_PACKS = (
    english.SIGNAL_PACK,
    german.SIGNAL_PACK,
    french.SIGNAL_PACK,
    spanish.SIGNAL_PACK,
    italian.SIGNAL_PACK,
    portuguese.SIGNAL_PACK,
    *other_latin.CORRECTION_PACKS,
    chinese.SIGNAL_PACK,
    japanese.SIGNAL_PACK,
    korean.KOREAN_PACK,
    russian.RUSSIAN_PACK,
    arabic.ARABIC_PACK,
    hindi.HINDI_PACK,
)


@lru_cache(maxsize=1)
def default_detector() -> SignalDetector:
    """Return the detector with the packs that come with the package."""
    return SignalDetector(packs=_SIGNAL_PACKS)
