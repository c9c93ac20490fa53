"""A legal hold keeps what it covers from every deletion, and says who holds it and how it is lifted."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from agents_at_work import said
from command_line import ricordo
from hand_clock import HandClock
from ricordo import Entry, Memory, Scope
from ricordo.errors import InvalidSetting, LegalHold
from ricordo.runtime import Settings

pytestmark = [pytest.mark.req("HE-O-retention"), pytest.mark.may_block("the test looks at files")]

SHOP = Scope(user="me", project="shop")
RULE = "tag=case-7: hold by Legal, Nadia"
HERON = "We decided that the staging server is called heron8123."
Act = Callable[[Memory, Entry], Awaitable[object]]


def set_rules(root: Path, *rules: str) -> None:
    (root / "config.toml").write_text(f"[retention]\nrules = {json.dumps(rules)}\n", encoding="utf-8")


def documents(root: Path) -> dict[str, bytes]:
    """Return the files of memory, and those of sessions, by path."""
    return {str(path): path.read_bytes() for path in root.rglob("*") if "/workspace/" in f"{path}/" and path.is_file()}


async def _prepare(root: Path, *rules: str) -> tuple[Entry, Entry]:
    async with Memory.open(root, scope=SHOP) as memory:
        held = await memory.remember("The contract lies in the blue safe.", tags=["case-7"])
        free = await memory.remember("The tea is in the kitchen.", tags=["tea"])
    set_rules(root, *rules)
    return held, free


@pytest.mark.anyio
@pytest.mark.parametrize(
    "act",
    [
        lambda memory, held: memory.forget(held.id),
        lambda memory, held: memory.forget(held.id, by="agent"),
        lambda memory, held: memory.erase(held.id),
        lambda memory, held: memory.erase(text="the blue safe"),
        lambda memory, held: memory.delete_all(tags=["case-7"]),
        lambda memory, held: memory.delete_all(),
        lambda memory, held: memory.undo(held.id),
    ],
)
async def test_no_deletion_takes_what_is_held_and_nothing_is_changed_by_trying(tmp_path: Path, act: Act) -> None:
    root = tmp_path / "r"
    held, free = await _prepare(root, RULE)
    async with Memory.open(root, scope=SHOP) as memory:
        before = documents(root)
        with pytest.raises(LegalHold) as told:
            await act(memory, held)
        assert held.id in str(told.value)
        assert "Legal, Nadia holds it" in str(told.value)
        assert f'"{RULE}"' in str(told.value)
        assert "remove that rule from `retention.rules` in config.toml" in str(told.value)
        assert documents(root) == before
        assert {each.id for each in await memory.entries()} == {held.id, free.id}
        assert (await memory.recall("blue safe"))[0].entry is not None
        # what the hold does not cover goes as ever
        await memory.forget(free.id)
        await memory.erase(free.id)
    set_rules(root)
    async with Memory.open(root, scope=SHOP) as memory:
        await act(memory, held)
        assert "blue safe" not in repr(await memory.entries())


@pytest.mark.anyio
async def test_a_pin_makes_no_way_around_a_hold_and_a_forgotten_memory_stays_to_be_restored(tmp_path: Path) -> None:
    root = tmp_path / "r"
    held, free = await _prepare(root)
    async with Memory.open(root, scope=SHOP) as memory:
        await memory.pin(held.id)
        await memory.forget(free.id)
    set_rules(root, RULE, "tag=tea: hold by Legal")
    async with Memory.open(root, scope=SHOP) as memory:
        with pytest.raises(LegalHold):
            await memory.forget(held.id)
        with pytest.raises(LegalHold):
            await memory.erase(free.id)
        await memory.undo()
        assert free.id in {each.id for each in await memory.entries()}


async def _made(root: Path) -> Path:
    async with Memory.open(root, scope=SHOP):
        return root


@pytest.mark.anyio
async def test_what_says_the_same_in_another_scope_stays_too(tmp_path: Path) -> None:
    root = tmp_path / "r"
    set_rules(await _made(root), RULE)
    async with Memory.open(root, scope=SHOP) as memory:
        await memory.ingest([said(HERON)], session="one")
        copies = [each.id for each in await memory.entries()]
        held = await memory.remember(HERON, scope="project", tags=["case-7"])
        before = await memory.history()
        with pytest.raises(LegalHold):
            await memory.forget(held.id)
        assert [each.id for each in await memory.history()] == [each.id for each in before]
        assert {held.id, *copies} == {each.id for each in await memory.entries()}


@pytest.mark.anyio
async def test_a_refused_clearing_stops_no_learning(tmp_path: Path) -> None:
    root = tmp_path / "r"
    async with Memory.open(root, scope=SHOP) as memory:
        await memory.ingest([said(HERON)], session="one")
        kind = (await memory.entries())[0].kind
        (cursor,) = memory.folder.rglob("*cursor*")
    cursor.unlink()
    set_rules(root, f"kind={kind}: hold by Legal")
    async with Memory.open(root, scope=SHOP, background=False) as memory:
        with pytest.raises(LegalHold):
            await memory.delete_all()
        assert not cursor.exists()


@pytest.mark.anyio
async def test_a_session_stays_with_what_it_alone_supports_and_work_on_it_goes_on(tmp_path: Path) -> None:
    root = tmp_path / "r"
    async with Memory.open(root, scope=SHOP) as memory:
        await memory.ingest([said(HERON)], session="one")
        (learned,) = await memory.entries()
    for rule, covers_learned in ((f"kind={learned.kind}: hold by Legal", True), ("transcripts: hold by Legal", False)):
        set_rules(root, rule)
        async with Memory.open(root, scope=SHOP) as memory:
            before = documents(root)
            with pytest.raises(LegalHold, match="Legal"):
                await memory.delete_session("one", cascade=True)
            assert documents(root) == before
            if not covers_learned:
                with pytest.raises(LegalHold, match="transcript of one"):
                    await memory.erase(text="heron8123")
            assert [each.session for each in await memory.sessions()] == ["one"]
    set_rules(root)
    async with Memory.open(root, scope=SHOP) as memory:
        assert [each.id for each in (await memory.delete_session("one", cascade=True)).entries] == [learned.id]


def test_the_command_says_who_holds_it(tmp_path: Path) -> None:
    root = tmp_path / "r"
    saved = ricordo("remember", "The contract lies in the blue safe.", "--tag", "case-7", "--root", root, "--json")
    (number,) = [each["id"] for each in ricordo("memory", "list", "--root", root, "--json").document["entries"]]
    assert saved.code == 0
    set_rules(root, RULE)
    for words in (["forget", number], ["erase", number, "--yes"], ["erase", "--text", "blue safe", "--yes"]):
        done = ricordo(*words, "--root", root)
        assert (done.code, "Legal, Nadia holds it" in done.err) == (1, True), done
        assert json.loads(ricordo(*words, "--root", root, "--json").out)["error"] == "LegalHold"
    assert ricordo("memory", "list", "--root", root, "--json").document["total"] == 1


def _long_ago(root: Path, memories: list[tuple[str, str]]) -> list[str]:
    """Save memories with a tag each, a day after another, and return their ids."""

    async def save() -> list[str]:
        clock = HandClock(datetime.now(UTC) - timedelta(days=400))
        async with Memory.open(root, scope=Scope(project="shop"), clock=clock) as memory:
            ids = []
            for content, tag in memories:
                ids.append((await memory.remember(content, tags=[tag])).id)
                clock.turn(86_400)
            return ids

    return anyio.run(save)


def test_retention_by_age_number_and_size_spares_what_is_held_and_leaves_an_audit_line_for_each() -> None:
    root = Path(".ricordo")
    old, held, *logs = _long_ago(
        root,
        [
            ("The lift is broken.", "errand"),
            ("The lawyer has a key.", "case-7"),
            *((f"Log {number}: {'tea ' * 150}".strip(), "log") for number in range(4)),
            ("First note.", "note"), ("Second note.", "note"), ("Third note.", "note"),
        ],
    )  # fmt: skip
    logs, notes = logs[:4], logs[4:]
    rules = [
        "kind=fact: hold by Archive", "tag=errand: delete after 6 months", "tag=case-7: delete after 6 months",
        "tag=log: keep the newest 2 kB", "tag=note: keep newest 1.", "tag=case-7: hold by Legal",
    ]  # fmt: skip
    # without the first, which holds all of it
    set_rules(root, *rules)
    assert not [row for row in ricordo("maintain", "--dry-run", "--json").document["old"] if "memory " in row["path"]]
    set_rules(root, *rules[1:])
    due = {old: rules[1], logs[0]: rules[3], notes[0]: rules[4], notes[1]: rules[4]}
    listed = ricordo("maintain", "--dry-run", "--json").document["old"]
    assert {row["path"].removeprefix("memory "): row["rule"] for row in listed if row["action"] == "forget"} == due
    assert ricordo("maintain", "--seconds", "60").code == 0
    left = {each["id"] for each in ricordo("memory", "list", "--json").document["entries"]}
    assert left == {held, *logs[1:], notes[2]}
    lines = ricordo("audit", "--act", "forget", "--json").document["records"]
    assert sorted(name for line in lines for name in line["ids"]) == sorted(due)
    assert {line["by"] for line in lines} == {"retention"}
    # each is a change of its own, with its rule
    reasons = [row["reason"] for row in ricordo("history", "--json").document["changes"] if row["action"] == "forget"]
    assert sorted(reasons) == sorted(due.values())


def test_the_trash_is_not_emptied_while_something_is_held() -> None:
    root = Path(".ricordo")
    _long_ago(root, [("The lift is broken.", "errand")])
    trashed = root / "trash" / "2026-01-01" / "sessions" / "one.md"
    trashed.parent.mkdir(parents=True)
    trashed.write_text("# A session\n")
    for rules, stays in (((RULE, "tag=errand: delete after 6 months"), True), ((), False)):
        set_rules(root, *rules)
        listed = ricordo("maintain", "--dry-run", "--json").document["old"]
        assert ("one.md" in str(listed)) is not stays
        ricordo("maintain", "--seconds", "60")
        # the rest of the maintenance goes on
        assert ricordo("memory", "list", "--json").document["total"] == 0
        assert trashed.is_file() is stays


def test_a_held_transcript_outlives_the_rule_that_deletes_it() -> None:
    root = Path(".ricordo")

    async def ingest() -> None:
        clock = HandClock(datetime.now(UTC) - timedelta(days=400))
        async with Memory.open(root, scope=Scope(project="shop"), clock=clock) as memory:
            await memory.ingest([replace(said(HERON), time=clock.now())], session="one")

    anyio.run(ingest)
    for rules, stays in ((("transcripts: hold by Legal",), True), ((), False)):
        set_rules(root, "transcripts: delete after 1 day", *rules)
        listed = ricordo("maintain", "--dry-run", "--json").document["old"]
        assert ("transcript one" in str(listed)) is not stays
        ricordo("maintain", "--seconds", "60")
        transcripts = [path for path in root.rglob("*.jsonl") if b"heron8123" in path.read_bytes()]
        assert any("trash" not in path.parts for path in transcripts) is stays


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (": hold by Legal", "would hold everything"),
        ("tag=a: hold by", "is no rule"),
        ("tag=a: keep the newest 0", "deletes at once"),
        ("transcripts: keep the newest 5", "by their age alone"),
        ("tag=a: keep the newest 5 GB", "is no rule"),
    ],
)
def test_a_rule_that_can_not_be_used_is_refused_with_the_reason(rule: str, told: str) -> None:

    Path(".ricordo").mkdir()
    set_rules(Path(".ricordo"), rule)
    with pytest.raises(InvalidSetting, match=told):
        Settings.load(Path(".ricordo"), {}, trusted=True)
