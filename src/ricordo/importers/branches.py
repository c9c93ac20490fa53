"""Conversations whose messages form a tree: the branch that counts, first message to last.

It is the branch that was open last, as the export marks it, or else the one with the newest message. Every other branch
was left for it: an answer that was made anew, or a question before it was edited.
"""

from collections.abc import Mapping

from ricordo.lazy import dataclass

__all__ = ["Branch", "find_branch"]


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A message in a tree: the id of the message before it, None for the first one, and its time in seconds."""

    parent: str | None
    time: float = 0.0


def find_branch(nodes: Mapping[str, Branch], current: str | None) -> list[str]:
    """Return the ids of the branch that ends with `current`, or with the newest last message if there is no such node.

    A tree that is damaged to a ring is followed once around. Empty without nodes.
    """
    if current not in nodes:
        parents = {node.parent for node in nodes.values()}
        leaves = [name for name in nodes if name not in parents] or list(nodes)
        current = max(leaves, key=lambda name: nodes[name].time, default=None)
    branch: dict[str, None] = {}
    while current is not None and current in nodes and current not in branch:
        branch[current] = None
        current = nodes[current].parent
    return [*reversed(branch)]
