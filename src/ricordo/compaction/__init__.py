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
from ricordo.compaction.contract import (
    Act,
    ExtractionHandover,
    Reduction,
    StrategyReport,
    Strategy,
    Summarizer,
    CompactionSummary,
    ExtractionLease,
    Window,
)
from ricordo.compaction.dedupe import DedupeReads
from ricordo.compaction.digest import extract_title, build_digest, extract_tags
from ricordo.compaction.drop import DropGroups
from ricordo.compaction.evict import EvictResults
from ricordo.compaction.logged import LoggingStrategy
from ricordo.compaction.nothing import NoCompaction
from ricordo.compaction.reports import changed_reduction, unchanged_reduction
from ricordo.compaction.slide import SlidingWindow
from ricordo.compaction.summary import DigestSummarizer, ModelSummarizer
from ricordo.compaction.truncate import TruncateArgs

__all__ = [
    "Act",
    "ClearResults",
    "ClearResultsConfig",
    "Compact",
    "CompactionConfig",
    "DedupeReads",
    "DedupeReadsConfig",
    "DigestSummarizer",
    "DropGroups",
    "EvictResults",
    "ExtractionHandover",
    "Hook",
    "LoggingStrategy",
    "ModelSummarizer",
    "NoCompaction",
    "Reduction",
    "StrategyReport",
    "SlidingWindow",
    "Strategy",
    "Summarizer",
    "CompactionSummary",
    "ExtractionLease",
    "ToolResultEvictionConfig",
    "TruncateArgs",
    "TruncateArgsConfig",
    "Window",
    "extract_title",
    "changed_reduction",
    "build_digest",
    "extract_tags",
    "unchanged_reduction",
]
