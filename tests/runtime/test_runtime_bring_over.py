"""A root whose users shared one workspace: what is stamped goes to its user, once, whoever is killed meanwhile."""

import errno
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from disks import FailingDisk, StepDisk
from places import place_of
from ricordo import Memory, Scope
from ricordo.audit.doctor import Check
from ricordo.files import ABSENT
from ricordo.files.local import LocalFiles
from ricordo.guard import Redactor
from ricordo.messages import Message, Text
from ricordo.state import AgentState
from ricordo.state.files import FileStates
from ricordo.workspace.entry import Entry, Source
from ricordo.workspace.entry_codec import render_entry
from ricordo.workspace.layout import transcript_path
from ricordo.workspace.ledger import append_entries
from ricordo.workspace.transcript import Transcript

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
    await FileStates(files, REDACTOR).save(AgentState(agent="main", session="monday", user="ann"), expected=ABSENT)
    results = root / "workspace" / "large_tool_results" / "monday"
    results.mkdir(parents=True)
    (results / "grep-1.txt").write_text(PRIVATE["ann"])
    if "ben" in users:
        told = Message(role="user", parts=(Text(text=f"I say it again: {PRIVATE['ben']}"),), time=NOW)
        path = transcript_path("main", "ingested")
        await Transcript(files, path, session="ingested", redactor=REDACTOR).append([told])


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


def of_users(checks: list[Check]) -> Check:
    return next(check for check in checks if check.name == "users")


async def test_doctor_says_what_became_private_and_what_mixes_users(tmp_path: Path) -> None:
    await old_root(tmp_path / "r")
    async with Memory.open(tmp_path / "r", scope=of("ann")) as memory:
        check = of_users(await memory.doctor())
    assert check.ok
    assert "3 memories and 1 session of yours became private" in check.detail
    assert ENTRIES[3].id in check.detail
    assert "before-users" in check.detail
    assert "ben" not in check.detail
    async with Memory.open(tmp_path / "new", scope=of("ann")) as memory:
        assert [check for check in await memory.doctor() if check.name == "users"] == []


async def test_a_history_of_one_user_goes_along_and_what_they_did_can_still_be_undone(tmp_path: Path) -> None:
    root = tmp_path / "r"
    await old_root(root, users=("ann",))
    async with Memory.open(root, scope=of("ann")) as memory:
        [change] = [item for item in await memory.history() if item.act == "forget"]
        assert not (root / "history" / "changes").exists() or not list((root / "history" / "changes").iterdir())
        assert (await memory.diff(change.id)).files
    async with Memory.open(root, scope=of("ben")) as memory:
        assert change.id not in {item.id for item in await memory.history()}


def contents(root: Path) -> Mapping[str, bytes]:
    """Return every file that a person has, by path; caches, locks and the history of what was brought over left out."""
    left_out = ("locks", "memory_index", "queue.db", "usage")
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not any(name in str(path.relative_to(root)) for name in left_out)
    }


async def test_whoever_is_cut_off_at_any_step_loses_nothing_and_the_next_one_goes_on(tmp_path: Path) -> None:
    steps = StepDisk(lambda _: None)
    await old_root(tmp_path / "old")
    shutil.copytree(tmp_path / "old", tmp_path / "whole")
    async with Memory.open(tmp_path / "whole", scope=of("ann"), disk=steps):
        pass
    wanted = {name: data for name, data in contents(tmp_path / "whole").items() if not name.endswith("project.json")}
    assert len(steps.steps) > 60
    for number in range(3, len(steps.steps), 17):
        root = tmp_path / f"cut{number}"
        shutil.copytree(tmp_path / "old", root)
        disk = FailingDisk(number, errno.EIO)
        try:
            async with Memory.open(root, scope=of("ann"), disk=disk):
                pass
        except Exception:  # noqa: BLE001  (what is looked at is what it leaves)
            pass
        async with Memory.open(root, scope=of("ann")):
            pass
        found = {name: data for name, data in contents(root).items() if not name.endswith("project.json")}
        assert found.keys() == wanted.keys(), number
        different = [name for name in wanted if found[name] != wanted[name] and "history" not in name]
        assert different == [], number


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
