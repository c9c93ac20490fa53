"""What a conversation holds that is worth remembering, found without a model.

Each message is read into statements; what is left after questions, small talk and tasks is grouped and chosen (see
`ricordo.flush.choice`), worded so that it stands alone, and returned with its provenance and a verbatim quote.

Invariants: pure and deterministic; never raises for any text; time linear in the text; findings come in message order.
"""

import re
from collections.abc import Sequence

from ricordo.flush.choice import SelectedGroup, select_groups
from ricordo.flush.config import RuleExtractionConfig
from ricordo.flush.credentials import asks_for_credential, contains_credential
from ricordo.flush.gaps import GAP_MARK
from ricordo.flush.statements import Statement
from ricordo.flush.turns import YES_NO_QUESTION, ConversationTurn, build_turns
from ricordo.flush.types import Finding, Utterance
from ricordo.flush.wording import Speaker, rewrite_statements
from ricordo.language import is_correction

__all__ = ["Finding", "Utterance", "extract_from_utterances"]

_MAX_GAP_CHARS = 120
_LEADING_NO = re.compile(r"^(?:no|nope|nah|nein|non|não)[,.! ]+", re.IGNORECASE)
_MIN_TELLING_WORDS = 3


def extract_from_utterances(utterances: Sequence[Utterance], config: RuleExtractionConfig) -> tuple[Finding, ...]:
    """Return what is worth remembering, in message order; empty when nothing is.

    Only user and assistant messages are read. What the same speaker said before in the same words is not repeated.
    """
    found: list[Finding] = []
    seen: set[tuple[str, str]] = set()
    read = tuple(build_turns(utterances, config))
    for turn, reply in zip(read, (*read[1:], None), strict=False):
        for pick in select_groups(turn, reply, config):
            if pick.question and asks_for_credential(pick.question.text):
                continue
            finding = _build_finding(turn, pick)
            key = (finding.kind, finding.content.casefold())
            if finding.confidence >= config.min_confidence and key not in seen:
                seen.add(key)
                found.append(finding)
    return tuple(found)


def _build_finding(turn: ConversationTurn, pick: SelectedGroup) -> Finding:
    said, group = turn.utterance, pick.statements
    name = said.speaker or ("User" if said.role == "user" else "Assistant")
    content, used = rewrite_statements(
        _drop_bare_denials(group),
        Speaker(name=name, needs_name=turn.among_people, listener=turn.listener, is_impersonal=name == "Assistant"),
        said=said.time,
        question=pick.question,
        media=said.media if pick.is_first else (),
    )
    asker = (turn.question_utterance.message_id,) if used and turn.question_utterance else ()
    return Finding(
        content=content,
        kind=pick.kind,
        confidence=pick.confidence,
        message_ids=(said.message_id, *asker),
        quote=_choose_quote(turn, group),
        since=said.time,
        corrects=any(_is_correction(statement, turn) for statement in group),
    )


def _drop_bare_denials(group: Sequence[Statement]) -> Sequence[Statement]:
    """Leave a bare "that's not right" out beside what holds instead."""
    told = [each for each in group if "denial" not in each.acts or len(each.words) >= _MIN_TELLING_WORDS]
    return told or group


def _is_correction(statement: Statement, turn: ConversationTurn) -> bool:
    """A leading "no" after a question answers it; elsewhere it contradicts."""
    text = statement.text
    return is_correction(
        _LEADING_NO.sub("", text) if turn.question and YES_NO_QUESTION.match(turn.question.text) else text
    )


def _choose_quote(turn: ConversationTurn, group: Sequence[Statement]) -> str:
    """The span from the first to the last statement when little, and neither a credential nor a gap, stands between
    them, else the weightiest one."""
    start, end = group[0].start, group[-1].end
    close = end - start <= sum(len(statement.text) for statement in group) + _MAX_GAP_CHARS
    close = close and GAP_MARK not in turn.utterance.text[start:end]
    if close and not any(contains_credential(each.text) for each in turn.sentences if start < each.start < end):
        return turn.utterance.text[start:end]
    return max(group, key=lambda statement: len(statement.words)).text
