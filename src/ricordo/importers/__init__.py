"""Real histories, taken in: chat exports, coding agents' transcripts and dialogues become messages with sessions."""

from ricordo.importers.contract import Imported, Problem
from ricordo.importers.find import find_claude_code
from ricordo.importers.read import read_history
from ricordo.importers.shapes import UNDERSTOOD

__all__ = ["UNDERSTOOD", "Imported", "Problem", "find_claude_code", "read_history"]
