"""The corpus: all rows of an index in memory, as segments and a small tail of new rows.

A row is identified by its position, which never changes; removed rows are only marked. A piece of a long entry has the
fields of the bullet that points to it. The postings and columns of a segment are arrays that are searched without
unpacking. Only counts of 0 to 3 matter to the score, so a term's count in the row and its count with the neighbours
share a byte.

Invariants: numbers ascend with positions, and rows are only added at the end. A segment depends on its rows alone; its
terms are sorted by their UTF-8 bytes, and the rows of a term are ascending.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, count
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ricordo.lazy import dataclass
from ricordo.search.bm25 import K1, USUAL_LENGTH, B
from ricordo.search.contract import ALL_DOCUMENT_TYPES

__all__ = [
    "COLUMNS",
    "CONTEXT_COUNT_SHIFT",
    "HAS_RANKING_FIELDS",
    "IS_ENTRY",
    "IS_MESSAGE",
    "NO_TIME",
    "OWN_COUNT_MASK",
    "Array",
    "Corpus",
    "IndexedRow",
    "Postings",
    "Segment",
    "SegmentBuilder",
    "pack_counts",
]


Array: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[Any]]"
NO_TIME = -(2**63)
"""The time of a row without a time."""
OWN_COUNT_MASK, CONTEXT_COUNT_SHIFT = 3, 2
"""The bits of a count that are the row's own, and how far the count with neighbours is shifted."""
_MAX_COUNT = 3
_PREFIX_BYTES = 8
_MOST_OCCURRENCES = 2_000_000
COLUMNS: dict[str, str] = {
    "number": "<i8", "document": "<i4", "line": "<i4", "part": "<i4", "place": "<i8", "twin": "<i8", "time": "<i8",
    "entry": "<i8", "shape": "|u1", "own": "<u4", "around": "<u4", "kind": "<i4", "tags": "<i4", "session": "<i4",
    "meaning": "<i8",
}  # fmt: skip
"""The columns of a segment. `shape` is 1 for a message, 2 for an entry and 6 for an entry with ranking fields. `own`
and `around` are numbers of terms. `kind`, `tags` and `session` are indexes into the lists of names."""


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
    kinds: tuple[str, ...]
    tags: tuple[str, ...]
    sessions: tuple[str, ...]
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
        self._names: tuple[defaultdict[str, int], ...] = tuple(defaultdict(count().__next__) for _ in range(3))
        self._fields: list[Array] = []
        self._posting_keys: list[Array] = []
        self._count = 0

    def add(self, rows: Sequence[IndexedRow]) -> None:
        """Add rows; their numbers must be higher than all before."""
        if not rows:
            return
        own = [row.text.split() for row in rows]
        around = [row.context_text.split() for row in rows]
        kinds, tags, sessions = self._names
        fields = [
            (*row[:9], len(mine), len(beside), kinds[row.kind], tags[row.tags], sessions[row.session], row.meaning)
            for row, mine, beside in zip(rows, own, around, strict=True)
        ]
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
        kinds, tags, sessions = (tuple(names) for names in self._names)
        return Segment(columns=columns, kinds=kinds, tags=tags, sessions=sessions, postings=self._build_postings())

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
            counts=(np.minimum(own, _MAX_COUNT) | (np.minimum(every, _MAX_COUNT) << CONTEXT_COUNT_SHIFT)).astype(
                np.uint8
            ),
        )


def pack_counts(own: int, every: int) -> int:
    """Return the counts of a term in a row, alone and with its neighbours, packed in one byte."""
    return min(own, _MAX_COUNT) | (min(every, _MAX_COUNT) << CONTEXT_COUNT_SHIFT)


def _encode_term(term: str) -> bytes:
    return term.encode("utf-8", "surrogatepass")


IS_MESSAGE, IS_ENTRY, HAS_RANKING_FIELDS = 1, 2, 4
_LONGEST_TAIL = 8_192
_FILTER_CACHE_SIZE = 16
_MOST_PARTS, _MAX_DEAD_SHARE = 8, 0.25
_ROWS_TO_A_PART = 10_000
"""An index of many rows has several segments, so that building one takes no more memory than a small process has."""
_NAME_COLUMNS = ("kind", "tags", "session")
_TYPES: tuple[str, ...] = ALL_DOCUMENT_TYPES
_LONG, _PROFILE = _TYPES.index("long"), _TYPES.index("profile")
_COLUMN_TYPES = {
    **{name: kind for name, kind in COLUMNS.items() if name not in {"own", "around"}},
    "place": "<i4", "own": "<f8", "every": "<f8", "live": "|b1",
}  # fmt: skip


class Corpus:
    """The rows of one index. `own` and `every` are the BM25 norms of a row, alone and with its neighbours.

    `changed_documents` are the documents whose rows changed; its consumer removes them from the set. `revision`
    increases with every change.
    """

    def __init__(self) -> None:
        """Start with no rows."""
        self.count = 0
        self.dead_count = 0
        self.revision = 0
        self.places = 0
        self.has_neighbours = False
        self.paths: dict[int, str] = {}
        self.changed_documents: set[int] = set()
        self.names: dict[str, dict[str, int]] = {name: {} for name in _NAME_COLUMNS}
        self._sorts: Array = np.zeros(0, dtype=np.int8)
        self._profiles: list[int] = []
        self._hidden_cache: dict[str, tuple[int, ...]] = {}
        self._columns: dict[str, Array] = {name: np.zeros(0, dtype=kind) for name, kind in _COLUMN_TYPES.items()}
        self._parts: list[tuple[int, Postings]] = []
        self._tail = _TailPostings()
        self._tail_start = 0
        self._place_keys, self._place_ids = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
        self._new_places: dict[int, int] = {}
        self._long_entry_rows: dict[int, list[int]] = {}
        self._path_order: Array | None = None
        self._filter_cache: dict[tuple[tuple[str, ...], str, frozenset[str], str], Array | None] = {}

    def __getitem__(self, column: str) -> Array:
        """Return a column."""
        return self._columns[column][: self.count]

    @property
    def max_number(self) -> int:
        """The highest row number; 0 without rows."""
        return int(self._columns["number"][self.count - 1]) if self.count else 0

    @property
    def is_fragmented(self) -> bool:
        """Whether it has so many parts or removed rows that it should be loaded again."""
        most_parts = _MOST_PARTS + self.count // _ROWS_TO_A_PART
        return len(self._parts) > most_parts or self.dead_count > _MAX_DEAD_SHARE * self.count

    @property
    def sorts(self) -> Array:
        """The sort of each document by document number, as an index into all sorts."""
        return self._sorts

    @property
    def path_order(self) -> Array:
        """The rank of each document by document number, when they are sorted by path."""
        if self._path_order is None:
            self._path_order = np.zeros(len(self._sorts), dtype=np.int64)
            self._path_order[sorted(self.paths, key=self.paths.__getitem__)] = np.arange(len(self.paths))
        return self._path_order

    def hidden_documents(self, profile: str) -> tuple[int, ...]:
        """Return the numbers of the documents that are profiles other than the one at the path `profile`."""
        if profile not in self._hidden_cache:
            self._hidden_cache[profile] = tuple(at for at in self._profiles if self.paths[at] != profile)
        return self._hidden_cache[profile]

    def document_mask(
        self, sorts: Collection[str], path: str, skipped: Collection[str], profile: str = ""
    ) -> "Array | None":
        """Return a mask by document number: of these sorts, below `path` and not skipped; None if all are.

        Profiles other than the one at the path `profile` are excluded.
        """
        cache_key = (tuple(sorts), path, frozenset(skipped), profile)
        if cache_key not in self._filter_cache:
            passing = np.isin(self._sorts, [_TYPES.index(sort) for sort in sorts])
            if path or skipped:
                inside = [at for at, own in self.paths.items() if own.startswith(path) and own not in skipped]
                passing &= np.isin(np.arange(len(passing)), inside)
            passing[list(self.hidden_documents(profile))] = False
            if len(self._filter_cache) >= _FILTER_CACHE_SIZE:
                self._filter_cache.clear()
            self._filter_cache[cache_key] = None if passing[np.array([*self.paths], dtype=np.int64)].all() else passing
        return self._filter_cache[cache_key]

    def add_documents(self, documents: Iterable[tuple[int, str, str]]) -> None:
        """Add documents as (number, path, sort); they must be added before their rows."""
        new = list(documents)
        if not new:
            return
        self._sorts = _resize(self._sorts, max(number for number, _, _ in new) + 1)
        self._path_order, self._filter_cache, self._hidden_cache = None, {}, {}
        self.revision += 1
        for number, path, sort in new:
            self.paths[number] = path
            self._sorts[number] = _TYPES.index(sort)
            if self._sorts[number] == _PROFILE:
                self._profiles.append(number)

    def find_postings(self, term: str) -> list[tuple[Array, Array]]:
        """Return the positions that contain a term and their counts, in ascending parts; empty if there are none."""
        found = [(base, *postings.find(term)) for base, postings in self._parts]
        if self.count > self._tail_start:
            found.append((self._tail_start, *self._tail.find(term)))
        # index arrays are converted to int64 once here instead of at each use
        return [(rows.astype(np.int64) + base, counts) for base, rows, counts in found if len(rows)]

    def visible_mask(self, rows: Array, hidden: Collection[int]) -> Array:
        """Return a mask of these rows: not removed, and not in one of the `hidden` documents."""
        seen: Array = self["live"][rows]
        if not hidden:
            return seen
        visible = np.ones(len(self._sorts), dtype=np.bool_)
        visible[list(hidden)] = False
        return seen & visible[self["document"][rows]]

    def has_relative(self, start: str, hidden: Collection[int] = ()) -> bool:
        """Return whether a visible row itself contains a term with the prefix `start`."""
        every: list[tuple[int, Postings | _TailPostings]] = [*self._parts, (self._tail_start, self._tail)]
        return any(
            bool(np.any(self.visible_mask(rows[counts & OWN_COUNT_MASK > 0] + np.uint32(base), hidden)))
            for base, part in every
            for rows, counts in part.find_prefix(start)
        )

    def add(self, rows: Sequence[IndexedRow]) -> None:
        """Add a few rows; their numbers must be higher than all before."""
        self.revision += 1
        for row in rows:
            self._tail.add(self.count - self._tail_start, row)
            self.changed_documents.add(row.document)
            self._append({**row._asdict(), "own": len(row.text.split()), "around": len(row.context_text.split())})
        self._copy_bullet_fields([row.entry for row in rows if row.entry])
        if self.count - self._tail_start > _LONGEST_TAIL:
            self._flush_tail()

    def add_segment(self, block: Segment) -> None:
        """Add a segment; its numbers must be higher than all before."""
        self._flush_tail()
        self.revision += 1
        at, columns = self.count, block.columns
        self._reserve(at + len(block))
        for name, value in columns.items():
            if name in self._columns and name not in {"place", "own", *_NAME_COLUMNS}:
                self._columns[name][at : at + len(block)] = value
        for name, names in zip(_NAME_COLUMNS, (block.kinds, block.tags, block.sessions), strict=True):
            codes = np.fromiter((self._name_code(name, one) for one in names), dtype=np.int32, count=len(names))
            self._columns[name][at : at + len(block)] = codes[columns[name]]
        own, every = _bm25_norms(columns["own"], columns["around"])
        self.has_neighbours |= bool(np.any(columns["around"]))
        self._columns["own"][at : at + len(block)], self._columns["every"][at : at + len(block)] = own, every
        self._columns["place"][at : at + len(block)] = self._place_ids_for(columns["place"])
        self._columns["live"][at : at + len(block)] = True
        self.count += len(block)
        self._parts.append((at, block.postings))
        self._tail_start = self.count
        self.changed_documents.update(np.unique(columns["document"]).tolist())
        entries = columns["entry"]
        long = self._sorts[columns["document"]] == _LONG
        for row in np.flatnonzero(long & (entries != 0)).tolist():
            self._long_entry_rows.setdefault(int(entries[row]), []).append(at + row)
        pointing = entries[(columns["shape"] & IS_ENTRY) > 0]
        self._copy_bullet_fields(
            {
                *entries[long].tolist(),
                *(self._long_entry_rows and self._long_entry_rows.keys() & set(pointing.tolist())),
            }
            - {0}
        )

    def remove(self, numbers: Sequence[int]) -> None:
        """Remove rows; unknown numbers are ignored."""
        positions = self.positions(numbers)
        positions = positions[self["live"][positions]]
        self.revision += 1
        self._columns["live"][positions] = False
        self.dead_count += len(positions)
        self.changed_documents.update(self["document"][positions].tolist())
        self._copy_bullet_fields(
            [entry for entry in self["entry"][positions].tolist() if entry in self._long_entry_rows]
        )

    def move(self, lines: Iterable[tuple[int, int]]) -> None:
        """Change the lines of rows, given as (number, line)."""
        self.revision += 1
        for number, line in lines:
            positions = self.positions([number])
            self._columns["line"][positions] = line
            self.changed_documents.update(self["document"][positions].tolist())

    def positions(self, numbers: Sequence[int]) -> Array:
        """Return the positions of those numbers that exist."""
        sought = np.array(numbers, dtype=np.int64)
        column = self["number"]
        at = np.searchsorted(column, sought)
        inside = at < self.count
        at, sought = at[inside], sought[inside]
        matching: Array = at[column[at] == sought]
        return matching

    def _append(self, values: "dict[str, int | str]") -> None:
        self._reserve(self.count + 1)
        for name in ("number", "document", "line", "part", "twin", "time", "entry", "shape", "meaning"):
            self._columns[name][self.count] = values[name]
        for name in _NAME_COLUMNS:
            self._columns[name][self.count] = self._name_code(name, str(values[name]))
        self.has_neighbours |= bool(values["around"])
        own, every = _bm25_norms(np.array([values["own"]]), np.array([values["around"]]))
        self._columns["own"][self.count], self._columns["every"][self.count] = own[0], every[0]
        self._columns["place"][self.count] = self._place_id_for(int(values["place"]))
        self._columns["live"][self.count] = True
        entry = int(values["entry"])
        if entry and self._sorts[int(values["document"])] == _LONG:
            self._long_entry_rows.setdefault(entry, []).append(self.count)
        self.count += 1

    def _copy_bullet_fields(self, entries: Collection[int]) -> None:
        """Copy the fields of the newest bullet to the pieces of its long entry; clear them if there is none."""
        wanted = self._long_entry_rows.keys() & set(entries)
        if not wanted:
            return
        pointing = np.isin(self["entry"], list(wanted)) & self["live"] & ((self["shape"] & IS_ENTRY) > 0)
        newest = {int(self["entry"][row]): row for row in np.flatnonzero(pointing).tolist()}
        nothing = {name: self._name_code(name, "") for name in _NAME_COLUMNS} | {"time": np.iinfo(np.int64).min}
        for entry in wanted:
            for name in (*_NAME_COLUMNS, "time"):
                fields = self._columns[name]
                fields[self._long_entry_rows[entry]] = fields[newest[entry]] if entry in newest else nothing[name]

    def _flush_tail(self) -> None:
        """Turn the tail into a part of its own."""
        if self.count > self._tail_start:
            self._parts.append((self._tail_start, self._tail.to_postings()))
        self._tail = _TailPostings()
        self._tail_start = self.count

    def _name_code(self, column: str, name: str) -> int:
        names = self.names[column]
        return names.setdefault(name, len(names))

    def _place_ids_for(self, keys: Array) -> Array:
        if self._new_places:
            self._add_places(list(self._new_places), list(self._new_places.values()))
            self._new_places = {}
        unique, inverse = np.unique(keys, return_inverse=True)
        at = np.searchsorted(self._place_keys, unique)
        is_known = np.zeros(len(unique), dtype=np.bool_)
        inside = at < len(self._place_keys)
        is_known[inside] = self._place_keys[at[inside]] == unique[inside]
        ids = np.zeros(len(unique), dtype=np.int32)
        ids[is_known] = self._place_ids[at[is_known]]
        ids[~is_known] = np.arange(self.places, self.places + int(np.sum(~is_known)))
        self.places += int(np.sum(~is_known))
        self._add_places(unique[~is_known], ids[~is_known])
        numbered: Array = ids[inverse]
        return numbered

    def _add_places(self, keys: "Array | list[int]", ids: "Array | list[int]") -> None:
        every = np.concatenate((self._place_keys, np.asarray(keys, dtype=np.int64)))
        order = np.argsort(every)
        self._place_ids = np.concatenate((self._place_ids, np.asarray(ids, dtype=np.int32)))[order]
        self._place_keys = every[order]

    def _place_id_for(self, key: int) -> int:
        at = int(np.searchsorted(self._place_keys, key))
        if at < len(self._place_keys) and self._place_keys[at] == key:
            return int(self._place_ids[at])
        if key not in self._new_places:
            self._new_places[key] = self.places
            self.places += 1
        return self._new_places[key]

    def _reserve(self, size: int) -> None:
        if size > len(self._columns["number"]):
            capacity = max(size, self.count + self.count // 4, 1_024)
            self._columns = {name: _resize(column[: self.count], capacity) for name, column in self._columns.items()}


class _TailPostings:
    """The postings of rows that were added one by one."""

    def __init__(self) -> None:
        self._terms: dict[str, tuple[array[int], bytearray]] = {}

    def add(self, row: int, terms: IndexedRow) -> None:
        own = Counter(terms.text.split())
        every = own + Counter(terms.context_text.split())
        for term, times in every.items():
            rows, counts = self._terms.setdefault(term, (array("I"), bytearray()))
            rows.append(row)
            counts.append(pack_counts(own[term], times))

    def find(self, term: str) -> tuple[Array, Array]:
        rows, counts = self._terms.get(term, ((), b""))
        # a copy, as an array with an exported buffer can't grow
        return np.array(rows, dtype=np.uint32), np.frombuffer(bytes(counts), dtype=np.uint8)

    def find_prefix(self, start: str) -> Iterator[tuple[Array, Array]]:
        return (self.find(term) for term in self._terms if term.startswith(start))

    def to_postings(self) -> Postings:
        written = sorted((term.encode("utf-8", "surrogatepass"), held) for term, held in self._terms.items())
        lengths = [len(rows) for _, (rows, _) in written]
        return Postings.create(
            vocabulary=b"".join(term for term, _ in written),
            ends=np.cumsum([len(term) for term, _ in written], dtype=np.uint32),
            starts=np.concatenate(([0], np.cumsum(lengths))).astype(np.uint32),
            rows=np.frombuffer(b"".join(rows.tobytes() for _, (rows, _) in written), dtype=np.uint32),
            counts=np.frombuffer(b"".join(counts for _, (_, counts) in written), dtype=np.uint8),
        )


def _bm25_norms(own: Array, around: Array) -> tuple[Array, Array]:
    """Return the BM25 norms of rows with these term counts, alone and with their neighbours."""
    mine, beside = own.astype(np.float64), around.astype(np.float64)
    usual = USUAL_LENGTH * np.where(beside > 0, 3, 1)
    return K1 * (1 - B + B * mine / USUAL_LENGTH), K1 * (1 - B + B * (mine + beside) / usual)


def _resize(column: Array, size: int) -> Array:
    if size <= len(column):
        return column
    larger = np.zeros(size, dtype=column.dtype)
    larger[: len(column)] = column
    return larger
