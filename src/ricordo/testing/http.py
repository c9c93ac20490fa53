"""The server's side of HTTP: one request for each connection, and streams whose events leave one by one.

Invariant: nothing waits in a buffer. What was sent is with the client before the next line of the sender runs.
"""

import http.server
import socket
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

__all__ = ["Connection", "HttpServer"]


class Connection(http.server.BaseHTTPRequestHandler):
    """One request and what is sent for it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: "HttpServer"

    def do_POST(self) -> None:
        """Hand the request over."""
        self.close_connection = True
        self.content = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.handle(self)

    def log_message(self, *args: Any, **fields: Any) -> None:
        """Say nothing: what came is recorded, and what went wrong is reported."""

    def send(self, content: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Send a whole answer."""
        self._send_head(
            status, {"content-type": "application/json", "content-length": str(len(content)), **(headers or {})}
        )
        self.wfile.write(content)

    def send_half(self, content: bytes) -> None:
        """Announce the whole of `content`, and send its first half."""
        self._send_head(200, {"content-type": "application/json", "content-length": str(len(content))})
        self.wfile.write(content[: len(content) // 2])

    def start_stream(self) -> None:
        """Begin an answer of server-sent events."""
        self._send_head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})

    def send_events(self, events: Iterable[bytes]) -> None:
        """Send each of `events` by itself."""
        for content in events:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(content), content))

    def end_stream(self) -> None:
        """Say that the answer is whole; a stream without it breaks off."""
        self.wfile.write(b"0\r\n\r\n")

    def _send_head(self, status: int, headers: Mapping[str, str]) -> None:
        known = status in {item.value for item in HTTPStatus}
        self.send_response(status, None if known else "Error")
        for name, value in {**headers, "connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()


class HttpServer(http.server.ThreadingHTTPServer):
    """Listens on a free port of this machine, one thread for each request."""

    daemon_threads = True

    def __init__(self, handle: Callable[[Connection], None], failed: Callable[[], None]) -> None:
        """Hand each request to `handle`; `failed` is called while its exception is being handled."""
        self.handle = handle
        self._on_failure = failed
        super().__init__(("127.0.0.1", 0), Connection)

    def server_bind(self) -> None:
        """Bind without asking anybody for the name of this machine."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "127.0.0.1", int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report what went wrong instead of printing it."""
        self._on_failure()
