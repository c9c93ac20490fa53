"""Extraction: turns messages into findings and findings into ledger entries, by rules or by a model."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.extraction.config import RuleExtractionConfig
    from ricordo.extraction.contract import Finding, Utterance
    from ricordo.extraction.cursor import check_unlearned
    from ricordo.extraction.flusher import Flusher, FlushResult
    from ricordo.extraction.preprocessing import process_messages
    from ricordo.extraction.rules import extract, extract_from_utterances
    from ricordo.extraction.worker import JobWorker

__all__ = [
    "Finding",
    "FlushResult",
    "Flusher",
    "JobWorker",
    "RuleExtractionConfig",
    "Utterance",
    "check_unlearned",
    "extract",
    "extract_from_utterances",
    "process_messages",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".config": "RuleExtractionConfig",
        ".contract": "Finding Utterance",
        ".flusher": "FlushResult Flusher",
        ".cursor": "check_unlearned",
        ".preprocessing": "process_messages",
        ".rules": "extract extract_from_utterances",
        ".worker": "JobWorker",
    },
)
