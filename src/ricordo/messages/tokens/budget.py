"""Token limits, an absolute number or a share of a model's window, and cutting a text to one.

Invariant: a cut never falls inside an escaped entity (`&lt;`, `&#39;`), a backslash escape, a pair of escaped
surrogates, a surrogate pair, a line break of two characters, or a visible character: a letter with its marks, a flag,
an emoji sequence.
"""

import re
import unicodedata
from typing import TypeAlias

from ricordo.errors import InvalidSetting
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.tokens.estimate import Estimator, TokenCounter

__all__ = ["Budget", "Share", "Tokens", "clip_line", "cut_text", "resolve_budget", "safe_boundary"]


@dataclass(frozen=True)
class Tokens:
    """A number of tokens, 0 or more."""

    count: int

    def __post_init__(self) -> None:
        """Raises: InvalidSetting unless the count is a whole number of at least 0."""
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 0:
            raise InvalidSetting(f"Tokens takes a whole number from 0 up, not {self.count!r}; a part is Share(0.8).")


@dataclass(frozen=True)
class Share:
    """A share of the window, above 0 and up to 1."""

    part: float

    def __post_init__(self) -> None:
        """Raises: InvalidSetting unless the share is above 0 and at most 1."""
        if isinstance(self.part, bool) or not isinstance(self.part, int | float) or not 0 < self.part <= 1:
            raise InvalidSetting(
                f"Share takes a number above 0 and up to 1, not {self.part!r}; a count is Tokens(8_000)."
            )


Budget: TypeAlias = Tokens | Share


def resolve_budget(budget: Budget, window: int) -> int:
    """Return `budget` in tokens for a model with a window of `window` tokens: at most the window, rounded down.

    Raises: InvalidSetting if the window has no tokens.
    """
    if window < 1:
        raise InvalidSetting(f"A model's window has at least one token, not {window}.")
    return min(budget.count, window) if isinstance(budget, Tokens) else int(window * budget.part)


_ENTITY = lazy_compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_LONGEST_ENTITY = 34
_ESCAPE = lazy_compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|.)",
    re.DOTALL,
)
_LONGEST_ESCAPE = 12
_MARKS = frozenset({"Mn", "Mc", "Me"})
_JOINER = "\u200d"
_ESTIMATOR = Estimator()


def cut_text(text: str, limit: int, *, counter: TokenCounter = _ESTIMATOR) -> str:
    """Return the longest prefix of `text`, to within a few characters, of at most `limit` tokens.

    The whole text if it fits; empty if nothing fits, or `limit` is not positive.
    """
    if limit <= 0:
        return ""
    end = min(len(text), 4 * limit)
    while end < len(text) and counter.count(text[:end]) <= limit:
        end = min(len(text), 2 * end)
    if end == len(text) and counter.count(text) <= limit:
        return text
    end = safe_boundary(text, _find_longest_fit(text, end, limit, counter))
    while end > 0 and counter.count(text[:end]) > limit:
        end = safe_boundary(text, end - 1)
    return text[:end]


def safe_boundary(text: str, index: int) -> int:
    """Return the greatest index up to `index` where `text` can be cut safely; both ends of the text are always safe."""
    index = min(max(index, 0), len(text))
    while 0 < index < len(text):
        start = min(
            _find_entity_start(text, index), _find_escape_start(text, index), _find_character_start(text, index)
        )
        if start == index:
            break
        index = start
    return index


def _find_longest_fit(text: str, too_long: int, limit: int, counter: TokenCounter) -> int:
    """Return about the greatest length below `too_long` whose prefix fits, by bisection."""
    fits, fails = 0, too_long
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if counter.count(text[:middle]) <= limit:
            fits = middle
        else:
            fails = middle
    return fits


def _find_entity_start(text: str, offset: int) -> int:
    start = text.rfind("&", max(0, offset - _LONGEST_ENTITY), offset)
    match = _ENTITY.match(text, start) if start >= 0 else None
    return start if match and match.end() > offset else offset


def _find_escape_start(text: str, offset: int) -> int:
    last = text.rfind("\\", max(0, offset - _LONGEST_ESCAPE), offset)
    while last >= 0:
        first = last - _count_backslashes_before(text, last)
        # in a run of backslashes every second one starts an escape
        start = last if (last - first) % 2 == 0 else last - 1
        match = _ESCAPE.match(text, start)
        if match and match.end() > offset:
            return start
        last = text.rfind("\\", max(0, offset - _LONGEST_ESCAPE), first)
    return offset


def _count_backslashes_before(text: str, offset: int) -> int:
    start = offset
    while start > 0 and text[start - 1] == "\\":
        start -= 1
    return offset - start


def _find_character_start(text: str, offset: int) -> int:
    """Return `offset`, or one less if the character there continues the one before it."""
    before, here = text[offset - 1], text[offset]
    if before.isascii() and here.isascii():
        return offset - 1 if before == "\r" and here == "\n" else offset
    joined = (
        before == _JOINER
        or _is_continuation(here)
        or (_is_flag(before) and _is_flag(here) and _count_flags_before(text, offset) % 2)
    )
    surrogates = "\ud800" <= before <= "\udbff" and "\udc00" <= here <= "\udfff"
    return offset - 1 if joined or surrogates else offset


def _is_continuation(char: str) -> bool:
    """Return whether `char` is displayed as a part of the character before it."""
    is_modifier = "\U0001f3fb" <= char <= "\U0001f3ff" or "\U000e0020" <= char <= "\U000e007f"
    is_jamo = "\u1160" <= char <= "\u11ff"
    return char == _JOINER or is_modifier or is_jamo or unicodedata.category(char) in _MARKS


def _is_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _count_flags_before(text: str, offset: int) -> int:
    start = offset
    while start > 0 and _is_flag(text[start - 1]):
        start -= 1
    return offset - start


def clip_line(text: str, max_chars: int) -> str:
    """Return the text on one line of at most `max_chars` characters; a longer text is cut between words."""
    line = " ".join(text.split())
    if len(line) <= max_chars:
        return line
    end = line.rfind(" ", max_chars // 2, max_chars)
    return line[: end if end > 0 else max_chars - 1].rstrip(" ,;:-(") + "…"
