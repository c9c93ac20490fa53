"""The summary of a conversation: the model request, its sections, and the digest that needs no model."""

__all__: list[str] = []
