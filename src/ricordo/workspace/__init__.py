"""The workspace: the plain files that are the truth, their names, their documents, and the history of their changes."""

__all__: list[str] = []
