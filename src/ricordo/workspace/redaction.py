"""Redaction of messages and entries, before they are stored and when they are shown; and quarantine.

Every writer of messages and entries uses these functions, so no stored or derived data holds a detected secret. People
also edit the files directly, so text is redacted when it is read, too. The caller's values are not changed.

A memory that gives orders to an assistant, and comes from elsewhere, waits until a person decides. It stays a bullet of
its ledger, with the state `quarantined` and the reason. Until a person accepts it, it is not recalled, not in a prompt
and not consolidated.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import quote, unquote

from ricordo import messages
from ricordo.concurrency import compute, run_in_thread
from ricordo.errors import InvalidEntry, InvalidMessage, InvalidScope
from ricordo.guard.instructions import INSTRUCTION_REASONS, find_instruction
from ricordo.guard.redact import Redactor, has_secret
from ricordo.guard.scanner import find_secrets
from ricordo.lazy import lazy_compile
from ricordo.messages.json_text import dumps, loads
from ricordo.scope import Scope
from ricordo.workspace.entry import QUARANTINE_FIELD, Entry, Source
from ricordo.workspace.entry_codec import parse_entries
from ricordo.workspace.markdown import to_utf8

if TYPE_CHECKING:
    from ricordo.messages import JsonValue, Media, Message, Part, Text, Unknown

__all__ = [
    "all_redacted_beside",
    "find_added_orders",
    "find_orders",
    "guarded_length",
    "hide_quarantined",
    "redact_entry",
    "redact_entry_in_thread",
    "redact_for_display",
    "redact_joined",
    "redact_message",
    "redact_messages",
    "redact_uri",
    "screen_entry",
]


_TEXT_DATA_URI = lazy_compile(r"data:(?:[;,]|text/|[^;,]*(?:json|xml|yaml|javascript|x-sh|x-www-form))", re.IGNORECASE)


def redact_uri(uri: str, redactor: Redactor) -> str:
    """Return a URI without secrets; the text in a text data URI is redacted, other data URIs stay unchanged."""
    if uri[:5].lower() != "data:":
        return redactor.clean(uri)
    head, comma, body = uri.partition(",")
    head = redactor.clean(head)
    if not head.lower().rstrip().endswith(";base64"):
        text = unquote(body, errors="replace")
        redacted = redactor.clean(text)
        return f"{head}{comma}{body if redacted == text else quote(redacted)}"
    if not _TEXT_DATA_URI.match(head):
        return f"{head}{comma}{body}"
    text = _decode_base64(body)
    redacted = redactor.clean(text)
    if redacted == text:
        return f"{head}{comma}{body}"
    return f"{head}{comma}{base64.b64encode(redacted.encode('utf-8', 'replace')).decode()}"


def redact_joined(texts: Sequence[str], redactor: Redactor) -> list[str]:
    """Redact texts as if joined by newlines or spaces; each one with a part of a secret gets a mark."""
    return _redact_across(_redact_across(list(texts), " ", redactor), "\n", redactor)


def _redact_across(texts: list[str], separator: str, redactor: Redactor) -> list[str]:
    while spans := find_secrets(joined := separator.join(texts)):
        starts = [0, *accumulate(len(text) + 1 for text in texts)]
        for span in reversed(spans):
            mark = redactor.render_mark(span.type, joined[span.start : span.end])
            for number, text in enumerate(texts):
                start, end = max(span.start - starts[number], 0), min(span.end - starts[number], len(text))
                if start < end:
                    texts[number] = text[:start] + mark + text[end:]
    return texts


def _decode_base64(body: str) -> str:
    try:
        return base64.b64decode(unquote(body) + "=" * (-len(unquote(body)) % 4)).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return unquote(body)


_MAX_INLINE_CHARS = 10_000
"""The number of characters that may be searched for secrets on the event loop."""
_EACH = 500
"""The fixed cost of an entry, as an equivalent number of characters."""
_P = TypeVar("_P", bound="Part")
_D = TypeVar("_D", Entry, Source)


def redact_message(message: "Message", redactor: Redactor) -> "Message":
    """Return `message` with typed marks in place of secrets: in text, arguments, results and metadata."""
    if _is_plain(message):
        together = "\n".join((message.id, message.parent or "", message.name or "", message.text))
        if redactor.clean(together) is together:
            return message
    metadata = redactor.clean_json(cast("JsonValue", dict(message.metadata)))
    return replace(
        message,
        id=redactor.clean(message.id),
        parent=message.parent and redactor.clean(message.parent),
        parts=tuple(_redact_part(part, redactor) for part in _redact_text_parts(message.parts, redactor)),
        name=redactor.clean(message.name) if message.name else message.name,
        metadata=metadata if isinstance(metadata, dict) else {},
    )


def _is_plain(message: "Message") -> bool:
    """Return whether a message is one text, which is searched together with its id, parent and name."""
    return not message.metadata and len(message.parts) == 1 and isinstance(message.parts[0], messages.Text)


def redact_messages(messages: "Iterable[Message]", redactor: Redactor) -> "tuple[Message, ...]":
    """Redact each message with `redact_message`. Slow for many messages: call it in a thread."""
    return tuple(redact_message(message, redactor) for message in messages)


def redact_entry(entry: Entry, redactor: Redactor) -> Entry:
    """Return `entry` with typed marks in place of secrets, in all of its texts.

    Raises: InvalidEntry for a secret in its id or in a field name, InvalidScope for one in its scope, because a mark
    would make these invalid.
    """
    if has_secret(entry.id) or any(has_secret(key) for key, _ in entry.extra):
        raise InvalidEntry("The id and the names of the fields of an entry hold no secrets.")
    if entry.scope and any(map(has_secret, entry.scope.parts().values())):
        raise InvalidScope("The scope of an entry holds no secrets.")
    return _redact_texts(entry, redactor)


_CLEAN_ENTRIES = 1_024
_clean_entries: dict[int, Entry] = {}
"""Entries without secrets, by their identity: a memory that is shown again and again is searched once."""


def redact_for_display(entry: Entry, redactor: Redactor) -> Entry:
    """Return `entry` for display, with typed marks in place of secrets that a person may have written.

    It is the same object if there are none. Its id is not changed, so it can be found.
    """
    if _clean_entries.get(id(entry)) is entry:
        return entry
    if not has_secret("\n".join(_iter_texts(entry))):
        if len(_clean_entries) >= _CLEAN_ENTRIES:
            _clean_entries.clear()
        if len(entry.content) <= _MAX_INLINE_CHARS:
            _clean_entries[id(entry)] = entry
        return entry
    marked = _redact_texts(entry, redactor)
    parts = marked.scope.parts() if marked.scope else {}
    return _replace_changed(
        marked,
        extra=tuple((redactor.clean(key), _redact_field(key, value, redactor)) for key, value in entry.extra),
        scope=Scope(**{name: redactor.clean(value) for name, value in parts.items()}) if parts else marked.scope,
    )


def _redact_field(name: str, value: str, redactor: Redactor) -> str:
    """Return the value of a field, redacted if the name of the field indicates a secret."""
    redacted = redactor.clean_json({name: value})
    return str(next(iter(redacted.values()))) if isinstance(redacted, dict) else value


def _iter_texts(entry: Entry) -> Iterator[str]:
    """Yield every text of an entry except its id."""
    source = entry.source
    yield from (entry.content, entry.kind, *entry.tags, *source.messages)
    yield from filter(None, (entry.reason, entry.rule, entry.supersedes, source.session, source.quote, source.origin))
    yield from (f"{key}: {value}" for key, value in entry.extra)
    yield from entry.scope.parts().values() if entry.scope else ()


def _redact_texts(entry: Entry, redactor: Redactor) -> Entry:
    source = _replace_changed(
        entry.source,
        session=entry.source.session and redactor.clean(entry.source.session),
        messages=tuple(map(redactor.clean, entry.source.messages)),
        quote=entry.source.quote and redactor.clean(entry.source.quote),
        origin=entry.source.origin and redactor.clean(entry.source.origin),
    )
    return _replace_changed(
        entry,
        content=redactor.clean(entry.content),
        kind=redactor.clean(entry.kind),
        tags=tuple(map(redactor.clean, entry.tags)),
        source=source,
        reason=entry.reason and redactor.clean(entry.reason),
        rule=entry.rule and redactor.clean(entry.rule),
        supersedes=entry.supersedes and redactor.clean(entry.supersedes),
        extra=tuple((key, redactor.clean(value)) for key, value in entry.extra),
    )


def guarded_length(entries: Iterable[Entry]) -> int:
    """Return the estimated redaction cost of entries in characters: their contents, and 500 for the fields of each."""
    return sum(_EACH + len(entry.content) for entry in entries)


async def all_redacted_beside(entries: Sequence[Entry], redactor: Redactor) -> tuple[Entry, ...]:
    """Redact each entry with `redact_entry`, in a thread if they are long in total."""
    redacting = partial(_all_redacted, entries, redactor)
    return await compute(redacting, size=guarded_length(entries), at_once=_MAX_INLINE_CHARS)


def _all_redacted(entries: Iterable[Entry], redactor: Redactor) -> tuple[Entry, ...]:
    return tuple(redact_entry(entry, redactor) for entry in entries)


async def redact_entry_in_thread(entry: Entry, redactor: Redactor) -> Entry:
    """Redact an entry with `redact_entry`, in a thread if it is long."""
    if len(entry.content) <= _MAX_INLINE_CHARS:
        return redact_entry(entry, redactor)
    return await run_in_thread(redact_entry, entry, redactor)


def _replace_changed(value: _D, **fields: Any) -> _D:
    """Return `value` with these fields, or the same object if nothing changes."""
    return replace(value, **fields) if any(getattr(value, name) != field for name, field in fields.items()) else value


def _redact_part(part: "Part", redactor: Redactor) -> "Part":
    match part:
        case messages.Text():
            return replace(part, text=redactor.clean(part.text))
        case messages.Thinking():
            text, seal = redactor.clean(part.text), part.signature and redactor.clean(part.signature)
            # a signature that no longer matches is dropped, as providers refuse it
            return part if (text, seal) == (part.text, part.signature) else messages.Thinking(text=text)
        case messages.ToolCall():
            return replace(
                part,
                id=redactor.clean(part.id),
                name=redactor.clean(part.name),
                arguments=_redact_json_text(part.arguments, redactor),
            )
        case messages.ToolResult():
            return replace(
                part,
                call_id=redactor.clean(part.call_id),
                name=part.name and redactor.clean(part.name),
                parts=tuple(_redact_inner_part(inner, redactor) for inner in _redact_text_parts(part.parts, redactor)),
            )
        case messages.Media() | messages.Unknown():
            return _redact_inner_part(part, redactor)


def _redact_inner_part(part: "Text | Media | Unknown", redactor: Redactor) -> "Text | Media | Unknown":
    match part:
        case messages.Text():
            return replace(part, text=redactor.clean(part.text))
        case messages.Unknown():
            return replace(part, kind=redactor.clean(part.kind), raw=_redact_json_text(part.raw, redactor))
        case messages.Media():
            return replace(
                part,
                media_type=redactor.clean(part.media_type),
                uri=redact_uri(part.uri, redactor),
                name=part.name and redactor.clean(part.name),
                description=part.description and redactor.clean(part.description),
            )


def _redact_text_parts(parts: tuple[_P, ...], redactor: Redactor) -> tuple[_P, ...]:
    """Redact the text parts together: a secret may be in one part and its name in the previous one."""
    places = [number for number, part in enumerate(parts) if isinstance(part, messages.Text)]
    if len(places) < 2:
        return parts
    redacted = redact_joined([part.text for part in parts if isinstance(part, messages.Text)], redactor)
    result = list(parts)
    for number, text in zip(places, redacted, strict=True):
        part = result[number]
        if isinstance(part, messages.Text):
            result[number] = cast("_P", replace(part, text=text))
    return tuple(result)


def _redact_json_text(text: str, redactor: Redactor) -> str:
    """Redact the values of JSON, so that it stays valid; other text is redacted as a whole."""
    try:
        value = loads(text)
    except InvalidMessage:
        return redactor.clean(text)
    redacted = redactor.clean_json(value)
    return text if redacted == value else dumps(redacted)


_MARKER = b"[state:: quarantined]"
_HIDDEN = b"- (this memory waits in quarantine)"


def find_orders(texts: Iterable[str | None]) -> str:
    """Return why a memory with these texts waits, in words for people; empty if it gives no orders."""
    kinds = (find_instruction(text) for text in texts if text)
    return next((INSTRUCTION_REASONS[kind] for kind in kinds if kind), "")


def find_added_orders(before: bytes, after: bytes) -> str:
    """Return what `find_orders` says of the lines that a document gets; empty if it gets none with orders."""
    known = set(before.splitlines())
    added = b"\n".join(line for line in after.splitlines() if line not in known)
    return find_orders([added.decode("utf-8", "replace")])


def screen_entry(entry: Entry) -> Entry:
    """Return an entry that is about to be saved: with low trust it replaces nothing, and with orders it waits.

    What a person saved, confirmed or pinned stays as it is.
    """
    if entry.by in {"user", "hand"} or entry.confirmed is not None or entry.pinned:
        return entry
    if entry.is_external and entry.supersedes:
        entry = replace(entry, supersedes=None)
    reason = find_orders([entry.content, entry.source.quote, *entry.tags]) if entry.state == "active" else ""
    if not reason:
        return entry
    rest = tuple(pair for pair in entry.extra if pair[0] != QUARANTINE_FIELD)
    return replace(entry, state="quarantined", supersedes=None, extra=(*rest, (QUARANTINE_FIELD, reason)))


def hide_quarantined(document: bytes) -> bytes:
    """Return a document with a note in the place of each memory in quarantine; the number of lines stays."""
    if _MARKER not in (data := to_utf8(document)):
        return document
    for one in reversed(parse_entries(data, "", only=lambda bullet: _MARKER in bullet)):
        if one.entry.state == "quarantined":
            lines = data[one.offset : one.offset + one.length].count(b"\n")
            data = data[: one.offset] + _HIDDEN + b"\n" * lines + data[one.offset + one.length :]
    return data
