"""Evict: writes a tool result that is too large to a file and replaces it with a preview and the file's path.

The file name contains a digest of the content, so a repetition after a crash gives the same file. Secrets are redacted
before anything is written.

Invariants: the preview replaces the result only after the file is durable; a result that cannot be written is not
changed. Media stay until the assistant has answered after them, so that a model sees them once.
"""

import base64
import binascii
import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from hashlib import blake2b
from itertools import islice
from urllib.parse import unquote_to_bytes

from anyio.lowlevel import checkpoint
from anyio.to_thread import run_sync

from ricordo.context.config import ToolResultEvictionConfig
from ricordo.context.contract import Act, Reduction, StrategyContext, StrategyReport, Window
from ricordo.context.plan import count_message_tokens
from ricordo.context.tool_results import (
    READ_TOOL,
    EvictedPiece,
    WidePiece,
    evicted_parts,
    join_texts,
    replace_with_previews,
)
from ricordo.errors import AlreadyExists, InvalidMessage, StorageError, StorageFailed
from ricordo.guard import Redactor
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages import Media, Message, ToolCall, ToolResult, Unknown, pair_calls
from ricordo.messages.json_text import loads
from ricordo.scope import encode_folder_name
from ricordo.storage import FileStore
from ricordo.workspace.layout import WORKSPACE

__all__ = ["EvictResults", "content_kind"]


_SAMPLE_CHARS = 8_192
_MIN_TABLE_LINES = 3
_MIN_TABLE_COLUMNS = 3
_CONTROL_CHARS = lazy_compile(r"[\0-\x08\x0e-\x1a\x1c-\x1f\ufffd]")
_MAX_CONTROL_SHARE = 0.1
_MARKUP_PATTERNS = (
    (lazy_compile(r"<!doctype html|<html[\s>]", re.IGNORECASE), "HTML"),
    (lazy_compile(r"<\?xml\b"), "XML"),
)


def content_kind(text: str) -> str:
    """Return `JSON`, `JSON lines`, `HTML`, `XML`, `CSV`, `binary data` or `text`."""
    head = text[:_SAMPLE_CHARS].lstrip("\ufeff \t\r\n")
    if len(_CONTROL_CHARS.findall(head)) > _MAX_CONTROL_SHARE * len(head):
        return "binary data"
    if head[:1] in {"{", "["}:
        return _json_kind(text, head)
    for pattern, kind in _MARKUP_PATTERNS:
        if pattern.match(head):
            return kind
    return "CSV" if _is_table(head) else "text"


def _json_kind(text: str, head: str) -> str:
    if _is_json(text):
        return "JSON"
    lines = _whole_lines(head)
    return "JSON lines" if len(lines) > 1 and all(map(_is_json, lines)) else "text"


def _is_json(text: str) -> bool:
    try:
        loads(text.strip("\ufeff \t\r\n"))
    except InvalidMessage:
        return False
    return True


def _is_table(head: str) -> bool:
    """Return whether the first lines have the same number of columns; commas in a sentence do not make a table."""
    try:
        rows = list(islice(csv.reader(_whole_lines(head), strict=True), 20))
    except csv.Error:
        return False
    columns = {len(row) for row in rows}
    return len(rows) >= _MIN_TABLE_LINES and len(columns) == 1 and columns.pop() >= _MIN_TABLE_COLUMNS


def _whole_lines(head: str) -> list[str]:
    """Return the lines that end within `head` and are not blank."""
    return [line for line in head.split("\n")[:-1] if line.strip()]


_UNSAFE_NAME_CHARS = lazy_compile(r"[^A-Za-z0-9_-]+")
_TEXT_MEDIA_TYPE = lazy_compile(r"text/|[^;]*(?:json|xml|yaml|javascript)", re.IGNORECASE)
_MAX_NAME_CHARS = 60
_DIGEST_SIZES = (8, 16)
_FORCED_LIMIT_PREVIEWS = 4


@dataclass(frozen=True, kw_only=True)
class _ResultSource:
    """A result, its part index and tool, and the pieces of its message that are already evicted."""

    result: ToolResult
    part: int
    tool: str
    evicted: frozenset[tuple[int, int | None]]


class EvictResults:
    """Moves large results to files. See the module docstring."""

    action: Act = "evict"

    def __init__(
        self, config: ToolResultEvictionConfig, files: FileStore, redactor: Redactor, *, reader: str = READ_TOOL
    ) -> None:
        """Write to `files`, the root that holds the workspace; `reader` names the tool that reads it."""
        self._read_tool = reader
        self._config = config
        self._files = files
        self._redactor = redactor

    @classmethod
    def create(cls, config: ToolResultEvictionConfig, context: StrategyContext) -> "EvictResults | None":
        """Return the strategy for a session; None for a session without files."""
        files = context.files
        return None if files is None else cls(config, files, context.redactor, reader=context.reader_tool)

    async def reduce(self, window: Window) -> Reduction:
        """Return the window with its large results evicted. A forced window has a limit of at most four previews.

        The report counts as failed if one result could not be written; the others are still evicted.
        """
        await checkpoint()
        failures: list[str] = []
        messages = list(window.messages)
        for index, pieces in _find_wide_results(window.messages, self._config, self._max_chars(window)):
            evicted = [
                evicted_piece
                for piece in pieces
                if (evicted_piece := await self._evict_piece(piece, window.session, failures))
            ]
            if evicted:
                messages[index] = replace_with_previews(messages[index], evicted, self._config.preview_chars)
        return Reduction(messages=tuple(messages), report=_build_report(window, messages, failures))

    def _max_chars(self, window: Window) -> int:
        forced_limit = max(_FORCED_LIMIT_PREVIEWS * self._config.preview_chars, 1)
        return min(self._config.max_result_chars, forced_limit) if window.forced else self._config.max_result_chars

    async def _evict_piece(self, wide: WidePiece, session: str, failures: list[str]) -> EvictedPiece | None:
        """Store one piece. On failure, append the reason to `failures` and return None."""
        text, kind = await run_sync(_clean_and_classify, wide.text, self._redactor)
        data = wide.data or text.encode("utf-8", "surrogatepass")
        try:
            path = await self._store(data, wide, session)
        except StorageError as error:
            failures.append(str(error))
            return None
        return EvictedPiece(piece=wide, path=path.removeprefix(WORKSPACE), text=text, kind=kind, reader=self._read_tool)

    async def _store(self, data: bytes, wide: WidePiece, session: str) -> str:
        """Write `data` under a name with its digest and return the path.

        If the existing file was changed, a longer digest is used."""
        session_folder = encode_folder_name(session) if session else "default"
        folder = f"{WORKSPACE}/{self._config.eviction_path.strip('/')}/{session_folder}"
        for size in _DIGEST_SIZES:
            path = f"{folder}/{_file_name(wide, blake2b(data, digest_size=size).hexdigest())}"
            try:
                await self._files.create(path, data)
            except AlreadyExists:
                if (await self._files.read(path)).data != data:
                    continue
            return path
        raise StorageFailed(f"{path} was changed, so what stood there can't be told from this result.")


def _clean_and_classify(text: str, redactor: Redactor) -> tuple[str, str]:
    """Return the text without secrets, and its kind of content."""
    cleaned = redactor.clean(text) if text else ""
    return cleaned, content_kind(cleaned)


def _find_wide_results(
    messages: Sequence[Message], config: ToolResultEvictionConfig, limit: int
) -> Iterator[tuple[int, list[WidePiece]]]:
    """Yield the index of each message with large pieces, and these pieces."""
    names = _tool_names(messages)
    last_reply = max((index for index, message in enumerate(messages) if message.role == "assistant"), default=-1)
    for index, message in enumerate(messages):
        evicted = evicted_parts(message)
        wide = [
            piece
            for part, result in enumerate(message.parts)
            if isinstance(result, ToolResult)
            and not _is_excluded(name := result.name or names.get((index, part), ""), config)
            for piece in _find_wide_pieces(
                _ResultSource(result=result, part=part, tool=name or "tool", evicted=evicted),
                limit,
                is_seen=index < last_reply,
            )
            if (piece.part, piece.item) not in evicted
        ]
        if wide:
            yield index, wide


def _find_wide_pieces(source: _ResultSource, limit: int, *, is_seen: bool) -> Iterator[WidePiece]:
    part, tool = source.part, source.tool
    text = join_texts(
        source.result, frozenset(item for index, item in source.evicted if index == part and item is not None)
    )
    if len(text) > limit:
        yield WidePiece(part=part, tool=tool, text=text)
    for index, item in enumerate(source.result.parts):
        if isinstance(item, Unknown) and len(item.raw) > limit:
            yield WidePiece(part=part, tool=tool, text=item.raw, item=index)
        elif isinstance(item, Media) and len(item.uri) > limit:
            data, content = _decode_medium(item)
            if content or (data and is_seen):
                media_type = item.media_type or "application/octet-stream"
                yield WidePiece(part=part, tool=tool, item=index, media_type=media_type, data=data, text=content)


def _decode_medium(medium: Media) -> tuple[bytes, str]:
    """Return the content of a medium: bytes, or text if it is text."""
    data = _decode_data_uri(medium.uri)
    if _TEXT_MEDIA_TYPE.match(medium.media_type):
        with suppress(UnicodeDecodeError):
            return b"", data.decode()
    return data, ""


def _decode_data_uri(uri: str) -> bytes:
    """Return the content of a data URI; empty for any other URI and for invalid data."""
    head, comma, body = uri.partition(",")
    if head[:5].lower() != "data:" or not comma:
        return b""
    decoded = unquote_to_bytes(body)
    if not head.lower().rstrip().endswith(";base64"):
        return decoded
    try:
        return base64.b64decode(decoded, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _tool_names(messages: Sequence[Message]) -> Mapping[tuple[int, int], str]:
    """Return the tool of each result, named by its call, by the position of the result."""
    names: dict[tuple[int, int], str] = {}
    for call, result in pair_calls(messages).answered:
        call_part = messages[call.message].parts[call.part]
        if isinstance(call_part, ToolCall):
            names[result.message, result.part] = call_part.name
    return names


def _is_excluded(name: str, config: ToolResultEvictionConfig) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in config.excluded_tool_names)


def _file_name(wide: WidePiece, digest: str) -> str:
    tool = _UNSAFE_NAME_CHARS.sub("_", wide.tool)[:_MAX_NAME_CHARS] or "tool"
    return f"{tool}-{digest}{_extension(wide.media_type) if wide.media_type else '.txt'}"


def _extension(media_type: str) -> str:
    """Return the file extension of a media type: `.png` for `image/png`, `.svg` for `image/svg+xml`."""
    subtype = re.match(r"[^/]*/(?:x-)?([A-Za-z0-9]{1,16})", media_type)
    return f".{subtype[1].lower()}" if subtype else ".bin"


def _build_report(window: Window, messages: Sequence[Message], failures: Sequence[str]) -> StrategyReport:
    changed = sum(new is not old for new, old in zip(messages, window.messages, strict=True))
    before = sum(count_message_tokens(window.messages, window.ratio))
    return StrategyReport(
        action="evict",
        status="failed" if failures else "done" if changed else "skipped",
        reason=failures[0] if failures else (window.forced or "wide results") if changed else "no result is too wide",
        messages_before=len(messages),
        messages_after=len(messages),
        tokens_before=before,
        tokens_after=sum(count_message_tokens(messages, window.ratio)) if changed else before,
    )
