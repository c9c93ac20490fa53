"""What keeps a profile: one bound store for each user and agent; whoever writes names the revision it is based on."""

from dataclasses import dataclass
from typing import Protocol

from ricordo.workspace.profile import Profile

__all__ = ["ProfileStore", "Saved"]


@dataclass(frozen=True, kw_only=True)
class Saved:
    """A profile as it was saved; `change` names the change set that undoes it, None where the store has none."""

    profile: Profile
    change: str | None = None


class ProfileStore(Protocol):
    """Keeps the profile of one user and agent. Every call may raise the errors of storage."""

    async def load(self) -> Profile:
        """Return the profile; a new empty one when none was saved. It is served from memory while unchanged.

        Raises: DocumentInvalid when the document as a whole can't be read, which is never taken for an empty one.
        """
        ...

    async def reload(self) -> Profile:
        """Return the profile as the medium has it now."""
        ...

    async def save(self, profile: Profile, *, base: Profile, by: str, why: str = "") -> Saved:
        """Save `profile`, made from `base`, durably and whole, as the next revision, and return it.

        When somebody else saved since `base`, what both changed elsewhere is brought together. Raises:
        VersionConflict when both changed the same fact or summary; then nothing is written.
        """
        ...

    async def clear(self, *, by: str, why: str = "") -> Saved:
        """Save an empty profile."""
        ...
