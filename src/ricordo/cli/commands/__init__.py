"""The commands, by theme; `ricordo.cli.application` gives them their names."""

__all__: list[str] = []
