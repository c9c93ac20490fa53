"""How much two texts share, counted in content words.

Set arithmetic only: no weights, no corpus, so the same two texts always score the same and a person can check the
number by hand. Every measure is in 0..1, higher is nearer; an empty side scores 0.
"""

from collections.abc import Collection

from ricordo.language.languages import Language
from ricordo.language.words import content_words

__all__ = ["containment", "jaccard", "overlap", "text_similarity"]


def containment(part: Collection[str], whole: Collection[str]) -> float:
    """Return the share of the distinct words of `part` that `whole` holds too."""
    wanted = set(part)
    return len(wanted & set(whole)) / len(wanted) if wanted else 0.0


def overlap(left: Collection[str], right: Collection[str]) -> float:
    """Return the shared words over the smaller side (Szymkiewicz-Simpson): 1 when one holds all of the other."""
    first, second = set(left), set(right)
    return len(first & second) / min(len(first), len(second)) if first and second else 0.0


def jaccard(left: Collection[str], right: Collection[str]) -> float:
    """Return the shared words over all words: 1 only for equal sets."""
    first, second = set(left), set(right)
    return len(first & second) / len(first | second) if first and second else 0.0


def text_similarity(left: str, right: str, language: Language | None = None) -> float:
    """Return the Jaccard similarity of the content words of two texts."""
    return jaccard(content_words(left, language), content_words(right, language))
