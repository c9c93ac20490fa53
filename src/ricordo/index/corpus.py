"""The corpus: all rows of an index in memory, as blocks of arrays and a small tail of fresh rows in dictionaries.

Rows are told by their position, which never changes: what is removed is only marked. A piece of a long entry has the
fields of the bullet that points to it, so filters treat both alike.

Invariant: numbers ascend with positions, so a number is found by bisection and rows only join at the end.
"""

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from ricordo.index.contract import EVERYTHING
from ricordo.index.postings import COLUMNS, IN_OWN, Array, Block, IndexedRow, Postings, packed
from ricordo.index.scoring import K1, USUAL_LENGTH, B

__all__ = ["ENTRY", "MESSAGE", "TELLS", "Corpus"]

MESSAGE, ENTRY, TELLS = 1, 2, 4
_LONGEST_TAIL = 8_192
_FILTERS_KEPT = 16
_MOST_PARTS, _MOST_DEAD = 8, 0.25
_NAMED = ("kind", "tags", "session")
_SORTS: tuple[str, ...] = EVERYTHING
_LONG, _PROFILE = _SORTS.index("long"), _SORTS.index("profile")
_HELD = {
    **{name: kind for name, kind in COLUMNS.items() if name not in {"own", "around"}},
    "place": "<i4", "own": "<f8", "every": "<f8", "live": "|b1",
}  # fmt: skip


class Corpus:
    """The rows of one index. `own` and `every` are the norms of BM25, of a row alone and with its neighbours.

    `touched` are the documents whose rows changed; who follows them takes them out. `revision` grows with any change.
    """

    def __init__(self) -> None:
        """Begin with no rows."""
        self.count = 0
        self.dead = 0
        self.revision = 0
        self.places = 0
        self.has_neighbours = False
        self.paths: dict[int, str] = {}
        self.touched: set[int] = set()
        self.names: dict[str, dict[str, int]] = {name: {} for name in _NAMED}
        self._sorts: Array = np.zeros(0, dtype=np.int8)
        self._profiles: list[int] = []
        self._hidden: dict[str, tuple[int, ...]] = {}
        self._held: dict[str, Array] = {name: np.zeros(0, dtype=kind) for name, kind in _HELD.items()}
        self._parts: list[tuple[int, Postings]] = []
        self._tail = _Tail()
        self._tail_at = 0
        self._place_keys, self._place_ids = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
        self._fresh_places: dict[int, int] = {}
        self._long: dict[int, list[int]] = {}
        self._path_order: Array | None = None
        self._passing: dict[tuple[tuple[str, ...], str, frozenset[str], str], Array | None] = {}

    def __getitem__(self, column: str) -> Array:
        """Return a column."""
        return self._held[column][: self.count]

    @property
    def highest(self) -> int:
        """The highest number; 0 without rows."""
        return int(self._held["number"][self.count - 1]) if self.count else 0

    @property
    def is_ragged(self) -> bool:
        """Whether it is in so many pieces, or holds so much that was removed, that it is worth loading anew."""
        return len(self._parts) > _MOST_PARTS or self.dead > _MOST_DEAD * self.count

    @property
    def sorts(self) -> Array:
        """The sort of each document, by its number, as its place among all sorts."""
        return self._sorts

    @property
    def path_order(self) -> Array:
        """The place of each document among all, by its number, when they are sorted by their paths."""
        if self._path_order is None:
            self._path_order = np.zeros(len(self._sorts), dtype=np.int64)
            self._path_order[sorted(self.paths, key=self.paths.__getitem__)] = np.arange(len(self.paths))
        return self._path_order

    def hidden(self, profile: str) -> tuple[int, ...]:
        """Return the documents, by number, that are profiles other than the one at the path `profile`."""
        if profile not in self._hidden:
            self._hidden[profile] = tuple(at for at in self._profiles if self.paths[at] != profile)
        return self._hidden[profile]

    def documents(
        self, sorts: Collection[str], path: str, skipped: Collection[str], profile: str = ""
    ) -> "Array | None":
        """Return which documents, by number, are of these sorts below `path` and not skipped; None if all are.

        No other profile is among them than the one at the path `profile`.
        """
        asked = (tuple(sorts), path, frozenset(skipped), profile)
        if asked not in self._passing:
            passing = np.isin(self._sorts, [_SORTS.index(sort) for sort in sorts])
            if path or skipped:
                inside = [at for at, own in self.paths.items() if own.startswith(path) and own not in skipped]
                passing &= np.isin(np.arange(len(passing)), inside)
            passing[list(self.hidden(profile))] = False
            if len(self._passing) >= _FILTERS_KEPT:
                self._passing.clear()
            self._passing[asked] = None if passing[np.array([*self.paths], dtype=np.int64)].all() else passing
        return self._passing[asked]

    def know(self, documents: Iterable[tuple[int, str, str]]) -> None:
        """Take in documents: number, path and sort. They come before their rows."""
        new = list(documents)
        if not new:
            return
        self._sorts = _grown(self._sorts, max(number for number, _, _ in new) + 1)
        self._path_order, self._passing, self._hidden = None, {}, {}
        self.revision += 1
        for number, path, sort in new:
            self.paths[number] = path
            self._sorts[number] = _SORTS.index(sort)
            if self._sorts[number] == _PROFILE:
                self._profiles.append(number)

    def find(self, term: str) -> list[tuple[Array, Array]]:
        """Return the positions that hold a term and their counts, as far as there are any, in ascending pieces."""
        found = [(base, *postings.find(term)) for base, postings in self._parts]
        if self.count > self._tail_at:
            found.append((self._tail_at, *self._tail.find(term)))
        # arrays are indexed by whole words of the machine, and would be made so again at each use
        return [(rows.astype(np.int64) + base, counts) for base, rows, counts in found if len(rows)]

    def visible(self, rows: Array, hidden: Collection[int]) -> Array:
        """Return which of these rows are there, and in none of the `hidden` documents."""
        seen: Array = self["live"][rows]
        if not hidden:
            return seen
        shown = np.ones(len(self._sorts), dtype=np.bool_)
        shown[list(hidden)] = False
        return seen & shown[self["document"][rows]]

    def has_relative(self, start: str, hidden: Collection[int] = ()) -> bool:
        """Tell whether a row that is visible holds itself a term that begins with `start`."""
        every: list[tuple[int, Postings | _Tail]] = [*self._parts, (self._tail_at, self._tail)]
        return any(
            bool(np.any(self.visible(rows[counts & IN_OWN > 0] + np.uint32(base), hidden)))
            for base, part in every
            for rows, counts in part.starting(start)
        )

    def add(self, rows: Sequence[IndexedRow]) -> None:
        """Add a few rows, whose numbers are higher than all before."""
        self.revision += 1
        for row in rows:
            self._tail.add(self.count - self._tail_at, row)
            self.touched.add(row.document)
            self._append({**row._asdict(), "own": len(row.own.split()), "around": len(row.around.split())})
        self._point([row.entry for row in rows if row.entry])
        if self.count - self._tail_at > _LONGEST_TAIL:
            self._settle()

    def take(self, block: Block) -> None:
        """Add a block, whose numbers are higher than all before."""
        self._settle()
        self.revision += 1
        at, columns = self.count, block.columns
        self._reserve(at + len(block))
        for name, value in columns.items():
            if name in self._held and name not in {"place", "own", *_NAMED}:
                self._held[name][at : at + len(block)] = value
        for name, listed in zip(_NAMED, (block.kinds, block.tags, block.sessions), strict=True):
            codes = np.fromiter((self._code(name, one) for one in listed), dtype=np.int32, count=len(listed))
            self._held[name][at : at + len(block)] = codes[columns[name]]
        own, every = _norms(columns["own"], columns["around"])
        self.has_neighbours |= bool(np.any(columns["around"]))
        self._held["own"][at : at + len(block)], self._held["every"][at : at + len(block)] = own, every
        self._held["place"][at : at + len(block)] = self._places_of(columns["place"])
        self._held["live"][at : at + len(block)] = True
        self.count += len(block)
        self._parts.append((at, block.postings))
        self._tail_at = self.count
        self.touched.update(np.unique(columns["document"]).tolist())
        entries = columns["entry"]
        long = self._sorts[columns["document"]] == _LONG
        for row in np.flatnonzero(long & (entries != 0)).tolist():
            self._long.setdefault(int(entries[row]), []).append(at + row)
        pointing = entries[(columns["shape"] & ENTRY) > 0]
        self._point({*entries[long].tolist(), *(self._long and self._long.keys() & set(pointing.tolist()))} - {0})

    def remove(self, numbers: Sequence[int]) -> None:
        """Forget rows; numbers that are not there are passed over."""
        positions = self.positions(numbers)
        positions = positions[self["live"][positions]]
        self.revision += 1
        self._held["live"][positions] = False
        self.dead += len(positions)
        self.touched.update(self["document"][positions].tolist())
        self._point([entry for entry in self["entry"][positions].tolist() if entry in self._long])

    def move(self, lines: Iterable[tuple[int, int]]) -> None:
        """Put rows on other lines, given as number and line."""
        self.revision += 1
        for number, line in lines:
            positions = self.positions([number])
            self._held["line"][positions] = line
            self.touched.update(self["document"][positions].tolist())

    def positions(self, numbers: Sequence[int]) -> Array:
        """Return the positions of those of these numbers that are there."""
        wanted = np.array(numbers, dtype=np.int64)
        held = self["number"]
        at = np.searchsorted(held, wanted)
        inside = at < self.count
        at, wanted = at[inside], wanted[inside]
        there: Array = at[held[at] == wanted]
        return there

    def _append(self, values: "dict[str, int | str]") -> None:
        self._reserve(self.count + 1)
        for name in ("number", "document", "line", "part", "twin", "time", "entry", "shape", "meaning"):
            self._held[name][self.count] = values[name]
        for name in _NAMED:
            self._held[name][self.count] = self._code(name, str(values[name]))
        self.has_neighbours |= bool(values["around"])
        own, every = _norms(np.array([values["own"]]), np.array([values["around"]]))
        self._held["own"][self.count], self._held["every"][self.count] = own[0], every[0]
        self._held["place"][self.count] = self._place_of(int(values["place"]))
        self._held["live"][self.count] = True
        entry = int(values["entry"])
        if entry and self._sorts[int(values["document"])] == _LONG:
            self._long.setdefault(entry, []).append(self.count)
        self.count += 1

    def _point(self, entries: Collection[int]) -> None:
        """Give the pieces of long entries the fields of the newest bullet that points to them, or none."""
        wanted = self._long.keys() & set(entries)
        if not wanted:
            return
        pointing = np.isin(self["entry"], list(wanted)) & self["live"] & ((self["shape"] & ENTRY) > 0)
        newest = {int(self["entry"][row]): row for row in np.flatnonzero(pointing).tolist()}
        nothing = {name: self._code(name, "") for name in _NAMED} | {"time": np.iinfo(np.int64).min}
        for entry in wanted:
            for name in (*_NAMED, "time"):
                fields = self._held[name]
                fields[self._long[entry]] = fields[newest[entry]] if entry in newest else nothing[name]

    def _settle(self) -> None:
        """Make the tail a block of its own."""
        if self.count > self._tail_at:
            self._parts.append((self._tail_at, self._tail.settled()))
        self._tail = _Tail()
        self._tail_at = self.count

    def _code(self, column: str, name: str) -> int:
        names = self.names[column]
        return names.setdefault(name, len(names))

    def _places_of(self, keys: Array) -> Array:
        if self._fresh_places:
            self._keep_places(list(self._fresh_places), list(self._fresh_places.values()))
            self._fresh_places = {}
        unique, inverse = np.unique(keys, return_inverse=True)
        at = np.searchsorted(self._place_keys, unique)
        known = np.zeros(len(unique), dtype=np.bool_)
        inside = at < len(self._place_keys)
        known[inside] = self._place_keys[at[inside]] == unique[inside]
        ids = np.zeros(len(unique), dtype=np.int32)
        ids[known] = self._place_ids[at[known]]
        ids[~known] = np.arange(self.places, self.places + int(np.sum(~known)))
        self.places += int(np.sum(~known))
        self._keep_places(unique[~known], ids[~known])
        numbered: Array = ids[inverse]
        return numbered

    def _keep_places(self, keys: "Array | list[int]", ids: "Array | list[int]") -> None:
        every = np.concatenate((self._place_keys, np.asarray(keys, dtype=np.int64)))
        order = np.argsort(every)
        self._place_ids = np.concatenate((self._place_ids, np.asarray(ids, dtype=np.int32)))[order]
        self._place_keys = every[order]

    def _place_of(self, key: int) -> int:
        at = int(np.searchsorted(self._place_keys, key))
        if at < len(self._place_keys) and self._place_keys[at] == key:
            return int(self._place_ids[at])
        if key not in self._fresh_places:
            self._fresh_places[key] = self.places
            self.places += 1
        return self._fresh_places[key]

    def _reserve(self, size: int) -> None:
        if size > len(self._held["number"]):
            room = max(size, self.count + self.count // 4, 1_024)
            self._held = {name: _grown(column[: self.count], room) for name, column in self._held.items()}


class _Tail:
    """The postings of rows that were added one by one."""

    def __init__(self) -> None:
        self._terms: dict[str, tuple[array[int], bytearray]] = {}

    def add(self, row: int, terms: IndexedRow) -> None:
        own = Counter(terms.own.split())
        every = own + Counter(terms.around.split())
        for term, times in every.items():
            rows, counts = self._terms.setdefault(term, (array("I"), bytearray()))
            rows.append(row)
            counts.append(packed(own[term], times))

    def find(self, term: str) -> tuple[Array, Array]:
        rows, counts = self._terms.get(term, ((), b""))
        # a copy, as an array that lends its memory can't grow
        return np.array(rows, dtype=np.uint32), np.frombuffer(bytes(counts), dtype=np.uint8)

    def starting(self, start: str) -> Iterator[tuple[Array, Array]]:
        return (self.find(term) for term in self._terms if term.startswith(start))

    def settled(self) -> Postings:
        written = sorted((term.encode("utf-8", "surrogatepass"), held) for term, held in self._terms.items())
        lengths = [len(rows) for _, (rows, _) in written]
        return Postings.of(
            vocabulary=b"".join(term for term, _ in written),
            ends=np.cumsum([len(term) for term, _ in written], dtype=np.uint32),
            starts=np.concatenate(([0], np.cumsum(lengths))).astype(np.uint32),
            rows=np.frombuffer(b"".join(rows.tobytes() for _, (rows, _) in written), dtype=np.uint32),
            counts=np.frombuffer(b"".join(counts for _, (_, counts) in written), dtype=np.uint8),
        )


def _norms(own: Array, around: Array) -> tuple[Array, Array]:
    """Return the norms of BM25 for rows with so many terms, alone and with their neighbours."""
    mine, beside = own.astype(np.float64), around.astype(np.float64)
    usual = USUAL_LENGTH * np.where(beside > 0, 3, 1)
    return K1 * (1 - B + B * mine / USUAL_LENGTH), K1 * (1 - B + B * (mine + beside) / usual)


def _grown(column: Array, size: int) -> Array:
    if size <= len(column):
        return column
    larger = np.zeros(size, dtype=column.dtype)
    larger[: len(column)] = column
    return larger
