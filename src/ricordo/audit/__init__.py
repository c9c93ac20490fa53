"""What was written, by whom and why, and how to take it back."""

from ricordo.audit.find import resolve_id, find_entry, find_entries
from ricordo.audit.forget import ForgetResult, forget, forget_copies
from ricordo.audit.history import HistoryItem, list_history, is_by_person
from ricordo.audit.marking import MarkAct, MarkResult, mark_entry
from ricordo.audit.remaining import Remaining, remaining_entries, remaining_in
from ricordo.audit.undo import resolve_history_item, undo_change
from ricordo.audit.usage import MemoryUsage, UsageAct

__all__ = [
    "ForgetResult",
    "HistoryItem",
    "MarkAct",
    "MarkResult",
    "MemoryUsage",
    "Remaining",
    "UsageAct",
    "resolve_id",
    "resolve_history_item",
    "find_entry",
    "forget",
    "forget_copies",
    "list_history",
    "is_by_person",
    "find_entries",
    "mark_entry",
    "remaining_entries",
    "remaining_in",
    "undo_change",
]
