"""The corpus: all rows of an index in memory, as segments and a small tail of new rows.

A row is identified by its position, which never changes; removed rows are only marked. A piece of a long entry has the
fields of the bullet that points to it.

Invariants: numbers ascend with positions, and rows are only added at the end.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np

from ricordo.search.bm25 import K1, USUAL_LENGTH, B
from ricordo.search.contract import ALL_DOCUMENT_TYPES, TOOL_SPEAKER, Array
from ricordo.search.documents import IS_ENTRY, IS_MESSAGE
from ricordo.search.postings import (
    COLUMNS,
    CONTEXT_COUNT_SHIFT,
    MAX_COUNT,
    NAME_COLUMNS,
    OWN_COUNT_MASK,
    IndexedRow,
    Postings,
    Segment,
)

__all__ = ["Array", "Corpus"]

_LONGEST_TAIL = 8_192
_FILTER_CACHE_SIZE, _MASK_CACHE_SIZE = 16, 4
_MOST_PARTS, _MAX_DEAD_SHARE = 8, 0.25
_ROWS_TO_A_PART = 10_000
"""An index of many rows has several segments, so that building one takes no more memory than a small process has."""
_BULLET_COLUMNS = ("kind", "tags", "session")
"""The names that a piece of a long entry has from the bullet that points to it."""
_TYPES: tuple[str, ...] = ALL_DOCUMENT_TYPES
_LONG, _PROFILE, _RESULT = (_TYPES.index(name) for name in ("long", "profile", "result"))
_COLUMN_TYPES = {
    **{name: kind for name, kind in COLUMNS.items() if name not in {"own", "around"}},
    "place": "<i4", "own": "<f8", "every": "<f8", "live": "|b1",
}  # fmt: skip


class Corpus:
    """The rows of one index. `own` and `every` are the BM25 norms of a row, alone and with its neighbours.

    `has_neighbours` tells whether a row has any, `has_groups` whether several rows may belong to one place.

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
        self.names: dict[str, dict[str, int]] = {name: {} for name in NAME_COLUMNS}
        self._name_lists: dict[str, list[str]] = {name: [] for name in NAME_COLUMNS}
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
        self._mask_cache: dict[tuple[object, ...], Array | None] = {}
        self._masked_revision = -1
        self.has_groups = False
        self._type_counts = [0] * len(_TYPES)
        self._tool_sessions: tuple[int, frozenset[str]] | None = None

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

    def has_types(self, types: Iterable[str]) -> bool:
        """Return whether a document of these types was added."""
        return any(self._type_counts[_TYPES.index(name)] for name in types)

    @property
    def tool_sessions(self) -> frozenset[str]:
        """The sessions with output of tools."""
        if self._tool_sessions is None or self._tool_sessions[0] != self.revision:
            is_tool = self["speaker"] == self.code("speaker", TOOL_SPEAKER)
            is_tool |= self._sorts[self["document"]] == _RESULT
            codes = np.unique(self["session"][is_tool & self["live"]]).tolist()
            self._tool_sessions = self.revision, frozenset(self.name("session", code) for code in codes)
        return self._tool_sessions[1]

    def name(self, column: str, code: int) -> str:
        """Return the name that a code of a column of names stands for, or the path of a document."""
        return self.paths[code] if column == "document" else self._name_lists[column][code]

    def code(self, column: str, name: str) -> int:
        """Return the code of a name, -1 for an unknown one."""
        return self.names[column].get(name, -1)

    def cached_mask(self, key: tuple[object, ...], make: "Callable[[], Array | None]") -> "Array | None":
        """Return the mask of rows for `key`, which `make` returns; the latest ones are kept until a row changes."""
        if self._masked_revision != self.revision or (
            key not in self._mask_cache and len(self._mask_cache) >= _MASK_CACHE_SIZE
        ):
            self._mask_cache, self._masked_revision = {}, self.revision
        if key not in self._mask_cache:
            self._mask_cache[key] = make()
        return self._mask_cache[key]

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
            self._type_counts[self._sorts[number]] += 1
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
            if name in self._columns and name not in {"place", "own", *NAME_COLUMNS}:
                self._columns[name][at : at + len(block)] = value
        for name, names in block.names.items():
            codes = np.fromiter((self._name_code(name, one) for one in names), dtype=np.int32, count=len(names))
            self._columns[name][at : at + len(block)] = codes[columns[name]]
        own, every = _bm25_norms(columns["own"], columns["around"])
        self.has_neighbours |= bool(np.any(columns["around"]))
        self.has_groups |= bool(np.any((columns["part"] > 0) | (columns["shape"] & (IS_MESSAGE | IS_ENTRY) == 0)))
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
        for name in ("number", "document", "line", "part", "twin", "time", "entry", "shape", "meaning", "length"):
            self._columns[name][self.count] = values[name]
        for name in NAME_COLUMNS:
            self._columns[name][self.count] = self._name_code(name, str(values[name]))
        self.has_neighbours |= bool(values["around"])
        self.has_groups |= values["part"] != 0 or int(values["shape"]) & (IS_MESSAGE | IS_ENTRY) == 0
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
        nothing = {name: self._name_code(name, "") for name in _BULLET_COLUMNS} | {"time": np.iinfo(np.int64).min}
        for entry in wanted:
            for name in (*_BULLET_COLUMNS, "time"):
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
        if name not in names:
            names[name] = len(names)
            self._name_lists[column].append(name)
        return names[name]

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
        """Start with no terms."""
        self._terms: dict[str, tuple[array[int], bytearray]] = {}

    def add(self, row: int, terms: IndexedRow) -> None:
        """Add the terms of a row, which is behind all others."""
        own = Counter(terms.text.split())
        every = own + Counter(terms.context_text.split())
        for term, times in every.items():
            rows, counts = self._terms.setdefault(term, (array("I"), bytearray()))
            rows.append(row)
            counts.append(_pack_counts(own[term], times))

    def find(self, term: str) -> tuple[Array, Array]:
        """Return the rows of a term and its packed counts in them."""
        rows, counts = self._terms.get(term, ((), b""))
        # a copy, as an array with an exported buffer can't grow
        return np.array(rows, dtype=np.uint32), np.frombuffer(bytes(counts), dtype=np.uint8)

    def find_prefix(self, start: str) -> Iterator[tuple[Array, Array]]:
        """Yield the result of `find` for each term that begins with `start`."""
        return (self.find(term) for term in self._terms if term.startswith(start))

    def to_postings(self) -> Postings:
        """Return the terms as those of a segment."""
        written = sorted((term.encode("utf-8", "surrogatepass"), held) for term, held in self._terms.items())
        lengths = [len(rows) for _, (rows, _) in written]
        return Postings.create(
            vocabulary=b"".join(term for term, _ in written),
            ends=np.cumsum([len(term) for term, _ in written], dtype=np.uint32),
            starts=np.concatenate(([0], np.cumsum(lengths))).astype(np.uint32),
            rows=np.frombuffer(b"".join(rows.tobytes() for _, (rows, _) in written), dtype=np.uint32),
            counts=np.frombuffer(b"".join(counts for _, (_, counts) in written), dtype=np.uint8),
        )


def _pack_counts(own: int, every: int) -> int:
    """Return the counts of a term in a row, alone and with its neighbours, packed in one byte."""
    return min(own, MAX_COUNT) | (min(every, MAX_COUNT) << CONTEXT_COUNT_SHIFT)


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
