"""The harness: the loop of an agent, usable without memory."""

__all__: list[str] = []
