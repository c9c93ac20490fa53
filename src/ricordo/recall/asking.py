"""Which passages only ask: a question is no answer, whoever asked it and however well its words fit. Pure.

What was asked is written down like everything else, so the passage nearest to a question is often the same question,
asked before. A passage that also states something is no mere question, and a memory that was saved is no echo.
"""

import re

from ricordo.language import Act, detect_acts, split_sentences, split_words
from ricordo.recall.hits import Hit

__all__ = ["is_only_question"]

_MAX_HIT_CHARS = 2_000
_SMALL_TALK_ACTS = frozenset[Act]({"acknowledgement", "farewell", "greeting", "praise", "reaction", "thanks"})
_STATING_ACTS = frozenset[Act]({"convention", "correction", "decision", "goal", "lesson", "preference"})
# "The limit is 10, right?" states
_TAG_QUESTION = re.compile(
    r",\s*(?:right|correct|ok(?:ay)?|yes|no|nicht wahr|oder|n'est-ce pas|verdad|vero|né)\s*\?\W*$", re.I
)
# people leave the mark out when they type
_UNMARKED_QUESTION = re.compile(
    r"^\W*(?:what|where|when|who|why|how|which \w+)(?:['’]s| (?:is|are|was|were|do|does|did|can|should))\b[^.!?,;:]*$",
    re.IGNORECASE,
)


def is_only_question(hit: Hit, question: str) -> bool:
    """Tell whether a hit is nothing but questions, or nothing but the words of `question`.

    Judged by its first 2,000 characters. A saved memory in the words of the question is an answer to it.
    """
    memory = bool(hit.signals.get("memory"))
    content = hit.entry.content.strip()[:_MAX_HIT_CHARS]
    if not memory and split_words(content.casefold()) == split_words(question.casefold()):
        return True
    asked = False
    for sentence in split_sentences(content):
        found = detect_acts(sentence.text)
        if _is_question_sentence(sentence.text, found, memory=memory):
            asked = True
        elif not found & _SMALL_TALK_ACTS:
            return False
    return asked


def _is_question_sentence(sentence: str, found: frozenset[Act], *, memory: bool) -> bool:
    if memory:
        return "question" in found and not found & _STATING_ACTS
    return ("question" in found and not _TAG_QUESTION.search(sentence)) or _UNMARKED_QUESTION.match(
        sentence
    ) is not None
