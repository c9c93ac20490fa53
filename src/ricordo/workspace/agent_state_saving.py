"""Saving the state of a session that other processes save too: each save merges what they stored in the meantime.

Invariants: a version is replaced only by a state that was merged with it. A change of the work state by only one side
is kept. A denial that one side added, or both have, is never lost, and todos are one side's complete list.
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
"""A pattern without a rule has 0: such a call is neither allowed without asking nor denied."""


def merge_states(base: AgentState, ours: AgentState, theirs: AgentState) -> AgentState:
    """Merge `ours`, which developed from `base` here, with `theirs`, which was stored after `base`.

    The window and its fields `last`, `undone` and `ratio` stay ours: each process continues with its own window, and
    the transcript has the messages of both. Turns of both are counted. The result learns if either side learns.
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
    """Return the rules of one pattern; if both sides changed them, the stricter ones, or theirs if equally strict."""
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
    """Return theirs, plus what was added here, minus what was removed here."""
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
    """The stored state of one session as far as this process knows it; one save at a time."""

    def __init__(self, states: StateStore, known: AgentState, version: str) -> None:
        """Start with `known`, stored as this `version`, or `ABSENT` if nothing is stored yet."""
        self._states = states
        self._version = version
        self._known = _empty_state(known) if version == ABSENT else known
        self._is_whole = False
        self._doubtful: deque[tuple[AgentState, AgentState]] = deque(maxlen=_MAX_DOUBTFUL)

    def is_up_to_date(self, state: AgentState) -> bool:
        """Return whether exactly this state was the last one saved here."""
        return self._is_whole and state == self._known

    async def save(self, state: AgentState) -> AgentState:
        """Save `state` merged with what others saved in the meantime, durably, and return the result.

        On conflicts it retries for about 5 seconds. Raises: VersionConflict after that; StorageError. After an error
        the store may hold `state` nevertheless; the next save then does not treat it as another process's state.
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
                # another process was faster; a random pause avoids the next collision
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
        """Return `ours` merged with the stored state, the base of the next merge, and the part stored by others."""
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
                # the save that failed here reached the store, together with the changes of others
                return merge_states(known, ours, others), theirs, others
        # a process that started over, as the state could not be read, counts turns from 0
        return merge_states(known if theirs.turns >= known.turns else _empty_state(known), ours, theirs), theirs, theirs


def _add_salvaged(known: AgentState, left: AgentState) -> AgentState:
    """Return `known` with what another process added to it, as far as it survives in a broken document.

    What is missing in the document may be lost, so it does not count as removed. The rules are known here.
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
    """Return the merged parts of a state; its window is stored redacted, so it would never compare equal."""
    return replace(state, window=(), last="", undone=0, ratio=1.0)


def _contention_error(state: AgentState, tries: int) -> VersionConflict:
    return VersionConflict(
        f"Other processes changed the session {state.session} each of the {tries} times that it was to be saved: it is"
        " not saved, and what stands is as it was. Try again."
    )


def _empty_state(state: AgentState) -> AgentState:
    return AgentState(agent=state.agent, session=state.session)
