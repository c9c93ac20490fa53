"""The profile's part of a flush: what to ask about whom the messages tell of, and where the answer goes.

Where no model answered, or its part can't be used, the findings of the lessons update the profile by rules.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from ricordo.errors import ReplyInvalid
from ricordo.flush.section import Section, SectionMaker, Studied
from ricordo.messages import JsonValue
from ricordo.models import Embedder
from ricordo.profile.archiving import LedgerArchive
from ricordo.profile.config import ProfileConfig
from ricordo.profile.request import ProfileSection
from ricordo.profile.storage import Profiles
from ricordo.profile.types import NewFact
from ricordo.profile.updater import ProfileUpdater
from ricordo.runtime.settings import Settings
from ricordo.scopes import Scope
from ricordo.stores.place import Place
from ricordo.workspace.categories import category_of
from ricordo.workspace.layout import DEFAULT_AGENT, profile_of
from ricordo.workspace.profile import CORRECTION, FactSource

__all__ = ["ProfileLearning", "profile_sections"]

_NAMELESS = "User"


@dataclass(frozen=True, kw_only=True)
class ProfileLearning:
    """Makes the section of the profile of whoever a session belongs to, for `ricordo.flush.section`."""

    place: Place
    profiles: Profiles
    config: ProfileConfig
    embedder: Embedder | None = None

    async def __call__(self, studied: Studied) -> Section | None:
        """Return what to ask; None when nobody said anything, or it is for another place. Raises: StorageError."""
        if not studied.messages or not profile_of(self.place.scope, self._scope(studied)):
            return None
        updater = self._updater(studied)
        part = await updater.section(signals=studied.signals)

        async def accept(answer: JsonValue, learned: Studied) -> None:
            await _accepted(updater, answer, part, learned)

        return Section(
            name="profile", instructions=part.instructions, reference=part.reference, schema=part.schema, accept=accept
        )

    def _updater(self, studied: Studied) -> ProfileUpdater:
        scope = self._scope(studied)
        archive = LedgerArchive(
            files=self.place.files, clock=self.place.clock, redactor=self.place.redactor, scope=studied.scope
        )
        return ProfileUpdater(
            self.profiles.of(scope),
            config=self.config,
            clock=self.place.clock,
            archive=archive,
            embedder=self.embedder,
        )

    def _scope(self, studied: Studied) -> Scope:
        """Return whose profile it is: that of the user and the agent, in the scope of the root."""
        parts = self.place.scope.parts()
        if studied.scope and studied.scope.user:
            parts["user"] = studied.scope.user
        if studied.agent != DEFAULT_AGENT:
            parts["agent"] = studied.agent
        return Scope(**parts)


def profile_sections(
    place: Place, profiles: Profiles, settings: Settings, embedder: Embedder | None
) -> Sequence[SectionMaker]:
    """Return the section of the profile; none where the settings switch it off."""
    if settings.profile is None:
        return ()
    return (ProfileLearning(place=place, profiles=profiles, config=settings.profile, embedder=embedder),)


async def _accepted(updater: ProfileUpdater, answer: JsonValue, part: ProfileSection, studied: Studied) -> None:
    thread, trace = studied.session, studied.trace
    if answer is not None:
        # half an answer is none
        with suppress(ReplyInvalid):
            await updater.accept(
                answer, studied.messages, section=part, signals=studied.signals, thread=thread, trace=trace
            )
            return
    await updater.update_offline(studied.messages, _facts(studied), signals=studied.signals, thread=thread, trace=trace)


def _facts(studied: Studied) -> list[NewFact]:
    """Return what is about the user: the rules word it with the name of who said it, and "User" without a name.

    What is about the project is for its own memory.
    """
    names = {_NAMELESS, *(message.name for message in studied.messages if message.role == "user" and message.name)}
    # a sentence begins with a capital letter, however the name is written
    about_user = re.compile(rf"(?:{'|'.join(map(re.escape, sorted(names)))})\b", re.IGNORECASE)
    return [
        NewFact(
            content=finding.content,
            category=CORRECTION if finding.corrects else category_of(finding.kind),
            confidence=finding.confidence,
            source=FactSource(messages=finding.message_ids, quote=finding.quote),
        )
        for finding in studied.findings
        if about_user.match(finding.content)
    ]
