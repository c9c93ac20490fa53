"""Whether two statements say the same, without a model, and an index of statements that may. Pure.

1. The same words, whatever their case, white space and punctuation: one statement.
2. Never one: other numbers, other names, another yes or no, opposite words, the same words in another order.
3. Else the similarity of their content words, from 0 to 1, against a threshold; a replaced word counts twice.
4. A very high cosine of embeddings, where the caller has it, makes up for words that differ, never for layer 2.

Invariants: symmetrical and deterministic; a statement is one with itself; what layer 2 parts, no threshold joins. The
index leaves out nothing that `is_same_statement` joins by words.
"""

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import lru_cache
from typing import TypeAlias

from ricordo.language.languages import Language, detect_language, is_unsegmented
from ricordo.language.packs import PhraseKind, language_pack, language_packs, pack_phrases, pack_rows, pack_words
from ricordo.language.words import is_stop_word, stem, strip_accents
from ricordo.lazy import dataclass, lazy_compile

__all__ = [
    "DUPLICATE_THRESHOLD",
    "StatementFeatures",
    "StatementIndex",
    "contradicts",
    "extract_features",
    "find_duplicate",
    "is_same_statement",
    "is_similar_word",
    "statement_key",
    "statement_similarity",
]


DUPLICATE_THRESHOLD = 0.7
"""The likeness from which two statements are one; docs/design/profile.md shows what it finds and what it costs."""
_MIN_COSINE = 0.92
_MIN_WORDS_WITH_COSINE = 0.4
_MAX_CHARS = 2_000
_MAX_COMPARED_CHARS = 200
_WORD = lazy_compile(r"[^\W_]+(?:[-_./:@'’&+\\]{1,3}[^\W_]+)*(?:\+\+|#)?|[-+]?\d[\d.,:]*")
_MARKS = ".,;:!?…、。，．：；！？¡¿\"'`()[]{}«»“”„‘’「」『』（）"
_NUMBER = lazy_compile(r"[-+]?\d+(?:[.,:/-]\d+)*")
_NEGATION = lazy_compile(
    lambda: (
        rf"(?<!\w)(?:{pack_phrases('negation', edges=True)})(?!\w)|{pack_phrases('negation_suffix')}"
        rf"|{pack_phrases('negation', edges=False)}"
    ),
    re.IGNORECASE,
)
_COMPARISON = lazy_compile(lambda: pack_phrases("comparison"), re.IGNORECASE)
_ELISION = lazy_compile(lambda: rf"^(?:{pack_phrases('elision')})'(?=\w)", re.IGNORECASE)
_FUZZY_THRESHOLD = 0.6
_MIN_FUZZY_LETTERS = 5
_MAX_FUZZY_WORDS = 8
_MIN_NAMES = 2


@dataclass(frozen=True, kw_only=True)
class _ParsedStatement:
    """What comparing needs: `words` are content words in order, `names` those written as names.

    `bare` holds every word as it stands and as it is compared. `order` are the names that no preposition precedes,
    those that "and" joins together. `wished` says that something is wanted, `compared` that two things are, and
    `unsegmented` is the plain text in a script without spaces, empty in others.
    """

    key: str
    words: tuple[str, ...]
    names: frozenset[str]
    numbers: tuple[str, ...]
    bare: frozenset[str]
    order: tuple[frozenset[str], ...]
    negative: bool
    wished: bool
    compared: bool
    unsegmented: str


@dataclass(frozen=True, kw_only=True)
class StatementFeatures:
    """What two statements have to share, so that they can be looked up by it.

    `numbers` are sorted, and like `negative` and `wished` the same in all that say the same, but for those of one
    `key`.
    """

    key: str
    words: frozenset[str]
    numbers: tuple[str, ...]
    negative: bool
    wished: bool


def extract_features(text: str) -> StatementFeatures:
    """Return by what a statement is compared; without words it is the same as those of its key alone."""
    read = _parse_statement(text[:_MAX_CHARS])
    return StatementFeatures(
        key=read.key,
        words=frozenset(read.words),
        numbers=tuple(sorted(read.numbers)),
        negative=read.negative,
        wished=read.wished,
    )


def is_similar_word(one: str, other: str) -> bool:
    """Tell whether one compared word passes for another: a typing error, or another form of it."""
    return one == other or _dice_similarity(one, other) >= _FUZZY_THRESHOLD


def statement_key(text: str) -> str:
    """Return a text as equal statements share it: without case, and with single spaces and no sentence punctuation.

    A sign that is part of a word stays: C++ is not C#, and -5 is not 5. A text of nothing but marks is its own key.
    """
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    pieces = [word for piece in re.split(r"[\s\u2014、。]+", plain) if (word := piece.strip(_MARKS))]
    return " ".join(pieces) or plain.strip()


def is_same_statement(
    one: str, other: str, *, threshold: float = DUPLICATE_THRESHOLD, meaning: float | None = None
) -> bool:
    """Tell whether two statements say the same. `threshold` is in 0..1, higher is stricter.

    `meaning` is the cosine of their embeddings where the caller has it, None where not.
    """
    left, right = _parse_statement(one[:_MAX_CHARS]), _parse_statement(other[:_MAX_CHARS])
    if left.key == right.key and one[_MAX_CHARS:] == other[_MAX_CHARS:]:
        return bool(left.key)
    if _are_distinct(left, right):
        return False
    alike = _word_similarity(left, right)
    close = alike >= threshold or (meaning is not None and meaning >= _MIN_COSINE and alike >= _MIN_WORDS_WITH_COSINE)
    return close and alike > 0


def find_duplicate(
    text: str, others: Sequence[str], *, threshold: float = DUPLICATE_THRESHOLD, meanings: Sequence[float] | None = None
) -> int | None:
    """Return the place of the statement that says the same as `text`; None when none does.

    The same words go before what is only alike, then the most alike, then the first. `meanings` are cosines, one for
    each of `others`.
    """
    key = statement_key(text)
    best: tuple[float, int] | None = None
    for index, other in enumerate(others):
        meaning = meanings[index] if meanings is not None else None
        if is_same_statement(text, other, threshold=threshold, meaning=meaning):
            alike = 2.0 if statement_key(other) == key else statement_similarity(text, other)
            if best is None or alike > best[0]:
                best = alike, index
    return best[1] if best else None


def statement_similarity(one: str, other: str) -> float:
    """Return how alike the words of two statements are, in 0..1; 0 for what layer 2 parts."""
    left, right = _parse_statement(one[:_MAX_CHARS]), _parse_statement(other[:_MAX_CHARS])
    if left.key == right.key and left.key:
        return 1.0
    return 0.0 if _are_distinct(left, right) else _word_similarity(left, right)


def contradicts(one: str, other: str, *, threshold: float = DUPLICATE_THRESHOLD) -> bool:
    """Tell whether two statements speak of the same and can't both hold.

    All but what layer 2 parts them by is alike: the same sentence with another number or name, denied, or with an
    opposite word.
    """
    left, right = _parse_statement(one[:_MAX_CHARS]), _parse_statement(other[:_MAX_CHARS])
    if left.key == right.key or not left.words or not right.words or not _are_distinct(left, right):
        return False
    parting = (left.names ^ right.names) | _differing_numbers(left, right) | _opposite_words(left, right)
    ours = [word for word in left.words if word not in parting]
    theirs = [word for word in right.words if word not in parting]
    return bool(ours) and bool(theirs) and _shared_ratio(ours, theirs) >= threshold


def _are_distinct(left: _ParsedStatement, right: _ParsedStatement) -> bool:
    """Layer 2: whether the two can't say the same."""
    return (
        left.negative != right.negative
        or left.wished != right.wished
        or sorted(left.numbers) != sorted(right.numbers)
        or (bool(left.names - set(right.words)) and bool(right.names - set(left.words)))
        or bool(_opposite_words(left, right))
        or _is_reordered(left, right)
        or (
            bool(left.unsegmented and right.unsegmented)
            and _has_replacement(left.unsegmented[:_MAX_COMPARED_CHARS], right.unsegmented[:_MAX_COMPARED_CHARS])
        )
    )


def _word_similarity(left: _ParsedStatement, right: _ParsedStatement) -> float:
    return _shared_ratio(left.words, right.words)


def _shared_ratio(left: Sequence[str], right: Sequence[str]) -> float:
    ours, theirs = set(left) - set(right), set(right) - set(left)
    shared = float(len(set(left) & set(right)))
    for word in sorted(ours) if min(len(ours), len(theirs)) <= _MAX_FUZZY_WORDS else ():
        nearest = max(sorted(theirs), key=lambda other: _dice_similarity(word, other), default="")
        if nearest and is_similar_word(word, nearest):
            shared += 1
            ours = ours - {word}
            theirs = theirs - {nearest}
    every = shared + len(ours) + len(theirs) + min(len(ours), len(theirs))
    return shared / every if every else 0.0


@lru_cache(maxsize=16_384)
def _dice_similarity(one: str, other: str) -> float:
    """Return the Dice share of letter pairs of two words; 0 for short ones and those with digits."""
    if min(len(one), len(other)) < _MIN_FUZZY_LETTERS or one[0] != other[0] or not (one.isalpha() and other.isalpha()):
        return 0.0
    ours, theirs = ({word[index : index + 2] for index in range(len(word) - 1)} for word in (one, other))
    return 2 * len(ours & theirs) / (len(ours) + len(theirs))


def _differing_numbers(left: _ParsedStatement, right: _ParsedStatement) -> frozenset[str]:
    return frozenset(left.numbers) ^ frozenset(right.numbers)


def _opposite_words(left: _ParsedStatement, right: _ParsedStatement) -> frozenset[str]:
    """Return the words of a row of opposites of which each text has another side, and none the other's."""
    opposites: set[str] = set()
    for row in _stemmed_opposites():
        ours = [side for side in row if side & left.bare]
        theirs = [side for side in row if side & right.bare]
        if len(ours) == 1 and len(theirs) == 1 and ours != theirs:
            opposites |= (ours[0] & left.bare) | (theirs[0] & right.bare)
    return frozenset(opposites)


def _is_reordered(left: _ParsedStatement, right: _ParsedStatement) -> bool:
    """Tell whether who does what to whom is the other way round, or which of two things goes before the other."""
    if left.compared and right.compared:
        shared = frozenset(left.words) & frozenset(right.words)
        return _keep_shared(left.words, shared) != _keep_shared(right.words, shared)
    shared = (left.names & set(right.words)) | (right.names & set(left.words))
    if len(shared) < _MIN_NAMES:
        return False
    ours, theirs = ([group & shared for group in side.order if group & shared] for side in (left, right))
    return ours != theirs


def _keep_shared(words: Sequence[str], shared: frozenset[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for word in words if word in shared))


def _has_replacement(one: str, other: str) -> bool:
    """Tell whether, in a script without spaces, something that carries meaning took the place of something else."""
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return any(
        tag == "replace" and _has_meaning(one[a:b]) and _has_meaning(other[c:d])
        for tag, a, b, c, d in matcher.get_opcodes()
    )


def _has_meaning(piece: str) -> bool:
    return any(char.isalnum() and not "\u3040" <= char <= "\u309f" for char in piece)


@lru_cache(maxsize=8_192)
def _parse_statement(text: str) -> _ParsedStatement:
    language = detect_language(text)
    plain = _replace_phrases(text)
    words: list[str] = []
    names: set[str] = set()
    order: list[frozenset[str]] = []
    bare_words: set[str] = set()
    before = ""
    for index, match in enumerate(_WORD.finditer(plain)):
        is_sentence_start = not index and not plain[: match.start()].strip(_MARKS + " ")
        for word in _parse_run(match.group(), language):
            bare_words.update((word.bare, word.key))
            if word.is_content:
                words.append(word.key)
                if word.inner or (word.capital and not is_sentence_start):
                    names.add(word.key)
                if before in pack_words("join") and order:
                    order[-1] |= {word.key}
                elif before not in pack_words("before_name"):
                    order.append(frozenset({word.key}))
            before = word.bare
    return _ParsedStatement(
        key=statement_key(text),
        words=tuple(words),
        names=frozenset(names),
        numbers=tuple(word for word in words if _NUMBER.fullmatch(word)),
        bare=frozenset(bare_words),
        order=tuple(order),
        negative=bool(_NEGATION.search(plain)),
        wished=bool(bare_words & pack_words("wish")),
        compared=bool(_COMPARISON.search(plain)),
        unsegmented=statement_key(plain) if not plain.isascii() and any(map(is_unsegmented, plain)) else "",
    )


def _replace_phrases(text: str) -> str:
    """Return a text with phrases as the words that say the same."""
    plain = unicodedata.normalize("NFKC", text).replace("’", "'")
    for pattern, word in _phrase_patterns():
        plain = pattern.sub(word, plain)
    return plain


_SAME_PHRASES: tuple[tuple[PhraseKind, str], ...] = (
    *((kind, kind) for kind in ("daily", "weekly", "monthly", "yearly", "want")),
    ("silent", ""),
)


@lru_cache(maxsize=1)
def _phrase_patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(_phrase_pattern(kind), re.IGNORECASE), word) for kind, word in _SAME_PHRASES)


def _phrase_pattern(kind: PhraseKind) -> str:
    return rf"\b(?:{pack_phrases(kind, edges=True)})\b|{pack_phrases(kind, edges=False)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Word:
    """A word as it is compared: whether it says anything, and whether it has the capitals of a name."""

    bare: str
    key: str
    is_content: bool
    capital: bool = False
    inner: bool = False


@lru_cache(maxsize=16_384)
def _parse_run(run: str, language: Language) -> tuple[_Word, ...]:
    """Return the words of a run."""
    if any(map(is_unsegmented, run)):
        return tuple(_build_word(run[index : index + 2], language) for index in range(max(len(run) - 1, 1)))
    full_word = _ELISION.sub("", run)
    word = re.sub(r"'s$", "", full_word)
    inner = any(char.isupper() for char in word[1:]) or any(char.isdigit() for char in word)
    parsed_word = _build_word(strip_accents(word.casefold()), language)
    capital = word[:1].isupper() and not language_pack(language).capital_nouns
    return (replace(parsed_word, capital=capital, inner=inner and any(char.isalpha() for char in word)),)


def _build_word(bare: str, language: Language) -> _Word:
    silent = bare in pack_words("light") or bare in pack_words("wish") or is_stop_word(bare, language)
    return _Word(bare=bare, key=_word_key(bare, language), is_content=not silent)


@lru_cache(maxsize=16_384)
def _word_key(word: str, language: Language) -> str:
    """Return the one word by which a word is compared, a number word as its digits."""
    stemmed = stem(word, language)
    return _number_keys().get(word) or _synonym_keys().get(word) or _synonym_keys().get(stemmed) or stemmed


@lru_cache(maxsize=1)
def _number_keys() -> dict[str, str]:
    packs = (pack.words.get("count", "").split() for pack in language_packs())
    return {word: str(number) for words in packs for number, word in enumerate(words)}


@lru_cache(maxsize=1)
def _synonym_keys() -> dict[str, str]:
    rows = [row.split() for row in reversed(pack_rows("synonyms"))]
    synonyms = {word: row[0] for row in rows for word in row}
    return {key: stem(synonyms[word]) for word in reversed(synonyms) for key in (stem(word), word)}


@lru_cache(maxsize=1)
def _stemmed_opposites() -> tuple[tuple[frozenset[str], ...], ...]:
    rows = ([side.split() for side in row.split("|")] for row in pack_rows("opposites"))
    return tuple(tuple(frozenset(side) | {stem(word) for word in side} for side in row) for row in rows)


_Partition: TypeAlias = tuple[bool, bool, tuple[str, ...]]
_PairIndex: TypeAlias = defaultdict[tuple[str, str], set[str]]
_ROUNDING = 1e-9


class StatementIndex:
    """Statements by name, to be asked which of them may be the same as a text by `threshold` (0..1)."""

    def __init__(self, threshold: float) -> None:
        """Hold nothing yet."""
        self._threshold = threshold
        self._keys: defaultdict[str, set[str]] = defaultdict(set)
        self._holding: defaultdict[_Partition, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._looks = _SimilarWords()

    def add(self, name: str, text: str) -> None:
        """Hold a statement; one of a name that is there already is held beside it."""
        compared = extract_features(text)
        self._keys[compared.key].add(name)
        postings = self._holding[_partition_of(compared)]
        for word in compared.words:
            self._looks.add(word)
            postings[word].add(name)

    def find_candidates(self, text: str) -> set[str]:
        """Return the names of the statements that may say the same as `text`, those with the same words included."""
        compared = extract_features(text)
        candidates = set(self._keys.get(compared.key, ()))
        postings = self._holding.get(_partition_of(compared))
        if not postings or not compared.words:
            return candidates
        rows = [
            set().union(*(postings.get(other, ()) for other in {word, *self._looks.find_similar(word)}))
            for word in compared.words
        ]
        # alike by t means that t of the words are shared, so at most the rest of them are not
        shared = max(math.ceil(self._threshold * len(rows) - _ROUNDING), 1)
        return candidates.union(*sorted(rows, key=len)[: len(rows) - shared + 1])


class _SimilarWords:
    """The words that are known, by the pairs of letters in them.

    Looking for what is like a word is what takes long, so it is done for words that somebody asks for, and no other.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._asked: dict[str, set[str]] = {}
        self._holding: _PairIndex = defaultdict(set)
        self._asking: _PairIndex = defaultdict(set)

    def add(self, word: str) -> None:
        """Know a word."""
        if word in self._known:
            return
        for other in _search_similar(word, self._asking) if self._asked else ():
            self._asked[other].add(word)
        self._known.add(word)
        _index_word(word, self._holding)

    def find_similar(self, word: str) -> Collection[str]:
        """Return the words that look like this one, known or not."""
        similar_words = self._asked.get(word)
        if similar_words is None:
            similar_words = _search_similar(word, self._holding)
            if word in self._known:
                self._asked[word] = similar_words
                _index_word(word, self._asking)
        return similar_words


def _search_similar(word: str, holding: _PairIndex) -> set[str]:
    candidates: set[str] = set().union(*(holding.get(pair, ()) for pair in _letter_pairs(word)))
    return {other for other in candidates if other != word and is_similar_word(word, other)}


def _index_word(word: str, holding: _PairIndex) -> None:
    for pair in _letter_pairs(word):
        holding[pair].add(word)


def _letter_pairs(word: str) -> Iterable[tuple[str, str]]:
    """Return the pairs of letters of a word, each with the letter it begins with."""
    return {(word[0], word[index : index + 2]) for index in range(len(word) - 1)}


def _partition_of(compared: StatementFeatures) -> _Partition:
    return compared.negative, compared.wished, compared.numbers
