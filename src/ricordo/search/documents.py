"""Pure decisions about documents and queries.

Which files are documents and of which sort, which of them changed since they were read, and which chunks pass the
filters of a query.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from zlib import adler32, crc32

from ricordo.guard import has_secret
from ricordo.search.contract import Chunk, DocumentSort, Query
from ricordo.search.terms import QueryWords
from ricordo.storage.contract import FileInfo
from ricordo.workspace.layout import session_from_stem

__all__ = [
    "MAX_LITERAL_CHARS",
    "Checksum",
    "DocumentChanges",
    "DocumentFingerprint",
    "PreparedQuery",
    "SearchDocument",
    "classify_document",
    "contains_text",
    "find_changes",
    "matches_filters",
    "to_milliseconds",
]


_PATH_SORTS: tuple[tuple[re.Pattern[str], DocumentSort], ...] = (
    (re.compile(r"MEMORY\.md"), "curated"),
    (re.compile(r"memory/topics/.+\.md"), "curated"),
    (re.compile(r"memory/(?:archive/)?\d{4}-\d\d-\d\d\.md"), "ledger"),
    (re.compile(r"memory/long/(?P<entry>[^/]+)\.md"), "long"),
    (re.compile(r"sessions/(?P<session>[^/]+)\.md"), "session"),
    (re.compile(r"agents/[^/]+/sessions/(?P<session>[^/]+)\.log\.jsonl"), "transcript"),
    (re.compile(r"large_tool_results/(?:(?P<session>[^/]+)/)?.+"), "result"),
    (re.compile(r"(?:.*/)?[^./][^/]*\.md"), "note"),
    (re.compile(r"(?:users/[^/]+/)?(?:agents/[^/]+/)?profile\.json"), "profile"),
)


_MAY_BE_SECRET = re.compile(r"\w{16}|[=:]")
"""What no name of a secret lacks, and few other names have: the guard looks at these."""


@dataclass(frozen=True, kw_only=True)
class SearchDocument:
    """A file of the workspace that is searched; `session` and `entry_id` are what its name says, else empty."""

    path: str
    sort: DocumentSort
    session: str = ""
    entry_id: str = ""


def classify_document(path: str, folder: str) -> SearchDocument | None:
    """Return the document at `path` of the workspace `folder` (empty: the root itself), None when it is none.

    A file whose name holds a secret is none, as the index and what is found would hold it too.
    """
    if folder and not path.startswith(f"{folder}/"):
        return None
    inside = path[len(folder) + 1 :] if folder else path
    if _MAY_BE_SECRET.search(inside) and _has_secret_cached(inside):
        return None
    for pattern, sort in _PATH_SORTS:
        match = pattern.fullmatch(inside)
        if match:
            named = match.groupdict()
            session = session_from_stem(named.get("session") or "")
            return SearchDocument(path=path, sort=sort, session=session, entry_id=named.get("entry") or "")
    return None


@lru_cache(maxsize=65_536)
def _has_secret_cached(path: str) -> bool:
    return has_secret(path)


MAX_LITERAL_CHARS = 100
"""The most characters of a query that is looked for as it was typed when no word of it is found."""
_FINE_TICK_NS = 50_000_000
_COARSE_TICK_NS = 2_000_000_000
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class Checksum:
    """A digest that can be carried on over appended bytes: CRC-32 and Adler-32 of everything so far."""

    crc: int = 0
    adler: int = 1

    def extend(self, data: bytes) -> "Checksum":
        """Return the checksum of what was summed so far followed by `data`."""
        return Checksum(crc=crc32(data, self.crc), adler=adler32(data, self.adler))

    def __str__(self) -> str:
        """Write it as 16 hex digits."""
        return f"{self.crc:08x}{self.adler:08x}"

    @classmethod
    def parse(cls, text: str) -> "Checksum":
        """Read what `str` wrote."""
        return cls(crc=int(text[:8], 16), adler=int(text[8:], 16))


@dataclass(frozen=True, kw_only=True)
class DocumentFingerprint:
    """What the index knows of a document: its size, times of change and checksum, and when it was read."""

    path: str
    sort: DocumentSort
    size: int
    modified_ns: int
    checked_ns: int
    checksum: Checksum
    lines: int
    changed_ns: int = 0

    def matches(self, info: FileInfo) -> bool:
        """Tell whether the file is surely the one that was read.

        A file read in the same tick of its file system's clock in which it was written may have been written again
        since.
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
    """One search: what is looked for, its words, how many matches at most, and documents that are passed over."""

    query: Query
    words: QueryWords
    limit: int
    skipped_paths: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class DocumentChanges:
    """Documents that have to be looked at, the smallest first, and paths of documents that are gone."""

    changed: tuple[tuple[SearchDocument, FileInfo], ...]
    removed: tuple[str, ...]
    unchanged: int


def find_changes(
    known: Mapping[str, DocumentFingerprint], files: Sequence[FileInfo], folder: str, sorts: Collection[DocumentSort]
) -> DocumentChanges:
    """Compare what the index knows with the files that there are, as far as documents of `sorts` go."""
    changed: list[tuple[SearchDocument, FileInfo]] = []
    present: set[str] = set()
    for info in files:
        document = classify_document(info.path, folder)
        if document is None or document.sort not in sorts:
            continue
        present.add(info.path)
        before = known.get(info.path)
        if before is None or not before.matches(info):
            changed.append((document, info))
    changed.sort(key=lambda pair: (pair[1].size, pair[1].path))
    gone = tuple(sorted(path for path, row in known.items() if row.sort in sorts and path not in present))
    return DocumentChanges(changed=tuple(changed), removed=gone, unchanged=len(present) - len(changed))


def matches_filters(chunk: Chunk, query: Query) -> bool:
    """Tell whether the filters of `query` let `chunk` through."""
    return (
        chunk.sort in query.sorts
        and (chunk.sort != "profile" or chunk.path == query.profile)
        and (not query.kinds or chunk.kind in query.kinds)
        and (not query.tags or bool(set(chunk.tags) & set(query.tags)))
        and (not query.session or chunk.session == query.session)
        and chunk.path.startswith(query.path)
        and (query.since is None or (chunk.time is not None and chunk.time >= query.since))
        and (query.until is None or (chunk.time is not None and chunk.time < query.until))
    )


def to_milliseconds(time: datetime | None) -> int:
    """Return a time in whole milliseconds, which is what the index keeps of it; 0 for none."""
    return 0 if time is None else round(time.timestamp() * 1000)


def contains_text(content: str, text: str) -> bool:
    """Tell whether `content` holds `text` as it was typed, upper and lower case being the same.

    Where the text begins or ends with an ASCII letter or digit, so does a word: 17 is not found in 2017.
    """
    wanted, held = text.strip().lower(), content.lower()
    if not wanted or len(wanted) > MAX_LITERAL_CHARS:
        return False
    at = held.find(wanted)
    while at >= 0:
        before, after = held[at - 1 : at] if at else "", held[at + len(wanted) : at + len(wanted) + 1]
        if not (_is_inside_word(before, wanted[0]) or _is_inside_word(wanted[-1], after)):
            return True
        at = held.find(wanted, at + 1)
    return False


def _is_inside_word(left: str, right: str) -> bool:
    return (left + right).isascii() and left.isalnum() and right.isalnum()
