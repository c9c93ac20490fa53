"""Which groups of statements become findings, of which kind, and how sure.

Among people the statements of one message form one finding, and salience decides. Between a user and an agent a
sentence with a cue of its own (a decision, a convention, ...) is a finding of its own and a plain statement needs
substance. Of the agent only lessons and decisions count, at less confidence: a little more when the user's reply
takes them up, not at all when it contradicts them or when the agent itself is guessing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from ricordo.flush.config import ExtractionConfig
from ricordo.flush.grouping import by_cue, by_length, lead
from ricordo.flush.salience import Surroundings, salience
from ricordo.flush.statements import STANDING, Statement
from ricordo.flush.turns import YES_NO, Turn, answers, asked
from ricordo.language import Act, find_dates, find_names

__all__ = ["Pick", "chosen"]

_KINDS: tuple[Act, ...] = ("decision", "lesson", "convention", "goal", "preference")
_KINDS_AMONG_PEOPLE: tuple[Act, ...] = ("decision", "goal", "preference", "lesson")
_KINDS_OF_ANSWER: tuple[Act, ...] = ("decision", "convention", "preference")
_KINDS_OF_AGENT: tuple[Act, ...] = ("lesson", "decision")
_CUES = frozenset[Act]((*_KINDS, "remember", "correction", "fact"))
_OF_AGENT = frozenset[Act]((*_KINDS_OF_AGENT, "convention"))
_NOT_STANDING: frozenset[Act] = frozenset({"hypothetical", "offer", "request"})
_PASSING: frozenset[Act] = frozenset({"offer", "request", "doubt", "moment"})
_SPECIFIC = re.compile(r"\d+|\w+[/_.]\w+|`[^`]{1,80}`")
_ANY_DAY = date(2000, 1, 1)
_ANSWER_SURETY = 0.7
_TAKEN_UP = 0.15
_ENOUGH = 4
_REPORTS = re.compile(
    r"^(?:\w+[,.] )?(?:i\b|i['’]|let me|let['’]s|(?:fixed|done|added|solved|resolved)\b)", re.IGNORECASE
)
_TO_DO = re.compile(r"\b(?:remember|forget|sure|note|careful) (?:to|not)\b", re.IGNORECASE)
_RULE = re.compile(
    r"^(?:\w+[,.:] )?(?:(?:you|we) (?:should|must) )?"
    r"(?:never|always|nie(?:mals)?|immer|jamais|toujours|nunca|siempre)\b",
    re.IGNORECASE,
)
_CONTRADICTS = re.compile(
    r"^(?:no|nope|nah|wrong|not (?:true|quite|really|it)|that['’]?s (?:not|wrong)|i don['’]t think|keep looking|hm+|"
    r"nein|non|não|不对|不是|违|違)(?!\w)",
    re.IGNORECASE,
)

_TAKES_UP = re.compile(
    r"^(?:good|great|nice|yes|yep|right|exactly|agreed|perfect|super|ok|okay|true|put|write|note|keep|remember|gut|genau|ja|"
    r"oui|sí|sim|好|对|はい)(?!\w)",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Pick:
    """A group of statements that becomes a finding.

    `question` is the one it answers, None when it answers none; `first` marks the first group of its message.
    """

    group: Sequence[Statement]
    kind: str
    confidence: float
    first: bool = False
    question: Statement | None = None


def chosen(turn: Turn, reply: Turn | None, config: ExtractionConfig) -> Iterator[Pick]:
    """Yield what a turn gives, in order. `reply` is the turn after it, None when there is none yet."""
    if turn.among_people:
        yield from _of_person(turn, config)
    elif turn.utterance.role == "user":
        yield from _of_user(turn, config)
    elif config.assistant_trust > 0:
        yield from _of_agent(turn, reply, config)


def _of_person(turn: Turn, config: ExtractionConfig) -> Iterator[Pick]:
    score = _score(turn, turn.statements)
    if score < config.min_salience:
        return
    for at, group in enumerate(by_length(turn.statements, config.max_entry_chars)):
        kind = _kind(group, _KINDS_AMONG_PEOPLE)
        question = turn.question if at == 0 else None
        yield Pick(group=group, kind=kind, confidence=_from_score(score), first=at == 0, question=question)


def _of_user(turn: Turn, config: ExtractionConfig) -> Iterator[Pick]:
    groups = by_cue(turn.statements, _CUES, config.max_entry_chars)
    for at, group in enumerate(groups):
        question = turn.question if at == 0 and answers(turn) else None
        weighed = _weighed(turn, group, question, config)
        if weighed is not None:
            kind, surety = weighed
            yield Pick(group=group, kind=kind, confidence=surety, first=at == 0, question=question)
    if not groups:
        yield from _confirmed(turn)


def _weighed(
    turn: Turn, group: Sequence[Statement], question: Statement | None, config: ExtractionConfig
) -> tuple[str, float] | None:
    """Return the kind of a user's group and how sure it is; None when it is not worth a finding."""
    leading = lead(group)
    if "denial" in leading.acts and len(leading.words) < _ENOUGH:
        return None
    replaces = leading is not group[0] and "denial" in group[0].acts
    cued = leading.acts & _CUES and ("preference" in leading.acts or not leading.acts & _NOT_STANDING)
    standing = any(each.acts & STANDING for each in group if "denial" not in each.acts)
    if standing or cued or replaces:
        return _kind(group, _KINDS), _from_cue(leading)
    if "request" in leading.acts:
        return None
    if question is not None:
        kind = _kind(group, _KINDS)
        return kind if kind != "fact" else _kind([question], _KINDS_OF_ANSWER), _ANSWER_SURETY
    score = _score(turn, group)
    return ("fact", _from_score(score)) if score >= config.min_salience else None


def _of_agent(turn: Turn, reply: Turn | None, config: ExtractionConfig) -> Iterator[Pick]:
    if _contradicted(turn, reply):
        return
    for group in by_cue(turn.statements, _OF_AGENT, config.max_entry_chars):
        kind = _kind_of_agent(group[0])
        if kind is not None:
            surety = _from_cue(group[0]) * config.assistant_trust + _TAKEN_UP * _taken_up(reply)
            yield Pick(group=group, kind=kind, confidence=round(min(1.0, surety), 2))


def _kind_of_agent(statement: Statement) -> str | None:
    """A lesson or a decision; a rule that an agent states is what it has learned."""
    if statement.acts & _PASSING or _REPORTS.match(statement.text):
        return None
    # English tells a guess by "doubt"; a cause may well hold a "might".
    guess = "hypothetical" in statement.acts and not ("lesson" in statement.acts and statement.language == "en")
    if guess:
        return None
    if "lesson" in statement.acts or _RULE.match(statement.text):
        return "lesson"
    return "decision" if "decision" in statement.acts else None


def _contradicted(turn: Turn, reply: Turn | None) -> bool:
    """A "no" that answers the agent's question contradicts nothing."""
    first = reply.sentences[0] if reply and reply.utterance.role == "user" and reply.sentences else None
    return first is not None and reply is not None and reply.question is None and bool(_CONTRADICTS.match(first.text))


def _taken_up(reply: Turn | None) -> bool:
    if reply is None or reply.utterance.role != "user" or not reply.sentences:
        return False
    first = reply.sentences[0]
    return bool(first.acts & {"praise", "thanks", "acknowledgement", "reaction"} or _TAKES_UP.match(first.text))


def _confirmed(turn: Turn) -> Iterator[Pick]:
    """A bare yes or no to a question about how things are: the question carries the content."""
    bare = turn.sentences and "acknowledgement" in turn.sentences[0].acts
    if turn.question and bare and answers(turn) and YES_NO.match(turn.question.text):
        kind = _kind(asked(turn), _KINDS)
        yield Pick(group=turn.sentences[:1], kind=kind, confidence=_ANSWER_SURETY, first=True, question=turn.question)


def _kind(group: Sequence[Statement], kinds: Sequence[Act]) -> str:
    """The first of the kinds that any statement has a cue for; a fact when none has."""
    telling = [statement for statement in group if "denial" not in statement.acts] or group
    found = frozenset[Act]().union(*(statement.acts for statement in telling))
    if "remember" in found and "convention" in kinds and "fact" not in found:
        told = telling[0].language == "en" and not _TO_DO.search(telling[0].text)
        return next((kind for kind in kinds if kind in found), "fact" if told else "convention")
    return next((kind for kind in kinds if kind in found), "fact")


def _score(turn: Turn, group: Sequence[Statement]) -> float:
    text = " ".join(statement.text for statement in group)
    around = Surroundings(
        answers=turn.question is not None,
        opening=turn.opening,
        dates=len(find_dates(text, turn.utterance.time or _ANY_DAY)),
        specifics=len(find_names(text)) + len(_SPECIFIC.findall(text)),
    )
    return salience(group, around)


def _from_score(score: float) -> float:
    return round(min(0.8, 0.45 + 0.1 * score), 2)


def _from_cue(statement: Statement) -> float:
    """A request to remember is surest, then rules and decisions, then tastes and plans; doubt costs."""
    found = statement.acts
    surety = 0.95 if "remember" in found else 0.9 if found & STANDING else 0.8 if "fact" not in found else 0.75
    return round(surety - 0.2 * ("hypothetical" in found), 2)
