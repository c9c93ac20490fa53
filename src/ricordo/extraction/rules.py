"""Rule-based extraction: turns messages into findings, each self-contained and with a verbatim quote.

English is rewritten into the third person where that is sure; everything else keeps its words and names the speaker.
Relative dates get their day, an elliptic answer gets its question, and a statement without a subject gets the sentence
that says what it is about.

Invariants: pure and deterministic; never raises for any text; time linear in the text; findings come in message order.
Every content word of the statements is in the finding.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from ricordo.extraction.config import RuleExtractionConfig
from ricordo.extraction.contract import Finding, Utterance
from ricordo.extraction.exchanges import quote_question, says_yes_or_no, state_answer
from ricordo.extraction.grounding import asks_for_credential, contains_credential
from ricordo.extraction.preprocessing import GAP_MARK
from ricordo.extraction.selection import SelectedGroup, is_incomplete, select_groups, tells_new_value
from ricordo.extraction.statements import (
    LASTING_ACTS,
    YES_NO_QUESTION,
    ConversationTurn,
    Statement,
    build_turns,
    find_machine_text,
)
from ricordo.guard.fence import contains_fence
from ricordo.language import (
    Act,
    annotate_dates,
    attribute_to_speaker,
    content_words,
    drop_repeated_subject,
    find_introduction,
    find_names,
    is_correction,
    is_english,
    is_foreign,
    keeps_grammar,
    lacks_subject,
    mentions_name,
    name_listener,
    opens_with_pronoun,
    points_back,
    strip_opener,
    to_third_person,
)
from ricordo.language.acts import is_acknowledgement
from ricordo.language.languages import is_unsegmented_language
from ricordo.language.packs import Language, pack_phrases, pack_table
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
# A first word that may be capitalized: not a command, path or identifier.
_PLAIN_WORD = lazy_compile(r"[a-z]+(?:['’][a-z]+)?[ ,]")
_LINKING_WORDS = lazy_compile(
    lambda: rf"^(?:(?:{pack_phrases('linking')})[, ]+){{0,3}}(?:(?:{pack_phrases('please')}) )?(?=\S+ )", re.IGNORECASE
)
_MAX_ELLIPTIC_WORDS = 10
_QUOTATION_MARKS = '“”«»„「」" '
_QUOTATION_PAIRS = (("“", "”"), ("«", "»"), ("「", "」"), ('"', '"'))
_SUBJECT_DROPPING: frozenset[Language] = frozenset({"es", "it", "pt"})
"""Languages whose verbs say who does something without a pronoun."""
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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sentence:
    """A rewritten sentence. `in_own_words` marks one in the first person, which must name its speaker; `is_verbatim`
    one of another language.
    """

    text: str
    in_own_words: bool = False
    is_verbatim: bool = False


def rewrite_statements(
    statements: Sequence[Statement],
    speaker: Speaker,
    *,
    stated_at: datetime | None = None,
    question: Statement | None = None,
    topic: Statement | None = None,
    media: Sequence[str] = (),
) -> tuple[str, bool]:
    """Return the statements as one self-contained line, and whether it contains the question or the topic.

    `question` is the question that they answer, and `topic` a sentence of the message before that says what they are
    about.
    """
    if question is not None and not _needs_question(statements, speaker):
        question = None
    sentences = [
        _rewrite_sentence(statement, speaker, stated_at)
        if not statement.quoted or index == 0
        else _Sentence(text=_one_line(statement.text))
        for index, statement in enumerate(statements)
    ]
    line = " ".join(sentence.text for sentence in sentences)
    if question is not None and not speaker.needs_name:
        line = _one_line(statements[0].text) if len(statements) == 1 and says_yes_or_no(statements[0].text) else line
        line = state_answer(question, line, speaker.name)
    elif question is not None:
        line = quote_question(question, line, speaker.name)
    elif topic is not None:
        line = quote_question(topic, line, speaker.name)
    else:
        line = _name_speaker(sentences, speaker, statements[0].language)
    line = _close_quotation(line)
    descriptions = "; ".join(_one_line(item) for item in media if item.strip())
    has_context = question is not None or topic is not None
    return (f"{line} [shows: {descriptions}]" if descriptions else line), has_context


def _name_speaker(sentences: Sequence[_Sentence], speaker: Speaker, language: Language) -> str:
    """Join sentences, with the speaker's name before those in the first person."""
    line = " ".join(sentence.text for sentence in sentences)
    is_own = any(sentence.in_own_words for sentence in sentences)
    if is_own and all(sentence.in_own_words or sentence.is_verbatim for sentence in sentences):
        return attribute_to_speaker(line, speaker.name, language)
    line = " ".join(
        attribute_to_speaker(_quote(sentence.text), speaker.name, language) if sentence.in_own_words else sentence.text
        for sentence in sentences
    )
    is_named = not speaker.needs_name or mentions_name(line, speaker.name)
    return line if is_named else attribute_to_speaker(line, speaker.name, language)


def _quote(text: str) -> str:
    return text if text.startswith("“") else f"“{text}”"


def _rewrite_sentence(statement: Statement, speaker: Speaker, stated_at: datetime | None) -> _Sentence:
    text = statement.text
    if stated_at is not None:
        text = annotate_dates(text, stated_at.date())
    text = _one_line(text)
    if statement.heading and lacks_subject(text, statement.language):
        text = f"{statement.heading}: {text}"
    if statement.quoted:
        return _Sentence(text=f"“{text.strip(_QUOTATION_MARKS)}”", in_own_words=True)
    introduction = None if speaker.needs_name else find_introduction(text)
    if introduction and introduction.is_whole and introduction.language == "en":
        verb = " goes by" if _NICKNAME.search(text) else "'s name is"
        return _Sentence(text=f"{speaker.name}{verb} {introduction.name}.")
    if not is_english(text, statement.language):
        is_own = not speaker.needs_name and _may_be_first_person(statement)
        words = text if speaker.needs_name else strip_opener(text)
        return _Sentence(text=words, in_own_words=is_own, is_verbatim=True)
    text = _strip_introduction(_REMINDER_PHRASE.sub("", strip_opener(text)), speaker.name)
    if speaker.is_impersonal:
        text = _OWN_WORK.sub(_passive_clause, text)
    if not speaker.needs_name:
        text = _capitalize(_LINKING_WORDS.sub("", text))
    if not keeps_grammar(text):
        return _Sentence(text=text, in_own_words=True)
    if speaker.listener and "self" in statement.acts:
        text = name_listener(text, speaker.listener)
    return _Sentence(text=_capitalize(to_third_person(drop_repeated_subject(text), speaker.name)))


def _may_be_first_person(statement: Statement) -> bool:
    """Return whether a statement that isn't English has a first person, or its verb may say so without a pronoun."""
    if "self" in statement.acts:
        return True
    if is_foreign(statement.text):
        return True
    return statement.language in _SUBJECT_DROPPING and not statement.acts & LASTING_ACTS


def _close_quotation(text: str) -> str:
    """Return the text with the closing mark of a quotation that goes on after it."""
    for opening, closing in _QUOTATION_PAIRS:
        if text.count(opening) > (0 if opening == closing else text.count(closing)) and (
            opening != closing or text.count(opening) % 2
        ):
            return text + closing
    return text


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
    return len(words) <= _MAX_ELLIPTIC_WORDS or says_yes_or_no(statements[0].text)


def _one_line(text: str) -> str:
    return " ".join(text.split())


_MAX_GAP_CHARS = 120
_MAX_UNCLEAR_WORDS, _UNCLEAR_CONFIDENCE = 6, 0.5
"""The most for what nobody understands without its conversation: it stays in the daily log."""
_LEADING_NO = lazy_compile(lambda: rf"^(?:{pack_phrases('no_in_rule')})[,.! ]+", re.IGNORECASE)
_MIN_TELLING_WORDS = 3
_MAX_SEARCHED_CHARS = 20_000
_MAX_SUBJECT_SENTENCES, _MAX_SUBJECT_CHARS, _MAX_TOPIC_WORDS, _MAX_ANNOUNCEMENT_WORDS = 3, 160, 3, 6
_MAX_REPORT_WORDS, _SIGNS_PER_WORD, _MAX_THIN_WORDS = 2, 2, 2
_SPECIFIC = lazy_compile(r"[\d`]")
_MAX_LINE_CHARS, _MIN_LINE_CHARS, _MIN_CLAUSE_CHARS, _MIN_OWN_WORDS = 200, 60, 12, 4
_CLAUSE_OF_NAME = lazy_compile(
    lambda: rf"; (?=(?-i:[^\W\d_a-zà-öø-ÿ])[^\W\d_]+\b)|, (?:{pack_phrases('topic_change')}),? (?=\w)", re.IGNORECASE
)
_OPENS_WITH_NAME = lazy_compile(lambda: rf"[^\W\d_]+(?:['’]s | (?:{pack_phrases('named_subject')}))")
_BARE_WORD = lazy_compile(r"[a-zà-öø-ÿ]+")
_PASSES = lazy_compile(lambda: rf"(?<!\w)(?:{pack_phrases('at_present')})(?!\w)", re.IGNORECASE)
_LINKED_ACTS: frozenset[Act] = frozenset({"denial", "correction", "reaction"})
_EMPTY_ACTS: frozenset[Act] = frozenset({"acknowledgement", "greeting", "farewell", "praise", "thanks", "wish"})


def extract_from_utterances(utterances: Sequence[Utterance], config: RuleExtractionConfig) -> tuple[Finding, ...]:
    """Return the findings worth remembering, in message order; empty if there are none.

    Only user and assistant messages are read. A repetition by the same speaker in the same words is dropped.
    """
    findings: list[Finding] = []
    seen: set[tuple[str, str]] = set()
    turns = tuple(build_turns(utterances, config))
    names = {(each.role, each.speaker): _display_name(each, utterances) for each in utterances}
    for turn, reply in zip(turns, (*turns[1:], None), strict=False):
        groups = (part for group in select_groups(turn, reply, config) for part in _split_group(turn, group))
        for selected in _add_subjects(turn, groups):
            if selected.question and asks_for_credential(selected.question.text):
                continue
            topic = _find_topic(turn, selected.statements)
            if not (topic or selected.question or turn.among_people) and _lacks_topic(selected):
                continue
            finding = _build_finding(turn, selected, names[turn.utterance.role, turn.utterance.speaker], topic)
            key = (finding.kind, finding.content.casefold())
            if finding.confidence >= config.min_confidence and key not in seen:
                seen.add(key)
                findings.append(finding)
    return tuple(findings)


def _display_name(utterance: Utterance, utterances: Sequence[Utterance]) -> str:
    """Return how a speaker is written: an account name in lower case with the capitals that the conversation uses."""
    name = utterance.speaker or ("User" if utterance.role == "user" else "Assistant")
    if not name.islower() or not name.replace(" ", "").isalpha():
        return name
    pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
    spellings = (match[0] for each in utterances for match in pattern.finditer(each.text[:_MAX_SEARCHED_CHARS]))
    return next((each for each in spellings if not each.islower() and not each.isupper()), name.title())


def _split_group(turn: ConversationTurn, group: SelectedGroup) -> Iterator[SelectedGroup]:
    """Yield a group as one for each of its subjects where it is long, without an answer that passes with the day."""
    if turn.among_people:
        yield group
        return
    statements = list(group.statements)
    if group.question and _PASSES.search(group.question.text) and len(statements) > 1 and _is_short(statements[0]):
        del statements[0]
        group = replace(group, question=None)
    while len(statements) > 1 and group.question is None and _is_remark(statements[0]):
        del statements[0]
    while len(statements) > 1 and _BARE_WORD.fullmatch(statements[-1].text):
        del statements[-1]
    if sum(len(statement.text) for statement in statements) <= _MAX_LINE_CHARS:
        yield replace(group, statements=statements)
        return
    parts: list[list[Statement]] = [[]]
    for statement in statements:
        is_long = sum(len(each.text) for each in parts[-1]) >= _MIN_LINE_CHARS
        if is_long and len(statement.words) >= _MIN_OWN_WORDS and _stands_alone(statement):
            parts.append([])
        first, *others = _split_clauses(statement)
        parts[-1].append(first)
        parts += [[other] for other in others]
    yield replace(group, statements=parts[0])
    yield from (replace(group, statements=part, is_first=False, question=None) for part in parts[1:])


def _is_remark(statement: Statement) -> bool:
    """Return whether a sentence only reacts or reports ("Pushed.", "It runs.", "Ok two things"); not "The tiles?"."""
    words = re.findall(r"[\w'’]+", statement.text)
    if statement.acts & (LASTING_ACTS | {"denial", "correction"}):
        return False
    if len(words) > _MAX_TOPIC_WORDS or is_unsegmented_language(statement.language):
        return False
    is_report = len(words) == 1 and not lacks_subject(statement.text, statement.language)
    is_short_pronoun = len(words) <= _MAX_REPORT_WORDS and points_back(statement.text)
    return is_report or is_short_pronoun or any(map(is_acknowledgement, words))


def _split_clauses(statement: Statement) -> Iterator[Statement]:
    """Yield the clauses of a sentence that a semicolon parts and that open with a name of their own."""
    begin = 0
    for match in _CLAUSE_OF_NAME.finditer(statement.text):
        if min(match.start() - begin, len(statement.text) - match.end()) >= _MIN_CLAUSE_CHARS:
            yield _cut_statement(statement, begin, match.start())
            begin = match.end()
    yield _cut_statement(statement, begin, len(statement.text)) if begin else statement


def _cut_statement(statement: Statement, begin: int, end: int) -> Statement:
    text = statement.text[begin:end]
    words = frozenset(content_words(text, statement.language))
    return replace(statement, text=text, start=statement.start + begin, end=statement.start + end, words=words)


def _stands_alone(statement: Statement) -> bool:
    is_linked = statement.quoted or _LINKING_WORDS.sub("", statement.text) != statement.text
    is_linked = is_linked or bool(statement.acts & _LINKED_ACTS) or points_back(statement.text)
    return not is_linked and not _lacks_subject(statement)


def _lacks_topic(group: SelectedGroup) -> bool:
    """Return whether nobody can tell what a group is about, which nobody asked to remember."""
    is_asked = any("remember" in each.acts for each in group.statements)
    return not is_asked and len(group.statements) == 1 and is_incomplete(_strip_links(group.statements[0]))


def _add_subjects(turn: ConversationTurn, groups: Iterable[SelectedGroup]) -> list[SelectedGroup]:
    """Return the groups, each that lacks a subject with the sentences before it that say what it is about.

    Where these end the group before it, both become one.
    """
    completed: list[SelectedGroup] = []
    for group in groups:
        before = _find_subject(turn, group.statements)
        last = completed[-1] if completed else None
        if last and before and last.statements[-1].start == before[-1].start:
            statements = (*last.statements, *group.statements)
            best = max(last, group, key=lambda each: each.confidence)
            completed[-1] = replace(last, statements=statements, kind=best.kind, confidence=best.confidence)
        else:
            is_first = group.is_first or bool(before and before[0].start == turn.sentences[0].start)
            completed.append(replace(group, statements=(*before, *group.statements), is_first=is_first))
    return completed


def _find_subject(turn: ConversationTurn, statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return the one or two sentences before the statements that they need; empty if they need or have none."""
    first = statements[0]
    if turn.among_people or first.item:
        return ()
    if not (first.quoted or _lacks_subject(first)):
        before = [each for each in turn.sentences if each.start < first.start][-1:] if _is_thin(statements) else []
        return tuple(each for each in before if _gives_subject(each, turn) and len(each.words) >= _MIN_TELLING_WORDS)
    if len(statements) > 1 and not first.quoted and not _opens_with_pronoun(first) and _is_short(first):
        return ()  # it announces the next statement
    position = next((index for index, each in enumerate(turn.sentences) if each.start == first.start), 0)
    found: list[Statement] = []
    for sentence in reversed(turn.sentences[max(0, position - _MAX_SUBJECT_SENTENCES) : position]):
        if not _gives_subject(sentence, turn) or (sentence.quoted and not first.quoted):
            break
        found.insert(0, sentence)
        if "question" in sentence.acts or not (sentence.quoted or _lacks_subject(sentence)):
            break
    if found and (_is_topic(found[0]) or _names_somebody(found[0]) or not _lacks_subject(found[0])):
        return tuple(found)
    return ()


def _is_thin(statements: Sequence[Statement]) -> bool:
    """Return whether a rule alone is too short to say what it is about: "Never just restart"."""
    first = statements[0]
    is_short = len(first.words) <= _MAX_THIN_WORDS and _is_short(first) and "self" not in first.acts
    return len(statements) == 1 and is_short and not _SPECIFIC.search(first.text) and not _names_somebody(first)


def _is_topic(sentence: Statement) -> bool:
    """Return whether a sentence is a few words that name what follows: "The tiles?"; not "Ok good"."""
    words = sentence.text.split()
    length = len(sentence.text) / _SIGNS_PER_WORD if is_unsegmented_language(sentence.language) else len(words)
    return length <= _MAX_TOPIC_WORDS and not any(map(is_acknowledgement, words))


def _find_topic(turn: ConversationTurn, statements: Sequence[Statement]) -> Statement | None:
    """Return what statements without a subject are about: a question or a sentence with a name in the message before.

    A question can be answered without a pronoun too. A new value ("that's twelve now") is about the last sentence.
    """
    first, previous = statements[0], turn.previous
    if turn.among_people or previous is None or first.item or not _lacks_subject(first):
        return None
    candidates = (each for each in reversed(previous.sentences) if _gives_subject(each, previous))
    if tells_new_value(first):
        return next(candidates, None)
    if _is_topic(first):
        return None
    if not _opens_with_pronoun(first):
        return next((each for each in candidates if "question" in each.acts), None)
    return next((each for each in candidates if "question" in each.acts or _is_about_somebody(each)), None)


def _is_about_somebody(statement: Statement) -> bool:
    return "self" not in statement.acts and _names_somebody(statement)


def _names_somebody(statement: Statement) -> bool:
    # Behind a preposition the first word counts as well.
    text = f"with {statement.text}" if _OPENS_WITH_NAME.match(statement.text) else statement.text
    return len(statement.words) > 1 and bool(find_names(text, statement.language))


def _lacks_subject(statement: Statement) -> bool:
    return lacks_subject(_strip_links(statement), statement.language)


def _opens_with_pronoun(statement: Statement) -> bool:
    return opens_with_pronoun(_strip_links(statement), statement.language)


def _strip_links(statement: Statement) -> str:
    return _LINKING_WORDS.sub("", strip_opener(statement.text))


def _is_short(statement: Statement) -> bool:
    return len(statement.text.split()) <= _MAX_ANNOUNCEMENT_WORDS and not is_unsegmented_language(statement.language)


def _gives_subject(sentence: Statement, turn: ConversationTurn) -> bool:
    is_plain = bool(sentence.words) and not sentence.acts & _EMPTY_ACTS and not _is_remark(sentence)
    is_machine_text = any(start <= sentence.start < end for start, end in find_machine_text(turn.utterance.text))
    is_safe = not is_machine_text and not contains_credential(sentence.text)
    return is_plain and is_safe and len(sentence.text) <= _MAX_SUBJECT_CHARS


def _build_finding(turn: ConversationTurn, selected: SelectedGroup, name: str, topic: Statement | None) -> Finding:
    utterance, group = turn.utterance, selected.statements
    content, includes_context = rewrite_statements(
        _drop_bare_denials(group),
        Speaker(
            name=name,
            needs_name=turn.among_people,
            listener=turn.listener if turn.among_people else None,
            is_impersonal=name == "Assistant",
        ),
        stated_at=utterance.time,
        question=selected.question,
        topic=topic,
        media=utterance.media if selected.is_first else (),
    )
    before = (turn.previous.utterance.message_id,) if turn.previous else ()
    sources = (selected.question_ids if selected.question else before) if includes_context else ()
    said = frozenset[str]().union(*(statement.words for statement in group))
    is_unclear = includes_context and not selected.is_clear and len(said) <= _MAX_UNCLEAR_WORDS
    return Finding(
        content=content,
        kind=selected.kind,
        confidence=min(selected.confidence, _UNCLEAR_CONFIDENCE) if is_unclear else selected.confidence,
        message_ids=(utterance.message_id, *sources),
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
