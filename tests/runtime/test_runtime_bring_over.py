"""A root whose users shared one workspace: what is stamped goes to its user, once, whoever is killed meanwhile."""

import errno
import json
import os
import shutil
import signal
import sqlite3
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from anyio.to_thread import run_sync

from disks import FailingDisk, StepDisk
from piped_processes import start_script
from places import place_of
from ricordo import BuiltinTools, Entry, HarnessAgent, Memory, Scope
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.errors import StorageError, StorageReadOnly
from ricordo.guard import Redactor
from ricordo.jobs import Inbox, Job
from ricordo.messages import Message, Text
from ricordo.runtime.doctor import Check
from ricordo.storage import ABSENT, Disk
from ricordo.storage.local import LocalFiles
from ricordo.testing import Call, Say, ScriptedModel
from ricordo.workspace import (
    MEMORY_PATH,
    TOMBSTONES,
    AgentState,
    FileStateStore,
    PlanState,
    Source,
    Transcript,
    WorkState,
    append_entries,
    render_entry,
    transcript_path,
)
from ricordo.workspace.history.usage import read_usage

pytestmark = pytest.mark.anyio

SHOP = Scope(project="shop")
NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
DAY = date(2026, 11, 21)
REDACTOR = Redactor(bytes(32))
PRIVATE = {"ann": "Ann earns heron euros.", "ben": "Ben earns walrus euros."}
LONG = "The long story of the okapi. " * 200


def of(user: str) -> Scope:
    return Scope(user=user, project="shop")


def entry(number: int, content: str, user: str = "", **more: object) -> Entry:
    given = Entry(
        content=content, id=f"{number:026}", time=NOW, kind="decision", scope=Scope(user=user) if user else None
    )
    return replace(given, **more)  # type: ignore[arg-type]


ENTRIES = [
    entry(1, PRIVATE["ann"], "ann", source=Source(session="monday")),
    entry(2, PRIVATE["ben"], "ben", source=Source(session="ingested")),
    entry(3, "We deploy only from main."),
    entry(4, "We use uv for all packages.", "ann"),
    entry(5, "All packages come by uv.", "ben"),
    entry(6, LONG, "ann"),
]


class ReadOnlyDisk(StepDisk):
    """A disk to which nothing can be written but an index, which lies elsewhere then."""

    def __init__(self) -> None:
        def refuse(_: int) -> None:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

        super().__init__(refuse)

    def commit(self, connection: sqlite3.Connection) -> None:
        Disk.commit(self, connection)


async def old_root(root: Path, users: tuple[str, ...] = ("ann", "ben")) -> None:
    """Make a root as it was before users were apart: entries, topics, sessions, profiles and a history."""
    async with Memory.open(root, scope=SHOP) as memory:
        gone = await memory.remember("Ann's first word was gecko.")
        await memory.forget(gone.id)
    marker = json.loads((root / "project.json").read_text())
    (root / "project.json").write_text(json.dumps(marker | {"version": 1}))
    files = LocalFiles(root)
    known = [one for one in ENTRIES if one.scope is None or one.scope.user in users]
    await append_entries(files, DAY, known, REDACTOR)
    ann, ben, shared, mixed, _, _ = ENTRIES
    mixed = replace(mixed, extra=(("merged", ENTRIES[4].id),)) if "ben" in users else mixed
    curated = [one for one in (ann, ben, shared, mixed) if one in known or one is mixed]
    bullets = "".join(map(render_entry, curated[:-1] if "ben" not in users else curated))
    (root / "workspace" / "memory" / "topics").mkdir(parents=True, exist_ok=True)
    listed = f"1. [Pay](memory/topics/pay.md): {PRIVATE['ann']}\n"
    (root / "workspace" / "MEMORY.md").write_text(f"# Memory\n\n## Decisions\n\n{bullets}\n## Topics\n\n{listed}")
    front = f'---\nname: "Pay"\ndescription: "{PRIVATE["ann"]}"\ntype: "project"\n---\n# Pay\n\n'
    (root / "workspace" / "memory" / "topics" / "pay.md").write_text(front + render_entry(ann))
    for user in users:
        folder = root / "workspace" / "users" / user
        (folder / "agents" / "coder").mkdir(parents=True)
        fact = {
            "id": "f1",
            "content": f"{PRIVATE[user]} Told to the profile.",
            "category": "context",
            "confidence": 0.9,
        }
        (folder / "profile.json").write_text(json.dumps({"version": "1.0", "facts": [fact]}))
        (folder / "agents" / "coder" / "profile.json").write_text(json.dumps({"version": "1.0", "facts": []}))
    said = Message(role="user", parts=(Text(text=f"I say it again: {PRIVATE['ann']}"),), time=NOW)
    await Transcript(files, transcript_path("main", "monday"), session="monday", redactor=REDACTOR).append([said])
    await of_sessions(root, users)
    results = root / "workspace" / "large_tool_results" / "monday"
    results.mkdir(parents=True)
    (results / "grep-1.txt").write_text(PRIVATE["ann"])
    if "ben" in users:
        told = Message(role="user", parts=(Text(text=f"I say it again: {PRIVATE['ben']}"),), time=NOW)
        path = transcript_path("main", "ingested")
        await Transcript(files, path, session="ingested", redactor=REDACTOR).append([told])


async def of_sessions(root: Path, users: tuple[str, ...]) -> None:
    """Add what stands beside the sessions of these users: states, plans, notes, usage, and work that waits."""
    states = FileStateStore(LocalFiles(root), REDACTOR)
    for user, session in (("ann", "monday"), ("ann", "tuesday"), ("ben", "ingested")):
        if user in users:
            plan = PlanState(path="plans/pay.md" if session == "monday" else "plans/both.md")
            state = AgentState(agent="main", session=session, user=user, work_state=WorkState(plan=plan))
            await states.save(state, expected=ABSENT)
    for name in ("plans/pay.md", "plans/both.md", "plans/other.md", "memories/note.md"):
        path = root / "workspace" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# {name}\n")
    lines = [{"at": "2026-11-20T08:00:00.000Z", "act": "used", "how": "recall", "ids": [one.id]} for one in ENTRIES[:3]]
    lines.append({**lines[0], "ids": [one.id for one in ENTRIES[:3]]})
    (root / "workspace" / "usage.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    async with waiting_in(root) as inbox:
        await inbox.put(Job(kind="flush", agent="main", session="monday", not_before=NOW + timedelta(days=90)))
        await inbox.put(Job(kind="flush", agent="main", session="other", user=users[-1]))
        await inbox.put(Job(kind="reindex", not_before=NOW + timedelta(days=90)))


@asynccontextmanager
async def waiting_in(folder: Path) -> AsyncIterator[Inbox]:
    clock = SystemClock()
    inbox = Inbox(folder / "queue.db", clock=clock, ids=MonotonicIds(clock))
    try:
        yield inbox
    finally:
        await inbox.close()


async def jobs_of(folder: Path) -> list[tuple[str, str, bool]]:
    async with waiting_in(folder) as inbox:
        found = await inbox.jobs(states={"waiting"})
    return sorted((one.job.kind, one.job.session, one.job.not_before is not None) for one in found)


def shared_text(root: Path) -> str:
    """Return all that stands in the shared workspace and in the history beside it."""
    found = [path for folder in ("workspace", "history") for path in (root / folder).rglob("*") if path.is_file()]
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in found)


async def test_what_is_stamped_goes_to_its_user_and_the_rest_stays_shared(tmp_path: Path) -> None:
    root = tmp_path / "r"
    await old_root(root)
    for user, other in (("ann", "ben"), ("ben", "ann")):
        async with Memory.open(root, scope=of(user)) as memory:
            told = repr([await memory.entries(), await memory.search("earns", limit=50), await memory.preamble()])
            assert PRIVATE[user] in told
            assert PRIVATE[other] not in told
            assert "We deploy only from main." in told
            assert "We use uv for all packages." in told
            assert (PRIVATE[user] in (await memory.profile().export_document())) is True
            assert [info.session for info in await memory.sessions()] == [{"ann": "monday", "ben": "ingested"}[user]]
            words = "I say it again"
            [hit] = [hit for hit in await memory.search(words, limit=20) if words in hit.entry.content]
            assert hit.source == "project"
            if user == "ann":
                assert LONG.strip() in {one.content.strip() for one in await memory.entries()}
                assert (place_of(root, "ann") / "workspace/agents/coder/profile.json").is_file()
    for private in (*PRIVATE.values(), "okapi", "gecko"):
        assert private not in shared_text(root)
    async with Memory.open(root, scope=SHOP) as project:
        assert {one.id for one in await project.entries()} == {ENTRIES[2].id, ENTRIES[3].id}
        assert [item.entries for item in await project.history()] == [(ENTRIES[2].id,)]


def holding(root: Path, words: str) -> set[str]:
    """Return the files below the root that hold these words, compressed or not."""
    found = set()
    for path in root.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        data += zlib.decompress(data) if path.suffix == ".z" else b""
        found |= {path.relative_to(root).as_posix()} if words.encode() in data else set()
    return found


async def test_what_is_erased_leaves_what_the_root_held_before_too_also_what_is_compressed_there(
    tmp_path: Path,
) -> None:
    root = tmp_path / "r"
    await old_root(root)
    forgotten = json.loads((root / TOMBSTONES).read_text().splitlines()[0])["id"]
    async with Memory.open(root, scope=of("ann")) as memory:
        before = {path: (root / path).read_bytes() for path in holding(root, PRIVATE["ben"])}
        assert {Path(path).parts[0] for path in before} == {"before-users", "users"}
        [compressed] = holding(root, "gecko") - {"memory_index.db"}
        assert compressed.startswith("before-users/history/objects/")
        for gone, words in ((ENTRIES[0].id, PRIVATE["ann"]), (forgotten, "gecko")):
            assert any(path.startswith("before-users/") for path in holding(root, words))
            await memory.erase(gone)
            assert holding(root, words) == set()
        assert PRIVATE["ben"] in (root / "before-users" / MEMORY_PATH).read_text()
        assert {path for path in before if path.startswith("users/")} <= holding(root, PRIVATE["ben"])
        assert of_users(await memory.doctor()).ok


async def test_plans_usage_and_waiting_work_go_along_where_a_user_is_named_and_the_doctor_names_the_rest(
    tmp_path: Path,
) -> None:
    root = tmp_path / "r"
    await old_root(root)
    async with Memory.open(root, scope=SHOP):
        pass
    workspace, ann, ben = root / "workspace", place_of(root, "ann"), place_of(root, "ben")
    assert (ann / "workspace/plans/pay.md").read_text() == "# plans/pay.md\n"
    assert sorted(path.name for path in (workspace / "plans").iterdir()) == ["both.md", "other.md"]
    used = {folder: read_usage((folder / "workspace/usage.jsonl").read_bytes()) for folder in (ann, ben, root)}
    for folder, one in zip(used, ENTRIES[:3], strict=True):
        assert {name: each.used.count for name, each in used[folder].items()} == {one.id: 2}
    assert await jobs_of(ann) == [("flush", "monday", True)]
    assert await jobs_of(ben) == [("flush", "other", False)]
    assert [job for job in await jobs_of(root) if job[0] == "reindex"] == [("reindex", "", True)]
    assert "flush" not in {kind for kind, _, _ in await jobs_of(root)}
    async with Memory.open(root, scope=of("ann")) as memory:
        told = of_users(await memory.doctor()).detail
        assert "stayed shared: plans/both.md, plans/other.md;" in told
        assert "pay.md" not in told
        (workspace / "plans/both.md").unlink()
        assert "stayed shared: plans/other.md;" in of_users(await memory.doctor()).detail


async def test_notes_of_agents_of_several_users_are_put_where_none_of_them_finds_them_and_the_doctor_names_them(
    tmp_path: Path,
) -> None:
    root = tmp_path / "r"
    await old_root(root)
    (root / "workspace/memories/ben.md").write_text("Ben told me that he earns 4,711 ducats.\n")
    calls = [
        Call("grep_files", {"pattern": "ducats", "path": "/project"}),
        Call("grep_files", {"pattern": "ducats"}),
        Call("read_file", {"path": "/project/memories/ben.md"}),
        Call("memory", {"command": "view", "path": "/memories/ben.md"}),
        Call("recall", {"query": "How many ducats does Ben earn?"}),
    ]
    model = ScriptedModel([*calls, Say("Nothing.")])
    async with HarnessAgent(
        model, memory=root, scope=of("ann"), builtin_tools=BuiltinTools(opt_in=["memory"])
    ) as agent:
        await agent.send("What is noted?")
    assert "4,711" not in repr(model.requests)
    kept = root / "before-users/workspace/memories"
    assert (kept / "ben.md").read_text() == "Ben told me that he earns 4,711 ducats.\n"
    async with Memory.open(root, scope=of("ann")) as memory:
        assert "4,711" not in repr(await memory.search("ducats"))
        told = of_users(await memory.doctor()).detail
        assert "where no user and no agent finds them: memories/ben.md, memories/note.md; copy what is needed" in told
        (kept / "ben.md").unlink()
        assert "ben.md" not in of_users(await memory.doctor()).detail


async def test_a_root_from_before_that_can_only_be_read_says_why_it_is_not(tmp_path: Path) -> None:
    root = tmp_path / "r"
    await old_root(root)
    with pytest.raises(StorageReadOnly, match=r"/r is from before users had places .* open a copy of it"):
        async with Memory.open(root, scope=of("ann"), disk=ReadOnlyDisk()):
            pass
    assert {path for path in contents(root) if "users" in path} == {
        f"workspace/users/{user}/{name}" for user in PRIVATE for name in ("profile.json", "agents/coder/profile.json")
    }
    async with Memory.open(tmp_path / "plain", scope=SHOP) as memory:
        await memory.remember("We deploy only from main.")
    marker = tmp_path / "plain" / "project.json"
    marker.write_text(json.dumps(json.loads(marker.read_text()) | {"version": 1}))
    async with Memory.open(tmp_path / "plain", scope=SHOP, disk=ReadOnlyDisk()) as memory:
        assert [one.content for one in await memory.entries()] == ["We deploy only from main."]


def of_users(checks: list[Check]) -> Check:
    return next(check for check in checks if check.name == "users")


@pytest.mark.req("FC-DOCTOR")
async def test_doctor_says_what_became_private_and_what_mixes_users(tmp_path: Path) -> None:
    await old_root(tmp_path / "r")
    async with Memory.open(tmp_path / "r", scope=of("ann")) as memory:
        check = of_users(await memory.doctor())
    assert check.ok
    assert "3 memories and 2 sessions of yours became private" in check.detail
    assert ENTRIES[3].id in check.detail
    assert "before-users" in check.detail
    assert "ben" not in check.detail
    async with Memory.open(tmp_path / "new", scope=of("ann")) as memory:
        assert [check for check in await memory.doctor() if check.name == "users"] == []


async def test_a_history_of_one_user_goes_along_and_what_they_did_can_still_be_undone(tmp_path: Path) -> None:
    root = tmp_path / "r"
    await old_root(root, users=("ann",))
    async with Memory.open(root, scope=of("ann")) as memory:
        [change] = [item for item in await memory.history() if item.action == "forget"]
        assert not (root / "history" / "changes").exists() or not list((root / "history" / "changes").iterdir())
        assert (await memory.diff(change.id)).files
    async with Memory.open(root, scope=of("ben")) as memory:
        assert change.id not in {item.id for item in await memory.history()}


def contents(root: Path) -> Mapping[str, bytes]:
    """Return every file that a person has, by path; caches, locks and the history of what was brought over left out."""
    # what was being written in the folder of a user goes when that user comes
    left_out = ("locks", "memory_index", "queue.db", "usage", ".~")
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not any(name in str(path.relative_to(root)) for name in left_out)
    }


async def brought_over(root: Path) -> dict[str, object]:
    """Open a root once more, and return what it holds then; the history of what was done may differ."""
    async with Memory.open(root, scope=of("ann")):
        pass
    found: dict[str, object] = {name: data for name, data in contents(root).items() if "history" not in name}
    for folder in (root, place_of(root, "ann"), place_of(root, "ben")):
        usage = folder / "workspace" / "usage.jsonl"
        found[f"{folder.name} used"] = read_usage(usage.read_bytes()) if usage.is_file() else {}
        found[f"{folder.name} waits for"] = [job for job in await jobs_of(folder) if job[0] != "consolidate"]
    return {name: each for name, each in found.items() if not name.endswith("project.json")}


async def steps_of(old: Path, root: Path) -> tuple[int, dict[str, object]]:
    """Bring a root over without trouble, and return how many steps on the disk that takes, and what it comes to."""
    steps = StepDisk(lambda _: None)
    shutil.copytree(old, root)
    async with Memory.open(root, scope=of("ann"), disk=steps):
        pass
    return len(steps.steps), await brought_over(root)


async def test_whoever_is_cut_off_at_any_step_loses_nothing_and_the_next_one_goes_on(tmp_path: Path) -> None:
    old = tmp_path / "old"
    await old_root(old)
    count, wanted = await steps_of(old, tmp_path / "whole" / "r")
    assert count > 60
    for number in range(3, count, 29):
        root = tmp_path / f"cut{number}" / "r"
        shutil.copytree(old, root)
        with suppress(StorageError, OSError):
            async with Memory.open(root, scope=of("ann"), disk=FailingDisk(number, errno.EIO)):
                pass
        assert await brought_over(root) == wanted, number


@pytest.mark.parametrize("every", [89, pytest.param(1, marks=[pytest.mark.soak, pytest.mark.timeout(900)])])
async def test_whoever_is_killed_at_a_step_loses_nothing_and_the_next_process_goes_on(
    tmp_path: Path, every: int
) -> None:
    old = tmp_path / "old"
    await old_root(old)
    count, wanted = await steps_of(old, tmp_path / "whole" / "r")
    driver = Path(__file__).with_name("bring_over_kill_driver.py")
    for step in range(min(every, 31), count, every):
        root = tmp_path / f"killed{step}" / "r"
        shutil.copytree(old, root)
        process = start_script(driver, root, step)
        _, errors = await run_sync(process.communicate)
        assert process.returncode == -signal.SIGKILL, (step, errors)
        assert await brought_over(root) == wanted, step


async def test_a_new_root_and_one_without_stamps_are_left_as_they_are(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "r", scope=SHOP) as memory:
        await memory.remember("We deploy only from main.")
    marker = json.loads((tmp_path / "r" / "project.json").read_text())
    assert marker["version"] == 2
    (tmp_path / "r" / "project.json").write_text(json.dumps(marker | {"version": 1}))
    async with Memory.open(tmp_path / "r", scope=of("ann")) as memory:
        assert [one.content for one in await memory.entries()] == ["We deploy only from main."]
    assert json.loads((tmp_path / "r" / "project.json").read_text())["version"] == 2
    assert not (tmp_path / "r" / "before-users").exists()
