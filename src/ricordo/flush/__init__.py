"""Flush: from messages to findings, entries and profile edits."""

__all__: list[str] = []
