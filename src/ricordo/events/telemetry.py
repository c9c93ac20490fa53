"""OpenTelemetry spans for the stages that the GenAI conventions name, when the OpenTelemetry API is installed.

The names are constants here because the conventions for memory operations are still in development and the
published package lacks them. Spans carry counts and error types; content is never captured.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ricordo.events.types import Event, Stage

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

__all__ = ["GENAI_OPERATIONS", "current_trace_id", "telemetry_sink"]

GENAI_OPERATIONS: Mapping[Stage, str] = {
    "save": "create_memory",
    "recall": "search_memory",
    "answer": "search_memory",
    "forget": "delete_memory",
    "undo": "update_memory",
    "extract": "upsert_memory",
    "open": "create_memory_store",
}
"""The `gen_ai.operation.name` of a stage; other stages make no span."""


def current_trace_id() -> str:
    """Return the id of the trace that is being recorded, 32 hex digits; empty outside of one, and without the API."""
    # who records a trace has imported the API
    api = sys.modules.get("opentelemetry.trace")
    context = api.get_current_span().get_span_context() if api else None
    return f"{context.trace_id:032x}" if context and context.is_valid else ""


def telemetry_sink() -> Callable[[Event], None] | None:
    """Return a sink that makes a span of every named stage that ended, or None without the OpenTelemetry API."""
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.trace") is None:
        return None
    tracer: Tracer = import_module("opentelemetry.trace").get_tracer("ricordo")
    return lambda event: _record_span(tracer, event)


def _record_span(tracer: "Tracer", event: Event) -> None:
    operation = GENAI_OPERATIONS.get(event.stage)
    if operation is None or event.status == "started":
        return
    end = int(event.at.timestamp() * 1e9)
    span = tracer.start_span(operation, start_time=end - int((event.seconds or 0.0) * 1e9))
    span.set_attribute("gen_ai.operation.name", operation)
    span.set_attribute("ricordo.status", event.status)
    if event.error:
        span.set_attribute("error.type", event.error)
    if event.scope and event.scope.session:
        span.set_attribute("gen_ai.conversation.id", event.scope.session)
    for name, count in event.counts.items():
        key = "gen_ai.memory.record.count" if name == "entries" else f"ricordo.{name}"
        span.set_attribute(key, count)
    span.end(end_time=end)
