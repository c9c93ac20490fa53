"""How memories fade is a table of settings: half-lives in days by kind, and what a confirmation adds."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings
from command_line import ricordo
from hand_clock import HandClock
from ricordo import Entry, Memory
from ricordo.errors import InvalidSetting
from ricordo.search import DecayConfig

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
KINDS = ("user", "preference", "feedback", "convention", "lesson", "reference", "fact", "decision", "project", "goal",
         "session-summary")  # fmt: skip


@pytest.mark.req("CC-HALFLIFE")
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_a_half_life_of_its_own_and_any_other_kind_the_common_one(kind: str) -> None:
    decay = DecayConfig(**{kind.replace("-", "_"): 7.0, "other": 3.0})  # type: ignore[arg-type]
    assert (decay.half_life(kind), decay.half_life("whim")) == (7.0, 3.0)
    for other in {*KINDS} - {kind}:
        assert decay.half_life(other) == DecayConfig().half_life(other)


def test_the_number_of_confirmations_that_count_is_a_setting() -> None:
    assert [DecayConfig(fact=10, confirmations=2).half_life("fact", number) for number in range(5)] == [
        10, 20, 30, 30, 30,
    ]  # fmt: skip
    assert DecayConfig(fact=10, confirmations=0).half_life("fact", 4) == 10


@pytest.mark.req("AS-CFG-01")
@pytest.mark.parametrize(
    ("name", "value"),
    [("fact", 0.5), ("goal", 36_501), ("session_summary", 0), ("other", -1), ("user", float("nan")),
     ("confirmations", -1), ("confirmations", 101), ("archive_below", 1.1), ("archive_below", -0.1)],
)  # fmt: skip
def test_a_value_out_of_range_is_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(InvalidSetting, match=name):
        DecayConfig(**{name: value})  # type: ignore[arg-type]


@pytest.mark.req("CC-HALFLIFE", "HE-C7")
@pytest.mark.anyio
async def test_recall_and_review_go_by_the_half_lives_of_the_settings(tmp_path: Path) -> None:
    root, clock = tmp_path / ".ricordo", HandClock(NOW)
    saved = [
        Entry(content="The walnut tree is old.", kind="fact", time=NOW - timedelta(days=40)),
        Entry(content="The walnut tree is tall.", kind="goal", time=NOW - timedelta(days=50)),
    ]
    orders: list[list[str]] = []
    for decay in (DecayConfig(), DecayConfig(fact=5, goal=3650)):
        given = replace(settings(root), decay=decay)
        async with Memory.open(root, scope=SCOPE, settings=given, clock=clock) as memory:
            if not orders:
                await memory.remember_many(saved)
            orders.append([hit.entry.kind for hit in await memory.recall("walnut tree")])
            stale = next(each for each in await memory.doctor() if each.name == "stale")
            assert stale.count == 1
    assert orders == [["fact", "goal"], ["goal", "fact"]]


@pytest.mark.req("CC-HALFLIFE")
def test_the_command_line_shows_the_table_and_each_memory_by_it(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    ricordo("remember", "A walnut.", "--root", root)
    (root / "config.toml").write_text("[decay]\nfact = 10\n", encoding="utf-8")
    shown = {
        row["key"]: row["value"] for row in ricordo("config", "show", "--root", root, "--json").document["settings"]
    }
    assert (shown["decay.fact"], shown["decay.goal"], shown["decay.confirmations"]) == (10.0, 45.0, 3)
    (entry,) = ricordo("memory", "list", "--root", root, "--json").document["entries"]
    assert entry["decay"]["half_life"] == 10.0
    assert (
        ricordo("recall", "walnut", "--root", root, "--json").document["hits"][0]["entry"]["decay"]["half_life"] == 10
    )
    assert "10 days after" in ricordo("memory", "show", entry["id"], "--root", root).out
    assert "10 days after" in ricordo("why", entry["id"], "--root", root).out
    (root / "config.toml").write_text("[decay]\nfact = 0\n", encoding="utf-8")
    refused = ricordo("memory", "list", "--root", root)
    assert "config.toml:2" in refused.err
    assert "1 to 36,500" in refused.err
