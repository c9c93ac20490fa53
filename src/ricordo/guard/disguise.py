"""Text without its disguises: characters that show nothing left out, look-alikes of plain letters and digits as those,
letters with a loose accent as one character; and where each part stood in the text as it was.

Invariant: the work is linear in the text, and text in no disguise costs one search.
"""

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass, replace

from ricordo.guard.rule import SecretSpan

__all__ = ["UndisguisedText", "remove_disguises"]

_HIDDEN_CHARACTERS = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
_ACCENTS = "\u0300-\u036f"
_STYLED_LETTERS = "\u24b6-\u24e9\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff"
# Letters of other scripts that look like plain ones, where they stand beside plain ones.
_LOOKALIKE = dict(
    zip(
        "асеорхуіјѕһԁӏαορνικАВЕКМНОРСТХУІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧɑɡԛԝѵкսցհօϲυ",
        "aceopxyijshdlaopvikABEKMHOPCTXYIJSABEZHIKMNOPTYXagqwvkughocu",
        strict=True,
    )
)
_LOOKALIKES = "".join(_LOOKALIKE)
_TO_PLAIN = str.maketrans(_LOOKALIKE)
_LOOKALIKES_IN_WORDS = (
    f"[{_LOOKALIKES}]{{1,8}}(?:(?=[A-Za-z])" + "".join(f"|(?<=[A-Za-z].{{{count}}})" for count in range(1, 9)) + ")"
)
_DISGUISE = re.compile(f"[{_HIDDEN_CHARACTERS}{_ACCENTS}{_STYLED_LETTERS}]|{_LOOKALIKES_IN_WORDS}")
# Punctuation in full width is no disguise by itself; beside such letters it is read as what it stands for.
_DISGUISED_PART = re.compile(
    f"(?P<hidden>[{_HIDDEN_CHARACTERS}]+)|(?P<alike>{_LOOKALIKES_IN_WORDS})|[\u3000\uff01-\uff5e{_STYLED_LETTERS}]+|[^\\W\\d_][{_ACCENTS}]{{1,4}}"
)


@dataclass(frozen=True, kw_only=True)
class UndisguisedText:
    """A text without disguises. `starts` are positions in it, in order, `origins` where the same part began and ended
    in the disguised text."""

    text: str
    starts: tuple[int, ...]
    origins: tuple[tuple[int, int], ...]

    def original_span(self, span: SecretSpan) -> SecretSpan:
        """Return the span in the disguised text, with all that was hidden inside it."""
        return replace(span, start=self._original_position(span.start)[0], end=self._original_position(span.end - 1)[1])

    def _original_position(self, position: int) -> tuple[int, int]:
        """Where the character at `position` came from."""
        number = bisect_right(self.starts, position) - 1
        start, end = self.origins[number]
        following = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.text)
        if following - self.starts[number] != end - start:
            return start, end
        at = start + position - self.starts[number]
        return at, at + 1


def remove_disguises(text: str) -> UndisguisedText | None:
    """Return the text as it reads; None where nothing in it is disguised."""
    if text.isascii() or (_is_latin1(text) and "\u00ad" not in text) or _DISGUISE.search(text) is None:
        return None
    parts: list[str] = []
    starts: list[int] = []
    origins: list[tuple[int, int]] = []
    length = done = 0
    for match in _DISGUISED_PART.finditer(text):
        if match["alike"]:
            plain = match["alike"].translate(_TO_PLAIN)
        else:
            plain = "" if match["hidden"] else unicodedata.normalize("NFKC", match.group())
        for start, end, piece in ((done, match.start(), text[done : match.start()]), (*match.span(), plain)):
            if piece:
                parts.append(piece)
                starts.append(length)
                origins.append((start, end))
                length += len(piece)
        done = match.end()
    if done < len(text):
        parts.append(text[done:])
        starts.append(length)
        origins.append((done, len(text)))
    return UndisguisedText(text="".join(parts), starts=tuple(starts), origins=tuple(origins))


def _is_latin1(text: str) -> bool:
    """Whether all characters are of Latin-1, which has one hidden character; quicker than a search for the others."""
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True
