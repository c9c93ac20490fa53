"""Memory for programs that do not await."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from anyio.from_thread import start_blocking_portal

from ricordo.clock import Clock
from ricordo.events import EventSink
from ricordo.memory import Memory as AsyncMemory
from ricordo.models import Embedder
from ricordo.runtime import Settings
from ricordo.scopes import Scope
from ricordo.sync.face import SyncProxy, make_blocking
from ricordo.sync.profile import SyncProfile

__all__ = ["SyncMemory"]


class SyncMemory(SyncProxy[AsyncMemory]):
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
        on_event: EventSink | None = None,
        settings: Settings | None = None,
        trusted: bool = False,
        clock: Clock | None = None,
        embedder: Embedder | str | None = None,
    ) -> Iterator["SyncMemory"]:
        """Open the memory of `scope` in the folder `root`, as `ricordo.Memory.open` does."""
        opening = AsyncMemory.open(
            root, scope=scope, on_event=on_event, settings=settings, trusted=trusted, clock=clock, embedder=embedder
        )
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(opening) as memory:
            yield cls(portal, memory)

    def profile(self, *, scope: Scope | None = None) -> SyncProfile:
        """Return the profile of the user, to look at and to change, as `ricordo.Memory.profile` does."""
        return SyncProfile(self._portal, self._inner.profile(scope=scope))

    remember = make_blocking(AsyncMemory.remember)
    recall = make_blocking(AsyncMemory.recall)
    search = make_blocking(AsyncMemory.search)
    answer = make_blocking(AsyncMemory.answer)
    preamble = make_blocking(AsyncMemory.preamble)
    preamble_cut = make_blocking(AsyncMemory.preamble_cut)
    entries = make_blocking(AsyncMemory.entries)
    entry = make_blocking(AsyncMemory.entry)
    forget = make_blocking(AsyncMemory.forget)
    erase = make_blocking(AsyncMemory.erase)
    versions = make_blocking(AsyncMemory.versions)
    pin = make_blocking(AsyncMemory.pin)
    confirm = make_blocking(AsyncMemory.confirm)
    undo = make_blocking(AsyncMemory.undo)
    history = make_blocking(AsyncMemory.history)
    diff = make_blocking(AsyncMemory.diff)
    background_runs = make_blocking(AsyncMemory.background_runs)
    drain = make_blocking(AsyncMemory.drain)
    ingest = make_blocking(AsyncMemory.ingest)
    sessions = make_blocking(AsyncMemory.sessions)
    session = make_blocking(AsyncMemory.session)
    doctor = make_blocking(AsyncMemory.doctor)
