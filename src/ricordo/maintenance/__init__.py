"""Maintenance: what is done for memory while nobody waits for it."""

__all__: list[str] = []
