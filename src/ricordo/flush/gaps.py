"""What stands in a text where something was left out of it: nothing that was said reaches across."""

from collections.abc import Iterable

__all__ = ["GAP", "MARK", "joined"]

MARK = "[…]"
"""The sign of a gap."""

GAP = f"\n\n{MARK}\n\n"
"""A gap as it stands in a text: a paragraph of its own."""


def joined(pieces: Iterable[str]) -> str:
    """Return the pieces that hold something, without white space around them, with a gap between each two."""
    return GAP.join(piece for each in pieces if (piece := each.strip()))
