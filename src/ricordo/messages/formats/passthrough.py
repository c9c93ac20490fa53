"""Passthrough of fields that a format has but `Message` can't represent; they are kept in the metadata.

Fields of a block that writing would lose go to the metadata of the message under the name of the format, and are merged
into the block when the same format is written. So a message may be edited in between, and other formats never see them.

Invariant: an extra field is only merged into a part at the same position that is written with the type it was read as.
Null and absent are the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field

from ricordo.errors import InvalidMessage
from ricordo.lazy import dataclass
from ricordo.messages.json_text import dumps, loads
from ricordo.messages.types import JsonValue, Message, Part, Unknown

__all__ = ["ExtraFields", "find_extra", "make_unknown", "merge_extra", "read_extra", "read_unknown"]


@dataclass(frozen=True, kw_only=True)
class ExtraFields:
    """The extra fields of one message in one dialect: of the message itself, and of its parts by position."""

    message: Mapping[str, JsonValue] = field(default_factory=dict)
    parts: Mapping[int, Mapping[str, JsonValue]] = field(default_factory=dict)

    def to_metadata(self, dialect: str) -> dict[str, JsonValue]:
        """Return the fields as metadata of a message; empty if there are none."""
        parts: dict[str, JsonValue] = {str(index): dict(extra) for index, extra in self.parts.items() if extra}
        fields: dict[str, JsonValue] = {}
        if self.message:
            fields["message"] = dict(self.message)
        if parts:
            fields["parts"] = parts
        return {dialect: fields} if fields else {}

    def restore_part(self, index: int, encoded: Mapping[str, JsonValue], tag: str) -> dict[str, JsonValue]:
        """Merge the extra fields of the part at `index` into `encoded`, if both have the same kind under `tag`."""
        extra = self.parts.get(index, {})
        fields = extra.get("fields")
        is_same_kind = extra.get("of") == encoded.get(tag)
        return merge_extra(encoded, fields) if is_same_kind and isinstance(fields, dict) else dict(encoded)


def read_extra(message: Message, dialect: str) -> ExtraFields:
    """Return the extra fields of `message` in `dialect`; values of another structure are ignored."""
    stored = message.metadata.get(dialect)
    if not isinstance(stored, dict):
        return ExtraFields()
    fields, parts = stored.get("message"), stored.get("parts")
    return ExtraFields(
        message=fields if isinstance(fields, dict) else {},
        parts=_by_index(parts) if isinstance(parts, dict) else {},
    )


def find_extra(original: Mapping[str, JsonValue], encoded: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the fields and plain values of `original` that `encoded` lacks, recursively in objects and lists."""
    extra: dict[str, JsonValue] = {}
    for key, value in original.items():
        extra_value = _extra_value(value, encoded[key]) if key in encoded else value
        if extra_value is not None:
            extra[key] = extra_value
    return extra


def merge_extra(encoded: Mapping[str, JsonValue], extra: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Merge the result of `find_extra` into `encoded`."""
    return {
        **encoded,
        **{key: _merge_value(encoded[key], value) if key in encoded else value for key, value in extra.items()},
    }


def make_unknown(dialect: str, kind: str, block: Mapping[str, JsonValue]) -> Unknown:
    """Return `block`, whose type is unknown, as a part of the kind `<dialect>:<kind>`."""
    return Unknown(kind=f"{dialect}:{kind}", raw=dumps(dict(block)))


def read_unknown(part: Part, dialect: str) -> dict[str, JsonValue] | None:
    """Return the block of a part from `make_unknown` for `dialect`; None for any other part."""
    if not isinstance(part, Unknown) or not part.kind.startswith(f"{dialect}:"):
        return None
    try:
        value = loads(part.raw)
    except InvalidMessage:
        return None
    return value if isinstance(value, dict) else None


def _extra_value(original: JsonValue, encoded: JsonValue) -> JsonValue:
    if isinstance(original, dict) and isinstance(encoded, dict):
        return find_extra(original, encoded) or None
    if isinstance(original, list) and isinstance(encoded, list):
        return _extra_items(original, encoded)
    if isinstance(original, dict | list) or isinstance(encoded, dict | list) or original == encoded:
        return None
    return original


def _extra_items(original: Sequence[JsonValue], encoded: Sequence[JsonValue]) -> JsonValue:
    if len(original) != len(encoded):
        return None
    pairs = zip(original, encoded, strict=True)
    extras: list[JsonValue] = [
        find_extra(a, b) if isinstance(a, dict) and isinstance(b, dict) else {} for a, b in pairs
    ]
    return extras if any(extras) else None


def _merge_value(encoded: JsonValue, extra: JsonValue) -> JsonValue:
    if isinstance(encoded, dict) and isinstance(extra, dict):
        return merge_extra(encoded, extra)
    if isinstance(encoded, list) and isinstance(extra, list) and len(encoded) == len(extra):
        return [_merge_value(a, b) if isinstance(a, dict) else a for a, b in zip(encoded, extra, strict=True)]
    if isinstance(encoded, dict | list) or isinstance(extra, dict | list):
        return encoded
    return extra


def _by_index(parts: Mapping[str, JsonValue]) -> dict[int, Mapping[str, JsonValue]]:
    return {int(index): extra for index, extra in parts.items() if index.isdecimal() and isinstance(extra, dict)}
