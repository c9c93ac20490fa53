"""Ingestion of session messages: rules learn from them immediately, a model in the background.

Invariant: ingestion neither waits for a model nor raises its errors to the caller.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ricordo.extraction.flusher import FlushResult
from ricordo.jobs import Job
from ricordo.messages import Message
from ricordo.runtime import Workspace
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.remaining import Remaining
from ricordo.workspace.history.versions import find_undone_messages
from ricordo.workspace.session_search import SessionInfo
from ricordo.workspace.transcript import AppendResult, BrokenLine, Transcript

__all__ = ["ForgetResult", "IngestReport", "RecordedSession", "ingest_messages"]


@dataclass(frozen=True, kw_only=True)
class ForgetResult:
    """The forgotten entry, and the places that still contain its words, nearest place first.

    `remaining` holds longer entries that contain these words, facts of the profile, and plans, notes, rules and todos
    in nearly the same words. They are not forgotten with it.
    """

    entry: Entry
    remaining: tuple[Remaining, ...] = ()


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
    who: str,
) -> IngestReport:
    """Append the messages to the transcript, then run the flush `job` of their session or put it into the inbox.

    All learned entries are one change by `who`, undone together with the change `part_of`. Raises: StorageError.
    """
    with workspace.emitter.stage("record", workspace.scope) as progress:
        recorded = await transcript.append(messages, known=known, again=known is None)
        progress.counts["messages"] = len(recorded.added)
    taken = IngestReport(session=job.session, messages=recorded.messages, added_count=len(recorded.added))
    waits = workspace.flush.uses_model
    if waits:
        await workspace.inbox.put(job)
        workspace.worker.track(job)
        flushed = FlushResult()
    else:
        flushed = await (workspace.worker.run_now if recorded.added else workspace.flush)(job)
    flushed = flushed.combine(await _relearn_undone(workspace, recorded, job))
    if not flushed.entries:
        return replace(taken, is_queued=waits)
    added = [entry.id for entry in flushed.entries]
    change = await workspace.memory_root.changes.apply([], act="ingest", who=who, entries=added, part_of=part_of)
    return replace(taken, is_queued=waits, entries=flushed.entries, change_id=change.id)


async def _relearn_undone(workspace: Workspace, recorded: AppendResult, job: Job) -> FlushResult:
    """Learn again from messages that were recorded before and whose entries were undone since."""
    place = workspace.memory_root
    before = {message.id for message in recorded.messages}.difference(recorded.added)
    if not before:
        return FlushResult()
    again = before & await find_undone_messages(place.files, place.changes, job.session)
    return await workspace.flush.extract_again(job, again) if again else FlushResult()
