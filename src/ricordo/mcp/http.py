"""The protocol over HTTP: one address, a bearer token, checked Host and Origin headers, and a cap on bodies.

Invariant: without a token nothing is served but on this machine, and only if the caller said so.
"""

import hmac
from collections.abc import Sequence

from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ricordo.mcp.listening import LOCAL_NAMES
from ricordo.mcp.server import MemoryServer

__all__ = ["PATH", "create_app"]


PATH = "/mcp"
"""The path at which the protocol is served."""
_MAX_BODY_BYTES = 4 * 1024 * 1024


def create_app(server: MemoryServer, *, token: str | None, hosts: Sequence[str] = ()) -> ASGIApp:
    """Return the application. Requests need the bearer `token` if there is one, and one of the `hosts` or this machine.

    A page of another origin than these hosts is refused.
    """
    names = [*LOCAL_NAMES, *hosts]
    security = TransportSecuritySettings(
        allowed_hosts=[each for name in names for each in (name, f"{name}:*")],
        allowed_origins=[
            each
            for name in names
            for scheme in ("http", "https")
            for each in (f"{scheme}://{name}", f"{scheme}://{name}:*")
        ],
    )
    app = server.streamable_http_app(
        streamable_http_path=PATH, max_request_body_size=_MAX_BODY_BYTES, transport_security=security
    )
    return app if token is None else _BearerGate(app, token)


class _BearerGate:
    """Lets only requests with the token through."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 401."""
        given = dict(scope.get("headers", [])).get(b"authorization", b"")
        if scope["type"] != "http" or hmac.compare_digest(given, self._expected):
            await self._app(scope, receive, send)
            return
        response = JSONResponse(
            {"error": "The request needs the header Authorization: Bearer with the token of this server."},
            status_code=401,
            headers={"WWW-Authenticate": "Bearer"},
        )
        await response(scope, receive, send)
