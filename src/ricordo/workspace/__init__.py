"""The workspace: the plain files that store memory, their names, their documents, and their history."""

__all__: list[str] = []
