"""The one-line title of a conversation, and its tags. Pure.

Words that occur in several messages count most, names and identifiers more than others, everyday words not at all.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise

from ricordo.guard.scanner import SECRET_MARK
from ricordo.language import (
    Language,
    content_words,
    detect_acts,
    detect_language,
    find_names,
    is_stop_word,
    is_unsegmented,
    split_sentences,
    split_words,
    stem,
    strip_opener,
)
from ricordo.language.packs import pack_phrases, pack_words
from ricordo.language.words import is_generic
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages import Message, get_mark
from ricordo.messages.tokens.budget import clip_line
from ricordo.workspace.markdown import SPEAKER_LABEL

__all__ = ["DESCRIPTION_CHARS", "POINTER_CHARS", "extract_tags", "extract_title", "shorten_statement"]


_MAX_TITLE_CHARS = 80
_MAX_TAGS = 5
_MIN_LETTERS = 3
_NAME_WEIGHT = 1.6
_EARLY_WEIGHT = 0.6
_OPENING_WEIGHT = 0.9
_TASK_FACTOR = 1.25
_PRONOUN_FACTOR = 0.6
_PRONOUN_OPENING = lazy_compile(lambda: rf"^(?:{pack_phrases('pronoun_opening')})\b", re.IGNORECASE)
_TOKEN = lazy_compile(r"[^\W_][\w-]*")
_MAX_READ_CHARS = 4_000
_MIN_CONTENT_WORDS = 3
_NOISE_ACTS = frozenset({"thanks", "greeting", "farewell", "praise", "reaction", "wish", "acknowledgement"})
_SEPARATORS = frozenset("/\\.:@_'’")


@dataclass
class _TopicWords:
    """The words of a conversation: the weight of each, by its folded form, and its spellings."""

    weights: dict[str, float] = field(default_factory=dict)
    spellings: dict[str, Counter[str]] = field(default_factory=dict)


DESCRIPTION_CHARS, POINTER_CHARS = 100, 130
"""The maximum lengths of a memory in short: as the description of a topic, and in a line of its own below it."""
_CLAUSE_END = lazy_compile(r"[,;:] |[，；：]| [–—-] ")
_REQUEST = lazy_compile(r"“[^”]*”: ")
_FACT = lazy_compile(r"`[^`]+`|\w*\d[\w.,:%-]*|\w+[/_.@]\w[\w/.@-]*")
_FACT_WEIGHT = 2.0
_FACT_NAME_WEIGHT = 1.5
_WORD_WEIGHT = 0.5
_QUESTION_FACTOR = 0.2
_START_BONUS = 3.0
_OPENING_BONUS = 1.0
_END_BONUS = 0.5
_POINTER_PENALTY = 2.0
_MIN_STATED_WORDS = 2
"""With fewer content words, a clause only names a topic, or agrees."""


@dataclass(frozen=True, kw_only=True)
class _Clause:
    """A clause between two positions of a text; whether a sentence starts or ends there, and how much it states."""

    start: int
    end: int
    is_first: bool
    is_last: bool
    score: float


def shorten_statement(content: str, limit: int) -> str:
    """Return the part of a memory that states most, in one line of at most `limit` characters.

    A longer memory is shortened to consecutive clauses: those with the most names, numbers, dates and content words,
    preferably from the beginning of a sentence, which has the subject. `…` marks where a sentence was cut. A speaker
    and a quoted request before the statement are left out, but for the request that a mere "yes" confirms.
    """
    text = " ".join(_strip_lead(content).split())
    if len(text) <= limit:
        return text
    clauses = _split_clauses(text)
    best, span = -1.0, (0, 0)
    for at, first in enumerate(clauses):
        score = _START_BONUS * first.is_first + _OPENING_BONUS * (at == 0)
        for end, last in enumerate(clauses[at:], at):
            if last.end - first.start > limit - 2 and end > at:
                break
            score += last.score
            if score + _END_BONUS * last.is_last > best:
                best, span = score + _END_BONUS * last.is_last, (at, end)
    first, last = clauses[span[0]], clauses[span[1]]
    start, end = first.start, last.end
    if end - start > limit - 2:
        space = text.rfind(" ", start + limit // 2, start + limit - 2)
        end, last = (space if space > 0 else start + limit - 2), replace(last, is_last=False)
    return f"{'' if first.is_first else '…'}{text[start:end].rstrip(' ,;:，；：–—-')}{'' if last.is_last else '…'}"


def _strip_lead(content: str) -> str:
    label = SPEAKER_LABEL.match(content)
    text = content[label.end() :] if label else content
    request = _REQUEST.match(text)
    stated = text[request.end() :] if request else text
    # "yes" alone states nothing
    if len(set(content_words(stated))) < _MIN_STATED_WORDS and (quoted := content.find("“")) >= 0:
        return content[quoted + 1 :].replace("”: ", " ", 1)
    return stated


def _split_clauses(text: str) -> list[_Clause]:
    names = find_names(text)
    clauses: list[_Clause] = []
    for sentence in split_sentences(text):
        start = text.find(sentence.text, clauses[-1].end if clauses else 0)
        start, length = (start, len(sentence.text)) if start >= 0 else (clauses[-1].end if clauses else 0, 0)
        inner = [start + match.end() for match in _CLAUSE_END.finditer(sentence.text)]
        bounds = [start, *inner, start + length]
        for before, after in pairwise(bounds):
            part = text[before:after]
            facts = sum(1 for _ in _FACT.finditer(part))
            # the first word of a sentence has a capital anyway
            named = sum(before + (before == start) <= name.start < after for name in names)
            words = len(set(content_words(part)))
            score = _FACT_WEIGHT * facts + _FACT_NAME_WEIGHT * named + _WORD_WEIGHT * words
            if sentence.text.endswith(("?", "？")):
                score *= _QUESTION_FACTOR
            is_first, is_last = before == start, after == start + length
            if is_first and (words < _MIN_STATED_WORDS or _PRONOUN_OPENING.match(part)):
                score -= _POINTER_PENALTY
            clauses.append(_Clause(start=before, end=after, is_first=is_first, is_last=is_last, score=score))
    return clauses


def extract_title(messages: Sequence[Message]) -> str:
    """Return one line of at most 80 characters about the topic of the messages; empty if there is no text.

    It is the sentence of a user, else of the assistant, with the most topics, preferring early ones; the first words if
    no sentence qualifies.
    """
    spoken = _spoken_messages(messages)
    topics = _collect_topics(spoken)
    people = [message for message in spoken if message.role == "user"] or spoken
    best, title = -1.0, people[0].text if people else ""
    for index, message in enumerate(people):
        for text in _sentences(message):
            score = _score_sentence(text, topics.weights) * _position_factor(text, index, len(people))
            if score > best:
                best, title = score, text
    return clip_line(title.rstrip(".!,;: "), _MAX_TITLE_CHARS)


def extract_tags(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return up to five lower-case words for the topics, the most important first; empty if there are no topics."""
    topics = _collect_topics(_spoken_messages(messages))
    ranked = sorted(topics.weights, key=lambda each: (-topics.weights[each], each))
    return tuple(_common_spelling(topics.spellings, each) for each in ranked[:_MAX_TAGS])


def _spoken_messages(messages: Sequence[Message]) -> list[Message]:
    return [
        message
        for message in messages
        if message.role in {"user", "assistant"} and get_mark(message) in {None, "cut"} and message.text.strip()
    ]


def _collect_topics(messages: Sequence[Message]) -> _TopicWords:
    topics = _TopicWords()
    people = {part.casefold() for message in messages if message.name for part in message.name.split()}
    for message in messages:
        text = message.text[:_MAX_READ_CHARS]
        language = detect_language(text)
        names = {stem(word.casefold(), language) for name in find_names(text, language) for word in name.text.split()}
        own = _topic_words(message, language)
        for folded, written in own.items():
            if any(name.startswith(written) for name in people):
                continue
            topics.weights[folded] = topics.weights.get(folded, 0.0) + (_NAME_WEIGHT if folded in names else 1.0)
            topics.spellings.setdefault(folded, Counter())[written] += 1
    return topics


def _topic_words(message: Message, language: Language) -> Mapping[str, str]:
    """Return the topic words of a message, each once: the folded form and the spelling."""
    text = SECRET_MARK.sub(" ", message.text[:_MAX_READ_CHARS])
    prose = " ".join(sentence.text for sentence in split_sentences(text) if sentence.kind != "code")
    tokens = (token.casefold() for token in _TOKEN.findall(prose))
    words = (word for token in tokens for word in (split_words(token) if is_unsegmented(token[0]) else (token,)))
    return {stem(word, language): word for word in words if _is_topic(word, language)}


def _is_topic(word: str, language: Language) -> bool:
    if len(word) < _MIN_LETTERS and word.isascii():
        return False
    if (
        word[0].isdigit()
        or not _SEPARATORS.isdisjoint(word)
        or word in pack_words("untitled")
        or stem(word, "en") in pack_words("untitled")
    ):
        return False
    return not is_stop_word(word, language) and not is_stop_word(word, "en") and not is_generic(word, language)


def _sentences(message: Message) -> Iterator[str]:
    for sentence in split_sentences(SECRET_MARK.sub("[secret]", message.text[:_MAX_READ_CHARS])):
        text = strip_opener(sentence.text)
        plain = sentence.kind in {"prose", "item", "heading"} and not detect_acts(text) & _NOISE_ACTS
        if plain and len(frozenset(content_words(text))) >= _MIN_CONTENT_WORDS:
            yield text


def _score_sentence(text: str, weights: Mapping[str, float]) -> float:
    """Return the weight of the topics in a sentence relative to its length, so neither a word nor a paragraph wins."""
    excerpt = text[:_MAX_TITLE_CHARS]
    own = frozenset(content_words(excerpt))
    return sum(weights.get(word, 0.0) for word in own) / (6 + len(own)) if own else 0.0


def _position_factor(text: str, index: int, count: int) -> float:
    """Return how well a sentence suits as a title: openings, tasks and decisions rank higher, back references lower."""
    early = 1 + _EARLY_WEIGHT * (1 - index / count) + _OPENING_WEIGHT * (index == 0)
    task_factor = _TASK_FACTOR if detect_acts(text) & {"request", "decision", "goal"} else 1.0
    return early * task_factor * (_PRONOUN_FACTOR if _PRONOUN_OPENING.search(text) else 1.0)


def _common_spelling(written: Mapping[str, Counter[str]], folded: str) -> str:
    """Return the most frequent spelling of a topic, the shorter one of two equally frequent."""
    return min(written[folded], key=lambda word: (-written[folded][word], len(word), word))
