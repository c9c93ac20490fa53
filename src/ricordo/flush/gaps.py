"""What stands in a text where something was left out of it: nothing that was said reaches across."""

from collections.abc import Iterable

__all__ = ["GAP", "GAP_MARK", "join_with_gaps"]

GAP_MARK = "[…]"
"""The sign of a gap."""

GAP = f"\n\n{GAP_MARK}\n\n"
"""A gap as it stands in a text: a paragraph of its own."""


def join_with_gaps(pieces: Iterable[str]) -> str:
    """Return the pieces that hold something, without white space around them, with a gap between each two."""
    return GAP.join(piece for each in pieces if (piece := each.strip()))
