"""Saved: the state of one session as this process last read or wrote it, and saving over what others wrote since.

Invariant: a version is replaced only by a state that was merged with what that version holds. Only what can't be read
is no part of a merge, and what does not go back to the state that was known here takes nothing away.
"""

import logging
from secrets import randbelow

import anyio

from ricordo.errors import StorageError, VersionConflict
from ricordo.files import ABSENT
from ricordo.state.contract import AgentState, Stated, StateStore
from ricordo.state.merge import merged

__all__ = ["SavedState"]

_ATTEMPTS = 100
_LONGEST_PAUSE_MS = 20
_LOG = logging.getLogger("ricordo.agent")


class SavedState:
    """What the store holds of one session, as far as this process knows; one saving at a time."""

    def __init__(self, states: StateStore, known: AgentState, version: str) -> None:
        """Go on from `known`, of which the store has this `version`, `ABSENT` when it has nothing yet."""
        self._states = states
        self._version = version
        self._known = _nothing(known) if version == ABSENT else known
        self._is_whole = False
        self._doubtful: AgentState | None = None

    def is_up_to_date(self, state: AgentState) -> bool:
        """Tell whether just this was the last to be saved here."""
        return self._is_whole and state == self._known

    async def save(self, state: AgentState) -> AgentState:
        """Save durably what `state` and what others saved meanwhile come to, and return it. Raises: StorageError.

        After an error the store may hold `state` all the same; the next saving does not take it for another's then.
        """
        wanted, version, known = state, self._version, self._known
        for left in reversed(range(_ATTEMPTS)):
            try:
                version = await self._states.save(wanted, expected=version)
            except VersionConflict:
                if not left:
                    raise
                # another process was faster; who waits by chance does not meet the same one again
                await anyio.sleep(randbelow(min(2 + _ATTEMPTS - left, _LONGEST_PAUSE_MS)) / 1000)
                stated = await self._states.load(state.agent, state.session)
                wanted, version, known = self._together(known, wanted, stated), stated.version, stated.state
            except StorageError:
                self._doubtful = wanted
                raise
            else:
                self._version, self._known = version, wanted
                self._is_whole, self._doubtful = True, None
                break
        return wanted

    def _together(self, known: AgentState, ours: AgentState, stated: Stated) -> AgentState:
        theirs = stated.state
        if stated.set_aside:
            _LOG.warning(
                "The state of session %s can't be read and was set aside as %s.", ours.session, stated.set_aside
            )
        if stated.version == ABSENT or theirs == self._doubtful:
            return ours
        # who began anew, because the state could not be read, counts its turns anew
        return merged(known if theirs.turns >= known.turns else _nothing(known), ours, theirs)


def _nothing(state: AgentState) -> AgentState:
    return AgentState(agent=state.agent, session=state.session)
