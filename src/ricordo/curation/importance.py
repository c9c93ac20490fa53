"""Importance: which entries are curated, and in which order. Pure.

Every entry that was saved explicitly or confirmed is curated, and one that was repeated, corrects or replaces another.
Any other extracted entry must be understandable alone and certain; it may be less certain if it is specific: it holds
a name, a number, an identifier or a title, or answers a question, since people later ask for those as often as for the
most certain. In a script that the rules can't read, an entry counts as specific. Facts about secrets, or about where
somebody is this week, stay in the ledger. Except for use counts, the order depends on nothing that changes by itself.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from ricordo import language
from ricordo.curation.config import ConsolidationConfig
from ricordo.language import Script, dominant_script
from ricordo.language.packs import pack_phrases
from ricordo.lazy import lazy_compile
from ricordo.workspace.entry import MERGED_FIELD, Entry
from ricordo.workspace.markdown import SPEAKER_LABEL

__all__ = [
    "CORRECTION_TAG",
    "MERGED_FIELD",
    "REPLACED_FIELD",
    "ROLE_NAMES",
    "entry_time",
    "field_ids",
    "is_explicit",
    "is_worthwhile",
    "usefulness",
    "usefulness_grade",
]


CORRECTION_TAG = "correction"
"""The tag of an entry that corrects an earlier statement."""
REPLACED_FIELD = "replaced"
"""The field with the ids of further replaced entries, in addition to `supersedes`."""
ROLE_NAMES = frozenset({"Assistant", "User"})
"""The names that the rules use for speakers without one."""
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
    r"\d|\w[/_.@:]\w|<\w|`[^`\n]{1,80}`"
    r"|\"[^\"\n]{2,80}\"|“[^”\n]{2,80}”|„[^“”\n]{2,80}[“”]|«[^»\n]{2,80}»|「[^」\n]{1,80}」|『[^』\n]{1,80}』|《[^》\n]{1,80}》"
)
_QUOTE_PAIRS = ("«»", "「」", "『』", "《》")
_STRAIGHT_QUOTE = lazy_compile(r"(?<!\d)\"")
_MIN_CONTENT_WORDS = 2
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
    if is_explicit(entry) or entry.pinned or entry.rule or entry.confirmed:
        return True
    if CORRECTION_TAG in entry.tags or entry.supersedes or field_ids(entry, MERGED_FIELD):
        return entry.confidence >= config.min_confidence
    if entry.by == "flush" and not _stands_alone(entry.content):
        return False
    min_confidence = config.fact_confidence
    if entry.confidence < min_confidence and _is_specific(entry.content):
        min_confidence = min(min_confidence, config.exact_confidence)
    if entry.kind in _LASTING_KINDS:
        return entry.confidence >= max(min_confidence, config.min_confidence)
    return entry.confidence >= min_confidence and not _is_temporary(entry.content)


def _stands_alone(content: str) -> bool:
    """Tell whether an extracted statement is understandable without its conversation.

    It is not if it is a word or two, a quote that was cut, or a sentence whose subject is a pronoun. What follows a
    speaker's name is the talk of several people, or comes with the question that it answers.
    """
    if any(content.count(pair[0]) != content.count(pair[1]) for pair in _QUOTE_PAIRS):
        return False
    if "„" not in content and len(_STRAIGHT_QUOTE.findall(content)) % 2:
        return False
    text = SPEAKER_LABEL.sub("", content, count=1)
    has_question = "“" in content[: len(content) - len(text)]
    # a statement in its own words has its speaker before it, and no rule knows which of its words mean something
    words = language.content_words(text) if text == content else language.split_words(text)[_MIN_CONTENT_WORDS:]
    if not has_question and len(words) < _MIN_CONTENT_WORDS and _EXACT.search(text) is None:
        return False
    # "It is on paper: the bounty starts in January" says what it is about
    return ": " in content or not language.opens_with_pronoun(content, language.detect_language(content))


def _is_specific(content: str) -> bool:
    """Tell whether a statement answers a question, holds a name, number, identifier or title, or can't be read."""
    if dominant_script(content) in _SCRIPTS_WITHOUT_RULES or _EXACT.search(_ANNOTATION.sub("", content)):
        return True
    return any(
        mention.text not in ROLE_NAMES for mention in language.find_names(SPEAKER_LABEL.sub("", content, count=1))
    )


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
