"""The summary of a conversation: the request for it, its sections, and the digest that needs no model."""

__all__: list[str] = []
