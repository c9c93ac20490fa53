"""Parts: what can be exchanged under a workspace, and what this machine has of it."""

from dataclasses import dataclass

from ricordo.clock import Clock, IdSource, MonotonicIds, SystemClock
from ricordo.events import Emitter, EventSink, telemetry_sink
from ricordo.files.disk import Disk
from ricordo.models import ChatModel, Embedder
from ricordo.recall.reranking import Reranker
from ricordo.runtime.settings import Settings

__all__ = ["Dependencies"]


@dataclass(frozen=True, kw_only=True)
class Dependencies:
    """What can be exchanged under a workspace: time, ids, the disk and who listens to events.

    `actor` is the user whose acts are recorded where the scope names none. `model` is asked
    for what memory does on its own, where the settings name no other one; None for the rules.
    """

    settings: Settings
    clock: Clock
    ids: IdSource
    disk: Disk
    emitter: Emitter
    embedder: Embedder | str | None = None
    model: ChatModel | None = None
    reranker: Reranker | str | None = None
    actor: str = ""

    @classmethod
    def create(
        cls,
        *,
        settings: Settings | None = None,
        clock: Clock | None = None,
        disk: Disk | None = None,
        sink: EventSink | None = None,
        embedder: Embedder | str | None = None,
        reranker: Reranker | str | None = None,
        actor: str = "",
    ) -> "Dependencies":
        """Return the parts of this machine, but for those given.

        An `embedder` and a `reranker` may be names, as in the settings.
        """
        ticking = clock or SystemClock()
        held = settings or Settings.from_environment()
        sinks = tuple(found for found in (sink, telemetry_sink()) if found is not None)
        return cls(
            settings=held,
            embedder=held.embedder if embedder is None else embedder,
            reranker=held.reranker if reranker is None else reranker,
            clock=ticking,
            ids=MonotonicIds(ticking),
            disk=disk or Disk(),
            emitter=Emitter(ticking, sinks),
            actor=actor,
        )
