"""The excerpt of MEMORY.md in a prompt, for a file that has grown too long. Pure functions.

A file within its bounds is shown unchanged. Of a longer file the newest entry is always shown, then pinned entries and
the list of topics, then the rest by usefulness, in file order; lines that state long memories in short come after the
learned facts. With several roots the narrowest comes first. Lines
written by a person are taken in order, and the last of them also counts as newest. Contradicting entries are shown
together.

Invariants: the excerpt stays within the allowed lines, bytes and tokens, and omitted content is counted. No entry is
shown without the line that names the entry it contradicts.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from ricordo.curation.importance import entry_time, usefulness
from ricordo.curation.memory_document import DocumentPart, parse_memory_document
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.tokens import estimate_text
from ricordo.workspace.documents import BoundName, IndexBounds
from ricordo.workspace.entry import (
    CONTRADICTS_FIELD,
    Entry,
    contradiction_marker,
    find_contradictions,
    name_contradiction,
    outdated_marker,
)
from ricordo.workspace.entry_codec import preview_line
from ricordo.workspace.layout import MEMORY_PATH
from ricordo.workspace.markdown import POINTER_END, POINTER_START, decode_lines

__all__ = ["MemoryCut", "MemoryExcerpt", "excerpt_memory", "memory_lines"]


_TOPIC_LINK = lazy_compile(r"\s*(?:[-*+]|\d+\.)\s+\[[^\n]*?\]\([^()\s]+\.md(?:#[^()\s]*)?\)")
_PINNED_SHARE = 2
"""Pinned entries are guaranteed one half of each bound, and the list of topics the rest."""
_NEWEST_SHARE = 4
"""The newest entry is shortened if it takes more than one quarter of a bound."""
_DESCRIBED_SHARE = 4
"""The list of topics has its descriptions if it takes one quarter of each bound at most: memories say more."""
_BEGINNING_CHARACTERS = 120
_MANUAL_RANK = usefulness(Entry(content="-", by="hand", time=datetime.min.replace(tzinfo=UTC)))[:-1]
_POINTER_RANK = usefulness(Entry(content="-", by="flush", confidence=0.7, time=datetime.min.replace(tzinfo=UTC)))[:-1]
"""The lines that state long memories of topics in short rank after the facts that are surer than this."""
_CONTRADICTS_FIELD = f"[{CONTRADICTS_FIELD}:: ".encode()
_CAPS: tuple[BoundName, ...] = ("lines", "bytes", "tokens")
_Rank = tuple[bool, int, int, int, float, datetime]


@dataclass(frozen=True, kw_only=True)
class MemoryCut:
    """The part of MEMORY.md omitted from a prompt: `cap` is the bound reached first, and `limit` its value.

    `lines` counts the lines that are omitted or shortened. Among the omitted blocks, `memories` counts entries and
    `topics` counts topic links.
    """

    cap: BoundName
    limit: int
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
    def is_pointer(self) -> bool:
        line = self.lines[0]
        return not self.is_named and not self.is_code and line.startswith(POINTER_START) and line.endswith(POINTER_END)

    @property
    def rank(self) -> _Rank:
        if self.is_pointer:
            return _POINTER_RANK
        return usefulness(self.entry)[:-1] if self.entry and self.is_named else _MANUAL_RANK


def memory_lines(documents: Sequence[bytes]) -> list[str]:
    """Return all lines of these documents as a prompt would show them."""
    return [line for block in _iter_blocks(documents) for line in block.lines]


def excerpt_memory(
    documents: Sequence[bytes],
    bounds: IndexBounds,
    max_tokens: int,
    cost: Callable[[str], int] = estimate_text,
    *,
    other_entry_ids: Collection[str] = (),
) -> MemoryExcerpt:
    """Return the excerpt of one or several MEMORY.md files, narrowest scope first.

    All of them together have at most the lines and bytes of `bounds`, and `max_tokens` tokens, estimated by `cost`.
    `other_entry_ids` are the ids of active entries outside these documents.
    """
    blocks = list(_iter_blocks(documents))
    if any(_CONTRADICTS_FIELD in document for document in documents):
        blocks = _pair_contradictions(blocks, other_entry_ids)
    lines = _render_lines(blocks)
    text = "\n".join(lines)
    is_short = len(lines) <= bounds.max_lines and _byte_size(text) <= bounds.max_bytes
    if is_short and (not lines or cost(text) <= max_tokens):
        return MemoryExcerpt(lines=lines, entries=_whole_entries(blocks))
    selection = _Selection(blocks, replace(bounds, max_tokens=max(max_tokens, 0)))
    selection.fill(_newest_blocks(blocks))
    while selection.selected and cost(selection.text) > max_tokens:
        selection.shorten()
    return MemoryExcerpt(
        lines=selection.lines, cut=_describe_cut(blocks, selection), entries=_whole_entries(selection.selected.values())
    )


def _whole_entries(blocks: Iterable[_Block]) -> tuple[tuple[int, str], ...]:
    return tuple((block.document, block.entry_id) for block in blocks if block.entry_id and block.is_whole)


def _iter_blocks(documents: Sequence[bytes]) -> Iterator[_Block]:
    number = 0
    for index, document in enumerate(documents):
        heading: int | None = None
        for part in parse_memory_document(document, MEMORY_PATH).parts:
            lines = _block_lines(part)
            if not lines:
                continue
            if part.heading or (not part.section and not part.fenced and lines[0].startswith("# ")):
                heading = None
            yield _Block(
                number=number, document=index, lines=lines, entry=part.entry, is_named=part.is_named,
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
        text = " ".join(filter(None, (part.entry.content, outdated_marker(part.entry))))
        data = ("- " + text.replace("\n", "\n  ")).encode("utf-8", "replace")
    return tuple(line.rstrip() for line in decode_lines(data) if line.strip())


def _pair_contradictions(blocks: Sequence[_Block], other_entry_ids: Collection[str]) -> list[_Block]:
    """Return the blocks with contradicting entries next to each other, each with a line that says so."""
    links = find_contradictions([block.entry for block in blocks if block.entry], elsewhere=other_entry_ids)
    paired = {block.entry_id: block for block in reversed(blocks) if block.entry_id in links}
    ordered: list[_Block] = []
    placed_ids: set[str] = set()
    for block in blocks:
        if block is not paired.get(block.entry_id):
            ordered.append(block)
        elif block.entry_id not in placed_ids:
            others = [paired[name] for name in links[block.entry_id] if name in paired and name not in placed_ids]
            ordered += [block, *(replace(each, document=block.document, heading=block.heading) for each in others)]
            placed_ids.update((block.entry_id, *(each.entry_id for each in others)))
    numbers = {block.number: number for number, block in enumerate(ordered)}
    return [
        replace(
            block,
            number=number,
            heading=None if block.heading is None else numbers[block.heading],
            contradicts=links.get(block.entry_id, ()) if block.entry_id in paired else (),
            lines=(*block.lines, f"  {name_contradiction(links[block.entry_id][0])}")
            if block.entry_id in paired
            else block.lines,
        )
        for number, block in enumerate(ordered)
    ]


def _render_lines(blocks: Sequence[_Block]) -> tuple[str, ...]:
    """Return the lines of consecutive blocks, with their contradiction lines."""
    names = ["", *(block.entry_id for block in blocks), ""]
    lines: list[str] = []
    for index, block in enumerate(blocks):
        lines += block.lines[:-1] if block.contradicts else block.lines
        if block.contradicts:
            lines.append(f"  {contradiction_marker(block.contradicts, before=names[index], after=names[index + 2])}")
    return tuple(lines)


def _newest_blocks(blocks: Sequence[_Block]) -> list[_Block]:
    """Return the newest entry, and the last line that a person added to each document."""
    dated = [block for block in blocks if block.entry and (block.entry.time or block.entry.since)]
    newest = [max(dated, key=lambda block: _age_key(block.entry))] if dated else []
    return [*newest, *{block.document: block for block in blocks if _is_manual(block)}.values()]


def _age_key(entry: Entry | None) -> tuple[datetime, str]:
    assert entry is not None
    return entry_time(entry), entry.id


def _is_manual(block: _Block) -> bool:
    return not (block.is_named or block.is_heading or block.is_code or block.is_topic or block.is_pointer)


class _Selection:
    """The selected blocks, in the order of selection."""

    def __init__(self, blocks: Sequence[_Block], bounds: IndexBounds) -> None:
        self.selected: dict[int, _Block] = {}
        self.cap: BoundName | None = None
        self.bounds = bounds
        self._blocks = blocks
        self._used: dict[BoundName, int] = dict.fromkeys(_CAPS, 0)

    @property
    def lines(self) -> tuple[str, ...]:
        return _render_lines([self.selected[number] for number in sorted(self.selected)])

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def fill(self, newest: Iterable[_Block]) -> None:
        """Select as many blocks as fit, the most important first."""
        for block in newest:
            if not self._add(block, _NEWEST_SHARE):
                self._add(_shorten_block(block))
        pinned = [block for block in self._blocks if block.entry and block.entry.pinned]
        for block in pinned:
            self._add(block, _PINNED_SHARE)
        for document in sorted({block.document for block in self._blocks}):
            document_blocks = [block for block in self._blocks if block.document == document]
            topics = [block for block in document_blocks if block.is_topic]
            self._add_each(topics if self._is_share(topics, _DESCRIBED_SHARE) else map(_shorten_topic, topics))
            rest = [block for block in document_blocks if not (block.is_heading or block.is_topic)]
            by_rank = sorted(rest, key=lambda block: block.rank, reverse=True)
            if not self._add_each([*pinned, *by_rank]):
                break

    def shorten(self) -> None:
        """Remove the last tenth of the selection: escaped text has more tokens than estimated."""
        self.cap = self.cap or "tokens"
        for number in list(self.selected)[len(self.selected) * 9 // 10 :]:
            del self.selected[number]

    def _add_each(self, blocks: Iterable[_Block]) -> bool:
        """Add these blocks in order. Return False if a bound is reached with blocks left over."""
        for block in blocks:
            full_cap = next((cap for cap in _CAPS if self._used[cap] >= self.bounds.limit(cap)), None)
            if full_cap is None:
                self._add(block)
            elif block.number not in self.selected:
                self.cap = self.cap or full_cap
                return False
        return True

    def _is_share(self, blocks: Sequence[_Block], share: int) -> bool:
        """Tell whether blocks take `1 / share` of each bound at most."""
        sizes = _measure(blocks)
        return all(sizes[cap] * share <= self.bounds.limit(cap) for cap in _CAPS)

    def _add(self, block: _Block, share: int = 1) -> bool:
        """Add a block with its heading if both fit into the rest and into `1 / share` of each bound."""
        if block.number in self.selected:
            return True
        headings = [] if block.heading is None or block.heading in self.selected else [self._blocks[block.heading]]
        added = _measure([*headings, block])
        for cap in _CAPS:
            if self._used[cap] + added[cap] > self.bounds.limit(cap) // share:
                self.cap = self.cap or (cap if share == 1 else None)
                return False
        for each in [*headings, block]:
            self.selected[each.number] = each
        self._used = {cap: used + added[cap] for cap, used in self._used.items()}
        return True


def _measure(blocks: Sequence[_Block]) -> dict[BoundName, int]:
    """Return the maximum size of blocks, with one line end for each line."""
    text = "".join(f"{line}\n" for block in blocks for line in block.lines)
    return {
        "lines": sum(len(block.lines) for block in blocks),
        "bytes": _byte_size(text),
        "tokens": estimate_text(text),
    }


def _shorten_block(block: _Block) -> _Block:
    """Return a block with only the beginning of its text."""
    text = block.entry.content if block.entry else block.lines[0]
    beginning = preview_line(text, _BEGINNING_CHARACTERS)
    marker = block.lines[-1:] if block.contradicts else ()
    return replace(block, lines=(f"- {beginning}" if block.entry else beginning, *marker), is_whole=False)


def _shorten_topic(topic: _Block) -> _Block:
    """Return the line of a topic without its description."""
    link = _TOPIC_LINK.match(topic.lines[0])
    return replace(topic, lines=(link[0],), is_whole=False) if link else topic


def _byte_size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _describe_cut(blocks: Sequence[_Block], selection: _Selection) -> MemoryCut:
    omitted = [block for block in blocks if block.number not in selection.selected]
    included = [(block, selection.selected[block.number]) for block in blocks if block.number in selection.selected]
    lines = sum(len(block.lines) for block in omitted)
    lines += sum(
        max(len(block.lines) - len(selected_block.lines), 1)
        for block, selected_block in included
        if block.lines != selected_block.lines
    )
    sizes, bounds = _measure(blocks), selection.bounds
    exceeded: list[BoundName] = [each for each in _CAPS if sizes[each] > bounds.limit(each)]
    cap: BoundName = selection.cap or (exceeded[0] if exceeded else "tokens")
    return MemoryCut(
        cap=cap,
        limit=bounds.limit(cap),
        lines=lines,
        memories=sum(block.entry is not None and not block.is_topic for block in omitted),
        topics=sum(block.is_topic for block in omitted),
    )
