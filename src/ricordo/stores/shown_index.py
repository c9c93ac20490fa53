"""Shown index: which lines of MEMORY.md a prompt shows, where a person or another program let it grow too long. Pure.

A file within its bounds is shown as it is. Of a longer one the newest is always shown, then what is pinned and the list
of topics, then the rest by usefulness; in a prompt all of it stands in the order of the file. Of several places the
narrowest comes first: but for what is newest or pinned, a wider one has what the narrower ones left. Lines that a
person wrote come in the order in which they stand, and of them the last one counts as new too, as that is where people
add. What contradicts each other stands together, each with a line that says so.

Invariant: no more lines, bytes or tokens are shown than allowed, and what is left out is counted. No memory is shown
without the line that says what it contradicts.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ricordo.consolidation.sheet import Part, parse_sheet
from ricordo.consolidation.worth import moment, usefulness
from ricordo.tokens import estimate_text
from ricordo.workspace.contradictions import CONTRADICTS, marker, naming, undecided
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import content_line
from ricordo.workspace.index_bounds import Cap, IndexBounds
from ricordo.workspace.layout import MEMORY

__all__ = ["IndexCut", "ShownIndex", "index_lines", "shown_index"]

_TOPIC = re.compile(r"\s*(?:[-*+]|\d+\.)\s+\[[^\n]*?\]\([^()\s]+\.md(?:#[^()\s]*)?\)")
_SHARE = 2
"""What is pinned has this part of each bound for sure, the list of topics the rest."""
_LARGE = 4
"""Of the newest only its beginning is shown where it would take more than this part of a bound."""
_BEGINNING = 120
_BY_HAND = usefulness(Entry(content="-", by="hand", time=datetime.min.replace(tzinfo=UTC)))[:-1]
_LINKED = f"[{CONTRADICTS}:: ".encode()
_CAPS: tuple[Cap, ...] = ("lines", "bytes", "tokens")
_Rank = tuple[bool, int, int, int, float, datetime]


@dataclass(frozen=True, kw_only=True)
class IndexCut:
    """What of MEMORY.md a prompt leaves out: `cap` names the bound that acted first, and `most` is how much it allows.

    `lines` are not shown, or not as a whole. Of what is left out, `memories` are memories and `topics` list a topic.
    """

    cap: Cap
    most: int
    lines: int
    memories: int = 0
    topics: int = 0


@dataclass(frozen=True, kw_only=True)
class ShownIndex:
    """The lines that are shown, and what is left out; None where that is nothing."""

    lines: tuple[str, ...]
    cut: IndexCut | None = None


@dataclass(frozen=True, kw_only=True)
class _Piece:
    """A line, or a memory with its lines; `document` is where, `heading` the number of the piece that it is under.

    `against` are the ids of what it contradicts; then the last line says so, in as many words as it ever takes.
    """

    number: int
    document: int
    lines: tuple[str, ...]
    entry: Entry | None = None
    is_named: bool = False
    is_heading: bool = False
    is_code: bool = False
    heading: int | None = None
    against: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.entry.id if self.entry else ""

    @property
    def is_topic(self) -> bool:
        return not self.is_named and not self.is_code and _TOPIC.match(self.lines[0]) is not None

    @property
    def rank(self) -> _Rank:
        return usefulness(self.entry)[:-1] if self.entry and self.is_named else _BY_HAND


def index_lines(documents: Sequence[bytes]) -> list[str]:
    """Return all lines of these documents as a prompt would show them."""
    return [line for piece in _pieces(documents) for line in piece.lines]


def shown_index(
    documents: Sequence[bytes],
    bounds: IndexBounds,
    room: int,
    cost: Callable[[str], int] = estimate_text,
    *,
    elsewhere: Collection[str] = (),
) -> ShownIndex:
    """Return what is shown of MEMORY.md, of one or of those of several places, narrowest first.

    All of them together have at most the lines and bytes of `bounds`, and `room` tokens, which `cost` estimates.
    `elsewhere` are the ids of memories that hold and stand in none of them.
    """
    pieces = list(_pieces(documents))
    if any(_LINKED in document for document in documents):
        pieces = _paired(pieces, elsewhere)
    lines = _told(pieces)
    text = "\n".join(lines)
    is_short = len(lines) <= bounds.max_lines and _bytes(text) <= bounds.max_bytes
    if is_short and (not lines or cost(text) <= room):
        return ShownIndex(lines=lines)
    filling = _Filling(pieces, replace(bounds, max_tokens=max(room, 0)))
    filling.fill(_newest(pieces))
    while filling.taken and cost(filling.text) > room:
        filling.shorten()
    return ShownIndex(lines=filling.lines, cut=_cut(pieces, filling))


def _pieces(documents: Sequence[bytes]) -> Iterator[_Piece]:
    number = 0
    for at, document in enumerate(documents):
        heading: int | None = None
        for part in parse_sheet(document, MEMORY).parts:
            lines = _lines(part)
            if not lines:
                continue
            if part.heading or (not part.section and not part.fenced and lines[0].startswith("# ")):
                heading = None
            yield _Piece(
                number=number, document=at, lines=lines, entry=part.entry, is_named=part.is_named,
                is_heading=part.heading, is_code=part.fenced, heading=heading,
            )  # fmt: skip
            heading = number if part.heading else heading
            number += 1


def _lines(part: Part) -> tuple[str, ...]:
    """Return the lines of a part without the fields of its entry, without blank ones; none for what holds no more."""
    text = part.data.decode("utf-8", "replace")
    if part.entry is not None:
        if part.entry.state != "active":
            return ()
        text = "- " + part.entry.content.encode("utf-8", "replace").decode().replace("\n", "\n  ")
    return tuple(line.rstrip() for line in text.split("\n") if line.strip())


def _paired(pieces: Sequence[_Piece], elsewhere: Collection[str]) -> list[_Piece]:
    """Return the pieces with what contradicts each other together, and with a line more that says so."""
    links = undecided([piece.entry for piece in pieces if piece.entry], elsewhere=elsewhere)
    rows = {piece.name: piece for piece in reversed(pieces) if piece.name in links}
    order: list[_Piece] = []
    placed: set[str] = set()
    for piece in pieces:
        if piece is not rows.get(piece.name):
            order.append(piece)
        elif piece.name not in placed:
            others = [rows[name] for name in links[piece.name] if name in rows and name not in placed]
            order += [piece, *(replace(each, document=piece.document, heading=piece.heading) for each in others)]
            placed.update((piece.name, *(each.name for each in others)))
    numbers = {piece.number: number for number, piece in enumerate(order)}
    return [
        replace(
            piece,
            number=number,
            heading=None if piece.heading is None else numbers[piece.heading],
            against=links.get(piece.name, ()) if piece.name in rows else (),
            lines=(*piece.lines, f"  {naming(links[piece.name][0])}") if piece.name in rows else piece.lines,
        )
        for number, piece in enumerate(order)
    ]


def _told(pieces: Sequence[_Piece]) -> tuple[str, ...]:
    """Return the lines of pieces that are shown one after the other, each with what it contradicts beside it."""
    names = ["", *(piece.name for piece in pieces), ""]
    lines: list[str] = []
    for at, piece in enumerate(pieces):
        lines += piece.lines[:-1] if piece.against else piece.lines
        if piece.against:
            lines.append(f"  {marker(piece.against, before=names[at], after=names[at + 2])}")
    return tuple(lines)


def _newest(pieces: Sequence[_Piece]) -> list[_Piece]:
    """Return the memory that was said last, and the line that a person added last to each document."""
    dated = [piece for piece in pieces if piece.entry and (piece.entry.time or piece.entry.since)]
    newest = [max(dated, key=lambda piece: _said(piece.entry))] if dated else []
    return [*newest, *{piece.document: piece for piece in pieces if _is_by_hand(piece)}.values()]


def _said(entry: Entry | None) -> tuple[datetime, str]:
    assert entry is not None
    return moment(entry), entry.id


def _is_by_hand(piece: _Piece) -> bool:
    return not (piece.is_named or piece.is_heading or piece.is_code or piece.is_topic)


class _Filling:
    """What is taken into the prompt so far, in the order in which it was taken."""

    def __init__(self, pieces: Sequence[_Piece], bounds: IndexBounds) -> None:
        self.taken: dict[int, _Piece] = {}
        self.cap: Cap | None = None
        self.bounds = bounds
        self._pieces = pieces
        self._used: dict[Cap, int] = dict.fromkeys(_CAPS, 0)

    @property
    def lines(self) -> tuple[str, ...]:
        return _told([self.taken[number] for number in sorted(self.taken)])

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def fill(self, newest: Iterable[_Piece]) -> None:
        """Take as much as there is room for, in the order of what must not be missing."""
        for piece in newest:
            if not self._take(piece, _LARGE):
                self._take(_begun(piece))
        pinned = [piece for piece in self._pieces if piece.entry and piece.entry.pinned]
        for piece in pinned:
            self._take(piece, _SHARE)
        for document in sorted({piece.document for piece in self._pieces}):
            own = [piece for piece in self._pieces if piece.document == document]
            self._take_topics([piece for piece in own if piece.is_topic])
            rest = [piece for piece in own if not (piece.is_heading or piece.is_topic)]
            if not self._take_each([*pinned, *sorted(rest, key=lambda piece: piece.rank, reverse=True)]):
                break

    def shorten(self) -> None:
        """Take back a tenth of it, what was taken last first: escaped text has more tokens than it had."""
        self.cap = self.cap or "tokens"
        for number in list(self.taken)[len(self.taken) * 9 // 10 :]:
            del self.taken[number]

    def _take_each(self, pieces: Iterable[_Piece]) -> bool:
        """Take these in their order; False where one is left when a bound is reached."""
        for piece in pieces:
            full = next((cap for cap in _CAPS if self._used[cap] >= self.bounds.most(cap)), None)
            if full is None:
                self._take(piece)
            elif piece.number not in self.taken:
                self.cap = self.cap or full
                return False
        return True

    def _take_topics(self, topics: Sequence[_Piece]) -> None:
        """Take the list of topics; without what is said of them where that has no room."""
        before = dict(self.taken), dict(self._used), self.cap
        if sum(self._take(topic) for topic in topics) == len(topics):
            return
        self.taken, self._used, cap = before
        self.cap = self.cap or cap
        for topic in topics:
            link = _TOPIC.match(topic.lines[0])
            self._take(replace(topic, lines=(link[0],)) if link else topic)

    def _take(self, piece: _Piece, share: int = 1) -> bool:
        """Take a piece with its heading, if it takes no more than what is left, and of that no more than a part."""
        if piece.number in self.taken:
            return True
        above = [] if piece.heading is None or piece.heading in self.taken else [self._pieces[piece.heading]]
        added = _sizes([*above, piece])
        for cap in _CAPS:
            if self._used[cap] + added[cap] > self.bounds.most(cap) // share:
                self.cap = self.cap or (cap if share == 1 else None)
                return False
        for each in [*above, piece]:
            self.taken[each.number] = each
        self._used = {cap: used + added[cap] for cap, used in self._used.items()}
        return True


def _sizes(pieces: Sequence[_Piece]) -> dict[Cap, int]:
    """Return what pieces take at most, each line with its end."""
    text = "".join(f"{line}\n" for piece in pieces for line in piece.lines)
    return {"lines": sum(len(piece.lines) for piece in pieces), "bytes": _bytes(text), "tokens": estimate_text(text)}


def _begun(piece: _Piece) -> _Piece:
    """Return a piece with the beginning of what it says."""
    text = piece.entry.content if piece.entry else piece.lines[0]
    first = content_line(text, _BEGINNING)
    told = piece.lines[-1:] if piece.against else ()
    return replace(piece, lines=(f"- {first}" if piece.entry else first, *told))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _cut(pieces: Sequence[_Piece], filling: _Filling) -> IndexCut:
    gone = [piece for piece in pieces if piece.number not in filling.taken]
    begun = [(piece, filling.taken[piece.number]) for piece in pieces if piece.number in filling.taken]
    lines = sum(len(piece.lines) for piece in gone)
    lines += sum(max(len(piece.lines) - len(shown.lines), 1) for piece, shown in begun if piece.lines != shown.lines)
    sizes, bounds = _sizes(pieces), filling.bounds
    over: list[Cap] = [each for each in _CAPS if sizes[each] > bounds.most(each)]
    cap: Cap = filling.cap or (over[0] if over else "tokens")
    return IndexCut(
        cap=cap,
        most=bounds.most(cap),
        lines=lines,
        memories=sum(piece.entry is not None and not piece.is_topic for piece in gone),
        topics=sum(piece.is_topic for piece in gone),
    )
