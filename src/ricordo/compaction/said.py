"""What people and the assistant said, as lines of a digest: requests, decisions, answers, and what is open.

Pure. What is worth keeping is decided where memory decides it (`ricordo.flush`), so that digest and ledger agree. A
statement that corrects an earlier one takes its place and says what held before.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ricordo.compaction.lines import BEFORE, RIGHTS, Line, cited, clipped
from ricordo.flush.extract import extract
from ricordo.language import (
    acts,
    content_words,
    detect_language,
    is_correction,
    overlap,
    split_sentences,
    without_opener,
)
from ricordo.messages import Message

__all__ = ["Talk", "said_lines"]

_LONGEST_REQUEST = 180
_LONGEST_FINDING = 240
_LONGEST_ANSWER = 160
_LONGEST_BEFORE = 90
_ALIKE = 0.5
_BOTH = 2
_SUBSTANCE = 2
_KIND = {"decision": "decided", "convention": "rule", "preference": "prefers", "lesson": "learned", "goal": "goal"}
_WORTH = {"decision": 0.5, "convention": 0.4, "lesson": 0.4, "goal": 0.4, "preference": 0.3}
_KEPT = "remember"
_ASKED_TO_KEEP = 0.95
"""How sure a finding is that somebody asked to be remembered, see `ricordo.flush.choice`; none other is."""
_NOISE = frozenset({"greeting", "farewell", "thanks", "praise", "wish", "acknowledgement", "reaction"})
_LABEL = re.compile(r"^(?:decided|rule|prefers|learned|goal|remember|answered|asked|about): ")
_CLAUSE = re.compile(r"[,;:–—.](?=\s|$)")
_OBJECTS = re.compile(
    r"\W*(?:(?:no|nope|nah|wrong|nein|non|não|いいえ)\s*[,.!:;–—-]|(?:not|nicht)\b|不|违)", re.IGNORECASE
)
_LETTERS = re.compile(r"[^\W\d_]{2}")


@dataclass(frozen=True, kw_only=True)
class Talk:
    """The messages that are read: what was said, in order, the short names of their ids, and where each one stands."""

    messages: tuple[Message, ...]
    names: Mapping[str, str]

    @property
    def among_people(self) -> bool:
        """Whether two or more named speakers talk, rather than a user and an agent."""
        return len({message.name for message in self.messages if message.name and message.role != "tool"}) > 1

    def late(self, at: int) -> float:
        """Return how late a message comes, from 0 to 1."""
        return at / max(1, len(self.messages) - 1)


def said_lines(talk: Talk, earlier: Sequence[Line] = (), *, ended: bool = False) -> Iterator[Line]:
    """Yield the lines, not in order: those of `earlier` summaries that still hold, and those of the talk.

    `ended` says that nothing follows the talk, so that what has no reply is open.
    """
    yield from _findings(talk, earlier)
    if not talk.among_people:
        yield from _requests(talk)
        yield from _answers(talk)
    if ended:
        yield from _open(talk)


def _findings(talk: Talk, earlier: Sequence[Line]) -> Iterator[Line]:
    places = {message.id: at for at, message in enumerate(talk.messages) if message.id}
    findings = extract(talk.messages)
    known = [line.text for line in earlier] + [finding.content for finding in findings]
    set_right = _set_right(talk)
    objected = {talk.messages[at].id for at in set_right if _OBJECTS.match(talk.messages[at].text)}
    correcting = {
        len(earlier) + number
        for number, finding in enumerate(findings)
        if finding.corrects and objected.isdisjoint(finding.message_ids[:1])
    }
    replaced = _replaced(known, correcting)
    gone = set(replaced.values())
    yield from (line for number, line in enumerate(earlier) if number not in gone)
    for number, finding in enumerate(findings, len(earlier)):
        if number in gone:
            continue
        at = places.get(finding.message_ids[0], 0) if finding.message_ids else 0
        kind = _KIND.get(finding.kind) or (_KEPT if finding.confidence >= _ASKED_TO_KEEP else "")
        text = clipped(finding.content, _LONGEST_FINDING)
        if number in replaced:
            text += f"{BEFORE}{clipped(_LABEL.sub('', known[replaced[number]]), _LONGEST_BEFORE)})"
        elif finding.corrects and at in set_right:
            text += f"{RIGHTS}{clipped(set_right[at], _LONGEST_BEFORE)})"
        weight = 1.0 + finding.confidence + _WORTH.get(finding.kind, 0.0) + 0.3 * finding.corrects + 0.3 * talk.late(at)
        cite = cited(sorted(finding.message_ids, key=lambda each: places.get(each, 0)), talk.names)
        section = 3 if finding.kind == "goal" else 1
        yield Line(section=section, text=f"{kind}: {text}" if kind else text, at=at, weight=weight, cite=cite)


def _replaced(texts: Sequence[str], correcting: AbstractSet[int]) -> dict[int, int]:
    """Return which earlier text each correcting one takes the place of: the one most alike, if any is alike enough."""
    bare = [_LABEL.sub("", text) for text in texts]
    words = [frozenset(content_words(text, "en")) for text in bare]
    heads = [frozenset(content_words(_CLAUSE.split(text, maxsplit=1)[0], "en")) for text in bare]
    found: dict[int, int] = {}
    for number in sorted(correcting):
        alike = [
            (max(_alike(words[number], words[earlier]), _alike(heads[number], heads[earlier])), earlier)
            for earlier in range(number)
            if earlier not in found.values()
        ]
        best = max(alike, default=(0.0, -1))
        if best[0] >= _ALIKE:
            found[number] = best[1]
    return found


def _alike(left: frozenset[str], right: frozenset[str]) -> float:
    return overlap(left, right) if len(left & right) >= _BOTH else 0.0


def _set_right(talk: Talk) -> dict[int, str]:
    """Return what the assistant said just before a user set it right, by the place of the correction."""
    found: dict[int, str] = {}
    for at in range(1, len(talk.messages)):
        before, message = talk.messages[at - 1], talk.messages[at]
        if before.role != "assistant" or message.role != "user" or before.name or not is_correction(message.text):
            continue
        if frozenset(content_words(before.text, "en")) & frozenset(content_words(message.text, "en")) and (
            told := _told(before)
        ):
            found[at] = told
    return found


def _requests(talk: Talk) -> Iterator[Line]:
    asked = [(at, text) for at, message in enumerate(talk.messages) if (text := _request(message))]
    for number, (at, text) in enumerate(asked):
        weight = 2.6 if number == 0 else 2.4 if number == len(asked) - 1 else 1.2 + 0.4 * talk.late(at)
        yield Line(section=0, text=f"asked: {text}", at=at, weight=weight, cite=_cite(talk, at))


def _request(message: Message) -> str:
    """Return what a user's message asks for: its requests and questions that have content."""
    if message.role != "user" or message.tool_results:
        return ""
    language = detect_language(message.text)
    asking = [
        sentence.text
        for sentence in split_sentences(message.text)
        if sentence.kind in {"prose", "item"}
        and acts(without_opener(sentence.text), language) & {"request", "question"}
        and len(content_words(sentence.text, language)) >= _SUBSTANCE
    ]
    return clipped(" ".join(without_opener(text) for text in asking), _LONGEST_REQUEST)


def _answers(talk: Talk) -> Iterator[Line]:
    """What the assistant said last before the user spoke again: what a piece of work came to."""
    set_right = _set_right(talk)
    for at, message in enumerate(talk.messages):
        follows = talk.messages[at + 1] if at + 1 < len(talk.messages) else None
        if at + 1 in set_right:
            continue
        if message.role != "assistant" or message.tool_calls or (follows is not None and follows.role != "user"):
            continue
        text = _told(message)
        if text:
            weight = 0.8 + 0.8 * talk.late(at)
            yield Line(section=1, text=f"answered: {text}", at=at, weight=weight, cite=_cite(talk, at))


def _told(message: Message) -> str:
    """The first sentences of an answer that tell something."""
    language = detect_language(message.text)
    telling = [
        sentence.text
        for sentence in split_sentences(message.text)
        if sentence.kind in {"prose", "item"}
        and "question" not in (found := acts(sentence.text, language))
        and not (found & _NOISE and len(content_words(sentence.text, language)) <= _SUBSTANCE)
        and _LETTERS.search(sentence.text)
    ]
    text = " ".join(telling)
    return clipped(text, _LONGEST_ANSWER) if len(content_words(text, language)) > _SUBSTANCE else ""


def _open(talk: Talk) -> Iterator[Line]:
    """What waits for an answer at the end: the user's last words without a reply, or the assistant's question."""
    spoken = [
        at for at, message in enumerate(talk.messages) if message.role in {"user", "assistant"} and message.text.strip()
    ]
    if not spoken:
        return
    at = spoken[-1]
    message = talk.messages[at]
    if message.role == "user" and not talk.among_people:
        text = clipped(message.text, _LONGEST_REQUEST)
        yield Line(section=3, text=f"last word, without a reply: {text}", at=at, weight=2.8, cite=_cite(talk, at))
        return
    asked = [s.text for s in split_sentences(message.text) if s.kind == "prose" and "question" in acts(s.text)]
    if asked:
        who = message.name or ("the user" if message.role == "user" else "the assistant")
        text = clipped(asked[-1], _LONGEST_REQUEST)
        yield Line(section=3, text=f"{who} asked: {text}", at=at, weight=2.5, cite=_cite(talk, at))


def _cite(talk: Talk, at: int) -> str:
    return cited([talk.messages[at].id], talk.names)
