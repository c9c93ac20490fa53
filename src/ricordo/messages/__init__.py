"""Messages of a conversation and the tools that models are told of."""

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
]
