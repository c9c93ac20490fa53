"""What was written, by whom and why, and how to take it back."""

from ricordo.audit.forget import Forgotten, find_entry, forget
from ricordo.audit.history import HistoryItem, history
from ricordo.audit.undo import chosen_item, undo

__all__ = ["Forgotten", "HistoryItem", "chosen_item", "find_entry", "forget", "history", "undo"]
