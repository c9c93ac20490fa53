"""The context window: the content of a model request, and the strategies that reduce it. Each works on its own."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.context.config import (
        ClearResultsConfig,
        CompactionConfig,
        DedupeReadsConfig,
        ToolResultEvictionConfig,
        TruncateArgsConfig,
        TurnRecallConfig,
    )
    from ricordo.context.contract import (
        Act,
        CompactionSummary,
        ExtractionHandover,
        ExtractionLease,
        Reduction,
        Strategy,
        StrategyConfig,
        StrategyContext,
        StrategyReport,
        Summarizer,
        Window,
    )
    from ricordo.context.pipeline import LoggingStrategy, run_pipeline
    from ricordo.context.plan import changed_reduction, count_message_tokens, make_handle, unchanged_reduction
    from ricordo.context.preamble import (
        MemoryLine,
        MemorySnapshot,
        Preamble,
        PreambleItem,
        SavedEntry,
        ShownEntry,
        compose_preamble,
    )
    from ricordo.context.strategies import Reductions
    from ricordo.context.strategies.clear import ClearResults
    from ricordo.context.strategies.dedupe import DedupeReads
    from ricordo.context.strategies.drop import DropGroups, NoCompaction, SlidingWindow
    from ricordo.context.strategies.evict import EvictResults
    from ricordo.context.strategies.summarize import Compact, Hook
    from ricordo.context.strategies.truncate import TruncateArgs
    from ricordo.context.summary.digest import build_digest, extract_tags, extract_title
    from ricordo.context.summary.sections import SECTION_NAMES
    from ricordo.context.summary.summarizers import DigestSummarizer, ModelSummarizer

__all__ = [
    "SECTION_NAMES",
    "Act",
    "ClearResults",
    "ClearResultsConfig",
    "Compact",
    "CompactionConfig",
    "CompactionSummary",
    "DedupeReads",
    "DedupeReadsConfig",
    "DigestSummarizer",
    "DropGroups",
    "EvictResults",
    "ExtractionHandover",
    "ExtractionLease",
    "Hook",
    "LoggingStrategy",
    "MemoryLine",
    "MemorySnapshot",
    "ModelSummarizer",
    "NoCompaction",
    "Preamble",
    "PreambleItem",
    "Reduction",
    "Reductions",
    "SavedEntry",
    "ShownEntry",
    "SlidingWindow",
    "Strategy",
    "StrategyConfig",
    "StrategyContext",
    "StrategyReport",
    "Summarizer",
    "ToolResultEvictionConfig",
    "TruncateArgs",
    "TruncateArgsConfig",
    "TurnRecallConfig",
    "Window",
    "build_digest",
    "changed_reduction",
    "compose_preamble",
    "count_message_tokens",
    "extract_tags",
    "extract_title",
    "make_handle",
    "run_pipeline",
    "unchanged_reduction",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".config": "ClearResultsConfig CompactionConfig DedupeReadsConfig ToolResultEvictionConfig TruncateArgsConfig "
        "TurnRecallConfig",
        ".contract": (
            "Act CompactionSummary ExtractionHandover ExtractionLease Reduction Strategy StrategyConfig "
            "StrategyContext StrategyReport Summarizer Window"
        ),
        ".pipeline": "LoggingStrategy run_pipeline",
        ".plan": "changed_reduction count_message_tokens make_handle unchanged_reduction",
        ".strategies": "Reductions",
        ".preamble": "MemoryLine MemorySnapshot Preamble PreambleItem SavedEntry ShownEntry compose_preamble",
        ".strategies.clear": "ClearResults",
        ".strategies.dedupe": "DedupeReads",
        ".strategies.drop": "DropGroups NoCompaction SlidingWindow",
        ".strategies.evict": "EvictResults",
        ".strategies.summarize": "Compact Hook",
        ".strategies.truncate": "TruncateArgs",
        ".summary.digest": "build_digest extract_tags extract_title",
        ".summary.sections": "SECTION_NAMES",
        ".summary.summarizers": "DigestSummarizer ModelSummarizer",
    },
)
