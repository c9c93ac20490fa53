"""Messages of a conversation, tool specifications, token counts, formats and importers."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.messages.codec import decode_message, encode_message
    from ricordo.messages.identity import count_fingerprints, fingerprint, with_ids, with_parents
    from ricordo.messages.json_text import dumps, loads
    from ricordo.messages.pairs import (
        MessageGroup,
        Pairing,
        PartPosition,
        count_provider_items,
        find_cut_points,
        find_orphan_results,
        find_safe_cut,
        pair_calls,
        split_groups,
    )
    from ricordo.messages.tokens.budget import Tokens
    from ricordo.messages.tokens.estimate import estimate_message, estimate_request, estimate_text
    from ricordo.messages.types import (
        JsonValue,
        Mark,
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
        delivered_results,
        get_mark,
        is_pinned,
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
        ".codec": "decode_message encode_message",
        ".identity": "count_fingerprints fingerprint with_ids with_parents",
        ".json_text": "dumps loads",
        ".pairs": (
            "MessageGroup Pairing PartPosition count_provider_items find_cut_points find_orphan_results find_safe_cut "
            "pair_calls split_groups"
        ),
        ".tokens.budget": "Tokens",
        ".tokens.estimate": "estimate_message estimate_request estimate_text",
        ".types": (
            "JsonValue Mark Media Message Part Role Text Thinking ToolCall ToolResult ToolSpec Unknown Usage "
            "delivered_results get_mark is_pinned with_delivered_results with_mark with_pin"
        ),
    },
)
