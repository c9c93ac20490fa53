"""The history of a workspace: change sets, diffs, forgotten entries, and usage."""

__all__: list[str] = []
