"""Profiles of DeerFlow and of older versions: kept first, taken in once, and never written to."""

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import ricordo
from hand_clock import HandClock
from ricordo.clock import MonotonicIds
from ricordo.curation import FileProfileStore, InMemoryProfileStore
from ricordo.curation.profile.importing import read_foreign_profile
from ricordo.curation.profile.user_profile import UserProfile
from ricordo.errors import AlreadyExists, DocumentInvalid, FileMissing, InvalidInput, VersionConflict
from ricordo.guard import Redactor
from ricordo.storage.local import LocalFiles
from ricordo.testing import InMemoryFiles
from ricordo.workspace import ChangeSets, profile_path

pytestmark = [pytest.mark.anyio, pytest.mark.req("DF-C59")]
KEY = bytes(32)
PATH = profile_path()
V1 = {
    "version": "1.0", "lastUpdated": "2025-01-01T00:00:00Z",
    "user": {"workContext": {"summary": "Builds ships", "updatedAt": "2025-01-01T00:00:00Z"}},
    "history": {}, "facts": [
        {"id": "fact_1", "content": "Likes tea", "category": "preference", "confidence": 0.9, "source": "t-1"},
    ],
}  # fmt: skip
V2 = {
    "version": "2.0", "revision": 12, "lastUpdated": "2026-01-01T00:00:00Z",
    "user": {"workContext": {"summary": "Builds ships", "updatedAt": ""}}, "history": {}, "facts": [
        {"id": "fact_1", "schemaVersion": 2, "status": "active", "content": "Knows Rust", "category": "other",
         "categoryExtension": "knowledge", "confidence": 0.9, "source": {"type": "conversation", "threadId": "t-1"},
         "lastConfirmedAt": "2026-01-01T00:00:00Z", "confirmationCount": 3, "revision": 2, "topics": []},
    ],
}  # fmt: skip
FACT = """---
id: fact_9
schemaVersion: 2
status: active
category: other
categoryExtension: knowledge
confidence: 0.85
createdAt: 2026-01-02T03:04:05Z
source:
  type: conversation
  threadId: t-9
confirmationCount: 2
expected_valid_days: 30
title: Rust
---
# Rust

Knows Rust: well.
It compiles.
"""


def _managed(files: LocalFiles | InMemoryFiles) -> UserProfile:
    clock = HandClock()
    changes = ChangeSets(files, clock=clock, ids=MonotonicIds(clock))
    store = FileProfileStore(files, changes, path=PATH, redactor=Redactor(KEY), key=KEY, clock=clock)
    return UserProfile(store, clock=clock)


async def _holding(**documents: Any) -> InMemoryFiles:
    files = InMemoryFiles()
    for name, document in documents.items():
        await files.create(f"{name}.json", json.dumps(document).encode())
    return files


async def _all(files: InMemoryFiles) -> dict[str, bytes]:
    return {info.path: (await files.read(info.path)).data for info in await files.list()}


def _paths(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


@pytest.mark.req("DF-C59")
async def test_an_older_profile_is_kept_first_and_migrated_once(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    await files.create(PATH, json.dumps(V2).encode())
    managed = _managed(files)
    old = (tmp_path / PATH).read_bytes()
    dry = await managed.migrate(dry_run=True)
    assert (dry.imported.changes_something, dry.imported.is_saved, dry.backup) == (True, False, "")
    assert [path.name for path in _paths(tmp_path / "workspace")] == ["profile.json"]
    assert (tmp_path / PATH).read_bytes() == old
    done = await managed.migrate()
    assert (tmp_path / done.backup).read_bytes() == old
    document = json.loads((tmp_path / PATH).read_bytes())
    assert document["version"] == "1.0"
    (fact,) = document["facts"]
    assert (fact["category"], fact["source"], fact["confirmationCount"]) == ("knowledge", "t-1", 3)
    assert fact["sourceRecord"] == {"type": "conversation", "threadId": "t-1"}
    after = (tmp_path / PATH).read_bytes()
    again = await managed.migrate()
    assert (again.imported.changes_something, again.backup) == (False, "")
    assert (tmp_path / PATH).read_bytes() == after
    # another system's memory says something else: nothing is written anywhere
    source = await _holding(memory={**V1, "facts": [{"id": "fact_1", "content": "Likes tea"}]})
    before, there = await _all(source), _paths(tmp_path)
    with pytest.raises(VersionConflict, match="fact_1"):
        await managed.migrate(await read_foreign_profile(source, "memory.json"))
    assert (await managed.migrate(await read_foreign_profile(source, "memory.json"), dry_run=True)).imported.conflicts
    assert (await _all(source), _paths(tmp_path)) == (before, there)
    assert (tmp_path / PATH).read_bytes() == after
    # so it is for a summary that says something else
    ours = {"workContext": {"summary": "Builds trains", "updatedAt": ""}}
    source = await _holding(memory={**V1, "user": ours, "facts": []})
    before = await _all(source)
    with pytest.raises(VersionConflict, match="workContext"):
        await managed.migrate(await read_foreign_profile(source, "memory.json"))
    assert (await _all(source), _paths(tmp_path)) == (before, there)
    assert (tmp_path / PATH).read_bytes() == after
    # without a conflict it is taken in, and a second time nothing changes
    source = await _holding(memory={**V1, "facts": [{"id": "fact_2", "content": "Likes tea"}]})
    before = await _all(source)
    done = await managed.migrate(await read_foreign_profile(source, "memory.json"))
    assert (done.imported.added, (tmp_path / done.backup).read_bytes()) == (("fact_2",), before["memory.json"])
    assert not (await managed.migrate(await read_foreign_profile(source, "memory.json"))).imported.changes_something
    assert await _all(source) == before


@pytest.mark.req("DF-C59")
async def test_a_backup_is_never_written_over() -> None:
    files = InMemoryFiles()
    managed = _managed(files)
    source = await read_foreign_profile(await _holding(memory=V1), "memory.json")
    done = await managed.migrate(source)
    await managed.clear()
    stored = await files.read(done.backup)
    assert (await managed.migrate(source)).backup == done.backup
    await managed.clear()
    await files.replace(done.backup, b"other", expected=stored.version)
    with pytest.raises(AlreadyExists):
        await managed.migrate(source)
    assert (await managed.show()).is_empty


async def test_a_folder_of_facts_is_read_with_all_that_its_files_say() -> None:
    source = await _holding(memory={**V2, "facts": None})
    await source.create("agents/__default__/facts/ab/fact_9.md", FACT.encode())
    await source.create("agents/coder/facts/cd/fact_8.md", FACT.replace("fact_9", "fact_8").encode())
    files = InMemoryFiles()
    managed = _managed(files)
    done = await managed.migrate(await read_foreign_profile(source))
    assert (await managed.show()).summaries["workContext"].summary == "Builds ships"
    (fact,) = (await managed.show()).facts
    assert (fact.id, fact.content, fact.category) == ("fact_9", "Knows Rust: well.\nIt compiles.", "knowledge")
    assert (fact.confidence, fact.created_at, fact.source.thread) == (0.85, "2026-01-02T03:04:05Z", "t-9")
    assert (fact.confirmations, fact.valid_days, fact.extra["title"]) == (2, 30, "Rust")
    kept = json.loads((await files.read(done.backup)).data)
    assert kept["agents/__default__/facts/ab/fact_9.md"] == FACT
    assert not (await managed.migrate(await read_foreign_profile(source))).imported.changes_something
    assert [each.id for each in (await read_foreign_profile(source, agent="coder")).read.profile.facts] == ["fact_8"]
    with pytest.raises(InvalidInput, match="coder"):
        await read_foreign_profile(source, agent="nobody")


@pytest.mark.parametrize("bad", [b"no front matter", b"---\nid: [\n---\nx", b"---\ntext\n---\nx", b"\xff\xfe", b""])
async def test_a_fact_file_that_cannot_be_read_stops_it_by_its_name(bad: bytes) -> None:
    source = await _holding(memory=V1)
    await source.create("agents/__default__/facts/ab/fact_9.md", bad)
    managed = _managed(InMemoryFiles())
    with pytest.raises(DocumentInvalid, match=r"facts/ab/fact_9\.md"):
        await managed.migrate(await read_foreign_profile(source))
    assert (await managed.show()).is_empty


async def test_what_is_no_source_is_refused() -> None:
    with pytest.raises(FileMissing):
        await read_foreign_profile(InMemoryFiles())
    with pytest.raises(FileMissing):
        await read_foreign_profile(InMemoryFiles(), "memory.json")
    with pytest.raises(InvalidInput):
        await UserProfile(InMemoryProfileStore(HandClock()), clock=HandClock()).migrate()


def test_a_folder_is_migrated_by_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATA", "CACHE"):
        monkeypatch.setenv(f"RICORDO_{name}", str(tmp_path / name))
    folder = tmp_path / "deerflow"
    (folder / "agents/__default__/facts/ab").mkdir(parents=True)
    (folder / "memory.json").write_text(json.dumps(V1))
    (folder / "agents/__default__/facts/ab/fact_9.md").write_text(FACT)
    command = ("--root", tmp_path / ".ricordo", "--user", "ann", "--project", "shop", "profile")
    assert "added: fact_1, fact_9" in ricordo(*command, "migrate", folder, "--dry-run").out
    done = ricordo(*command, "migrate", folder, "--json").document
    assert (done["added"], done["saved"]) == (["fact_1", "fact_9"], True)
    assert Path(done["backup"]).is_file()
    assert "all of it is known" in ricordo(*command, "migrate", folder / "memory.json").out
    assert sorted(path.name for path in folder.rglob("*") if path.is_file()) == ["fact_9.md", "memory.json"]
    assert ricordo(*command, "migrate", tmp_path / "none").code == 1
