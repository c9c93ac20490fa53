"""Selection: which groups of statements become findings, with which kind and confidence.

Among people the statements of one message form one finding, and salience decides. Between a user and an agent a
sentence with its own cue is a separate finding, and a plain statement needs substance. From the agent only lessons and
decisions count, unless the user's reply contradicts them.

Salience is a weighted sum; its weights are rounded from a logistic fit, see docs/design/extraction.md.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date

from ricordo.extraction.config import RuleExtractionConfig
from ricordo.extraction.contract import Utterance
from ricordo.extraction.exchanges import AskedQuestion, Exchange, find_exchanges, find_value_answer, read_question
from ricordo.extraction.relevance import Relevance, StatementContext, judge_relevance
from ricordo.extraction.statements import (
    YES_NO_QUESTION,
    ConversationTurn,
    Statement,
    answers_question,
    build_turns,
    preceding_question,
)
from ricordo.language import Act, find_dates, find_introduction, find_names, is_unsegmented, points_back
from ricordo.language.packs import pack_phrases
from ricordo.language.quantities import find_quantities
from ricordo.lazy import dataclass, lazy_compile

__all__ = [
    "RatedStatement",
    "SalienceFeatures",
    "SelectedGroup",
    "explain_relevance",
    "group_by_length",
    "group_rated",
    "is_incomplete",
    "rate_statements",
    "score_salience",
    "select_groups",
    "tells_new_value",
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


# Not understandable without the previous sentence: "Their hooks must work", "Semicolons, not commas".
_INCOMPLETE = lazy_compile(lambda: rf"^(?:{pack_phrases('incomplete')})", re.IGNORECASE)
# "Priya leads it": "it" is the object of the previous statement.
_POINTS_TO_OBJECT = lazy_compile(lambda: rf"^(?:{pack_phrases('points_to_object')})\b")
_CHANGE_SCORE, _CHANGE_CUE, _MAX_CHANGE_CHARS = 0.66, "a new value", 160
_CHANGED = lazy_compile(
    lambda: (
        rf"(?<!\w)(?:{pack_phrases('change', edges=True)}|{pack_phrases('ended_tail', edges=True)})(?!\w)"
        rf"|{pack_phrases('change', edges=False)}|{pack_phrases('ended_tail', edges=False)}"
    ),
    re.IGNORECASE,
)
_OVER = lazy_compile(
    lambda: rf"(?:{pack_phrases('ended_tail', edges=True)})(?!\w)|{pack_phrases('ended_tail', edges=False)}",
    re.IGNORECASE,
)
_NOT_TOLD: frozenset[Act] = frozenset({"question", "request", "moment", "offer", "hypothetical", "doubt", "wish"})
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


@dataclass(frozen=True, kw_only=True, slots=True)
class RatedStatement:
    """A statement with its relevance. `is_asked` marks a request to remember or a name, whatever its score.

    `is_kept` says that it is worth a finding: by its score, or because it was asked. `is_answer` marks the sentence
    that directly answers a question, and `is_topic` a first word or two that says what the message is about: "Price."
    """

    statement: Statement
    relevance: Relevance
    is_kept: bool
    is_asked: bool = False
    is_answer: bool = False
    is_topic: bool = False


def rate_statements(turn: ConversationTurn, min_relevance: float) -> tuple[RatedStatement, ...]:
    """Return the statements of a turn with their relevance, in order."""
    positions = {sentence.start: index for index, sentence in enumerate(turn.sentences)}
    return tuple(_rate(turn, each, positions[each.start], min_relevance) for each in turn.statements)


def _rate(turn: ConversationTurn, statement: Statement, index: int, min_relevance: float) -> RatedStatement:
    sentences = turn.sentences
    context = StatementContext(
        statement=statement,
        index=index,
        count=len(sentences),
        by_user=turn.utterance.role == "user",
        previous=sentences[index - 1] if index else None,
        following=sentences[index + 1] if index + 1 < len(sentences) else None,
        question=turn.question,
    )
    relevance = judge_relevance(context)
    if context.by_user and tells_new_value(statement):
        relevance = replace(relevance, score=max(relevance.score, _CHANGE_SCORE), cues=(*relevance.cues, _CHANGE_CUE))
    is_asked = context.by_user and ("remember" in statement.acts or _is_introduction(statement))
    return RatedStatement(
        statement=statement,
        relevance=relevance,
        is_kept=is_asked or relevance.score >= min_relevance,
        is_asked=is_asked,
        is_answer=index == 0 and answers_question(turn),
        is_topic=index == 0 and turn.question is None and _is_topic(statement, following=context.following),
    )


def tells_new_value(statement: Statement) -> bool:
    """Return whether a statement says that an amount is another one from now on: "it's seven now", "two is too few"."""
    if statement.acts & _NOT_TOLD or len(statement.text) > _MAX_CHANGE_CHARS or _CHANGED.search(statement.text) is None:
        return False
    return _has_amount(statement)


def _has_amount(statement: Statement) -> bool:
    return bool(find_quantities(statement.text, statement.language))


def _ends_value(statement: Statement) -> bool:
    """Return whether a statement only says that a value is over, so that the next one gives the new one."""
    is_over = _OVER.search(statement.text) is not None
    return is_over and len(find_quantities(statement.text, statement.language)) == 1


def _is_topic(statement: Statement, *, following: Statement | None) -> bool:
    is_short = len(statement.words) <= _MAX_TOPIC_WORDS and len(statement.text) <= _MAX_TOPIC_CHARS
    is_ended = statement.text.rstrip().endswith((".", "。", ":", "："))
    is_remark = is_unsegmented(statement.text[0]) or statement.acts & (_REMARKS | _NOT_TOPIC)
    return is_short and is_ended and not is_remark and following is not None and "question" not in following.acts


def explain_relevance(utterances: Sequence[Utterance], quote: str) -> Relevance | None:
    """Return how relevant the most relevant statement of a quote is; None if the quote states nothing.

    `utterances` are the message of the quote and those before it that it answers, in order.
    """
    turns = build_turns(utterances, RuleExtractionConfig())
    rated = [each for turn in turns for each in rate_statements(turn, 0.0) if each.statement.text in quote]
    return max((each.relevance for each in rated), key=lambda relevance: relevance.score, default=None)


def _is_introduction(statement: Statement) -> bool:
    introduction = find_introduction(statement.text) if statement.acts >= {"fact", "self"} else None
    return introduction is not None and introduction.is_whole


def is_incomplete(text: str) -> bool:
    """Return whether a statement is not understandable without the one before it."""
    return bool(_INCOMPLETE.match(text))


def group_rated(rated: Sequence[RatedStatement], config: RuleExtractionConfig) -> list[list[RatedStatement]]:
    """Return groups in order: each statement worth keeping opens one, with what is only understood together with it.

    A statement that points back or is a fragment joins the one before it. What is worth keeping after a short answer
    joins that answer, whose question says what both are about. A statement that only denies something ("No,
    not 8080") is merged with the statement of what holds instead: the rule before it, else the statement after it.
    """
    groups: list[list[RatedStatement]] = []
    max_chars, min_joined = config.max_entry_chars, max(_MIN_JOINED, config.min_relevance)
    for each in rated:
        text = each.statement.text
        fits = bool(groups) and sum(len(one.statement.text) for one in groups[-1]) + len(text) <= max_chars
        points_to_object = fits and any(one.is_kept for one in groups[-1]) and _POINTS_TO_OBJECT.match(text)
        refers_back = points_to_object or points_back(text) or is_incomplete(text)
        is_fragment = fits and groups[-1][-1].is_kept and _is_fragment(each)
        is_fragment = is_fragment or (fits and _ends_value(groups[-1][-1].statement) and _has_amount(each.statement))
        goes_on = is_fragment or (fits and refers_back and _can_be_subject(groups[-1]))
        if fits and not each.statement.item and (goes_on or (each.is_kept and _introduces(groups[-1]))):
            groups[-1].append(each)
        else:
            groups.append([each])
    return [group for group in _merge_weak(_merge_denials(groups), max_chars) if _is_worth_keeping(group, min_joined)]


def _introduces(group: Sequence[RatedStatement]) -> bool:
    """Return whether a group is a topic, or one likely answer too little alone: "Kidneys." before what the vet said."""
    first = group[0]
    if first.is_topic:
        return len(group) == 1
    is_word = len(first.statement.words) <= 1 and not _SPECIFIC.search(first.statement.text)
    if len(group) > 1 or not first.is_answer or (first.is_kept and not is_word) or first.statement.acts & _REMARKS:
        return False
    return len(first.statement.words) <= _MAX_FRAGMENT_WORDS and first.relevance.score >= _MIN_WEAK


def _is_fragment(rated: RatedStatement) -> bool:
    """Return whether a statement is so short that it goes on with the one before: "one full day there"."""
    statement = rated.statement
    if len(statement.words) < _MIN_OWN_WORDS:
        return True
    is_own = statement.acts & _OWN_ACTS or rated.relevance.score < _MIN_WEAK
    return len(statement.words) <= _MAX_FRAGMENT_WORDS and not is_own


def _merge_weak(groups: list[list[RatedStatement]], max_chars: int) -> list[list[RatedStatement]]:
    """Merge neighbours of which each alone is too little: of two likely ones, one is worth keeping more often."""
    merged: list[list[RatedStatement]] = []
    for group in groups:
        before = merged[-1] if merged else []
        fits = sum(len(each.statement.text) for each in (*before, *group)) <= max_chars
        if before and fits and _is_weak(group) and _is_weak(before) and not group[0].statement.item:
            before.extend(group)
        else:
            merged.append(list(group))
    return merged


def _is_weak(group: Sequence[RatedStatement]) -> bool:
    return not any(each.is_kept for each in group) and any(each.relevance.score >= _MIN_WEAK for each in group)


def _is_worth_keeping(group: Sequence[RatedStatement], min_joined: float) -> bool:
    return any(each.is_kept for each in group) or (len(group) > 1 and _join_scores(group) >= min_joined)


def _join_scores(group: Sequence[RatedStatement]) -> float:
    """Return how likely one of the likely statements at least is worth keeping."""
    scores = [each.relevance.score for each in group if each.is_kept or each.relevance.score >= _MIN_WEAK]
    return 1 - math.prod(1 - score for score in scores)


def _can_be_subject(group: Sequence[RatedStatement]) -> bool:
    """Return whether a further statement may speak of what a group says, and not of what was said before a remark."""
    last = group[-1]
    return last.is_kept or (len(last.statement.words) > _MIN_OWN_WORDS and not last.statement.acts & _REMARKS)


def _is_denial(group: Sequence[RatedStatement]) -> bool:
    return all("denial" in each.statement.acts for each in group)


def _merge_denials(groups: list[list[RatedStatement]]) -> list[list[RatedStatement]]:
    merged: list[list[RatedStatement]] = []
    pending: list[RatedStatement] = []
    for group in groups:
        if not _is_denial(group):
            merged.append([*pending, *group])
            pending = []
        elif merged and not pending and merged[-1][0].statement.acts & _RULE_ACTS:
            merged[-1].extend(group)
        else:
            pending.extend(group)
    return [*merged, pending] if pending else merged


_KINDS: tuple[Act, ...] = ("decision", "lesson", "convention", "goal", "preference")
_KINDS_AMONG_PEOPLE: tuple[Act, ...] = ("decision", "goal", "preference", "lesson")
_MIN_OWN_WORDS, _MAX_FRAGMENT_WORDS = 2, 4
_OWN_ACTS = frozenset[Act]((*_KINDS, "remember", "fact", "correction"))
_MAX_TOPIC_WORDS, _MAX_TOPIC_CHARS = 2, 24
_MIN_WEAK, _MIN_JOINED = 0.25, 0.5
_REMARKS: frozenset[Act] = frozenset({"acknowledgement", "greeting", "praise", "reaction", "thanks", "request"})
_SPECIFIC = lazy_compile(r"\d+|\w+[/_.]\w+|`[^`]{1,80}`")
_NOT_TOPIC: frozenset[Act] = frozenset({"denial", "farewell", "moment", "wish"})
_REFERENCE_DAY = date(2000, 1, 1)
_REMEMBER_CONFIDENCE = 0.95
_AGENT_SHARE = 0.7
_AGREEMENT_BONUS = 0.15
_MIN_CONFIRMED = 0.65
_NOT_OF_AGENT: frozenset[Act] = frozenset({"doubt", "moment", "offer", "request"})
_REPORTS = lazy_compile(lambda: rf"^(?:\w+[,.] )?(?:{pack_phrases('report')})", re.IGNORECASE)
_TO_DO = lazy_compile(lambda: rf"\b(?:{pack_phrases('to_do')})\b", re.IGNORECASE)
_CONTRADICTS = lazy_compile(lambda: rf"^(?:{pack_phrases('contradiction')})(?!\w)", re.IGNORECASE)
_AGREES = lazy_compile(lambda: rf"^(?:{pack_phrases('agreement')})(?!\w)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class SelectedGroup:
    """A group of statements that becomes a finding.

    `question` is the question it answers, None if there is none, and `question_ids` are the messages that it stands in;
    `is_clear` is false if nobody can tell later what was asked. `is_first` marks the first group of its message.
    """

    statements: Sequence[Statement]
    kind: str
    confidence: float
    is_first: bool = False
    question: Statement | None = None
    question_ids: tuple[str, ...] = ()
    is_clear: bool = True


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
        yield SelectedGroup(
            statements=group,
            kind=kind,
            confidence=_confidence_of_score(score),
            is_first=index == 0,
            question=turn.question if index == 0 else None,
            question_ids=_find_asking_ids(turn),
        )


def _find_asking_ids(turn: ConversationTurn) -> tuple[str, ...]:
    return (turn.asked_in.utterance.message_id,) if turn.asked_in else ()


def _select_of_user(turn: ConversationTurn, config: RuleExtractionConfig) -> Iterator[SelectedGroup]:
    exchanges = find_exchanges(turn)
    if exchanges is not None:
        yield from map(_select_exchange, exchanges)
        return
    rated = rate_statements(turn, config.min_relevance)
    asked: AskedQuestion | None = None
    for group in group_rated(rated, config):
        statements = [each.statement for each in group]
        is_first = statements[0].start == turn.sentences[0].start
        if is_first and answers_question(turn):
            # An answer that stands alone needs no more than its question.
            asked = read_question(turn, with_context=_needs_context(statements, is_reply=False))
        question = asked.statement if asked and is_first else None
        is_asked = any(each.is_asked for each in group)
        has_topic = turn.previous is not None and tells_new_value(statements[0])
        is_alone = question is None and not is_asked and not has_topic
        if is_alone and _needs_context(statements, is_reply=is_first and bool(turn.question)):
            continue
        best = max(group, key=lambda each: each.relevance.score)
        yield SelectedGroup(
            statements=statements,
            kind=_asked_kind(statements) if is_asked else _chat_kind(statements, best),
            confidence=_REMEMBER_CONFIDENCE if is_asked else _confidence_of_relevance(_join_scores(group)),
            is_first=is_first,
            question=question,
            question_ids=asked.message_ids if asked else (),
            is_clear=question is None or asked is None or asked.is_clear,
        )
    if not rated:
        yield from _select_confirmed_question(turn, config)


def _select_exchange(exchange: Exchange) -> SelectedGroup:
    question, relevance = exchange.question, exchange.relevance
    kind = _group_kind((exchange.answer, question.statement), _KINDS)
    return SelectedGroup(
        statements=(exchange.answer,),
        kind=relevance.kind if kind == "fact" else kind,
        confidence=_confidence_of_relevance(max(relevance.score, _MIN_JOINED)),
        is_first=True,
        question=question.statement,
        question_ids=question.message_ids,
        is_clear=question.is_clear,
    )


def _needs_context(statements: Sequence[Statement], *, is_reply: bool) -> bool:
    """Return whether nobody can tell what statements are about: few words without a cue."""
    words = frozenset[str]().union(*(statement.words for statement in statements))
    is_cued = len(words) >= _MIN_OWN_WORDS and any(statement.acts & _OWN_ACTS for statement in statements)
    return len(words) <= (_MAX_FRAGMENT_WORDS if is_reply else 1) and not is_cued


def _chat_kind(statements: Sequence[Statement], best: RatedStatement) -> str:
    """Return the kind that the cues of the statements say, else the one that the model finds likeliest."""
    kind = _group_kind(statements, _KINDS)
    return best.relevance.kind if kind == "fact" else kind


def _select_of_agent(
    turn: ConversationTurn, reply: ConversationTurn | None, config: RuleExtractionConfig
) -> Iterator[SelectedGroup]:
    if _is_contradicted(turn, reply):
        return
    value = find_value_answer(turn)
    if value is not None:
        found = _select_exchange(value)
        yield replace(found, confidence=round(found.confidence * config.assistant_trust, 2))
        return
    rated = rate_statements(turn, config.min_relevance * _AGENT_SHARE)
    for group in group_rated([each for each in rated if not _is_report(each.statement)], config):
        best = max(group, key=lambda each: each.relevance.score)
        confidence = _confidence_of_relevance(best.relevance.score) * config.assistant_trust
        if _is_taken_up(reply):
            confidence = max(confidence + _AGREEMENT_BONUS, _MIN_CONFIRMED)
        yield SelectedGroup(
            statements=[each.statement for each in group],
            kind="decision" if best.relevance.kind == "decision" else "lesson",
            confidence=round(min(1.0, confidence), 2),
        )


def _is_report(statement: Statement) -> bool:
    """Return whether an agent's statement tells what it does or supposes, which is no lesson."""
    return bool(statement.acts & _NOT_OF_AGENT) or _REPORTS.match(statement.text) is not None


def _is_contradicted(turn: ConversationTurn, reply: ConversationTurn | None) -> bool:
    """Return whether the reply contradicts the agent. A "no" that answers the agent's question does not."""
    first = reply.sentences[0] if reply and reply.utterance.role == "user" and reply.sentences else None
    return first is not None and reply is not None and reply.question is None and bool(_CONTRADICTS.match(first.text))


def _is_taken_up(reply: ConversationTurn | None) -> bool:
    if reply is None or reply.utterance.role != "user" or not reply.sentences:
        return False
    first = reply.sentences[0]
    return bool(first.acts & {"praise", "thanks", "acknowledgement", "reaction"} or _AGREES.match(first.text))


def _select_confirmed_question(turn: ConversationTurn, config: RuleExtractionConfig) -> Iterator[SelectedGroup]:
    """Yield the group of a bare yes or no to a factual question: the question carries the content."""
    is_acknowledgement = turn.sentences and "acknowledgement" in turn.sentences[0].acts
    if not turn.question or not is_acknowledgement or not answers_question(turn):
        return
    rated, asked = _rate(turn, turn.sentences[0], 0, config.min_relevance), read_question(turn)
    if asked and rated.is_kept and YES_NO_QUESTION.match(turn.question.text):
        yield SelectedGroup(
            statements=turn.sentences[:1],
            kind=_group_kind(preceding_question(turn), _KINDS),
            confidence=_confidence_of_relevance(rated.relevance.score),
            is_first=True,
            question=asked.statement,
            question_ids=asked.message_ids,
        )


def _asked_kind(group: Sequence[Statement]) -> str:
    """Return the kind of what somebody asked to remember: what its cues say, else a fact in English, else a rule."""
    affirmed = [statement for statement in group if "denial" not in statement.acts] or group
    acts = frozenset[Act]().union(*(statement.acts for statement in affirmed))
    is_fact = "fact" in acts or (affirmed[0].language == "en" and not _TO_DO.search(affirmed[0].text))
    return next((kind for kind in _KINDS if kind in acts), "fact" if is_fact else "convention")


def _group_kind(group: Sequence[Statement], kinds: Sequence[Act]) -> str:
    """Return the first of the kinds that any statement has a cue for; a fact if there is none."""
    affirmed = [statement for statement in group if "denial" not in statement.acts] or group
    acts = frozenset[Act]().union(*(statement.acts for statement in affirmed))
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


def _confidence_of_relevance(score: float) -> float:
    """Return the confidence: what is kept at all was said, so it begins above the middle."""
    return round(0.3 + 0.65 * score, 2)


def _confidence_of_score(score: float) -> float:
    return round(min(0.8, 0.45 + 0.1 * score), 2)
