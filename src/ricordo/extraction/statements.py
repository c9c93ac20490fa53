"""Statements: the sentences of a message that state something; and turns, with their preceding question.

Questions, greetings, offers and pasted text are not statements. Among people (two or more named speakers) all messages
are read alike. In a chat between a user and an agent, tasks and transient remarks are dropped, and lines below a
heading inherit its acts.

Invariant: a statement's text is verbatim in its message, and statements are in order.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import cache

from ricordo.extraction.config import RuleExtractionConfig
from ricordo.extraction.contract import Utterance
from ricordo.extraction.grounding import contains_credential
from ricordo.language import (
    Act,
    Language,
    Sentence,
    content_words,
    detect_acts,
    detect_language,
    find_introduction,
    is_cut_off,
    is_unsegmented,
    split_sentences,
    strip_opener,
)
from ricordo.language.languages import is_unsegmented_language
from ricordo.language.packs import PhraseKind, language_pack, pack_phrases, pack_words
from ricordo.lazy import dataclass, lazy_compile

__all__ = [
    "LASTING_ACTS",
    "YES_NO_QUESTION",
    "ConversationTurn",
    "Statement",
    "answers_question",
    "build_statement",
    "build_turns",
    "compile_phrases",
    "find_last_question",
    "find_machine_text",
    "has_choice",
    "is_next_step_question",
    "is_open_question",
    "leaves_open",
    "preceding_question",
    "read_statements",
    "select_chat_statements",
    "select_statements",
]


LASTING_ACTS: frozenset[Act] = frozenset({"remember", "decision", "convention"})
"""Acts that make a sentence worth keeping whatever its other acts are."""
_NOISE_ACTS: frozenset[Act] = frozenset(
    {"greeting", "farewell", "thanks", "acknowledgement", "praise", "wish", "offer"}
)
_POLITE_ACTS: frozenset[Act] = frozenset({"greeting", "thanks", "acknowledgement", "offer"})
_MIN_NEWS_WORDS = 5
_QUOTATION_MARKS = "«“„「"
_MAX_HEADING_CHARS, _POINTER_CHARS = 40, 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """One sentence of a message with its acts and distinct content words; offsets refer to the message's text.

    `item` is true for a list item; its `heading` is the one above it that names a topic, else empty. `quoted` is true
    for a sentence inside a quotation that begins before it.
    """

    text: str
    start: int
    end: int
    acts: frozenset[Act]
    words: frozenset[str]
    language: Language
    item: bool = False
    quoted: bool = False
    heading: str = ""


_LANGUAGE_MARGIN = 1.0
_QUOTATION = lazy_compile(r"“[^”]*”|«[^»]*»|„[^“”]*[“”]|「[^」]*」|(?<!\w)\"[^\"]*\"")


def read_statements(utterance: Utterance, config: RuleExtractionConfig, *, among_people: bool) -> tuple[Statement, ...]:
    """Return every prose sentence of a message, including questions and small talk, in order.

    Each has a language of its own; that of the message counts where nothing decides.
    """
    text = utterance.text
    language = detect_language(text)
    quotations = [match.span() for match in _QUOTATION.finditer(text[:_MAX_SEARCHED_CHARS])]
    statements = (
        build_statement(sentence, detect_language(sentence.text, language, _LANGUAGE_MARGIN), among_people=among_people)
        for sentence in _iter_sentences(text, config)
        if sentence.kind in {"prose", "item"} and len(sentence.text) <= config.max_sentence_chars
    )
    return tuple(
        replace(each, quoted=True) if any(start < each.start < end for start, end in quotations) else each
        for each in statements
    )


def build_statement(sentence: Sentence, language: Language, *, among_people: bool) -> Statement:
    """Return the statement of a sentence. A user's own name is a fact, even in a short or polite sentence."""
    introduction = None if among_people else find_introduction(sentence.text)
    language = introduction.language if introduction else language
    acts = detect_acts(sentence.text, language) if among_people else _detect_chat_acts(sentence.text, language)
    return Statement(
        text=sentence.text,
        start=sentence.start,
        end=sentence.end,
        acts=(acts - _NOISE_ACTS - {"reaction", "moment", "request"}) | {"fact", "self"} if introduction else acts,
        words=frozenset(content_words(sentence.text, language)),
        language=language,
        item=sentence.kind == "item",
    )


def _detect_chat_acts(text: str, language: Language) -> frozenset[Act]:
    """Return the acts of a sentence, including the text after an opener: "Before you start: use uv, not pip"."""
    remainder = strip_opener(text)
    return detect_acts(text, language) | (detect_acts(remainder, language) if remainder != text else frozenset())


def select_statements(sentences: tuple[Statement, ...], *, among_people: bool) -> tuple[Statement, ...]:
    """Return the sentences that state something, in order; empty for small talk, questions and tasks."""
    selected: list[Statement] = []
    for index, sentence in enumerate(sentences):
        is_adjacent = bool(selected) and sentences[index - 1] is selected[-1]
        if _is_statement(sentence, follows=is_adjacent, among_people=among_people):
            selected.append(sentence)
    return tuple(selected)


def find_last_question(sentences: tuple[Statement, ...]) -> Statement | None:
    """Return the last question of a message with content, its own or what it points back to; None if there is none."""
    questions = [each for each in sentences if "question" in each.acts and (each.words or _asks_about_context(each))]
    return questions[-1] if questions else None


def _asks_about_context(question: Statement) -> bool:
    points_back = compile_phrases("question_context", question.language).search(question.text)
    return points_back is not None and is_open_question(question)


def _iter_sentences(text: str, config: RuleExtractionConfig) -> Iterator[Sentence]:
    if len(text) <= config.max_message_chars:
        yield from split_sentences(text)
        return
    for start, end in _outer_paragraphs(text, config.max_sentence_chars):
        for sentence in split_sentences(text[start:end]):
            yield Sentence(
                text=sentence.text, start=start + sentence.start, end=start + sentence.end, kind=sentence.kind
            )


def _outer_paragraphs(text: str, max_chars: int) -> list[tuple[int, int]]:
    """Return the first and last paragraph of a paste, each only if it is short enough to be typed."""
    head, tail = text.find("\n\n"), text.rfind("\n\n")
    spans = [(0, head), (tail + 2, len(text))] if 0 <= head < tail else []
    return [(start, end) for start, end in spans if end - start <= max_chars]


def _is_statement(sentence: Statement, *, follows: bool, among_people: bool) -> bool:
    acts = sentence.acts
    about_listener = among_people and "listener" in acts and "self" not in acts
    if "question" in acts or about_listener or not sentence.words:
        return False
    if acts & LASTING_ACTS and not ("praise" in acts or among_people):
        return True
    if acts & _NOISE_ACTS and not _has_news(sentence):
        return False
    if "reaction" in acts:
        return follows
    return "request" not in acts or ("self" in acts if among_people else "preference" in acts)


def _has_news(sentence: Statement) -> bool:
    """Return whether a polite opening leads into news about the speaker: "Thanks, I got the job at the museum"."""
    return (
        not sentence.acts & (_NOISE_ACTS - _POLITE_ACTS)
        and "self" in sentence.acts
        and len(sentence.words) >= _MIN_NEWS_WORDS
    )


_MAX_SEARCHED_CHARS = 20_000
_ADDRESSES_MACHINE = lazy_compile(
    lambda: (
        rf"(?<!\w)(?:{pack_phrases('machine_address', edges=True)})"
        rf"|(?:{pack_phrases('machine_address', edges=False)})"
    ),
    re.IGNORECASE | re.MULTILINE,
)
_PROGRAM_OUTPUT = lazy_compile(
    r"\[?(?:ERROR|WARN(?:ING)?|FATAL|INFO|DEBUG|TRACE)\b[\]:]"
    r"|(?:error|fatal|panic)(?:\[\w+\])?: |\w+(?:Error|Exception): "
)
"""How a line of a log or a compiler begins."""
_INHERITED_ACTS: frozenset[Act] = frozenset({"decision", "convention", "lesson", "preference"})
_TRANSIENT_ACTS: frozenset[Act] = frozenset({"question", "request", "moment", "thanks", "greeting", "farewell"})
_UNMARKED_QUESTION = lazy_compile(
    lambda: rf"(?:(?:{pack_phrases('linking')}) )*(?:{pack_phrases('unmarked_question')})(?!\w)", re.IGNORECASE
)
_LISTENER_ACTS: frozenset[Act] = frozenset({"praise"})


def select_chat_statements(utterance: Utterance, sentences: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return what a user's or an agent's message may state, in order: no questions, headings, or text for machines."""
    candidates = _apply_headings(sentences) if utterance.role == "user" else _agent_statements(sentences)
    name, spans = utterance.speaker, find_machine_text(utterance.text)
    return tuple(
        each
        for each in candidates
        if each.words
        and not _is_cut_off(each, utterance.text)
        and not _PROGRAM_OUTPUT.match(each.text)
        and not _is_unmarked_question(each)
        and not any(start <= each.start < end for start, end in spans)
        and ("question" not in each.acts or "remember" in each.acts)
        and not (name and _is_introduction(each, name))
    )


def _is_cut_off(sentence: Statement, text: str) -> bool:
    behind = text[sentence.end : sentence.end + _POINTER_CHARS].lstrip()
    return is_cut_off(sentence.text) or (behind[:1] in {"(", "（", "[", "【", "…"} and is_cut_off(behind))


def _is_unmarked_question(sentence: Statement) -> bool:
    """Return whether a sentence without a sign at its end asks: "how much is 7 percent of 1180"."""
    text = sentence.text
    return "remember" not in sentence.acts and text[-1:].isalnum() and _UNMARKED_QUESTION.match(text) is not None


def find_machine_text(text: str) -> list[tuple[int, int]]:
    """Return the spans of the paragraphs in which somebody else addresses an assistant, as hidden instructions do."""
    ends = [match.end() for match in _ADDRESSES_MACHINE.finditer(text[:_MAX_SEARCHED_CHARS])]
    return [(text.rfind("\n\n", 0, end) + 1, (text.find("\n\n", end) + 1 or len(text) + 1) - 1) for end in ends]


def _agent_statements(sentences: Sequence[Statement]) -> list[Statement]:
    """Return an agent's statements, not the texts that it quotes or drafts.

    Its "you should never …" is a rule, not praise of the listener.
    """
    statements = [each for each in sentences if not _is_heading(each, None) and each.text[0] not in _QUOTATION_MARKS]
    return [
        replace(each, acts=each.acts - _LISTENER_ACTS) if "convention" in each.acts else each for each in statements
    ]


def _apply_headings(sentences: Sequence[Statement]) -> list[Statement]:
    """Drop headings and add their acts to the statements below them."""
    statements: list[Statement] = []
    heading_acts: frozenset[Act] = frozenset()
    topic = ""
    is_list = False
    for index, sentence in enumerate(sentences):
        next_sentence = sentences[index + 1] if index + 1 < len(sentences) else None
        if _is_heading(sentence, next_sentence):
            heading_acts = _heading_acts(sentence)
            topic = _heading_topic(sentence)
            is_list = next_sentence is not None and next_sentence.item
            continue
        if is_list and not sentence.item:
            heading_acts, topic = frozenset(), ""
        inherits = heading_acts and not sentence.acts & (_TRANSIENT_ACTS | _INHERITED_ACTS)
        acts = sentence.acts | heading_acts if inherits else sentence.acts
        statements.append(replace(sentence, acts=acts, heading=topic if is_list else ""))
    return statements


def _is_heading(sentence: Statement, next_sentence: Statement | None) -> bool:
    """Return whether a line is a heading: it ends in a colon, or announces rules ("Some ground rules.")."""
    if "heading" in sentence.acts and next_sentence is not None:
        return True
    return sentence.text.rstrip("*_ ").endswith((":", "："))


def _heading_acts(heading: Statement) -> frozenset[Act]:
    return frozenset[Act]({"convention"}) if "heading" in heading.acts else heading.acts & _INHERITED_ACTS


def _heading_topic(heading: Statement) -> str:
    """Return the few words of a heading that name what its list is about; empty for "Two things:" and for rules."""
    text = heading.text.strip("*_: ：")
    is_general = heading.words <= pack_words("generic") | pack_words("count")
    return "" if heading.acts & LASTING_ACTS or is_general or len(text) > _MAX_HEADING_CHARS else text


def _is_introduction(sentence: Statement, name: str) -> bool:
    first = re.escape(name.split(maxsplit=1)[0])
    opening, ending = pack_phrases("introduction"), pack_phrases("introduction_end")
    pattern = rf"^(?:\w+[,.! ]+)?(?:(?:{opening})\s+){first}(?: \w+)?(?: (?:{ending}))?[\s.!,]*$"
    return re.match(pattern, sentence.text, re.IGNORECASE) is not None


YES_NO_QUESTION = lazy_compile(lambda: rf"^(?:{pack_phrases('yes_no_question')})", re.IGNORECASE)
"""How a yes-or-no question begins."""
_NEXT_STEP_QUESTION = lazy_compile(
    lambda: rf"\b(?:{pack_phrases('next_step', edges=True)})\b|{pack_phrases('next_step', edges=False)}", re.IGNORECASE
)
_CHOICE_QUESTION = lazy_compile(
    lambda: (
        rf"\w,? (?:{pack_phrases('choice_or')}) \w|{pack_phrases('choice_or_joined')}|^(?:{pack_phrases('choice')})"
    ),
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversationTurn:
    """One message: its sentences, its statements, the turn before it, and the question that it follows.

    `asked_in` is the turn with that question: the one before, or an earlier one whose question was left open.
    """

    utterance: Utterance
    sentences: tuple[Statement, ...]
    statements: tuple[Statement, ...]
    among_people: bool
    listener: str | None
    opening: bool
    previous: "ConversationTurn | None" = field(default=None, compare=False, repr=False)
    question: Statement | None = None
    asked_in: "ConversationTurn | None" = field(default=None, compare=False, repr=False)


def build_turns(utterances: Sequence[Utterance], config: RuleExtractionConfig) -> Iterator[ConversationTurn]:
    """Yield the user's and the assistant's messages in order, without blank ones."""
    spoken_utterances = [
        utterance for utterance in utterances if utterance.role in {"user", "assistant"} and utterance.text.strip()
    ]
    names = {utterance.speaker for utterance in spoken_utterances if utterance.speaker}
    has_agent = any(utterance.role == "assistant" and not utterance.speaker for utterance in spoken_utterances)
    among_people = len(names) > 1 and not has_agent
    previous: ConversationTurn | None = None
    for index, utterance in enumerate(spoken_utterances):
        sentences = read_statements(utterance, config, among_people=among_people)
        asked_in = _find_asking_turn(utterance, previous, among_people=among_people)
        statements = (
            select_statements(sentences, among_people=True)
            if among_people
            else select_chat_statements(utterance, sentences)
        )
        previous = ConversationTurn(
            utterance=utterance,
            sentences=sentences,
            statements=tuple(statement for statement in statements if not contains_credential(statement.text)),
            among_people=among_people,
            listener=min(names - {utterance.speaker}) if len(names) == 2 and utterance.speaker else None,
            opening=among_people and index < 2,
            previous=previous,
            question=find_last_question(asked_in.sentences) if asked_in else None,
            asked_in=asked_in,
        )
        yield previous


_MAX_OPEN_TURNS, _MAX_OPEN_WORDS = 4, 2
_MAX_LEAD_CHARS = 8
_CLAUSE = lazy_compile(r"[,;:–—]\s+")
_EVASION = lazy_compile(
    lambda: (
        rf"(?:(?:{pack_phrases('filler')})[,.!\s]+){{0,2}}(?:(?:{pack_phrases('evasion', edges=True)})(?!\w)"
        rf"|(?:{pack_phrases('evasion', edges=False)}))"
    ),
    re.IGNORECASE,
)


def leaves_open(text: str) -> bool:
    """Return whether a reply leaves a question open: "no idea yet", "ask my brother", "one moment"."""
    return _EVASION.match(text.strip()) is not None


def _only_leaves_open(turn: ConversationTurn) -> bool:
    """Return whether a reply says nothing else than that a question stays open; not "no idea, the cake sits there"."""
    return leaves_open(turn.utterance.text) and all(map(_is_evasion, turn.sentences))


def _is_evasion(sentence: Statement) -> bool:
    match = _EVASION.match(sentence.text)
    rest = sentence.text[match.end() :] if match else sentence.text
    return len(content_words(rest, sentence.language)) <= (_MAX_OPEN_WORDS if match else 0)


def _find_asking_turn(
    utterance: Utterance, previous: ConversationTurn | None, *, among_people: bool
) -> ConversationTurn | None:
    """Return the turn with the question that a message follows: the turn before of somebody else.

    With an agent it can be an earlier one, whose question the user left open. None if there is no question.
    """
    speaker, turn = _speaker(utterance), previous
    for _ in range(_MAX_OPEN_TURNS):
        if turn is None or (among_people and turn is not previous):
            return None
        is_own = _speaker(turn.utterance) == speaker
        if is_own:
            is_open = utterance.role == "user" and not among_people and _only_leaves_open(turn)
            return turn.asked_in if is_open else None
        if find_last_question(turn.sentences):
            return turn if turn is previous else None
        turn = turn.previous
    return None


def answers_question(turn: ConversationTurn) -> bool:
    """Return whether the message follows a factual question, rather than a question about the next step."""
    return turn.question is not None and not is_next_step_question(turn.question)


def is_next_step_question(question: Statement) -> bool:
    """Return whether a question is about the next step of a task, rather than about a fact or a choice."""
    return not has_choice(question) and _NEXT_STEP_QUESTION.search(question.text) is not None


def has_choice(question: Statement) -> bool:
    """Return whether a question offers a choice: "Postgres or SQLite?"."""
    return _CHOICE_QUESTION.search(question.text) is not None


def is_open_question(question: Statement) -> bool:
    """Return whether a question, or a clause of it, opens like one that yes or no does not answer."""
    if has_choice(question):
        return True
    clauses = [question.text] if is_unsegmented_language(question.language) else _CLAUSE.split(question.text)
    pattern = compile_phrases("open_question", question.language)
    found = (match for clause in clauses for match in pattern.finditer(clause))
    return any(match.start() <= _MAX_LEAD_CHARS or is_unsegmented(match[0][0]) for match in found)


@cache
def compile_phrases(kind: PhraseKind, language: Language) -> re.Pattern[str]:
    """Return the pattern that finds the phrases of a kind, as whole words if the language has spaces."""
    phrases = pack_phrases(kind, language=language)
    return re.compile(rf"(?<!\w)(?:{phrases})(?!\w)" if language_pack(language).edges else phrases, re.IGNORECASE)


def preceding_question(turn: ConversationTurn) -> tuple[Statement, ...]:
    """Return the question that the message follows; empty if there is none."""
    return (turn.question,) if turn.question else ()


def _speaker(utterance: Utterance) -> tuple[str, str | None]:
    return utterance.role, utterance.speaker
