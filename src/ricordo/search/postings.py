"""The terms of rows as arrays: segments, which never change.

The postings and columns of a segment are arrays that are searched without unpacking. Only counts of 0 to 3 matter to
the score, so a term's count in the row and its count with the neighbours share a byte.

Invariants: a segment depends on its rows alone; its terms are sorted by their UTF-8 bytes, and the rows of a term are
ascending.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from typing import NamedTuple

import numpy as np

from ricordo.lazy import dataclass
from ricordo.search.contract import Array

__all__ = [
    "COLUMNS",
    "CONTEXT_COUNT_SHIFT",
    "MAX_COUNT",
    "NAME_COLUMNS",
    "OWN_COUNT_MASK",
    "IndexedRow",
    "Postings",
    "Segment",
    "SegmentBuilder",
]

OWN_COUNT_MASK, CONTEXT_COUNT_SHIFT = 3, 2
"""The bits of a count that are the row's own, and how far the count with neighbours is shifted."""
MAX_COUNT = 3
"""The highest count of a term in a row that matters to the score."""
_PREFIX_BYTES = 8
_MOST_OCCURRENCES = 2_000_000
NAME_COLUMNS = ("kind", "tags", "session", "speaker")
"""The columns of names, each as an index into a list."""
COLUMNS: dict[str, str] = {
    "number": "<i8", "document": "<i4", "line": "<i4", "part": "<i4", "place": "<i8", "twin": "<i8", "time": "<i8",
    "entry": "<i8", "shape": "|u1", "own": "<u4", "around": "<u4", "kind": "<i4", "tags": "<i4", "session": "<i4",
    "speaker": "<i4", "meaning": "<i8", "length": "<u4",
}  # fmt: skip
"""The columns of a segment. `shape` is that of `documents.chunk_shape`, `length` a number of characters, `own` and
`around` are numbers of terms. `kind`, `tags`, `session` and `speaker` are indexes into the lists of names."""


class IndexedRow(NamedTuple):
    """A row to index: times in milliseconds, `text` and `context_text` are terms joined by spaces."""

    number: int
    document: int
    line: int
    part: int
    place: int
    twin: int
    time: int
    entry: int
    shape: int
    kind: str
    tags: str
    session: str
    text: str
    context_text: str
    meaning: int = 0
    speaker: str = ""
    length: int = 0


@dataclass(frozen=True, kw_only=True)
class Postings:
    """The terms of a segment: `ends` splits `vocabulary` into terms, `starts` splits `rows` and `counts` by term.

    `heads` are the first eight bytes of each term as a number, so that a search decodes only a few terms.
    """

    vocabulary: bytes
    ends: Array
    starts: Array
    rows: Array
    counts: Array
    heads: "array[int]"

    @classmethod
    def create(cls, vocabulary: bytes, ends: Array, starts: Array, rows: Array, counts: Array) -> "Postings":
        """Return the postings with their heads."""
        begins = np.concatenate((np.zeros(1, dtype=np.int64), ends))[:-1]
        places = begins[:, np.newaxis] + np.arange(_PREFIX_BYTES)
        letters = np.frombuffer(vocabulary + bytes(_PREFIX_BYTES), dtype=np.uint8)[places]
        letters[places >= np.asarray(ends)[:, np.newaxis]] = 0
        heads = array("Q", letters.view(">u8").astype(np.uint64).tobytes())
        return cls(vocabulary=vocabulary, ends=ends, starts=starts, rows=rows, counts=counts, heads=heads)

    def find(self, term: str) -> tuple[Array, Array]:
        """Return the rows that contain a term, ascending, and their counts; both are empty if there are none."""
        key = _encode_term(term)
        at = self._first_index(key)
        if at == len(self.ends) or self._term(at) != key:
            return self.rows[:0], self.counts[:0]
        return self._rows(at)

    def find_prefix(self, start: str) -> Iterable[tuple[Array, Array]]:
        """Yield rows and counts of each term with the prefix `start`."""
        key = _encode_term(start)
        for at in range(self._first_index(key), len(self.ends)):
            if not self._term(at).startswith(key):
                return
            yield self._rows(at)

    def _rows(self, at: int) -> tuple[Array, Array]:
        start, end = int(self.starts[at]), int(self.starts[at + 1])
        return self.rows[start:end], self.counts[start:end]

    def _first_index(self, key: bytes) -> int:
        head = int.from_bytes(key[:_PREFIX_BYTES].ljust(_PREFIX_BYTES, b"\0"), "big")
        low = bisect_left(self.heads, head)
        return bisect_left(range(len(self.ends)), key, low, bisect_right(self.heads, head, low), key=self._term)

    def _term(self, at: int) -> bytes:
        return self.vocabulary[int(self.ends[at - 1]) if at else 0 : int(self.ends[at])]


@dataclass(frozen=True, kw_only=True)
class Segment:
    """The columns, names and postings of a range of rows with ascending numbers."""

    columns: dict[str, Array]
    names: "Mapping[str, Sequence[str]]"
    postings: Postings

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.columns["number"])


class SegmentBuilder:
    """Builds a segment from rows that are added in batches; it stores only their numeric form.

    Building takes some tens of bytes for each occurrence of a term, so one that `is_full` should get no more rows.
    """

    def __init__(self) -> None:
        """Start with no rows."""
        self._terms: defaultdict[str, int] = defaultdict(count().__next__)
        self._names = {name: defaultdict[str, int](count().__next__) for name in NAME_COLUMNS}
        self._fields: list[Array] = []
        self._posting_keys: list[Array] = []
        self._count = 0

    def add(self, rows: Sequence[IndexedRow]) -> None:
        """Add rows; their numbers must be higher than all before."""
        if not rows:
            return
        own = [row.text.split() for row in rows]
        around = [row.context_text.split() for row in rows]
        kinds, tags, sessions, speakers = self._names.values()
        fields = [
            (
                *row[:9], len(mine), len(beside), kinds[row.kind], tags[row.tags], sessions[row.session],
                speakers[row.speaker], row.meaning, row.length,
            )
            for row, mine, beside in zip(rows, own, around, strict=True)
        ]  # fmt: skip
        self._fields.append(np.array(fields, dtype=np.int64))
        for beside, terms in enumerate((own, around)):
            self._posting_keys.append(self._build_posting_keys(terms, beside))
        self._count += len(rows)

    @property
    def is_full(self) -> bool:
        """Whether the rows have as many terms as one segment should have."""
        return sum(map(len, self._posting_keys)) >= _MOST_OCCURRENCES

    def build(self) -> Segment:
        """Return the segment of all rows; nothing can be added after that."""
        fields = np.concatenate(self._fields) if self._fields else np.zeros((0, len(COLUMNS)), dtype=np.int64)
        columns = {
            name: np.ascontiguousarray(fields[:, at]).astype(kind) for at, (name, kind) in enumerate(COLUMNS.items())
        }
        names = {column: tuple(names) for column, names in self._names.items()}
        return Segment(columns=columns, names=names, postings=self._build_postings())

    def _build_posting_keys(self, terms: Sequence[Sequence[str]], beside: int) -> Array:
        """Return for each term occurrence one number of the term, the row, and whether it is from a neighbour."""
        lengths = np.fromiter(map(len, terms), dtype=np.int64, count=len(terms))
        rows = np.repeat(np.arange(self._count, self._count + len(terms), dtype=np.int64), lengths)
        held = map(self._terms.__getitem__, chain.from_iterable(terms))
        numbers = np.fromiter(held, dtype=np.int64, count=len(rows))
        return (numbers << 32) | (rows << 1) | beside

    def _build_postings(self) -> Postings:
        written = [_encode_term(term) for term in self._terms]
        order = sorted(range(len(written)), key=written.__getitem__)
        place = np.zeros(len(written), dtype=np.int64)
        place[order] = np.arange(len(written))
        held = np.concatenate(self._posting_keys) if self._posting_keys else np.zeros(0, dtype=np.int64)
        self._posting_keys.clear()
        if len(held):
            numbers = place[held >> 32]
            numbers <<= 32
            held &= 0xFFFFFFFF
            held |= numbers
            del numbers
            held.sort()
        posting = held >> 1
        first = np.flatnonzero(np.diff(posting, prepend=-1))
        every = np.diff(first, append=len(held))
        own = every - np.add.reduceat(held & 1, first) if len(first) else every
        ordered = [written[at] for at in order]
        return Postings.create(
            vocabulary=b"".join(ordered),
            ends=np.cumsum(np.fromiter(map(len, ordered), dtype=np.uint32, count=len(ordered)), dtype=np.uint32),
            starts=np.searchsorted(posting[first] >> 31, np.arange(len(ordered) + 1)).astype(np.uint32),
            rows=(posting[first] & 0x7FFFFFFF).astype(np.uint32),
            counts=(np.minimum(own, MAX_COUNT) | (np.minimum(every, MAX_COUNT) << CONTEXT_COUNT_SHIFT)).astype(
                np.uint8
            ),
        )


def _encode_term(term: str) -> bytes:
    return term.encode("utf-8", "surrogatepass")
