"""A server that notes who asks it with which key, and refuses everybody: for tests of where a request goes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

__all__ = ["Recording", "recording"]


@dataclass(kw_only=True)
class Recording:
    """The address of a server, and for each request so far the model that it names and the key that was sent."""

    url: str
    seen: list[tuple[str, str]] = field(default_factory=list)

    @property
    def keys(self) -> set[str]:
        """The keys that were sent."""
        return {key for _, key in self.seen}

    @property
    def models(self) -> set[str]:
        """The models that were asked for."""
        return {model for model, _ in self.seen}


@contextmanager
def recording() -> Iterator[Recording]:
    """Run the server on this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            key = self.headers.get("Authorization", "").removeprefix("Bearer ") or self.headers.get("x-api-key", "")
            asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            found.seen.append((asked["model"], key))
            body = b'{"error": {"message": "no", "type": "invalid_request_error"}}'
            self.send_response(401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Recording(url=f"http://127.0.0.1:{server.server_port}/v1")
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
