"""The agent: what users construct when they have none of their own."""

__all__: list[str] = []
