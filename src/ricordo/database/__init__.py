"""The one adapter through which every SQLite file is opened, read and written."""

__all__: list[str] = []
