"""Updates a profile from a conversation: format, ask, apply, save, in that order; with a model or without.

A long conversation is asked about in several requests, each within its token cap, and each sees what the one before
left. The two halves stand apart for whoever asks a model for more than this at once: `section` says what to ask, and
`accept` takes the answer.

Invariants: an answer that can't be used changes nothing; what leaves the profile for want of room is in the archive
before it is gone; when somebody else saves meanwhile, the rules are applied anew to what they saved.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TypeAlias

from anyio.to_thread import run_sync

from ricordo.clock import Clock, SystemClock
from ricordo.errors import InvalidSetting, ReplyInvalid, VersionConflict
from ricordo.messages.types import JsonValue, Message, Text
from ricordo.models.contract import ChatModel, Embedder
from ricordo.profile.answer import parse_update
from ricordo.profile.archiving import Archive
from ricordo.profile.config import ProfileConfig
from ricordo.profile.contract import LEARNING, ProfileStore
from ricordo.profile.forgetting import without_forgotten
from ricordo.profile.form import UPDATE_FORM
from ricordo.profile.gate import counted
from ricordo.profile.meanings import Meanings
from ricordo.profile.merging import Meaning
from ricordo.profile.offline import offline_update
from ricordo.profile.plan import applied
from ricordo.profile.prompts import AGAIN, MEMORY_UPDATE_PROMPT, checked_prompt
from ricordo.profile.provenance import learnable, rested, uploaded
from ricordo.profile.request import Asked, ProfileSection, asked_about, section_for
from ricordo.profile.types import Applied, NewFact, ProfileUpdate
from ricordo.tokens import estimate_text
from ricordo.workspace.profile import Profile

__all__ = ["Forgotten", "ProfileUpdater"]

_LOG = logging.getLogger(__name__)
_MANY, _MOST_REFUSED = 5, 0.6

Forgotten: TypeAlias = Callable[[], Awaitable[Callable[[str], bool]]]
"""Gives what tells whether a content was forgotten, as that is now."""

_Known: TypeAlias = Callable[[str], bool]
_Make: TypeAlias = Callable[[Profile, _Known], ProfileUpdate]


@dataclass(frozen=True, kw_only=True)
class _Told:
    """What was said, in which thread, and what it does."""

    messages: Sequence[Message]
    signals: Collection[str]
    thread: str
    trace: str

    @property
    def last(self) -> datetime | None:
        """When the last of it was said; None when no message tells."""
        return max((message.time for message in self.messages if message.time), default=None)

    @property
    def why(self) -> str:
        return f"learned from {self.thread}" + (f" ({self.trace})" if self.trace else "")


@dataclass(frozen=True, kw_only=True)
class _Update:
    """What there is to apply to a profile, where it comes from, and the ids of the facts that a review showed."""

    make: _Make
    told: _Told
    shown: Collection[str] = ()


class ProfileUpdater:
    """Keeps one user's profile up to date. Several may work on one store; each update is whole."""

    def __init__(
        self,
        store: ProfileStore,
        model: ChatModel | None = None,
        *,
        config: ProfileConfig | None = None,
        clock: Clock | None = None,
        forgotten: Forgotten | None = None,
        archive: Archive | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        """Update what `store` keeps, asking `model`; without one by rules.

        `forgotten` keeps what was forgotten from being learned again, by default what the store says, `archive`
        gets what leaves for want of room. `embedder` helps to tell what says the same. Raises: InvalidSetting for a
        prompt without the places that it needs, or one that takes more than a third of the cap.
        """
        self._store = store
        self._model = model
        self._config = config or ProfileConfig()
        self._clock = clock or SystemClock()
        self._forgotten = forgotten or store.forgotten
        self._archive = archive
        prompt = self._config.prompt or MEMORY_UPDATE_PROMPT
        self._prompt = checked_prompt(prompt)
        if estimate_text(prompt) > self._config.max_prompt_tokens // 3:
            raise InvalidSetting("The prompt for updates of a profile takes more than a third of max_prompt_tokens.")
        self._meanings = Meanings(embedder) if embedder else None

    async def update(
        self,
        messages: Sequence[Message],
        *,
        signals: Collection[str] = frozenset(),
        thread: str = "unknown",
        trace: str = "",
        facts: Sequence[NewFact] = (),
    ) -> Applied | None:
        """Learn from `messages` of `thread`; None when nothing in them was said by a user or an assistant.

        `signals` are what the user's words do, such as `correction`. `trace` is told with the change. `facts` are what
        rules found, and count only where no model is asked. Raises: ModelError when the model can't be reached, or its
        answer can't be used twice in a row; what earlier parts of a long conversation changed stays. StorageError.
        """
        said = learnable(messages)
        if not said:
            return None
        if self._model is None:
            return await self.update_offline(messages, facts, signals=signals, thread=thread, trace=trace)
        done: Applied | None = None
        while said:
            profile = await self._store.load()
            asking = partial(
                asked_about, profile, said, signals, prompt=self._prompt, now=self._clock.now(), config=self._config
            )
            asked = await run_sync(asking)
            update = await self._answer(self._model, asked)
            told = _Told(messages=asked.messages, signals=signals, thread=thread, trace=trace)
            one = await self._accepted(update, told, asked.shown)
            done = _both(done, one)
            said = said[len(asked.messages) :]
        return done

    async def update_offline(
        self,
        messages: Sequence[Message],
        facts: Sequence[NewFact],
        *,
        signals: Collection[str] = frozenset(),
        thread: str = "unknown",
        trace: str = "",
    ) -> Applied | None:
        """Learn what rules found in `messages`, without a model; None as `update`. Raises: StorageError."""
        said = learnable(messages)
        if not said:
            return None
        now = self._clock.now()
        found = (await run_sync(rested, ProfileUpdate(facts=tuple(facts)), said, thread)).facts

        def make(profile: Profile, forgotten: _Known) -> ProfileUpdate:
            kept = [fact for fact in found if not forgotten(fact.content)]
            return offline_update(profile, said, kept, now=now, config=self._config)

        told = _Told(messages=messages, signals=signals, thread=thread, trace=trace)
        return await self._apply(_Update(make=make, told=told))

    async def section(self, *, signals: Collection[str] = frozenset()) -> ProfileSection:
        """Return what to ask a model, for a request that asks for more than this. Raises: StorageError."""
        profile = await self._store.load()
        return await run_sync(
            partial(section_for, profile, signals, prompt=self._prompt, now=self._clock.now(), config=self._config)
        )

    async def accept(
        self,
        answer: JsonValue,
        messages: Sequence[Message],
        *,
        section: ProfileSection | None = None,
        signals: Collection[str] = frozenset(),
        thread: str = "unknown",
        trace: str = "",
    ) -> Applied:
        """Apply what a model answered to `section`, of which `messages` were shown, and save it.

        Raises: ReplyInvalid for an answer that can't be used; then nothing is saved. StorageError.
        """
        shown = section.shown if section else ()
        told = _Told(messages=messages, signals=signals, thread=thread, trace=trace)
        return await self._accepted(parse_update(answer), told, shown)

    async def _accepted(self, update: ProfileUpdate, told: _Told, shown: Collection[str]) -> Applied:
        supported = await run_sync(rested, update, learnable(told.messages), told.thread)
        return await self._apply(_Update(make=lambda *_: supported, told=told, shown=shown))

    async def _answer(self, model: ChatModel, asked: Asked) -> ProfileUpdate:
        """Return what the model answers; it is asked once more when that can't be used."""
        try:
            return await _ask(model, asked.request)
        except ReplyInvalid:
            *before, last = asked.request
            again = replace(last, parts=(Text(text=last.text + AGAIN),))
            return await _ask(model, [*before, again])

    async def _apply(self, update: _Update) -> Applied:
        """Apply an update to the profile as it is, and save what that changes; anew when somebody else saved."""
        uploads = uploaded(update.told.messages)
        attempts = self._config.conflict_attempts
        for attempt in range(1, attempts + 1):
            base = await (self._store.load() if attempt == 1 else self._store.reload())
            forgotten = await self._forgotten()
            asked = without_forgotten(await run_sync(update.make, base, forgotten), forgotten)
            done = await run_sync(
                partial(
                    applied,
                    base,
                    asked,
                    now=self._clock.now(),
                    config=self._config,
                    confirmed_by_signal="reinforcement" in update.told.signals,
                    forgotten=forgotten,
                    shown=update.shown,
                    uploads=uploads,
                    needs_source=True,
                    said=update.told.last,
                    meaning=await self._meaning(base, asked),
                )
            )
            _report(done)
            if done.profile == base:
                return done
            if done.left and self._archive:
                await self._archive(done.left)
            try:
                saved = await self._store.save(done.profile, base=base, by=LEARNING, why=update.told.why)
            except VersionConflict:
                if attempt == attempts:
                    raise
                continue
            return replace(done, profile=saved.profile)
        raise AssertionError("an update has at least one attempt")

    async def _meaning(self, base: Profile, update: ProfileUpdate) -> Meaning | None:
        if self._meanings is None or not update.facts:
            return None
        contents = [fact.content for fact in base.facts] + [fact.content for fact in update.facts]
        return await self._meanings.of(contents)


async def _ask(model: ChatModel, request: Sequence[Message]) -> ProfileUpdate:
    try:
        reply = await model.complete(request, schema=UPDATE_FORM)
    except ReplyInvalid as error:
        # what is wrapped in prose is no good reply to a request for JSON, and may hold a good update
        if error.cut_off or not error.said:
            raise
        return parse_update(error.said)
    return parse_update(reply.parsed if reply.parsed is not None else reply.message.text)


def _both(first: Applied | None, second: Applied) -> Applied:
    """Return what became of two updates, one after the other."""
    if first is None:
        return second
    return Applied(
        profile=second.profile,
        rejections=(*first.rejections, *second.rejections),
        added=tuple(each for each in (*first.added, *second.added) if second.profile.fact(each)),
        removed=(*first.removed, *second.removed),
        confirmed=(*first.confirmed, *second.confirmed),
        archived=(*first.archived, *second.archived),
        merged=(*first.merged, *second.merged),
        left=(*first.left, *second.left),
        evicted=(*first.evicted, *second.evicted),
    )


def _report(done: Applied) -> None:
    """Tell, without any content, when most of what was asked for was turned down."""
    items = len(done.rejections) + len(done.added) + len(done.removed) + len(done.confirmed)
    if items >= _MANY and len(done.rejections) > _MOST_REFUSED * items:
        counts = ", ".join(f"{item} {reason}: {count}" for (item, reason), count in counted(done.rejections).items())
        _LOG.warning("Most of an update of the profile was turned down: %s", counts)
