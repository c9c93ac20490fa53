"""Events: every stage says how it began and ended, and nothing of what was said."""

from datetime import UTC, date, datetime

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ricordo.events import Emitter, Event, record_span
from ricordo.scope import Scope

pytestmark = pytest.mark.req("HE-C3-eight")

SCOPE = Scope(user="me", session="s1")


class Noon:
    """A clock that stands still."""

    def now(self) -> datetime:
        """Return noon of one day."""
        return datetime(2026, 11, 21, 12, tzinfo=UTC)

    def today(self) -> date:
        """Return that day."""
        return date(2026, 11, 21)


def test_a_stage_reports_its_start_and_its_end_with_counts() -> None:
    """What was handled is known at the end."""
    heard: list[Event] = []
    with Emitter(Noon(), (heard.append,)).stage("ingest", SCOPE) as progress:
        progress.counts["messages"] = 3
    assert [(event.stage, event.status) for event in heard] == [("ingest", "started"), ("ingest", "finished")]
    assert heard[1].counts == {"messages": 3}
    assert heard[1].seconds is not None
    assert heard[1].seconds >= 0
    assert heard[1].scope == SCOPE


def test_a_stage_that_did_nothing_says_why() -> None:
    """A reason makes it skipped and not finished."""
    heard: list[Event] = []
    with Emitter(Noon(), (heard.append,)).stage("extract") as progress:
        progress.skipped = "no new messages"
    assert (heard[-1].status, heard[-1].reason) == ("skipped", "no new messages")


def test_a_failed_stage_names_the_error_and_not_its_text() -> None:
    """The text of an error may quote what somebody said."""
    heard: list[Event] = []
    with pytest.raises(ValueError, match="a secret"), Emitter(Noon(), (heard.append,)).stage("save"):
        raise ValueError("a secret")
    assert (heard[-1].status, heard[-1].error) == ("failed", "ValueError")
    assert "a secret" not in repr(heard)


def test_a_listener_that_fails_disturbs_neither_the_work_nor_the_next_listener(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The log names the listener's error by its type."""

    def broken(event: Event) -> None:
        raise RuntimeError(f"no {event.stage}")

    heard: list[Event] = []
    with Emitter(Noon(), (broken, heard.append)).stage("recall"):
        pass
    assert len(heard) == 2
    assert "RuntimeError" in caplog.text
    assert "no recall" not in caplog.text


def test_named_stages_become_spans_of_the_genai_conventions() -> None:
    """A span has the operation's name, the count and the error's type; other stages make none."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    emitter = Emitter(Noon(), (record_span,))
    with emitter.stage("save", SCOPE) as progress:
        progress.counts["entries"] = 2
    with pytest.raises(KeyError), emitter.stage("forget", SCOPE):
        raise KeyError("x")
    with emitter.stage("recover"):
        pass
    created, deleted = exporter.get_finished_spans()
    assert created.name == "create_memory"
    assert dict(created.attributes or {}) == {
        "gen_ai.operation.name": "create_memory",
        "gen_ai.conversation.id": "s1",
        "gen_ai.memory.record.count": 2,
        "ricordo.status": "finished",
    }
    assert deleted.name == "delete_memory"
    assert (deleted.attributes or {})["error.type"] == "KeyError"
