"""Strategies: one way each to make the window smaller."""

__all__: list[str] = []
