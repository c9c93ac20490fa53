"""Exchanges: a question and its short answer, which say something only together.

The question comes with the sentence that it points back to, from its own message or from the one before. Whether both
are worth keeping is judged by the statement that they make. A reply that leaves the question open, or that only lets
the next step begin, says nothing.

Invariants: pure and deterministic; an answer's text is verbatim in its message.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from ricordo.extraction.grounding import contains_credential
from ricordo.extraction.relevance import Relevance, StatementContext, judge_relevance
from ricordo.extraction.statements import (
    ConversationTurn,
    Statement,
    build_statement,
    compile_phrases,
    find_machine_text,
    has_choice,
    is_next_step_question,
    is_open_question,
    leaves_open,
)
from ricordo.language import (
    Act,
    Language,
    Sentence,
    detect_language,
    find_names,
    is_english,
    is_unsegmented,
    lacks_subject,
)
from ricordo.language.acts import is_acknowledgement
from ricordo.language.packs import pack_phrases, pack_table
from ricordo.language.quantities import find_quantities
from ricordo.lazy import dataclass, lazy_compile

__all__ = [
    "AskedQuestion",
    "Exchange",
    "find_exchanges",
    "find_value_answer",
    "quote_question",
    "read_question",
    "says_yes_or_no",
    "state_answer",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedQuestion:
    """A question, with the sentence before it that it needs, and the ids of the messages that both stand in.

    `is_clear` is false where it needs such a sentence and has none, so that nobody can tell later what was asked.
    """

    statement: Statement
    message_ids: tuple[str, ...]
    is_clear: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """A question and its short answer. `relevance` is that of the statement that they make."""

    question: AskedQuestion
    answer: Statement
    relevance: Relevance


_MAX_CHARS, _MAX_WORDS, _MAX_SIGNS = 80, 14, 28
_MAX_OWN_WORDS, _MAX_VALUE_WORDS = 4, 6
_MAX_CONTEXT_CHARS, _MIN_CONTEXT_WORDS, _MIN_REQUEST_WORDS = 160, 3, 2
_MIN_QUESTION_WORDS, _MIN_CHOICE_WORDS, _MAX_JOINED_SIGNS = 2, 3, 4
_MAX_VALUE_CHARS, _MIN_QUESTION_CHARS, _MAX_QUESTION_CHARS, _MAX_QUOTED_CHARS = 60, 20, 140, 300
_SLIGHT, _LITTLE, _SOME, _FAIR, _VERY = 0.13, 0.2, 0.33, 0.4, 0.75
_EMPTY_ACTS: frozenset[Act] = frozenset({"acknowledgement", "greeting", "farewell", "praise", "thanks", "wish"})
_ORDERS: frozenset[Act] = frozenset({"request", "moment", "offer", "question"})
_RULES: frozenset[Act] = frozenset({"convention", "decision", "preference"})
_NO = lazy_compile(
    lambda: rf"(?:{pack_phrases('no_in_reply', edges=True)})(?!\w)|(?:{pack_phrases('no_in_reply', edges=False)})",
    re.IGNORECASE,
)
_YES = lazy_compile(lambda: rf"(?:{pack_phrases('yes_or_no')})(?!\w)", re.IGNORECASE)
_PAST = lazy_compile(lambda: pack_phrases("past_question"), re.IGNORECASE)
_NUMBERED = lazy_compile(r"(?:^|(?<=\s))\(?([1-9])[.)]\s+")
_ENDS = (".", "?", "!", "…", ":", "。", "？", "！", "：")
_VALUE = lazy_compile(r"\d|`[^`]+`")
_SIGNS = " \t\n,.;:!?-–—，。、！？"


def read_question(turn: ConversationTurn, *, with_context: bool = True) -> AskedQuestion | None:
    """Return the question that a turn follows; None if there is none. `with_context` adds the sentence it needs."""
    if turn.question is None or turn.asked_in is None:
        return None
    question = replace(turn.question, text=_shorten_question(turn.question.text, _MAX_QUESTION_CHARS))
    ids = (turn.asked_in.utterance.message_id,)
    asked = AskedQuestion(statement=question, message_ids=ids, is_clear=not _says_little(turn.question))
    return _add_context(asked, turn.asked_in) if with_context and _needs_context(turn.question) else asked


def _needs_context(question: Statement) -> bool:
    points_back = compile_phrases("question_context", question.language).search(question.text) is not None
    return points_back or _says_little(question)


def _says_little(question: Statement) -> bool:
    """Return whether a question has too few words to say what it is about: "And back?"."""
    if is_unsegmented(question.text[0]):
        return len(question.text) <= _MAX_JOINED_SIGNS
    return len(question.words) < (_MIN_CHOICE_WORDS if has_choice(question) else _MIN_QUESTION_WORDS)


def _add_context(asked: AskedQuestion, asked_in: ConversationTurn) -> AskedQuestion:
    """Return a question with the sentence right before it, else with the last one that tells of something before."""
    before = asked_in.previous
    own = [each for each in asked_in.sentences if each.start < asked.statement.start][-1:]
    others: list[Statement] = []
    if before is not None and before.utterance.role != asked_in.utterance.role:
        telling = [each for each in before.sentences if _tells_subject(each, before, _MIN_REQUEST_WORDS)]
        others = [each for each in telling if find_names(f"with {each.text}", each.language)] or telling
    own = [each for each in own if _tells_subject(each, asked_in, _MIN_CONTEXT_WORDS)]
    for turn, sentence in (*((asked_in, each) for each in own), *((before, each) for each in others[-1:])):
        if turn:
            words = asked.statement.words | sentence.words
            text = f"{_close(sentence.text)} {asked.statement.text}"
            ids = dict.fromkeys((*asked.message_ids, turn.utterance.message_id))
            return AskedQuestion(statement=replace(asked.statement, text=text, words=words), message_ids=tuple(ids))
    return asked


def _close(sentence: str) -> str:
    text = " ".join(sentence.split())
    return text if text.endswith(_ENDS) else f"{text}."


def _tells_subject(sentence: Statement, turn: ConversationTurn, min_words: int) -> bool:
    """Return whether a sentence before a question can say what that is about."""
    is_question = "question" in sentence.acts
    is_long = len(sentence.words) >= min_words or is_unsegmented(sentence.text[0])
    is_machine_text = any(start <= sentence.start < end for start, end in find_machine_text(turn.utterance.text))
    is_safe = not is_machine_text and not contains_credential(sentence.text)
    is_fit = len(sentence.text) <= _MAX_CONTEXT_CHARS and not sentence.acts & _EMPTY_ACTS
    return is_safe and is_fit and bool(sentence.words) and (is_question or is_long)


def find_exchanges(turn: ConversationTurn) -> tuple[Exchange, ...] | None:
    """Return what a user's short reply says together with the question before it, in order.

    Empty for a reply that leaves the question open; None for any other message, which is judged by its own sentences.
    """
    is_reply = turn.utterance.role == "user" and turn.question is not None and not turn.among_people
    asked = read_question(turn) if is_reply and _is_short(turn) else None
    if asked is None or turn.question is None:
        return None
    if leaves_open(turn.utterance.text):
        return ()
    numbered = tuple(_pair_by_number(turn, asked))
    pairs = numbered or ((asked, _build_answer(turn, 0, len(turn.utterance.text))),)
    found = (_judge(question.statement if numbered else turn.question, question, answer) for question, answer in pairs)
    exchanges = tuple(each for each in found if each)
    return exchanges if numbered else exchanges or None


def find_value_answer(turn: ConversationTurn) -> Exchange | None:
    """Return the value that an assistant gives to a user's question for it, as it found it; None for anything else."""
    first, question = turn.sentences[0] if turn.sentences else None, turn.question
    if first is None or question is None or len(first.text) > _MAX_VALUE_CHARS or not _VALUE.search(first.text):
        return None
    line = _state_value(question, first.text, "")
    asked = read_question(turn) if line and not _has_passed(question) and not is_next_step_question(question) else None
    if asked is None:
        return None
    relevance = _rate(_state(line, question.language), None)
    return Exchange(question=asked, answer=first, relevance=relevance) if relevance.score >= _FAIR else None


def _has_passed(question: Statement) -> bool:
    at_present = compile_phrases("at_present", question.language)
    return (at_present.search(question.text) or _PAST.search(question.text)) is not None


def _is_short(turn: ConversationTurn) -> bool:
    """Return whether a message is a short reply without a question, and without a second thing to say."""
    text = turn.utterance.text.strip()
    is_short = len(text) <= _MAX_CHARS and len(text.split()) <= _MAX_WORDS
    is_short = is_short and not (len(text) > _MAX_SIGNS and is_unsegmented(text[0]))
    says_more = any(len(each.words) > _MAX_OWN_WORDS for each in turn.sentences[1:])
    return is_short and not says_more and not any("question" in each.acts for each in turn.sentences)


def _pair_by_number(turn: ConversationTurn, asked: AskedQuestion) -> Iterator[tuple[AskedQuestion, Statement]]:
    """Yield numbered questions with the answers of the same number, if the message before has several."""
    text = turn.asked_in.utterance.text if turn.asked_in else ""
    answers = {number: (start, end) for number, start, end in _split_numbered(turn.utterance.text)}
    questions = {number: text[start:end] for number, start, end in _split_numbered(text)}
    if len(questions) < 2:
        return
    for number in sorted(answers.keys() & questions.keys()):
        statement = _state(questions[number].strip(), asked.statement.language)
        yield replace(asked, statement=statement), _build_answer(turn, *answers[number])


def _split_numbered(text: str) -> Iterator[tuple[str, int, int]]:
    marks = list(_NUMBERED.finditer(text))
    for mark, after in zip(marks, (*marks[1:], None), strict=False):
        yield mark[1], mark.end(), after.start() if after else len(text)


def _build_answer(turn: ConversationTurn, start: int, end: int) -> Statement:
    text = turn.utterance.text[start:end]
    start += len(text) - len(text.lstrip())
    text = text.strip()
    language = detect_language(text, turn.question.language if turn.question else "en", 1.0)
    sentence = Sentence(text=text, start=start, end=start + len(text))
    return build_statement(sentence, language, among_people=False)


def _state(text: str, language: Language) -> Statement:
    return build_statement(Sentence(text=text, start=0, end=len(text)), language, among_people=False)


def _judge(bare: Statement, asked: AskedQuestion, answer: Statement) -> Exchange | None:
    """Return an exchange that is worth keeping, else None. `bare` is the question without the sentence before it.

    Both the answer as a whole and the statement that it makes with its question are judged.
    """
    question, reply = asked.statement, answer.text.strip(_SIGNS)
    no, value = _NO.match(reply), _strip_yes_or_no(reply)
    is_confirmed = not value or is_acknowledgement(reply)
    stem = question.text.rstrip(_SIGNS)
    made = _rate(_state(stem if is_confirmed else f"{stem}: {reply}", question.language), None)
    own = _rate(answer, bare)
    if is_confirmed:
        action = _find_action(bare)
        is_kept = _sets_rule(action) if action else own.score >= _SLIGHT and made.score >= _VERY and not _acts(bare)
    elif _has_passed(bare) or compile_phrases("at_present", bare.language).search(question.text):
        is_kept = False
    elif is_open_question(bare):
        is_kept = _answers_open(bare, question, value, own.score, made.score)
    else:
        is_factor = value.casefold() in pack_table("factor") and made.score >= _SOME
        is_other = is_factor or (no and len(value.split()) <= _MAX_VALUE_WORDS and not _points(value, bare.language))
        is_kept = bool(is_other) and own.score >= _LITTLE and made.score >= _SOME
    relevance = made if made.score >= own.score else own
    return Exchange(question=asked, answer=answer, relevance=relevance) if is_kept else None


def _answers_open(bare: Statement, question: Statement, value: str, own: float, made: float) -> bool:
    """Return whether an answer to an open question is worth keeping: who asks for a value needs it."""
    if is_next_step_question(bare):
        return own >= _LITTLE and made >= _SOME and "?" not in value
    is_place = value.casefold() in pack_table("choice_place") and made >= _SOME
    is_sure = is_place or bool(find_quantities(value, question.language))
    is_side = has_choice(bare) and re.search(rf"\b{re.escape(value)}\b", bare.text, re.IGNORECASE) is not None
    return own >= (_SLIGHT if is_sure else _LITTLE if is_side else _FAIR)


def _rate(statement: Statement, question: Statement | None) -> Relevance:
    context = StatementContext(statement=statement, index=0, count=1, by_user=True, question=question)
    return judge_relevance(context)


def _find_action(question: Statement) -> Statement | None:
    """Return what a question proposes to do: "use tabs" of "Should I use tabs?"; None for another question."""
    asked = re.match(pack_phrases("asked_action", language=question.language), question.text, re.IGNORECASE)
    return _state(asked["action"], question.language) if asked else None


def _sets_rule(action: Statement) -> bool:
    """Return whether an action is one for all times, and no order for once."""
    return not action.acts & _ORDERS and (bool(action.acts & _RULES) or _rate(action, None).score >= _FAIR)


def _acts(question: Statement) -> bool:
    """Return whether a plain yes to a question only lets something happen, or is no answer to it."""
    return is_next_step_question(question) or is_open_question(question) or _has_passed(question)


def _strip_yes_or_no(reply: str) -> str:
    no = _NO.match(reply)
    return _YES.sub("", reply[no.end() :] if no else reply, count=1).strip(_SIGNS)


def _points(value: str, language: Language) -> bool:
    return compile_phrases("question_context", language).search(value) is not None


_CLAUSES = lazy_compile(r"[,;:—–]\s+")
_QUOTATION_MARKS = '“”«»„「」" '
_NUMBER = lazy_compile(r"(?<![\w.,])(?P<number>\d+(?:[.,]\d+)?)(?: ?(?P<unit>[^\W\d_]+))?")
_CHOICE_OR = lazy_compile(
    lambda: rf",? (?:{pack_phrases('choice_or', edges=True)}) |{pack_phrases('choice_or_joined', edges=False)}",
    re.IGNORECASE,
)


def says_yes_or_no(text: str) -> bool:
    """Return whether an answer opens with a yes or a no, in any language that has them."""
    return _YES.match(text) is not None or _NO.match(text) is not None


def state_answer(question: Statement, answer: str, name: str) -> str:
    """Return a question of an agent and its answer as one line.

    That is the answer behind what was asked for ("Session timeout: 30 minutes"), or what was agreed to ("Use tabs.");
    else the answer behind the quoted question.
    """
    explanation = _explain(question, answer.strip(_SIGNS).casefold())
    answer = f"{answer} ({explanation})" if explanation else answer
    return (
        _state_action(question, answer)
        or _state_value(question, answer, name)
        or quote_question(question, answer, name, _MAX_QUOTED_CHARS)
    )


def quote_question(question: Statement, answer: str, name: str, max_chars: int = _MAX_QUESTION_CHARS) -> str:
    """Return an answer behind the question, or behind the sentence, that it is about; of a long one its last clause."""
    relation = "asked" if "question" in question.acts else "on"
    return f"{name}, {relation} “{_shorten_question(question.text, max_chars)}”: {answer}"


def _explain(question: Statement, answer: str) -> str:
    """Return the side of a choice that an answer points to, or the number that it multiplies; else empty."""
    place, factor = pack_table("choice_place").get(answer), pack_table("factor").get(answer)
    sides = _CHOICE_OR.split(question.text.rstrip(_SIGNS))
    if place and len(sides) == 2:
        return sides[1].strip() if place == "2" else " ".join(sides[0].split()[-len(sides[1].split()) :])
    numbers = list(_NUMBER.finditer(question.text))
    if factor and len(numbers) == 1:
        value = float(numbers[0]["number"].replace(",", ".")) * float(factor)
        return f"{value:g} {numbers[0]['unit'] or ''}".strip()
    return ""


def _state_action(question: Statement, answer: str) -> str:
    """Return what a plain yes agrees to, or in English what a no forbids; empty for another question or answer."""
    asked = re.match(pack_phrases("asked_action", language=question.language), question.text, re.IGNORECASE)
    if asked is None or not says_yes_or_no(answer):
        return ""
    action = " ".join(asked["action"].split())
    no, rest = _NO.match(answer), _strip_yes_or_no(answer)
    end = "。" if is_unsegmented(action[-1]) else "."
    if no is None:
        return "" if rest else f"{action[:1].upper()}{action[1:]}{end}"
    if question.language != "en":
        return ""
    return f"Do not {action}; {rest}." if rest else f"Do not {action}."


def _state_value(question: Statement, answer: str, name: str) -> str:
    """Return the answer behind the subject of a question for a value; empty where something else was asked for."""
    asked = re.match(pack_phrases("asked_subject", language=question.language), question.text, re.IGNORECASE)
    is_short = len(question.words) and len(answer) <= _MAX_VALUE_CHARS and not says_yes_or_no(answer)
    if asked is None or not is_short or (is_english(answer) and not lacks_subject(answer, "en")):
        return ""
    subject = " ".join(asked["subject"].split())
    if question.language == "en":
        subject = re.sub("^the ", "", re.sub("^your ", f"{name}'s ", subject, flags=re.IGNORECASE), flags=re.IGNORECASE)
    subject = subject[:1].upper() + subject[1:]
    return f"{subject}：{answer}" if question.language in {"zh", "ja"} else f"{subject}: {answer}"


def _shorten_question(text: str, max_chars: int) -> str:
    """Return a question on one line; of a long one only the last clause that can stand alone."""
    question = " ".join(text.split()).strip(_QUOTATION_MARKS)
    if len(question) <= max_chars:
        return question
    clauses = [part for part in _CLAUSES.split(question) if len(part) >= _MIN_QUESTION_CHARS]
    return clauses[-1] if clauses and len(clauses[-1]) <= _MAX_QUESTION_CHARS else question
