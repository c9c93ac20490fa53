"""Messages of a conversation and the tools that models are told of."""

from ricordo.messages.codec import decode, encode
from ricordo.messages.identity import count_fingerprints, fingerprint, with_ids, with_parents
from ricordo.messages.marks import Mark, is_pinned, mark_of, marked, pinned, telling, told_by
from ricordo.messages.pairs import Group, Pairing, Place, count_items, cut_points, groups, orphans, pair, safe_cut
from ricordo.messages.types import (
    JsonValue,
    Media,
    Message,
    Part,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    Unknown,
    Usage,
)

__all__ = [
    "Group",
    "JsonValue",
    "Mark",
    "Media",
    "Message",
    "Pairing",
    "Part",
    "Place",
    "Role",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolResult",
    "ToolSpec",
    "Unknown",
    "Usage",
    "count_fingerprints",
    "count_items",
    "cut_points",
    "decode",
    "encode",
    "fingerprint",
    "groups",
    "is_pinned",
    "mark_of",
    "marked",
    "orphans",
    "pair",
    "pinned",
    "safe_cut",
    "telling",
    "told_by",
    "with_ids",
    "with_parents",
]
