"""Memory for programs that do not await."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from anyio.from_thread import start_blocking_portal

from ricordo.clock import Clock
from ricordo.events import Sink
from ricordo.memory import Memory as AsyncMemory
from ricordo.models import Embedder
from ricordo.runtime import Settings
from ricordo.scopes import Scope
from ricordo.sync.face import Face, blocking
from ricordo.sync.profile import ManagedProfile

__all__ = ["Memory"]


class Memory(Face[AsyncMemory]):
    """The memory of one scope, open. Use `with Memory.open(...) as memory`; the methods are those of `ricordo.Memory`.

    It may be used from several threads.
    """

    @classmethod
    @contextmanager
    def open(
        cls,
        root: str | Path | None = None,
        *,
        scope: Scope | None,
        on_event: Sink | None = None,
        settings: Settings | None = None,
        trusted: bool = False,
        clock: Clock | None = None,
        embedder: Embedder | str | None = None,
    ) -> Iterator["Memory"]:
        """Open the memory of `scope` in the folder `root`, as `ricordo.Memory.open` does."""
        opening = AsyncMemory.open(
            root, scope=scope, on_event=on_event, settings=settings, trusted=trusted, clock=clock, embedder=embedder
        )
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(opening) as memory:
            yield cls(portal, memory)

    def profile(self, *, scope: Scope | None = None) -> ManagedProfile:
        """Return the profile of the user, to look at and to change, as `ricordo.Memory.profile` does."""
        return ManagedProfile(self._portal, self._inner.profile(scope=scope))

    remember = blocking(AsyncMemory.remember)
    recall = blocking(AsyncMemory.recall)
    search = blocking(AsyncMemory.search)
    answer = blocking(AsyncMemory.answer)
    preamble = blocking(AsyncMemory.preamble)
    index_cut = blocking(AsyncMemory.index_cut)
    entries = blocking(AsyncMemory.entries)
    entry = blocking(AsyncMemory.entry)
    forget = blocking(AsyncMemory.forget)
    erase = blocking(AsyncMemory.erase)
    versions = blocking(AsyncMemory.versions)
    pin = blocking(AsyncMemory.pin)
    confirm = blocking(AsyncMemory.confirm)
    undo = blocking(AsyncMemory.undo)
    history = blocking(AsyncMemory.history)
    diff = blocking(AsyncMemory.diff)
    runs = blocking(AsyncMemory.runs)
    settle = blocking(AsyncMemory.settle)
    ingest = blocking(AsyncMemory.ingest)
    sessions = blocking(AsyncMemory.sessions)
    session = blocking(AsyncMemory.session)
    doctor = blocking(AsyncMemory.doctor)
