"""Reports of resources that changed, by a tool of this server or by any other process, to the clients that asked.

Clients of 2026-07-28 listen on a stream of their own; clients of the handshake subscribe, and are notified on their
connection.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourcesListChanged, ResourceUpdated

from ricordo.errors import RicordoError
from ricordo.mcp.root import ServedRoot

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ResourceWatch"]


_SECONDS = 2.0
_SESSION_HEADER = "mcp-session-id"
_GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError)


class _Subscriber:
    """A connection of the handshake, with the resources that it subscribed to."""

    def __init__(self, session: ServerSession) -> None:
        self.session = session
        self.uris: set[str] = set()


class ResourceWatch:
    """Compares the versions of the resources, and tells who asked what changed."""

    def __init__(self, root: ServedRoot) -> None:
        """Watch the resources of `root` once it is open."""
        self.bus = InMemorySubscriptionBus()
        self._root = root
        self._subscribers: dict[str, _Subscriber] = {}
        self._versions: Mapping[str, str] | None = None
        self._lock = anyio.Lock()

    def add_session(self, context: ServerRequestContext[Any, Any]) -> None:
        """Tell this connection when the list of resources changes."""
        self._subscriber(context)

    async def begin(self) -> None:
        """Note the versions of now, with which later ones are compared."""
        # without a root there is nothing yet, and a root that can't be opened raises at a call
        with suppress(RicordoError):
            await self._root.get()
        await self.check()

    async def add_subscription(self, context: ServerRequestContext[Any, Any], uri: str) -> None:
        """Tell this connection when the resource `uri` changes."""
        await self.begin()
        self._subscriber(context).uris.add(uri)

    def remove_subscription(self, context: ServerRequestContext[Any, Any], uri: str) -> None:
        """Tell this connection no longer about the resource `uri`."""
        self._subscriber(context).uris.discard(uri)

    def _subscriber(self, context: ServerRequestContext[Any, Any]) -> _Subscriber:
        headers = getattr(context.request, "headers", {})
        return self._subscribers.setdefault(headers.get(_SESSION_HEADER, ""), _Subscriber(context.session))

    async def run(self) -> None:
        """Compare the versions every two seconds, until it is cancelled."""
        while True:
            await self.check()
            await anyio.sleep(_SECONDS)

    async def check(self) -> None:
        """Compare the versions now, and tell what changed since the last time."""
        from ricordo.mcp.resources import find_changes, read_versions

        async with self._lock:
            served = self._root.served
            if served is None:
                self._versions = self._versions or {}
                return
            # a root that can't be read now is compared again later
            with suppress(RicordoError):
                before, self._versions = self._versions, await read_versions(served)
                if before is not None:
                    uris, is_list_changed = find_changes(before, self._versions)
                    await self._report(uris, is_list_changed=is_list_changed)

    async def _report(self, uris: list[str], *, is_list_changed: bool) -> None:
        for uri in uris:
            await self.bus.publish(ResourceUpdated(uri=uri))
        if is_list_changed:
            await self.bus.publish(ResourcesListChanged())
        for name, subscriber in [*self._subscribers.items()]:
            try:
                for uri in subscriber.uris.intersection(uris):
                    await subscriber.session.send_resource_updated(uri)
                if is_list_changed:
                    await subscriber.session.send_resource_list_changed()
            except _GONE:
                del self._subscribers[name]
