"""Second verbs: "I live in Oslo and work as a nurse" has one subject for two verbs, and both become third person.

English does not mark its verbs, so a word counts as the second verb only where nothing else fits: it is one of a few
that are never nouns ("and have two cats"), or a frequent one between two prepositions, where no noun of a list could
stand ("in Oslo and work as"). Where somebody else, an infinitive or an auxiliary stands between, the verb may be
theirs or bare, and it is left as it was said. So a miss costs grammar, never meaning.
"""

import re

__all__ = ["find_second_verb"]

_NEVER_NOUNS = "am avoid don['’]t eat have prefer speak teach write"
_SECOND_VERBS = """
bike build commute cook cycle deploy drive go hate keep lead like live look love make manage need plan play run share
sleep spend start stay study take test travel use walk want work
"""
_PLACED = r"\s+(?:as|at|by|for|from|in|near|on|over|since|under|with|here|there|abroad|alone|remotely)\b"
_AND = r",?\s+(?:and|but)(?: (?:also|always|currently|mostly|now|often|still|then|usually))*\s+"
_FREE_VERB = re.compile(rf"(?P<and>{_AND})(?P<verb>{'|'.join(_NEVER_NOUNS.split())})(?= )")
_VERB_BETWEEN = re.compile(
    rf"{_PLACED}(?:(?!{_AND}).)*(?P<and>{_AND})(?P<verb>{'|'.join(_SECOND_VERBS.split())})"
    rf"(?={_PLACED}|\s+(?:an?|every|it|most|my|our|the|them|\d+)\b)"
)
# What makes the verb behind it somebody else's, or one that takes no ending.
_ANOTHER_SUBJECT = re.compile(
    r"[.!?;:,()]|\b(?:and|because|but|can|could|did|do|does|don['’]t|doesn['’]t|he|help|how|if|it|let|make|may|might|must|"
    r"or|people|shall|she|should|so|than|that|they|to|we|what|when|where|which|while|who|whose|why|will|would|you)\b",
    re.IGNORECASE,
)
_SEARCH_CHARS = 120
"""How many characters behind a verb its second one is looked for, so that a long text is read once."""


def find_second_verb(text: str, at: int) -> re.Match[str] | None:
    """Find the verb (the group `verb`) that shares its subject with the one that ends at `at`; None without such."""
    match = _VERB_BETWEEN.match(text, at, at + _SEARCH_CHARS) or _FREE_VERB.search(text, at, at + _SEARCH_CHARS)
    return match if match and _ANOTHER_SUBJECT.search(text, at, match.start("and")) is None else None
