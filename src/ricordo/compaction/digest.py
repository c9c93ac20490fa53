"""The summary that needs no model: what matters in a conversation, line by line, chosen and not invented.

Pure and deterministic. It has the four sections of every summary; each line cites the messages it rests on. The lines
of an earlier digest go into the next one and give way to newer ones, so nothing is paraphrased twice.

Invariant: never more than the limit, and empty only where nothing was said or done, or the limit holds no line.
"""

import re
from collections.abc import Iterator, Sequence

from ricordo.compaction.deeds import tool_lines
from ricordo.compaction.lines import DigestLine, cite_range, clip_line, fit_lines, shorten_ids
from ricordo.compaction.prompts import SECTION_NAMES
from ricordo.compaction.said import DigestInput, dialogue_lines
from ricordo.compaction.summary_message import summary_body
from ricordo.compaction.titles import extract_title, extract_tags
from ricordo.messages import Message, get_mark

__all__ = ["extract_title", "build_digest", "extract_tags"]

_TOPIC_WEIGHT = 3.0
_FIRST_TOPIC_WEIGHT = 1.5
_NOTICE_WEIGHT = 1.8
_MAX_LINE_CHARS = 340
_SECTION_WEIGHTS = (1.9, 1.6, 0.9, 1.2)
_LABEL_WEIGHTS = {
    "decided": 2.1,
    "rule": 2.1,
    "prefers": 2.0,
    "learned": 2.0,
    "remember": 2.0,
    "goal": 1.9,
    "about": 0.5,
    "asked": 1.0,
    "answered": 0.7,
    "bash": 0.2,
}
_CITATION = re.compile(r" (\[\w[^\]\s]*\])$")
_EMPTY_LINES = {"none", "(none)", "none.", "n/a"}


def build_digest(messages: Sequence[Message], *, limit_tokens: int = 2_000, ended: bool = False) -> str:
    """Return a summary of `messages` in at most `limit_tokens` tokens; empty when there is nothing to say.

    Summaries among the messages are taken in; recalled memory is not, for it was not said here. `ended` says that no
    message follows, so that what has no reply among these is open.
    """
    said = tuple(message for message in messages if message.role != "system" and get_mark(message) in {None, "cut"})
    talk = DigestInput(messages=said, names=shorten_ids([message.id for message in messages]))
    lines = [
        *_topic_line(talk),
        *dialogue_lines(talk, list(_earlier_lines(messages)), ended=ended),
        *tool_lines(talk),
        *_notice_lines(messages, talk),
    ]
    return fit_lines(lines, limit_tokens) or fit_lines(list(_opening_lines(talk)), limit_tokens)


def _topic_line(talk: DigestInput) -> Iterator[DigestLine]:
    title = extract_title(talk.messages)
    if not title:
        return
    topics = ", ".join(extract_tags(talk.messages))
    people = (
        list(dict.fromkeys(message.name for message in talk.messages if message.name))
        if talk.has_several_speakers
        else []
    )
    between = f" ({', '.join(people)})" if people else ""
    cite = cite_range([talk.messages[0].id, talk.messages[-1].id], talk.names)
    text = f"about{between}: {title}" + (f" ({topics})" if topics else "")
    yield DigestLine(section=0, text=text, position=-1, weight=_TOPIC_WEIGHT, cite=cite, allows_repetition=True)


def _earlier_lines(messages: Sequence[Message]) -> Iterator[DigestLine]:
    """The lines of earlier summaries, before all others of their section."""
    bodies = [summary_body(message) for message in messages if get_mark(message) == "summary"]
    count = sum(body.count("\n") + 1 for body in bodies)
    at = -count - 1
    titled = False
    for body in bodies:
        section = 1
        for line in body.splitlines():
            heading = line.strip(" #*_:").upper()
            text = line.strip().lstrip("-*• ").strip()
            at += 1
            if heading in SECTION_NAMES:
                section = SECTION_NAMES.index(heading)
            elif text and text.casefold() not in _EMPTY_LINES:
                found = _CITATION.search(text)
                text, cite = (text[: found.start()], found[1]) if found else (text, "")
                weight = _earlier_weight(text, section) + 0.2 * (1 + at / count)
                if section == 0 and text.startswith("about") and not titled:
                    weight, titled = weight + _FIRST_TOPIC_WEIGHT, True
                yield DigestLine(
                    section=section, text=clip_line(text, _MAX_LINE_CHARS), position=at, weight=weight, cite=cite
                )


def _earlier_weight(text: str, section: int) -> float:
    """What an earlier line is still worth: what holds for good as much as new, what was done less and less."""
    label, colon, _ = text.partition(": ")
    return _LABEL_WEIGHTS.get(label, _SECTION_WEIGHTS[section]) if colon else _SECTION_WEIGHTS[section]


def _notice_lines(messages: Sequence[Message], talk: DigestInput) -> Iterator[DigestLine]:
    """What the harness told the model, such as the result of work in the background."""
    for at, message in enumerate(messages):
        if get_mark(message) == "notice" and message.text.strip():
            cite = cite_range([message.id], talk.names)
            yield DigestLine(
                section=1,
                text=f"notice: {clip_line(message.text, _MAX_LINE_CHARS)}",
                position=at,
                weight=_NOTICE_WEIGHT,
                cite=cite,
            )


def _opening_lines(talk: DigestInput) -> Iterator[DigestLine]:
    """The beginning of each message, where nothing better was found or nothing longer fits."""
    for at, message in enumerate(talk.messages):
        text = clip_line(message.text, 60)
        if text:
            yield DigestLine(
                section=1, text=f"{message.name or message.role}: {text}", position=at, weight=1.0 + talk.lateness(at)
            )
