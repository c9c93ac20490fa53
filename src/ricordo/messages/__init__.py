"""Messages of a conversation, tool specifications, token counts and formats."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.messages.codec import (
        count_fingerprints,
        decode_message,
        encode_message,
        fingerprint,
        with_ids,
        with_parents,
    )
    from ricordo.messages.json_text import dumps, loads
    from ricordo.messages.tokens.budget import Tokens
    from ricordo.messages.tokens.estimate import estimate_message, estimate_request, estimate_text
    from ricordo.messages.types import (
        JsonValue,
        Mark,
        Media,
        Message,
        MessageGroup,
        Pairing,
        Part,
        PartPosition,
        Role,
        Text,
        Thinking,
        ToolCall,
        ToolResult,
        ToolSpec,
        Unknown,
        Usage,
        count_provider_items,
        delivered_results,
        find_cut_points,
        find_orphan_results,
        find_safe_cut,
        get_import,
        get_mark,
        is_pinned,
        pair_calls,
        split_groups,
        with_delivered_results,
        with_mark,
        with_pin,
    )

__all__ = [
    "JsonValue",
    "Mark",
    "Media",
    "Message",
    "MessageGroup",
    "Pairing",
    "Part",
    "PartPosition",
    "Role",
    "Text",
    "Thinking",
    "Tokens",
    "ToolCall",
    "ToolResult",
    "ToolSpec",
    "Unknown",
    "Usage",
    "count_fingerprints",
    "count_provider_items",
    "decode_message",
    "delivered_results",
    "dumps",
    "encode_message",
    "estimate_message",
    "estimate_request",
    "estimate_text",
    "find_cut_points",
    "find_orphan_results",
    "find_safe_cut",
    "fingerprint",
    "get_import",
    "get_mark",
    "is_pinned",
    "loads",
    "pair_calls",
    "split_groups",
    "with_delivered_results",
    "with_ids",
    "with_mark",
    "with_parents",
    "with_pin",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".codec": "count_fingerprints decode_message encode_message fingerprint with_ids with_parents",
        ".json_text": "dumps loads",
        ".tokens.budget": "Tokens",
        ".tokens.estimate": "estimate_message estimate_request estimate_text",
        ".types": (
            "JsonValue Mark Media Message MessageGroup Pairing Part PartPosition Role Text Thinking "
            "ToolCall ToolResult ToolSpec Unknown Usage count_provider_items delivered_results "
            "find_cut_points find_orphan_results find_safe_cut get_import get_mark is_pinned pair_calls "
            "split_groups with_delivered_results with_mark with_pin"
        ),
    },
)
