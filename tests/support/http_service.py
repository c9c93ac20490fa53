"""An HTTP service in this process, with a client for each of its users."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import httpx2

from hand_clock import HandClock
from ricordo.server import ServiceLimits, TokenBook, create_app, open_token_book

__all__ = ["Service", "open_service"]


class Service:
    """A service that is running; `tokens` are those of its database."""

    def __init__(self, app: Any, tokens: TokenBook, stack: AsyncExitStack) -> None:
        self.app = app
        self.tokens = tokens
        self._stack = stack

    async def client(
        self,
        user: str = "ann",
        *,
        tenant: str = "acme",
        role: Literal["reader", "writer"] = "writer",
        project: str | None = None,
        expires: datetime | None = None,
    ) -> httpx2.AsyncClient:
        """Return a client with a new token of a user."""
        issued = await self.tokens.issue(tenant=tenant, user=user, role=role, project=project, expires=expires)
        return await self.client_with(issued.text)

    async def client_with(self, token: str | None) -> httpx2.AsyncClient:
        """Return a client with this token, or without one."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        transport = httpx2.ASGITransport(self.app, raise_app_exceptions=False)
        client = httpx2.AsyncClient(transport=transport, base_url="http://localhost:8321", headers=headers)
        return await self._stack.enter_async_context(client)


@asynccontextmanager
async def open_service(
    folder: Path, *, limits: ServiceLimits | None = None, clock: HandClock | None = None, **options: Any
) -> AsyncIterator[Service]:
    """Run a service over `folder`, and close it as a server does."""
    clock = clock or HandClock()
    app = create_app(folder, limits=limits or ServiceLimits(requests=10_000), clock=clock, **options)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(app.close)
        tokens = await stack.enter_async_context(open_token_book(folder, clock))
        yield Service(app, tokens, stack)
