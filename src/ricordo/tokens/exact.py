"""Exact counts, when a tokenizer is installed; the built-in estimate at once when not.

Invariant: nothing here opens a connection. The tokenizer of the extra `tokens` carries its vocabularies; one that is
missing or does not load is replaced by the estimate, never waited for and never fetched.
"""

from dataclasses import dataclass

from ricordo.tokens.estimate import Estimator, TokenCounter

__all__ = ["DEFAULT_VOCABULARY", "VocabularyCounter", "load_token_counter"]

DEFAULT_VOCABULARY = "o200k_base"
"""The vocabulary of OpenAI's current models."""


@dataclass(frozen=True, kw_only=True)
class VocabularyCounter:
    """Counts with the vocabulary of one model family; what only spells a control token counts as plain text."""

    vocabulary: str
    tokenizer: TokenCounter

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`; a lone surrogate counts as the replacement character."""
        try:
            return self.tokenizer.count(text)
        except (TypeError, UnicodeError):
            return self.tokenizer.count(text.encode("utf-8", "replace").decode())


def load_token_counter(vocabulary: str = DEFAULT_VOCABULARY) -> TokenCounter:
    """Return a counter for `vocabulary`: exact when the extra `tokens` is installed and has it, else the estimate."""
    tokenizer = _load_tokenizer(vocabulary)
    return Estimator() if tokenizer is None else VocabularyCounter(vocabulary=vocabulary, tokenizer=tokenizer)


def _load_tokenizer(vocabulary: str) -> TokenCounter | None:
    try:
        import quicktok

        tokenizer: TokenCounter = quicktok.get_encoding(vocabulary)
        tokenizer.count("ready?")
    except (ImportError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError):
        return None
    return tokenizer
