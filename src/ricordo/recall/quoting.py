"""Which hit to quote as the answer, and how far it can be trusted to be one. Pure.

A hit that answers holds words of the question itself, states rather than asks, and was not taken back: where a later
statement holds the same words of the question and comes near, it is the one that holds now. Of two that come near,
what a person said is quoted before what an assistant said, and that before what a tool printed; curated memory before
either, when it says about the same, and before the very message it was learned from.

Invariant: what another hit superseded is not quoted; its successor is, which then is what fits.
"""

import re
from collections.abc import Sequence, Set
from datetime import UTC, datetime

from ricordo.language import Act, detect_acts, content_words, is_correction, overlap, split_sentences
from ricordo.recall.config import RecallConfig
from ricordo.recall.hits import Hit
from ricordo.recall.question import core_words, parse_question

__all__ = ["choose_quote", "fitness", "find_learned_memory", "find_replaced"]

_NO_TIME = datetime.min.replace(tzinfo=UTC)
_MAX_CHARS = 600
_MIN_SHARED_WORDS = 2
_STATEMENT_MARGIN = 1.5
_MIN_SUBJECT_OVERLAP = 0.5
_MIN_SAME_OVERLAP = 0.7
_MIN_COVERED_SHARE = 0.66
_DIGIT = re.compile(r"\d")
_IDENTIFIER = re.compile(r"\S*\w[._/@]\w\S*")
_PAST_QUESTION = re.compile(
    r"^\W*(?:\w+ )?(?:did|was|were|had)\b|\b(?:when|where|how|why|who|what) (?:did|was|were|had)\b", re.IGNORECASE
)
_CHANGE = re.compile(r"\b(?:mov|switch|migrat|chang|replac)\w*\b|\binstead\b|\bno longer\b", re.IGNORECASE)
_REPLACED_PHRASE = re.compile(
    r"\b(?:from|instead of|replac\w+|no longer(?: \w+)?|rather than) ((?:(?!to\b)\S+\s?){1,3})", re.IGNORECASE
)
_NEW_PHRASE = re.compile(r"\b(?:to|with|by|now|use) ((?:\S+\s?){1,3})", re.IGNORECASE)
_STATEMENT_ACTS: frozenset[Act] = frozenset({"convention", "correction", "decision", "goal", "lesson", "preference"})


def choose_quote(hits: Sequence[Hit], question: str, config: RecallConfig) -> tuple[Hit, float] | None:
    """Return the hit that answers best and its fitness; None when no hit holds a word of the question."""
    core = core_words(question, [hit.speaker for hit in hits])
    counts = parse_question(question).expected == "number"
    fit = [
        (fitness(hit, core, config, counts=counts), hit)
        for hit in hits
        if hit.words and _has_current_version(hit, hits)
    ]
    if not fit:
        return None
    fit.sort(key=lambda pair: -pair[0])
    best, chosen = fit[0][0], _best_statement(fit, config)
    for near, hit in fit[1:]:
        if best - near <= config.near and _is_plainer(hit, chosen):
            chosen = hit
    # who asks about a change wants the change, not what came after it
    about_change = _CHANGE.search(question[:_MAX_CHARS]) is not None
    for near, hit in fit:
        if (best - near <= config.near and _restates(hit, chosen, core)) or (
            not about_change and _retracts(hit, chosen, core)
        ):
            chosen = hit
            break
    if _PAST_QUESTION.search(question[:_MAX_CHARS]):
        chosen = _goal_outcome(chosen, fit, config)
    rests = _curated_equivalent(_memory_from_message(chosen, fit, config), fit, config, core)
    return _current_version(_superseded_memory(rests, hits, core), hits), best


def find_learned_memory(chosen: Hit, curated: Sequence[Hit], question: str) -> Hit | None:
    """Return the curated memory that was learned from the message `chosen` and says what that says of the question.

    It holds every word of what is asked for that the message has in its prose, not only inside a path or another
    identifier, and something of the question besides names; None when none does.
    """
    messages = set(chosen.entry.source.messages)
    if chosen.signals.get("memory") or not messages:
        return None
    core = core_words(question, [chosen.speaker])
    prose = set(content_words(_IDENTIFIER.sub(" ", chosen.entry.content)))
    held = {word for word in core & set(chosen.words) if prose & set(content_words(word))}
    said = {word for word in chosen.words if word.casefold() != chosen.speaker.casefold()}
    fits = [
        hit
        for hit in curated
        if hit.signals.get("curated")
        and not hit.superseded_by
        and not _ends_with_question(hit)
        and messages & set(hit.entry.source.messages)
        and held <= set(hit.words)
        and said & set(hit.words)
        and hit.signals.get("expected", 0.0) >= chosen.signals.get("expected", 0.0)
    ]
    return max(fits, key=lambda hit: (len(said & set(hit.words)), hit.score), default=None)


def find_replaced(chosen: Hit, hits: Sequence[Hit], question: str) -> list[Hit]:
    """Return what held before on the subject of the chosen hit and was replaced by it, newest first.

    That is what it supersedes, itself or by others, and an older memory that names what `chosen` says was left behind.
    """
    core = core_words(question, [hit.speaker for hit in hits])
    older = [
        hit
        for hit in hits
        if hit is not chosen
        and ((hit.superseded_by and _current_version(hit, hits) is chosen) or _replaces_memory(chosen, hit, core))
    ]
    return sorted(older, key=_hit_time, reverse=True)


def fitness(hit: Hit, core: Set[str], config: RecallConfig, *, counts: bool = False) -> float:
    """Return how well a hit answers, in 0..1.

    Its score and what it covers of the question, less where it asks itself, and of that a share for the strongest
    sign that what is asked for was never said. `core` are the words that say what is asked for; with
    `counts` it is a number.
    """
    whole = 1.0 + config.coverage
    fit = hit.score + config.coverage * hit.signals.get("coverage", 0.0) - config.asking * _ends_with_question(hit)
    lost = max(
        config.absent * hit.signals.get("absent", 0.0),
        config.stranger * hit.signals.get("stranger", 0.0),
        config.uncounted * (counts and not hit.signals.get("expected")),
        _thinness_penalty(hit, core, config),
        _scatter_penalty(hit, core, config),
    )
    return min(max(fit * (1 - lost) / whole, 0.0), 1.0)


def _thinness_penalty(hit: Hit, core: Set[str], config: RecallConfig) -> float:
    held = len(core & set(hit.words))
    if held > 1 or held == len(core):
        return 0.0
    return config.thin if held else config.bare


def _scatter_penalty(hit: Hit, core: Set[str], config: RecallConfig) -> float:
    """Return what an assistant's or a tool's text loses whose sentences each hold but some of its asked words."""
    if not _speaker_rank(hit):
        return 0.0
    sentences = [set(content_words(each.text)) for each in split_sentences(hit.entry.content[:_MAX_CHARS])]
    asked = [set(content_words(word)) for word in core & set(hit.words)]
    held = [terms for terms in asked if any(terms & words for words in sentences)]
    if len(held) < _MIN_SHARED_WORDS:
        return 0.0
    best = max(sum(bool(terms & words) for terms in held) for words in sentences)
    return config.scattered * (1 - best / len(held))


def _ends_with_question(hit: Hit) -> bool:
    return hit.entry.content.rstrip().endswith(("?", "？"))


def _best_statement(fit: Sequence[tuple[float, Hit]], config: RecallConfig) -> Hit:
    """Return the best hit that states something, where one is near; else the best."""
    best, chosen = fit[0]
    if not _ends_with_question(chosen):
        return chosen
    near = [
        hit
        for fitness, hit in fit
        if best - fitness <= _STATEMENT_MARGIN * config.near and not _ends_with_question(hit)
    ]
    return max(near, key=lambda hit: hit.score, default=chosen)


def _memory_from_message(chosen: Hit, fit: Sequence[tuple[float, Hit]], config: RecallConfig) -> Hit:
    """Return the memory that rests on the chosen message and says as much of the question, else what was chosen."""
    messages = set(chosen.entry.source.messages)
    if chosen.signals.get("memory") or not messages:
        return chosen
    at = next(fitness for fitness, hit in fit if hit is chosen)
    near = (
        hit for fitness, hit in fit if at - fitness <= _STATEMENT_MARGIN * config.near and hit.signals.get("memory")
    )
    rests = (hit for hit in near if messages & set(hit.entry.source.messages) and set(hit.words) >= set(chosen.words))
    return next(rests, chosen)


def _goal_outcome(chosen: Hit, fit: Sequence[tuple[float, Hit]], config: RecallConfig) -> Hit:
    """Return the later memory that is near and says as much of the question, where a goal was chosen; else that."""
    if chosen.entry.kind != "goal":
        return chosen
    at = next(fitness for fitness, hit in fit if hit is chosen)
    near = (hit for fitness, hit in fit if at - fitness <= _STATEMENT_MARGIN * config.near and hit.entry.kind != "goal")
    told = (
        hit for hit in near if hit.signals.get("memory") and _is_later(hit, chosen) and not _ends_with_question(hit)
    )
    return next((hit for hit in told if set(hit.words) >= set(chosen.words)), chosen)


def _curated_equivalent(chosen: Hit, fit: Sequence[tuple[float, Hit]], config: RecallConfig, core: Set[str]) -> Hit:
    """Return the curated memory that is near and says about the same, else what was chosen."""
    if chosen.signals.get("curated"):
        return chosen
    at = next(fitness for fitness, hit in fit if hit is chosen)
    near = (hit for fitness, hit in fit if at - fitness <= config.near and hit.signals.get("curated"))
    return next((hit for hit in near if not _ends_with_question(hit) and _says_the_same(hit, chosen, core)), chosen)


def _says_the_same(curated: Hit, chosen: Hit, core: Set[str]) -> bool:
    """Tell whether a curated memory says what was chosen; of what is later it must say nearly all, and nothing else."""
    asked = core & set(chosen.words)
    if len(asked & set(curated.words)) < _MIN_COVERED_SHARE * len(asked):
        return False
    left, right = (set(content_words(hit.entry.content[:_MAX_CHARS])) for hit in (curated, chosen))
    if not _is_later(chosen, curated):
        return overlap(left, right) >= _MIN_SUBJECT_OVERLAP
    # what a person says later with another number is news
    news = not _speaker_rank(chosen) and any(_DIGIT.search(word) for word in right - left)
    otherwise = news or _restates(chosen, curated, core) or _retracts(chosen, curated, core)
    return not otherwise and overlap(left, right) >= _MIN_SAME_OVERLAP


def _superseded_memory(chosen: Hit, hits: Sequence[Hit], core: Set[str]) -> Hit:
    """Return the memory that rests on the chosen message and was superseded, where it says what is asked for."""
    messages = set(chosen.entry.source.messages)
    if chosen.signals.get("memory") or not messages:
        return chosen
    rests = (hit for hit in hits if hit.superseded_by and messages & set(hit.entry.source.messages))
    # a message may say more than what was superseded
    asked = core & set(chosen.words)
    return next((hit for hit in rests if 2 * len(asked & set(hit.words)) >= len(asked)), chosen)


def _current_version(hit: Hit, hits: Sequence[Hit]) -> Hit:
    """Return what took the place of a hit, which is itself when nothing did."""
    by_id = {each.entry.id: each for each in hits if each.entry.id}
    while hit.superseded_by in by_id:
        hit = by_id.pop(hit.superseded_by)
    return hit


def _has_current_version(hit: Hit, hits: Sequence[Hit]) -> bool:
    return not hit.superseded_by or not _current_version(hit, hits).superseded_by


def _replaces_memory(chosen: Hit, older: Hit, core: Set[str]) -> bool:
    """Tell whether `chosen` names what only the older memory says to be, as what was left behind."""
    fits = older.signals.get("memory") and not older.superseded_by and not _speaker_rank(chosen)
    if not fits or not _is_later(chosen, older):
        return False
    said = chosen.entry.content[:_MAX_CHARS]
    held = set(content_words(older.entry.content[:_MAX_CHARS]))
    shared = set(chosen.words) & set(older.words)
    left = _replaced_words(said) - shared
    new = {word for match in _NEW_PHRASE.finditer(said) for word in content_words(match[1])} - shared - left
    is_change = _CHANGE.search(said) is not None or is_correction(said)
    return is_change and bool(shared & core) and bool(held & left) and not held & new


def _is_plainer(hit: Hit, other: Hit) -> bool:
    """Tell whether `hit` says all that `other` says of the question, and was said rather than printed or called."""
    return _speaker_rank(hit) < _speaker_rank(other) and set(hit.words) >= set(other.words)


def _speaker_rank(hit: Hit) -> int:
    """Return how far from plain words of a person a hit is: a memory or a person, an assistant, a tool."""
    return {"assistant": 1, "tool": 2}.get(hit.speaker, 0)


def _restates(hit: Hit, other: Hit, core: Set[str]) -> bool:
    """Tell whether `hit` is a later statement on all that `other` says of the question, and no less plain.

    One of several words that say what is asked for makes no common subject yet; then the texts have to share more.
    """
    states = hit.entry.kind in _STATEMENT_ACTS or bool(detect_acts(hit.entry.content) & _STATEMENT_ACTS)
    plain = _speaker_rank(hit) <= _speaker_rank(other)
    if not (_is_later(hit, other) and states and plain and set(hit.words) >= set(other.words)):
        return False
    shared = core & set(other.words)
    if len(shared) >= min(_MIN_SHARED_WORDS, len(core)):
        return True
    left, right = (set(content_words(each.entry.content[:_MAX_CHARS])) for each in (hit, other))
    return overlap(left, right) >= _MIN_SUBJECT_OVERLAP


def _retracts(hit: Hit, other: Hit, core: Set[str]) -> bool:
    """Tell whether `hit` is later and speaks of a change, of what only `other` names or as a memory of its kind."""
    said = hit.entry.content[:_MAX_CHARS]
    shared = set(hit.words) & set(other.words)
    if not _is_later(hit, other) or len(shared) < _MIN_SHARED_WORDS or not shared >= core & set(other.words):
        return False
    changes = _CHANGE.search(said) is not None or is_correction(said)
    named = set(content_words(other.entry.content[:_MAX_CHARS])) - set(content_words(" ".join(other.words)))
    # names alone, and words such as "next", are no common subject
    both_memories = bool(hit.signals.get("memory")) and hit.entry.kind == other.entry.kind and bool(shared & core)
    return changes and (both_memories or bool(named & _replaced_words(said)))


def _replaced_words(text: str) -> set[str]:
    """Return the content words that stand behind a word such as `from` or `instead of`: what was left behind."""
    return {word for match in _REPLACED_PHRASE.finditer(text) for word in content_words(match[1])}


def _is_later(hit: Hit, other: Hit) -> bool:
    return _hit_time(hit) > _hit_time(other)


def _hit_time(hit: Hit) -> datetime:
    return hit.entry.since or hit.entry.time or _NO_TIME
