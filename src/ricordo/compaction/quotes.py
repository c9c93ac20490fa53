"""Quotes: whether what a summary puts between quotation marks was said at all.

Pure. Compared are words: case, white space, quotation marks, escapes and emphasis do not count, and a quote that leaves
something out is compared piece by piece. Short spans are names and terms rather than quotes, and are not looked at.
"""

import html
import re
import unicodedata
from collections.abc import Iterator

from ricordo.language import is_unsegmented

__all__ = ["normalize_quote", "has_valid_quotes"]

_QUOTED_SPAN = re.compile(r'"([^"\n]+)"|[“”„]([^“”„"\n]+)[“”]|[«»]([^«»\n]+)[«»]|「([^「」\n]+)」|『([^『』\n]+)』')
_ELLIPSIS = re.compile(r"…|\.{3,}|\[[^\]\n]*\]")
_QUOTE_MARKS = re.compile("[\"'`“”„‘’‚«»‹›「」『』*\\\\]")
_EDGE_CHARS = " .,;:!?()[]{}。、,!?"
_MIN_QUOTE_WORDS = 3
_MIN_QUOTE_CHARS = 6


def normalize_quote(text: str) -> str:
    """Return `text` as quotes are compared."""
    plain = unicodedata.normalize("NFKC", html.unescape(text)).replace("\\n", " ")
    return " ".join(_QUOTE_MARKS.sub("", plain).casefold().split())


def has_valid_quotes(text: str, said: str) -> bool:
    """Tell whether every quote in `text` occurs in `said`, which is `normalize_quote` already."""
    return all(piece in said for span in _find_quotes(text) for piece in _split_quote(span))


def _find_quotes(text: str) -> Iterator[str]:
    """Yield the spans of three words or more, or of six characters in a script without spaces."""
    for found in _QUOTED_SPAN.finditer(text):
        span = next(filter(None, found.groups()))
        if len(span.split()) >= _MIN_QUOTE_WORDS or sum(map(is_unsegmented, span)) >= _MIN_QUOTE_CHARS:
            yield span


def _split_quote(span: str) -> Iterator[str]:
    for piece in _ELLIPSIS.split(span):
        if words := normalize_quote(piece).strip(_EDGE_CHARS):
            yield words
