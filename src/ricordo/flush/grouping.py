"""Which statements of a message belong in one finding.

A finding is one thought: a cued sentence with what explains it ("Never squash. It loses the history."), or a run of
plain statements. No group grows past a number of characters."""

import re
from collections.abc import Iterable, Sequence

from ricordo.flush.statements import Statement
from ricordo.language import Act

__all__ = ["by_cue", "by_length"]

_POINTS_BACK = re.compile(
    r"^(?:it|it's|this|that|that's|they|these|those|because|so|otherwise|which|since|then|there|das|dies|weil|sonst|cela|c'est|"
    r"eso|esto|porque|questo|isso|因为|否则|这|そうしないと|それ|なぜなら)(?!\w)",
    re.IGNORECASE,
)


def by_length(statements: Sequence[Statement], longest: int) -> list[list[Statement]]:
    """Return the statements in order, cut into groups of at most `longest` characters (a single one may exceed it)."""
    groups: list[list[Statement]] = []
    size = 0
    for statement in statements:
        if not groups or size + len(statement.text) > longest:
            groups.append([])
            size = 0
        groups[-1].append(statement)
        size += len(statement.text) + 1
    return groups


def by_cue(statements: Iterable[Statement], cues: frozenset[Act], longest: int) -> list[list[Statement]]:
    """Return groups in order: each cued statement opens one, a statement that points back joins the one before it.

    Plain statements next to each other share a group.
    """
    groups: list[list[Statement]] = []
    for statement in statements:
        room = bool(groups) and sum(len(other.text) for other in groups[-1]) + len(statement.text) <= longest
        both_plain = room and not statement.acts & cues and not any(other.acts & cues for other in groups[-1])
        if room and (both_plain or (_POINTS_BACK.match(statement.text) and not statement.acts & cues)):
            groups[-1].append(statement)
        else:
            groups.append([statement])
    return groups
