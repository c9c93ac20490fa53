"""Quotes: whether what a summary puts between quotation marks was said at all.

Pure. Compared are words: case, white space, quotation marks, escapes and emphasis do not count, and a quote that leaves
something out is compared piece by piece. Short spans are names and terms rather than quotes, and are not looked at.
"""

import html
import re
import unicodedata
from collections.abc import Iterator

from ricordo.language import is_unsegmented

__all__ = ["folded", "is_quoted_right"]

_SPANS = re.compile(r'"([^"\n]+)"|[“”„]([^“”„"\n]+)[“”]|[«»]([^«»\n]+)[«»]|「([^「」\n]+)」|『([^『』\n]+)』')
_LEFT_OUT = re.compile(r"…|\.{3,}|\[[^\]\n]*\]")
_MARKS = re.compile("[\"'`“”„‘’‚«»‹›「」『』*\\\\]")
_EDGES = " .,;:!?()[]{}。、,!?"
_FEWEST_WORDS = 3
_FEWEST_CHARACTERS = 6


def folded(text: str) -> str:
    """Return `text` as quotes are compared."""
    plain = unicodedata.normalize("NFKC", html.unescape(text)).replace("\\n", " ")
    return " ".join(_MARKS.sub("", plain).casefold().split())


def is_quoted_right(text: str, said: str) -> bool:
    """Tell whether every quote in `text` occurs in `said`, which is `folded` already."""
    return all(piece in said for span in _quotes(text) for piece in _pieces(span))


def _quotes(text: str) -> Iterator[str]:
    """Yield the spans of three words or more, or of six characters in a script without spaces."""
    for found in _SPANS.finditer(text):
        span = next(filter(None, found.groups()))
        if len(span.split()) >= _FEWEST_WORDS or sum(map(is_unsegmented, span)) >= _FEWEST_CHARACTERS:
            yield span


def _pieces(span: str) -> Iterator[str]:
    for piece in _LEFT_OUT.split(span):
        if words := folded(piece).strip(_EDGES):
            yield words
