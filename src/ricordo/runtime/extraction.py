"""Wiring of extraction by rules or by a model, and the profile section of an extraction request.

If no model answered, or its part can't be used, the findings of the rules update the profile.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, field, replace
from functools import partial
from types import NoneType

from anyio.to_thread import run_sync

from ricordo.clock import IdSource
from ricordo.curation.config import ProfileConfig
from ricordo.curation.profile.request import ProfileSection
from ricordo.curation.profile.storage import LedgerArchive, ProfileStores
from ricordo.curation.profile.updater import ProfileUpdater
from ricordo.curation.profile.updates import NewFact
from ricordo.errors import ExtraMissing, InvalidMessage, InvalidQuery, ModelError, ReplyInvalid
from ricordo.events import Emitter
from ricordo.extraction.config import NEVER, FlushConfig
from ricordo.extraction.contract import ExtractionSection, SectionFactory, SectionInput
from ricordo.extraction.extractors import ExtractionResult, Extractor, MessageDelta, ModelExtractor, RuleExtractor
from ricordo.extraction.flusher import Flusher, FlushResult
from ricordo.extraction.known_memory import ToolOutput
from ricordo.extraction.rules import extract
from ricordo.extraction.session_extraction import SessionExtraction
from ricordo.jobs import Job, JobQueue
from ricordo.language import tells_event
from ricordo.lazy import dataclass
from ricordo.messages import JsonValue, Message
from ricordo.models import ChatModel, Embedder
from ricordo.models.config import OFFLINE
from ricordo.models.provider import load_model
from ricordo.models.spending import SpendingMeter
from ricordo.runtime import Workspace
from ricordo.runtime.guarded_models import prepare_memory_model
from ricordo.runtime.settings import Settings
from ricordo.runtime.validation import check_type
from ricordo.scope import Scope
from ricordo.search.memory_root import MemoryRoot
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.log import PERSON
from ricordo.workspace.history.versions import find_undone_messages
from ricordo.workspace.layout import DEFAULT_AGENT, profile_path_for, transcript_path
from ricordo.workspace.profile import CORRECTION, FactSource, category_for_kind
from ricordo.workspace.redaction import redact_messages
from ricordo.workspace.session_search import SessionInfo, find_session
from ricordo.workspace.transcript import AppendResult, BrokenLine, Transcript, read_transcript

__all__ = [
    "IngestReport",
    "ProfileSectionMaker",
    "RecordedSession",
    "SessionRecorder",
    "create_profile_sections",
    "create_session_flush",
    "ingest_messages",
]


_MakeExtraction = Callable[[ChatModel], Extractor]


def create_session_flush(
    place: MemoryRoot,
    scope: Scope,
    settings: Settings,
    *,
    model: ChatModel | None,
    meter: SpendingMeter,
    inbox: JobQueue,
    ids: IdSource,
    emitter: Emitter,
    sections: Sequence[SectionFactory] = (),
    find_nearest: Callable[[str], Awaitable[Sequence[str]]] | None = None,
) -> SessionExtraction:
    """Create the extraction for sessions of `place`, using the model in the settings, else the agent's `model`.

    `meter` counts the cost; postponed jobs go to `inbox`. `sections` learn from the same request. `find_nearest`
    returns the entries nearest to a text.
    """
    config = settings.flush or FlushConfig(flush_trigger=NEVER)
    rules = RuleExtractor(rules=extract, sections=sections)

    def make_extraction(memory_model: ChatModel) -> Extractor:
        guarded = prepare_memory_model(memory_model, "flush", redactor=place.redactor, meter=meter, scope=scope)
        return ModelExtractor(model=guarded, config=config, rules=rules, files=place.files, clock=place.clock)

    return SessionExtraction(
        place=place,
        flusher=Flusher(
            files=place.files,
            redactor=place.redactor,
            key=place.key,
            clock=place.clock,
            ids=ids,
            model=_choose_extraction(config, settings, model, rules, make_extraction),
            sections=sections,
            detector=settings.signal_detector,
            find_nearest=find_nearest,
        ),
        emitter=emitter,
        scope=scope,
        config=config,
        postpone=inbox.put,
    )


def _choose_extraction(
    config: FlushConfig,
    settings: Settings,
    model: ChatModel | None,
    rules: RuleExtractor,
    make_extraction: _MakeExtraction,
) -> Extractor | None:
    """Return the extractor that asks a model; None if rules alone are used."""
    if isinstance(config.model, str) and config.model != OFFLINE:
        address = settings.resolve_address(config.model, setting="flush.base_url", own=config.base_url, agent=model)
        return _LazyExtraction(
            load=partial(load_model, config.model, base_url=address, **asdict(config.model_settings)),
            make=make_extraction,
            rules=rules,
        )
    chosen = model if config.model is None else config.model
    return make_extraction(chosen) if not isinstance(chosen, str | None) and chosen.name != OFFLINE else None


@dataclass(kw_only=True)
class _LazyExtraction:
    """Extraction by a model that is loaded at its first use, because most processes never use it."""

    load: Callable[[], ChatModel]
    make: _MakeExtraction
    rules: RuleExtractor
    _extraction: Extractor | None = field(default=None, init=False)

    async def __call__(self, delta: MessageDelta) -> ExtractionResult:
        """Return the model's findings, or those of the rules if it can't be loaded."""
        if self._extraction is None:
            try:
                self._extraction = self.make(await run_sync(self.load))
            except (ModelError, ExtraMissing) as error:
                note = f"the rules extracted: {type(error).__name__}"
                return await self.rules.extract(delta, len(delta.new), note=note)
        return await self._extraction(delta)


_DEFAULT_NAME = "User"
_PROJECT_KINDS = frozenset({"lesson", "decision"})


@dataclass(frozen=True, kw_only=True)
class ProfileSectionMaker:
    """Creates the profile section of a session's user, for `ricordo.extraction.contract`."""

    memory_root: MemoryRoot
    profiles: ProfileStores
    config: ProfileConfig
    embedder: Embedder | None = None

    async def __call__(self, section_input: SectionInput) -> ExtractionSection | None:
        """Return the section; None if there are no messages or the profile is elsewhere. Raises: StorageError."""
        if not section_input.messages or not profile_path_for(
            self.memory_root.scope, self._profile_scope(section_input)
        ):
            return None
        updater = self._create_updater(section_input)
        part = await updater.section(signals=section_input.signals)

        async def accept(answer: JsonValue, learned: SectionInput) -> None:
            await _apply_answer(updater, answer, part, learned)

        return ExtractionSection(
            name="profile", instructions=part.instructions, reference=part.reference, schema=part.schema, accept=accept
        )

    def _create_updater(self, section_input: SectionInput) -> ProfileUpdater:
        scope = self._profile_scope(section_input)
        archive = LedgerArchive(
            files=self.memory_root.files,
            clock=self.memory_root.clock,
            redactor=self.memory_root.redactor,
            scope=section_input.scope,
        )
        return ProfileUpdater(
            self.profiles.open_store(scope),
            config=self.config,
            clock=self.memory_root.clock,
            archive=archive,
            embedder=self.embedder,
        )

    def _profile_scope(self, section_input: SectionInput) -> Scope:
        """Return the scope of the profile: the user and the agent, in the scope of the root."""
        parts = self.memory_root.scope.parts()
        if section_input.scope and section_input.scope.user:
            parts["user"] = section_input.scope.user
        if section_input.agent != DEFAULT_AGENT:
            parts["agent"] = section_input.agent
        return Scope(**parts)


def create_profile_sections(
    place: MemoryRoot, profiles: ProfileStores, settings: Settings, embedder: Embedder | None
) -> Sequence[SectionFactory]:
    """Return the profile section; none if the settings disable it."""
    if settings.profile is None:
        return ()
    return (ProfileSectionMaker(memory_root=place, profiles=profiles, config=settings.profile, embedder=embedder),)


async def _apply_answer(
    updater: ProfileUpdater, answer: JsonValue, part: ProfileSection, section_input: SectionInput
) -> None:
    thread, trace = section_input.session, section_input.trace
    if answer is not None:
        # a partial answer is not used
        with suppress(ReplyInvalid):
            await updater.accept(
                answer, section_input.messages, section=part, signals=section_input.signals, thread=thread, trace=trace,
                recorded=section_input.recorded,
            )  # fmt: skip
            return
    await updater.update_offline(
        section_input.messages, _extract_facts(section_input), signals=section_input.signals, thread=thread, trace=trace
    )


def _extract_facts(section_input: SectionInput) -> list[NewFact]:
    """Return the findings about the person: preferences, habits, goals and facts of the user.

    The rules begin them with the speaker's name, or with "User" without a name. What somebody said about the project or
    once did, and lessons and decisions, go to its own memory.
    """
    names = {
        _DEFAULT_NAME,
        *(message.name for message in section_input.messages if message.role == "user" and message.name),
    }
    # a sentence begins with a capital letter, even if the name does not
    # and a name before a colon, or with the question that was asked, only says who spoke
    tools = ToolOutput(section_input.recorded)
    about_user = re.compile(rf"(?:{'|'.join(map(re.escape, sorted(names)))})\b(?![:：，]|, )", re.IGNORECASE)
    return [
        NewFact(
            content=finding.content,
            category=CORRECTION if finding.corrects else category_for_kind(finding.kind),
            confidence=finding.confidence,
            source=FactSource(messages=finding.message_ids, quote=finding.quote),
        )
        for finding in section_input.findings
        if finding.kind not in _PROJECT_KINDS and (opening := about_user.match(finding.content))
        if finding.kind != "fact" or finding.corrects or not tells_event(finding.content[opening.end() :])
        if not tools.is_repeated(finding.message_ids[0], finding.quote)
    ]


@dataclass(frozen=True, kw_only=True)
class IngestReport:
    """The result of ingesting messages of a session: the messages, how many are new, and the entries learned by rules.

    `messages` are the given messages as stored, with their ids. `change_id` is the id with which `undo` reverts what
    rules learned, empty if they learned nothing. If `is_queued`, a model learns from the messages in the background; it
    is not asked about what only one side said.
    """

    session: str
    messages: tuple[Message, ...] = ()
    added_count: int = 0
    entries: tuple[Entry, ...] = ()
    change_id: str = ""
    is_queued: bool = False


@dataclass(frozen=True, kw_only=True)
class RecordedSession:
    """A session: its messages in order, the 1-based line of each in the transcript, and the broken lines."""

    info: SessionInfo
    messages: tuple[Message, ...]
    lines: tuple[int, ...]
    broken_lines: tuple[BrokenLine, ...]


async def ingest_messages(
    workspace: Workspace,
    transcript: Transcript,
    messages: Sequence[Message],
    job: Job,
    *,
    known: Mapping[str, int] | None,
    part_of: str,
    actor: str,
) -> IngestReport:
    """Append the messages to the transcript, then run the flush `job` of their session or put it into the inbox.

    All learned entries are one change by `actor`, undone together with the change `part_of`; without an `actor` the
    caller records the change. Raises: StorageError.
    """
    with workspace.emitter.stage("record", workspace.scope) as progress:
        recorded = await transcript.append(messages, known=known, again=known is None)
        progress.counts["messages"] = len(recorded.added)
    report = IngestReport(session=job.session, messages=recorded.messages, added_count=len(recorded.added))
    is_queued = await workspace.flush.needs_model(job)
    if is_queued:
        await workspace.inbox.put(job)
        workspace.worker.track(job)
        result = FlushResult()
    elif workspace.flush.uses_model:
        result = await workspace.flush.extract_by_rules(job)
    else:
        result = await (workspace.worker.run_now if recorded.added else workspace.flush)(job)
    result = result.combine(await _relearn_undone(workspace, recorded, job))
    if not result.entries or not actor:
        return replace(report, is_queued=is_queued, entries=result.entries)
    added = [entry.id for entry in result.entries]
    change = await workspace.memory_root.changes.apply([], act="ingest", who=actor, entries=added, part_of=part_of)
    return replace(report, is_queued=is_queued, entries=result.entries, change_id=change.id)


async def _relearn_undone(workspace: Workspace, recorded: AppendResult, job: Job) -> FlushResult:
    """Learn again from messages that were recorded before and whose entries were undone since."""
    place = workspace.memory_root
    before = {message.id for message in recorded.messages}.difference(recorded.added)
    if not before:
        return FlushResult()
    again = before & await find_undone_messages(place.files, place.changes, job.session)
    return await workspace.flush.extract_again(job, again) if again else FlushResult()


_MAX_OPEN_TRANSCRIPTS = 64


class SessionRecorder:
    """Records sessions of an open memory; the transcripts used last are kept open."""

    def __init__(self) -> None:
        """Start without an open transcript."""
        self._transcripts: dict[str, Transcript] = {}

    async def ingest(
        self,
        workspace: Workspace,
        messages: Iterable[Message],
        *,
        session: str,
        known: Mapping[str, int] | None,
        part_of: str = "",
        actor: str = PERSON,
        only_new: bool = False,
    ) -> IngestReport:
        """Check the arguments of `Memory.ingest`, record the messages, and learn from them.

        Without an `actor` the caller records the change. With `only_new` messages that are recorded are left out of
        the report, and nothing is learned from them again.
        """
        # a single message instead of several is refused below
        given_messages: list[Message] = list(messages) if isinstance(messages, Iterable) else [messages]
        check_type("session", session, str, words="the id of a session", error=InvalidMessage)
        check_type("part_of", part_of, str, words="the id of a change, or empty", error=InvalidMessage)
        check_type("known", known, Mapping, NoneType, words="counts by fingerprint, or None", error=InvalidMessage)
        if not all(isinstance(message, Message) for message in given_messages):
            raise InvalidMessage("Messages are `Message` values: `ricordo.messages.formats.from_openai` makes them.")
        agent = workspace.scope.agent or DEFAULT_AGENT
        job = Job(kind="flush", agent=agent, session=session, user=workspace.scope.user or "")
        transcript = self._open_transcript(workspace.memory_root, transcript_path(agent, session), session)
        if only_new:
            given_messages = list(await transcript.select_unknown(given_messages))
        return await ingest_messages(
            workspace, transcript, given_messages, job, known=known, part_of=part_of, actor=actor
        )

    async def read(self, place: MemoryRoot, session_id: str, *, agent: str | None) -> RecordedSession:
        """Return one session with its messages, without secrets. Raises: SessionNotFound; InvalidQuery for no text."""
        check_type("The id of a session", session_id, str, words="a text", error=InvalidQuery)
        info = await find_session(place.files, session_id, agent=agent)
        transcript = await read_transcript(place.files, info.path)
        messages = await run_sync(redact_messages, transcript.messages, place.redactor)
        return RecordedSession(info=info, messages=messages, lines=transcript.lines, broken_lines=transcript.broken)

    def _open_transcript(self, place: MemoryRoot, path: str, session: str) -> Transcript:
        if path not in self._transcripts:
            while len(self._transcripts) >= _MAX_OPEN_TRANSCRIPTS:
                del self._transcripts[next(iter(self._transcripts))]
            self._transcripts[path] = Transcript(place.files, path, session=session, redactor=place.redactor)
        return self._transcripts[path]
