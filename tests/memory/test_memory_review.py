"""A review lists what is doubtful in what prompts show, and each decision about it can be undone."""

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from agents_at_work import SCOPE, settings
from command_line import ricordo
from places import place_of
from ricordo import Entry, Memory, Message
from ricordo.curation import ConsolidationConfig
from ricordo.errors import EntryNotFound, InvalidInput, InvalidQuery
from ricordo.messages import Text
from ricordo.models import OFFLINE

pytestmark = pytest.mark.anyio
Opened = Callable[..., AbstractAsyncContextManager[Memory]]

WORDS = ["alder", "birch", "cedar", "dogwood", "elm", "fir", "hazel", "juniper", "larch", "maple"]
EXTERNAL = (("trust", "external"),)
LINES = """# Memory

## Facts

- It is always like that there. [by:: flush] [at:: 2026-11-01T08:00:00.000Z] [confidence:: 0.9] ^01k6yvgewd8dp5gr1g9vsf23c1
- The weather was fine in the harbour yesterday. [by:: flush] [at:: 2026-11-01T08:00:00.000Z] [confidence:: 0.5] ^01k6yvgewd8dp5gr1g9vsf23c2
- The staging database listens on port 5433 of the server in Frankfurt. [by:: flush] [at:: 2026-11-01T08:00:00.000Z] [confidence:: 0.9] ^01k6yvgewd8dp5gr1g9vsf23c3
- The staging database listens on port 5433 of the Frankfurt server. [by:: flush] [at:: 2026-11-02T08:00:00.000Z] [confidence:: 0.9] ^01k6yvgewd8dp5gr1g9vsf23c4
- Nobody may deploy the shop on Fridays without asking Nadia. [at:: 2026-11-02T08:00:00.000Z] ^01k6yvgewd8dp5gr1g9vsf23c5
"""  # noqa: E501
FRAGMENT, NOISE, OLDER, NEWER = (f"01k6yvgewd8dp5gr1g9vsf23c{number}" for number in range(1, 5))


@pytest.fixture
async def memory(opened: Opened, root: Path) -> Memory:
    """A memory that holds what is doubtful."""
    async with opened() as begun:
        await begun.remember("A rule.")
    (place_of(root) / "workspace" / "MEMORY.md").write_text(LINES, encoding="utf-8")
    return await Memory.open(root, scope=begun.scope)


async def test_what_is_doubtful_is_listed_by_urgency_with_its_reason(memory: Memory) -> None:
    doubts = await memory.review()
    assert [(doubt.id, doubt.kind) for doubt in doubts] == [
        (OLDER, "duplicate"),
        (FRAGMENT, "fragment"),
        (NOISE, "noise"),
    ]
    assert doubts[0].other is not None
    assert doubts[0].other.id == NEWER
    assert all(doubt.reason for doubt in doubts)
    assert [doubt.id for doubt in await memory.review(kinds=["noise"])] == [NOISE]
    assert len(await memory.review(limit=1)) == 1
    with pytest.raises(InvalidQuery, match="kinds are"):
        await memory.review(kinds=["odd"])
    counts = {check.name: (check.count, check.detail) for check in await memory.doctor()}
    assert [counts[name][0] for name in ("repeated", "fragments", "noise", "outdated")] == [1, 1, 1, 0]
    assert "`ricordo review --kind noise` decides" in counts["noise"][1]
    assert NOISE in counts["noise"][1]
    await memory.close()


async def test_each_decision_settles_the_doubt_and_one_undo_brings_it_back(memory: Memory) -> None:
    before = {entry.id: entry.content for entry in await memory.entries()}
    for verb, entry_id, text in (
        ("accept", FRAGMENT, ""),
        ("reject", NOISE, ""),
        ("merge", OLDER, ""),
        ("edit", FRAGMENT, "In Lisbon the harbour is always quiet on Mondays."),
        ("accept", OLDER, ""),
    ):
        undone = 2 if (verb, entry_id) == ("accept", OLDER) else 1
        assert (await memory.decide(entry_id, verb, text=text)).id == entry_id  # type: ignore[arg-type]
        assert entry_id not in {doubt.id for doubt in await memory.review()}, verb
        for _ in range(undone):
            await memory.undo()
        assert entry_id in {doubt.id for doubt in await memory.review()}, verb
        assert {entry.id: entry.content for entry in await memory.entries()} == before
    await memory.decide(OLDER, "merge")
    merged = await memory.entry(OLDER)
    assert (merged.state, merged.superseded_by) == ("superseded", NEWER)
    await memory.close()


async def test_a_fact_that_repeats_memory_leaves_the_profile_without_being_forgotten(memory: Memory) -> None:
    fact = await memory.profile().add_fact("The staging database listens on port 5433 of the Frankfurt server.")
    [doubt] = [
        each for each in await memory.review(kinds=["duplicate"]) if each.other and fact.id in {each.id, each.other.id}
    ]
    await memory.decide(doubt.id, "merge")
    entries = [entry for entry in await memory.entries() if "5433" in entry.content and entry.state == "active"]
    assert len(entries) == 2
    await memory.close()


async def test_what_is_put_off_comes_back_and_bad_decisions_change_nothing(memory: Memory) -> None:
    await memory.decide(NOISE, "later", days=3)
    assert NOISE not in {doubt.id for doubt in await memory.review()}
    await memory.decide(NOISE, "later", days=0)
    assert NOISE in {doubt.id for doubt in await memory.review()}
    before = await memory.history()
    with pytest.raises(InvalidInput, match="nothing to merge"):
        await memory.decide(NOISE, "merge")
    with pytest.raises(InvalidInput, match="Give the text"):
        await memory.decide(NOISE, "edit")
    with pytest.raises(InvalidInput, match="the verbs are accept"):
        await memory.decide(NOISE, "drop")  # type: ignore[arg-type]
    with pytest.raises(EntryNotFound):
        await memory.decide("01k6yvgewd8dp5gr1g9vsf23zz", "accept")
    assert await memory.history() == before
    await memory.close()


@pytest.mark.req("FC-POISON")
async def test_what_a_tool_said_waits_for_a_word_and_is_taken_in_or_dropped_by_it(opened: Opened, root: Path) -> None:
    async with opened() as memory:
        await memory.remember("A rule.")
        waiting = [
            Entry(content=f"The {name} cluster runs version {number} of Kafka.", by="flush", extra=EXTERNAL)
            for number, name in ((31, "harbour"), (42, "quarry"), (57, "meadow"))
        ]
        taken, dropped, changed = await memory.remember_many(waiting)
        assert {doubt.id for doubt in await memory.review(kinds=["outside"])} == {taken.id, dropped.id, changed.id}
        (check,) = [check for check in await memory.doctor() if check.name == "unconfirmed"]
        assert (check.ok, check.count) == (True, 3)
        assert "`ricordo review --kind outside` decides" in check.detail
        await memory.decide(taken.id, "accept")
        await memory.decide(dropped.id, "reject")
        await memory.decide(changed.id, "edit", text="The meadow cluster runs version 58 of Kafka.")
        assert await memory.review(kinds=["outside"]) == []
        entries = {entry.id: entry for entry in await memory.entries()}
        assert (entries[taken.id].is_external, entries[changed.id].is_external) == (False, False)
        assert dropped.id not in entries


async def test_a_consolidation_that_waits_is_accepted_rejected_or_put_off_as_a_whole(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    config = ConsolidationConfig(model=OFFLINE, mode="preview", min_gap=0)
    given = replace(settings(root), consolidation=config)
    said = Message(role="user", parts=(Text(text="We decided to deploy only from main, never from a branch."),))

    async def hold(session: str) -> None:
        async with Memory.open(root, scope=SCOPE, settings=given) as memory:
            await memory.ingest([said], session=session)

    await hold("one")
    async with Memory.open(root, scope=SCOPE, settings=given) as memory:
        (doubt,) = await memory.review()
        assert (doubt.kind, doubt.id) == ("proposal", "proposal")
        assert "1 curated" in doubt.entry.content
        for verb in ("merge", "edit"):
            with pytest.raises(InvalidInput, match="as a whole"):
                await memory.decide("proposal", verb, text="Something else.")
        await memory.decide("proposal", "later", days=3)
        assert await memory.review() == []
        await memory.decide("proposal", "later", days=0)
        assert not (place_of(root) / "workspace" / "MEMORY.md").exists()
        await memory.decide("proposal", "accept")
        assert await memory.review(kinds=["proposal"]) == []
        assert "only from main" in (place_of(root) / "workspace" / "MEMORY.md").read_text(encoding="utf-8")
        await memory.undo()
        assert not (place_of(root) / "workspace" / "MEMORY.md").exists()
        with pytest.raises(EntryNotFound):
            await memory.decide("proposal", "accept")
    await hold("two")
    async with Memory.open(root, scope=SCOPE, settings=given) as memory:
        assert [doubt.kind for doubt in await memory.review()] == ["proposal"]
        await memory.decide("proposal", "reject")
        assert await memory.review() == []
        assert not (place_of(root) / "workspace" / "MEMORY.md").exists()


@pytest.mark.may_block("the command line is run inside of the test")
def test_the_commands_that_look_after_memory_count_what_is_doubtful_and_say_what_decides_it() -> None:
    ricordo("remember", "A rule.")
    root = Path(ricordo("--json").document["root"])
    (place_of(root) / "workspace" / "MEMORY.md").write_text(LINES, encoding="utf-8")
    counts = {"duplicate": 1, "fragment": 1, "noise": 1}
    assert ricordo("--json").document["doubts"] == counts
    for command in ([], ["consolidate"], ["maintain"]):
        shown = " ".join(ricordo(*command).out.split())
        assert "1 duplicate, 1 fragment, 1 noise; `ricordo review` walks through them" in shown
    for command in (["consolidate"], ["maintain"]):
        assert ricordo(*command, "--json").document["doubts"] == counts
    notes = [line.split()[1] for line in ricordo("doctor").out.splitlines() if line.startswith("  note")]
    assert {"repeated", "fragments", "noise"} <= set(notes)
    ricordo("review", "reject", NOISE)
    assert ricordo("--json").document["doubts"] == {"duplicate": 1, "fragment": 1}


@pytest.mark.may_block("the command line is run inside of the test")
def test_one_key_each_decides_what_is_doubtful_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    ricordo("remember", "A rule.")
    root = Path(ricordo("--json").document["root"])
    noise = "- The {} was quiet near the shed of the {}. [by:: flush] [at:: 2026-11-01T08:00:00Z] [confidence:: 0.5]"
    ids = [f"01k6yvgewd8dp5gr1g9vsf{number:04}" for number in range(len(WORDS))]
    lines = [f"{noise.format(word, word)} ^{name}" for word, name in zip(WORDS, ids, strict=True)]
    (place_of(root) / "workspace" / "MEMORY.md").write_text("\n".join(["# Memory", "", *lines, ""]), encoding="utf-8")
    pressed = iter(["x", "a", "r", "m", "e", "l", "s", "R", "q"])
    terminal = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
    with monkeypatch.context() as patch:
        patch.setattr("typer.getchar", lambda echo: next(pressed))
        patch.setattr("typer.prompt", lambda text, default: default.replace("quiet", "loud"))
        patch.setattr("ricordo.cli.commands.remember.sys", terminal)
        shown = ricordo("review").out
    decided = ["Accepted", "Rejected", "Edited", "Put off", "Rejected"]
    assert re.findall(r"^(Accepted|Rejected|Merged|Edited|Put off) ", shown, re.MULTILINE) == decided
    assert "nothing to merge it with" in shown
    assert f"8 of {len(WORDS)}" in shown
    assert f"9 of {len(WORDS)}" not in shown
    left = {each["id"] for each in ricordo("review", "--json").document["doubts"]}
    assert left == {ids[2], ids[5], *ids[7:]}
    entries = {each["id"]: each for each in ricordo("memory", "list", "--json").document["entries"]}
    assert entries[ids[3]]["content"].startswith("The dogwood was loud")
    assert [entries[name]["confirmed"] is not None for name in (ids[0], ids[3], ids[4])] == [True, True, False]
    assert not {ids[1], ids[6]} & entries.keys()
