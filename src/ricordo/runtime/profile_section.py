"""The profile's part of a flush: what to ask about whom the messages tell of, and where the answer goes.

Where no model answered, or its part can't be used, the findings of the lessons update the profile by rules.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from ricordo.errors import ReplyInvalid
from ricordo.flush.section import ExtractionSection, SectionFactory, SectionInput
from ricordo.messages import JsonValue
from ricordo.models import Embedder
from ricordo.profile.archiving import LedgerArchive
from ricordo.profile.config import ProfileConfig
from ricordo.profile.request import ProfileSection
from ricordo.profile.storage import ProfileStores
from ricordo.profile.types import NewFact
from ricordo.profile.updater import ProfileUpdater
from ricordo.runtime.settings import Settings
from ricordo.scopes import Scope
from ricordo.stores.place import MemoryRoot
from ricordo.workspace.categories import category_for_kind
from ricordo.workspace.layout import DEFAULT_AGENT, profile_path_for
from ricordo.workspace.profile import CORRECTION, FactSource

__all__ = ["ProfileSectionMaker", "create_profile_sections"]

_DEFAULT_NAME = "User"


@dataclass(frozen=True, kw_only=True)
class ProfileSectionMaker:
    """Makes the section of the profile of whoever a session belongs to, for `ricordo.flush.section`."""

    memory_root: MemoryRoot
    profiles: ProfileStores
    config: ProfileConfig
    embedder: Embedder | None = None

    async def __call__(self, studied: SectionInput) -> ExtractionSection | None:
        """Return what to ask; None when nobody said anything, or it is for another place. Raises: StorageError."""
        if not studied.messages or not profile_path_for(self.memory_root.scope, self._profile_scope(studied)):
            return None
        updater = self._create_updater(studied)
        part = await updater.section(signals=studied.signals)

        async def accept(answer: JsonValue, learned: SectionInput) -> None:
            await _apply_answer(updater, answer, part, learned)

        return ExtractionSection(
            name="profile", instructions=part.instructions, reference=part.reference, schema=part.schema, accept=accept
        )

    def _create_updater(self, studied: SectionInput) -> ProfileUpdater:
        scope = self._profile_scope(studied)
        archive = LedgerArchive(
            files=self.memory_root.files,
            clock=self.memory_root.clock,
            redactor=self.memory_root.redactor,
            scope=studied.scope,
        )
        return ProfileUpdater(
            self.profiles.open_store(scope),
            config=self.config,
            clock=self.memory_root.clock,
            archive=archive,
            embedder=self.embedder,
        )

    def _profile_scope(self, studied: SectionInput) -> Scope:
        """Return whose profile it is: that of the user and the agent, in the scope of the root."""
        parts = self.memory_root.scope.parts()
        if studied.scope and studied.scope.user:
            parts["user"] = studied.scope.user
        if studied.agent != DEFAULT_AGENT:
            parts["agent"] = studied.agent
        return Scope(**parts)


def create_profile_sections(
    place: MemoryRoot, profiles: ProfileStores, settings: Settings, embedder: Embedder | None
) -> Sequence[SectionFactory]:
    """Return the section of the profile; none where the settings switch it off."""
    if settings.profile is None:
        return ()
    return (ProfileSectionMaker(memory_root=place, profiles=profiles, config=settings.profile, embedder=embedder),)


async def _apply_answer(
    updater: ProfileUpdater, answer: JsonValue, part: ProfileSection, studied: SectionInput
) -> None:
    thread, trace = studied.session, studied.trace
    if answer is not None:
        # half an answer is none
        with suppress(ReplyInvalid):
            await updater.accept(
                answer, studied.messages, section=part, signals=studied.signals, thread=thread, trace=trace
            )
            return
    await updater.update_offline(
        studied.messages, _extract_facts(studied), signals=studied.signals, thread=thread, trace=trace
    )


def _extract_facts(studied: SectionInput) -> list[NewFact]:
    """Return what is about the user: the rules word it with the name of who said it, and "User" without a name.

    What is about the project is for its own memory.
    """
    names = {_DEFAULT_NAME, *(message.name for message in studied.messages if message.role == "user" and message.name)}
    # a sentence begins with a capital letter, however the name is written
    about_user = re.compile(rf"(?:{'|'.join(map(re.escape, sorted(names)))})\b", re.IGNORECASE)
    return [
        NewFact(
            content=finding.content,
            category=CORRECTION if finding.corrects else category_for_kind(finding.kind),
            confidence=finding.confidence,
            source=FactSource(messages=finding.message_ids, quote=finding.quote),
        )
        for finding in studied.findings
        if about_user.match(finding.content)
    ]
