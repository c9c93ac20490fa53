"""The workspace: names, documents and logs of the plain files that are the truth."""

__all__: list[str] = []
