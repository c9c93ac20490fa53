"""Rule-based extraction: turns messages into findings, each self-contained and with a verbatim quote.

English is rewritten into the third person; other languages keep their words and name the speaker. Relative dates get
their day, and an elliptic answer gets its question.

Invariants: pure and deterministic; never raises for any text; time linear in the text; findings come in message order.
Every content word of the statements is in the finding.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from ricordo.extraction.config import RuleExtractionConfig
from ricordo.extraction.contract import Finding, Utterance
from ricordo.extraction.grounding import asks_for_credential, contains_credential
from ricordo.extraction.preprocessing import GAP_MARK
from ricordo.extraction.selection import SelectedGroup, select_groups
from ricordo.extraction.statements import YES_NO_QUESTION, ConversationTurn, Statement, build_turns
from ricordo.guard.fence import contains_fence
from ricordo.language import (
    annotate_dates,
    attribute_to_speaker,
    find_introduction,
    is_correction,
    keeps_grammar,
    mentions_name,
    name_listener,
    strip_opener,
    to_third_person,
)
from ricordo.language.packs import Language, pack_phrases, pack_table, pack_words
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.types import Media, Message, get_mark

__all__ = ["Finding", "Speaker", "Utterance", "extract", "extract_from_utterances", "rewrite_statements"]


_REMINDER_PHRASE = lazy_compile(
    lambda: (
        rf"^(?:(?:{pack_phrases('reminder_lead')}) )*(?:{pack_phrases('reminder')})"
        rf"(?:\s*[:,–—-]\s*|\s+(?:{pack_phrases('reminder_that')})\s+|:?\s+)(?=[\w`])"
    ),
    re.IGNORECASE,
)
_YES_NO_ANSWER = lazy_compile(lambda: rf"^(?:{pack_phrases('yes_or_no')})\b", re.IGNORECASE)
# A first word that may be capitalized: not a command, path or identifier.
_PLAIN_WORD = lazy_compile(r"[a-z]+(?:['’][a-z]+)?[ ,]")
_LINKING_WORDS = lazy_compile(
    lambda: rf"^(?:(?:{pack_phrases('linking')})[, ]+)?(?:(?:{pack_phrases('please')}) )?(?=\w+ )", re.IGNORECASE
)
_MAX_ELLIPTIC_WORDS = 10
# An answer that opens with its own subject or a rule's verb needs no question.
_STANDS_ALONE = lazy_compile(
    lambda: (
        rf"^(?:(?:{pack_phrases('own_subject')})\b|{pack_phrases('i')}"
        rf"|(?-i:[A-Z][\w-]+) (?:{pack_phrases('named_subject')})|{pack_phrases('own_subject_joined')})"
    ),
    re.IGNORECASE,
)
_MIN_STANDALONE_WORDS = 3
_NICKNAME = lazy_compile(lambda: rf"\b(?:{pack_phrases('nickname')})\b", re.IGNORECASE)
# "The healthcheck I added": for an assistant without a name, the work matters more than who did it.
_OWN_WORK = lazy_compile(lambda: pack_phrases("own_work"))
_POINTS_TO_ACTION = lazy_compile(lambda: rf"\b(?:{pack_phrases('action_pointer')})\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Speaker:
    """The speaker: the name to use, and whether the line must contain it (it need not for "Use tabs").

    `listener` is the name of the only other person, None if there is none or more than one; `is_impersonal` is for an
    assistant without a name.
    """

    name: str
    needs_name: bool
    listener: str | None = None
    is_impersonal: bool = False


def rewrite_statements(
    statements: Sequence[Statement],
    speaker: Speaker,
    *,
    stated_at: datetime | None = None,
    question: Statement | None = None,
    media: Sequence[str] = (),
) -> tuple[str, bool]:
    """Return the statements as one self-contained line, and whether it contains the question."""
    english = is_english(statements[0].text, statements[0].language)
    line = " ".join(_rewrite_sentence(statement, speaker, stated_at) for statement in statements)
    has_question = question is not None and _needs_question(statements, speaker)
    if question is not None and has_question:
        line = f"{speaker.name}, asked “{_one_line(question.text)}”: {line}"
    elif (speaker.needs_name or _mentions_self(statements, english=english)) and not mentions_name(line, speaker.name):
        line = attribute_to_speaker(line, speaker.name, statements[0].language)
    descriptions = "; ".join(_one_line(item) for item in media if item.strip())
    return (f"{line} [shows: {descriptions}]" if descriptions else line), has_question


def _rewrite_sentence(statement: Statement, speaker: Speaker, stated_at: datetime | None) -> str:
    text = statement.text
    if stated_at is not None:
        text = annotate_dates(text, stated_at.date())
    text = _one_line(text)
    introduction = None if speaker.needs_name else find_introduction(text)
    if introduction and introduction.is_whole and introduction.language == "en":
        verb = " goes by" if _NICKNAME.search(text) else "'s name is"
        return f"{speaker.name}{verb} {introduction.name}."
    if not is_english(text, statement.language):
        return text if speaker.needs_name else strip_opener(text)
    text = _strip_introduction(_REMINDER_PHRASE.sub("", strip_opener(text)), speaker.name)
    if speaker.is_impersonal:
        text = _OWN_WORK.sub(_passive_clause, text)
    if not speaker.needs_name:
        text = _capitalize(_LINKING_WORDS.sub("", text))
    if not speaker.needs_name and not keeps_grammar(text):
        return attribute_to_speaker(text, speaker.name, statement.language)
    if speaker.listener and "self" in statement.acts:
        text = name_listener(text, speaker.listener)
    text = to_third_person(text, speaker.name)
    return _capitalize(text)


def is_english(text: str, language: Language) -> bool:
    """Return whether a text of a language that may be a mere default is English, so that it can be rewritten."""
    words = _LETTERS.findall(text.casefold())
    # Words of one or two letters are words of many languages: "i", "to", "on".
    own = sum(len(word) > 2 and word in pack_words("stop", "en") for word in words)
    foreign = sum(not word.isascii() for word in words)
    return language == "en" and (foreign <= own if foreign else own > 0 or len(words) < _MIN_LONG_WORDS)


def _passive_clause(match: re.Match[str]) -> str:
    verb = match["verb"]
    return f"{match['what']} that {'were' if match['many'] else 'was'} {pack_table('participle').get(verb, verb)}"


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:] if _PLAIN_WORD.match(text) else text


def _strip_introduction(text: str, name: str) -> str:
    """Remove the speaker's own name from the beginning of a statement: "I'm Ana, I'm on the data team"."""
    intro = (
        rf"(?:I['’]m|I am|my name is|this is) {re.escape(name.split(maxsplit=1)[0])}(?: \w+)?[,;.]? (?:and )?(?=I\b)"
    )
    return re.sub(f"^{intro}", "", text, flags=re.IGNORECASE)


def _needs_question(statements: Sequence[Statement], speaker: Speaker) -> bool:
    answer = statements if speaker.needs_name else statements[:1]
    words = frozenset[str]().union(*(statement.words for statement in answer))
    is_self_contained = _POINTS_TO_ACTION.search(statements[0].text) is None
    if (
        not speaker.needs_name
        and is_self_contained
        and len(words) >= _MIN_STANDALONE_WORDS
        and _STANDS_ALONE.match(strip_opener(statements[0].text))
    ):
        return False
    return len(words) <= _MAX_ELLIPTIC_WORDS or _YES_NO_ANSWER.match(statements[0].text) is not None


def _mentions_self(statements: Sequence[Statement], *, english: bool) -> bool:
    """Return whether a first person is left that could not be rewritten into a name; "we" needs no name."""
    return not english and any("self" in statement.acts for statement in statements)


def _one_line(text: str) -> str:
    return " ".join(text.split())


_MIN_LONG_WORDS = 8
_LETTERS = lazy_compile(r"[^\W\d_]+")
_MAX_GAP_CHARS = 120
_LEADING_NO = lazy_compile(lambda: rf"^(?:{pack_phrases('no_in_rule')})[,.! ]+", re.IGNORECASE)
_MIN_TELLING_WORDS = 3


def extract_from_utterances(utterances: Sequence[Utterance], config: RuleExtractionConfig) -> tuple[Finding, ...]:
    """Return the findings worth remembering, in message order; empty if there are none.

    Only user and assistant messages are read. A repetition by the same speaker in the same words is dropped.
    """
    findings: list[Finding] = []
    seen: set[tuple[str, str]] = set()
    turns = tuple(build_turns(utterances, config))
    for turn, reply in zip(turns, (*turns[1:], None), strict=False):
        for selected in select_groups(turn, reply, config):
            if selected.question and asks_for_credential(selected.question.text):
                continue
            finding = _build_finding(turn, selected)
            key = (finding.kind, finding.content.casefold())
            if finding.confidence >= config.min_confidence and key not in seen:
                seen.add(key)
                findings.append(finding)
    return tuple(findings)


def _build_finding(turn: ConversationTurn, selected: SelectedGroup) -> Finding:
    utterance, group = turn.utterance, selected.statements
    name = utterance.speaker or ("User" if utterance.role == "user" else "Assistant")
    content, includes_question = rewrite_statements(
        _drop_bare_denials(group),
        Speaker(name=name, needs_name=turn.among_people, listener=turn.listener, is_impersonal=name == "Assistant"),
        stated_at=utterance.time,
        question=selected.question,
        media=utterance.media if selected.is_first else (),
    )
    question_ids = (turn.question_utterance.message_id,) if includes_question and turn.question_utterance else ()
    return Finding(
        content=content,
        kind=selected.kind,
        confidence=selected.confidence,
        message_ids=(utterance.message_id, *question_ids),
        quote=_choose_quote(turn, group),
        since=utterance.time,
        corrects=any(_is_correction(statement, turn) for statement in group),
    )


def _drop_bare_denials(group: Sequence[Statement]) -> Sequence[Statement]:
    """Drop a bare "that's not right" next to the statement of what is right."""
    remaining = [each for each in group if "denial" not in each.acts or len(each.words) >= _MIN_TELLING_WORDS]
    return remaining or group


def _is_correction(statement: Statement, turn: ConversationTurn) -> bool:
    """Return whether a statement is a correction. A leading "no" after a question answers it."""
    text = statement.text
    return is_correction(
        _LEADING_NO.sub("", text) if turn.question and YES_NO_QUESTION.match(turn.question.text) else text
    )


def _choose_quote(turn: ConversationTurn, group: Sequence[Statement]) -> str:
    """Return the span from the first to the last statement as the quote.

    If much text, a credential or a gap is between them, return the statement with the most words instead."""
    start, end = group[0].start, group[-1].end
    is_contiguous = end - start <= sum(len(statement.text) for statement in group) + _MAX_GAP_CHARS
    is_contiguous = is_contiguous and GAP_MARK not in turn.utterance.text[start:end]
    if is_contiguous and not any(contains_credential(each.text) for each in turn.sentences if start < each.start < end):
        return turn.utterance.text[start:end]
    return max(group, key=lambda statement: len(statement.words)).text


_DEFAULT_CONFIG = RuleExtractionConfig()


def extract(messages: Sequence[Message], config: RuleExtractionConfig = _DEFAULT_CONFIG) -> tuple[Finding, ...]:
    """Return the findings of the messages, in message order; empty if there are none.

    A message's `name` is its speaker; two or more names make a conversation among people.
    """
    return extract_from_utterances(tuple(_iter_utterances(messages)), config)


def _iter_utterances(messages: Sequence[Message]) -> Iterator[Utterance]:
    for message in messages:
        if message.role not in {"user", "assistant"} or message.tool_calls:
            continue
        text = message.text
        is_authored = get_mark(message) in {None, "cut"}
        if is_authored and text.strip() and not contains_fence(text):
            yield Utterance(
                message_id=message.id,
                role=message.role,
                text=text,
                speaker=message.name,
                time=message.time,
                media=tuple(part.description for part in message.parts if isinstance(part, Media) and part.description),
            )
