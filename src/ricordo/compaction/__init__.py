"""Compaction: shrinking the window by eviction, truncation and summary; each strategy is its own file."""

from ricordo.compaction.compact import Compact, Hook
from ricordo.compaction.config import (
    ClearResultsConfig,
    CompactionConfig,
    DedupeReadsConfig,
    ToolResultEvictionConfig,
    TruncateArgsConfig,
)
from ricordo.compaction.contract import Act, Handover, Reduction, Report, Strategy, Summarize, Summary, Taken, Window
from ricordo.compaction.digest import about, digest, tags
from ricordo.compaction.evict import Evict
from ricordo.compaction.summary import DigestSummary, ModelSummary
from ricordo.compaction.truncate import Truncate

__all__ = [
    "Act",
    "ClearResultsConfig",
    "Compact",
    "CompactionConfig",
    "DedupeReadsConfig",
    "DigestSummary",
    "Evict",
    "Handover",
    "Hook",
    "ModelSummary",
    "Reduction",
    "Report",
    "Strategy",
    "Summarize",
    "Summary",
    "Taken",
    "ToolResultEvictionConfig",
    "Truncate",
    "TruncateArgsConfig",
    "Window",
    "about",
    "digest",
    "tags",
]
