"""Which passages only ask: a question is no answer, whoever asked it and however well its words fit. Pure.

What was asked is written down like everything else, so the passage nearest to a question is often the same question,
asked before. A passage that also states something is no mere question, and a memory that was saved is no echo.
"""

import re

from ricordo.language import Act, acts, split_sentences, words
from ricordo.recall.hits import Hit

__all__ = ["only_asks"]

_LONGEST = 2_000
_BESIDE = frozenset[Act]({"acknowledgement", "farewell", "greeting", "praise", "reaction", "thanks"})
_STATING = frozenset[Act]({"convention", "correction", "decision", "goal", "lesson", "preference"})
# "The limit is 10, right?" states
_TAG = re.compile(r",\s*(?:right|correct|ok(?:ay)?|yes|no|nicht wahr|oder|n'est-ce pas|verdad|vero|né)\s*\?\W*$", re.I)
# people leave the mark out when they type
_UNMARKED = re.compile(
    r"^\W*(?:what|where|when|who|why|how|which \w+)(?:['’]s| (?:is|are|was|were|do|does|did|can|should))\b[^.!?,;:]*$",
    re.IGNORECASE,
)


def only_asks(hit: Hit, question: str) -> bool:
    """Tell whether a hit is nothing but questions, or nothing but the words of `question`.

    Judged by its first 2,000 characters. A saved memory in the words of the question is an answer to it.
    """
    memory = bool(hit.signals.get("memory"))
    content = hit.entry.content.strip()[:_LONGEST]
    if not memory and words(content.casefold()) == words(question.casefold()):
        return True
    asked = False
    for sentence in split_sentences(content):
        found = acts(sentence.text)
        if _asks(sentence.text, found, memory=memory):
            asked = True
        elif not found & _BESIDE:
            return False
    return asked


def _asks(sentence: str, found: frozenset[Act], *, memory: bool) -> bool:
    if memory:
        return "question" in found and not found & _STATING
    return ("question" in found and not _TAG.search(sentence)) or _UNMARKED.match(sentence) is not None
