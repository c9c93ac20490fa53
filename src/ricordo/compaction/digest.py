"""The summary that needs no model: what matters in a conversation, line by line, chosen and not invented.

Pure and deterministic. It has the four sections of every summary; each line cites the messages it rests on. The lines
of an earlier digest go into the next one and give way to newer ones, so nothing is paraphrased twice.

Invariant: never more than the limit, and empty only where nothing was said or done, or the limit holds no line.
"""

import re
from collections.abc import Iterator, Sequence

from ricordo.compaction.deeds import deed_lines
from ricordo.compaction.lines import Line, cited, clipped, layout, short_ids
from ricordo.compaction.prompts import SECTIONS
from ricordo.compaction.said import Talk, said_lines
from ricordo.compaction.summary_message import body_of
from ricordo.compaction.titles import about, tags
from ricordo.messages import Message, mark_of

__all__ = ["about", "digest", "tags"]

_TOPIC = 3.0
_FIRST_TOPIC = 1.5
_NOTICE = 1.8
_LONGEST = 340
_WORTH_IN = (1.9, 1.6, 0.9, 1.2)
_WORTH = {
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
_CITED = re.compile(r" (\[\w[^\]\s]*\])$")
_NOTHING = {"none", "(none)", "none.", "n/a"}


def digest(messages: Sequence[Message], *, limit_tokens: int = 2_000, ended: bool = False) -> str:
    """Return a summary of `messages` in at most `limit_tokens` tokens; empty when there is nothing to say.

    Summaries among the messages are taken in; recalled memory is not, for it was not said here. `ended` says that no
    message follows, so that what has no reply among these is open.
    """
    said = tuple(message for message in messages if message.role != "system" and mark_of(message) in {None, "cut"})
    talk = Talk(messages=said, names=short_ids([message.id for message in messages]))
    lines = [
        *_topic(talk),
        *said_lines(talk, list(_earlier(messages)), ended=ended),
        *deed_lines(talk),
        *_notices(messages, talk),
    ]
    return layout(lines, limit_tokens) or layout(list(_first_words(talk)), limit_tokens)


def _topic(talk: Talk) -> Iterator[Line]:
    title = about(talk.messages)
    if not title:
        return
    topics = ", ".join(tags(talk.messages))
    people = list(dict.fromkeys(message.name for message in talk.messages if message.name)) if talk.among_people else []
    between = f" ({', '.join(people)})" if people else ""
    cite = cited([talk.messages[0].id, talk.messages[-1].id], talk.names)
    text = f"about{between}: {title}" + (f" ({topics})" if topics else "")
    yield Line(section=0, text=text, at=-1, weight=_TOPIC, cite=cite, apart=True)


def _earlier(messages: Sequence[Message]) -> Iterator[Line]:
    """The lines of earlier summaries, before all others of their section."""
    bodies = [body_of(message) for message in messages if mark_of(message) == "summary"]
    count = sum(body.count("\n") + 1 for body in bodies)
    at = -count - 1
    titled = False
    for body in bodies:
        section = 1
        for line in body.splitlines():
            heading = line.strip(" #*_:").upper()
            text = line.strip().lstrip("-*• ").strip()
            at += 1
            if heading in SECTIONS:
                section = SECTIONS.index(heading)
            elif text and text.casefold() not in _NOTHING:
                found = _CITED.search(text)
                text, cite = (text[: found.start()], found[1]) if found else (text, "")
                weight = _weight(text, section) + 0.2 * (1 + at / count)
                if section == 0 and text.startswith("about") and not titled:
                    weight, titled = weight + _FIRST_TOPIC, True
                yield Line(section=section, text=clipped(text, _LONGEST), at=at, weight=weight, cite=cite)


def _weight(text: str, section: int) -> float:
    """What an earlier line is still worth: what holds for good as much as new, what was done less and less."""
    label, colon, _ = text.partition(": ")
    return _WORTH.get(label, _WORTH_IN[section]) if colon else _WORTH_IN[section]


def _notices(messages: Sequence[Message], talk: Talk) -> Iterator[Line]:
    """What the harness told the model, such as the result of work in the background."""
    for at, message in enumerate(messages):
        if mark_of(message) == "notice" and message.text.strip():
            cite = cited([message.id], talk.names)
            yield Line(section=1, text=f"notice: {clipped(message.text, _LONGEST)}", at=at, weight=_NOTICE, cite=cite)


def _first_words(talk: Talk) -> Iterator[Line]:
    """The beginning of each message, where nothing better was found or nothing longer fits."""
    for at, message in enumerate(talk.messages):
        text = clipped(message.text, 60)
        if text:
            yield Line(section=1, text=f"{message.name or message.role}: {text}", at=at, weight=1.0 + talk.late(at))
