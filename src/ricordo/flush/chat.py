"""What a message between a user and an agent states for longer than a day.

Beside what is no statement at all, three things go: what passes (errands, one-off requests, the state of a build), a
speaker's own name, and headings, which hand what they announce to the lines below them: under "Our rules" each line
is a rule. An agent's headings hand down nothing, since its lists are plans and reports.

Invariant: the statements come in order and stand verbatim in the message.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from ricordo.flush.statements import Statement, select_statements
from ricordo.flush.types import Utterance
from ricordo.language import Act

__all__ = ["select_chat_statements"]

_LASTING_WORDS = re.compile(
    r"\b(?:always|never(?! ?mind)|from now on|going forward|"
    r"immer|nie|ab jetzt|toujours|jamais|siempre|nunca)\b"
    r"|以后|从现在|必须|必ず|今後",
    re.IGNORECASE,
)
_INTRODUCTION = (
    r"^(?:\w+[,.! ]+)?(?:(?:i['’]m|i am|my name is|this is|it['’]s|ich bin|je suis|soy)\s+){name}(?: here)?[\s.!,]*$"
)
_INHERITED_ACTS: frozenset[Act] = frozenset({"decision", "convention", "lesson", "preference"})
_TRANSIENT_ACTS: frozenset[Act] = frozenset({"question", "request", "moment", "thanks", "greeting", "farewell"})
_MIN_ACKNOWLEDGING_WORDS = 3
_LISTENER_ACTS: frozenset[Act] = frozenset({"praise"})
_BARE_POINTER = re.compile(
    r"^(?:right|yes|no|ok|exactly)?[,. ]*(?:that one|this one|that|this|it|those|these)(?:['’]s| is| are| was| were) "
    r"(?:\S+ ?){1,3}$",
    re.IGNORECASE,
)


def select_chat_statements(utterance: Utterance, sentences: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return what a user or an agent states in one message, in order; empty for tasks, errands and small talk."""
    by_user = utterance.role == "user"
    lasting = _apply_headings(sentences) if by_user else _agent_statements(sentences)
    name = utterance.speaker
    return select_statements(
        tuple(each for each in lasting if not _is_transient(each) and not (name and _is_introduction(each, name))),
        among_people=False,
    )


def _agent_statements(sentences: Sequence[Statement]) -> list[Statement]:
    """An agent's "you should never …" is a rule and no word about the listener."""
    said = [each for each in sentences if not _is_heading(each, None)]
    return [replace(each, acts=each.acts - _LISTENER_ACTS) if "convention" in each.acts else each for each in said]


def _apply_headings(sentences: Sequence[Statement]) -> list[Statement]:
    """Leave headings out and let the statements below them take what they announce."""
    kept: list[Statement] = []
    given: frozenset[Act] = frozenset()
    listed = False
    for at, sentence in enumerate(sentences):
        following = sentences[at + 1] if at + 1 < len(sentences) else None
        if _is_heading(sentence, following):
            given = _heading_acts(sentence)
            listed = following is not None and following.item
            continue
        if listed and not sentence.item:
            given = frozenset()
        inherits = given and not sentence.acts & (_TRANSIENT_ACTS | _INHERITED_ACTS)
        kept.append(replace(sentence, acts=sentence.acts | given) if inherits else sentence)
    return kept


def _is_heading(sentence: Statement, following: Statement | None) -> bool:
    """A line that ends in a colon, or names rules without giving one ("Some ground rules.")."""
    if "heading" in sentence.acts and following is not None:
        return True
    return sentence.text.rstrip("*_ ").endswith((":", "："))


def _heading_acts(heading: Statement) -> frozenset[Act]:
    return frozenset[Act]({"convention"}) if "heading" in heading.acts else heading.acts & _INHERITED_ACTS


def _is_transient(sentence: Statement) -> bool:
    """What concerns this moment only, or points at something that is not there."""
    if "remember" in sentence.acts or _LASTING_WORDS.search(sentence.text):
        return False
    nodding = "acknowledgement" in sentence.acts and len(sentence.words) < _MIN_ACKNOWLEDGING_WORDS
    pointing = "denial" not in sentence.acts and _BARE_POINTER.match(sentence.text) is not None
    return "moment" in sentence.acts or nodding or pointing


def _is_introduction(sentence: Statement, name: str) -> bool:
    first = re.escape(name.split(maxsplit=1)[0])
    return re.match(_INTRODUCTION.replace("{name}", f"{first}(?: \\w+)?"), sentence.text, re.IGNORECASE) is not None
