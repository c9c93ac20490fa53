"""An update without a model, from facts that rules found in messages and from the profile itself. Pure.

A correction replaces the fact that it contradicts, and a change the fact that it changes. The summaries are made from
the facts of the profile, newest first; only the current focus also lists names that the user's last messages repeat.

Invariant: it is deterministic, and every sentence of a summary is a fact or a list of names that the user wrote.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import log

from ricordo.curation.change_model import CHANGE_THRESHOLD, change_features, change_score, read_statement
from ricordo.curation.config import ProfileConfig
from ricordo.curation.profile.facts import last_confirmed
from ricordo.curation.profile.updates import (
    FactRemoval,
    NewFact,
    ProfileUpdate,
    SummaryEdit,
    UpdateLabels,
    parse_confidence,
)
from ricordo.language.acts import is_correction
from ricordo.language.duplicates import contradicts, is_same_statement, statement_key
from ricordo.language.names import find_names
from ricordo.language.packs import pack_phrases
from ricordo.lazy import lazy_compile
from ricordo.messages.types import Message
from ricordo.workspace.profile import CORRECTION, Fact, FactSource, Profile, format_profile_time

__all__ = ["RULE_LABELS", "make_offline_update"]


RULE_LABELS = UpdateLabels(scope="user", durability="durable", authority="descriptive")
"""The labels of facts found by rules, which extract nothing temporary and no instructions."""
_WORK_WORDS = lazy_compile(
    lambda: rf"\b(?:{pack_phrases('work_word', edges=True)})\b|{pack_phrases('work_word', edges=False)}", re.IGNORECASE
)
_FIRST_PERSON_PLURAL = lazy_compile(
    lambda: rf"(?:{pack_phrases('we', edges=True)})\b|{pack_phrases('we', edges=False)}", re.IGNORECASE
)
_SMOOTHING = 20
_MAX_SENTENCES = 5
_MAX_TOPICS = 5
_LAST_MESSAGES = 6
_RECENT, _EARLIER = timedelta(days=90), timedelta(days=365)
_SENTENCE_MARKS = ".!?。！？…"
_CURRENT_SUMMARIES = (("workContext", True), ("personalContext", False))


def make_offline_update(
    profile: Profile, messages: Sequence[Message], facts: Sequence[NewFact], *, now: datetime, config: ProfileConfig
) -> ProfileUpdate:
    """Return the update from `facts`, which rules found in `messages`, and the profile itself."""
    labelled_facts = [replace(fact, labels=RULE_LABELS) for fact in facts]
    corrected_facts, removals = _apply_corrections(profile, labelled_facts, now)
    if not corrected_facts:
        # without new facts, summaries that a person wrote stay
        return ProfileUpdate()
    removed_ids = {removal.id for removal in removals}
    remaining_facts = [fact for fact in profile.facts if fact.id not in removed_ids]
    new_facts = [
        _to_fact(fact, now)
        for fact in corrected_facts
        if (parse_confidence(fact.confidence) or 0) >= config.fact_confidence_threshold
    ]
    return ProfileUpdate(
        summaries=tuple(_make_summaries([*remaining_facts, *new_facts], new_facts, messages, now=now, config=config)),
        facts=tuple(corrected_facts),
        removals=tuple(removals),
    )


def _apply_corrections(
    profile: Profile, facts: Sequence[NewFact], now: datetime
) -> tuple[list[NewFact], list[FactRemoval]]:
    """Return the facts, each correction with its `source_error`, and the removals of what they correct or change."""
    corrected_facts: list[NewFact] = []
    removals: list[FactRemoval] = []
    for index, fact in enumerate(facts):
        removed_ids = {removal.id for removal in removals}
        old = _find_corrected(profile, fact, removed_ids)
        if old is None and (changed := _find_changed(profile, fact, removed_ids, now)):
            removals.append(FactRemoval(id=changed.id, reason="it changed", labels=RULE_LABELS, replacement=index))
        if old is None:
            corrected_facts.append(fact)
            continue
        removals.append(FactRemoval(id=old.id, reason="the user set it right", labels=RULE_LABELS, replacement=index))
        corrected_facts.append(replace(fact, category=CORRECTION, source_error=fact.source_error or old.content))
    return corrected_facts, removals


def _find_corrected(profile: Profile, fact: NewFact, removed_ids: set[str]) -> Fact | None:
    if fact.category != CORRECTION and not is_correction(fact.content):
        return None
    # a correction refers to the newest statement
    for old in reversed(profile.facts):
        if old.id not in removed_ids and not old.is_protected and contradicts(fact.content, old.content):
            return old
    return None


def _find_changed(profile: Profile, fact: NewFact, removed_ids: set[str], now: datetime) -> Fact | None:
    """Return the fact that a new one changes most surely, as in curated memory; None for none."""
    facts = [old for old in profile.facts if old.id not in removed_ids and not old.is_protected]
    new, statements = read_statement(fact.content), [read_statement(old.content) for old in facts]
    counts = Counter(word for statement in statements for word in statement.subject)

    def rarity(word: str) -> float:
        return log((len(facts) + _SMOOTHING) / (counts[word] + 1))

    scored: list[tuple[float, int]] = []
    for at, (old, statement) in enumerate(zip(facts, statements, strict=True)):
        if new.subject & statement.subject and statement_key(old.content) != statement_key(fact.content):
            said = last_confirmed(old) or now
            features = change_features(
                new, statement, rarity, same_kind=old.category == fact.category,
                same_day=said.date() == now.date(), same_speaker=True,
            )  # fmt: skip
            scored.append((change_score(features, lenient=fact.category == CORRECTION), at))
    score, at = max(scored, default=(0.0, 0))
    return facts[at] if score >= CHANGE_THRESHOLD else None


def _to_fact(fact: NewFact, now: datetime) -> Fact:
    timestamp = format_profile_time(now)
    content = " ".join(fact.content.split())
    return Fact(id="", content=content, category=fact.category, created_at=timestamp, source=FactSource())


def _make_summaries(
    facts: Sequence[Fact],
    new_facts: Sequence[Fact],
    messages: Sequence[Message],
    *,
    now: datetime,
    config: ProfileConfig,
) -> Iterator[SummaryEdit]:
    newest = sorted(facts, key=lambda fact: (last_confirmed(fact) or now) if fact.created_at else now, reverse=True)
    lasting = [fact for fact in newest if fact.category != "goal"]
    for name, is_work in _CURRENT_SUMMARIES:
        yield from _make_summary(name, [each for each in lasting if _is_about_work(each) is is_work], config)
    current_facts = [*reversed(new_facts), *(fact for fact in newest if fact.category == "goal")]
    yield from _make_summary("topOfMind", current_facts or newest[:2], config, topics=_find_topics(messages))
    for name, matches_age in (
        ("recentMonths", lambda age: age <= _RECENT),
        ("earlierContext", lambda age: _RECENT < age <= _EARLIER),
        ("longTermBackground", lambda age: age > _EARLIER),
    ):
        yield from _make_summary(name, _select_by_age(newest, matches_age, now), config)


def _is_about_work(fact: Fact) -> bool:
    """Tell whether a fact is about work; rules that the user shares with others count as work."""
    rule = fact.category == "behavior" and _FIRST_PERSON_PLURAL.match(fact.content) is not None
    return rule or _WORK_WORDS.search(fact.content) is not None


def _select_by_age(facts: Sequence[Fact], matches_age: Callable[[timedelta], bool], now: datetime) -> list[Fact]:
    dated = [(fact, last_confirmed(fact)) for fact in facts]
    return [fact for fact, last in dated if last is not None and matches_age(max(now - last, timedelta(0)))]


def _make_summary(
    name: str, facts: Sequence[Fact], config: ProfileConfig, *, topics: str = ""
) -> Iterator[SummaryEdit]:
    """Yield a summary of whole facts, as many as its length allows; nothing without facts."""
    limit = config.summary_characters.get(name, 0) or 1_000
    sentences: list[str] = []
    remaining = limit - len(topics)
    for fact in facts:
        if len(sentences) == _MAX_SENTENCES:
            break
        sentence = _to_sentence(fact.content)
        fits = sentence and len(sentence) < remaining
        if fits and not any(is_same_statement(sentence, other) for other in sentences):
            sentences.append(sentence)
            remaining -= len(sentence) + 1
    if sentences or topics:
        yield SummaryEdit(name=name, summary=" ".join([*sentences, *filter(None, [topics])]), labels=RULE_LABELS)


def _to_sentence(content: str) -> str:
    plain = " ".join(content.split())
    return plain if not plain or plain[-1] in _SENTENCE_MARKS else f"{plain}."


def _find_topics(messages: Sequence[Message]) -> str:
    """Return the names that the user's last messages repeat, the most frequent first; empty for none."""
    user_texts = [message.text for message in messages if message.role == "user"][-_LAST_MESSAGES:]
    counts = Counter(mention.text for text in user_texts for mention in find_names(text[:2_000]))
    topics = sorted(counts, key=lambda name: (-counts[name], name))[:_MAX_TOPICS]
    return f"({', '.join(topics)})" if topics else ""
