"""Importers: what other programs wrote becomes messages with sessions, and memories."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.importers.claude_code import find_claude_code
    from ricordo.importers.contract import ImportedItem, ImportedMemory, ImportedMessage, Importer
    from ricordo.importers.reader import FoundSource, find_sources, read_history, read_items
    from ricordo.importers.records import JsonRecord
    from ricordo.importers.registry import ImportFormat, describe_formats, find_format, list_formats
    from ricordo.importers.source import ImportProblem, ImportSource

__all__ = [
    "FoundSource",
    "ImportFormat",
    "ImportProblem",
    "ImportSource",
    "ImportedItem",
    "ImportedMemory",
    "ImportedMessage",
    "Importer",
    "JsonRecord",
    "describe_formats",
    "find_claude_code",
    "find_format",
    "find_sources",
    "list_formats",
    "read_history",
    "read_items",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".claude_code": "find_claude_code",
        ".contract": "ImportedItem ImportedMemory ImportedMessage Importer",
        ".reader": "FoundSource find_sources read_history read_items",
        ".records": "JsonRecord",
        ".registry": "ImportFormat describe_formats find_format list_formats",
        ".source": "ImportProblem ImportSource",
    },
)
