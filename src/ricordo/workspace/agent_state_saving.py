"""Saving the state of a session that other processes save too: each save is merged with what they stored meanwhile.

Invariants: a version is replaced only by a state that was merged with it. What only one side changed of the work state
is as that side left it. A denial that one side added, or both have, is never lost, and todos are one list or the other.
"""

import logging
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from secrets import randbelow
from typing import TypeVar

import anyio

from ricordo.errors import StorageError, VersionConflict
from ricordo.guard.permissions import Decision, PermissionRule, ToolPattern
from ricordo.messages import JsonValue
from ricordo.storage import ABSENT
from ricordo.workspace.agent_state import UNKNOWN_RULES, AgentState, PlanState, StateStore, StoredState, WorkState

__all__ = ["StateSaver", "merge_states"]


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


_SECONDS = 5.0
_MIN_TRIES = 3
_MAX_PAUSE_MS = 20
_MAX_DOUBTFUL = 8
_LOG = logging.getLogger("ricordo.agent")


class StateSaver:
    """What the store holds of one session, as far as this process knows; one saving at a time."""

    def __init__(self, states: StateStore, known: AgentState, version: str) -> None:
        """Go on from `known`, of which the store has this `version`, `ABSENT` when it has nothing yet."""
        self._states = states
        self._version = version
        self._known = _empty_state(known) if version == ABSENT else known
        self._is_whole = False
        self._doubtful: deque[tuple[AgentState, AgentState]] = deque(maxlen=_MAX_DOUBTFUL)

    def is_up_to_date(self, state: AgentState) -> bool:
        """Tell whether just this was the last to be saved here."""
        return self._is_whole and state == self._known

    async def save(self, state: AgentState) -> AgentState:
        """Save durably what `state` and what others saved meanwhile come to, and return it.

        Where others come first each time it tries again for some 5 seconds. Raises: VersionConflict then; StorageError.
        After an error the store may hold `state` all the same; the next saving does not take it for another's then.
        """
        wanted, version, known, others = state, self._version, self._known, self._known
        until, tries = anyio.current_time() + _SECONDS, 0
        while True:
            tries += 1
            try:
                version = await self._states.save(wanted, expected=version)
            except VersionConflict as error:
                if tries >= _MIN_TRIES and anyio.current_time() >= until:
                    raise _contention_error(state, tries) from error
                # another process was faster; who waits by chance does not meet the same one again
                await anyio.sleep(randbelow(min(2 + tries, _MAX_PAUSE_MS)) / 1000)
                stated = await self._states.load(state.agent, state.session)
                (wanted, known, others), version = self._merge_stored(known, wanted, stated), stated.version
            except StorageError:
                self._doubtful.append((wanted, others))
                raise
            else:
                self._version, self._known = version, wanted
                self._is_whole = True
                self._doubtful.clear()
                return wanted

    def _merge_stored(
        self, known: AgentState, ours: AgentState, stated: StoredState
    ) -> tuple[AgentState, AgentState, AgentState]:
        """Return what `ours` and the stored state come to, the state that the next merge begins with, and what of the
        stored one is not from here."""
        theirs = stated.state
        if stated.set_aside:
            _LOG.warning(
                "The state of session %s can't be read and was set aside as %s.", ours.session, stated.set_aside
            )
            left = _add_salvaged(known, theirs)
            return merge_states(known, ours, left), _empty_state(known), left
        if stated.version == ABSENT:
            return ours, theirs, theirs
        for doubtful, others in self._doubtful:
            if _mergeable_part(theirs) == _mergeable_part(doubtful):
                # what was refused here reached the store, together with what others had made
                return merge_states(known, ours, others), theirs, others
        # who began anew, because the state could not be read, counts its turns anew
        return merge_states(known if theirs.turns >= known.turns else _empty_state(known), ours, theirs), theirs, theirs


def _add_salvaged(known: AgentState, left: AgentState) -> AgentState:
    """Return `known` with what another process added to it, as far as it is left of a document that broke.

    What is missing there may be lost, so it is not taken for removed. The rules are known here.
    """
    here, there = known.work_state, left.work_state
    rules = [rule for rule in there.permissions if rule != UNKNOWN_RULES or rule in here.permissions]
    patterns = {rule.pattern for rule in rules}
    standing = WorkState(
        plan=here.plan if there.plan == PlanState() else there.plan,
        todos=there.todos or here.todos,
        permissions=(*(rule for rule in here.permissions if rule.pattern not in patterns), *rules),
        delivered=tuple(dict.fromkeys((*here.delivered, *there.delivered))),
    )
    return replace(known, work_state=standing)


def _mergeable_part(state: AgentState) -> AgentState:
    """Return of a state what a merge takes: a window is stored without its secrets, and would never be the same."""
    return replace(state, window=(), last="", undone=0, ratio=1.0)


def _contention_error(state: AgentState, tries: int) -> VersionConflict:
    return VersionConflict(
        f"Other processes changed the session {state.session} each of the {tries} times that it was to be saved: it is"
        " not saved, and what stands is as it was. Try again."
    )


def _empty_state(state: AgentState) -> AgentState:
    return AgentState(agent=state.agent, session=state.session)
