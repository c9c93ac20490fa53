"""The protocol over HTTP: one address, a bearer token, checked Host and Origin headers, and a cap on bodies.

Invariant: without a token nothing is served but on this machine, and only if the caller said so.
"""

import hmac
import ipaddress
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ricordo.errors import InvalidInput
from ricordo.lazy import dataclass
from ricordo.mcp.server import MemoryServer

__all__ = ["PATH", "HttpAddress", "bind_address", "create_app", "parse_address", "serve_http"]


PATH = "/mcp"
"""The path at which the protocol is served."""
_MAX_BODY_BYTES = 4 * 1024 * 1024
_LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")
_CLOSING_SECONDS = 1


@dataclass(frozen=True, kw_only=True)
class HttpAddress:
    """Where to listen: a host without brackets, and a port, 0 for any that is free."""

    host: str
    port: int

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        """Return the address as it stands in a URL."""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def parse_address(text: str) -> HttpAddress:
    """Return the address of `HOST:PORT`, or of a port alone on this machine. Raises: InvalidInput."""
    host, colon, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if colon else "127.0.0.1"
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise InvalidInput(f"{text!r} is no address: write a host and a port, such as 127.0.0.1:8787.")
    return HttpAddress(host=host, port=int(port))


def bind_address(address: HttpAddress) -> tuple[socket.socket, HttpAddress]:
    """Return a socket that listens at the address, and the address with its port. Raises: InvalidInput."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
    except OSError as error:
        listener.close()
        raise InvalidInput(f"{address} can't be used: {error.strerror or error}. Choose another port.") from error
    return listener, HttpAddress(host=address.host, port=listener.getsockname()[1])


def create_app(server: MemoryServer, *, token: str | None, hosts: Sequence[str] = ()) -> ASGIApp:
    """Return the application. Requests need the bearer `token` if there is one, and one of the `hosts` or this machine.

    A page of another origin than these hosts is refused.
    """
    names = [*_LOCAL_NAMES, *hosts]
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


class _Server(uvicorn.Server):
    """A web server whose signals the caller handles."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


async def serve_http(app: ASGIApp, listener: socket.socket, stopping: anyio.Event) -> None:
    """Serve `app` on a bound socket until `stopping` is set; open requests have a second to end."""
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=_CLOSING_SECONDS
    )
    web = _Server(config)

    async def stop() -> None:
        await stopping.wait()
        web.should_exit = True

    async with anyio.create_task_group() as group:
        group.start_soon(stop)
        await web.serve(sockets=[listener])
        stopping.set()
        group.cancel_scope.cancel()
