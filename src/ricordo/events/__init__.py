"""What happened, for whoever listens."""

from ricordo.events.emitter import Emitter, Progress
from ricordo.events.telemetry import telemetry_sink
from ricordo.events.types import Event, Sink, Stage, Status

__all__ = ["Emitter", "Event", "Progress", "Sink", "Stage", "Status", "telemetry_sink"]
