"""What a conversation holds that is worth remembering, found without a model.

Each message is read into statements; what is left after questions, small talk and tasks is grouped, scored, worded so
that it stands alone, and returned with its provenance and a verbatim quote. Two kinds of conversation are told apart
by the names in them. Among people (two or more named speakers) every speaker counts alike and the statements of one
message form one finding. Between a user and an assistant a sentence with a cue of its own (a decision, a convention,
...) is a finding of its own, a plain statement needs substance, and of the assistant only lessons and decisions
count, at less confidence.

Invariants: pure and deterministic; never raises for any text; time linear in the text; findings come in message order.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from ricordo.flush.config import ExtractionConfig
from ricordo.flush.grouping import by_cue, by_length
from ricordo.flush.salience import Surroundings, salience
from ricordo.flush.statements import STANDING, Statement, last_question, read, stated
from ricordo.flush.types import Finding, Utterance
from ricordo.flush.wording import Voice, worded
from ricordo.language import Act, find_dates, find_names, is_correction

__all__ = ["Finding", "Utterance", "findings"]

_KINDS: tuple[Act, ...] = ("decision", "lesson", "convention", "goal", "preference")
_KINDS_AMONG_PEOPLE: tuple[Act, ...] = ("decision", "goal", "preference", "lesson")
_KINDS_OF_ASSISTANT: tuple[Act, ...] = ("decision", "lesson")
_CUES = frozenset[Act]((*_KINDS, "remember", "correction", "fact"))
_NOT_STANDING: frozenset[Act] = frozenset({"hypothetical", "offer", "request"})
_SPECIFIC = re.compile(r"\d+|\w+[/_.]\w+|`[^`]{1,80}`")
_MOST_BETWEEN = 120
_ANY_DAY = date(2000, 1, 1)
_NEXT_STEP = re.compile(
    r"\b(?:i|me|we (?:start|proceed|continue|try)|go ahead|next|error|message|mean|output|log|help|can you|could you|"
    r"ich|mir|je|puis-je|posso)\b|我|ましょう",
    re.IGNORECASE,
)
_ANSWER_SURETY = 0.7
_LEADING_NO = re.compile(r"^(?:no|nope|nah|nein|non|não)[,.! ]+", re.IGNORECASE)
_YES_NO = re.compile(
    r"^(?:(?:so|and|ok|okay|then)[, ]+)?(?:do|does|did|is|are|was|were|should|can|will|have|has|must|may)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Turn:
    """One message read: what it says, what it states, and the question it follows."""

    utterance: Utterance
    sentences: tuple[Statement, ...]
    statements: tuple[Statement, ...]
    among_people: bool
    listener: str | None
    opening: bool
    asker: Utterance | None = None
    question: Statement | None = None


def findings(utterances: Sequence[Utterance], config: ExtractionConfig) -> tuple[Finding, ...]:
    """Return what is worth remembering, in message order; empty when nothing is.

    Only user and assistant messages are read. What the same speaker said before in the same words is not repeated.
    """
    found: list[Finding] = []
    seen: set[tuple[str, str]] = set()
    for turn in _turns(utterances, config):
        for finding in _of_turn(turn, config):
            key = (finding.kind, finding.content.casefold())
            if finding.confidence >= config.min_confidence and key not in seen:
                seen.add(key)
                found.append(finding)
    return tuple(found)


def _turns(utterances: Sequence[Utterance], config: ExtractionConfig) -> Iterator[_Turn]:
    spoken = [
        utterance for utterance in utterances if utterance.role in {"user", "assistant"} and utterance.text.strip()
    ]
    names = {utterance.speaker for utterance in spoken if utterance.speaker}
    among_people = len(names) > 1
    before: _Turn | None = None
    for at, utterance in enumerate(spoken):
        sentences = read(utterance, config)
        asked = before if before and _speaker(before.utterance) != _speaker(utterance) else None
        question = last_question(asked.sentences) if asked else None
        before = _Turn(
            utterance=utterance,
            sentences=sentences,
            statements=stated(sentences, among_people=among_people),
            among_people=among_people,
            listener=min(names - {utterance.speaker}) if len(names) == 2 and utterance.speaker else None,
            opening=among_people and at < 2,
            asker=asked.utterance if asked and question else None,
            question=question,
        )
        yield before


def _speaker(utterance: Utterance) -> tuple[str, str | None]:
    return utterance.role, utterance.speaker


def _of_turn(turn: _Turn, config: ExtractionConfig) -> Iterator[Finding]:
    if turn.among_people:
        yield from _of_person(turn, config)
    elif turn.utterance.role == "user":
        yield from _of_user(turn, config)
    elif config.assistant_trust > 0:
        yield from _of_assistant(turn, config)


def _of_person(turn: _Turn, config: ExtractionConfig) -> Iterator[Finding]:
    score = _score(turn, turn.statements)
    if score < config.min_salience:
        return
    for at, group in enumerate(by_length(turn.statements, config.max_entry_chars)):
        yield _finding(turn, group, _kind(group, _KINDS_AMONG_PEOPLE), _from_score(score), first=at == 0)


def _of_user(turn: _Turn, config: ExtractionConfig) -> Iterator[Finding]:
    groups = by_cue(turn.statements, _CUES, config.max_entry_chars)
    for at, group in enumerate(groups):
        cued = group[0].acts & _CUES and ("preference" in group[0].acts or not group[0].acts & _NOT_STANDING)
        score = _score(turn, group)
        if group[0].acts & STANDING or cued:
            yield _finding(turn, group, _kind(group, _KINDS), _from_cue(group[0]), first=at == 0)
        elif at == 0 and _answers(turn) and "request" not in group[0].acts:
            yield _finding(turn, group, _kind([*group, *_asked(turn)], _KINDS), _ANSWER_SURETY, first=True)
        elif score >= config.min_salience and "request" not in group[0].acts:
            yield _finding(turn, group, "fact", _from_score(score), first=at == 0)
    if not groups:
        yield from _confirmed(turn)


def _of_assistant(turn: _Turn, config: ExtractionConfig) -> Iterator[Finding]:
    wanted = frozenset(_KINDS_OF_ASSISTANT)
    for group in by_cue(turn.statements, wanted, config.max_entry_chars):
        if group[0].acts & wanted and not group[0].acts & _NOT_STANDING:
            surety = round(_from_cue(group[0]) * config.assistant_trust, 2)
            yield _finding(turn, group, _kind(group, _KINDS_OF_ASSISTANT), surety, first=False)


def _confirmed(turn: _Turn) -> Iterator[Finding]:
    """A bare yes or no to a question about how things are: the question carries the content."""
    bare = turn.sentences and "acknowledgement" in turn.sentences[0].acts
    if bare and _answers(turn) and _YES_NO.match(_asked(turn)[0].text):
        yield _finding(turn, turn.sentences[:1], _kind(_asked(turn), _KINDS), _ANSWER_SURETY, first=True)


def _answers(turn: _Turn) -> bool:
    """Say whether the message follows a question about how things are, not about what to do next."""
    return turn.question is not None and not _NEXT_STEP.search(turn.question.text)


def _asked(turn: _Turn) -> tuple[Statement, ...]:
    return (turn.question,) if turn.question else ()


def _finding(turn: _Turn, group: Sequence[Statement], kind: str, confidence: float, *, first: bool) -> Finding:
    """Word a group; only the first group of a message can be the answer to the question before it."""
    said = turn.utterance
    question = turn.question if first else None
    name = said.speaker or ("User" if said.role == "user" else "Assistant")
    content, used = worded(
        group,
        Voice(name=name, named=turn.among_people, listener=turn.listener),
        said=said.time,
        question=question,
        media=said.media if first else (),
    )
    asker = (turn.asker.message_id,) if used and turn.asker else ()
    return Finding(
        content=content,
        kind=kind,
        confidence=confidence,
        message_ids=(said.message_id, *asker),
        quote=_quote(said.text, group),
        since=said.time,
        corrects=any(_corrects(statement, turn) for statement in group),
    )


def _corrects(statement: Statement, turn: _Turn) -> bool:
    """A leading "no" after a question answers it; elsewhere it contradicts."""
    text = statement.text
    return is_correction(_LEADING_NO.sub("", text) if turn.question and _YES_NO.match(turn.question.text) else text)


def _quote(text: str, group: Sequence[Statement]) -> str:
    """The span from the first to the last statement when little else stands between them, else the weightiest one."""
    start, end = group[0].start, group[-1].end
    if end - start <= sum(len(statement.text) for statement in group) + _MOST_BETWEEN:
        return text[start:end]
    return max(group, key=lambda statement: len(statement.words)).text


def _kind(group: Sequence[Statement], kinds: Sequence[Act]) -> str:
    """The first of the kinds that any statement has a cue for; a fact when none has."""
    found = frozenset[Act]().union(*(statement.acts for statement in group))
    if "remember" in found and "convention" in kinds and "fact" not in found:
        return next((kind for kind in kinds if kind in found), "convention")
    return next((kind for kind in kinds if kind in found), "fact")


def _score(turn: _Turn, group: Sequence[Statement]) -> float:
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
