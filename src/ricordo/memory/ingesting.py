"""Taking in messages of a session: rules learn from them at once, a model does in the background.

Invariant: no model is waited for, and no error of one is raised to who gives the messages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ricordo.audit.learning_again import messages_unlearned
from ricordo.flush.flush import Flushed
from ricordo.memory.results import Ingested
from ricordo.messages import Message
from ricordo.queue import Job
from ricordo.runtime import Workspace
from ricordo.workspace.transcript import Recorded, Transcript

__all__ = ["take_in"]


async def take_in(
    workspace: Workspace,
    transcript: Transcript,
    messages: Sequence[Message],
    job: Job,
    *,
    known: Mapping[str, int] | None,
    part_of: str,
    who: str,
) -> Ingested:
    """Record the messages in the transcript and do the flush `job` of their session, or leave it to the inbox.

    `who` learns, and undoes all that was learned as one act, with that of `part_of`. Raises: StorageError.
    """
    with workspace.emitter.stage("record", workspace.scope) as progress:
        recorded = await transcript.append(messages, known=known, again=known is None)
        progress.counts["messages"] = len(recorded.added)
    taken = Ingested(session=job.session, messages=recorded.messages, added=len(recorded.added))
    waits = workspace.flush.asks_a_model
    if waits:
        await workspace.inbox.put(job)
        workspace.worker.follow(job)
        flushed = Flushed()
    else:
        flushed = await (workspace.worker.at_once if recorded.added else workspace.flush)(job)
    flushed = flushed.then(await _learned_again(workspace, recorded, job))
    if not flushed.entries:
        return replace(taken, waits=waits)
    added = [entry.id for entry in flushed.entries]
    change = await workspace.place.changes.apply([], act="ingest", who=who, entries=added, part_of=part_of)
    return replace(taken, waits=waits, entries=flushed.entries, change=change.id)


async def _learned_again(workspace: Workspace, recorded: Recorded, job: Job) -> Flushed:
    """Learn from what was given before and whose lessons were undone since."""
    place = workspace.place
    before = {message.id for message in recorded.messages}.difference(recorded.added)
    if not before:
        return Flushed()
    again = before & await messages_unlearned(place.files, place.changes, job.session)
    return await workspace.flush.again(job, again) if again else Flushed()
