"""Long texts to pieces of a size that ranking can compare: pages of text must not win by their size alone."""

from collections.abc import Iterator
from dataclasses import replace

from ricordo.index.contract import Chunk

__all__ = ["MAX_PIECE_CHARS", "split_text", "split_chunk"]

MAX_PIECE_CHARS = 1_000
"""The most characters of a piece, about 150 words."""

_MIN_PIECE_CHARS = 600


def split_chunk(whole: Chunk, *, one_line: bool = False) -> list[Chunk]:
    """Return `whole` cut into pieces with their own lines; with `one_line` all stand on the line of the whole."""
    chunks = []
    line = whole.line_number
    for part, piece in enumerate(split_text(whole.content)):
        end = line if one_line else line + piece.rstrip("\n").count("\n")
        content = piece.strip("\n")
        if content.strip():
            chunks.append(
                replace(whole, content=content, part=part, line_number=line, end_line=min(end, whole.end_line))
            )
        line += 0 if one_line else piece.count("\n")
    return chunks


def split_text(text: str) -> Iterator[str]:
    """Yield `text` in pieces of at most 1,000 characters that join to it again, cut at the best seam near their end."""
    start = 0
    while len(text) - start > MAX_PIECE_CHARS:
        end = start + _split_position(text[start : start + MAX_PIECE_CHARS])
        yield text[start:end]
        start = end
    if start < len(text) or not text:
        yield text[start:]


def _split_position(window: str) -> int:
    """Return where to cut: behind the last paragraph, line, sentence or word that ends past the least size."""
    for pattern in ("\n\n", "\n", ". ", "。", " "):
        at = window.rfind(pattern, _MIN_PIECE_CHARS)
        if at >= 0:
            return at + len(pattern)
    return len(window)
