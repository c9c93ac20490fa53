"""A profile in this process's memory, for tests and for work that must leave no trace."""

from collections.abc import Callable

from ricordo.clock import Clock
from ricordo.profile.contract import SavedProfile
from ricordo.profile.independent import copy_profile
from ricordo.workspace.profile import Profile, create_profile
from ricordo.workspace.profile_codec import BrokenRecord, profile_to_document
from ricordo.workspace.profile_merge import merge_profiles, has_same_content, stamp_changes
from ricordo.workspace.tombstones import content_digest

__all__ = ["InMemoryProfileStore"]


class InMemoryProfileStore:
    """The same contract as with files, but for durability."""

    def __init__(self, clock: Clock) -> None:
        """Begin with an empty profile."""
        self._forgotten_digests: frozenset[str] = frozenset()
        self._clock = clock
        self._profile: Profile | None = None

    @property
    def broken_records(self) -> tuple[BrokenRecord, ...]:
        """Nothing: what is kept as a value can be read."""
        return ()

    async def load(self) -> Profile:
        """Return the profile; a new empty one when none was saved."""
        return copy_profile(self._profile) if self._profile else create_profile(self._clock.now())

    async def reload(self) -> Profile:
        """Return the profile."""
        return await self.load()

    async def save(
        self, profile: Profile, *, base: Profile, by: str, why: str = "", forget: bool = False
    ) -> SavedProfile:
        """Save `profile`, made from `base`. Raises: VersionConflict, InvalidInput."""
        del by, why
        current = await self.load()
        merged = merge_profiles(base, profile, current)
        if self._profile is None or not has_same_content(merged, current):
            self._store(merged, current, forget=forget)
        return SavedProfile(profile=await self.load())

    async def clear(self, *, by: str, why: str = "") -> SavedProfile:
        """Save an empty profile."""
        del by, why
        self._store(create_profile(self._clock.now()), await self.load(), forget=True)
        return SavedProfile(profile=await self.load())

    async def load_forgotten_filter(self) -> Callable[[str], bool]:
        """Return what tells whether a content was forgotten, and is not to be learned."""
        digests = self._forgotten_digests
        return lambda content: content_digest(content, b"") in digests

    def _store(self, profile: Profile, before: Profile, *, forget: bool) -> None:
        saved = stamp_changes(profile, before, self._clock.now())
        profile_to_document(saved)
        if forget:
            gone = (fact.content for fact in before.facts if saved.find_fact(fact.id) is None)
            self._forgotten_digests |= {content_digest(content, b"") for content in gone}
        self._profile = copy_profile(saved)
