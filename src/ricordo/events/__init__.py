"""What happened, for whoever listens."""

from ricordo.events.types import Event, Sink, Stage, Status

__all__ = ["Event", "Sink", "Stage", "Status"]
