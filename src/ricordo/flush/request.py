"""The request for lessons, as text, within its limit: instructions, what is known, and the conversation as data.

Pure, and slow for a long conversation: call it off the event loop. Invariants: the text takes at most the limit; what
was said and what is known stand in blocks that they can't leave, and no text of them is taken for a place of the
prompt; every message that the request covers is shown, a long one by its beginning and its end.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ricordo.flush.answer import LESSONS
from ricordo.flush.config import LEDGER, MEMORY, MESSAGES, FlushConfig
from ricordo.flush.lessons import LESSONS_FORM, MOST_LESSONS, learnable
from ricordo.flush.prompts import AGAIN, CONTEXT, FLUSH, FORM, GAP, KNOWN_NOTE, NEW, RECORD_NOTE, SECTION
from ricordo.flush.section import Section
from ricordo.guard import Quoted, Trust, cut, cut_start, fence
from ricordo.messages import JsonValue, Message
from ricordo.tokens import cut_text, estimate_text, safe_boundary

__all__ = ["Known", "LessonsRequest", "Material", "first_request"]

_PLACE = re.compile("|".join(map(re.escape, (MEMORY, LEDGER, MESSAGES))))
_FRAME = 12
_LEAST_ROOM = 300
_LEAST_SHOWN = 40
_SECTION_SHARE = 5
_CONTEXT_SHARE = 4
_ANSWER = 2_000
"""What an answer may take of the model's window, in tokens."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """What is remembered already, as text: MEMORY.md, and ledgers by their path, that of today first."""

    memory: str = ""
    ledgers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Material:
    """What there is to learn from: the new messages, a few before them, what is known, and further sections."""

    new: Sequence[Message]
    context: Sequence[Message] = ()
    known: Known = Known()
    sections: Sequence[Section] = ()


@dataclass(frozen=True, kw_only=True)
class LessonsRequest:
    """A request: its text, the form of the answer, and the messages to learn from.

    It `covers` so many of the new messages, from the first on; with nothing to `learn` from in them there is no need to
    ask. `said` is the text beside these messages in which names may stand.
    """

    text: str
    form: Mapping[str, JsonValue]
    learn: tuple[Message, ...]
    covers: int
    said: str = ""

    def again(self, flaw: str) -> "LessonsRequest":
        """Return the request once more, with what was wrong with the answer."""
        return replace(self, text=self.text + AGAIN.format(flaw=flaw))


def first_request(material: Material, config: FlushConfig, *, window: int | None = None) -> LessonsRequest:
    """Return the request for as many of the new messages, from the first on, as one takes; for one at least.

    `window` is the model's, in tokens; a request leaves room in it for the answer.
    """
    layout = _Layout(material=material, config=config, limit=_limit(config, window))
    known = layout.known()
    room = max(_LEAST_ROOM, layout.free - _size(*known))
    items, learn, covers = layout.shown(room)
    text = layout.text(known, items)
    return LessonsRequest(text=text, form=_form(material.sections), learn=learn, covers=covers, said=layout.said())


def _limit(config: FlushConfig, window: int | None) -> int:
    most = config.max_input_tokens - estimate_text(AGAIN) - 30
    return most if window is None else max(_LEAST_ROOM * 2, min(most, window - _ANSWER, int(window * 0.8)))


def _form(sections: Sequence[Section]) -> Mapping[str, JsonValue]:
    properties: dict[str, JsonValue] = {LESSONS: dict(LESSONS_FORM)}
    properties |= {each.name: dict(each.schema) for each in sections}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@dataclass(frozen=True, kw_only=True)
class _Layout:
    """How the parts of a request share its room, in tokens."""

    material: Material
    config: FlushConfig
    limit: int

    @property
    def free(self) -> int:
        """What the frame leaves to what is known and to the conversation."""
        return max(2 * _LEAST_ROOM, self.limit - estimate_text(self.text(("", ""), ())))

    def known(self) -> tuple[str, str]:
        """Return the blocks of MEMORY.md and of the ledgers, in half of the room at most."""
        room = self.free // 2
        memory = _block([("MEMORY.md", self.material.known.memory)], room)
        room -= estimate_text(memory)
        ledgers = self.material.known.ledgers
        return memory, _ledger_block(ledgers, room)

    def shown(self, room: int) -> tuple[list[Quoted], tuple[Message, ...], int]:
        """Return the items that fit, the messages to learn from, and how many new messages that covers."""
        items: list[Quoted] = []
        learn: list[Message] = []
        left = room - room // _CONTEXT_SHARE if self.material.context else room
        covers = 0
        for message in self.material.new:
            if learnable(message):
                item = self._item(message, NEW)
                size = _item_size(item)
                if size > left and learn:
                    break
                if size > left:
                    item = _fitting(item, left)
                    size = _item_size(item)
                items.append(item)
                learn.append(message)
                left -= size
            covers += 1
        left += room // _CONTEXT_SHARE if self.material.context else 0
        return [*self._before(left), *items] if items else [], tuple(learn), covers

    def text(self, known: tuple[str, str], items: Sequence[Quoted]) -> str:
        """Return the whole text of the request."""
        template = self.config.flush_prompt or FLUSH
        blocks = {MEMORY: known[0], LEDGER: known[1], MESSAGES: fence(items, name="conversation", note=RECORD_NOTE)}
        unplaced = [blocks[place] for place in (MEMORY, LEDGER) if place not in template and blocks[place]]
        blocks[MESSAGES] = "\n\n".join([*unplaced, blocks[MESSAGES]])
        # in one pass, so that nothing in the blocks is taken for a place
        asked = _PLACE.sub(lambda place: blocks[place[0]], template)
        sections = [SECTION.format(name=each.name, instructions=self._told(each)) for each in self.material.sections]
        return "".join([asked, FORM.format(most=MOST_LESSONS), *sections])

    def said(self) -> str:
        """Return the text in which names may stand beside what is to be learned from."""
        spoken = [f"{message.name or ''} {message.text}" for message in self.material.context]
        known = self.material.known
        return "\n".join([*spoken, known.memory, *(text for _, text in known.ledgers)])

    def _told(self, section: Section) -> str:
        if not section.reference.strip():
            return section.instructions
        item = Quoted(text=section.reference, source=section.name, trust=Trust.AGENT)
        shown = _fitting(item, max(_LEAST_SHOWN, self.limit // _SECTION_SHARE))
        return f"{section.instructions}\n{fence([shown], name='known', note=KNOWN_NOTE)}"

    def _before(self, room: int) -> list[Quoted]:
        found: list[Quoted] = []
        for message in reversed([each for each in self.material.context if learnable(each)]):
            item = self._item(message, CONTEXT)
            room -= _item_size(item)
            if room < 0:
                break
            found.insert(0, item)
        return found

    def _item(self, message: Message, kind: str) -> Quoted:
        who = f"{message.role} {message.name}" if message.name else message.role
        when = f", {message.time:%Y-%m-%d %A}" if message.time else ""
        trust = Trust.USER if message.role == "user" else Trust.AGENT
        text = _ends(message.text, self.config.head_tail) if self.config.head_tail else message.text
        return Quoted(text=text, source=f"{who}{when}", trust=trust, kind=kind, id=message.id)


def _block(texts: Sequence[tuple[str, str]], room: int) -> str:
    """Return the block of what is known, each text with its source; the middle of what does not fit is left out."""
    items = [Quoted(text=text, source=source, trust=Trust.AGENT) for source, text in texts if text.strip()]
    if not items or room < _LEAST_SHOWN:
        return ""
    each = room // len(items)
    return fence([_fitting(item, each) for item in items], name="known", note=KNOWN_NOTE)


def _ledger_block(ledgers: Sequence[tuple[str, str]], room: int) -> str:
    """Return the block of the ledgers that fit, today's as far as there is room for it, the others only whole."""
    chosen: list[tuple[str, str]] = []
    left = room
    for at, (path, text) in enumerate(ledgers):
        size = _item_size(Quoted(text=text, source=path, trust=Trust.AGENT))
        if size <= left:
            chosen.append((path, text))
            left -= size
        elif at == 0:
            return _block([(path, text)], room)
    items = [Quoted(text=text, source=path, trust=Trust.AGENT) for path, text in chosen if text.strip()]
    return fence(items, name="known", note=KNOWN_NOTE)


def _fitting(item: Quoted, room: int) -> Quoted:
    """Return the item in at most `room` tokens, the middle of a longer text left out."""
    text, half = item.text, room
    while _item_size(item) > room and half > _LEAST_SHOWN // 2:
        half = max(_LEAST_SHOWN // 2, min(half, (room - _item_size(replace(item, text=""))) // 2))
        head = cut(text, len(cut_text(text, half)))
        tail = cut_start(text, len(text) - len(cut_text(text[::-1], half)))
        gap = GAP.format(count=len(text) - len(head) - len(tail))
        item = replace(item, text=f"{head}\n{gap}\n{tail}" if len(head) + len(tail) < len(text) else text)
        half = half * 3 // 4
    return item


def _ends(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    half = max(1, longest // 2)
    head = cut(text, safe_boundary(text, half))
    tail = cut_start(text, safe_boundary(text, len(text) - half))
    return f"{head}\n{GAP.format(count=len(text) - len(head) - len(tail))}\n{tail}"


def _item_size(item: Quoted) -> int:
    """What an item takes in its block, with the block's own lines, so rather too much."""
    return estimate_text(fence([item], name="conversation")) + _FRAME


def _size(*texts: str) -> int:
    return sum(map(estimate_text, texts))
