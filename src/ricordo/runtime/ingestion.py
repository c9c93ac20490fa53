"""Ingestion of session messages: rules learn from them immediately, a model in the background.

Invariant: ingestion neither waits for a model nor raises its errors to the caller.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import NoneType

from anyio.to_thread import run_sync

from ricordo.errors import InvalidMessage, InvalidQuery
from ricordo.extraction.flusher import FlushResult
from ricordo.jobs import Job
from ricordo.lazy import dataclass
from ricordo.messages import Message
from ricordo.runtime import Workspace
from ricordo.runtime.validation import check_type
from ricordo.search.memory_root import MemoryRoot
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.log import PERSON
from ricordo.workspace.history.versions import find_undone_messages
from ricordo.workspace.layout import DEFAULT_AGENT, transcript_path
from ricordo.workspace.redaction import redact_messages
from ricordo.workspace.session_search import SessionInfo, find_session
from ricordo.workspace.transcript import AppendResult, BrokenLine, Transcript, read_transcript

__all__ = ["IngestReport", "RecordedSession", "SessionRecorder", "ingest_messages"]


@dataclass(frozen=True, kw_only=True)
class IngestReport:
    """The result of ingesting messages of a session: the messages, how many are new, and the entries learned by rules.

    `messages` are the given messages as stored, with their ids. `change_id` is the id with which `undo` reverts what
    rules learned, empty if they learned nothing. If `is_queued`, a model learns from the messages in the background.
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

    All learned entries are one change by `actor`, undone together with the change `part_of`. Raises: StorageError.
    """
    with workspace.emitter.stage("record", workspace.scope) as progress:
        recorded = await transcript.append(messages, known=known, again=known is None)
        progress.counts["messages"] = len(recorded.added)
    report = IngestReport(session=job.session, messages=recorded.messages, added_count=len(recorded.added))
    is_queued = workspace.flush.uses_model
    if is_queued:
        await workspace.inbox.put(job)
        workspace.worker.track(job)
        result = FlushResult()
    else:
        result = await (workspace.worker.run_now if recorded.added else workspace.flush)(job)
    result = result.combine(await _relearn_undone(workspace, recorded, job))
    if not result.entries:
        return replace(report, is_queued=is_queued)
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
        part_of: str,
    ) -> IngestReport:
        """Check the arguments of `Memory.ingest`, record the messages, and learn from them."""
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
        return await ingest_messages(
            workspace, transcript, given_messages, job, known=known, part_of=part_of, actor=PERSON
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
