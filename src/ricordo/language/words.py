"""Text to words in any script: stop words, stems, and how many words two texts share.

A run of a script without spaces becomes its overlapping bigrams. An identifier, path or compound is kept whole and
followed by its parts. Words are case-folded and NFKC-normalised. Stop words are closed classes only, and a few fillers.

English gets the inflectional steps of Porter's stemmer (1a, 1b, 1c, 5a; M. F. Porter, "An algorithm for suffix
stripping", 1980) after a table of irregular forms; its derivational steps are left out on purpose. German and the
Romance languages get a light stemmer in the manner of J. Savoy (2006). Keys are for comparing, not for showing.

Measures of shared words are set arithmetic only: no weights and no corpus. Each is in 0..1, higher is nearer; an empty
side scores 0.

Invariants: one pass over disjoint character classes, so the time is linear in the text. `stem` is never empty for a
non-empty word, and a word that is not plain letters comes back unchanged.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import chain, repeat

from ricordo.language.languages import Language, detect_language, is_unsegmented, is_unsegmented_language
from ricordo.language.packs import language_pack, pack_rows, pack_table, pack_words
from ricordo.language.sentences import split_sentences
from ricordo.lazy import lazy_compile

__all__ = [
    "GENERIC_WEIGHT",
    "containment",
    "content_words",
    "coverage",
    "drop_questions",
    "irregular_forms",
    "irregular_pasts",
    "is_generic",
    "is_stop_word",
    "jaccard",
    "overlap",
    "repeats_sentence",
    "split_identifier",
    "split_words",
    "stem",
    "strip_accents",
    "text_similarity",
]


GENERIC_WEIGHT = 0.2
"""How much a generic word weighs, of what any other word that is as rare weighs."""


def is_stop_word(word: str, language: Language = "en") -> bool:
    """Say whether a case-folded word (or bigram) is grammar in that language.

    A single Latin letter is one in every language; a single digit is content.
    """
    stop_words = pack_words("stop", language)
    if is_unsegmented_language(language):
        return all(char in stop_words for char in word) or word in pack_words("stop", "en")
    return word in stop_words or (len(word) == 1 and word.isascii() and word.isalpha())


@cache
def is_generic(word: str, language: Language) -> bool:
    """Tell whether any form of `word` is generic in that language, or in English, which is mixed into all.

    Most questions hold generic words (`use`, `call`, `kind`) and few answers repeat them: "Which database do we use?"
    is answered by "The main database is PostgreSQL", and is not by "We use Fastify".
    """
    return any(
        stem(word, candidate_language) in _generic_stems(candidate_language)
        for candidate_language in (language, *_MIXED_IN)
    )


_MIXED_IN: tuple[Language, ...] = ("en",)


@cache
def _generic_stems(language: Language) -> frozenset[str]:
    return frozenset(stem(word, language) for word in pack_words("generic", language))


# Letters and digits of every script, plus the combining signs that str.isalnum leaves out of Indic, Semitic and
# South-East Asian words. The danda (U+0964, U+0965) is a full stop and stays outside.
_CHAR = (
    r"[^\W_]|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
    r"\u0e31-\u0e4e\u0eb1-\u0ecd\u102b-\u103e\u17b4-\u17d3]"
)
_WORD = lazy_compile(rf"(?:{_CHAR})+(?:[-_./:@'’&+\\]{{1,3}}(?:{_CHAR})+)*(?:\+\+|#)?")
# what the same finds in a text of ASCII alone, for much less
_ASCII_WORD = lazy_compile(r"[A-Za-z0-9]+(?:[-_./:@'&+\\]{1,3}[A-Za-z0-9]+)*(?:\+\+|#)?")
_SEPARATORS = lazy_compile(r"[-_./:@'’&+\\#]+")
_CAMEL = lazy_compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_POSSESSIVE = lazy_compile(r"['’]s$", re.IGNORECASE)
_MAX_RUN_CHARS = 200


def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a text in order, repeats kept, case-folded; empty for a text without letters or digits.

    A compound is followed by its parts; characters of unsegmented scripts come as bigrams (a lone one as itself).
    A single run of more than 200 characters is a blob (base64, minified code) and gives nothing.
    """
    return tuple(chain.from_iterable(map(_split_run, _split_runs(text))))


def split_identifier(name: str) -> tuple[str, ...]:
    """Return the parts of an identifier, path or compound in order, case kept; one part when it has no seams.

    Seams are punctuation and changes from lower to upper case: `parseHTTPHeader` gives parse, HTTP, Header.
    """
    parts: list[str] = []
    for piece in _SEPARATORS.split(name):
        camel = _CAMEL.findall(piece) if piece.isascii() and _has_inner_capital(piece) else [piece]
        parts.extend(part for part in camel if part)
    return tuple(parts)


def content_words(text: str, language: Language | None = None) -> tuple[str, ...]:
    """Return the words that carry meaning, in order, repeats kept: stop words out, inflection folded.

    Two texts are comparable when both were read in the same language; `None` detects it from the text (English when
    unsure). Empty for a text of stop words only.
    """
    text_language = language or detect_language(text)
    return tuple(chain.from_iterable(map(_content_words_of_run, _split_runs(text), repeat(text_language))))


def _split_runs(text: str) -> Sequence[str]:
    """Return what stands between white space and most signs, without blobs."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    runs: list[str] = (_ASCII_WORD if plain.isascii() else _WORD).findall(plain)
    if len(plain) <= _MAX_RUN_CHARS:
        return runs
    return [run for run in runs if len(run) <= _MAX_RUN_CHARS or is_unsegmented(run[0])]


@lru_cache(maxsize=32_768)
def _content_words_of_run(run: str, language: Language) -> tuple[str, ...]:
    return tuple(stem(word, language) for word in _split_run(run) if not is_stop_word(word, language))


@lru_cache(maxsize=16_384)
def _split_run(run: str) -> tuple[str, ...]:
    if any(is_unsegmented(char) for char in run):
        return tuple(_split_mixed_run(run))
    plain = _POSSESSIVE.sub("", run.replace("’", "'"))
    folded = plain.casefold()
    parts = split_identifier(plain)
    if len(parts) < 2 or _is_contraction(plain):
        return (folded,)
    return (folded, *(part.casefold() for part in parts if len(part) > 1 or part.isdigit()))


def _split_mixed_run(run: str) -> list[str]:
    """Cut a run that holds unsegmented characters: bigrams there, ordinary words between them."""
    pieces: list[str] = []
    start = 0
    for end in range(1, len(run) + 1):
        if end < len(run) and is_unsegmented(run[end]) == is_unsegmented(run[start]):
            continue
        piece = run[start:end]
        if not is_unsegmented(piece[0]):
            pieces.extend(word.casefold() for word in split_identifier(piece))
        elif len(piece) == 1:
            pieces.append(piece)
        else:
            pieces.extend(piece[i : i + 2] for i in range(len(piece) - 1))
        start = end
    return pieces


def _has_inner_capital(word: str) -> bool:
    return any(char.isupper() for char in word[1:]) and any(char.islower() for char in word)


def _is_contraction(word: str) -> bool:
    """Say whether the only seam is an apostrophe (don't, l'eau keep their French or English parts apart elsewhere)."""
    return "'" in word and _SEPARATORS.sub("", word).isalpha() and len(word.rpartition("'")[2]) <= 2


@cache
def irregular_pasts() -> frozenset[str]:
    """Return the past and participle forms of English that differ from their base."""
    return frozenset(form for base, *forms in _verb_rows() for form in forms if form != base) | pack_words(
        "auxiliary_past"
    )


@cache
def irregular_forms() -> Mapping[str, str]:
    """Return each irregular form of English with its base form, all case-folded."""
    verbs = {form: base for base, *forms in _verb_rows() for form in forms if form != base}
    return {**verbs, **pack_table("irregular")}


def _verb_rows() -> Iterator[list[str]]:
    return map(str.split, pack_rows("verb_forms"))


_VOWELS = frozenset("aeiou")
_MEASURE = lazy_compile(r"[aeiouy]+[^aeiouy]+")
_MIN_STEM_LETTERS = 4


@lru_cache(maxsize=32_768)
def stem(word: str, language: Language = "en") -> str:
    """Return the comparison key of a case-folded word; the word itself when no rule applies."""
    if not word.isalpha():
        return word
    if language == "en":
        return _stem_english(word) if word.isascii() else strip_accents(word)
    endings = _light_endings(language)
    if not endings:
        return _stem_english(word) if word.isascii() else word
    return _stem_light(strip_accents(word), endings)


def strip_accents(text: str) -> str:
    """Return the text with combining marks removed from Latin letters and ß as ss; never empty for a non-empty text."""
    plain = "".join(char for char in unicodedata.normalize("NFD", text) if not "\u0300" <= char <= "\u036f")
    return plain.replace("ß", "ss") or text


@cache
def _light_endings(language: Language) -> tuple[str, ...]:
    return tuple(language_pack(language).words.get("ending", "").split())


def _stem_light(word: str, endings: Sequence[str]) -> str:
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM_LETTERS:
            return word.removesuffix(ending)
    return word


def _stem_english(word: str) -> str:
    if len(word) <= 2:
        return word
    word = irregular_forms().get(word, word)
    word = _replace_final_y(_strip_past(_strip_plural(word)))
    return _strip_final_e(word)


def _strip_plural(word: str) -> str:
    if word.endswith("sses") or (word.endswith("ies") and len(word) > 4):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _strip_past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 1 and _has_vowel(stem):
            return _repair_stem(stem)
    return word


def _repair_stem(stem: str) -> str:
    """Give a stripped stem its e back (creat) or take its doubled letter (runn), as Porter's step 1b does."""
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] not in "lsz" and stem[-1] not in _VOWELS:
        return stem[:-1]
    if _measure(stem) == 1 and _is_short_syllable(stem):
        return stem + "e"
    return stem


def _replace_final_y(word: str) -> str:
    return word[:-1] + "i" if word.endswith("y") and len(word) > 2 and _has_vowel(word[:-1]) else word


def _strip_final_e(word: str) -> str:
    if not word.endswith("e"):
        return word
    stem = word[:-1]
    measure = _measure(stem)
    return stem if measure > 1 or (measure == 1 and not _is_short_syllable(stem)) else word


def _measure(stem: str) -> int:
    """Porter's m: how many vowel runs are followed by a consonant run."""
    return len(_MEASURE.findall(stem))


def _has_vowel(stem: str) -> bool:
    return any(char in _VOWELS for char in stem) or "y" in stem[1:]


def _is_short_syllable(stem: str) -> bool:
    """Porter's *o: ends consonant, vowel, consonant, the last not w, x or y."""
    if len(stem) < 3:
        return False
    first, middle, last = stem[-3], stem[-2], stem[-1]
    return first not in _VOWELS and (middle in _VOWELS or middle == "y") and last not in _VOWELS and last not in "wxy"


def containment(part: Collection[str], whole: Collection[str]) -> float:
    """Return the share of the distinct words of `part` that `whole` holds too."""
    part_words = set(part)
    return len(part_words & set(whole)) / len(part_words) if part_words else 0.0


def overlap(left: Collection[str], right: Collection[str]) -> float:
    """Return the shared words over the smaller side (Szymkiewicz-Simpson): 1 when one holds all of the other."""
    first, second = set(left), set(right)
    return len(first & second) / min(len(first), len(second)) if first and second else 0.0


def jaccard(left: Collection[str], right: Collection[str]) -> float:
    """Return the shared words over all words: 1 only for equal sets."""
    first, second = set(left), set(right)
    return len(first & second) / len(first | second) if first and second else 0.0


def text_similarity(left: str, right: str, language: Language | None = None) -> float:
    """Return the Jaccard similarity of the content words of two texts."""
    return jaccard(content_words(left, language), content_words(right, language))


_MIN_SHARED_WORDS = 3
"""Fewer words in common are chance."""
_MIN_SHARE = 0.6
_MAX_COMPARED_CHARS = 4_000
"""Characters of each text that are read."""
_MIN_COVERED_WORDS = 2
_WINDOW_SENTENCES = 2
_PREFIX_LETTERS = 5


def repeats_sentence(text: str, source: str) -> bool:
    """Tell whether a sentence of `text` has most of its words, three at least, from one sentence of `source`."""
    return SourceText(source).is_repeated_by(SourceText(text))


class SourceText:
    """A text whose sentences are compared with those of many others; what is needed is computed once, when it is."""

    def __init__(self, text: str) -> None:
        """Compare the beginning of `text`."""
        self._text = text[:_MAX_COMPARED_CHARS]

    def is_repeated_by(self, other: "SourceText") -> bool:
        """Tell whether a sentence of `other` has most of its words, three at least, from one sentence of this text."""
        return any(
            len(words & source) >= max(_MIN_SHARED_WORDS, _MIN_SHARE * len(words))
            for words in other._sentence_words
            for source in self._sentence_words
        )

    @cached_property
    def _sentence_words(self) -> list[frozenset[str]]:
        return _sentence_words(self._text)


def coverage(text: str, sources: Sequence[str]) -> float:
    """Return which share of the words of a sentence of `text` stands together in one of `sources`, at most.

    Together is in two sentences that follow each other; what only asks tells nothing. Words count that begin alike.
    Fewer than two words are none.
    """
    statements = _sentence_prefixes(text)
    windows = [
        frozenset[str]().union(*source_sentences[index : index + _WINDOW_SENTENCES])
        for source_sentences in (_sentence_prefixes(drop_questions(source)) for source in sources)
        for index in range(len(source_sentences))
    ]
    shares = (
        len(words & window) / len(words)
        for words in statements
        for window in windows
        if len(words & window) >= _MIN_COVERED_WORDS
    )
    return max(shares, default=0.0)


def drop_questions(text: str) -> str:
    """Return the sentences of a text that do not ask."""
    sentences = (each.text for each in split_sentences(text[:_MAX_COMPARED_CHARS]))
    return "\n".join(each for each in sentences if not each.rstrip().endswith(("?", "？")))


def _sentence_words(text: str) -> list[frozenset[str]]:
    word_sets = (frozenset(content_words(each.text)) for each in split_sentences(text[:_MAX_COMPARED_CHARS]))
    return [words for words in word_sets if len(words) >= _MIN_SHARED_WORDS]


def _sentence_prefixes(text: str) -> list[frozenset[str]]:
    """Return the beginnings of the words of each sentence."""
    sentences = split_sentences(text[:_MAX_COMPARED_CHARS])
    prefix_sets = (frozenset(word[:_PREFIX_LETTERS] for word in content_words(each.text)) for each in sentences)
    return [words for words in prefix_sets if words]
