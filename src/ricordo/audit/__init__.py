"""What was written, by whom and why, and how to take it back."""

from ricordo.audit.find import chosen_id, find_entry, located_by_id
from ricordo.audit.forget import Forgotten, forget, forget_copies
from ricordo.audit.history import HistoryItem, history, is_by_person
from ricordo.audit.marking import MarkAct, Marked, mark
from ricordo.audit.remaining import Remaining, remaining_entries, remaining_in
from ricordo.audit.undo import chosen_item, undo
from ricordo.audit.usage import MemoryUsage, UsageAct

__all__ = [
    "Forgotten",
    "HistoryItem",
    "MarkAct",
    "Marked",
    "MemoryUsage",
    "Remaining",
    "UsageAct",
    "chosen_id",
    "chosen_item",
    "find_entry",
    "forget",
    "forget_copies",
    "history",
    "is_by_person",
    "located_by_id",
    "mark",
    "remaining_entries",
    "remaining_in",
    "undo",
]
