"""Adapters: what is here behind the interfaces of other libraries, each its own module with its own extra."""

__all__: list[str] = []
