"""Listening on an address with a web server: what the protocol over HTTP and the HTTP service share."""

import ipaddress
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import anyio
import uvicorn
from starlette.types import ASGIApp

from ricordo.errors import InvalidInput
from ricordo.lazy import dataclass

__all__ = ["LOCAL_NAMES", "HttpAddress", "bind_address", "check_address", "parse_address", "serve_http"]


LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")
"""The names of this machine in a Host header."""
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


def check_address(text: str, *, with_token: bool, remote: bool, hosts: Sequence[str]) -> HttpAddress:
    """Return the address to listen at. Raises: InvalidInput for one that other machines reach, unless all is given."""
    address = parse_address(text)
    if address.is_local:
        return address
    if not remote:
        raise InvalidInput(
            f"{address} can be reached from other machines: give --remote if that is wanted, or use 127.0.0.1."
        )
    if not with_token:
        raise InvalidInput("An address that other machines can reach needs a token: leave --without-token out.")
    if not hosts:
        raise InvalidInput("Name the hosts in the URLs of the clients with --host, such as --host memory.example.")
    return address


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
