"""Search: an index over the workspace that can be rebuilt from its files, ranked recall, and answers by quotation."""

__all__: list[str] = []
