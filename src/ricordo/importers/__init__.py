"""Real histories, taken in: chat exports, coding agents' transcripts and dialogues become messages with sessions."""

from ricordo.importers.contract import Imported, Problem

__all__ = ["Imported", "Problem"]
