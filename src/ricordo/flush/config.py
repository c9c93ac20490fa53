"""Settings of offline extraction."""

from dataclasses import dataclass

from ricordo.errors import InvalidSetting

__all__ = ["ExtractionConfig"]


@dataclass(frozen=True, kw_only=True)
class ExtractionConfig:
    """How much extraction keeps.

    `min_salience` is the score (see `ricordo.flush.salience`) below which a statement without a cue of its own is
    dropped; higher keeps less. `min_confidence` (0..1) drops findings after scoring. `max_entry_chars` bounds one
    finding's statements, `max_sentence_chars` is the length above which a sentence is taken for a paste, and
    `max_message_chars` the length above which only the first and last paragraph of a message are read.
    `assistant_trust` (0..1) multiplies the confidence of what an assistant without a name said; 0 leaves it out.
    """

    min_salience: float = 1.1
    min_confidence: float = 0.3
    max_entry_chars: int = 700
    max_sentence_chars: int = 500
    max_message_chars: int = 6_000
    assistant_trust: float = 0.6

    def __post_init__(self) -> None:
        """Refuse shares outside 0..1 and lengths below 1."""
        for name in ("min_confidence", "assistant_trust"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidSetting(f"{name} is a share between 0 and 1, not {getattr(self, name)!r}.")
        for name in ("max_entry_chars", "max_sentence_chars", "max_message_chars"):
            if getattr(self, name) < 1:
                raise InvalidSetting(f"{name} is a number of characters of at least 1, not {getattr(self, name)!r}.")
