"""Curation: turns ledgers into curated memory and a profile of the user, and removes expired memories."""

__all__: list[str] = []
