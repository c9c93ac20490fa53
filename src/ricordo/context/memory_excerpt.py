"""The excerpt of MEMORY.md in a prompt, for a file that has grown too long. Pure functions.

A file within its bounds is shown unchanged. Of a longer file the newest entry is always shown, then pinned entries and
the list of topics, then the rest by usefulness, in file order. With several roots the narrowest comes first. Lines
written by a person are taken in order, and the last of them also counts as newest. Contradicting entries are shown
together.

Invariants: the excerpt stays within the allowed lines, bytes and tokens, and omitted content is counted. No entry is
shown without the line that names the entry it contradicts.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ricordo.curation.importance import entry_time, usefulness
from ricordo.curation.memory_document import DocumentPart, parse_memory_document
from ricordo.lazy import lazy_compile
from ricordo.messages.tokens import estimate_text
from ricordo.workspace.documents import BoundName, IndexBounds
from ricordo.workspace.entry import (
    CONTRADICTS_FIELD,
    Entry,
    contradiction_marker,
    find_contradictions,
    name_contradiction,
)
from ricordo.workspace.entry_codec import preview_line
from ricordo.workspace.layout import MEMORY_PATH
from ricordo.workspace.markdown import decode_lines

__all__ = ["MemoryCut", "MemoryExcerpt", "excerpt_memory", "memory_lines"]


_TOPIC_LINK = lazy_compile(r"\s*(?:[-*+]|\d+\.)\s+\[[^\n]*?\]\([^()\s]+\.md(?:#[^()\s]*)?\)")
_PINNED_SHARE = 2
"""Pinned entries are guaranteed one half of each bound, and the list of topics the rest."""
_NEWEST_SHARE = 4
"""The newest entry is shortened if it takes more than one quarter of a bound."""
_BEGINNING_CHARACTERS = 120
_MANUAL_RANK = usefulness(Entry(content="-", by="hand", time=datetime.min.replace(tzinfo=UTC)))[:-1]
_CONTRADICTS_FIELD = f"[{CONTRADICTS_FIELD}:: ".encode()
_CAPS: tuple[BoundName, ...] = ("lines", "bytes", "tokens")
_Rank = tuple[bool, int, int, int, float, datetime]


@dataclass(frozen=True, kw_only=True)
class MemoryCut:
    """The part of MEMORY.md omitted from a prompt: `cap` is the bound reached first, and `most` its limit.

    `lines` counts the lines that are omitted or shortened. Among the omitted blocks, `memories` counts entries and
    `topics` counts topic links.
    """

    cap: BoundName
    most: int
    lines: int
    memories: int = 0
    topics: int = 0


@dataclass(frozen=True, kw_only=True)
class MemoryExcerpt:
    """The shown lines, and the omitted part; None if nothing is omitted.

    `entries` are the entries shown whole, each as the index of its document and its id.
    """

    lines: tuple[str, ...]
    cut: MemoryCut | None = None
    entries: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Block:
    """A line, or an entry with its lines; `document` is an index, `heading` the number of the heading block.

    `contradicts` are the ids of the entries it contradicts; then the last line names them in its longest form. With
    `is_whole` False, the lines are only the beginning of an entry.
    """

    number: int
    document: int
    lines: tuple[str, ...]
    entry: Entry | None = None
    is_named: bool = False
    is_heading: bool = False
    is_code: bool = False
    heading: int | None = None
    contradicts: tuple[str, ...] = ()
    is_whole: bool = True

    @property
    def entry_id(self) -> str:
        return self.entry.id if self.entry else ""

    @property
    def is_topic(self) -> bool:
        return not self.is_named and not self.is_code and _TOPIC_LINK.match(self.lines[0]) is not None

    @property
    def rank(self) -> _Rank:
        return usefulness(self.entry)[:-1] if self.entry and self.is_named else _MANUAL_RANK


def memory_lines(documents: Sequence[bytes]) -> list[str]:
    """Return all lines of these documents as a prompt would show them."""
    return [line for piece in _iter_blocks(documents) for line in piece.lines]


def excerpt_memory(
    documents: Sequence[bytes],
    bounds: IndexBounds,
    max_tokens: int,
    cost: Callable[[str], int] = estimate_text,
    *,
    elsewhere: Collection[str] = (),
) -> MemoryExcerpt:
    """Return the excerpt of one or several MEMORY.md files, narrowest scope first.

    All of them together have at most the lines and bytes of `bounds`, and `max_tokens` tokens, estimated by `cost`.
    `elsewhere` are the ids of active entries outside these documents.
    """
    pieces = list(_iter_blocks(documents))
    if any(_CONTRADICTS_FIELD in document for document in documents):
        pieces = _pair_contradictions(pieces, elsewhere)
    lines = _render_lines(pieces)
    text = "\n".join(lines)
    is_short = len(lines) <= bounds.max_lines and _byte_size(text) <= bounds.max_bytes
    if is_short and (not lines or cost(text) <= max_tokens):
        return MemoryExcerpt(lines=lines, entries=_whole_entries(pieces))
    filling = _Selection(pieces, replace(bounds, max_tokens=max(max_tokens, 0)))
    filling.fill(_newest_blocks(pieces))
    while filling.selected and cost(filling.text) > max_tokens:
        filling.shorten()
    return MemoryExcerpt(
        lines=filling.lines, cut=_describe_cut(pieces, filling), entries=_whole_entries(filling.selected.values())
    )


def _whole_entries(pieces: Iterable[_Block]) -> tuple[tuple[int, str], ...]:
    return tuple((piece.document, piece.entry_id) for piece in pieces if piece.entry_id and piece.is_whole)


def _iter_blocks(documents: Sequence[bytes]) -> Iterator[_Block]:
    number = 0
    for at, document in enumerate(documents):
        heading: int | None = None
        for part in parse_memory_document(document, MEMORY_PATH).parts:
            lines = _block_lines(part)
            if not lines:
                continue
            if part.heading or (not part.section and not part.fenced and lines[0].startswith("# ")):
                heading = None
            yield _Block(
                number=number, document=at, lines=lines, entry=part.entry, is_named=part.is_named,
                is_heading=part.heading, is_code=part.fenced, heading=heading, is_whole=part.long is None,
            )  # fmt: skip
            heading = number if part.heading else heading
            number += 1


def _block_lines(part: DocumentPart) -> tuple[str, ...]:
    """Return the lines of a part without its entry's fields and blank lines; empty for an inactive entry."""
    data = part.data
    if part.entry is not None:
        if part.entry.state != "active":
            return ()
        data = ("- " + part.entry.content.replace("\n", "\n  ")).encode("utf-8", "replace")
    return tuple(line.rstrip() for line in decode_lines(data) if line.strip())


def _pair_contradictions(pieces: Sequence[_Block], elsewhere: Collection[str]) -> list[_Block]:
    """Return the blocks with contradicting entries next to each other, each with a line that says so."""
    links = find_contradictions([piece.entry for piece in pieces if piece.entry], elsewhere=elsewhere)
    rows = {piece.entry_id: piece for piece in reversed(pieces) if piece.entry_id in links}
    order: list[_Block] = []
    placed: set[str] = set()
    for piece in pieces:
        if piece is not rows.get(piece.entry_id):
            order.append(piece)
        elif piece.entry_id not in placed:
            others = [rows[name] for name in links[piece.entry_id] if name in rows and name not in placed]
            order += [piece, *(replace(each, document=piece.document, heading=piece.heading) for each in others)]
            placed.update((piece.entry_id, *(each.entry_id for each in others)))
    numbers = {piece.number: number for number, piece in enumerate(order)}
    return [
        replace(
            piece,
            number=number,
            heading=None if piece.heading is None else numbers[piece.heading],
            contradicts=links.get(piece.entry_id, ()) if piece.entry_id in rows else (),
            lines=(*piece.lines, f"  {name_contradiction(links[piece.entry_id][0])}")
            if piece.entry_id in rows
            else piece.lines,
        )
        for number, piece in enumerate(order)
    ]


def _render_lines(pieces: Sequence[_Block]) -> tuple[str, ...]:
    """Return the lines of consecutive blocks, with their contradiction lines."""
    names = ["", *(piece.entry_id for piece in pieces), ""]
    lines: list[str] = []
    for at, piece in enumerate(pieces):
        lines += piece.lines[:-1] if piece.contradicts else piece.lines
        if piece.contradicts:
            lines.append(f"  {contradiction_marker(piece.contradicts, before=names[at], after=names[at + 2])}")
    return tuple(lines)


def _newest_blocks(pieces: Sequence[_Block]) -> list[_Block]:
    """Return the newest entry, and the last line that a person added to each document."""
    dated = [piece for piece in pieces if piece.entry and (piece.entry.time or piece.entry.since)]
    newest = [max(dated, key=lambda piece: _age_key(piece.entry))] if dated else []
    return [*newest, *{piece.document: piece for piece in pieces if _is_manual(piece)}.values()]


def _age_key(entry: Entry | None) -> tuple[datetime, str]:
    assert entry is not None
    return entry_time(entry), entry.id


def _is_manual(piece: _Block) -> bool:
    return not (piece.is_named or piece.is_heading or piece.is_code or piece.is_topic)


class _Selection:
    """The selected blocks, in the order of selection."""

    def __init__(self, pieces: Sequence[_Block], bounds: IndexBounds) -> None:
        self.selected: dict[int, _Block] = {}
        self.cap: BoundName | None = None
        self.bounds = bounds
        self._blocks = pieces
        self._used: dict[BoundName, int] = dict.fromkeys(_CAPS, 0)

    @property
    def lines(self) -> tuple[str, ...]:
        return _render_lines([self.selected[number] for number in sorted(self.selected)])

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def fill(self, newest: Iterable[_Block]) -> None:
        """Select as many blocks as fit, the most important first."""
        for piece in newest:
            if not self._add(piece, _NEWEST_SHARE):
                self._add(_shorten_block(piece))
        pinned = [piece for piece in self._blocks if piece.entry and piece.entry.pinned]
        for piece in pinned:
            self._add(piece, _PINNED_SHARE)
        for document in sorted({piece.document for piece in self._blocks}):
            own = [piece for piece in self._blocks if piece.document == document]
            self._add_topics([piece for piece in own if piece.is_topic])
            rest = [piece for piece in own if not (piece.is_heading or piece.is_topic)]
            if not self._add_each([*pinned, *sorted(rest, key=lambda piece: piece.rank, reverse=True)]):
                break

    def shorten(self) -> None:
        """Remove the last tenth of the selection: escaped text has more tokens than estimated."""
        self.cap = self.cap or "tokens"
        for number in list(self.selected)[len(self.selected) * 9 // 10 :]:
            del self.selected[number]

    def _add_each(self, pieces: Iterable[_Block]) -> bool:
        """Add these blocks in order. Return False if a bound is reached with blocks left over."""
        for piece in pieces:
            full = next((cap for cap in _CAPS if self._used[cap] >= self.bounds.limit(cap)), None)
            if full is None:
                self._add(piece)
            elif piece.number not in self.selected:
                self.cap = self.cap or full
                return False
        return True

    def _add_topics(self, topics: Sequence[_Block]) -> None:
        """Add the list of topics; only the links if their descriptions do not fit."""
        before = dict(self.selected), dict(self._used), self.cap
        if sum(self._add(topic) for topic in topics) == len(topics):
            return
        self.selected, self._used, cap = before
        self.cap = self.cap or cap
        for topic in topics:
            link = _TOPIC_LINK.match(topic.lines[0])
            self._add(replace(topic, lines=(link[0],), is_whole=False) if link else topic)

    def _add(self, piece: _Block, share: int = 1) -> bool:
        """Add a block with its heading if both fit into the rest and into `1 / share` of each bound."""
        if piece.number in self.selected:
            return True
        above = [] if piece.heading is None or piece.heading in self.selected else [self._blocks[piece.heading]]
        added = _measure([*above, piece])
        for cap in _CAPS:
            if self._used[cap] + added[cap] > self.bounds.limit(cap) // share:
                self.cap = self.cap or (cap if share == 1 else None)
                return False
        for each in [*above, piece]:
            self.selected[each.number] = each
        self._used = {cap: used + added[cap] for cap, used in self._used.items()}
        return True


def _measure(pieces: Sequence[_Block]) -> dict[BoundName, int]:
    """Return the maximum size of blocks, with one line end for each line."""
    text = "".join(f"{line}\n" for piece in pieces for line in piece.lines)
    return {
        "lines": sum(len(piece.lines) for piece in pieces),
        "bytes": _byte_size(text),
        "tokens": estimate_text(text),
    }


def _shorten_block(piece: _Block) -> _Block:
    """Return a block with only the beginning of its text."""
    text = piece.entry.content if piece.entry else piece.lines[0]
    first = preview_line(text, _BEGINNING_CHARACTERS)
    told = piece.lines[-1:] if piece.contradicts else ()
    return replace(piece, lines=(f"- {first}" if piece.entry else first, *told), is_whole=False)


def _byte_size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _describe_cut(pieces: Sequence[_Block], filling: _Selection) -> MemoryCut:
    gone = [piece for piece in pieces if piece.number not in filling.selected]
    begun = [(piece, filling.selected[piece.number]) for piece in pieces if piece.number in filling.selected]
    lines = sum(len(piece.lines) for piece in gone)
    lines += sum(max(len(piece.lines) - len(shown.lines), 1) for piece, shown in begun if piece.lines != shown.lines)
    sizes, bounds = _measure(pieces), filling.bounds
    over: list[BoundName] = [each for each in _CAPS if sizes[each] > bounds.limit(each)]
    cap: BoundName = filling.cap or (over[0] if over else "tokens")
    return MemoryCut(
        cap=cap,
        most=bounds.limit(cap),
        lines=lines,
        memories=sum(piece.entry is not None and not piece.is_topic for piece in gone),
        topics=sum(piece.is_topic for piece in gone),
    )
