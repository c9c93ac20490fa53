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
from ricordo.profile.archiving import FactArchive
from ricordo.profile.config import ProfileConfig
from ricordo.profile.contract import LEARNING_AUTHOR, ProfileStore
from ricordo.profile.forgetting import without_forgotten
from ricordo.profile.form import UPDATE_SCHEMA
from ricordo.profile.gate import count_rejections
from ricordo.profile.meanings import FactSimilarity
from ricordo.profile.merging import SimilarityFunction
from ricordo.profile.offline import make_offline_update
from ricordo.profile.plan import apply_update
from ricordo.profile.prompts import RETRY_INSTRUCTION, MEMORY_UPDATE_PROMPT, parse_prompt
from ricordo.profile.provenance import select_learnable, attach_sources, find_uploads
from ricordo.profile.request import UpdateRequest, ProfileSection, build_update_request, build_profile_section
from ricordo.profile.types import UpdateResult, NewFact, ProfileUpdate
from ricordo.tokens import estimate_text
from ricordo.workspace.profile import Profile

__all__ = ["ForgottenFilterLoader", "ProfileUpdater"]

_LOG = logging.getLogger(__name__)
_MIN_ITEMS_TO_REPORT, _MAX_REJECTED_SHARE = 5, 0.6

ForgottenFilterLoader: TypeAlias = Callable[[], Awaitable[Callable[[str], bool]]]
"""Gives what tells whether a content was forgotten, as that is now."""

_ForgottenFilter: TypeAlias = Callable[[str], bool]
_MakeUpdate: TypeAlias = Callable[[Profile, _ForgottenFilter], ProfileUpdate]


@dataclass(frozen=True, kw_only=True)
class _Conversation:
    """What was said, in which thread, and what it does."""

    messages: Sequence[Message]
    signals: Collection[str]
    thread: str
    trace: str

    @property
    def last_time(self) -> datetime | None:
        """When the last of it was said; None when no message tells."""
        return max((message.time for message in self.messages if message.time), default=None)

    @property
    def why(self) -> str:
        return f"learned from {self.thread}" + (f" ({self.trace})" if self.trace else "")


@dataclass(frozen=True, kw_only=True)
class _PendingUpdate:
    """What there is to apply to a profile, where it comes from, and the ids of the facts that a review showed."""

    make: _MakeUpdate
    conversation: _Conversation
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
        forgotten: ForgottenFilterLoader | None = None,
        archive: FactArchive | None = None,
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
        self._load_forgotten_filter = forgotten or store.load_forgotten_filter
        self._archive = archive
        prompt = self._config.prompt or MEMORY_UPDATE_PROMPT
        self._prompt = parse_prompt(prompt)
        if estimate_text(prompt) > self._config.max_prompt_tokens // 3:
            raise InvalidSetting("The prompt for updates of a profile takes more than a third of max_prompt_tokens.")
        self._fact_similarity = FactSimilarity(embedder) if embedder else None

    async def update(
        self,
        messages: Sequence[Message],
        *,
        signals: Collection[str] = frozenset(),
        thread: str = "unknown",
        trace: str = "",
        facts: Sequence[NewFact] = (),
    ) -> UpdateResult | None:
        """Learn from `messages` of `thread`; None when nothing in them was said by a user or an assistant.

        `signals` are what the user's words do, such as `correction`. `trace` is told with the change. `facts` are what
        rules found, and count only where no model is asked. Raises: ModelError when the model can't be reached, or its
        answer can't be used twice in a row; what earlier parts of a long conversation changed stays. StorageError.
        """
        said = select_learnable(messages)
        if not said:
            return None
        if self._model is None:
            return await self.update_offline(messages, facts, signals=signals, thread=thread, trace=trace)
        done: UpdateResult | None = None
        while said:
            profile = await self._store.load()
            asking = partial(
                build_update_request,
                profile,
                said,
                signals,
                prompt=self._prompt,
                now=self._clock.now(),
                config=self._config,
            )
            asked = await run_sync(asking)
            update = await self._ask_with_retry(self._model, asked)
            told = _Conversation(messages=asked.messages, signals=signals, thread=thread, trace=trace)
            one = await self._apply_reply(update, told, asked.shown)
            done = _combine_results(done, one)
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
    ) -> UpdateResult | None:
        """Learn what rules found in `messages`, without a model; None as `update`. Raises: StorageError."""
        said = select_learnable(messages)
        if not said:
            return None
        now = self._clock.now()
        found = (await run_sync(attach_sources, ProfileUpdate(facts=tuple(facts)), said, thread)).facts

        def make(profile: Profile, forgotten: _ForgottenFilter) -> ProfileUpdate:
            kept = [fact for fact in found if not forgotten(fact.content)]
            return make_offline_update(profile, said, kept, now=now, config=self._config)

        told = _Conversation(messages=messages, signals=signals, thread=thread, trace=trace)
        return await self._apply(_PendingUpdate(make=make, conversation=told))

    async def section(self, *, signals: Collection[str] = frozenset()) -> ProfileSection:
        """Return what to ask a model, for a request that asks for more than this. Raises: StorageError."""
        profile = await self._store.load()
        return await run_sync(
            partial(
                build_profile_section, profile, signals, prompt=self._prompt, now=self._clock.now(), config=self._config
            )
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
    ) -> UpdateResult:
        """Apply what a model answered to `section`, of which `messages` were shown, and save it.

        Raises: ReplyInvalid for an answer that can't be used; then nothing is saved. StorageError.
        """
        shown = section.shown if section else ()
        told = _Conversation(messages=messages, signals=signals, thread=thread, trace=trace)
        return await self._apply_reply(parse_update(answer), told, shown)

    async def _apply_reply(self, update: ProfileUpdate, told: _Conversation, shown: Collection[str]) -> UpdateResult:
        supported = await run_sync(attach_sources, update, select_learnable(told.messages), told.thread)
        return await self._apply(_PendingUpdate(make=lambda *_: supported, conversation=told, shown=shown))

    async def _ask_with_retry(self, model: ChatModel, asked: UpdateRequest) -> ProfileUpdate:
        """Return what the model answers; it is asked once more when that can't be used."""
        try:
            return await _ask(model, asked.request)
        except ReplyInvalid:
            *before, last = asked.request
            again = replace(last, parts=(Text(text=last.text + RETRY_INSTRUCTION),))
            return await _ask(model, [*before, again])

    async def _apply(self, update: _PendingUpdate) -> UpdateResult:
        """Apply an update to the profile as it is, and save what that changes; anew when somebody else saved."""
        uploads = find_uploads(update.conversation.messages)
        attempts = self._config.conflict_attempts
        for attempt in range(1, attempts + 1):
            base = await (self._store.load() if attempt == 1 else self._store.reload())
            forgotten = await self._load_forgotten_filter()
            asked = without_forgotten(await run_sync(update.make, base, forgotten), forgotten)
            done = await run_sync(
                partial(
                    apply_update,
                    base,
                    asked,
                    now=self._clock.now(),
                    config=self._config,
                    confirmed_by_signal="reinforcement" in update.conversation.signals,
                    forgotten=forgotten,
                    shown=update.shown,
                    uploads=uploads,
                    needs_source=True,
                    said=update.conversation.last_time,
                    meaning=await self._make_similarity(base, asked),
                )
            )
            _report(done)
            if done.profile == base:
                return done
            if done.left and self._archive:
                await self._archive(done.left)
            try:
                saved = await self._store.save(done.profile, base=base, by=LEARNING_AUTHOR, why=update.conversation.why)
            except VersionConflict:
                if attempt == attempts:
                    raise
                continue
            return replace(done, profile=saved.profile)
        raise AssertionError("an update has at least one attempt")

    async def _make_similarity(self, base: Profile, update: ProfileUpdate) -> SimilarityFunction | None:
        if self._fact_similarity is None or not update.facts:
            return None
        contents = [fact.content for fact in base.facts] + [fact.content for fact in update.facts]
        return await self._fact_similarity.make_similarity(contents)


async def _ask(model: ChatModel, request: Sequence[Message]) -> ProfileUpdate:
    try:
        reply = await model.complete(request, schema=UPDATE_SCHEMA)
    except ReplyInvalid as error:
        # what is wrapped in prose is no good reply to a request for JSON, and may hold a good update
        if error.cut_off or not error.said:
            raise
        return parse_update(error.said)
    return parse_update(reply.parsed if reply.parsed is not None else reply.message.text)


def _combine_results(first: UpdateResult | None, second: UpdateResult) -> UpdateResult:
    """Return what became of two updates, one after the other."""
    if first is None:
        return second
    return UpdateResult(
        profile=second.profile,
        rejections=(*first.rejections, *second.rejections),
        added=tuple(each for each in (*first.added, *second.added) if second.profile.find_fact(each)),
        removed=(*first.removed, *second.removed),
        confirmed=(*first.confirmed, *second.confirmed),
        archived=(*first.archived, *second.archived),
        merged=(*first.merged, *second.merged),
        left=(*first.left, *second.left),
        evicted=(*first.evicted, *second.evicted),
    )


def _report(done: UpdateResult) -> None:
    """Tell, without any content, when most of what was asked for was turned down."""
    items = len(done.rejections) + len(done.added) + len(done.removed) + len(done.confirmed)
    if items >= _MIN_ITEMS_TO_REPORT and len(done.rejections) > _MAX_REJECTED_SHARE * items:
        counts = ", ".join(
            f"{item} {reason}: {count}" for (item, reason), count in count_rejections(done.rejections).items()
        )
        _LOG.warning("Most of an update of the profile was turned down: %s", counts)
