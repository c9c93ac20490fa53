"""Compaction: shrinking the window by eviction, truncation and summary; each strategy is its own file."""

from ricordo.compaction.contract import Reduction, Report, Strategy, Window

__all__ = ["Reduction", "Report", "Strategy", "Window"]
