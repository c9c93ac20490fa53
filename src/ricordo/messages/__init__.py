"""Messages of a conversation and the tools that models are told of."""

from ricordo.messages.codec import decode, encode
from ricordo.messages.identity import count_fingerprints, fingerprint, with_ids, with_parents
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
    "JsonValue",
    "Media",
    "Message",
    "Part",
    "Role",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolResult",
    "ToolSpec",
    "Unknown",
    "Usage",
    "count_fingerprints",
    "decode",
    "encode",
    "fingerprint",
    "with_ids",
    "with_parents",
]
