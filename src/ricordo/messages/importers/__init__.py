"""Importers: chat exports, coding agents' transcripts and dialogues become messages with sessions."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.messages.importers.claude_code import find_claude_code
    from ricordo.messages.importers.reader import read_history
    from ricordo.messages.importers.records import ImportedMessage, ImportProblem
    from ricordo.messages.importers.shapes import SUPPORTED_FORMATS

__all__ = ["SUPPORTED_FORMATS", "ImportProblem", "ImportedMessage", "find_claude_code", "read_history"]

__getattr__ = lazy_exports(
    __name__,
    {
        ".claude_code": "find_claude_code",
        ".reader": "read_history",
        ".records": "ImportedMessage ImportProblem",
        ".shapes": "SUPPORTED_FORMATS",
    },
)
