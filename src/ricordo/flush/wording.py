"""Statements to one line that is understood without the conversation.

What is done, in this order: fillers at the front go, relative dates get the day they meant, first person becomes the
speaker, the question that an elliptic answer needs is put before it, what a shared picture shows is added behind it.
English is rewritten; other languages keep their words and are marked with the speaker.

Invariant: the result is one line, and every content word of the statements is still in it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ricordo.flush.statements import Statement
from ricordo.language import (
    addressed_by_name,
    attribute,
    dated,
    find_introduction,
    in_third_person,
    keeps_grammar,
    mentions,
    without_opener,
)

__all__ = ["Voice", "worded"]

_REMINDER = re.compile(
    r"^(?:please |also |and |just )*(?:remember|note|keep in mind|bear in mind|don['’]t forget|fyi|for the record|"
    r"for future reference|heads[- ]up|worth (?:remembering|noting)|good to know)"
    r"(?:\s*[:,–—-]\s*|\s+that\s+|:?\s+)(?=[\w`])",
    re.IGNORECASE,
)
_YES_NO = re.compile(
    r"^(?:yes|yeah|yep|no|nope|ja|nein|oui|non|sí|sì|no|sim|não|はい|いいえ|是|不是|对|不)\b", re.IGNORECASE
)
# A first word that may take a capital: no command, path or identifier.
_PLAIN_WORD = re.compile(r"[a-z]+(?:['’][a-z]+)?[ ,]")
_LINK = re.compile(r"^(?:(?:and|also|so|then|but)[, ]+)?(?:please )?(?=\w+ )", re.IGNORECASE)
_ELLIPTIC = 10
# An answer that opens with its own subject or a rule's verb needs no question.
_STANDS_ALONE = re.compile(
    r"^(?:(?:we|our|my|the|all|every|each|use|never|always|only|let['’]s|wir|unser\w*|nous|on|nuestr\w+)\b|i\b|i['’]|"
    r"(?-i:[A-Z][\w-]+) (?:(?:is|are|has|was|will|goes|does|uses|owns)\b|[a-z]{2,}s\b)|我们|私たち)",
    re.IGNORECASE,
)
_STANDS_FROM = 3
_NICKNAME = re.compile(r"\b(?:call me|go by)\b", re.IGNORECASE)
# "The healthcheck I added": said of an assistant without a name, who did it matters less than what was done.
_OWN_WORK = re.compile(
    r"\b(?P<what>(?:the|a|an|this|that|those|these) (?:[\w-]+ ){0,2}?[\w-]+?(?P<many>(?<!s)s)?),? "
    r"(?:that |which )?I(?:['’]ve| have)?"
    r"(?: just| already)? (?P<verb>[a-z]{2,}ed|wrote|made|built|put in|set up)(?=[.,;:!)]|$)"
)
_PARTICIPLES = {"wrote": "written"}
_DOES_IT = re.compile(r"\bdo(?:es)? (?:that|this|it|so)\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Voice:
    """Who speaks: the name to use, and whether it must stand in the line (it need not for "Use tabs").

    `listener` is the name of the only other person, None when there is none or more than one; `impersonal` is for
    an assistant without a name.
    """

    name: str
    named: bool
    listener: str | None = None
    impersonal: bool = False


def worded(
    statements: Sequence[Statement],
    voice: Voice,
    *,
    said: datetime | None = None,
    question: Statement | None = None,
    media: Sequence[str] = (),
) -> tuple[str, bool]:
    """Return the statements as one self-contained line, and whether the question stands in it."""
    english = statements[0].language == "en"
    line = " ".join(_sentence(statement, voice, said) for statement in statements)
    asked = question is not None and _needs_question(statements, voice)
    if question is not None and asked:
        line = f"{voice.name}, asked “{_one_line(question.text)}”: {line}"
    elif (voice.named or _speaks_of_self(statements, english=english)) and not mentions(line, voice.name):
        line = attribute(line, voice.name, statements[0].language)
    shown = "; ".join(_one_line(item) for item in media if item.strip())
    return (f"{line} [shows: {shown}]" if shown else line), asked


def _sentence(statement: Statement, voice: Voice, said: datetime | None) -> str:
    text = statement.text
    if said is not None:
        text = dated(text, said.date())
    text = _one_line(text)
    introduction = None if voice.named else find_introduction(text)
    if introduction and introduction.whole and introduction.language == "en":
        verb = " goes by" if _NICKNAME.search(text) else "'s name is"
        return f"{voice.name}{verb} {introduction.name}."
    if statement.language != "en":
        return text if voice.named else without_opener(text)
    text = _introduced(_REMINDER.sub("", without_opener(text)), voice.name)
    if voice.impersonal:
        text = _OWN_WORK.sub(_done, text)
    if not voice.named:
        text = _capitalised(_LINK.sub("", text))
    if not voice.named and not keeps_grammar(text):
        return attribute(text, voice.name, statement.language)
    if voice.listener and "self" in statement.acts:
        text = addressed_by_name(text, voice.listener)
    text = in_third_person(text, voice.name)
    return _capitalised(text)


def _done(match: re.Match[str]) -> str:
    verb = match["verb"]
    return f"{match['what']} that {'were' if match['many'] else 'was'} {_PARTICIPLES.get(verb, verb)}"


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:] if _PLAIN_WORD.match(text) else text


def _introduced(text: str, name: str) -> str:
    """Cut the speaker's own name before what the speaker goes on to say: "I'm Ana, I'm on the data team"."""
    own = rf"(?:I['’]m|I am|my name is|this is) {re.escape(name.split(maxsplit=1)[0])}(?: \w+)?[,;.]? (?:and )?(?=I\b)"
    return re.sub(f"^{own}", "", text, flags=re.IGNORECASE)


def _needs_question(statements: Sequence[Statement], voice: Voice) -> bool:
    answering = statements if voice.named else statements[:1]
    words = frozenset[str]().union(*(statement.words for statement in answering))
    own = _DOES_IT.search(statements[0].text) is None
    if (
        not voice.named
        and own
        and len(words) >= _STANDS_FROM
        and _STANDS_ALONE.match(without_opener(statements[0].text))
    ):
        return False
    return len(words) <= _ELLIPTIC or _YES_NO.match(statements[0].text) is not None


def _speaks_of_self(statements: Sequence[Statement], *, english: bool) -> bool:
    """A first person that the rewriting could not turn into a name; "we" needs none."""
    return not english and any("self" in statement.acts for statement in statements)


def _one_line(text: str) -> str:
    return " ".join(text.split())
