"""`SyncRemoteMemory`: the blocking twin of `RemoteMemory`."""

from collections.abc import Iterator
from contextlib import contextmanager

from anyio.from_thread import start_blocking_portal

from ricordo.client.remote_memory import RemoteMemory
from ricordo.runtime.sync import SyncProxy, make_blocking

__all__ = ["SyncRemoteMemory"]


class SyncRemoteMemory(SyncProxy[RemoteMemory]):
    """The memory of a token's user in one project. Use `with SyncRemoteMemory.open(url, token=...) as memory`."""

    @classmethod
    @contextmanager
    def open(
        cls, url: str, *, token: str | None = None, project: str = "default", seconds: float = 30.0, tries: int = 4
    ) -> Iterator["SyncRemoteMemory"]:
        """Open the memory as `RemoteMemory` does."""
        inner = RemoteMemory(url, token=token, project=project, seconds=seconds, tries=tries)
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(inner) as memory:
            yield cls(portal, memory)

    remember = make_blocking(RemoteMemory.remember)
    remember_many = make_blocking(RemoteMemory.remember_many)
    recall = make_blocking(RemoteMemory.recall)
    answer = make_blocking(RemoteMemory.answer)
    preamble = make_blocking(RemoteMemory.preamble)
    entries = make_blocking(RemoteMemory.entries)
    entry = make_blocking(RemoteMemory.entry)
    update = make_blocking(RemoteMemory.update)
    pin = make_blocking(RemoteMemory.pin)
    confirm = make_blocking(RemoteMemory.confirm)
    forget = make_blocking(RemoteMemory.forget)
    erase = make_blocking(RemoteMemory.erase)
    versions = make_blocking(RemoteMemory.versions)
    history = make_blocking(RemoteMemory.history)
    undo = make_blocking(RemoteMemory.undo)
    ingest = make_blocking(RemoteMemory.ingest)
    sessions = make_blocking(RemoteMemory.sessions)
    delete_session = make_blocking(RemoteMemory.delete_session)
    review = make_blocking(RemoteMemory.review)
    decide = make_blocking(RemoteMemory.decide)
