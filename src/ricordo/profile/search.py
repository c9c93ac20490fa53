"""Which facts have to do with what is asked: BM25 over the facts of one profile. Pure.

A profile is small, so its own facts are the collection that words are weighed by. A fact and a question are read in
the language of the fact, so that inflected words meet.
"""

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from ricordo.language import content_words, detect_language
from ricordo.workspace.profile import Fact

__all__ = ["find_facts", "relevance"]

_K1, _B = 1.2, 0.75


def find_facts(facts: Sequence[Fact], query: str = "", category: str | None = None) -> tuple[Fact, ...]:
    """Return the facts of a category that have to do with `query`, best first; without a query all, as they stand.

    Where no word of it is found, those that hold it as it is written. Category names are compared without case.
    """
    wanted = category.strip().casefold() if category is not None else None
    among = [fact for fact in facts if wanted is None or fact.category.strip().casefold() == wanted]
    if not query.strip():
        return tuple(among)
    scores = relevance(among, query)
    ranked = sorted(range(len(among)), key=lambda at: (-scores[at], -among[at].confidence, at))
    if any(scores):
        return tuple(among[at] for at in ranked if scores[at] > 0)
    said = query.strip().casefold()
    return tuple(fact for fact in among if said in fact.content.casefold())


def relevance(facts: Sequence[Fact], query: str) -> list[float]:
    """Return for each fact how much it has to do with `query`, in 0..1; the best one that has any has 1.

    BM25 by Robertson and Zaragoza (2009), k1 1.2 and b 0.75, over the content words of the facts.
    """
    read = [_fact_words(_fact_text(fact)) for fact in facts]
    held = [Counter(words) for _, words in read]
    counts = Counter(word for each in held for word in each)
    usual = sum(len(words) for _, words in read) / len(read) if read else 0.0
    scores = []
    for (language, words), each in zip(read, held, strict=True):
        length = 1 - _B + _B * len(words) / usual if usual else 1.0
        scores.append(
            sum(
                _word_weight(counts[word], len(read)) * each[word] * (_K1 + 1) / (each[word] + _K1 * length)
                for word in set(_query_words(query, language))
                if word in each
            )
        )
    best = max(scores, default=0.0)
    return [score / best if best else 0.0 for score in scores]


def _word_weight(holding: int, every: int) -> float:
    return math.log(1 + (every - holding + 0.5) / (holding + 0.5))


def _fact_text(fact: Fact) -> str:
    parts = (fact.content, fact.category, fact.source_error)
    return " ".join(part for part in parts if isinstance(part, str))


@lru_cache(maxsize=4_096)
def _fact_words(text: str) -> tuple[str, tuple[str, ...]]:
    language = detect_language(text)
    return language, content_words(text, language)


@lru_cache(maxsize=256)
def _query_words(query: str, language: str) -> tuple[str, ...]:
    return content_words(query, language)  # type: ignore[arg-type]
