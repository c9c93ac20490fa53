"""What a conversation holds that is worth remembering, found without a model.

Each message is read into statements; what is left after questions, small talk and tasks is grouped and chosen (see
`ricordo.flush.choice`), worded so that it stands alone, and returned with its provenance and a verbatim quote.

Invariants: pure and deterministic; never raises for any text; time linear in the text; findings come in message order.
"""

import re
from collections.abc import Sequence

from ricordo.flush.choice import Pick, chosen
from ricordo.flush.config import ExtractionConfig
from ricordo.flush.credentials import asks_for_credential, bears_credential
from ricordo.flush.gaps import MARK
from ricordo.flush.statements import Statement
from ricordo.flush.turns import YES_NO, Turn, turns
from ricordo.flush.types import Finding, Utterance
from ricordo.flush.wording import Voice, worded
from ricordo.language import is_correction

__all__ = ["Finding", "Utterance", "findings"]

_MOST_BETWEEN = 120
_LEADING_NO = re.compile(r"^(?:no|nope|nah|nein|non|não)[,.! ]+", re.IGNORECASE)
_TELLS = 3


def findings(utterances: Sequence[Utterance], config: ExtractionConfig) -> tuple[Finding, ...]:
    """Return what is worth remembering, in message order; empty when nothing is.

    Only user and assistant messages are read. What the same speaker said before in the same words is not repeated.
    """
    found: list[Finding] = []
    seen: set[tuple[str, str]] = set()
    read = tuple(turns(utterances, config))
    for turn, reply in zip(read, (*read[1:], None), strict=False):
        for pick in chosen(turn, reply, config):
            if pick.question and asks_for_credential(pick.question.text):
                continue
            finding = _finding(turn, pick)
            key = (finding.kind, finding.content.casefold())
            if finding.confidence >= config.min_confidence and key not in seen:
                seen.add(key)
                found.append(finding)
    return tuple(found)


def _finding(turn: Turn, pick: Pick) -> Finding:
    said, group = turn.utterance, pick.group
    name = said.speaker or ("User" if said.role == "user" else "Assistant")
    content, used = worded(
        _telling(group),
        Voice(name=name, named=turn.among_people, listener=turn.listener, impersonal=name == "Assistant"),
        said=said.time,
        question=pick.question,
        media=said.media if pick.first else (),
    )
    asker = (turn.asker.message_id,) if used and turn.asker else ()
    return Finding(
        content=content,
        kind=pick.kind,
        confidence=pick.confidence,
        message_ids=(said.message_id, *asker),
        quote=_quote(turn, group),
        since=said.time,
        corrects=any(_corrects(statement, turn) for statement in group),
    )


def _telling(group: Sequence[Statement]) -> Sequence[Statement]:
    """Leave a bare "that's not right" out beside what holds instead."""
    told = [each for each in group if "denial" not in each.acts or len(each.words) >= _TELLS]
    return told or group


def _corrects(statement: Statement, turn: Turn) -> bool:
    """A leading "no" after a question answers it; elsewhere it contradicts."""
    text = statement.text
    return is_correction(_LEADING_NO.sub("", text) if turn.question and YES_NO.match(turn.question.text) else text)


def _quote(turn: Turn, group: Sequence[Statement]) -> str:
    """The span from the first to the last statement when little, and neither a credential nor a gap, stands between
    them, else the weightiest one."""
    start, end = group[0].start, group[-1].end
    close = end - start <= sum(len(statement.text) for statement in group) + _MOST_BETWEEN
    close = close and MARK not in turn.utterance.text[start:end]
    if close and not any(bears_credential(each.text) for each in turn.sentences if start < each.start < end):
        return turn.utterance.text[start:end]
    return max(group, key=lambda statement: len(statement.words)).text
