"""Signals: what in a message tells that something is to be learned, in many languages and without a model."""

from functools import lru_cache

from ricordo.language.signals import chinese, english
from ricordo.language.signals.acknowledgements import is_acknowledgement
from ricordo.language.signals.detector import SignalDetector
from ricordo.language.signals.hints import HINTS, hints
from ricordo.language.signals.types import SIGNALS, Signal, SignalPack

__all__ = ["HINTS", "SIGNALS", "Signal", "SignalDetector", "SignalPack", "bundled", "hints", "is_acknowledgement"]


@lru_cache(maxsize=1)
def bundled() -> SignalDetector:
    """Return the detector with the packs that come with the package."""
    return SignalDetector(packs=(english.PACK, chinese.PACK))
