"""`SyncMemory`: the blocking API of `Memory`, which runs an event loop in a separate thread.

A blocking method is generated from the asynchronous method, with the same arguments and docstring.
"""

import functools
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Concatenate, Generic, ParamSpec, Self, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from ricordo.clock import Clock
from ricordo.curation.profile.user_profile import UserProfile as AsyncProfile
from ricordo.errors import InvalidSetting
from ricordo.events import EventSink
from ricordo.models import Embedder
from ricordo.runtime import Settings
from ricordo.runtime.memory import Memory as AsyncMemory
from ricordo.scope import Scope

__all__ = ["SyncMemory", "SyncProfile", "SyncProxy", "make_blocking", "run_and_wait"]


_T = TypeVar("_T")
_Inner_co = TypeVar("_Inner_co", covariant=True)
_P = ParamSpec("_P")
_R = TypeVar("_R")


class SyncProxy(Generic[_Inner_co]):
    """A blocking proxy for an object that lives on the event loop of `portal`."""

    def __new__(cls, *args: object, **options: object) -> Self:
        """Refuse the constructor call of the asynchronous class. Raises: InvalidSetting, which names `open`."""
        if hasattr(cls, "open") and (options or not args or not isinstance(args[0], BlockingPortal)):
            raise InvalidSetting(
                f"{cls.__name__} of ricordo.agent.sync is opened rather than constructed, with the same arguments: "
                f"`with {cls.__name__}.open(...) as ...`."
            )
        return super().__new__(cls)

    def __init__(self, portal: BlockingPortal, inner: _Inner_co) -> None:
        """Wrap `inner`."""
        self._portal = portal
        self._inner = inner


def make_blocking(
    method: Callable[Concatenate[_T, _P], Awaitable[_R]],
) -> Callable[Concatenate[SyncProxy[_T], _P], _R]:
    """Return the blocking method of a proxy that runs `method` on the event loop and waits for its result."""

    @functools.wraps(method)
    def call_and_wait(self: SyncProxy[_T], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return run_and_wait(self._portal, lambda: method(self._inner, *args, **kwargs))

    return call_and_wait


def run_and_wait(portal: BlockingPortal, act: Callable[[], Awaitable[_R]]) -> _R:
    """Run `act` on the event loop of `portal` and return its result; Ctrl-C cancels it and is raised after it ends."""
    finished = threading.Event()

    async def run() -> _R:
        try:
            return await act()
        finally:
            finished.set()

    future = portal.start_task_soon(run)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        finished.wait()
        raise


class SyncProfile(SyncProxy[AsyncProfile]):
    """The profile of one scope, with the methods of `ricordo.curation.profile.user_profile.UserProfile`."""

    show = make_blocking(AsyncProfile.show)
    render = make_blocking(AsyncProfile.render)
    facts = make_blocking(AsyncProfile.facts)
    fact = make_blocking(AsyncProfile.fact)
    add_fact = make_blocking(AsyncProfile.add_fact)
    update_fact = make_blocking(AsyncProfile.update_fact)
    pin = make_blocking(AsyncProfile.pin)
    remove_fact = make_blocking(AsyncProfile.remove_fact)
    set_summary = make_blocking(AsyncProfile.set_summary)
    replace_all = make_blocking(AsyncProfile.replace_all)
    clear = make_blocking(AsyncProfile.clear)
    export_document = make_blocking(AsyncProfile.export_document)
    import_document = make_blocking(AsyncProfile.import_document)


class SyncMemory(SyncProxy[AsyncMemory]):
    """The open memory of one scope, with the methods of `ricordo.Memory`. Use `with SyncMemory.open(...) as memory`.

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
        """Return the user's profile to read or edit, as `ricordo.Memory.profile` does."""
        return SyncProfile(self._portal, self._inner.profile(scope=scope))

    remember = make_blocking(AsyncMemory.remember)
    remember_many = make_blocking(AsyncMemory.remember_many)
    import_entries = make_blocking(AsyncMemory.import_entries)
    update = make_blocking(AsyncMemory.update)
    recall = make_blocking(AsyncMemory.recall)
    search = make_blocking(AsyncMemory.search)
    explain = make_blocking(AsyncMemory.explain)
    answer = make_blocking(AsyncMemory.answer)
    preamble = make_blocking(AsyncMemory.preamble)
    preamble_cut = make_blocking(AsyncMemory.preamble_cut)
    entries = make_blocking(AsyncMemory.entries)
    entry = make_blocking(AsyncMemory.entry)
    forget = make_blocking(AsyncMemory.forget)
    delete_all = make_blocking(AsyncMemory.delete_all)
    erase = make_blocking(AsyncMemory.erase)
    versions = make_blocking(AsyncMemory.versions)
    move = make_blocking(AsyncMemory.move)
    audit = make_blocking(AsyncMemory.audit)
    pin = make_blocking(AsyncMemory.pin)
    confirm = make_blocking(AsyncMemory.confirm)
    mark_used = make_blocking(AsyncMemory.mark_used)
    usage = make_blocking(AsyncMemory.usage)
    review = make_blocking(AsyncMemory.review)
    decide = make_blocking(AsyncMemory.decide)
    undo = make_blocking(AsyncMemory.undo)
    history = make_blocking(AsyncMemory.history)
    diff = make_blocking(AsyncMemory.diff)
    background_runs = make_blocking(AsyncMemory.background_runs)
    drain = make_blocking(AsyncMemory.drain)
    embed = make_blocking(AsyncMemory.embed)
    ingest = make_blocking(AsyncMemory.ingest)
    end_session = make_blocking(AsyncMemory.end_session)
    delete_session = make_blocking(AsyncMemory.delete_session)
    sessions = make_blocking(AsyncMemory.sessions)
    session = make_blocking(AsyncMemory.session)
    doctor = make_blocking(AsyncMemory.doctor)
