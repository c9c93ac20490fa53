"""The commands, by theme; `ricordo.cli.main` gives them their names."""

__all__: list[str] = []
