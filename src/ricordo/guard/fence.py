"""Memory on its way to a prompt: data in a block that it cannot leave, each piece with its source and trust.

    <memory note="...">
    <memory-item source="ledger 2026-11-21" trust="user" kind="decision" age="3 days" id="...">
    We deploy only from main.
    </memory-item>
    </memory>

Invariants: the text of an item can neither close nor open a tag of the block, nor begin another speaker's turn; text
that does not try stays as it is, byte for byte; `parse_fence` gives the exact texts back.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ricordo.guard.tags import MAX_NAME_LETTERS, escape_tags, fold_tag_name, is_invisible, unescape_tags
from ricordo.guard.trust import Trust

__all__ = ["FencedItem", "contains_fence", "render_fence", "parse_fence"]

_FENCE_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*\Z")
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9 _.,:/#@+-]*")
_FENCE_OPENING = re.compile(r'<(?P<name>[a-z][a-z0-9_-]*)(?: note="[^"\n]*")?>\n')
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;", "[": "&#x5B;"}
_OTHER_BRACKETS = frozenset("＜﹤‹〈⟨〈❮˂ᐸ＞﹥›〉⟩〉❯˃ᐳ［")


@dataclass(frozen=True, kw_only=True)
class FencedItem:
    """One piece of remembered text with what a reader must know about it: where it is from, who stands behind it, how
    old it is (in words), its kind, and the id by which it can be corrected or forgotten."""

    text: str
    source: str
    trust: Trust
    age: str | None = None
    kind: str | None = None
    id: str | None = None


def render_fence(items: Sequence[FencedItem], *, name: str = "memory", note: str | None = None) -> str:
    """The block that holds `items` in their order, without a final line end; "" for no items.

    `note` says in one line how the block is to be read. Raises: ValueError for a `name` that is not lower-case words
    of letters and digits joined by `-` or `_`.
    """
    names = _tag_names(name)
    if not items:
        return ""
    opening = f"<{name}{_attribute('note', note)}>"
    blocks = [f"<{name}-item{_attributes(item)}>\n{escape_tags(item.text, names)}\n</{name}-item>" for item in items]
    return "\n".join([opening, *blocks, f"</{name}>"])


def parse_fence(text: str) -> tuple[str, ...] | None:
    """The exact texts in a block that `render_fence` made, in order; () for empty text; None for anything else. White space
    around the block does not count."""
    text = text.strip()
    opening = _FENCE_OPENING.match(text)
    if opening is None:
        return None if text else ()
    name, at = opening["name"], opening.end()
    if not _is_valid_name(name):
        return None
    names = _tag_names(name)
    item = re.compile(rf'<{name}-item(?: [a-z]+="[^"\n]*")+>\n')
    ending, texts = f"\n</{name}-item>\n", []
    while (start := item.match(text, at)) is not None:
        end = text.find(ending, start.end() - 1)
        if end < 0:
            return None
        body = text[start.end() : end]
        plain = unescape_tags(body, names)
        if escape_tags(plain, names) != body:
            return None
        texts.append(plain)
        at = end + len(ending)
    return tuple(texts) if texts and text[at:] == f"</{name}>" else None


def contains_fence(text: str, name: str = "memory") -> bool:
    """Whether `text` holds the beginning of a block that `render_fence` made under this `name`, even if its end was cut off.

    Text that only talks about such a block, or an item that quotes one, holds none. Raises: ValueError for a `name`
    that `render_fence` would not take.
    """
    _tag_names(name)
    return re.search(rf'<{name}(?: note="[^"\n]*")?>\n<{name}-item source="[^"\n]*" trust="[a-z]+"', text) is not None


def _is_valid_name(name: str) -> bool:
    return _FENCE_NAME.match(name) is not None and len(fold_tag_name(name + "item")) <= MAX_NAME_LETTERS


def _tag_names(name: str) -> frozenset[str]:
    if not _is_valid_name(name):
        raise ValueError(f"a fence is named like 'memory' or 'past-session', in lower case, not {name!r}")
    return frozenset([fold_tag_name(name), fold_tag_name(name + "item")])


def _attributes(item: FencedItem) -> str:
    pairs = (
        ("source", item.source),
        ("trust", item.trust.value),
        ("kind", item.kind),
        ("age", item.age),
        ("id", item.id),
    )
    return "".join(_attribute(key, value) for key, value in pairs)


def _attribute(key: str, value: str | None) -> str:
    if value is None:
        return ""
    # most values are ids and names, which need no look at each character
    shown = value if _PLAIN_VALUE.fullmatch(value) else "".join(_attribute_character(mark) for mark in value)
    return f' {key}="{shown}"'


def _attribute_character(mark: str) -> str:
    """A character inside quotes: what could end them, the line or the tag, and what cannot be seen, as a reference."""
    if mark in _ENTITIES:
        return _ENTITIES[mark]
    hidden = is_invisible(mark) or mark in _OTHER_BRACKETS or (mark.isspace() and mark != " ")
    return f"&#x{ord(mark):X};" if hidden else mark
