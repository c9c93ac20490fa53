"""Passthrough of fields that a format has but `Message` can't represent; they are kept in the metadata.

Fields of a block that writing would lose go to the metadata of the message under the name of the format, and are merged
into the block when the same format is written. So a message may be edited in between, and other formats never see them.

Invariant: an extra field is only merged into a part at the same position that is written with the type it was read as.
Null and absent are the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ricordo.errors import InvalidMessage
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
        parts: dict[str, JsonValue] = {str(index): dict(found) for index, found in self.parts.items() if found}
        fields: dict[str, JsonValue] = {}
        if self.message:
            fields["message"] = dict(self.message)
        if parts:
            fields["parts"] = parts
        return {dialect: fields} if fields else {}

    def restore_part(self, index: int, said: Mapping[str, JsonValue], tag: str) -> dict[str, JsonValue]:
        """Merge the extra fields of the part at `index` into `said`, if both have the same kind under `tag`."""
        found = self.parts.get(index, {})
        fields = found.get("fields")
        same = found.get("of") == said.get(tag)
        return merge_extra(said, fields) if same and isinstance(fields, dict) else dict(said)


def read_extra(message: Message, dialect: str) -> ExtraFields:
    """Return the extra fields of `message` in `dialect`; values of another structure are ignored."""
    found = message.metadata.get(dialect)
    if not isinstance(found, dict):
        return ExtraFields()
    fields, parts = found.get("message"), found.get("parts")
    return ExtraFields(
        message=fields if isinstance(fields, dict) else {},
        parts=_by_index(parts) if isinstance(parts, dict) else {},
    )


def find_extra(given: Mapping[str, JsonValue], said: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the fields and plain values of `given` that `said` lacks, recursively in objects and lists."""
    found: dict[str, JsonValue] = {}
    for key, value in given.items():
        more = _extra_value(value, said[key]) if key in said else value
        if more is not None:
            found[key] = more
    return found


def merge_extra(said: Mapping[str, JsonValue], kept: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Merge the result of `find_extra` into `said`."""
    return {**said, **{key: _merge_value(said[key], value) if key in said else value for key, value in kept.items()}}


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


def _extra_value(given: JsonValue, said: JsonValue) -> JsonValue:
    if isinstance(given, dict) and isinstance(said, dict):
        return find_extra(given, said) or None
    if isinstance(given, list) and isinstance(said, list):
        return _extra_items(given, said)
    if isinstance(given, dict | list) or isinstance(said, dict | list) or given == said:
        return None
    return given


def _extra_items(given: Sequence[JsonValue], said: Sequence[JsonValue]) -> JsonValue:
    if len(given) != len(said):
        return None
    pairs = zip(given, said, strict=True)
    found: list[JsonValue] = [find_extra(a, b) if isinstance(a, dict) and isinstance(b, dict) else {} for a, b in pairs]
    return found if any(found) else None


def _merge_value(said: JsonValue, kept: JsonValue) -> JsonValue:
    if isinstance(said, dict) and isinstance(kept, dict):
        return merge_extra(said, kept)
    if isinstance(said, list) and isinstance(kept, list) and len(said) == len(kept):
        return [_merge_value(a, b) if isinstance(a, dict) else a for a, b in zip(said, kept, strict=True)]
    if isinstance(said, dict | list) or isinstance(kept, dict | list):
        return said
    return kept


def _by_index(parts: Mapping[str, JsonValue]) -> dict[int, Mapping[str, JsonValue]]:
    return {int(index): found for index, found in parts.items() if index.isdecimal() and isinstance(found, dict)}
