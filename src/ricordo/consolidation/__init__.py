"""Consolidation: ledgers become curated memory, one reversible change set at a time."""

__all__: list[str] = []
