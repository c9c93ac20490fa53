"""Events: what happened, without what was said.

Every stage of the pipeline reports that it started, finished, was skipped (with the reason) or failed (with the
type of the error). An event carries names, counts and durations and never content, so it can go to any log.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from ricordo.scopes import Scope

__all__ = ["Event", "EventSink", "Stage", "Status"]

Stage = Literal[
    "open",
    "ingest",
    "record",
    "extract",
    "save",
    "index",
    "scan",
    "select",
    "inject",
    "recall",
    "answer",
    "preamble",
    "forget",
    "undo",
    "recover",
    "turn",
    "model",
    "tool",
    "evict",
    "clear",
    "dedupe",
    "truncate",
    "compact",
    "drop",
    "slide",
    "none",
    "remove",
    "edit",
    "overflow",
    "expand",
    "orient",
    "gather",
    "consolidate",
    "drain",
    "maintain",
    "expire",
    "prune",
    "summarize",
    "task",
]
Status = Literal["started", "finished", "skipped", "failed"]


@dataclass(frozen=True, kw_only=True)
class Event:
    """One thing that happened at `at`; `seconds` is how long the stage took, `counts` what it handled."""

    stage: Stage
    status: Status
    at: datetime
    scope: Scope | None = None
    seconds: float | None = None
    reason: str | None = None
    error: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)


EventSink: TypeAlias = Callable[[Event], None]
