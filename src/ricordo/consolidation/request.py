"""The request for advice, as text, within its limit: instructions, curated memory, and what is new, as data. Pure.

Invariants: the text takes at most the limit; both records stand in blocks that they can't leave, and no text of them is
taken for a place of the prompt; of the ledgers it holds what no run has read and nothing else.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from ricordo.consolidation.answer import MOST_PARENTS
from ricordo.consolidation.config import BUDGET_CHARACTERS, BUDGET_TOKENS, LEDGER, MEMORY, ConsolidationConfig
from ricordo.consolidation.plan import Material
from ricordo.consolidation.prompts import (
    AGAIN,
    CONSOLIDATION,
    CUT_NOTE,
    DREAM,
    FORM,
    LEDGER_NOTE,
    MEMORY_NOTE,
    MORE_NOTE,
)
from ricordo.guard import Quoted, Trust, cut, fence
from ricordo.tokens import cut_text, estimate_text
from ricordo.workspace.entry_codec import parse_entries, render_entry
from ricordo.workspace.layout import MEMORY as MEMORY_PATH
from ricordo.workspace.layout import WORKSPACE

__all__ = ["AdviceRequest", "requests_for"]

_PLACE = re.compile("|".join(map(re.escape, (BUDGET_TOKENS, BUDGET_CHARACTERS, MEMORY, LEDGER))))
_CHARACTERS_A_TOKEN = 4
_ANSWER = 3_000
"""What an answer may take of the model's window, in tokens."""
_LEAST_ROOM = 400
_FRAME = 16


@dataclass(frozen=True, kw_only=True)
class AdviceRequest:
    """A request: its text, and the ids of the entries that it shows, those that are curated among them."""

    text: str
    standing: frozenset[str]
    shown: frozenset[str]

    def again(self, flaw: str) -> "AdviceRequest":
        """Return the request once more, with what was wrong with the answer."""
        return AdviceRequest(text=self.text + AGAIN.format(flaw=flaw), standing=self.standing, shown=self.shown)


@dataclass(frozen=True, kw_only=True)
class _Piece:
    """A part of what is new, which is shown in one request and no other."""

    source: str
    text: str
    names: frozenset[str]
    curated: bool


def requests_for(material: Material, config: ConsolidationConfig, *, window: int | None) -> list[AdviceRequest]:
    """Return what to ask, in as many requests as it takes; none when nothing is new, but for a dream."""
    pieces = _pieces(material)
    memory = material.documents.get(MEMORY_PATH, b"")
    if not pieces and not (material.deep and memory.strip()):
        return []
    most = config.max_input_tokens - estimate_text(AGAIN) - 40
    limit = most if window is None else max(2 * _LEAST_ROOM, min(most, int(window * 0.8), window - _ANSWER))
    room = max(_LEAST_ROOM, limit - estimate_text(_text("", "", material, config)))
    end = _end_within(memory, room // 2)
    shown, note = memory[:end].decode("utf-8", "replace"), MEMORY_NOTE
    if end < len(memory):
        note += MORE_NOTE if material.deep else CUT_NOTE
        pieces = [*(_after(memory, end) if material.deep else ()), *pieces]
    curated = _fenced([Quoted(text=shown, source="MEMORY.md", trust=Trust.AGENT)] if shown.strip() else [], note)
    names = frozenset(found.entry.id for found in parse_entries(memory, MEMORY_PATH) if found.offset < end)
    room -= estimate_text(curated) + _FRAME
    made = []
    for group in _groups(pieces, max(_LEAST_ROOM, room)) or [[]]:
        told = _fenced(_quoted(group), LEDGER_NOTE)
        topics = frozenset[str]().union(*(piece.names for piece in group if piece.curated))
        new = frozenset[str]().union(*(piece.names for piece in group))
        text = _text(curated, told, material, config)
        made.append(AdviceRequest(text=text, standing=names | topics, shown=names | new))
    return made


def _text(curated: str, told: str, material: Material, config: ConsolidationConfig) -> str:
    template = config.consolidation_prompt or CONSOLIDATION
    blocks = {
        BUDGET_TOKENS: f"{config.max_memory_tokens:,}",
        BUDGET_CHARACTERS: f"{config.max_memory_tokens * _CHARACTERS_A_TOKEN:,}",
        MEMORY: curated or "(MEMORY.md is empty.)",
        LEDGER: told or "(Nothing was noted since.)",
    }
    unplaced = [blocks[place] for place in (MEMORY, LEDGER) if place not in template]
    # in one pass, so that nothing in the blocks is taken for a place
    asked = _PLACE.sub(lambda place: blocks[place[0]], template)
    form = FORM.format(most_parents=MOST_PARENTS, most_retired=config.max_retired)
    return "\n\n".join([asked, *unplaced]) + (DREAM if material.deep else "") + form


def _pieces(material: Material) -> list[_Piece]:
    """Return what is new, one piece for each entry; in a dream what the topics hold too."""
    topics = [path for path in sorted(material.documents) if material.deep and path != MEMORY_PATH]
    held = [
        _Piece(source=path.removeprefix(f"{WORKSPACE}/"), text=bullet, names=frozenset({name}), curated=True)
        for path in topics
        for name, bullet in _bullets(path, material.documents[path])
    ]
    new = [
        _Piece(
            source="ledger",
            text=render_entry(one.entry, long=one.long).rstrip("\n"),
            names=frozenset({one.entry.id}),
            curated=False,
        )
        for one in material.fresh
    ]
    return [*held, *new]


def _end_within(document: bytes, room: int) -> int:
    """Return where the lines and whole entries end that have room from the beginning of a document on."""
    if estimate_text(document.decode("utf-8", "replace")) <= room:
        return len(document)
    inside: set[int] = set()
    for found in parse_entries(document, MEMORY_PATH):
        inside.update(range(found.offset + 1, found.offset + found.length))
    ends = [at for at in accumulate(map(len, document.splitlines(keepends=True))) if at not in inside]
    end = 0
    for start, stop in pairwise([0, *ends]):
        room -= estimate_text(document[start:stop].decode("utf-8", "replace"))
        if room < 0:
            break
        end = stop
    return end


def _after(document: bytes, end: int) -> list[_Piece]:
    """Return the entries of MEMORY.md from there on, which are shown in a request of their own."""
    return [
        _Piece(
            source="MEMORY.md",
            text=document[found.offset : found.offset + found.length].decode("utf-8", "replace").rstrip("\n"),
            names=frozenset({found.entry.id}),
            curated=True,
        )
        for found in parse_entries(document, MEMORY_PATH)
        if found.offset >= end
    ]


def _bullets(path: str, document: bytes) -> list[tuple[str, str]]:
    found = parse_entries(document, path)
    return [
        (each.entry.id, document[each.offset : each.offset + each.length].decode("utf-8", "replace").rstrip("\n"))
        for each in found
    ]


def _groups(pieces: Sequence[_Piece], room: int) -> list[list[_Piece]]:
    """Return the pieces in order, as many together as have room; one that has none by itself is cut."""
    groups: list[list[_Piece]] = []
    left = 0
    for piece in pieces:
        size = estimate_text(piece.text) + _FRAME
        if size > room:
            cut = f"{_cut(piece.text, room - 2 * _FRAME)}…"
            piece = _Piece(source=piece.source, text=cut, names=frozenset(), curated=piece.curated)  # noqa: PLW2901
            size = room
        if not groups or size > left:
            groups.append([])
            left = room
        groups[-1].append(piece)
        left -= size
    return groups


def _quoted(group: Sequence[_Piece]) -> list[Quoted]:
    texts: defaultdict[str, list[str]] = defaultdict(list)
    for piece in group:
        texts[piece.source].append(piece.text)
    return [Quoted(text="\n".join(lines), source=source, trust=Trust.AGENT) for source, lines in texts.items()]


def _fenced(items: Sequence[Quoted], note: str) -> str:
    return fence(items, name="record", note=note)


def _cut(text: str, room: int) -> str:
    return cut(text, len(cut_text(text, max(1, room))))
