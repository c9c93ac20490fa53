"""A profile in this process's memory, for tests and for work that must leave no trace."""

from collections.abc import Callable

from ricordo.clock import Clock
from ricordo.profile.contract import Saved
from ricordo.profile.independent import independent
from ricordo.workspace.profile import Profile, new_profile
from ricordo.workspace.profile_codec import BrokenRecord, document_of
from ricordo.workspace.profile_merge import merged_profile, says_the_same, stamped
from ricordo.workspace.tombstones import content_digest

__all__ = ["InMemoryProfileStore"]


class InMemoryProfileStore:
    """The same contract as with files, but for durability."""

    def __init__(self, clock: Clock) -> None:
        """Begin with an empty profile."""
        self._forgotten: frozenset[str] = frozenset()
        self._clock = clock
        self._profile: Profile | None = None

    @property
    def broken(self) -> tuple[BrokenRecord, ...]:
        """Nothing: what is kept as a value can be read."""
        return ()

    async def load(self) -> Profile:
        """Return the profile; a new empty one when none was saved."""
        return independent(self._profile) if self._profile else new_profile(self._clock.now())

    async def reload(self) -> Profile:
        """Return the profile."""
        return await self.load()

    async def save(self, profile: Profile, *, base: Profile, by: str, why: str = "", forget: bool = False) -> Saved:
        """Save `profile`, made from `base`. Raises: VersionConflict, InvalidInput."""
        del by, why
        current = await self.load()
        merged = merged_profile(base, profile, current)
        if self._profile is None or not says_the_same(merged, current):
            self._keep(merged, current, forget=forget)
        return Saved(profile=await self.load())

    async def clear(self, *, by: str, why: str = "") -> Saved:
        """Save an empty profile."""
        del by, why
        self._keep(new_profile(self._clock.now()), await self.load(), forget=True)
        return Saved(profile=await self.load())

    async def forgotten(self) -> Callable[[str], bool]:
        """Return what tells whether a content was forgotten, and is not to be learned."""
        digests = self._forgotten
        return lambda content: content_digest(content, b"") in digests

    def _keep(self, profile: Profile, before: Profile, *, forget: bool) -> None:
        saved = stamped(profile, before, self._clock.now())
        document_of(saved)
        if forget:
            gone = (fact.content for fact in before.facts if saved.fact(fact.id) is None)
            self._forgotten |= {content_digest(content, b"") for content in gone}
        self._profile = independent(saved)
