"""What keeps a profile: one bound store for each user and agent; whoever writes names the revision it is based on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ricordo.workspace.profile import Profile
from ricordo.workspace.profile_codec import BrokenRecord

__all__ = ["LEARNING_AUTHOR", "ProfileStore", "SavedProfile"]

LEARNING_AUTHOR = "profile"
"""Who saves what was learned in the background."""


@dataclass(frozen=True, kw_only=True)
class SavedProfile:
    """A profile as it was saved; `change` names the change set that undoes it, None where the store has none."""

    profile: Profile
    change: str | None = None


class ProfileStore(Protocol):
    """Keeps the profile of one user and agent. Every call may raise the errors of storage."""

    @property
    def broken_records(self) -> tuple[BrokenRecord, ...]:
        """What of the document could not be read when it was loaded last; the rest is used."""
        ...

    async def load(self) -> Profile:
        """Return the profile; a new empty one when none was saved. It is served from memory while unchanged.

        Raises: DocumentInvalid when the document as a whole can't be read, which is never taken for an empty one.
        """
        ...

    async def reload(self) -> Profile:
        """Return the profile as the medium has it now."""
        ...

    async def save(
        self, profile: Profile, *, base: Profile, by: str, why: str = "", forget: bool = False
    ) -> SavedProfile:
        """Save `profile`, made from `base`, durably and whole, as the next revision, and return it.

        When somebody else saved since `base`, what both changed elsewhere is brought together; facts that both add in
        the same words are added once. What changed carries the time and, if it is a fact, one more revision, unless
        its writer has set them. With `forget` the facts that leave by this are not learned again. Where nothing
        changes, nothing is written. Raises: VersionConflict when both changed the same fact or summary; then nothing
        is written.
        """
        ...

    async def clear(self, *, by: str, why: str = "") -> SavedProfile:
        """Save an empty profile, also in the place of one that can't be read; its facts are not learned again."""
        ...

    async def load_forgotten_filter(self) -> Callable[[str], bool]:
        """Return what tells whether a content was forgotten, as that is now; it is not to be learned again."""
        ...
