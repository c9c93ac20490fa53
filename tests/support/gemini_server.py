"""A server on this machine that speaks the protocol of the Gemini API, for the real Gemini CLI; it plays a function."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from ricordo.messages import JsonValue, Message, Part, Text, ToolCall, ToolResult, ToolSpec
from ricordo.testing import Call, RecordedRequest, Say, ScriptItem

__all__ = ["GeminiServer"]

_PATH = re.compile(r"/v1(?:beta)?/models/(?P<model>[^:]+):(?P<method>\w+)")


class GeminiServer:
    """Answers each request with what `answer` returns for it, whole or as a stream; a context manager.

    `requests` are in the order of arrival, `problems` are what the test did wrong.
    """

    def __init__(self, answer: Callable[[RecordedRequest], ScriptItem]) -> None:
        self.answer = answer
        self.requests: tuple[RecordedRequest, ...] = ()
        self.problems: tuple[str, ...] = ()
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server.reply(self)

            def log_message(self, *args: Any) -> None:
                del args

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """The address, without a path."""
        return f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def reply(self, connection: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        body: dict[str, Any] = json.loads(connection.rfile.read(int(connection.headers["content-length"])))
        found = _PATH.match(connection.path)
        if found is None:
            self.problems = (*self.problems, f"Nothing answers at {connection.path}.")
            _send(connection, 404, "application/json", b"{}")
            return
        if found["method"] == "countTokens":
            _send(connection, 200, "application/json", json.dumps({"totalTokens": 100}).encode())
            return
        is_streamed = found["method"] == "streamGenerateContent"
        with self._lock:
            request = RecordedRequest(
                number=len(self.requests) + 1,
                messages=tuple(_read_contents(body)),
                tools=tuple(_read_tools(body)),
                schema=body.get("generationConfig", {}).get("responseJsonSchema"),
                streamed=is_streamed,
                path=connection.path,
                body=body,
            )
            self.requests = (*self.requests, request)
        reply = json.dumps(_write_reply(self.answer(request), found["model"])).encode()
        if is_streamed:
            _send(connection, 200, "text/event-stream", b"data: %b\r\n\r\n" % reply)
        else:
            _send(connection, 200, "application/json", reply)


def _send(connection: BaseHTTPRequestHandler, status: int, kind: str, content: bytes) -> None:
    connection.send_response(status)
    connection.send_header("content-type", kind)
    connection.send_header("content-length", str(len(content)))
    connection.end_headers()
    connection.wfile.write(content)


def _read_contents(body: dict[str, Any]) -> Iterator[Message]:
    system = body.get("systemInstruction")
    for content in [{**system, "role": "system"}] if system else []:
        yield Message(role="system", parts=tuple(_read_parts(content)))
    for content in body.get("contents", []):
        parts = tuple(_read_parts(content))
        is_result = any(isinstance(part, ToolResult) for part in parts)
        yield Message(role="tool" if is_result else "assistant" if content["role"] == "model" else "user", parts=parts)


def _read_parts(content: dict[str, Any]) -> Iterator[Part]:
    for part in content.get("parts", []):
        if call := part.get("functionCall"):
            yield ToolCall(id=call.get("id", ""), name=call["name"], arguments=json.dumps(call.get("args", {})))
        elif result := part.get("functionResponse"):
            response = result.get("response", {})
            text = response.get("output") or json.dumps(response)
            yield ToolResult(call_id=result.get("id", ""), name=result["name"], parts=(Text(text=text),))
        elif "text" in part:
            yield Text(text=part["text"])


def _read_tools(body: dict[str, Any]) -> Iterator[ToolSpec]:
    for group in body.get("tools", []):
        for tool in group.get("functionDeclarations", []):
            yield ToolSpec(name=tool["name"], description=tool.get("description", ""), parameters={})


def _write_reply(item: ScriptItem, model: str) -> JsonValue:
    match item:
        case Say(text=text):
            part: dict[str, JsonValue] = {"text": text}
        case Call(name=name, arguments=arguments):
            part = {"functionCall": {"name": name, "args": arguments if isinstance(arguments, str) else {**arguments}}}
        case _:
            raise TypeError(f"This server can't play {type(item).__name__}.")
    return {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110},
        "modelVersion": model,
    }
