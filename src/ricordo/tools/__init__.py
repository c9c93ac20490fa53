"""The tools that an agent is given: thin, each returns a result and never raises what the model could mend."""

from ricordo.tools.memory import memory_get

__all__ = ["memory_get"]
