"""A server on this machine that speaks the providers' protocols and plays a script: agents are tested as they are.

Invariant: every request is recorded before it is answered, with keys masked. What a provider would refuse is refused:
a request that is not understood, a tool result without its call, a call without its result.
"""

import sys
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from ricordo.errors import InvalidMessage
from ricordo.messages import JsonValue
from ricordo.messages.jsontext import loads, require_object
from ricordo.testing.anthropic import ANTHROPIC_COUNT, ANTHROPIC_MESSAGES
from ricordo.testing.embeddings import embeddings_protocol as embeddings_wire
from ricordo.testing.gate import ReplyGate
from ricordo.testing.http import Connection, HttpServer
from ricordo.testing.openai_chat import OPENAI_CHAT, openai_error_body
from ricordo.testing.openai_responses import OPENAI_RESPONSES
from ricordo.testing.play import play_item
from ricordo.testing.refusal import pairing_refusal
from ricordo.testing.script import (
    Empty,
    Fail,
    Garbage,
    Hang,
    Playback,
    PlayedItem,
    RecordedRequest,
    ScriptLike,
    ScriptUsedUp,
)
from ricordo.testing.strict import request_refusal, window_refusal
from ricordo.testing.wire import ParsedRequest, RequestBody, WireProtocol, encode_json

__all__ = ["LoopbackServer"]

_POLL_SECONDS = 0.02
_SECRET_HEADERS = {"api-key", "authorization", "cookie", "proxy-authorization", "x-api-key", "x-goog-api-key"}
_CHAT_PATHS = {"/chat/completions": OPENAI_CHAT, "/messages": ANTHROPIC_MESSAGES, "/responses": OPENAI_RESPONSES}
_EMBEDDINGS = "/embeddings"
_COUNT_TOKENS = "/messages/count_tokens"


class LoopbackServer:
    """Plays `script` to whoever asks; a context manager, for tests that await and tests that don't.

    Chat completions, responses and messages take the next item of the script, in the order in which they arrive.
    Counts of tokens and embeddings don't: they are always answered, embeddings after the failures that `embeddings_protocol`
    lists. `dimension` is the length of their vectors.

    With `strict` the server refuses whatever a provider of the protocol would: blank texts, names and ids of tools in
    another form, a beginning without a user, more than 2,048 messages at OpenAI, texts that can't be encoded, and so
    on. With a `window` in tokens it refuses a prompt that does not fit in with the reply that is asked for, as an
    overflow. `refusals` are the sentences of both, in order; neither takes an item of the script.
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
        """Take what to play; nothing listens before `start`."""
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
        """Where the server listens, without `/v1`, which clients may add or leave out."""
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def requests(self) -> tuple[RecordedRequest, ...]:
        """Every request so far, in the order of arrival."""
        with self._lock:
            return tuple(self._requests)

    @property
    def problems(self) -> tuple[str, ...]:
        """What went wrong in the test itself: a script that was used up, a request that no provider takes, an error
        of a function that answers; empty when all is well.
        """
        with self._lock:
            return tuple(self._problems)

    @property
    def refusals(self) -> tuple[str, ...]:
        """What was said of each request that `strict` or the `window` refused, in the order of arrival."""
        with self._lock:
            return tuple(self._refusals)

    @property
    def held_count(self) -> int:
        """How many replies are held back or hang at this moment."""
        return self._gate.held_count

    def release(self) -> None:
        """Let go every reply that is held back or hangs now; later ones wait for the next release."""
        self._gate.open()

    def wait_for_held(self, count: int = 1, *, timeout: float = 10.0) -> None:
        """Block until `count` replies are held back or hang; where an event loop runs, call it in a thread.

        Raises:
            TimeoutError: it took longer than `timeout` seconds.
        """
        if not self._gate.wait_for_held(count, timeout):
            raise TimeoutError(f"After {timeout:g} seconds {self.held_count} replies are waiting, not {count}.")

    def start(self) -> None:
        """Listen; `with` does it."""
        self._thread.start()

    def stop(self) -> None:
        """Stop listening, and end what is held back; a second time does nothing."""
        self._gate.close()
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join()
        self._http.server_close()

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop."""
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
        """Record the request, and say what a provider would object to; an empty text when it would not."""
        body: dict[str, JsonValue] = {}
        try:
            body = require_object(loads(connection.content), "request")
            asked = wire.read(body)
        except InvalidMessage as error:
            return self._record_request(connection, ParsedRequest(), body), str(error)
        return self._record_request(connection, asked, body), "" if asked.continues else pairing_refusal(asked.messages)

    def _refuse(self, path: str, request: RecordedRequest) -> Fail | None:
        """Return the error of a strict provider, or of one with too small a window; None when it takes the request."""
        body: RequestBody = request.body
        found = request_refusal(path, body) if self._strict else None
        if found is None and self._window is not None and path in _CHAT_PATHS:
            asked = ParsedRequest(messages=request.messages, tools=request.tools)
            found = window_refusal(path, body, asked, self._window)
        if found is not None:
            with self._lock:
                self._refusals.append(found.message)
        return found

    def _record_request(
        self, connection: Connection, asked: ParsedRequest, body: dict[str, JsonValue]
    ) -> RecordedRequest:
        headers = {name.lower(): value for name, value in connection.headers.items()}
        with self._lock:
            request = RecordedRequest(
                number=len(self._requests) + 1,
                messages=asked.messages,
                tools=asked.tools,
                schema=asked.schema,
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
        # A client that gave up is what many tests are about.
        if not isinstance(error, ConnectionError):
            self._note_problem(repr(error))

    def _note_problem(self, problem: str) -> None:
        with self._lock:
            self._problems.append(problem)
