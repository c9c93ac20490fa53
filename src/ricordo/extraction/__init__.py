"""Extraction: turns messages into findings and findings into ledger entries, by rules or by a model."""

__all__: list[str] = []
