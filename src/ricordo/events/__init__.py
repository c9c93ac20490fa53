"""What happened, for whoever listens."""

from ricordo.events.emitter import Emitter, StageProgress
from ricordo.events.telemetry import telemetry_sink
from ricordo.events.types import Event, EventSink, Stage, Status

__all__ = ["Emitter", "Event", "StageProgress", "EventSink", "Stage", "Status", "telemetry_sink"]
