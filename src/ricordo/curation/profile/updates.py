"""Updates of a profile: their items and results, the gate for each item, and removal of forgotten statements. Pure.

An update comes from a model, from rules or from another system. Forgotten sentences are removed from its summaries, and
from those of a profile.

Invariants: the gate fails closed: an item with a missing or unknown label is rejected alone. Its reason is one word and
never contains its content. Only whole sentences are removed from a summary.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field, replace
from functools import partial
from math import isfinite
from typing import Literal

from ricordo.errors import DocumentInvalid
from ricordo.language import split_sentences
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.json_text import decode_json
from ricordo.messages.types import JsonValue
from ricordo.workspace.history.repetition import contains_literally, repeats_partly
from ricordo.workspace.profile import (
    HISTORY_SUMMARIES,
    USER_SUMMARIES,
    Fact,
    FactSource,
    Profile,
    dump_profile_json,
    parse_profile,
)

__all__ = [
    "EvictedFact",
    "FactConfirmation",
    "FactExtension",
    "FactMerge",
    "FactRemoval",
    "NewFact",
    "ProfileUpdate",
    "RejectedItem",
    "SummaryEdit",
    "UpdateLabels",
    "UpdateResult",
    "count_rejections",
    "find_fact_flaw",
    "find_removal_flaw",
    "find_summary_flaw",
    "names_upload",
    "parse_confidence",
    "remove_partial_statement",
    "remove_statement",
    "render_edited_profile",
    "without_facts",
    "without_forgotten",
]


@dataclass(frozen=True, kw_only=True)
class UpdateLabels:
    """The labels of an item; a missing label is empty and fails the gate.

    `scope` is whom it is about (user), `durability` how long it holds (durable), `authority` what it is (descriptive).
    """

    scope: str = ""
    durability: str = ""
    authority: str = ""


@dataclass(frozen=True, kw_only=True)
class SummaryEdit:
    """A new text for the summary `name`, such as `topOfMind`."""

    name: str
    summary: str
    labels: UpdateLabels = UpdateLabels()


@dataclass(frozen=True, kw_only=True)
class NewFact:
    """A fact to add; `source_error` says what was wrong before, for a correction."""

    content: str
    category: str = "context"
    confidence: float = 0.5
    valid_days: int | None = None
    source_error: str | None = None
    source: FactSource = field(default_factory=FactSource)
    labels: UpdateLabels = UpdateLabels()


@dataclass(frozen=True, kw_only=True)
class FactRemoval:
    """A fact to remove. `replacement` is the index of the new fact, from 0, that replaces it.

    `stale` marks a removal by a review of old facts.
    """

    id: str
    reason: str = ""
    labels: UpdateLabels = UpdateLabels()
    replacement: int | None = None
    stale: bool = False


@dataclass(frozen=True, kw_only=True)
class FactConfirmation:
    """A fact that the user repeated or praised."""

    id: str
    reason: str = ""
    labels: UpdateLabels = UpdateLabels()


@dataclass(frozen=True, kw_only=True)
class FactExtension:
    """An old fact that a review keeps for `days` more; None for its usual lifetime."""

    id: str
    days: int | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class FactMerge:
    """Facts to merge: the ids of the sources, and the fact that replaces them."""

    sources: tuple[str, ...]
    fact: NewFact


@dataclass(frozen=True, kw_only=True)
class ProfileUpdate:
    """All items of one update."""

    summaries: tuple[SummaryEdit, ...] = ()
    facts: tuple[NewFact, ...] = ()
    removals: tuple[FactRemoval, ...] = ()
    confirmations: tuple[FactConfirmation, ...] = ()
    extensions: tuple[FactExtension, ...] = ()
    mergings: tuple[FactMerge, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RejectedItem:
    """A rejected item and the reason, one word that can be counted; never its content."""

    item: Literal["summary", "fact", "removal", "confirmation", "extension", "merging"]
    reason: str
    id: str = ""


@dataclass(frozen=True, kw_only=True)
class EvictedFact:
    """A fact that was evicted beyond the cap, for the audit: never its content. A fact with a higher `score` stays."""

    id: str
    category: str
    score: float


@dataclass(frozen=True, kw_only=True)
class UpdateResult:
    """The result of an update: the new profile, the rejected items, and the facts that leave it.

    `archived` are the ids of evicted facts, lowest rank first; their content goes to the archive. `removed`, `added`
    and `confirmed` are ids too, and `merged` the ids of facts that were merged into others. `left` are the facts of
    `archived` and `merged`, unchanged; `evicted` holds the rank of those in `archived`.
    """

    profile: Profile
    rejections: tuple[RejectedItem, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    archived: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    left: tuple[Fact, ...] = ()
    evicted: tuple[EvictedFact, ...] = ()


_USER, _DURABLE, _DESCRIPTIVE = "user", "durable", "descriptive"


def find_fact_flaw(labels: UpdateLabels) -> str:
    """Return the label that rejects a fact; empty for a durable description of the user."""
    if labels.scope != _USER:
        return "scope"
    if labels.durability != _DURABLE:
        return "durability"
    return "" if labels.authority == _DESCRIPTIVE else "authority"


def find_summary_flaw(labels: UpdateLabels) -> str:
    """Return the label that rejects a summary; empty for a description of the user."""
    if labels.scope != _USER:
        return "scope"
    return "" if labels.authority == _DESCRIPTIVE else "authority"


def find_removal_flaw(removal: FactRemoval, fact: Fact | None) -> str:
    """Return why a removal of `fact` is rejected; empty for one about the user with a reason.

    A fact that a person added or pinned stays; a removal of a missing fact is rejected too.
    """
    if removal.labels.scope != _USER:
        return "scope"
    if not removal.reason.strip():
        return "reason"
    if fact is None:
        return "unknown"
    return "kept" if fact.is_protected else ""


def parse_confidence(confidence: object) -> float | None:
    """Return a confidence as a number, clamped to 0..1; None unless it is a finite number."""
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)):
        return None
    try:
        value = float(confidence)
    except OverflowError:
        return None
    return min(max(value, 0.0), 1.0) if isfinite(value) else None


def names_upload(text: str, uploads: Iterable[str]) -> bool:
    """Tell whether a text contains the whole name of an uploaded file, as given in the metadata of the messages."""
    folded_text = text.casefold()
    return any(_contains_name(name.casefold(), folded_text) for name in uploads if name.strip())


def count_rejections(rejections: Iterable[RejectedItem]) -> Mapping[tuple[str, str], int]:
    """Return the number of rejected items, by type and reason."""
    return Counter((each.item, each.reason) for each in rejections)


def _contains_name(name: str, text: str) -> bool:
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        before, after = text[start - 1 : start], text[end : end + 1]
        if not (before.isalnum() or before in {"_", "-"}) and not (after.isalnum() or after in {"_", "-"}):
            return True
        start = text.find(name, start + 1)
    return False


_MIN_SHARED_WORDS = 0.5
_BRACKETED_NAMES = lazy_compile(r"\(([^()]+)\)")
_NOT_WORDS = lazy_compile(r"[\W_]+")


def remove_statement(profile: Profile, content: str) -> Profile:
    """Return the profile without the sentences in its summaries that say `content` word for word; its facts stay.

    Case, white space and punctuation are ignored.
    """
    statement = _normalize(content)
    if not statement.strip():
        return profile
    summaries = {
        name: replace(each, summary=_remove_sentences(each.summary, statement))
        if statement in _normalize(each.summary)
        else each
        for name, each in profile.summaries.items()
    }
    return replace(profile, summaries=summaries)


def remove_partial_statement(profile: Profile, content: str) -> Profile:
    """Return the profile without the summary sentences that have half of the words of `content`; its facts stay."""
    summaries = {
        name: replace(each, summary=rest)
        if (rest := _remove_partial_sentences(each.summary, content)) != each.summary
        else each
        for name, each in profile.summaries.items()
    }
    return replace(profile, summaries=summaries)


def without_forgotten(update: ProfileUpdate, is_forgotten: Callable[[str], bool]) -> ProfileUpdate:
    """Return the update without the forgotten sentences of its summaries; a summary without others is removed."""
    summaries = []
    for edit in update.summaries:
        sentences = split_sentences(edit.summary)
        remaining = [each.text for each in sentences if not is_forgotten(each.text)]
        if len(remaining) == len(sentences):
            summaries.append(edit)
        elif remaining:
            summaries.append(replace(edit, summary=" ".join(remaining)))
    return replace(update, summaries=tuple(summaries))


def _remove_sentences(text: str, statement: str) -> str:
    """Return the text without the sentences that contain `statement`, also where it spans several sentences."""
    sentences = [sentence.text for sentence in split_sentences(text)]
    remaining = [sentence for sentence in sentences if statement not in _normalize(sentence)]
    while statement in _normalize(" ".join(remaining)):
        # the shortest run of sentences that says it
        first = max(at for at in range(len(remaining)) if statement in _normalize(" ".join(remaining[at:])))
        last = next(
            at for at in range(first, len(remaining)) if statement in _normalize(" ".join(remaining[first : at + 1]))
        )
        del remaining[first : last + 1]
    return " ".join(remaining)


def _remove_partial_sentences(text: str, content: str) -> str:
    stripped_text = _BRACKETED_NAMES.sub(partial(_remove_names, content=content), text)
    sentences = split_sentences(stripped_text)
    remaining = [
        each.text for each in sentences if not repeats_partly(each.text, [content], min_overlap=_MIN_SHARED_WORDS)
    ]
    return stripped_text.strip() if len(remaining) == len(sentences) else " ".join(remaining)


def _remove_names(match: re.Match[str], content: str) -> str:
    """Return a list of names in brackets without the names that `content` contains."""
    remaining = [name for name in match[1].split(", ") if not contains_literally(content, [name])]
    return match[0] if len(remaining) == match[1].count(", ") + 1 else f"({', '.join(remaining)})" if remaining else ""


def _normalize(text: str) -> str:
    """Return the words of a text, with single spaces around each."""
    return f" {_NOT_WORDS.sub(' ', unicodedata.normalize('NFC', text).casefold()).strip()} "


_SUMMARY_LEVELS = {"user": USER_SUMMARIES, "history": HISTORY_SUMMARIES}


def without_facts(data: bytes, path: str, fact_ids: Collection[str], *, learned_only: bool = True) -> bytes:
    """Return a profile without the facts `fact_ids` and their sentences in the summaries.

    With `learned_only` facts that a person added or pinned stay. The same bytes are returned if nothing changes, or it
    can't be read.
    """
    try:
        profile = parse_profile(data, path).profile
    except DocumentInvalid:
        return data
    removed = [fact for fact in profile.facts if fact.id in fact_ids and not (learned_only and fact.is_protected)]
    rest = profile
    for fact in removed:
        rest = remove_statement(rest, fact.content)
    return render_edited_profile(decode_json(data), {fact.id for fact in removed}, rest) if removed else data


def render_edited_profile(document: dict[str, JsonValue], removed_ids: Collection[str], rest: Profile) -> bytes:
    """Return the document of a profile without the facts `removed_ids`, and with the summaries of `rest`.

    Everything else in it stays, also what can't be read.
    """
    facts = document.get("facts")
    if isinstance(facts, list):
        document["facts"] = [each for each in facts if not (isinstance(each, dict) and each.get("id") in removed_ids)]
    for level, names in _SUMMARY_LEVELS.items():
        sections = document.get(level)
        for name in names if isinstance(sections, dict) else ():
            section = sections.get(name) if isinstance(sections, dict) else None
            if isinstance(section, dict):
                section["summary"] = rest.summaries[name].summary
    document["revision"] = rest.revision + 1
    return dump_profile_json(document)
