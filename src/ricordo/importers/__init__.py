"""Importers: what other programs wrote becomes messages with sessions, and memories."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.importers.contract import (
        FoundHistory,
        HistoryFinder,
        ImportedItem,
        ImportedMemory,
        ImportedMessage,
        Importer,
    )
    from ricordo.importers.hosts import DividedHistory, divide_by_root, find_histories, list_hosts
    from ricordo.importers.importing import ImportReport, import_sources
    from ricordo.importers.json_stream import JsonRecord
    from ricordo.importers.plan import FormatCounts, ImportPlan, plan_import
    from ricordo.importers.reader import FoundSource, find_sources, read_history, read_items
    from ricordo.importers.registry import ImportFormat, describe_formats, find_format, list_formats
    from ricordo.importers.source import ImportProblem, ImportSource

__all__ = [
    "DividedHistory",
    "FormatCounts",
    "FoundHistory",
    "FoundSource",
    "HistoryFinder",
    "ImportFormat",
    "ImportPlan",
    "ImportProblem",
    "ImportReport",
    "ImportSource",
    "ImportedItem",
    "ImportedMemory",
    "ImportedMessage",
    "Importer",
    "JsonRecord",
    "describe_formats",
    "divide_by_root",
    "find_format",
    "find_histories",
    "find_sources",
    "import_sources",
    "list_formats",
    "list_hosts",
    "plan_import",
    "read_history",
    "read_items",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".contract": "FoundHistory HistoryFinder ImportedItem ImportedMemory ImportedMessage Importer",
        ".hosts": "DividedHistory divide_by_root find_histories list_hosts",
        ".importing": "ImportReport import_sources",
        ".plan": "FormatCounts ImportPlan plan_import",
        ".reader": "FoundSource find_sources read_history read_items",
        ".json_stream": "JsonRecord",
        ".registry": "ImportFormat describe_formats find_format list_formats",
        ".source": "ImportProblem ImportSource",
    },
)
