"""The same for programs that do not await: one blocking face."""

__all__: list[str] = []
