"""What was written, by whom and why, and how to take it back."""

from ricordo.audit.forget import Forgotten, find_entry, forget
from ricordo.audit.history import HistoryItem, history
from ricordo.audit.undo import undo

__all__ = ["Forgotten", "HistoryItem", "find_entry", "forget", "history", "undo"]
