"""Extraction: from messages to findings, and from findings to entries of the ledger, by rules or by a model."""

__all__: list[str] = []
