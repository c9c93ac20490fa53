"""A simulated week, and the year of the benchmark: what has to hold is looked at every evening."""

import json
import threading
from datetime import date
from pathlib import Path

import pytest

from retrieval_sets import load_own
from ricordo.messages import JsonValue, dumps
from ricordo.testing import RecordedRequest, Say, ScriptedModel
from simulated.calendar import made
from simulated.holding import Day, Watch
from simulated.living import Life
from simulated.plants import CHANGES, FACTS, RESTATED

pytestmark = pytest.mark.anyio

DAILY_TOKENS = 8_000
"""Less than what is to be learned on the third and the fourth day may take."""
NEW = frozenset(change.new.said for change in CHANGES)
PLANTED = [each.said for each in FACTS] + [each.said for change in CHANGES for each in (change.old, change.new)]


async def lived(
    folder: Path, *, days: int = 7, sessions: int = 0, learner: ScriptedModel | None = None
) -> tuple[Life, list[Day]]:
    calendar = made(load_own(), days=days, sessions=sessions)
    life = Life(calendar, folder, learner=learner, daily_tokens=DAILY_TOKENS)
    watch = Watch(life, questions=12)
    return life, [await watch.look(day) async for day in life.days()]


def noting(request: RecordedRequest) -> Say:
    """Note what was planted in the messages, each in the words it was said in, and nothing of the profile."""
    shown = "\n".join(message.text for message in request.messages).partition("<conversation ")[2]
    notes: list[JsonValue] = [
        {"content": plain(text), "quote": text, "kind": "fact", "confidence": 0.9, "message": "", "since": "",
         "until": "", "tags": [], "corrects": text in NEW}
        for text in PLANTED
        if text in shown
    ]  # fmt: skip
    answer = bare(dict(request.schema or {}))
    assert isinstance(answer, dict)
    return Say(dumps({**answer, "lessons": notes}))


def plain(text: str) -> str:
    """Return what is said without that it is to be remembered."""
    told = text.removeprefix("Remember that ")
    return told[:1].upper() + told[1:]


def bare(schema: JsonValue) -> JsonValue:
    """Return the least that a schema takes."""
    assert isinstance(schema, dict)
    if isinstance(properties := schema.get("properties"), dict):
        return {name: bare(each) for name, each in properties.items()}
    if isinstance(choices := schema.get("enum"), list):
        return choices[0]
    least: dict[str, JsonValue] = {"array": [], "boolean": False, "string": ""}
    return least.get(str(schema.get("type")))


async def test_a_week_of_five_people_keeps_what_it_must_every_evening(tmp_path: Path) -> None:
    threads = threading.active_count()
    life, evenings = await lived(tmp_path, sessions=3)
    assert [fault for each in evenings for fault in each.faults] == []
    assert life.failed == []
    last = evenings[-1]
    assert (last.planted, last.changed) == (len(FACTS) + len(CHANGES), len(CHANGES))
    assert (last.recalled, last.first) == (last.planted, last.changed)
    assert last.merged == last.restated == len(RESTATED)
    assert last.superseded >= len(CHANGES)
    assert last.over_curated is not None
    assert last.over_curated >= 0.8 * (last.over_ledger or 1)
    assert max(each.threads for each in evenings) <= threads + 5
    assert max(each.temporary for each in evenings) == 0


@pytest.mark.req("FC-CAP")
async def test_with_a_model_a_day_costs_no_more_than_it_may_and_on_the_others_the_rules_learn_the_rest(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(noting)
    life, evenings = await lived(tmp_path, days=6, learner=model)
    assert 0 < evenings[-1].spent <= DAILY_TOKENS
    asked = {date.fromisoformat(str(row["day"])) for row in spent(life)}
    assert life.refused
    assert asked - life.refused.keys()
    last = evenings[-1]
    assert (last.recalled, last.first) == (last.planted, last.changed) == (len(FACTS) + len(CHANGES), len(CHANGES))
    assert [fault for each in evenings for fault in each.faults] == []
    assert life.failed == []
    assert life.left == 0


def spent(life: Life) -> list[dict[str, object]]:
    rows = [line for path in (life.root / "spending").glob("*.jsonl") for line in path.read_text().splitlines()]
    return [json.loads(row) for row in rows]


@pytest.mark.soak
async def test_a_year_of_five_people_keeps_what_it_must_every_evening(tmp_path: Path) -> None:
    life, evenings = await lived(tmp_path, days=365, sessions=400)
    assert [fault for each in evenings for fault in each.faults] == []
    assert life.failed == []
    assert max(each.threads for each in evenings) <= evenings[0].threads + 5
    assert sum(each.over_curated or 0 for each in evenings) >= 0.8 * sum(each.over_ledger or 0 for each in evenings)
