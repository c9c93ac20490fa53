"""Real histories, taken in: chat exports, coding agents' transcripts and dialogues become messages with sessions."""

from ricordo.importers.contract import ImportedMessage, ImportProblem
from ricordo.importers.find import find_claude_code
from ricordo.importers.read import read_history
from ricordo.importers.shapes import SUPPORTED_FORMATS

__all__ = ["SUPPORTED_FORMATS", "ImportedMessage", "ImportProblem", "find_claude_code", "read_history"]
