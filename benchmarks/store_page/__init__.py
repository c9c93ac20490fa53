"""The page of the stores' benchmark: its numbers and its tables."""

__all__: list[str] = []
