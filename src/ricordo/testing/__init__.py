"""For tests of agents: a scripted model and a server that speaks the real wire protocols."""

__all__: list[str] = []
