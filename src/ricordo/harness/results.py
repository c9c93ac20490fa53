"""What a tool returned, as the parts of a result. Pure, and total: whatever comes back can be told to a model.

Invariant: a result has at least one part, its texts can be sent as UTF-8, and an error's text holds no traceback.
"""

import base64
import re
from typing import cast

from ricordo.errors import InvalidMessage, RicordoError
from ricordo.messages import JsonValue, Media, Text, ToolCall, ToolResult, Unknown
from ricordo.messages.jsontext import dumps
from ricordo.tools import ToolOutput

__all__ = ["tool_result", "error_result", "exception_result", "replace_surrogates"]

_SURROGATES = re.compile("[\ud800-\udfff]+")
_TRACEBACK = "Traceback (most recent call last)"
_MAX_ERROR_CHARS = 2_000
_WORD_BORDER = re.compile(r"[\s\"',<>{}()\[\]]")
"""What stands between words, also in JSON without blanks, and in no key or token."""

_MEDIA_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_UNKNOWN_MEDIA_TYPE = "application/octet-stream"
_EMPTY_RESULT = "The tool did its work and returned nothing."


def tool_result(call: ToolCall, output: ToolOutput) -> ToolResult:
    """Return the result of `call` for what its tool returned; a value that can't be told is an error result."""
    try:
        return ToolResult(call_id=call.id, name=call.name, parts=_to_parts(output))
    except InvalidMessage:
        kind = type(output).__name__
        return error_result(
            call,
            f"{call.name} has run, but what it returned can't be told: its value of type {kind} is no JSON. "
            "Calling it again returns the same.",
        )


def error_result(call: ToolCall, text: str) -> ToolResult:
    """Return the error result of `call` that says `text`."""
    return ToolResult(call_id=call.id, name=call.name, parts=(Text(text=replace_surrogates(text)),), is_error=True)


def exception_result(call: ToolCall, error: BaseException) -> ToolResult:
    """Return the error result for what the tool of `call` raised: our own errors in their words, others by type."""
    said = _error_text(error)
    if isinstance(error, RicordoError):
        return error_result(call, said)
    named = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return error_result(call, f"{call.name} failed with {named}\nChange the arguments, or go on without it.")


def replace_surrogates(text: str) -> str:
    """Return `text` with each half of a surrogate pair that stands alone replaced; a whole pair is its character."""
    if text.isascii() or not _SURROGATES.search(text):
        return text
    return _SURROGATES.sub(lambda run: run[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"), text)


def _to_parts(output: object) -> tuple[Text | Media | Unknown, ...]:
    match output:
        case None | "":
            return (Text(text=_EMPTY_RESULT),)
        case str():
            return (Text(text=replace_surrogates(output)),)
        case bytes() | bytearray() | memoryview():
            return _bytes_to_parts(bytes(output))
        case list() | tuple() if output and all(isinstance(part, Text | Media | Unknown) for part in output):
            return tuple(
                Text(text=replace_surrogates(part.text)) if isinstance(part, Text) else part for part in output
            )
        case _:
            return (Text(text=dumps(cast("JsonValue", output))),)


def _bytes_to_parts(data: bytes) -> tuple[Text | Media, ...]:
    try:
        return (Text(text=data.decode("utf-8") or _EMPTY_RESULT),)
    except UnicodeDecodeError:
        kind = next((kind for magic, kind in _MEDIA_SIGNATURES if data.startswith(magic)), _UNKNOWN_MEDIA_TYPE)
        told = f"The tool returned {len(data):,} bytes of {kind}, which is no text."
        uri = f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"
        return (Text(text=told), Media(media_type=kind, uri=uri))


def _error_text(error: BaseException) -> str:
    """Return the message of an error without a traceback that it may quote, cut after a word where it is long."""
    try:
        text = str(error).strip()
    except Exception as broken:  # noqa: BLE001  (a tool's own error class may fail to say what happened)
        return f"an error whose message can't be read ({type(broken).__name__})"
    if _TRACEBACK in text:
        before, _, trace = text.partition(_TRACEBACK)
        text = f"{before.strip()} {trace.strip().splitlines()[-1].strip()}".strip()
    return text if len(text) <= _MAX_ERROR_CHARS else f"{_cut_at_word(text)} [cut]".lstrip()


def _cut_at_word(text: str) -> str:
    """Return the words that fit: half of a secret would not be known as one where the result is recorded."""
    borders = [found.start() for found in _WORD_BORDER.finditer(text, 0, _MAX_ERROR_CHARS + 1)]
    return text[: borders[-1] if borders else 0].rstrip()
