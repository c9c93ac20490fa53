"""The request for advice, as text, within its limit: instructions, curated memory, and what is new, as data. Pure.

Invariants: the text takes at most the limit; both records stand in blocks that they can't leave, and no text of them is
taken for a place of the prompt; of the ledgers it holds what no run has read and nothing else.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from ricordo.consolidation.answer import MAX_PARENTS
from ricordo.consolidation.config import CHARACTERS_SLOT, TOKENS_SLOT, LEDGER_SLOT, MEMORY_SLOT, ConsolidationConfig
from ricordo.consolidation.plan import ConsolidationInput
from ricordo.consolidation.prompts import (
    RETRY_INSTRUCTION,
    CONSOLIDATION_PROMPT,
    CUT_NOTE,
    DREAM_INSTRUCTION,
    ANSWER_INSTRUCTIONS,
    LEDGER_NOTE,
    MEMORY_NOTE,
    MORE_NOTE,
)
from ricordo.guard import FencedItem, Trust, cut, render_fence
from ricordo.tokens import cut_text, estimate_text
from ricordo.workspace.entry_codec import parse_entries, render_entry
from ricordo.workspace.layout import MEMORY_PATH as MEMORY_PATH
from ricordo.workspace.layout import WORKSPACE

__all__ = ["AdviceRequest", "build_requests"]

_SLOT = re.compile("|".join(map(re.escape, (TOKENS_SLOT, CHARACTERS_SLOT, MEMORY_SLOT, LEDGER_SLOT))))
_CHARACTERS_PER_TOKEN = 4
_ANSWER_TOKENS = 3_000
"""What an answer may take of the model's window, in tokens."""
_MIN_TOKENS = 400
_FRAME_TOKENS = 16


@dataclass(frozen=True, kw_only=True)
class AdviceRequest:
    """A request: its text, and the ids of the entries that it shows, those that are curated among them."""

    text: str
    standing: frozenset[str]
    shown: frozenset[str]

    def with_flaw(self, flaw: str) -> "AdviceRequest":
        """Return the request once more, with what was wrong with the answer."""
        return AdviceRequest(
            text=self.text + RETRY_INSTRUCTION.format(flaw=flaw), standing=self.standing, shown=self.shown
        )


@dataclass(frozen=True, kw_only=True)
class _Excerpt:
    """A part of what is new, which is shown in one request and no other."""

    source: str
    text: str
    names: frozenset[str]
    curated: bool


def build_requests(
    material: ConsolidationInput, config: ConsolidationConfig, *, window: int | None
) -> list[AdviceRequest]:
    """Return what to ask, in as many requests as it takes; none when nothing is new, but for a dream."""
    pieces = _build_excerpts(material)
    memory = material.documents.get(MEMORY_PATH, b"")
    if not pieces and not (material.deep and memory.strip()):
        return []
    most = config.max_input_tokens - estimate_text(RETRY_INSTRUCTION) - 40
    limit = most if window is None else max(2 * _MIN_TOKENS, min(most, int(window * 0.8), window - _ANSWER_TOKENS))
    room = max(_MIN_TOKENS, limit - estimate_text(_render_request("", "", material, config)))
    end = _find_end(memory, room // 2)
    shown, note = memory[:end].decode("utf-8", "replace"), MEMORY_NOTE
    if end < len(memory):
        note += MORE_NOTE if material.deep else CUT_NOTE
        pieces = [*(_excerpts_after(memory, end) if material.deep else ()), *pieces]
    curated = _fence_records(
        [FencedItem(text=shown, source="MEMORY.md", trust=Trust.AGENT)] if shown.strip() else [], note
    )
    names = frozenset(found.entry.id for found in parse_entries(memory, MEMORY_PATH) if found.offset < end)
    room -= estimate_text(curated) + _FRAME_TOKENS
    made = []
    for group in _group_excerpts(pieces, max(_MIN_TOKENS, room)) or [[]]:
        told = _fence_records(_quote_excerpts(group), LEDGER_NOTE)
        topics = frozenset[str]().union(*(piece.names for piece in group if piece.curated))
        new = frozenset[str]().union(*(piece.names for piece in group))
        text = _render_request(curated, told, material, config)
        made.append(AdviceRequest(text=text, standing=names | topics, shown=names | new))
    return made


def _render_request(curated: str, told: str, material: ConsolidationInput, config: ConsolidationConfig) -> str:
    template = config.consolidation_prompt or CONSOLIDATION_PROMPT
    blocks = {
        TOKENS_SLOT: f"{config.max_memory_tokens:,}",
        CHARACTERS_SLOT: f"{config.max_memory_tokens * _CHARACTERS_PER_TOKEN:,}",
        MEMORY_SLOT: curated or "(MEMORY.md is empty.)",
        LEDGER_SLOT: told or "(Nothing was noted since.)",
    }
    unplaced = [blocks[place] for place in (MEMORY_SLOT, LEDGER_SLOT) if place not in template]
    # in one pass, so that nothing in the blocks is taken for a place
    asked = _SLOT.sub(lambda place: blocks[place[0]], template)
    form = ANSWER_INSTRUCTIONS.format(most_parents=MAX_PARENTS, most_retired=config.max_retired)
    return "\n\n".join([asked, *unplaced]) + (DREAM_INSTRUCTION if material.deep else "") + form


def _build_excerpts(material: ConsolidationInput) -> list[_Excerpt]:
    """Return what is new, one piece for each entry; in a dream what the topics hold too."""
    topics = [path for path in sorted(material.documents) if material.deep and path != MEMORY_PATH]
    held = [
        _Excerpt(source=path.removeprefix(f"{WORKSPACE}/"), text=bullet, names=frozenset({name}), curated=True)
        for path in topics
        for name, bullet in _read_bullets(path, material.documents[path])
    ]
    new = [
        _Excerpt(
            source="ledger",
            text=render_entry(one.entry, long=one.long).rstrip("\n"),
            names=frozenset({one.entry.id}),
            curated=False,
        )
        for one in material.fresh
    ]
    return [*held, *new]


def _find_end(document: bytes, room: int) -> int:
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


def _excerpts_after(document: bytes, end: int) -> list[_Excerpt]:
    """Return the entries of MEMORY.md from there on, which are shown in a request of their own."""
    return [
        _Excerpt(
            source="MEMORY.md",
            text=document[found.offset : found.offset + found.length].decode("utf-8", "replace").rstrip("\n"),
            names=frozenset({found.entry.id}),
            curated=True,
        )
        for found in parse_entries(document, MEMORY_PATH)
        if found.offset >= end
    ]


def _read_bullets(path: str, document: bytes) -> list[tuple[str, str]]:
    found = parse_entries(document, path)
    return [
        (each.entry.id, document[each.offset : each.offset + each.length].decode("utf-8", "replace").rstrip("\n"))
        for each in found
    ]


def _group_excerpts(pieces: Sequence[_Excerpt], room: int) -> list[list[_Excerpt]]:
    """Return the pieces in order, as many together as have room; one that has none by itself is cut."""
    groups: list[list[_Excerpt]] = []
    left = 0
    for piece in pieces:
        size = estimate_text(piece.text) + _FRAME_TOKENS
        if size > room:
            cut = f"{_cut_to_tokens(piece.text, room - 2 * _FRAME_TOKENS)}…"
            piece = _Excerpt(source=piece.source, text=cut, names=frozenset(), curated=piece.curated)  # noqa: PLW2901
            size = room
        if not groups or size > left:
            groups.append([])
            left = room
        groups[-1].append(piece)
        left -= size
    return groups


def _quote_excerpts(group: Sequence[_Excerpt]) -> list[FencedItem]:
    texts: defaultdict[str, list[str]] = defaultdict(list)
    for piece in group:
        texts[piece.source].append(piece.text)
    return [FencedItem(text="\n".join(lines), source=source, trust=Trust.AGENT) for source, lines in texts.items()]


def _fence_records(items: Sequence[FencedItem], note: str) -> str:
    return render_fence(items, name="record", note=note)


def _cut_to_tokens(text: str, room: int) -> str:
    return cut(text, len(cut_text(text, max(1, room))))
