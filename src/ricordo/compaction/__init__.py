"""Compaction: shrinking the window by eviction, truncation and summary; each strategy is its own file."""

from ricordo.compaction.compact import Compact, Hook
from ricordo.compaction.config import CompactionConfig, ToolResultEvictionConfig, TruncateArgsConfig
from ricordo.compaction.contract import Reduction, Report, Strategy, Window
from ricordo.compaction.digest import about, digest, tags
from ricordo.compaction.evict import Evict
from ricordo.compaction.summary import DigestSummary, ModelSummary, Summarize
from ricordo.compaction.truncate import Truncate

__all__ = [
    "Compact",
    "CompactionConfig",
    "DigestSummary",
    "Evict",
    "Hook",
    "ModelSummary",
    "Reduction",
    "Report",
    "Strategy",
    "Summarize",
    "ToolResultEvictionConfig",
    "Truncate",
    "TruncateArgsConfig",
    "Window",
    "about",
    "digest",
    "tags",
]
