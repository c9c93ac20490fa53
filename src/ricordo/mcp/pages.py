"""Pages of a result: what fits into the budget of tokens, and the cursor at which the next page begins.

A cursor belongs to the arguments that it came from. Nothing is left out for good: what does not fit begins the next
page, and a text that is longer than a page is cut, with a mark that says so.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ricordo.errors import InvalidQuery
from ricordo.guard import FencedItem, render_fence
from ricordo.lazy import dataclass
from ricordo.messages.json_text import decode_json
from ricordo.messages.tokens import cut_text, estimate_text, safe_boundary

__all__ = ["CUT_MARK", "ItemPage", "TextPart", "cut_part", "decode_cursor", "encode_cursor", "fit_page"]


CUT_MARK = " […]"
"""The end of a text that was cut."""
_MAX_CHARS_PER_TOKEN = 32
_NOTE_TOKENS = 80
_MIN_TEXT_TOKENS = 20
_DIGEST_CHARS = 12


@dataclass(frozen=True, kw_only=True)
class ItemPage:
    """The items that fit, in order; `cut_indexes` names those whose text was cut."""

    items: tuple[FencedItem, ...]
    cut_indexes: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True)
class TextPart:
    """A part of a text; `end` is the offset at which the next part begins, None at the end of the text."""

    text: str
    end: int | None


def fit_page(items: Sequence[FencedItem], budget: int) -> ItemPage:
    """Return the first items that fit into `budget` tokens as a fence; of the first one at least a part."""
    available = budget - _NOTE_TOKENS
    shown: list[FencedItem] = []
    for item in items:
        short = _shorten(item, available)
        if shown and (short is not item or estimate_text(render_fence([*shown, item])) > available):
            break
        shown.append(short)
        if short is not item:
            return ItemPage(items=tuple(shown), cut_indexes=frozenset({len(shown) - 1}))
    return ItemPage(items=tuple(shown))


def _shorten(item: FencedItem, available: int) -> FencedItem:
    """Return an item whose text alone fits; the same object if nothing has to be cut."""
    frame = estimate_text(render_fence([replace(item, text="")]))
    left = max(available - frame, _MIN_TEXT_TOKENS)
    text = item.text[: _MAX_CHARS_PER_TOKEN * left]
    if len(text) == len(item.text) and estimate_text(text) <= left:
        return item
    return replace(item, text=f"{cut_text(text, left)}{CUT_MARK}")


def cut_part(text: str, start: int, budget: int) -> TextPart:
    """Return the part of `text` from the offset `start` on that fits into `budget` tokens."""
    left = max(budget - _NOTE_TOKENS, _MIN_TEXT_TOKENS)
    rest = text[start:]
    part = rest[: safe_boundary(rest, _MAX_CHARS_PER_TOKEN * left)]
    if estimate_text(part) > left:
        part = cut_text(part, left) or part[:1]
    end = start + len(part)
    return TextPart(text=part, end=end if end < len(text) else None)


def encode_cursor(arguments: Mapping[str, object], position: int | str) -> str:
    """Return the cursor of the page that begins at `position`, for a call with these arguments."""
    return base64.urlsafe_b64encode(json.dumps([_digest(arguments), position]).encode()).decode().rstrip("=")


def decode_cursor(arguments: Mapping[str, object], cursor: str) -> int | str | None:
    """Return the position of a cursor, None for an empty one.

    Raises: InvalidQuery for a cursor that was changed, or that belongs to other arguments.
    """
    if not cursor.strip():
        return None
    try:
        digest, position = decode_json(base64.urlsafe_b64decode(cursor.strip() + "=" * (-len(cursor.strip()) % 4)))
    except (ValueError, TypeError, binascii.Error) as error:
        raise InvalidQuery(_BAD_CURSOR) from error
    is_position = isinstance(position, str) or (isinstance(position, int) and position >= 0)
    if digest != _digest(arguments) or not is_position:
        raise InvalidQuery(_BAD_CURSOR)
    return position if isinstance(position, str) else int(position)


_BAD_CURSOR = (
    "The cursor does not belong to this call: give the next_cursor of the result before with otherwise the same "
    "arguments, or no cursor for the first page."
)


def _digest(arguments: Mapping[str, object]) -> str:
    others = {name: value for name, value in arguments.items() if name not in {"cursor", "limit"}}
    return hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()[:_DIGEST_CHARS]
