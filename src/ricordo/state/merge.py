"""Merging: one state of what two processes made of it, against the state that both began with. Pure.

Invariants: what only one of them changed of what stands is as that one left it; a denial that one of them added, or
that both have, is never lost; and of the todos it is one list or the other, so no two of them are in progress.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from ricordo.guard.permissions import Decision, PermissionRule, ToolPattern
from ricordo.messages import JsonValue
from ricordo.state.contract import AgentState, WorkState

__all__ = ["merge_states"]

_T = TypeVar("_T")
_STRICTNESS: Mapping[Decision, int] = {"allow": -1, "ask": 1, "deny": 2}
"""A pattern without a rule has 0: nothing is let through unasked because of it, and nothing is refused."""


def merge_states(base: AgentState, ours: AgentState, theirs: AgentState) -> AgentState:
    """Return the state to go on with where `theirs` was stored after `base`, which became `ours` here.

    The window and what belongs to it, which are `last`, `undone` and `ratio`, stay ours: each process goes on with its
    own, and the transcript has what both said. Turns of both are counted. What one of them may learn from, is learned.
    """
    return replace(
        ours,
        user=ours.user or theirs.user,
        learns=ours.learns or theirs.learns,
        turns=theirs.turns + max(0, ours.turns - base.turns),
        work_state=_merge_work_states(base.work_state, ours.work_state, theirs.work_state),
        extra=_merge_extra(base.extra, ours.extra, theirs.extra),
    )


def _merge_work_states(base: WorkState, ours: WorkState, theirs: WorkState) -> WorkState:
    return WorkState(
        plan=_prefer_changed(base.plan, ours.plan, theirs.plan),
        todos=_prefer_changed(base.todos, ours.todos, theirs.todos),
        permissions=_merge_permissions(base.permissions, ours.permissions, theirs.permissions),
        delivered=_merge_delivered(base.delivered, ours.delivered, theirs.delivered),
    )


def _prefer_changed(base: _T, ours: _T, theirs: _T) -> _T:
    return theirs if ours == base else ours


def _merge_permissions(
    base: tuple[PermissionRule, ...], ours: tuple[PermissionRule, ...], theirs: tuple[PermissionRule, ...]
) -> tuple[PermissionRule, ...]:
    if base in (ours, theirs):
        return _prefer_changed(base, ours, theirs)
    before, here, there = _group_by_pattern(base), _group_by_pattern(ours), _group_by_pattern(theirs)
    return tuple(
        rule
        for pattern in dict.fromkeys((*there, *here))
        for rule in _merge_rules(before.get(pattern, ()), here.get(pattern, ()), there.get(pattern, ()))
    )


def _merge_rules(
    base: tuple[PermissionRule, ...], ours: tuple[PermissionRule, ...], theirs: tuple[PermissionRule, ...]
) -> tuple[PermissionRule, ...]:
    """Return the rules of one pattern; where both changed them, the stricter ones, theirs if they are equal."""
    if base in (ours, theirs):
        return _prefer_changed(base, ours, theirs)
    return ours if _strictness(ours) > _strictness(theirs) else theirs


def _strictness(rules: Iterable[PermissionRule]) -> int:
    return max((_STRICTNESS[rule.decision] for rule in rules), default=0)


def _group_by_pattern(rules: Iterable[PermissionRule]) -> dict[ToolPattern, tuple[PermissionRule, ...]]:
    found: dict[ToolPattern, tuple[PermissionRule, ...]] = {}
    for rule in rules:
        found[rule.pattern] = (*found.get(rule.pattern, ()), rule)
    return found


def _merge_delivered(base: tuple[str, ...], ours: tuple[str, ...], theirs: tuple[str, ...]) -> tuple[str, ...]:
    """Return theirs, with what was added here, and without what was taken out here."""
    if base in (ours, theirs):
        return _prefer_changed(base, ours, theirs)
    gone = set(base).difference(ours)
    return tuple(
        dict.fromkeys((*(each for each in theirs if each not in gone), *(each for each in ours if each not in base)))
    )


def _merge_extra(
    base: Mapping[str, JsonValue], ours: Mapping[str, JsonValue], theirs: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    changed = {key: value for key, value in ours.items() if key not in base or base[key] != value}
    gone = base.keys() - ours.keys()
    return {key: value for key, value in theirs.items() if key not in gone} | changed
