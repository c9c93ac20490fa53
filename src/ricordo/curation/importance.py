"""Importance: which entries are curated, and in which order. Pure.

Whatever somebody saved is curated. An extracted entry has to be of a kind that lasts, or a fact that is certain, was
said more than once, holds a number, an identifier or a title, or answers a question; people later ask for those as
often as for the most certain. In a script that the rules can't read, a fact counts as exact. Facts about secrets, or
about where somebody is this week, stay in the ledger. Apart from use, nothing that changes by itself changes the order.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from ricordo.curation.config import ConsolidationConfig
from ricordo.language import Script, dominant_script
from ricordo.lazy import lazy_compile
from ricordo.workspace.entry import Entry

__all__ = [
    "CORRECTION_TAG",
    "MERGED_FIELD",
    "REPLACED_FIELD",
    "entry_time",
    "field_ids",
    "is_explicit",
    "is_worthwhile",
    "usefulness",
    "usefulness_grade",
]


CORRECTION_TAG = "correction"
"""The tag of an entry that takes the place of something said before."""
MERGED_FIELD = "merged"
"""The field that holds the ids of entries which said the same, newest last."""
REPLACED_FIELD = "replaced"
"""The field that holds the ids of further entries whose place was taken, beside `supersedes`."""
_EXPLICIT_AUTHORS = frozenset({"user", "agent", "hand"})
_LASTING_KINDS = frozenset({"decision", "preference", "convention", "goal", "lesson"})
_EXCLUDED_KINDS = frozenset({"session-summary"})
_KIND_WEIGHTS: Mapping[str, int] = {"preference": 6, "convention": 6, "decision": 5, "goal": 4, "lesson": 4, "fact": 3}
_DEFAULT_WEIGHT = 3
_SAVED_USE_LEVEL = 2
"""The level of use from which an extracted entry counts as a saved one: that of one confirmation, or two openings."""
_SECRET_MARKER = "[secret:"
_WHEN = (
    r"(?:this (?:week|morning|afternoon|evening|weekend)|today|tonight|right now|at the moment"
    r"|(?:diese|nächste) woche|heute|gerade|im moment)"
)
_WHERE = (
    r"(?:on (?:call|duty|leave|holiday|vacation)|out of (?:the )?office|in the office|at home|working from \w+|away"
    r"|off|sick|ill|busy|free|(?:un)?available|im (?:büro|urlaub)|zu hause|krank|unterwegs|nicht da|in bereitschaft)"
)
_TEMPORARY = lazy_compile(
    r"\b(?:is|are|was|were|ist|sind|war|waren) (?:\w+ ){0,2}?"
    rf"(?:{_WHERE}\b[^.;,]{{0,30}}\b{_WHEN}|{_WHEN}\b[^.;,]{{0,30}}\b{_WHERE})\b",
    re.IGNORECASE,
)
_SENTENCE_END = lazy_compile(r"[.!?;]\s+\S")
# the day that extraction works out for a word, and what a picture shows
_ANNOTATION = lazy_compile(r"\(\d{4}-\d\d-\d\d[^()]*\)|\[(?:shared|shows)\b[^\]]*\]")
# quotes are of titles, and of the question that extraction puts before its answer
_EXACT = lazy_compile(
    r"\d|\w[/_.@:]\w|`[^`\n]{1,80}`"
    r"|\"[^\"\n]{2,80}\"|“[^”\n]{2,80}”|„[^“”\n]{2,80}[“”]|«[^»\n]{2,80}»|「[^」\n]{1,80}」|『[^』\n]{1,80}』|《[^》\n]{1,80}》"
)
# rules have no words for these, so what is said in them is never very sure, and numbers are words as well
_SCRIPTS_WITHOUT_RULES: frozenset[Script] = frozenset(
    {"greek", "cyrillic", "hebrew", "arabic", "indic", "thai", "lao", "myanmar", "khmer", "hangul"}
)
_EARLIEST = datetime.min.replace(tzinfo=UTC)


def entry_time(entry: Entry) -> datetime:
    """Return when an entry was said, else when it was saved; the earliest time when neither is known."""
    return entry.since or entry.time or _EARLIEST


def is_explicit(entry: Entry) -> bool:
    """Tell whether somebody saved the entry, rather than that it was extracted."""
    return entry.by in _EXPLICIT_AUTHORS


def field_ids(entry: Entry, name: str) -> tuple[str, ...]:
    """Return the ids that a field of the entry holds."""
    return tuple(part for key, value in entry.extra if key == name for part in value.split(",") if part)


def is_worthwhile(entry: Entry, config: ConsolidationConfig) -> bool:
    """Tell whether an entry, with what was merged into it, is to be curated."""
    if entry.state != "active" or entry.kind in _EXCLUDED_KINDS or entry.is_external:
        return False
    if is_explicit(entry) or entry.pinned or entry.rule:
        return True
    lasting = (
        entry.kind in _LASTING_KINDS
        or CORRECTION_TAG in entry.tags
        or entry.supersedes
        or field_ids(entry, MERGED_FIELD)
    )
    if lasting:
        return entry.confidence >= config.min_confidence
    least = config.fact_confidence
    if entry.confidence < least and _is_exact(entry.content):
        least = config.exact_confidence
    return entry.confidence >= least and not _is_temporary(entry.content)


def _is_exact(content: str) -> bool:
    """Tell whether a fact answers a question, holds a number, an identifier or a title, or can't be read for that."""
    if dominant_script(content) in _SCRIPTS_WITHOUT_RULES:
        return True
    return _EXACT.search(_ANNOTATION.sub("", content)) is not None


def _is_temporary(content: str) -> bool:
    """Tell whether a fact is of no use later: a secret's mark, or one sentence on where somebody is these days."""
    return _SECRET_MARKER in content or (
        _TEMPORARY.search(content) is not None and _SENTENCE_END.search(content) is None
    )


def usefulness_grade(entry: Entry, used: Mapping[str, int] | None = None) -> tuple[bool, int]:
    """Return the coarse part of usefulness, the more useful being greater: whether it was saved, and the level of use.

    Levels begin at 1, 4, 16, 64, ... of what `used` counts by id, so that no order changes with every use. What was
    extracted counts as saved from the second level on.
    """
    level = (used.get(entry.id, 0).bit_length() + 1) // 2 if used else 0
    return is_explicit(entry) or level >= _SAVED_USE_LEVEL, level


def usefulness(entry: Entry, used: Mapping[str, int] | None = None) -> tuple[bool, int, int, int, float, datetime, str]:
    """Return what orders entries, the more useful being greater: the `usefulness_grade`, a lasting kind, repeated,
    sure, newer.
    """
    weight = _KIND_WEIGHTS.get(entry.kind, _DEFAULT_WEIGHT)
    said = min(len(field_ids(entry, MERGED_FIELD)), 3)
    return *usefulness_grade(entry, used), weight, said, round(entry.confidence, 1), entry_time(entry), entry.id
