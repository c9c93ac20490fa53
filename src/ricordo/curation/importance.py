"""Importance: which entries are curated, and in which order. Pure.

Every entry that was saved explicitly is curated. An extracted entry must be of a lasting kind, or a fact that is
certain, was repeated, holds a number, an identifier or a title, or answers a question; people later ask for those as
often as for the most certain. In a script that the rules can't read, a fact counts as exact. Facts about secrets, or
about where somebody is this week, stay in the ledger. Except for use counts, the order depends on nothing that changes
by itself.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from ricordo.curation.config import ConsolidationConfig
from ricordo.language import Script, dominant_script
from ricordo.language.packs import pack_phrases
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
"""The tag of an entry that corrects an earlier statement."""
MERGED_FIELD = "merged"
"""The field with the ids of entries that said the same, newest last."""
REPLACED_FIELD = "replaced"
"""The field with the ids of further replaced entries, in addition to `supersedes`."""
_EXPLICIT_AUTHORS = frozenset({"user", "agent", "hand"})
_LASTING_KINDS = frozenset({"decision", "preference", "convention", "goal", "lesson"})
_EXCLUDED_KINDS = frozenset({"session-summary"})
_KIND_WEIGHTS: Mapping[str, int] = {"preference": 6, "convention": 6, "decision": 5, "goal": 4, "lesson": 4, "fact": 3}
_DEFAULT_WEIGHT = 3
_SAVED_USE_LEVEL = 2
"""The level of use from which an extracted entry counts as saved: that of one confirmation, or two openings."""
_SECRET_MARKER = "[secret:"


def _temporary_pattern() -> str:
    when, whereabouts = pack_phrases("at_present"), pack_phrases("whereabouts")
    either = rf"(?:{whereabouts})\b[^.;,]{{0,30}}\b(?:{when})|(?:{when})\b[^.;,]{{0,30}}\b(?:{whereabouts})"
    return rf"\b(?:{pack_phrases('being')}) (?:\w+ ){{0,2}}?(?:{either})\b"


_TEMPORARY = lazy_compile(_temporary_pattern, re.IGNORECASE)
_SENTENCE_END = lazy_compile(r"[.!?;]\s+\S")
# the date that extraction adds to a relative day, and the content of a picture
_ANNOTATION = lazy_compile(r"\(\d{4}-\d\d-\d\d[^()]*\)|\[(?:shared|shows)\b[^\]]*\]")
# quotes mark titles, and the question that extraction puts before its answer
_EXACT = lazy_compile(
    r"\d|\w[/_.@:]\w|`[^`\n]{1,80}`"
    r"|\"[^\"\n]{2,80}\"|“[^”\n]{2,80}”|„[^“”\n]{2,80}[“”]|«[^»\n]{2,80}»|「[^」\n]{1,80}」|『[^』\n]{1,80}』|《[^》\n]{1,80}》"
)
# the rules have no words for these scripts, so confidence is never high, and numbers may be words
_SCRIPTS_WITHOUT_RULES: frozenset[Script] = frozenset(
    {"greek", "cyrillic", "hebrew", "arabic", "indic", "thai", "lao", "myanmar", "khmer", "hangul"}
)
_EARLIEST = datetime.min.replace(tzinfo=UTC)


def entry_time(entry: Entry) -> datetime:
    """Return when an entry was said, else when it was saved; the earliest time when neither is known."""
    return entry.since or entry.time or _EARLIEST


def is_explicit(entry: Entry) -> bool:
    """Tell whether the entry was saved explicitly, not extracted."""
    return entry.by in _EXPLICIT_AUTHORS


def field_ids(entry: Entry, name: str) -> tuple[str, ...]:
    """Return the ids that a field of the entry holds."""
    return tuple(part for key, value in entry.extra if key == name for part in value.split(",") if part)


def is_worthwhile(entry: Entry, config: ConsolidationConfig) -> bool:
    """Tell whether an entry, with the entries merged into it, should be curated."""
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
    min_confidence = config.fact_confidence
    if entry.confidence < min_confidence and _is_exact(entry.content):
        min_confidence = config.exact_confidence
    return entry.confidence >= min_confidence and not _is_temporary(entry.content)


def _is_exact(content: str) -> bool:
    """Tell whether a fact answers a question, holds a number, identifier or title, or is in a script without rules."""
    if dominant_script(content) in _SCRIPTS_WITHOUT_RULES:
        return True
    return _EXACT.search(_ANNOTATION.sub("", content)) is not None


def _is_temporary(content: str) -> bool:
    """Tell whether a fact is useless later: it has a secret's marker, or is one sentence on a current whereabouts."""
    return _SECRET_MARKER in content or (
        _TEMPORARY.search(content) is not None and _SENTENCE_END.search(content) is None
    )


def usefulness_grade(entry: Entry, use_counts: Mapping[str, int] | None = None) -> tuple[bool, int]:
    """Return the coarse part of usefulness, greater is more useful: whether the entry was saved, and its level of use.

    Levels begin at 1, 4, 16, 64, ... in `use_counts`, which is by id, so that not every use changes the order. An
    extracted entry counts as saved from the second level on.
    """
    level = (use_counts.get(entry.id, 0).bit_length() + 1) // 2 if use_counts else 0
    return is_explicit(entry) or level >= _SAVED_USE_LEVEL, level


def usefulness(
    entry: Entry, use_counts: Mapping[str, int] | None = None
) -> tuple[bool, int, int, int, float, datetime, str]:
    """Return the sort key of an entry, greater is more useful: grade, kind, repetitions, confidence, time and id."""
    weight = _KIND_WEIGHTS.get(entry.kind, _DEFAULT_WEIGHT)
    merge_count = min(len(field_ids(entry, MERGED_FIELD)), 3)
    return (
        *usefulness_grade(entry, use_counts),
        weight,
        merge_count,
        round(entry.confidence, 1),
        entry_time(entry),
        entry.id,
    )
