"""The index: full-text search over the workspace, always rebuildable from its files."""

__all__: list[str] = []
