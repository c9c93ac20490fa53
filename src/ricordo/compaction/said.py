"""What people and the assistant said, as lines of a digest: requests, decisions, answers, and what is open.

Pure. What is worth keeping is decided where memory decides it (`ricordo.flush`), so that digest and ledger agree. A
statement that corrects an earlier one takes its place and says what held before.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ricordo.compaction.lines import REPLACED_PREFIX, CORRECTED_PREFIX, DigestLine, cite_range, clip_line
from ricordo.flush.extract import extract
from ricordo.language import (
    detect_acts,
    content_words,
    detect_language,
    is_correction,
    overlap,
    split_sentences,
    strip_opener,
)
from ricordo.messages import Message

__all__ = ["DigestInput", "dialogue_lines"]

_MAX_REQUEST_CHARS = 180
_MAX_FINDING_CHARS = 240
_MAX_ANSWER_CHARS = 160
_MAX_REPLACED_CHARS = 90
_MIN_SIMILARITY = 0.5
_MIN_SHARED_WORDS = 2
_MIN_CONTENT_WORDS = 2
_KIND_LABELS = {
    "decision": "decided",
    "convention": "rule",
    "preference": "prefers",
    "lesson": "learned",
    "goal": "goal",
}
_KIND_WEIGHTS = {"decision": 0.5, "convention": 0.4, "lesson": 0.4, "goal": 0.4, "preference": 0.3}
_REMEMBER_LABEL = "remember"
_EXPLICIT_CONFIDENCE = 0.95
"""How sure a finding is that somebody asked to be remembered, see `ricordo.flush.choice`; none other is."""
_NOISE_ACTS = frozenset({"greeting", "farewell", "thanks", "praise", "wish", "acknowledgement", "reaction"})
_LABEL = re.compile(r"^(?:decided|rule|prefers|learned|goal|remember|answered|asked|about): ")
_CLAUSE_END = re.compile(r"[,;:–—.](?=\s|$)")
_OBJECTION = re.compile(
    r"\W*(?:(?:no|nope|nah|wrong|nein|non|não|いいえ)\s*[,.!:;–—-]|(?:not|nicht)\b|不|违)", re.IGNORECASE
)
_LETTERS = re.compile(r"[^\W\d_]{2}")


@dataclass(frozen=True, kw_only=True)
class DigestInput:
    """The messages that are read: what was said, in order, the short names of their ids, and where each one stands."""

    messages: tuple[Message, ...]
    names: Mapping[str, str]

    @property
    def has_several_speakers(self) -> bool:
        """Whether two or more named speakers talk, rather than a user and an agent."""
        return len({message.name for message in self.messages if message.name and message.role != "tool"}) > 1

    def lateness(self, at: int) -> float:
        """Return how late a message comes, from 0 to 1."""
        return at / max(1, len(self.messages) - 1)


def dialogue_lines(
    talk: DigestInput, earlier: Sequence[DigestLine] = (), *, ended: bool = False
) -> Iterator[DigestLine]:
    """Yield the lines, not in order: those of `earlier` summaries that still hold, and those of the talk.

    `ended` says that nothing follows the talk, so that what has no reply is open.
    """
    yield from _finding_lines(talk, earlier)
    if not talk.has_several_speakers:
        yield from _request_lines(talk)
        yield from _answer_lines(talk)
    if ended:
        yield from _open_lines(talk)


def _finding_lines(talk: DigestInput, earlier: Sequence[DigestLine]) -> Iterator[DigestLine]:
    places = {message.id: at for at, message in enumerate(talk.messages) if message.id}
    findings = extract(talk.messages)
    known = [line.text for line in earlier] + [finding.content for finding in findings]
    set_right = _find_corrected(talk)
    objected = {talk.messages[at].id for at in set_right if _OBJECTION.match(talk.messages[at].text)}
    correcting = {
        len(earlier) + number
        for number, finding in enumerate(findings)
        if finding.corrects and objected.isdisjoint(finding.message_ids[:1])
    }
    replaced = _match_replacements(known, correcting)
    gone = set(replaced.values())
    yield from (line for number, line in enumerate(earlier) if number not in gone)
    for number, finding in enumerate(findings, len(earlier)):
        if number in gone:
            continue
        at = places.get(finding.message_ids[0], 0) if finding.message_ids else 0
        kind = _KIND_LABELS.get(finding.kind) or (_REMEMBER_LABEL if finding.confidence >= _EXPLICIT_CONFIDENCE else "")
        text = clip_line(finding.content, _MAX_FINDING_CHARS)
        if number in replaced:
            text += f"{REPLACED_PREFIX}{clip_line(_LABEL.sub('', known[replaced[number]]), _MAX_REPLACED_CHARS)})"
        elif finding.corrects and at in set_right:
            text += f"{CORRECTED_PREFIX}{clip_line(set_right[at], _MAX_REPLACED_CHARS)})"
        weight = (
            1.0
            + finding.confidence
            + _KIND_WEIGHTS.get(finding.kind, 0.0)
            + 0.3 * finding.corrects
            + 0.3 * talk.lateness(at)
        )
        cite = cite_range(sorted(finding.message_ids, key=lambda each: places.get(each, 0)), talk.names)
        section = 3 if finding.kind == "goal" else 1
        yield DigestLine(
            section=section, text=f"{kind}: {text}" if kind else text, position=at, weight=weight, cite=cite
        )


def _match_replacements(texts: Sequence[str], correcting: AbstractSet[int]) -> dict[int, int]:
    """Return which earlier text each correcting one takes the place of: the one most alike, if any is alike enough."""
    bare = [_LABEL.sub("", text) for text in texts]
    words = [frozenset(content_words(text, "en")) for text in bare]
    heads = [frozenset(content_words(_CLAUSE_END.split(text, maxsplit=1)[0], "en")) for text in bare]
    found: dict[int, int] = {}
    for number in sorted(correcting):
        alike = [
            (max(_similarity(words[number], words[earlier]), _similarity(heads[number], heads[earlier])), earlier)
            for earlier in range(number)
            if earlier not in found.values()
        ]
        best = max(alike, default=(0.0, -1))
        if best[0] >= _MIN_SIMILARITY:
            found[number] = best[1]
    return found


def _similarity(left: frozenset[str], right: frozenset[str]) -> float:
    return overlap(left, right) if len(left & right) >= _MIN_SHARED_WORDS else 0.0


def _find_corrected(talk: DigestInput) -> dict[int, str]:
    """Return what the assistant said just before a user set it right, by the place of the correction."""
    found: dict[int, str] = {}
    for at in range(1, len(talk.messages)):
        before, message = talk.messages[at - 1], talk.messages[at]
        if before.role != "assistant" or message.role != "user" or before.name or not is_correction(message.text):
            continue
        if frozenset(content_words(before.text, "en")) & frozenset(content_words(message.text, "en")) and (
            told := _answer_text(before)
        ):
            found[at] = told
    return found


def _request_lines(talk: DigestInput) -> Iterator[DigestLine]:
    asked = [(at, text) for at, message in enumerate(talk.messages) if (text := _request_text(message))]
    for number, (at, text) in enumerate(asked):
        weight = 2.6 if number == 0 else 2.4 if number == len(asked) - 1 else 1.2 + 0.4 * talk.lateness(at)
        yield DigestLine(section=0, text=f"asked: {text}", position=at, weight=weight, cite=_cite_message(talk, at))


def _request_text(message: Message) -> str:
    """Return what a user's message asks for: its requests and questions that have content."""
    if message.role != "user" or message.tool_results:
        return ""
    language = detect_language(message.text)
    asking = [
        sentence.text
        for sentence in split_sentences(message.text)
        if sentence.kind in {"prose", "item"}
        and detect_acts(strip_opener(sentence.text), language) & {"request", "question"}
        and len(content_words(sentence.text, language)) >= _MIN_CONTENT_WORDS
    ]
    return clip_line(" ".join(strip_opener(text) for text in asking), _MAX_REQUEST_CHARS)


def _answer_lines(talk: DigestInput) -> Iterator[DigestLine]:
    """What the assistant said last before the user spoke again: what a piece of work came to."""
    set_right = _find_corrected(talk)
    for at, message in enumerate(talk.messages):
        follows = talk.messages[at + 1] if at + 1 < len(talk.messages) else None
        if at + 1 in set_right:
            continue
        if message.role != "assistant" or message.tool_calls or (follows is not None and follows.role != "user"):
            continue
        text = _answer_text(message)
        if text:
            weight = 0.8 + 0.8 * talk.lateness(at)
            yield DigestLine(
                section=1, text=f"answered: {text}", position=at, weight=weight, cite=_cite_message(talk, at)
            )


def _answer_text(message: Message) -> str:
    """The first sentences of an answer that tell something."""
    language = detect_language(message.text)
    telling = [
        sentence.text
        for sentence in split_sentences(message.text)
        if sentence.kind in {"prose", "item"}
        and "question" not in (found := detect_acts(sentence.text, language))
        and not (found & _NOISE_ACTS and len(content_words(sentence.text, language)) <= _MIN_CONTENT_WORDS)
        and _LETTERS.search(sentence.text)
    ]
    text = " ".join(telling)
    return clip_line(text, _MAX_ANSWER_CHARS) if len(content_words(text, language)) > _MIN_CONTENT_WORDS else ""


def _open_lines(talk: DigestInput) -> Iterator[DigestLine]:
    """What waits for an answer at the end: the user's last words without a reply, or the assistant's question."""
    spoken = [
        at for at, message in enumerate(talk.messages) if message.role in {"user", "assistant"} and message.text.strip()
    ]
    if not spoken:
        return
    at = spoken[-1]
    message = talk.messages[at]
    if message.role == "user" and not talk.has_several_speakers:
        text = clip_line(message.text, _MAX_REQUEST_CHARS)
        yield DigestLine(
            section=3, text=f"last word, without a reply: {text}", position=at, weight=2.8, cite=_cite_message(talk, at)
        )
        return
    asked = [s.text for s in split_sentences(message.text) if s.kind == "prose" and "question" in detect_acts(s.text)]
    if asked:
        who = message.name or ("the user" if message.role == "user" else "the assistant")
        text = clip_line(asked[-1], _MAX_REQUEST_CHARS)
        yield DigestLine(section=3, text=f"{who} asked: {text}", position=at, weight=2.5, cite=_cite_message(talk, at))


def _cite_message(talk: DigestInput, at: int) -> str:
    return cite_range([talk.messages[at].id], talk.names)
