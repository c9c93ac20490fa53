"""The command line: it parses, calls the library and prints; it decides nothing."""

__all__: list[str] = []
