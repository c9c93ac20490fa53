"""What a model proposes wrongly is refused for a reason that the runs show, and nothing is lost."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hand_clock import HandClock
from noting_models import note, said
from ricordo import FlushConfig, Memory, Scope
from ricordo.curation import ConsolidationConfig
from ricordo.runtime import Settings
from ricordo.testing import RecordedRequest, Say, ScriptedModel

pytestmark = pytest.mark.anyio

ME = Scope(user="me", project="shop")
SAID = "We deploy only from main, and courier retries a mail 3 times within 10 minutes."
RIGHT = note("The team deploys only from main.", "We deploy only from main", kind="convention", confidence=0.9)
NOTHING = json.dumps({"merged": [], "superseded": [], "retired": [], "topics": []})
Advice = Callable[[dict[str, str]], dict[str, Any]]


class Proposing:
    """The answers of a model: fixed notes, and advice made of the ids that it is shown, by the text of their lines."""

    def __init__(self, notes: Sequence[Any], advise: Advice | None = None) -> None:
        self.notes, self.advise = notes, advise

    def __call__(self, request: RecordedRequest) -> Say:
        if "lessons" in json.dumps(dict(request.schema or {})):
            return Say(json.dumps({"lessons": self.notes}))
        lines = [line[2:] for line in request.messages[-1].text.splitlines() if line.startswith("- ")]
        ids = {line.split(" [")[0].split(" ^")[0]: line.rpartition("^")[2] for line in lines if "^" in line}
        return Say(json.dumps({**json.loads(NOTHING), **(self.advise(ids) if self.advise else {})}))


@asynccontextmanager
async def open_memory(root: Path, clock: HandClock, answers: Proposing) -> AsyncIterator[Memory]:
    model = ScriptedModel(answers)
    settings = replace(
        Settings.from_environment(), flush=FlushConfig(model=model), consolidation=ConsolidationConfig(model=model)
    )
    async with Memory.open(root, scope=ME, settings=settings, clock=clock, embedder="none") as memory:
        clock.time += timedelta(hours=1)
        yield memory


async def counts_of(memory: Memory, kind: str) -> dict[str, int]:
    runs = [run for run in await memory.background_runs() if run.kind == kind and run.state == "done"]
    return {name: count for phase in runs[0].phases.values() for name, count in phase.items()}


@pytest.mark.req("DF-B22")
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (note("Courier retries a mail 5 times.", "courier retries a mail 3 times"), "invented"),
        (note("Courier retries a mail five times.", "courier retries a mail 3 times"), "invented"),
        (note("Courier retries a mail within 10 hours.", "courier retries a mail 3 times"), "invented"),
        (note("A mail is retried 3 times by Bettina.", "courier retries a mail 3 times"), "invented"),
        (note("Courier retries a mail 3 times.", "courier never retries"), "source"),
        (note("Courier retries a mail 3 times.", ""), "source"),
        (note("The password is hunter22.", "courier retries a mail 3 times"), "secret"),
        (note("Courier " + "retries " * 100, "courier retries a mail 3 times"), "too long"),
        (note("", "courier retries a mail 3 times"), "form"),
        ("Courier retries.", "form"),
    ],
)
async def test_a_wrong_note_is_refused_for_a_reason_that_the_run_shows(tmp_path: Path, bad: Any, reason: str) -> None:
    clock = HandClock(datetime(2026, 3, 2, 9, tzinfo=UTC))
    async with open_memory(tmp_path / ".ricordo", clock, Proposing([bad, RIGHT])) as memory:
        await memory.ingest([said(SAID), said("Noted.", by="assistant")], session="one")
        await memory.drain(seconds=20)
        counts = await counts_of(memory, "flush")
        assert {name: count for name, count in counts.items() if "refused" in name} == {
            "refused": 1,
            f"refused: {reason}": 1,
        }
        assert [entry.content for entry in await memory.entries()] == [RIGHT["content"]]


MINE = "Deploys are on Fridays, without exception."
OLD, NEW = "The price of a ticket is 12 euros.", "The price of a ticket is 14 euros now."
OTHER = "Marta is allergic to peanuts."
NOTES = [note(text, text, confidence=0.9) for text in (OTHER, OLD, NEW)]


def pair(old: str, new: str) -> Callable[[dict[str, str]], dict[str, Any]]:
    return lambda ids: {"superseded": [{"old": ids.get(old, old), "new": ids.get(new, new)}]}


def merge(*parents: str, content: str) -> Callable[[dict[str, str]], dict[str, Any]]:
    return lambda ids: {"merged": [{"parents": [ids.get(each, each) for each in parents], "content": content}]}


@pytest.mark.req("HE-C3-guard")
@pytest.mark.parametrize(
    ("advise", "reason"),
    [
        (pair(OTHER, NEW), "subject"),
        (pair(NEW, OTHER), "older"),
        (pair(NEW, "0" * 26), "unknown"),
        (pair(MINE, OTHER), "kept"),
        (
            merge(OTHER, NEW, content="Marta is allergic to peanuts; a ticket is 15 euros now."),
            "invented",
        ),
        (merge(OTHER, content=OTHER), "too few"),
        (merge(OTHER, "0" * 26, content=OTHER), "unknown"),
        (lambda ids: {"retired": [{"id": ids[MINE], "reason": "trivial"}]}, "kept"),
    ],
)
async def test_wrong_advice_is_refused_for_a_reason_that_the_run_shows(
    tmp_path: Path, advise: Advice, reason: str
) -> None:
    clock = HandClock(datetime(2026, 3, 2, 9, tzinfo=UTC))
    async with open_memory(tmp_path / ".ricordo", clock, Proposing(NOTES, advise)) as memory:
        await memory.pin((await memory.remember(MINE)).id)
        await memory.ingest([*map(said, (OTHER, OLD, NEW)), said("Noted.", by="assistant")], session="one")
        await memory.drain(seconds=20)
        counts = await counts_of(memory, "consolidate")
        assert counts.get(f"refused: {reason}") == 1, counts
        contents = {entry.content for entry in await memory.entries()}
        assert {MINE, OTHER, NEW} <= contents
