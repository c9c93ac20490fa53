"""Recording into a transcript: the `record` of a loop that keeps what is said on disk."""

from collections.abc import Sequence
from dataclasses import replace

from ricordo.clock import Clock, SystemClock
from ricordo.events import Emitter
from ricordo.messages import Message
from ricordo.scopes import Scope
from ricordo.workspace.transcript import Transcript

__all__ = ["TranscriptRecorder"]


class TranscriptRecorder:
    """A `Record` over one session's transcript."""

    def __init__(
        self,
        transcript: Transcript,
        *,
        scope: Scope | None = None,
        clock: Clock | None = None,
        emitter: Emitter | None = None,
    ) -> None:
        """Append to `transcript`; a message without a time gets the clock's. `scope` is named on events."""
        self._transcript = transcript
        self._scope = scope
        self._clock = clock or SystemClock()
        self._emitter = emitter or Emitter(self._clock)

    async def __call__(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return `messages` as they are stored: without secrets, with ids and times. Raises `StorageError`."""
        with self._emitter.stage("record", self._scope) as progress:
            now = self._clock.now()
            timed = [message if message.time else replace(message, time=now) for message in messages]
            recorded = await self._transcript.append(timed)
            progress.counts["messages"] = len(recorded.added)
            return recorded.messages
