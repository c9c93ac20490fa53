"""Rules of retention: only what a rule names goes, when its time is over, and a dry run says so first."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, settings
from command_line import ricordo
from hand_clock import HandClock
from places import place_of
from ricordo import Entry, HarnessAgent, Memory, Scope
from ricordo.clock import MonotonicIds
from ricordo.curation.config import RetentionConfig, find_expired_memories, parse_rule
from ricordo.curation.retention import apply_retention, plan_retention
from ricordo.errors import InvalidSetting
from ricordo.guard import Redactor
from ricordo.messages import Message, Text, encode_message
from ricordo.storage.local import LocalFiles
from ricordo.testing import Call, InMemoryFiles, Say, ScriptedModel
from ricordo.workspace import (
    ChangeSets,
    Source,
    compactions_path,
    cursor_path,
    ledger_path,
    state_path,
    transcript_path,
)
from ricordo.workspace.layout import USAGE
from ricordo.workspace.ledger import append_block, render_block

pytestmark = pytest.mark.req("HE-O-retention")

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
KEY = b"k" * 32


def memory(content: str, days: int, **more: Any) -> Entry:
    return Entry(content=content, id=f"01jd{abs(hash(content)) % 10**22:022}", time=NOW - timedelta(days=days), **more)


def left(entries: Sequence[Entry], *rules: str) -> list[str]:
    """Return what stays."""
    gone = find_expired_memories(
        [(entry, None, None) for entry in entries], RetentionConfig(rules=rules).parsed_rules, now=NOW
    )
    return [entry.content for entry in entries if entry.content not in {each.entry.content for each in gone}]


@pytest.mark.req("HE-O-retention")
def test_a_memory_goes_when_it_meets_every_condition_of_a_rule_and_its_time_is_over() -> None:
    errand = memory("Buy milk", 200, tags=("errand",))
    others = [
        memory("Buy tea", 100, tags=("errand",)),
        memory("We use uv", 900),
        memory("Call Ana", 300, kind="goal", tags=("errand",)),
        memory("Pinned", 900, tags=("errand",), pinned=True),
        Entry(content="by hand, without a time", tags=("errand",)),
    ]
    assert left([errand, *others], "kind=fact tag=#errand: delete after 6 months") == [each.content for each in others]
    assert left([errand, *others]) == [each.content for each in [errand, *others]]


@pytest.mark.req("HE-O-retention")
def test_a_scope_names_whose_memories_go() -> None:
    mine, guests = memory("Mine", 40, scope=Scope(user="me")), memory("Theirs", 40, scope=Scope(user="guest"))
    assert left([mine, guests], "user=guest: delete after 30 days.") == ["Mine"]


def test_a_rule_may_name_several_kinds_and_all_its_tags_and_parts_of_a_scope_have_to_be_met() -> None:
    entries = [
        memory("One tag", 40, kind="person", tags=("a",)),
        memory("Both tags", 40, kind="person", tags=("b", "a", "c")),
        memory("A goal", 40, kind="goal"),
        memory("A lesson", 40, kind="lesson"),
        memory("My shop", 40, kind="person", scope=Scope(tenant="t", user="me", project="shop")),
        memory("My bank", 40, kind="person", scope=Scope(team="red", user="me", project="bank", agent="main")),
        memory("Your shop", 40, kind="person", scope=Scope(user="you", project="shop")),
    ]
    goes = {
        "tag=a tag=#b": ["Both tags"],
        "kind=goal kind=lesson": ["A goal", "A lesson"],
        "user=me": ["My shop", "My bank"],
        "project=shop": ["My shop", "Your shop"],
        "user=me project=shop": ["My shop"],
        "project=shop user=me": ["My shop"],
        "tenant=t": ["My shop"],
        "team=red": ["My bank"],
        "agent=main": ["My bank"],
        "kind=goal project=shop": [],
    }
    for conditions, gone in goes.items():
        stays = left(entries, f"{conditions}: delete after 30 days")
        assert [each.content for each in entries if each.content not in stays] == gone, conditions


def test_a_time_is_in_days_weeks_months_or_years() -> None:
    for unit, days in (("day", 1), ("week", 7), ("month", 30), ("year", 365)):
        entries = [memory("Stays", 2 * days), memory("Goes", 2 * days + 1)]
        assert left(entries, f"kind=fact: delete after 2 {unit}s") == ["Stays"]


def test_the_first_rule_that_a_memory_meets_decides() -> None:
    entry = memory("Keep longer", 40, tags=("law",))
    assert left([entry], "tag=law: delete after 2 years", "kind=fact: delete after 30 days") == ["Keep longer"]


@pytest.mark.req("HE-O-retention")
@pytest.mark.parametrize(
    ("unless", "accessed", "confirmed", "goes"),
    [
        ("", 1, 1, True),
        (" unless accessed", 1, None, False),
        (" unless accessed", 40, None, True),
        (" unless confirmed", 1, None, True),
        (" unless confirmed", 1, 1, False),
    ],
)
def test_being_used_or_confirmed_begins_the_time_anew_where_the_rule_says_so(
    unless: str, accessed: int | None, confirmed: int | None, *, goes: bool
) -> None:
    known = [None if days is None else NOW - timedelta(days=days) for days in (accessed, confirmed)]
    rule = parse_rule(f"kind=fact: delete after 30 days{unless}")
    assert bool(find_expired_memories([(memory("A fact", 50), known[0], known[1])], [rule], now=NOW)) == goes


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        ("delete everything", "no rule"),
        (": delete after 3 days", "would delete everything"),
        ("colour=red: delete after 3 days", "'colour=red' is no condition"),
        ("kind=fact: delete after 0 days", "at least a day"),
        ("transcripts: delete after 1 year unless accessed", "not accessed"),
        ("kind=fact: keep after 3 days", "write it like"),
    ],
)
def test_a_rule_that_is_none_is_refused_with_how_it_is_written(rule: str, wrong: str) -> None:
    with pytest.raises(InvalidSetting, match=wrong):
        RetentionConfig(rules=(rule,))


@pytest.mark.req("AS-MAINT-04")
@pytest.mark.anyio
async def test_what_goes_is_what_was_listed_and_a_pinned_or_used_memory_stays() -> None:
    files, clock = InMemoryFiles(), HandClock(NOW)
    changes = ChangeSets(files, clock=clock, ids=MonotonicIds(clock))
    used, unused = memory("The wifi is slow", 300), memory("The lift is broken", 300)
    confirmed = memory("The door sticks", 300)
    await append_block(files, await render_block(files, NOW.date(), [used, unused, confirmed], Redactor(KEY)))
    for act, entry in (("used", used), ("confirmed", confirmed)):
        line = f'{{"at": "2026-11-20T08:00:00.000Z", "act": "{act}", "ids": ["{entry.id}"], "how": "get"}}\n'
        await files.append(USAGE, line.encode())
    rules = RetentionConfig(rules=("kind=fact: delete after 6 months unless accessed",)).parsed_rules
    listed = await plan_retention(files, rules, now=NOW)
    gone = await apply_retention(files, changes, rules, now=NOW, key=KEY)
    assert [each.entry.content for each in gone.memories] == ["The lift is broken"]
    assert [each.entry.id for each in listed.memories] == [each.entry.id for each in gone.memories]
    ledger = (await files.read(ledger_path(NOW.date()))).data
    assert b"wifi" in ledger
    assert b"door" in ledger
    assert b"lift" not in ledger
    [change] = await changes.list_changes()
    assert (change.action, change.actor, change.reason) == ("forget", "retention", rules[0].text)
    assert (await apply_retention(files, changes, rules, now=NOW, key=KEY)).memories == []


@pytest.mark.req("AS-BUG-31", "HE-T1", "AS-MAINT-04", "AS-BUG-28")
@pytest.mark.anyio
@pytest.mark.parametrize("folder", [None, "/kept/wide"])
async def test_a_transcript_goes_with_all_that_belongs_to_it_and_leaves_no_row_behind(
    tmp_path: Path, folder: str | None
) -> None:
    root, clock = tmp_path / ".ricordo", HandClock(NOW)

    def agent(session: str, **more: Any) -> HarnessAgent:
        model = ScriptedModel(lambda request: Say(f"Reply {request.number}."))
        return HarnessAgent(
            model,
            **agent_arguments(
                workspace=root, scope=SCOPE, session=session, clock=clock, settings=settings(root), **more
            ),
        )

    for session in ("old", "new"):
        async with agent(session) as one:
            await one.send(f"The zeppelin of {session} flies.")
            mast = Entry(content=f"The mooring mast of {session} is tall.", source=Source(session=session))
            await one.store.save(mast)
        clock.turn(days=400)
    evicted = place_of(root) / "workspace" / (folder or "large_tool_results").strip("/") / "old"
    evicted.mkdir(parents=True)
    for digest in ("0123456789abcdef", "fedcba9876543210"):
        (evicted / f"shell-{digest}.txt").write_text("wide", encoding="utf-8")
    quoted = place_of(root) / state_path("main", "new")
    told = json.loads(quoted.read_bytes())
    told["window"][0]["parts"][0]["text"] = f"See {evicted.name}/shell-fedcba9876543210.txt."
    quoted.write_text(json.dumps(told))
    files = LocalFiles(place_of(root))
    changes = ChangeSets(files, clock=clock, ids=MonotonicIds(clock))
    rules = RetentionConfig(rules=("transcripts: delete after 2 years",)).parsed_rules
    done = await apply_retention(files, changes, rules, now=clock.now(), key=KEY, eviction_path=folder)
    [gone] = done.sessions
    assert gone.session == "old"
    for path in (transcript_path("main", "old"), state_path("main", "old"), cursor_path("main", "old")):
        assert path in gone.files
        assert not (place_of(root) / path).exists()
    assert [path.name for path in evicted.iterdir()] == ["shell-fedcba9876543210.txt"], "another session shows it"
    assert (place_of(root) / transcript_path("main", "new")).exists()
    async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
        assert [info.session for info in await memory.sessions()] == ["new"]
        saved = {entry.source.session: entry.content for entry in await memory.entries()}
        assert saved == {name: f"The mooring mast of {name} is tall." for name in ("old", "new")}
        found = " ".join(hit.entry.content for hit in await memory.search("zeppelin flies", limit=20))
        assert "zeppelin of new" in found
        assert "zeppelin of old" not in found
    model = ScriptedModel([Call("session_list"), Say("That is all.")])
    async with HarnessAgent(
        model, memory=root, scope=SCOPE, session="look", clock=clock, settings=settings(root)
    ) as one:
        await one.send("Which sessions are there?")
    [listed] = [each.text for message in model.requests[-1].messages for each in message.tool_results]
    assert "new" in listed
    assert "old" not in listed
    with closing(sqlite3.connect(place_of(root) / "memory_index.db")) as index:
        held = " ".join(str(text) for row in index.execute("SELECT * FROM chunk") for text in row)
    assert "zeppelin of new" in held
    assert "zeppelin of old" not in held
    [record] = [each for each in await changes.list_changes() if each.action == "prune"]
    assert (record.actor, record.reason) == ("retention", "transcripts: delete after 2 years")


@pytest.mark.req("AS-BUG-31", "HE-O-retention")
@pytest.mark.anyio
@pytest.mark.parametrize("others", [False, True])
async def test_results_of_a_session_that_another_agent_goes_on_with_stay(others: bool) -> None:
    files, wide = InMemoryFiles(), "workspace/large_tool_results/s/shell-0123456789abcdef.txt"
    await files.create(wide, b"wide")
    agents = {"main": NOW - timedelta(days=900), **({"helper": NOW - timedelta(days=1)} if others else {})}
    for agent, time in agents.items():
        said = Message(role="user", parts=(Text(text="Hello."),), id="m", time=time)
        await files.create(transcript_path(agent, "s"), encode_message(said))
    rules = [parse_rule(f"transcripts: delete after {years} years") for years in (9, 2)]
    [gone] = (await plan_retention(files, rules, now=NOW)).sessions
    assert gone.rule == rules[1]
    assert gone.files == (transcript_path("main", "s"), *(() if others else (wide,)))


@pytest.mark.req("AS-BUG-31")
@pytest.mark.anyio
@pytest.mark.parametrize("path", [state_path, compactions_path])
async def test_results_that_another_session_refers_to_stay_and_the_others_go(path: Callable[[str, str], str]) -> None:
    files = InMemoryFiles()
    wide = [f"workspace/large_tool_results/s/shell-{number:016x}.txt" for number in (1, 2)]
    for name in wide:
        await files.create(name, b"wide")
    for session, days in (("s", 900), ("later", 1)):
        said = Message(role="user", parts=(Text(text="Hello."),), id="m", time=NOW - timedelta(days=days))
        await files.create(transcript_path("main", session), encode_message(said))
    await files.create(path("main", "later"), f'{{"shown": "/{wide[0].removeprefix("workspace/")}"}}\n'.encode())
    [gone] = (await plan_retention(files, [parse_rule("transcripts: delete after 2 years")], now=NOW)).sessions
    assert gone.files == (transcript_path("main", "s"), wide[1])


@pytest.mark.req("HE-O-retention")
def test_a_rule_of_the_settings_is_shown_by_a_dry_run_and_done_by_maintenance_alone() -> None:
    root = Path(".ricordo")

    async def long_ago() -> list[Entry]:
        clock = HandClock(NOW - timedelta(days=900))
        async with Memory.open(root, scope=Scope(project="shop"), clock=clock) as past:
            return [
                await past.remember("The lift is broken.", tags=("errand",)),
                await past.remember("Paint the shed.", kind="goal"),
                await past.remember("The wifi is slow.", tags=("errand",)),
                await past.remember("We deploy only from main.", tags=("law",)),
            ]

    saved, goal, used, kept = anyio.run(long_ago)
    ricordo("memory", "show", used.id)
    rules = [
        "tag=errand: delete after 6 months unless accessed",
        "project=shop kind=goal: delete after 2 years",
        "project=bank: delete after 1 day",
    ]
    (root / "config.toml").write_text(f"[retention]\nrules = {rules}\n", encoding="utf-8")
    ricordo("consolidate")
    before = sorted(path.read_bytes() for path in (place_of(root) / "workspace").rglob("*.md"))
    listed = ricordo("maintain", "--dry-run", "--json").document["old"]
    assert [each for each in listed if each["path"].startswith("memory ")] == [
        {"path": f"memory {each.id}", "action": "forget", "rule": rule}
        for each, rule in zip((saved, goal), rules, strict=False)
    ]
    assert not any(each.id in str(listed) for each in (used, kept))
    assert sorted(path.read_bytes() for path in (place_of(root) / "workspace").rglob("*.md")) == before
    ricordo("maintain")
    contents = {each["content"] for each in ricordo("memory", "list", "--json").document["entries"]}
    assert contents == {"We deploy only from main.", "The wifi is slow."}
