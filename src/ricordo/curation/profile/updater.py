"""ProfileUpdater: updates a profile from a conversation, with a model or by rules.

A long conversation takes several requests, and each sees the changes of the one before. `section` and `accept` are the
two halves of an update inside a larger request to a model.

Invariants: an unusable answer changes nothing. A new fact quotes its source message; an unsupported fact names no
message and is rejected. An evicted fact is archived before it is removed. If another writer saves meanwhile, the update
is applied again to the saved profile.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TypeAlias

from anyio.to_thread import run_sync

from ricordo.clock import Clock, SystemClock
from ricordo.curation.config import ProfileConfig
from ricordo.curation.profile.apply import apply_update
from ricordo.curation.profile.facts import FactSimilarity, SimilarityFunction
from ricordo.curation.profile.offline import make_offline_update
from ricordo.curation.profile.reply import UPDATE_SCHEMA, parse_update
from ricordo.curation.profile.request import (
    MEMORY_UPDATE_PROMPT,
    RETRY_INSTRUCTION,
    ProfileSection,
    UpdateRequest,
    build_profile_section,
    build_update_request,
    parse_prompt,
)
from ricordo.curation.profile.storage import LEARNING_AUTHOR, FactArchive, ProfileStore
from ricordo.curation.profile.updates import (
    NewFact,
    ProfileUpdate,
    UpdateResult,
    count_rejections,
    parse_confidence,
    without_forgotten,
)
from ricordo.errors import InvalidSetting, ReplyInvalid, VersionConflict
from ricordo.extraction.known_memory import ToolOutput
from ricordo.guard.fence import contains_fence
from ricordo.language.sentences import split_sentences
from ricordo.language.words import containment, content_words
from ricordo.lazy import dataclass
from ricordo.messages.tokens import estimate_text
from ricordo.messages.types import JsonValue, Media, Message, Text, get_mark
from ricordo.models.contract import ChatModel, Embedder
from ricordo.workspace.profile import FactSource, Profile

__all__ = ["ForgottenFilterLoader", "ProfileUpdater", "attach_sources", "find_uploads", "select_learnable"]


_MAX_QUOTE = 2_000
_MAX_STORED_QUOTE = 300
_MIN_QUOTE_LETTERS = 3
_MIN_SUPPORT = 0.6
_MIN_CONTENT_WORDS = 2
_UNQUOTED_WEIGHT = 0.85
_ASSISTANT_WEIGHT = 0.8
_MIN_NAME = 5
_UPLOAD_KEYS = ("files", "uploads", "attachments")
_NAME_KEYS = ("filename", "name", "path", "file_name", "title")
_GENERIC_WORDS = frozenset(content_words("user users person", "en"))


def select_learnable(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages that a user or an assistant wrote, without injected memory, host messages and tool calls."""
    return tuple(
        message
        for message in messages
        if message.role in {"user", "assistant"}
        and not message.tool_calls
        and get_mark(message) in {None, "cut"}
        and message.text.strip()
        and not contains_fence(message.text)
    )


def attach_sources(update: ProfileUpdate, messages: Sequence[Message], thread: str) -> ProfileUpdate:
    """Return an update whose new facts name their sources in `messages`, which belong to `thread`.

    If the quote of a fact is in no message, but one message has its words, the fact gets the matching sentence and a
    lower confidence; a fact that only an assistant said gets a lower confidence too.
    """
    mergings = tuple(
        replace(each, fact=replace(each.fact, source=FactSource(thread="consolidation"))) for each in update.mergings
    )
    return replace(
        update, facts=tuple(_attach_source(fact, messages, thread) for fact in update.facts), mergings=mergings
    )


def _without_outside_sources(update: ProfileUpdate, messages: Sequence[Message]) -> ProfileUpdate:
    """Return an update whose facts have no source where an assistant only repeats what a tool printed."""
    tools = ToolOutput(messages)
    return replace(
        update,
        facts=tuple(
            replace(fact, source=FactSource(thread=fact.source.thread))
            if any(tools.is_repeated(name, fact.source.quote) for name in fact.source.messages[:1])
            else fact
            for fact in update.facts
        ),
    )


def find_uploads(messages: Sequence[Message]) -> frozenset[str]:
    """Return the names of uploaded files, from the metadata and the media of messages."""
    names: set[str] = set()
    for message in messages:
        additional = message.metadata.get("additional_kwargs")
        for metadata in (message.metadata, additional if isinstance(additional, dict) else {}):
            for key in _UPLOAD_KEYS:
                names.update(_upload_names(metadata.get(key)))
        names.update(part.name for part in message.parts if isinstance(part, Media) and part.name)
    all_names = {name.replace("\\", "/").rpartition("/")[2] for name in names} | names
    return frozenset(name for name in all_names if len(name) >= _MIN_NAME and "." in name.strip("."))


def _upload_names(files: JsonValue) -> Iterator[str]:
    for each in files if isinstance(files, list) else []:
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            yield from (value for key in _NAME_KEYS if isinstance(value := each.get(key), str))


def _attach_source(fact: NewFact, messages: Sequence[Message], thread: str) -> NewFact:
    confidence = parse_confidence(fact.confidence)
    if confidence is None:
        return fact
    message_ids = {message.id for message in messages}
    # messages of a user go before messages of an assistant with the same words
    candidates = sorted(messages, key=lambda message: (message.id not in fact.source.messages, message.role != "user"))
    for message in candidates:
        matched_quote = _find_quote(fact.source.quote, message.text)
        if matched_quote:
            return _with_source(fact, message, confidence, thread, message_ids=message_ids, quote=matched_quote)
    supporting = max(candidates, key=lambda message: _support_score(fact.content, message), default=None)
    if supporting is not None and _support_score(fact.content, supporting) >= _MIN_SUPPORT:
        quote = _find_supporting_sentence(fact.content, supporting.text)
        return _with_source(
            fact, supporting, confidence * _UNQUOTED_WEIGHT, thread, message_ids=message_ids, quote=quote
        )
    return replace(fact, source=FactSource(thread=thread))


def _with_source(
    fact: NewFact, message: Message, confidence: float, thread: str, *, message_ids: Collection[str], quote: str = ""
) -> NewFact:
    weight = 1.0 if message.role == "user" else _ASSISTANT_WEIGHT
    other_ids = tuple(each for each in fact.source.messages if each in message_ids and each != message.id)
    source = FactSource(thread=thread, messages=(message.id, *other_ids), quote=quote)
    return replace(fact, confidence=round(confidence * weight, 4), source=source)


def _support_score(content: str, message: Message) -> float:
    words = [word for word in content_words(content) if word not in _GENERIC_WORDS]
    if len(set(words)) < _MIN_CONTENT_WORDS:
        return 0.0
    return containment(words, content_words(message.text))


def _find_supporting_sentence(content: str, text: str) -> str:
    """Return the sentence of `text` with the most words of `content`, verbatim."""
    words = content_words(content)
    sentences = [sentence.text for sentence in split_sentences(text)] or [text]
    return max(sentences, key=lambda sentence: containment(words, content_words(sentence))).strip()[:_MAX_STORED_QUOTE]


def _find_quote(quote: str, text: str) -> str:
    """Return the words of `quote` as written in `text`, ignoring the white space between them; empty if not found."""
    words = quote[: _MAX_QUOTE + 1].split()
    if len(quote) > _MAX_QUOTE or sum(char.isalnum() for char in quote) < _MIN_QUOTE_LETTERS:
        return ""
    match = re.search(r"\s+".join(map(re.escape, words)), text)
    return match[0][:_MAX_STORED_QUOTE].rstrip() if match else ""


_LOG = logging.getLogger(__name__)
_MIN_ITEMS_TO_REPORT = 5
_MAX_REJECTED_SHARE = 0.6
_ORDINARY_REASONS = frozenset({"interval", "threshold", "forgotten"})
"""Reasons that are no flaw of an update: it came early, is unsure, or a person did not want it."""
ForgottenFilterLoader: TypeAlias = Callable[[], Awaitable[Callable[[str], bool]]]
"""Returns a function that tells whether a content is forgotten at this time."""
_ForgottenFilter: TypeAlias = Callable[[str], bool]
_MakeUpdate: TypeAlias = Callable[[Profile, _ForgottenFilter], ProfileUpdate]


@dataclass(frozen=True, kw_only=True)
class _Conversation:
    """The messages, their thread, the trace and the signals in them."""

    messages: Sequence[Message]
    signals: Collection[str]
    thread: str
    trace: str

    @property
    def last_time(self) -> datetime | None:
        """The time of the last message; None when no message has a time."""
        return max((message.time for message in self.messages if message.time), default=None)

    @property
    def why(self) -> str:
        return f"learned from {self.thread}" + (f" ({self.trace})" if self.trace else "")


@dataclass(frozen=True, kw_only=True)
class _PendingUpdate:
    """The update to apply, its conversation, and the ids of the facts that a review showed."""

    make: _MakeUpdate
    conversation: _Conversation
    shown: Collection[str] = ()


class ProfileUpdater:
    """Keeps one user's profile up to date. Several updaters may share one store; each update is atomic."""

    def __init__(
        self,
        store: ProfileStore,
        model: ChatModel | None = None,
        *,
        config: ProfileConfig | None = None,
        clock: Clock | None = None,
        forgotten_filter: ForgottenFilterLoader | None = None,
        archive: FactArchive | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        """Update the profile in `store` with `model`, or by rules without one.

        `forgotten_filter` prevents forgotten content from being learned again, by default with the filter of the store;
        `archive` receives evicted facts. `embedder` helps to find facts that say the same. Raises: InvalidSetting for a
        prompt without the required slots, or one that takes more than a third of `max_prompt_tokens`.
        """
        self._store = store
        self._model = model
        self._config = config or ProfileConfig()
        self._clock = clock or SystemClock()
        self._load_forgotten_filter = forgotten_filter or store.load_forgotten_filter
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
        """Learn from `messages` of `thread`; None without messages of a user or an assistant.

        `signals` are the kinds of the user's statements, such as `correction`. `trace` is recorded with the change.
        `facts` were found by rules, and are used only without a model. Raises: ModelError when the model can't be
        reached, or two answers in a row are unusable; changes from earlier parts of a long conversation stay.
        StorageError.
        """
        remaining = select_learnable(messages)
        if not remaining:
            return None
        if self._model is None:
            return await self.update_offline(messages, facts, signals=signals, thread=thread, trace=trace)
        result: UpdateResult | None = None
        while remaining:
            profile = await self._store.load()
            make_request = partial(
                build_update_request,
                profile,
                remaining,
                signals,
                prompt=self._prompt,
                now=self._clock.now(),
                config=self._config,
            )
            request = await run_sync(make_request)
            update = await self._ask_with_retry(self._model, request)
            conversation = _Conversation(messages=request.messages, signals=signals, thread=thread, trace=trace)
            partial_result = await self._apply_reply(update, conversation, request.shown)
            result = _combine_results(result, partial_result)
            remaining = remaining[len(request.messages) :]
        return result

    async def update_offline(
        self,
        messages: Sequence[Message],
        facts: Sequence[NewFact],
        *,
        signals: Collection[str] = frozenset(),
        thread: str = "unknown",
        trace: str = "",
    ) -> UpdateResult | None:
        """Learn the `facts` that rules found in `messages`, without a model; None as `update`. Raises: StorageError."""
        learnable = select_learnable(messages)
        if not learnable:
            return None
        now = self._clock.now()
        sourced_facts = (await run_sync(attach_sources, ProfileUpdate(facts=tuple(facts)), learnable, thread)).facts

        def make(profile: Profile, is_forgotten: _ForgottenFilter) -> ProfileUpdate:
            allowed_facts = [fact for fact in sourced_facts if not is_forgotten(fact.content)]
            return make_offline_update(profile, learnable, allowed_facts, now=now, config=self._config)

        conversation = _Conversation(messages=messages, signals=signals, thread=thread, trace=trace)
        return await self._apply(_PendingUpdate(make=make, conversation=conversation))

    async def section(self, *, signals: Collection[str] = frozenset()) -> ProfileSection:
        """Return the profile section for a larger request to a model. Raises: StorageError."""
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
        recorded: Sequence[Message] = (),
    ) -> UpdateResult:
        """Apply a model's answer to `section`, which was asked about `messages`, and save the profile.

        What an assistant only repeats of a tool's result in `recorded` is not learned.

        Raises: ReplyInvalid for an unusable answer; then nothing is saved. StorageError.
        """
        reviewed_ids = section.shown if section else ()
        conversation = _Conversation(messages=messages, signals=signals, thread=thread, trace=trace)
        return await self._apply_reply(parse_update(answer), conversation, reviewed_ids, recorded=recorded)

    async def _apply_reply(
        self,
        update: ProfileUpdate,
        conversation: _Conversation,
        reviewed_ids: Collection[str],
        *,
        recorded: Sequence[Message] = (),
    ) -> UpdateResult:
        sourced_update = await run_sync(
            attach_sources, update, select_learnable(conversation.messages), conversation.thread
        )
        sourced_update = await run_sync(_without_outside_sources, sourced_update, recorded)
        return await self._apply(
            _PendingUpdate(make=lambda *_: sourced_update, conversation=conversation, shown=reviewed_ids)
        )

    async def _ask_with_retry(self, model: ChatModel, update_request: UpdateRequest) -> ProfileUpdate:
        """Return the update from the model; it is asked once more if its answer is unusable."""
        try:
            return await _ask(model, update_request.request)
        except ReplyInvalid:
            *before, last = update_request.request
            retry_message = replace(last, parts=(Text(text=last.text + RETRY_INSTRUCTION),))
            return await _ask(model, [*before, retry_message])

    async def _apply(self, update: _PendingUpdate) -> UpdateResult:
        """Apply an update to the current profile and save it; repeat if another writer saved meanwhile."""
        uploads = find_uploads(update.conversation.messages)
        attempts = self._config.conflict_attempts
        for attempt in range(1, attempts + 1):
            base = await (self._store.load() if attempt == 1 else self._store.reload())
            is_forgotten = await self._load_forgotten_filter()
            allowed_update = without_forgotten(await run_sync(update.make, base, is_forgotten), is_forgotten)
            result = await run_sync(
                partial(
                    apply_update,
                    base,
                    allowed_update,
                    now=self._clock.now(),
                    config=self._config,
                    confirmed_by_signal="reinforcement" in update.conversation.signals,
                    is_forgotten=is_forgotten,
                    reviewed_ids=update.shown,
                    uploads=uploads,
                    needs_source=True,
                    last_message_at=update.conversation.last_time,
                    similarity=await self._make_similarity(base, allowed_update),
                )
            )
            _report(result)
            if result.profile == base:
                return result
            if result.left and self._archive:
                await self._archive(result.left)
            try:
                saved = await self._store.save(
                    result.profile, base=base, by=LEARNING_AUTHOR, why=update.conversation.why
                )
            except VersionConflict:
                if attempt == attempts:
                    raise
                continue
            return replace(result, profile=saved.profile)
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
        # JSON wrapped in prose is an invalid reply, but may hold a valid update
        if error.cut_off or not error.said:
            raise
        return parse_update(error.said)
    return parse_update(reply.parsed if reply.parsed is not None else reply.message.text)


def _combine_results(first: UpdateResult | None, second: UpdateResult) -> UpdateResult:
    """Return the combined result of two successive updates."""
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


def _report(result: UpdateResult) -> None:
    """Log a warning, without any content, when most items of an update were flawed."""
    flawed = [each for each in result.rejections if each.reason not in _ORDINARY_REASONS]
    items = len(result.rejections) + len(result.added) + len(result.removed) + len(result.confirmed)
    if items >= _MIN_ITEMS_TO_REPORT and len(flawed) > _MAX_REJECTED_SHARE * items:
        counts = ", ".join(f"{item} {reason}: {count}" for (item, reason), count in count_rejections(flawed).items())
        _LOG.warning("Most of an update of the profile was turned down: %s", counts)
