"""Compaction: shrinking the window; each strategy is its own file and can be used alone."""

from ricordo.compaction.clear import ClearResults
from ricordo.compaction.compact import Compact, Hook
from ricordo.compaction.config import (
    ClearResultsConfig,
    CompactionConfig,
    DedupeReadsConfig,
    ToolResultEvictionConfig,
    TruncateArgsConfig,
)
from ricordo.compaction.contract import Act, Handover, Reduction, Report, Strategy, Summarize, Summary, Taken, Window
from ricordo.compaction.dedupe import DedupeReads
from ricordo.compaction.digest import about, digest, tags
from ricordo.compaction.drop import DropGroups
from ricordo.compaction.evict import Evict
from ricordo.compaction.logged import Logged
from ricordo.compaction.nothing import Nothing
from ricordo.compaction.reports import changed, unchanged
from ricordo.compaction.slide import SlidingWindow
from ricordo.compaction.summary import DigestSummary, ModelSummary
from ricordo.compaction.truncate import Truncate

__all__ = [
    "Act",
    "ClearResults",
    "ClearResultsConfig",
    "Compact",
    "CompactionConfig",
    "DedupeReads",
    "DedupeReadsConfig",
    "DigestSummary",
    "DropGroups",
    "Evict",
    "Handover",
    "Hook",
    "Logged",
    "ModelSummary",
    "Nothing",
    "Reduction",
    "Report",
    "SlidingWindow",
    "Strategy",
    "Summarize",
    "Summary",
    "Taken",
    "ToolResultEvictionConfig",
    "Truncate",
    "TruncateArgsConfig",
    "Window",
    "about",
    "changed",
    "digest",
    "tags",
    "unchanged",
]
