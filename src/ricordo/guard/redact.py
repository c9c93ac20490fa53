"""Redaction: replace each secret in a text by a mark before the text reaches a file.

A mark such as `[secret:openai-key:3f9a2c71]` holds the type of the secret and a keyed digest, so equal secrets have
equal marks. Computing the digest needs the root's key. Texts are never cut within a secret.

Invariants: a result never contains a secret; redacting twice changes nothing; text without secrets is returned as the
same object.
"""

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from ricordo.guard.heuristics import NameStrength, ValueForm, is_secret_value
from ricordo.guard.key_rules import SecretSpan
from ricordo.guard.keyword_secrets import name_strength
from ricordo.guard.scanner import SECRET_MARK, find_secrets
from ricordo.lazy import dataclass, lazy_compile

if TYPE_CHECKING:
    from ricordo.messages.types import JsonValue

__all__ = ["RedactedText", "Redactor", "SecretMark", "cut", "cut_start", "has_secret"]


_MARKS_ONLY = lazy_compile(lambda: r"(?:" + SECRET_MARK.pattern + r"[\s.,;]*)+")
_KEY_BYTES = 32
_DIGEST_BYTES = 4


@dataclass(frozen=True, kw_only=True)
class SecretMark:
    """A mark in a redacted text: its `type`, the `digest` of the secret (8 hex digits), and its position."""

    type: str
    digest: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class RedactedText:
    """A text without secrets, and the marks that this redaction added, left to right.

    Marks that the text already contained are not listed.
    """

    text: str
    marks: tuple[SecretMark, ...]


class Redactor:
    """Replaces secrets by marks under one key. The key is its only state and is never shown."""

    __slots__ = ("__key",)

    def __init__(self, key: bytes) -> None:
        """Use `key`, the 32 random bytes of the root. Raises: ValueError for any other length."""
        if len(key) != _KEY_BYTES:
            raise ValueError(f"a guard key has {_KEY_BYTES} bytes, not {len(key)}: make one with secrets.token_bytes")
        self.__key = bytes(key)

    def redact(self, text: str) -> RedactedText:
        """Return `text` with each secret replaced by its mark; the same object, without marks, if it has no secrets."""
        marks: tuple[SecretMark, ...] = ()
        while spans := find_secrets(text):
            text, marks = self._replace_spans(text, spans, marks)
        return RedactedText(text=text, marks=marks)

    def clean(self, text: str) -> str:
        """Return the text of `redact(text)`."""
        return self.redact(text).text

    def clean_keeping_lines(self, text: str) -> str:
        """Return `text` without secrets and with the same number of lines.

        The mark of a secret that spans several lines is followed by their line ends, so later text stays on its line.
        """
        while spans := find_secrets(text):
            parts: list[str] = []
            read = 0
            for span in spans:
                secret = text[span.start : span.end]
                parts += [text[read : span.start], self.render_mark(span.type, secret), "\n" * secret.count("\n")]
                read = span.end
            text = "".join([*parts, text[read:]])
        return text

    def restore(self, text: str, source: str) -> str:
        """Return `text` with the marks that `clean_keeping_lines(source)` would add replaced by their secrets."""
        values: dict[str, str] = {}
        while "[secret:" in text and (spans := find_secrets(source)):
            for span in spans:
                secret = source[span.start : span.end]
                values[self.render_mark(span.type, secret)] = secret
            source = self._replace_spans(source, spans, ())[0]
        for mark, secret in reversed(values.items()):
            text = text.replace(mark + "\n" * secret.count("\n"), secret).replace(mark, secret)
        return text

    def clean_bytes(self, data: bytes) -> bytes:
        """Return the result of `clean_keeping_lines` for UTF-8 bytes; other bytes are returned unchanged."""
        text = data.decode("utf-8", "surrogateescape")
        redacted = self.clean_keeping_lines(text)
        return data if redacted is text else redacted.encode("utf-8", "surrogateescape")

    def clean_json(self, value: "JsonValue") -> "JsonValue":
        """Return a copy of `value` without the secrets in its strings and keys. The structure stays the same.

        A string whose key is the name of a secret (`"password"`, `"api_key"`), or in a list under such a key, is
        replaced completely.
        """
        return self._clean_json(value, None)

    def _clean_json(self, value: "JsonValue", strength: NameStrength | None) -> "JsonValue":
        if isinstance(value, str):
            return self._clean_named(value, strength)
        if isinstance(value, list):
            return [self._clean_json(item, strength if isinstance(item, str) else None) for item in value]
        if isinstance(value, dict):
            return {self.clean(key): self._clean_json(item, name_strength(key)) for key, item in value.items()}
        return value

    def _clean_named(self, value: str, strength: NameStrength | None) -> str:
        if (
            strength is not None
            and not _MARKS_ONLY.fullmatch(value)
            and is_secret_value(value, strength, ValueForm.QUOTED)
        ):
            spans = find_secrets(value)
            is_whole_value = len(spans) == 1 and (spans[0].start, spans[0].end) == (0, len(value))
            kind = "password" if strength is NameStrength.STRONG else "credential"
            return self.render_mark(spans[0].type if is_whole_value else kind, value)
        return self.clean(value)

    def render_mark(self, type_: str, secret: str) -> str:
        """Return the mark of `secret`, for callers that found a secret across several texts."""
        return f"[secret:{type_}:{self._digest(secret)}]"

    def _digest(self, secret: str) -> str:
        data = secret.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(data, digest_size=_DIGEST_BYTES, key=self.__key).hexdigest()

    def _replace_spans(
        self, text: str, spans: list[SecretSpan], marks: tuple[SecretMark, ...]
    ) -> tuple[str, tuple[SecretMark, ...]]:
        """Return the text with `spans` replaced by marks, and all marks at their new positions."""
        parts: list[str] = []
        new_marks: list[SecretMark] = []
        edits: list[tuple[int, int, int]] = []
        read = output_length = 0
        for span in spans:
            secret = text[span.start : span.end]
            mark = self.render_mark(span.type, secret)
            parts += [text[read : span.start], mark]
            start = output_length + span.start - read
            output_length, read = start + len(mark), span.end
            new_marks.append(SecretMark(type=span.type, digest=self._digest(secret), start=start, end=output_length))
            edits.append((span.start, span.end, output_length - span.end))
        parts.append(text[read:])
        return "".join(parts), tuple(sorted([*_shift_marks(marks, edits), *new_marks], key=lambda mark: mark.start))


def has_secret(text: str) -> bool:
    """Return whether `redact` would change `text`. Needs no key."""
    return bool(find_secrets(text))


def _shift_marks(marks: tuple[SecretMark, ...], edits: list[tuple[int, int, int]]) -> list[SecretMark]:
    """Return earlier marks at their positions after `edits`, without the marks that an edit covered.

    An edit is the start and end of a span and the shift of the text after it.
    """
    moved: list[SecretMark] = []
    shift = index = 0
    for mark in marks:
        while index < len(edits) and edits[index][1] <= mark.start:
            shift = edits[index][2]
            index += 1
        if index == len(edits) or edits[index][0] >= mark.end:
            moved.append(replace(mark, start=mark.start + shift, end=mark.end + shift))
    return moved


_SEARCH_RADIUS = 4_096
_CHARACTER_REFERENCE = lazy_compile(r"&(?:amp;)*(?:[a-z]{2,5}|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});")


def cut(text: str, limit: int) -> str:
    """Return the longest prefix of `text` of at most `limit` characters that splits no secret.

    It also splits no mark and no character reference. A text that is short enough is returned as the same object.
    Raises: ValueError for a negative limit.
    """
    if limit < 0:
        raise ValueError(f"a text cannot be cut to {limit} characters")
    if len(text) <= limit:
        return text
    for opening, pattern in (("&", _CHARACTER_REFERENCE), ("[", SECRET_MARK)):
        start = text.rfind(opening, 0, limit)
        match = pattern.match(text, start) if start >= 0 else None
        if match is not None and match.end() > limit:
            return text[:start]
    return text[: _secret_bounds(text, limit)[0]]


def cut_start(text: str, start: int) -> str:
    """Return the longest suffix of `text` that begins at `start` or later and not within a secret."""
    return text if start <= 0 else text[_secret_bounds(text, start)[1] :]


def _secret_bounds(text: str, position: int) -> tuple[int, int]:
    """Return the start and end of the secret that contains `position`; `position` twice if there is none."""
    first = max(0, position - _SEARCH_RADIUS)
    for span in find_secrets(text[first : position + _SEARCH_RADIUS]):
        if first + span.start < position < first + span.end:
            return first + span.start, first + span.end
    return position, position
