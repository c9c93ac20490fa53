"""What is noted of a memory: when it was shown, used and confirmed, apart from each other and from how it ranks."""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_at_work import SCOPE, settings
from hand_clock import HandClock
from places import place_of
from ricordo import HarnessAgent, Memory, MemoryConfig
from ricordo.context import TurnRecallConfig
from ricordo.errors import EntryNotFound, StorageFull
from ricordo.storage import AppendedRange
from ricordo.storage.local import LocalFiles
from ricordo.testing import Call, InMemoryFiles, RecordedRequest, Say, ScriptedModel, ScriptItem
from ricordo.workspace.history.usage import (
    MemoryUsage,
    UsageCount,
    UsageLog,
    compact_usage,
    read_usage,
)
from ricordo.workspace.layout import USAGE

pytestmark = [pytest.mark.anyio, pytest.mark.req("CC-HALFLIFE")]

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
HARVEST = "We rent the walnut harvester from Okonkwo for the orchard."
QUESTION = "Who rents us the walnut harvester for the orchard?"


def rows(root: Path) -> list[dict[str, object]]:
    """Return the lines of a root's usage file."""
    path = place_of(root) / USAGE
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def shown(count: int, *, days: int = 0) -> bytes:
    """Return lines that show the memory `a` so often, a day after the other."""
    at = [NOW + timedelta(days=days + day) for day in range(count)]
    return b"".join(json.dumps({"at": each.isoformat(), "act": "shown", "ids": ["a"]}).encode() + b"\n" for each in at)


@pytest.mark.req("CC-HALFLIFE", "HE-C7", "CC-AGE")
@pytest.mark.parametrize(
    ("kind", "days"), [("user", 365), ("feedback", 180), ("reference", 120), ("project", 45)]
)  # fmt: skip
async def test_a_memory_ages_by_the_half_life_of_its_kind_until_it_is_confirmed_and_being_shown_changes_nothing(
    tmp_path: Path, kind: str, days: int
) -> None:
    root, clock = tmp_path / ".ricordo", HandClock()

    async def recency(memory: Memory, entry_id: str) -> float:
        found = await memory.explain("walnut harvester")
        return next(hit.signals["recency"] for hit in found.hits if hit.entry.id == entry_id)

    async with Memory.open(root, scope=SCOPE, settings=settings(root), clock=clock) as memory:
        aging = await memory.remember(HARVEST, kind=kind)
        stuck = await memory.remember("The walnut harvester is green.", kind=kind)
        await memory.pin(stuck.id)
        clock.turn(days=days)
        for _ in range(5):
            assert {hit.entry.id for hit in await memory.recall("walnut harvester")} == {aging.id, stuck.id}
            await memory.mark_used(aging.id)
        assert await recency(memory, aging.id) == pytest.approx(0.5, abs=0.01)
        assert await recency(memory, stuck.id) == 1.0
        await memory.confirm(aging.id)
        assert await recency(memory, aging.id) == 1.0
        known = await memory.usage(aging.id)
    assert (known.shown.count, known.used.count, known.confirmed.count) == (5, 5, 1)


async def test_what_is_shown_used_and_confirmed_is_told_apart_with_how_and_in_which_session(tmp_path: Path) -> None:
    root, clock = tmp_path / ".ricordo", HandClock()
    async with Memory.open(root, scope=SCOPE, settings=settings(root), clock=clock) as memory:
        entry = await memory.remember(HARVEST)
        await memory.recall("walnut")
        await memory.search("walnut")
        await memory.answer(QUESTION)
        await memory.mark_used(entry.id)
        await memory.confirm(entry.id)
        await memory.explain("walnut")
        assert rows(root) == [], "nothing is written on the way of an answer"
    noted = [(row["act"], row["how"], row["ids"]) for row in rows(root)]
    assert noted == [
        ("shown", "recall", [entry.id]),
        ("shown", "search", [entry.id]),
        ("used", "answer", [entry.id]),
        ("used", "used", [entry.id]),
        ("confirmed", "confirm", [entry.id]),
    ]


@pytest.mark.req("FC-WHY")
async def test_an_agents_prompt_its_reminders_and_its_tools_are_noted(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
        entry = await memory.remember(HARVEST)
        await memory.remember("We sell chestnuts on Saturdays.")
    (ledger,) = (place_of(root) / "workspace" / "memory").glob("*.md")

    def answer(request: RecordedRequest) -> ScriptItem:
        calls: dict[int, ScriptItem] = {
            1: Call("recall", {"query": "walnut harvester"}),
            2: Call("memory_search", {"query": "walnut harvester"}),
            3: Call("memory_get", {"path": f"memory/{ledger.name}"}),
        }
        return calls.get(request.number, Say("Okonkwo."))

    for tokens, how in ((0, "turn"), (2_000, "prompt")):
        given_settings = replace(settings(root), preamble_tokens=tokens, turn_recall=TurnRecallConfig(seconds=20.0))
        async with HarnessAgent(
            ScriptedModel(answer),
            memory=MemoryConfig(root=root, hooks=False),
            scope=SCOPE,
            settings=given_settings,
            session=how,
        ) as agent:
            await agent.send(QUESTION)
        noted = [(row["act"], row["how"]) for row in rows(root) if row.get("session") == how]
        assert sorted(noted) == sorted(
            [("shown", how), ("shown", "recall"), ("shown", "memory_search"), ("used", "memory_get")]
        )
        assert all(entry.id in str(row["ids"]) for row in rows(root))


async def test_a_prompt_shows_curated_memory_whatever_its_words_are(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
        entry = await memory.remember(HARVEST)
        await memory.forget(entry.id)
    line = f"- The <memory> tag: {HARVEST} [kind:: fact] ^01jd0000000000000000000001\n"
    (place_of(root) / "workspace" / "MEMORY.md").write_text(f"# Memory\n\n{line}", encoding="utf-8")
    async with HarnessAgent(
        ScriptedModel([Say("Yes.")]), memory=MemoryConfig(root=root, hooks=False), scope=SCOPE, settings=settings(root)
    ) as agent:
        await agent.send("Hello.")
    assert [(row["how"], row["ids"]) for row in rows(root)] == [("prompt", ["01jd0000000000000000000001"])]


async def test_with_the_setting_off_nothing_is_noted_and_nothing_is_known(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    async with Memory.open(root, scope=SCOPE, settings=replace(settings(root), usage=False)) as memory:
        entry = await memory.remember(HARVEST)
        await memory.recall("walnut")
        assert (await memory.confirm(entry.id)).confirmed is not None
        assert await memory.usage(entry.id) == MemoryUsage()
    assert not (place_of(root) / USAGE).exists()


async def test_what_is_for_all_projects_is_noted_where_it_lies_and_seen_from_another_project(tmp_path: Path) -> None:
    given_settings = settings(tmp_path / "one")
    async with Memory.open(tmp_path / "one", scope=SCOPE, settings=given_settings) as memory:
        entry = await memory.remember(HARVEST, scope=replace(SCOPE, project=None), reason="holds everywhere")
        assert await memory.recall("walnut")
    async with Memory.open(
        tmp_path / "two", scope=replace(SCOPE, project="other"), settings=given_settings
    ) as other:  # fmt: skip
        assert (await other.usage(entry.id)).shown.count == 1
        with pytest.raises(EntryNotFound):
            await other.usage("01jd0000000000000000000009")
    assert rows(tmp_path / "one") == []


async def test_torn_and_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    files = LocalFiles(place_of(tmp_path))
    await files.append(USAGE, shown(2))
    with (place_of(tmp_path) / USAGE).open("ab") as file:
        file.write(b'{"at":"2026-11-22T09:00:00Z","act":"shown","ids":["a"')
    log = UsageLog(files, HandClock())
    log.record("shown", ["a"], how="recall")
    assert (await log.read_all())["a"].shown.count == 3
    for line in (b"[1]", b'{"act":"lost","at":"2026-11-22T09:00:00Z","ids":["a"]}', b'{"act":"shown","ids":["a"]}',
                 b'{"id":"a","shown":[-1,"x","y"]}', b'{"id":7}', b"\xff{}", b'{"at":5,"act":"used","ids":["a"]}',
                 b'{"at":"0001-01-01T00:00:00+14:00","act":"used","ids":["a"]}'):  # fmt: skip
        await files.append(USAGE, line + b"\n")
    assert (await log.read_all())["a"] == read_usage((place_of(tmp_path) / USAGE).read_bytes())["a"]
    assert (await log.read_all())["a"].shown.count == 3


class FewBytes(InMemoryFiles):
    """Files whose appends tell of so large an offset that a file counts as long, and that count them."""

    def __init__(self) -> None:
        super().__init__()
        self.appends = 0

    async def append(self, path: str, data: bytes, *, header: bytes = b"") -> AppendedRange:
        self.appends += 1
        return replace(await super().append(path, data, header=header), offset=5_000_000)


async def test_a_long_file_is_rewritten_with_a_line_for_each_memory_and_says_the_same() -> None:
    files = FewBytes()
    await files.create(USAGE, shown(500))
    log = UsageLog(files, HandClock())
    log.record("used", ["b"], how="show")
    known = await log.read_all()
    assert (known["a"].shown.count, known["b"].used.count) == (500, 1)
    assert (known["a"].shown.first, known["a"].shown.last) == (NOW, NOW + timedelta(days=499))
    assert len((await files.read(USAGE)).data.splitlines()) == 2


async def test_what_is_noted_soon_after_each_other_is_written_together_and_beside() -> None:
    files = FewBytes()
    log = UsageLog(files, HandClock())
    for number in range(50):
        log.record("shown", [f"m{number}", "", f"m{number}"], how="recall")
    log.record("shown", [], how="recall")
    assert files.appends == 0
    await log.close()
    assert files.appends == 1
    assert set(await log.read_all()) == {f"m{number}" for number in range(50)}


class FullDisk(InMemoryFiles):
    """Files that can't be appended to."""

    async def append(self, path: str, data: bytes, *, header: bytes = b"") -> AppendedRange:
        raise StorageFull("full")


async def test_what_cannot_be_written_is_dropped_and_stops_nothing() -> None:
    log = UsageLog(FullDisk(), HandClock())

    async def lost() -> Iterable[str]:
        raise StorageFull("full")

    log.record("shown", ["a"], how="recall")
    log.record("shown", lost, how="prompt")
    await log.close()
    assert await log.read_all() == {}


async def test_two_processes_append_to_one_file(tmp_path: Path) -> None:
    logs = [UsageLog(LocalFiles(place_of(tmp_path)), HandClock()) for _ in range(2)]
    for _ in range(5):
        for log in logs:
            log.record("shown", ["a"], how="recall")
        async with anyio.create_task_group() as group:
            for log in logs:
                group.start_soon(log.write)
    assert (await logs[0].read_all())["a"].shown.count == 10


ACTS = st.sampled_from(["shown", "used", "confirmed"])


@pytest.mark.req("CC-HALFLIFE")
@given(st.lists(st.tuples(st.sampled_from("abc"), ACTS, st.integers(0, 900)), max_size=20), st.integers(0, 20))
def test_compacting_at_any_time_changes_nothing_that_is_known(events: list[tuple[str, str, int]], at: int) -> None:
    lines = [
        json.dumps({"at": (NOW + timedelta(days=day)).isoformat(), "act": act, "ids": [name]}).encode() + b"\n"
        for name, act, day in events
    ]
    whole = b"".join(lines)
    assert read_usage(compact_usage(b"".join(lines[:at])) + b"".join(lines[at:])) == read_usage(whole)
    assert compact_usage(compact_usage(whole)) == compact_usage(whole)


def test_compacting_keeps_what_something_happened_to_last() -> None:
    old = shown(1, days=-400).replace(b'"a"', b'"old"')
    assert set(read_usage(compact_usage(old + shown(1), max_entries=1))) == {"a"}


def test_counts_of_one_act_are_added() -> None:
    assert UsageCount(count=1, first=NOW, last=NOW).add(2, NOW, NOW).count == 3
