"""Saved: the state of one session as this process last read or wrote it, and saving over what others wrote since.

Invariant: a version is replaced only by a state that was merged with what that version holds. Only what can't be read
is no part of a merge, and what does not go back to the state that was known here takes nothing away. Whatever fails
here, nothing is lost that another process made of what stands.
"""

import logging
from collections import deque
from dataclasses import replace
from secrets import randbelow

import anyio

from ricordo.errors import StorageError, VersionConflict
from ricordo.files import ABSENT
from ricordo.state.codec import UNKNOWN_RULES
from ricordo.state.contract import AgentState, PlanState, WorkState, StoredState, StateStore
from ricordo.state.merge import merge_states

__all__ = ["StateSaver"]

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
