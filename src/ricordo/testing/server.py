"""A server on this machine that speaks the protocols of the providers and plays a script.

Each request is served by one thread. A reply is sent whole, as a stream, held back, cut off, or not at all.

Invariants: every request is recorded, with keys masked, before it is answered. Nothing is buffered: the client has the
sent bytes before the sender continues. Requests that a provider would refuse are refused.
"""

import http.server
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

from ricordo.errors import InvalidMessage
from ricordo.messages import JsonValue
from ricordo.messages.json_text import loads, require_object
from ricordo.testing.anthropic import ANTHROPIC_COUNT, ANTHROPIC_MESSAGES
from ricordo.testing.openai_chat import OPENAI_CHAT, openai_error_body
from ricordo.testing.openai_chat import embeddings_protocol as embeddings_wire
from ricordo.testing.openai_responses import OPENAI_RESPONSES
from ricordo.testing.protocol import EventFrame, ParsedRequest, RequestBody, WireProtocol, encode_json
from ricordo.testing.refusals import pairing_refusal, request_refusal, window_refusal
from ricordo.testing.script import (
    Empty,
    Fail,
    Garbage,
    HalfStream,
    Hang,
    Hold,
    Playback,
    PlayedItem,
    RecordedRequest,
    ReplyItem,
    ScriptLike,
    ScriptUsedUp,
    build_reply,
)

__all__ = ["Connection", "HttpServer", "LoopbackServer", "ReplyGate", "play_item"]


class ReplyGate:
    """Blocks threads. Opening releases the threads that wait now; closing releases all threads, now and later."""

    def __init__(self) -> None:
        """Start with no waiting threads."""
        self._condition = threading.Condition()
        self._open_count = 0
        self._is_closed = False
        self._held_count = 0

    @property
    def held_count(self) -> int:
        """The number of waiting threads."""
        with self._condition:
            return self._held_count

    def take_ticket(self) -> int:
        """Register at the gate and return the ticket for `wait`; `open` releases every registered ticket."""
        with self._condition:
            self._held_count += 1
            self._condition.notify_all()
            return self._open_count

    def wait_for_held(self, count: int, timeout: float) -> bool:
        """Block until `count` threads wait, at most `timeout` seconds; return False on a timeout."""
        with self._condition:
            return self._condition.wait_for(lambda: self._held_count >= count, timeout)

    def wait(self, ticket: int) -> bool:
        """Block until the gate opens; return False if it was closed instead."""
        with self._condition:
            self._condition.wait_for(lambda: self._is_closed or self._open_count > ticket)
            self._held_count -= 1
            return not self._is_closed

    def open(self) -> None:
        """Release all threads that wait now."""
        with self._condition:
            self._open_count += 1
            self._condition.notify_all()

    def close(self) -> None:
        """Release all threads, now and later; their `wait` returns False."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()


class Connection(http.server.BaseHTTPRequestHandler):
    """One request and the bytes sent in response."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: "HttpServer"

    def do_POST(self) -> None:
        """Pass the request to the handler of the server."""
        self.close_connection = True
        self.content = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.handle(self)

    def log_message(self, *args: Any, **fields: Any) -> None:
        """Log nothing: requests are recorded and errors are reported elsewhere."""

    def send(self, content: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Send a complete response."""
        self._send_head(
            status, {"content-type": "application/json", "content-length": str(len(content)), **(headers or {})}
        )
        self.wfile.write(content)

    def send_half(self, content: bytes) -> None:
        """Send the length of the whole `content`, but only its first half."""
        self._send_head(200, {"content-type": "application/json", "content-length": str(len(content))})
        self.wfile.write(content[: len(content) // 2])

    def start_stream(self) -> None:
        """Start a response of server-sent events."""
        self._send_head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})

    def send_events(self, events: Iterable[bytes]) -> None:
        """Send each of `events` separately."""
        for content in events:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(content), content))

    def end_stream(self) -> None:
        """End the stream properly; without this call the stream breaks off."""
        self.wfile.write(b"0\r\n\r\n")

    def _send_head(self, status: int, headers: Mapping[str, str]) -> None:
        is_standard = status in {item.value for item in HTTPStatus}
        self.send_response(status, None if is_standard else "Error")
        for name, value in {**headers, "connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()


class HttpServer(http.server.ThreadingHTTPServer):
    """Listens on a free port of this machine, with one thread for each request."""

    daemon_threads = True

    def __init__(self, handle: Callable[[Connection], None], failed: Callable[[], None]) -> None:
        """Pass each request to `handle`; call `failed` within the exception handler if it raises."""
        self.handle = handle
        self._on_failure = failed
        super().__init__(("127.0.0.1", 0), Connection)

    def server_bind(self) -> None:
        """Bind without a DNS lookup of the name of this machine."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "127.0.0.1", int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error instead of printing it."""
        self._on_failure()


def play_item(
    item: PlayedItem, request: RecordedRequest, *, wire: WireProtocol, connection: Connection, gate: ReplyGate
) -> None:
    """Answer `request` over `connection` with `item`; replies that are held back wait at `gate`."""
    match item:
        case Fail():
            _send_failure(item, request, wire, connection)
        case Garbage():
            _send_garbage(item, request, connection)
        case Hang():
            gate.wait(gate.take_ticket())
        case Hold(reply=reply):
            _send_held(reply, request, wire, connection, gate)
        case HalfStream():
            _send_half(item, request, wire, connection)
        case _:
            _send_reply(item, request, wire, connection)


def _send_reply(reply: ReplyItem, request: RecordedRequest, wire: WireProtocol, connection: Connection) -> None:
    if not request.streamed:
        connection.send(_encode_reply(reply, request, wire))
        return
    connection.start_stream()
    _send_frames(_reply_frames(reply, request, wire), connection)
    connection.end_stream()


def _send_failure(fail: Fail, request: RecordedRequest, wire: WireProtocol, connection: Connection) -> None:
    if not (fail.in_stream and request.streamed):
        connection.send(encode_json(wire.error(fail)), status=fail.status, headers=fail.headers)
        return
    connection.start_stream()
    _send_frames([wire.error_frame(fail)], connection)
    connection.end_stream()


def _send_garbage(garbage: Garbage, request: RecordedRequest, connection: Connection) -> None:
    if not request.streamed:
        connection.send(garbage.content)
        return
    connection.start_stream()
    connection.send_events([b"event: message_start\ndata: %b\n\n" % garbage.content])
    connection.end_stream()


def _send_held(
    reply: ReplyItem, request: RecordedRequest, wire: WireProtocol, connection: Connection, gate: ReplyGate
) -> None:
    # Take the ticket before the first piece is sent: a client that has received it can already release the reply.
    ticket = gate.take_ticket()
    if not request.streamed:
        if gate.wait(ticket):
            connection.send(_encode_reply(reply, request, wire))
        return
    frames = _reply_frames(reply, request, wire)
    held_from = _end_of_content(frames, 1)
    connection.start_stream()
    _send_frames(frames[:held_from], connection)
    if gate.wait(ticket):
        _send_frames(frames[held_from:], connection)
        connection.end_stream()


def _send_half(half: HalfStream, request: RecordedRequest, wire: WireProtocol, connection: Connection) -> None:
    if not request.streamed:
        connection.send_half(_encode_reply(half.reply, request, wire))
        return
    frames = _reply_frames(half.reply, request, wire)
    connection.start_stream()
    _send_frames(frames[: _end_of_content(frames, half.after)], connection)
    if half.clean:
        connection.end_stream()


def _end_of_content(frames: list[EventFrame], pieces: int) -> int:
    """Return the index after the first `pieces` pieces of content, or after all; with 0, the end of the opening."""
    content_indexes = [index for index, frame in enumerate(frames) if frame.is_content]
    if pieces < len(content_indexes):
        return content_indexes[pieces - 1] + 1 if pieces else content_indexes[0]
    return content_indexes[-1] + 1 if content_indexes else 1


def _encode_reply(reply: ReplyItem, request: RecordedRequest, wire: WireProtocol) -> bytes:
    return encode_json(wire.whole(build_reply(request, reply), request.body))


def _reply_frames(reply: ReplyItem, request: RecordedRequest, wire: WireProtocol) -> list[EventFrame]:
    return wire.frames(build_reply(request, reply), request.body)


def _send_frames(frames: list[EventFrame], connection: Connection) -> None:
    connection.send_events(frame.text.encode("ascii") for frame in frames)


_POLL_SECONDS = 0.02
_SECRET_HEADERS = {"api-key", "authorization", "cookie", "proxy-authorization", "x-api-key", "x-goog-api-key"}
_CHAT_PATHS = {"/chat/completions": OPENAI_CHAT, "/messages": ANTHROPIC_MESSAGES, "/responses": OPENAI_RESPONSES}
_EMBEDDINGS = "/embeddings"
_COUNT_TOKENS = "/messages/count_tokens"


class LoopbackServer:
    """Plays `script` to its clients; a context manager for tests with and without an event loop.

    Chat completions, responses and messages take the next item of the script, in the order of arrival. Token counts and
    embeddings take no item and are always answered, embeddings after the failures in `embeddings`. `dimension` is the
    length of the vectors.

    With `strict` the server refuses what a provider of the protocol would refuse: blank texts, invalid names and ids of
    tools, a conversation that does not begin with a user, more than 2,048 messages at OpenAI, texts that can't be
    encoded, and so on. With a `window` in tokens it refuses, as an overflow, a prompt that does not fit together with
    the requested reply. `refusals` lists the messages of both, in order. A refused request takes no item of the script.
    """

    def __init__(
        self,
        script: ScriptLike = (),
        *,
        embeddings: Sequence[Fail | Garbage | Hang] = (),
        dimension: int = 64,
        strict: bool = False,
        window: int | None = None,
    ) -> None:
        """Store the script and the options; `start` begins to listen."""
        self._playback = Playback(script)
        self._embedding_failures = list(embeddings)
        self._wires = {**_CHAT_PATHS, _COUNT_TOKENS: ANTHROPIC_COUNT, _EMBEDDINGS: embeddings_wire(dimension)}
        self._strict = strict
        self._window = window
        self._refusals: list[str] = []
        self._gate = ReplyGate()
        self._lock = threading.Lock()
        self._requests: list[RecordedRequest] = []
        self._problems: list[str] = []
        self._http = HttpServer(self._handle, self._note_failure)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(_POLL_SECONDS,), daemon=True)

    @property
    def url(self) -> str:
        """The address of the server without `/v1`, which clients may add or leave out."""
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def requests(self) -> tuple[RecordedRequest, ...]:
        """All requests so far, in the order of arrival."""
        with self._lock:
            return tuple(self._requests)

    @property
    def problems(self) -> tuple[str, ...]:
        """Errors of the test itself; empty when there are none.

        Examples are a script that was used up, a request that no provider accepts, or an error of a function in the
        script.
        """
        with self._lock:
            return tuple(self._problems)

    @property
    def refusals(self) -> tuple[str, ...]:
        """The messages of the requests that `strict` or `window` refused, in the order of arrival."""
        with self._lock:
            return tuple(self._refusals)

    @property
    def held_count(self) -> int:
        """The number of replies that are held back or hang now."""
        return self._gate.held_count

    def release(self) -> None:
        """Release every reply that is held back or hangs now; later replies wait for the next release."""
        self._gate.open()

    def wait_for_held(self, count: int = 1, *, timeout: float = 10.0) -> None:
        """Block until `count` replies are held back or hang; call it in a thread if an event loop runs.

        Raises: TimeoutError after `timeout` seconds.
        """
        if not self._gate.wait_for_held(count, timeout):
            raise TimeoutError(f"After {timeout:g} seconds {self.held_count} replies are waiting, not {count}.")

    def start(self) -> None:
        """Begin to listen; `with` calls it."""
        self._thread.start()

    def stop(self) -> None:
        """Stop listening and end the replies that are held back; a second call does nothing."""
        self._gate.close()
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join()
        self._http.server_close()

    def __enter__(self) -> Self:
        """Start the server."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the server."""
        self.stop()

    def _handle(self, connection: Connection) -> None:
        path = connection.path.partition("?")[0].removeprefix("/v1")
        wire = self._wires.get(path)
        if wire is None:
            self._record_request(connection, ParsedRequest(), {})
            self._note_problem(f"Nothing answers at {connection.path}.")
            unknown = Fail(404, f"Nothing answers at {connection.path}.")
            connection.send(encode_json(openai_error_body(unknown)), status=unknown.status)
            return
        request, torn = self._read_request(connection, wire)
        refused = self._refuse(path, request)
        item = refused or (Fail(400, torn) if torn else self._next_item(path, request))
        if torn and not refused:
            self._note_problem(f"Request {request.number}: {torn}")
        play_item(item, request, wire=wire, connection=connection, gate=self._gate)

    def _read_request(self, connection: Connection, wire: WireProtocol) -> tuple[RecordedRequest, str]:
        """Record the request and return it with the objection of a provider, empty if there is none."""
        body: dict[str, JsonValue] = {}
        try:
            body = require_object(loads(connection.content), "request")
            parsed = wire.read(body)
        except InvalidMessage as error:
            return self._record_request(connection, ParsedRequest(), body), str(error)
        return self._record_request(connection, parsed, body), "" if parsed.continues else pairing_refusal(
            parsed.messages
        )

    def _refuse(self, path: str, request: RecordedRequest) -> Fail | None:
        """Return the error of a strict provider, or of one with too small a window; None if it accepts the request."""
        body: RequestBody = request.body
        refusal = request_refusal(path, body) if self._strict else None
        if refusal is None and self._window is not None and path in _CHAT_PATHS:
            parsed = ParsedRequest(messages=request.messages, tools=request.tools)
            refusal = window_refusal(path, body, parsed, self._window)
        if refusal is not None:
            with self._lock:
                self._refusals.append(refusal.message)
        return refusal

    def _record_request(
        self, connection: Connection, parsed: ParsedRequest, body: dict[str, JsonValue]
    ) -> RecordedRequest:
        headers = {name.lower(): value for name, value in connection.headers.items()}
        with self._lock:
            request = RecordedRequest(
                number=len(self._requests) + 1,
                messages=parsed.messages,
                tools=parsed.tools,
                schema=parsed.schema,
                streamed=body.get("stream") is True,
                path=connection.path,
                headers={name: "***" if name in _SECRET_HEADERS else value for name, value in headers.items()},
                body=body,
            )
            self._requests.append(request)
        return request

    def _next_item(self, path: str, request: RecordedRequest) -> PlayedItem:
        if path == _COUNT_TOKENS:
            return Empty()
        if path == _EMBEDDINGS:
            with self._lock:
                return self._embedding_failures.pop(0) if self._embedding_failures else Empty()
        try:
            return self._playback.next_item(request)
        except ScriptUsedUp as error:
            self._note_problem(str(error))
            return Fail(500, str(error))

    def _note_failure(self) -> None:
        error = sys.exception()
        # many tests are about clients that disconnect
        if not isinstance(error, ConnectionError):
            self._note_problem(repr(error))

    def _note_problem(self, problem: str) -> None:
        with self._lock:
            self._problems.append(problem)
