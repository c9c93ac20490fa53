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
    "bundled",
    "is_acknowledgement",
]

_PACKS = (
    english.PACK,
    german.PACK,
    french.PACK,
    spanish.PACK,
    italian.PACK,
    portuguese.PACK,
    *other_latin.PACKS,
    chinese.PACK,
    japanese.PACK,
    korean.PACK,
    russian.PACK,
    arabic.PACK,
    hindi.PACK,
)


@lru_cache(maxsize=1)
def bundled() -> SignalDetector:
    """Return the detector with the packs that come with the package."""
    return SignalDetector(packs=_PACKS)
