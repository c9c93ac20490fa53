"""Pure functions on documents, queries and their terms.

They decide which files are documents and of which sort, which documents changed since they were read, and which chunks
match the filters of a query. A chunk is stemmed by the rules of its own language. The language of a short query is
uncertain, so each of its words is represented by a group of terms, its stems in every language. Hangul is indexed by
word and by pairs of syllables.

Invariant: a term contains no white space and no quote, so terms joined by spaces can be split again.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import chain, pairwise, repeat
from zlib import adler32, crc32

from ricordo.guard import has_secret
from ricordo.language import LANGUAGES, Language, detect_language, is_stop_word, script_of, split_words, stem
from ricordo.language.dates import month_numbers
from ricordo.language.languages import is_unsegmented
from ricordo.language.packs import pack_phrases
from ricordo.language.words import GENERIC_WEIGHT, is_generic
from ricordo.lazy import dataclass, lazy_compile
from ricordo.search.contract import RANKING_FIELD_MARKERS, SUPERSEDES_MARKER, Chunk, DocumentType, Query
from ricordo.storage.contract import FileInfo
from ricordo.workspace.layout import session_from_stem

__all__ = [
    "CURATED_QUERY",
    "ENDS_WITH_QUESTION",
    "HAS_RANKING_FIELDS",
    "IS_CALL",
    "IS_ENTRY",
    "IS_MESSAGE",
    "IS_QUESTION",
    "MAX_CURATED",
    "MAX_LITERAL_CHARS",
    "SUPERSEDES",
    "Checksum",
    "DocumentChanges",
    "DocumentFingerprint",
    "PreparedQuery",
    "QueryWords",
    "SearchDocument",
    "chunk_shape",
    "classify_document",
    "contains_text",
    "ends_with_question",
    "find_changes",
    "is_tool_call",
    "matches_filters",
    "neighbour_terms",
    "only_asks",
    "own_terms",
    "query_words",
    "to_milliseconds",
]


_FUNCTION_JOINED = lazy_compile(lambda: pack_phrases("function_joined"))
_DERIVED_NOUN = lazy_compile(r"([a-z]{4,})ment|([a-z]{3,}[st])ion")
_PATH_AND_LINE = lazy_compile(r"(.*[./].*):\d+")
_NEIGHBOUR_CHARS = 400
_MAX_QUERY_CHARS = 2_000
_MAX_QUERY_WORDS = 48


@dataclass(frozen=True, kw_only=True)
class QueryWords:
    """The distinct content words of a query in order, each with a group of terms and a weight.

    `weights` are in 0..1: 1 for an informative word, less for a generic one or a pair that touches a function word.
    """

    words: tuple[str, ...] = ()
    groups: tuple[frozenset[str], ...] = ()
    weights: tuple[float, ...] = ()

    @property
    def terms(self) -> tuple[str, ...]:
        """All terms, sorted."""
        return tuple(sorted(frozenset().union(*self.groups)))


def own_terms(chunk: Chunk) -> tuple[str, ...]:
    """Return the terms of a chunk itself: its speaker, heading, tags, time and text."""
    # the heading of a ledger is a date, and any small number would match its day
    about = (term for term in _text_terms(" ".join((chunk.speaker, chunk.heading, *chunk.tags))) if not term.isdigit())
    return (*about, *_time_terms(chunk.time), *_text_terms(chunk.content))


def neighbour_terms(chunk: Chunk) -> tuple[str, ...]:
    """Return the terms of its neighbours; only the nearest 400 characters of each are used."""
    return (*_text_terms(chunk.before[-_NEIGHBOUR_CHARS:]), *_text_terms(chunk.after[:_NEIGHBOUR_CHARS]))


@lru_cache(maxsize=256)
def query_words(text: str) -> QueryWords:
    """Return the content words of a query; empty for a text of stop words or punctuation, or an empty text.

    Only the first 2,000 characters and the first 48 distinct words are used. In a script without spaces, pairs of
    characters inside a function word are no words, and pairs that only touch one are weak.
    """
    shortened = text[:_MAX_QUERY_CHARS]
    language = detect_language(shortened)
    content_pairs, touching_pairs = _joined_pairs(shortened)
    weak_words = touching_pairs - content_pairs
    groups: dict[frozenset[str], str] = {}
    for word in _split_words(split_words(shortened)):
        is_pair = len(word) > 1 and is_unsegmented(word[0])
        if not is_stop_word(word, language) and not (is_pair and word not in content_pairs | touching_pairs):
            groups.setdefault(_word_forms(word, language), word)
    chosen = list(groups.items())[:_MAX_QUERY_WORDS]
    return QueryWords(
        words=tuple(word for _, word in chosen),
        groups=tuple(group for group, _ in chosen),
        weights=tuple(
            GENERIC_WEIGHT if is_generic(word, language) or word in weak_words else 1.0 for _, word in chosen
        ),
    )


def _joined_pairs(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the pairs of characters of scripts without spaces outside of function words, and those that touch one."""
    if text.isascii():
        return frozenset(), frozenset()
    normal = unicodedata.normalize("NFKC", text)
    function_at = [0] * len(normal)
    for number, match in enumerate(_FUNCTION_JOINED.finditer(normal), 1):
        function_at[match.start() : match.end()] = [number] * len(match[0])
    content, touching = set[str](), set[str]()
    for at, (left, right) in enumerate(pairwise(function_at)):
        pair = normal[at : at + 2]
        # one character of another script with an ending in hiragana is an inflected word
        is_alone = at == 0 or bool(function_at[at - 1]) or not is_unsegmented(normal[at - 1])
        is_inflected = is_alone and script_of(pair[0]) == "han" and script_of(pair[1]) == "hiragana"
        if not left and (not right or is_inflected):
            content.add(pair)
        elif left != right:
            touching.add(pair)
    return frozenset(content), frozenset(touching)


def _text_terms(text: str) -> tuple[str, ...]:
    language = detect_language(text)
    return tuple(chain.from_iterable(map(_word_terms, split_words(text), repeat(language))))


@lru_cache(maxsize=32_768)
def _word_terms(word: str, language: Language) -> tuple[str, ...]:
    return tuple(_normalize_word(each, language) for each in _split_words((word,)) if not is_stop_word(each, language))


@lru_cache(maxsize=4_096)
def _word_forms(word: str, language: Language) -> frozenset[str]:
    """Return the terms of a word in every language, as its language is uncertain.

    "Lives" has the stem of "life", so "live" also has the term of that form.
    """
    terms = {_normalize_word(word, tongue) for tongue in (language, *LANGUAGES)}
    if word.isascii() and word.endswith("ve"):
        terms.add(_normalize_word(f"{word}s", "en"))
    return frozenset(terms)


def _split_words(found: Iterable[str]) -> Iterable[str]:
    """Yield the words; a Hangul word is followed by its pairs of syllables, a path with a line number by the path."""
    for found_word in found:
        # the full-text table splits words at the straight apostrophe
        word = found_word.replace("'", "’")
        yield word
        if len(word) > 2 and not word.isascii() and script_of(word[0]) == "hangul":
            yield from (word[at : at + 2] for at in range(len(word) - 1))
        elif (place := _PATH_AND_LINE.fullmatch(word)) is not None:
            yield place[1]


@lru_cache(maxsize=32_768)
def _normalize_word(word: str, language: Language) -> str:
    """Return the term of a word: its stem; nouns in -ment or -ion get the stem of their verb."""
    stemmed = stem(word, language)
    noun = _DERIVED_NOUN.fullmatch(stemmed)
    return stem(noun[1] or noun[2], language) if noun else stemmed


@lru_cache(maxsize=12)
def _month_name(number: int) -> str:
    """Return the English name of a month, by which times are indexed."""
    return next(word for word, each in month_numbers().items() if each == number)


def _time_terms(time: datetime | None) -> tuple[str, ...]:
    """Return year, month and date; the day of the month alone is left out, or any small number would match it."""
    if time is None:
        return ()
    return (f"{time:%Y}", stem(_month_name(time.month)), f"{time:%Y-%m}", f"{time:%Y-%m-%d}")


_PATH_TYPES: tuple[tuple[re.Pattern[str], DocumentType], ...] = (
    (lazy_compile(r"MEMORY\.md"), "curated"),
    (lazy_compile(r"memory/topics/.+\.md"), "curated"),
    (lazy_compile(r"memory/(?:archive/)?\d{4}-\d\d-\d\d\.md"), "ledger"),
    (lazy_compile(r"memory/long/(?P<entry>[^/]+)\.md"), "long"),
    (lazy_compile(r"sessions/(?P<session>[^/]+)\.md"), "session"),
    (lazy_compile(r"agents/[^/]+/sessions/(?P<session>[^/]+)\.log\.jsonl"), "transcript"),
    (lazy_compile(r"large_tool_results/(?:(?P<session>[^/]+)/)?.+"), "result"),
    (lazy_compile(r"(?:.*/)?[^./][^/]*\.md"), "note"),
    (lazy_compile(r"(?:users/[^/]+/)?(?:agents/[^/]+/)?profile\.json"), "profile"),
)


_MAY_BE_SECRET = lazy_compile(r"\w{16}|[=:]")
"""A pattern that every name with a secret matches, and few other names; only these are checked for secrets."""


@dataclass(frozen=True, kw_only=True)
class SearchDocument:
    """A file of the workspace that is searched; `session` and `entry_id` are taken from its name, else empty."""

    path: str
    document_type: DocumentType
    session: str = ""
    entry_id: str = ""


def classify_document(path: str, folder: str) -> SearchDocument | None:
    """Return the document at `path` of the workspace `folder` (empty: the root itself), None if it is not one.

    A file whose name contains a secret is not a document, as the index and the results would contain the name.
    """
    if folder and not path.startswith(f"{folder}/"):
        return None
    inside = path[len(folder) + 1 :] if folder else path
    if _MAY_BE_SECRET.search(inside) and _has_secret_cached(inside):
        return None
    for pattern, sort in _PATH_TYPES:
        match = pattern.fullmatch(inside)
        if match:
            groups = match.groupdict()
            session = session_from_stem(groups.get("session") or "")
            return SearchDocument(path=path, document_type=sort, session=session, entry_id=groups.get("entry") or "")
    return None


@lru_cache(maxsize=65_536)
def _has_secret_cached(path: str) -> bool:
    return has_secret(path)


CURATED_QUERY = Query(text="", document_types=("curated",))
"""The query for curated memory, newest first."""
MAX_CURATED = 2_000
"""The maximum number of chunks of curated memory."""
MAX_LITERAL_CHARS = 100
"""The maximum number of characters of a query that is searched as typed if none of its words is found."""
_RECORDED_TYPES = frozenset({"transcript", "result"})
_FINE_TICK_NS = 50_000_000
_COARSE_TICK_NS = 2_000_000_000
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class Checksum:
    """A checksum that can be extended by appended bytes: CRC-32 and Adler-32 of everything so far."""

    crc: int = 0
    adler: int = 1

    def extend(self, data: bytes) -> "Checksum":
        """Return the checksum of the data so far followed by `data`."""
        return Checksum(crc=crc32(data, self.crc), adler=adler32(data, self.adler))

    def __str__(self) -> str:
        """Return it as 16 hex digits."""
        return f"{self.crc:08x}{self.adler:08x}"

    @classmethod
    def parse(cls, text: str) -> "Checksum":
        """Parse the result of `str`."""
        return cls(crc=int(text[:8], 16), adler=int(text[8:], 16))


@dataclass(frozen=True, kw_only=True)
class DocumentFingerprint:
    """The state of an indexed document: its size, modification times and checksum, and when it was read."""

    path: str
    document_type: DocumentType
    size: int
    modified_ns: int
    checked_ns: int
    checksum: Checksum
    lines: int
    changed_ns: int = 0

    def matches(self, info: FileInfo) -> bool:
        """Return whether the file is certainly unchanged since it was read.

        A file that was read within the clock resolution of its last write may have been written again since.
        """
        coarse = self.modified_ns % _SECOND_NS == 0
        settled = abs(self.checked_ns - self.modified_ns) > (_COARSE_TICK_NS if coarse else _FINE_TICK_NS)
        return (
            settled
            and self.size == info.size
            and self.modified_ns == info.modified_ns
            and self.changed_ns == info.changed_ns
        )


@dataclass(frozen=True, kw_only=True)
class PreparedQuery:
    """One search: the query, its words, the maximum number of matches, and the documents to skip."""

    query: Query
    words: QueryWords
    limit: int
    skipped_paths: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class DocumentChanges:
    """Documents that may have changed, paths of deleted documents, and the number of unchanged ones.

    The changed ones are memories before what was recorded of sessions, and of each the smallest first.
    """

    changed: tuple[tuple[SearchDocument, FileInfo], ...]
    removed: tuple[str, ...]
    unchanged: int


def find_changes(
    known: Mapping[str, DocumentFingerprint], files: Sequence[FileInfo], folder: str, sorts: Collection[DocumentType]
) -> DocumentChanges:
    """Compare the indexed documents of these `sorts` with the files."""
    changed: list[tuple[SearchDocument, FileInfo]] = []
    present: set[str] = set()
    for info in files:
        document = classify_document(info.path, folder)
        if document is None or document.document_type not in sorts:
            continue
        present.add(info.path)
        before = known.get(info.path)
        if before is None or not before.matches(info):
            changed.append((document, info))
    changed.sort(key=lambda pair: (pair[0].document_type in _RECORDED_TYPES, pair[1].size, pair[1].path))
    removed = tuple(sorted(path for path, row in known.items() if row.document_type in sorts and path not in present))
    return DocumentChanges(changed=tuple(changed), removed=removed, unchanged=len(present) - len(changed))


def matches_filters(chunk: Chunk, query: Query) -> bool:
    """Return whether `chunk` matches the filters of `query`."""
    return (
        chunk.document_type in query.document_types
        and (chunk.document_type != "profile" or chunk.path == query.profile)
        and (not query.kinds or chunk.kind in query.kinds)
        and (not query.tags or bool(set(chunk.tags) & set(query.tags)))
        and (not query.session or chunk.session == query.session)
        and chunk.path.startswith(query.path)
        and (query.since is None or (chunk.time is not None and chunk.time >= query.since))
        and (query.until is None or (chunk.time is not None and chunk.time < query.until))
    )


def to_milliseconds(time: datetime | None) -> int:
    """Return a time in whole milliseconds, the resolution of the index; 0 for None."""
    return 0 if time is None else round(time.timestamp() * 1000)


def contains_text(content: str, text: str) -> bool:
    """Return whether `content` contains `text` as typed, ignoring case.

    If the text begins or ends with an ASCII letter or digit, it must match at a word boundary: 17 is not found in 2017.
    """
    needle, haystack = text.strip().lower(), content.lower()
    if not needle or len(needle) > MAX_LITERAL_CHARS:
        return False
    position = haystack.find(needle)
    while position >= 0:
        before, after = (
            haystack[position - 1 : position] if position else "",
            haystack[position + len(needle) : position + len(needle) + 1],
        )
        if not (_is_inside_word(before, needle[0]) or _is_inside_word(needle[-1], after)):
            return True
        position = haystack.find(needle, position + 1)
    return False


def _is_inside_word(left: str, right: str) -> bool:
    return (left + right).isascii() and left.isalnum() and right.isalnum()


IS_MESSAGE, IS_ENTRY, HAS_RANKING_FIELDS, ENDS_WITH_QUESTION, IS_QUESTION, IS_CALL, SUPERSEDES = (
    1 << bit for bit in range(7)
)
"""What a chunk is, as bits of its shape: a message, an entry, one with fields that its ranking has to read, a text that
ends with a question or is nothing else, the call of a tool, an entry that supersedes another one."""
_QUESTION_END_CHARS = 200
_QUESTION_MARK = lazy_compile("[？؟]")
_TOOL_CALL = lazy_compile(r'^[\w.:-]+ \{"', re.MULTILINE)


def chunk_shape(chunk: Chunk) -> int:
    """Return what a chunk is, as far as a ranking has to know before it reads the text."""
    if chunk.markup:
        has_fields = any(map(chunk.markup.__contains__, RANKING_FIELD_MARKERS))
        return IS_ENTRY | HAS_RANKING_FIELDS * has_fields | SUPERSEDES * (SUPERSEDES_MARKER in chunk.markup)
    return (
        IS_MESSAGE * bool(chunk.message)
        | ENDS_WITH_QUESTION * ends_with_question(chunk.content)
        | IS_QUESTION * only_asks(chunk.content)
        | IS_CALL * is_tool_call(chunk.speaker, chunk.content)
    )


def ends_with_question(content: str) -> bool:
    """Return whether a text ends with a question."""
    end = content[-_QUESTION_END_CHARS:]
    return "?" in end or (not end.isascii() and _QUESTION_MARK.search(end) is not None)


def only_asks(content: str) -> bool:
    """Return whether a text is one question without a sentence before it."""
    return content.endswith(("?", "？")) and not any(end in content for end in (". ", "! ", "。", "！"))


def is_tool_call(speaker: str, content: str) -> bool:
    """Return whether a message of an assistant contains the call of a tool."""
    return speaker == "assistant" and '{"' in content and _TOOL_CALL.search(content) is not None
