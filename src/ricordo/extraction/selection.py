"""Selection: which groups of statements become findings, with which kind and confidence.

Among people the statements of one message form one finding, and salience decides. Between a user and an agent a
sentence with its own cue is a separate finding, and a plain statement needs substance. From the agent only lessons and
decisions count, unless the user's reply contradicts them.

Salience is a weighted sum; its weights are rounded from a logistic fit, see docs/design/extraction.md.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date

from ricordo.extraction.config import RuleExtractionConfig
from ricordo.extraction.statements import (
    LASTING_ACTS,
    YES_NO_QUESTION,
    ConversationTurn,
    Statement,
    answers_question,
    preceding_question,
)
from ricordo.language import Act, find_dates, find_names
from ricordo.language.packs import pack_phrases
from ricordo.lazy import dataclass, lazy_compile

__all__ = [
    "SalienceFeatures",
    "SelectedGroup",
    "group_by_cue",
    "group_by_length",
    "leading_statement",
    "score_salience",
    "select_groups",
]


_WORD_WEIGHT = 0.12
_MAX_WORDS = 30
_SELF_WEIGHT = 0.55
_MAX_SELF = 4
_SENTENCE_WEIGHT = -0.3
_DATE_WEIGHT = 0.8
_ANSWER_WEIGHT = 0.5
_OPENING_WEIGHT = 0.8
_SPECIFIC_WEIGHT = 0.15
_MAX_SPECIFIC = 2
_UNSURE_WEIGHT = -0.6


@dataclass(frozen=True, kw_only=True, slots=True)
class SalienceFeatures:
    """The context of statements: whether they answer a question or open the conversation, and their mentions."""

    is_answer: bool = False
    is_opening: bool = False
    dates: int = 0
    specifics: int = 0


def score_salience(statements: Sequence[Statement], features: SalienceFeatures) -> float:
    """Return the score of one message's statements: about 0 for small talk, at least 1 for news.

    0 for no statements.
    """
    if not statements:
        return 0.0
    words = len(frozenset[str]().union(*(statement.words for statement in statements)))
    about_self = sum("self" in statement.acts for statement in statements)
    unsure = any("hypothetical" in statement.acts for statement in statements)
    return (
        _WORD_WEIGHT * min(words, _MAX_WORDS)
        + _SELF_WEIGHT * min(about_self, _MAX_SELF)
        + _SENTENCE_WEIGHT * len(statements)
        + _DATE_WEIGHT * bool(features.dates)
        + _ANSWER_WEIGHT * features.is_answer
        + _OPENING_WEIGHT * features.is_opening
        + _SPECIFIC_WEIGHT * min(features.specifics, _MAX_SPECIFIC)
        + _UNSURE_WEIGHT * unsure
    )


_POINTS_BACK = lazy_compile(lambda: rf"^(?:{pack_phrases('points_back')})(?!\w)", re.IGNORECASE)
# Not understandable without the previous sentence: "Their hooks must work", "Semicolons, not commas".
_INCOMPLETE = lazy_compile(lambda: rf"^(?:{pack_phrases('incomplete')})", re.IGNORECASE)
# "Priya leads it": "it" is the object of the previous statement.
_POINTS_TO_OBJECT = lazy_compile(lambda: rf"^(?:{pack_phrases('points_to_object')})\b")
# Acts of a statement that sets a rule from now on.
_RULE_ACTS: frozenset[Act] = frozenset({"remember", "decision"})


def group_by_length(statements: Sequence[Statement], max_chars: int) -> list[list[Statement]]:
    """Return the statements in order, in groups of at most `max_chars` characters (a single one may exceed it)."""
    groups: list[list[Statement]] = []
    size = 0
    for statement in statements:
        if not groups or size + len(statement.text) > max_chars:
            groups.append([])
            size = 0
        groups[-1].append(statement)
        size += len(statement.text) + 1
    return groups


def group_by_cue(statements: Iterable[Statement], cues: frozenset[Act], max_chars: int) -> list[list[Statement]]:
    """Return groups in order: each cued statement opens one; a statement that points back joins the previous one.

    Adjacent plain statements share a group. A statement that only denies something ("No, not 8080") is merged with the
    statement of what holds instead: the rule before it, else the statement after it.
    """
    groups: list[list[Statement]] = []
    for statement in statements:
        fits = bool(groups) and sum(len(other.text) for other in groups[-1]) + len(statement.text) <= max_chars
        both_plain = fits and not statement.acts & cues and not any(other.acts & cues for other in groups[-1])
        points_back = _POINTS_BACK.match(statement.text) and not statement.acts & cues
        points_to_object = (
            fits and any(other.acts & cues for other in groups[-1]) and _POINTS_TO_OBJECT.match(statement.text)
        )
        incomplete = not statement.item and (points_to_object or _INCOMPLETE.match(statement.text))
        if fits and (both_plain or points_back or incomplete):
            groups[-1].append(statement)
        else:
            groups.append([statement])
    return _merge_denials(groups)


def leading_statement(group: Sequence[Statement]) -> Statement:
    """Return the statement that a group is about: the first that is not a mere denial, if there is one."""
    return next((statement for statement in group if "denial" not in statement.acts), group[0])


def _merge_denials(groups: list[list[Statement]]) -> list[list[Statement]]:
    merged: list[list[Statement]] = []
    pending: list[Statement] = []
    for group in groups:
        if "denial" not in leading_statement(group).acts:
            merged.append([*pending, *group])
            pending = []
        elif merged and not pending and merged[-1][0].acts & _RULE_ACTS:
            merged[-1].extend(group)
        else:
            pending.extend(group)
    return [*merged, pending] if pending else merged


_KINDS: tuple[Act, ...] = ("decision", "lesson", "convention", "goal", "preference")
_KINDS_AMONG_PEOPLE: tuple[Act, ...] = ("decision", "goal", "preference", "lesson")
_KINDS_OF_ANSWER: tuple[Act, ...] = ("decision", "convention", "preference")
_KINDS_OF_AGENT: tuple[Act, ...] = ("lesson", "decision")
_CUES = frozenset[Act]((*_KINDS, "remember", "correction", "fact"))
_OF_AGENT = frozenset[Act]((*_KINDS_OF_AGENT, "convention"))
_NOT_LASTING: frozenset[Act] = frozenset({"hypothetical", "offer", "request"})
_TRANSIENT_ACTS: frozenset[Act] = frozenset({"offer", "request", "doubt", "moment"})
_SPECIFIC = lazy_compile(r"\d+|\w+[/_.]\w+|`[^`]{1,80}`")
_REFERENCE_DAY = date(2000, 1, 1)
_ANSWER_CONFIDENCE = 0.7
_AGREEMENT_BONUS = 0.15
_MIN_DENIAL_WORDS = 4
_REPORTS = lazy_compile(lambda: rf"^(?:\w+[,.] )?(?:{pack_phrases('report')})", re.IGNORECASE)
_TO_DO = lazy_compile(lambda: rf"\b(?:{pack_phrases('to_do')})\b", re.IGNORECASE)
_RULE = lazy_compile(lambda: rf"^(?:\w+[,.:] )?(?:{pack_phrases('rule')})\b", re.IGNORECASE)
_CONTRADICTS = lazy_compile(lambda: rf"^(?:{pack_phrases('contradiction')})(?!\w)", re.IGNORECASE)
_AGREES = lazy_compile(lambda: rf"^(?:{pack_phrases('agreement')})(?!\w)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class SelectedGroup:
    """A group of statements that becomes a finding.

    `question` is the question it answers, None if there is none; `is_first` marks the first group of its message.
    """

    statements: Sequence[Statement]
    kind: str
    confidence: float
    is_first: bool = False
    question: Statement | None = None


def select_groups(
    turn: ConversationTurn, reply: ConversationTurn | None, config: RuleExtractionConfig
) -> Iterator[SelectedGroup]:
    """Yield the selected groups of a turn, in order. `reply` is the next turn, None if there is none yet."""
    if turn.among_people:
        yield from _select_of_person(turn, config)
    elif turn.utterance.role == "user":
        yield from _select_of_user(turn, config)
    elif config.assistant_trust > 0:
        yield from _select_of_agent(turn, reply, config)


def _select_of_person(turn: ConversationTurn, config: RuleExtractionConfig) -> Iterator[SelectedGroup]:
    score = _score_group(turn, turn.statements)
    if score < config.min_salience:
        return
    for index, group in enumerate(group_by_length(turn.statements, config.max_entry_chars)):
        kind = _group_kind(group, _KINDS_AMONG_PEOPLE)
        question = turn.question if index == 0 else None
        yield SelectedGroup(
            statements=group, kind=kind, confidence=_confidence_of_score(score), is_first=index == 0, question=question
        )


def _select_of_user(turn: ConversationTurn, config: RuleExtractionConfig) -> Iterator[SelectedGroup]:
    groups = group_by_cue(turn.statements, _CUES, config.max_entry_chars)
    for index, group in enumerate(groups):
        question = turn.question if index == 0 and answers_question(turn) else None
        rating = _rate_user_group(turn, group, question, config)
        if rating is not None:
            kind, confidence = rating
            yield SelectedGroup(
                statements=group, kind=kind, confidence=confidence, is_first=index == 0, question=question
            )
    if not groups:
        yield from _select_confirmed_question(turn)


def _rate_user_group(
    turn: ConversationTurn, group: Sequence[Statement], question: Statement | None, config: RuleExtractionConfig
) -> tuple[str, float] | None:
    """Return the kind and confidence of a user's group; None if it is not worth a finding."""
    leading = leading_statement(group)
    if "denial" in leading.acts and len(leading.words) < _MIN_DENIAL_WORDS:
        return None
    is_replacement = leading is not group[0] and "denial" in group[0].acts
    is_cued = leading.acts & _CUES and ("preference" in leading.acts or not leading.acts & _NOT_LASTING)
    is_lasting = any(each.acts & LASTING_ACTS for each in group if "denial" not in each.acts)
    if is_lasting or is_cued or is_replacement:
        return _group_kind(group, _KINDS), _confidence_of_cue(leading)
    if "request" in leading.acts:
        return None
    if question is not None:
        kind = _group_kind(group, _KINDS)
        return kind if kind != "fact" else _group_kind([question], _KINDS_OF_ANSWER), _ANSWER_CONFIDENCE
    score = _score_group(turn, group)
    return ("fact", _confidence_of_score(score)) if score >= config.min_salience else None


def _select_of_agent(
    turn: ConversationTurn, reply: ConversationTurn | None, config: RuleExtractionConfig
) -> Iterator[SelectedGroup]:
    if _is_contradicted(turn, reply):
        return
    for group in group_by_cue(turn.statements, _OF_AGENT, config.max_entry_chars):
        kind = _agent_kind(group[0])
        if kind is not None:
            confidence = _confidence_of_cue(group[0]) * config.assistant_trust + _AGREEMENT_BONUS * _is_taken_up(reply)
            yield SelectedGroup(statements=group, kind=kind, confidence=round(min(1.0, confidence), 2))


def _agent_kind(statement: Statement) -> str | None:
    """Return the kind of an agent's statement: lesson or decision. An agent's rule is a lesson."""
    if statement.acts & _TRANSIENT_ACTS or _REPORTS.match(statement.text):
        return None
    # In English "doubt" marks a guess; a cause may contain "might".
    is_guess = "hypothetical" in statement.acts and not ("lesson" in statement.acts and statement.language == "en")
    if is_guess:
        return None
    if "lesson" in statement.acts or _RULE.match(statement.text):
        return "lesson"
    return "decision" if "decision" in statement.acts else None


def _is_contradicted(turn: ConversationTurn, reply: ConversationTurn | None) -> bool:
    """Return whether the reply contradicts the agent. A "no" that answers the agent's question does not."""
    first = reply.sentences[0] if reply and reply.utterance.role == "user" and reply.sentences else None
    return first is not None and reply is not None and reply.question is None and bool(_CONTRADICTS.match(first.text))


def _is_taken_up(reply: ConversationTurn | None) -> bool:
    if reply is None or reply.utterance.role != "user" or not reply.sentences:
        return False
    first = reply.sentences[0]
    return bool(first.acts & {"praise", "thanks", "acknowledgement", "reaction"} or _AGREES.match(first.text))


def _select_confirmed_question(turn: ConversationTurn) -> Iterator[SelectedGroup]:
    """Yield the group of a bare yes or no to a factual question: the question carries the content."""
    is_acknowledgement = turn.sentences and "acknowledgement" in turn.sentences[0].acts
    if turn.question and is_acknowledgement and answers_question(turn) and YES_NO_QUESTION.match(turn.question.text):
        kind = _group_kind(preceding_question(turn), _KINDS)
        yield SelectedGroup(
            statements=turn.sentences[:1],
            kind=kind,
            confidence=_ANSWER_CONFIDENCE,
            is_first=True,
            question=turn.question,
        )


def _group_kind(group: Sequence[Statement], kinds: Sequence[Act]) -> str:
    """Return the first of the kinds that any statement has a cue for; a fact if there is none."""
    affirmed = [statement for statement in group if "denial" not in statement.acts] or group
    acts = frozenset[Act]().union(*(statement.acts for statement in affirmed))
    if "remember" in acts and "convention" in kinds and "fact" not in acts:
        is_fact = affirmed[0].language == "en" and not _TO_DO.search(affirmed[0].text)
        return next((kind for kind in kinds if kind in acts), "fact" if is_fact else "convention")
    return next((kind for kind in kinds if kind in acts), "fact")


def _score_group(turn: ConversationTurn, group: Sequence[Statement]) -> float:
    text = " ".join(statement.text for statement in group)
    features = SalienceFeatures(
        is_answer=turn.question is not None,
        is_opening=turn.opening,
        dates=len(find_dates(text, turn.utterance.time or _REFERENCE_DAY)),
        specifics=len(find_names(text)) + len(_SPECIFIC.findall(text)),
    )
    return score_salience(group, features)


def _confidence_of_score(score: float) -> float:
    return round(min(0.8, 0.45 + 0.1 * score), 2)


def _confidence_of_cue(statement: Statement) -> float:
    """Return the confidence: highest for requests to remember, then rules and decisions, then preferences and plans."""
    acts = statement.acts
    confidence = 0.95 if "remember" in acts else 0.9 if acts & LASTING_ACTS else 0.8 if "fact" not in acts else 0.75
    return round(confidence - 0.2 * ("hypothetical" in acts), 2)
