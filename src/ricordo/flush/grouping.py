"""Which statements of a message belong in one finding.

A finding is one thought: a cued sentence with what explains it ("Never squash. It loses the history."), or a run of
plain statements. No group grows past a number of characters."""

import re
from collections.abc import Iterable, Sequence

from ricordo.flush.statements import Statement
from ricordo.language import Act

__all__ = ["group_by_cue", "group_by_length", "leading_statement"]

_POINTS_BACK = re.compile(
    r"^(?:it|it's|this|that|that's|they|these|those|because|so|otherwise|which|since|then|there|das|dies|weil|sonst|cela|"
    r"c'est|eso|esto|porque|questo|isso|因为|否则|这|そうしないと|それ|なぜなら|the reason|the point|"
    r"a (?:plain|bare|simple|mere)|without (?:it|that|this)|\w{2,20}ing (?:it|that|this))(?!\w)",
    re.IGNORECASE,
)
# Not understood without the sentence before, whatever they say: "Their hooks must work", "Semicolons, not commas".
_INCOMPLETE = re.compile(
    r"^(?:(?:their|they|he|she|his|her|its)\b|\w+s, (?:not|never) \w|only \w+ (?:for|from|with|in|by|that)\b)",
    re.IGNORECASE,
)

# "Priya leads it": what was told before is what somebody leads.
_POINTS_TO_OBJECT = re.compile(r"^[A-Z][a-z]+ (?:[a-z]{2,}s|(?:will|must) [a-z]+) (?:it|them)\b")

# Acts of a statement that says what holds from now on.
_RULE_ACTS: frozenset[Act] = frozenset({"remember", "decision"})


def group_by_length(statements: Sequence[Statement], longest: int) -> list[list[Statement]]:
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


def group_by_cue(statements: Iterable[Statement], cues: frozenset[Act], longest: int) -> list[list[Statement]]:
    """Return groups in order: each cued statement opens one, a statement that points back joins the one before it.

    Plain statements next to each other share a group. A statement that only sets something aside ("No, not 8080")
    goes with the one that says what holds instead: the rule before it, else the statement after it.
    """
    groups: list[list[Statement]] = []
    for statement in statements:
        room = bool(groups) and sum(len(other.text) for other in groups[-1]) + len(statement.text) <= longest
        both_plain = room and not statement.acts & cues and not any(other.acts & cues for other in groups[-1])
        back = _POINTS_BACK.match(statement.text) and not statement.acts & cues
        told = room and any(other.acts & cues for other in groups[-1]) and _POINTS_TO_OBJECT.match(statement.text)
        incomplete = not statement.item and (told or _INCOMPLETE.match(statement.text))
        if room and (both_plain or back or incomplete):
            groups[-1].append(statement)
        else:
            groups.append([statement])
    return _merge_denials(groups)


def leading_statement(group: Sequence[Statement]) -> Statement:
    """Return the statement that a group is about: the first that is no mere denial, if there is one."""
    return next((statement for statement in group if "denial" not in statement.acts), group[0])


def _merge_denials(groups: list[list[Statement]]) -> list[list[Statement]]:
    joined: list[list[Statement]] = []
    waiting: list[Statement] = []
    for group in groups:
        if "denial" not in leading_statement(group).acts:
            joined.append([*waiting, *group])
            waiting = []
        elif joined and not waiting and joined[-1][0].acts & _RULE_ACTS:
            joined[-1].extend(group)
        else:
            waiting.extend(group)
    return [*joined, waiting] if waiting else joined
