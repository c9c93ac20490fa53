"""Recall: ranked hits with their reasons, and the answer that needs no model."""

__all__: list[str] = []
