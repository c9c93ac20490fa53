"""Strategies: each reduces the window in one way."""

__all__: list[str] = []
