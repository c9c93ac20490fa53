"""A profile in a file: served from memory, written whole, mended record by record, and taken back."""

import errno
import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from disks import FailingDisk
from hand_clock import HandClock
from ricordo.clock import MonotonicIds
from ricordo.curation import FileProfileStore, undo_change
from ricordo.curation.undo import resolve_history_item
from ricordo.errors import DocumentInvalid, StorageError, StorageFull, VersionConflict
from ricordo.guard import Redactor
from ricordo.storage import FileStore
from ricordo.storage.local import LocalFiles
from ricordo.testing import InMemoryFiles
from ricordo.workspace import TOMBSTONES, ChangeSets, Fact, Profile, content_digest, list_history, profile_path
from ricordo.workspace.history.tombstones import read_tombstones
from ricordo.workspace.layout import is_profile
from ricordo.workspace.profile import parse_profile
from watched_files import WatchedFiles

pytestmark = pytest.mark.anyio
KEY = bytes(32)
PATH = profile_path()
TEA, COFFEE = Fact(id="f1", content="Likes tea"), Fact(id="f2", content="Likes coffee")
SECRET = "sk-proj-" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3"


def _changes(files: FileStore) -> ChangeSets:
    clock = HandClock()
    return ChangeSets(files, clock=clock, ids=MonotonicIds(clock))


def _store(files: FileStore, path: str = PATH) -> FileProfileStore:
    return FileProfileStore(files, _changes(files), path=path, redactor=Redactor(KEY), key=KEY, clock=HandClock())


async def _saved(store: FileProfileStore, *facts: Fact) -> Profile:
    base = await store.load()
    return (await store.save(replace(base, facts=facts), base=base, by="test")).profile


async def _document(files: FileStore, path: str = PATH) -> Any:
    return json.loads((await files.read(path)).data)


def _counting(files: FileStore) -> tuple[WatchedFiles, list[str]]:
    """Return the files, and the list that names each file whose content is read."""
    read: list[str] = []

    async def note(verb: str, path: str) -> None:
        if verb in {"read", "read_from"}:
            read.append(path)

    return WatchedFiles(files, note), read


@pytest.mark.req("DF-HOT", "DF-C54", "DF-C57")
async def test_an_unchanged_profile_is_read_once_and_a_changed_one_again(tmp_path: Path) -> None:
    watched, read = _counting(LocalFiles(tmp_path))
    store = _store(watched)
    await _saved(store, TEA)
    await store.load()
    read.clear()
    for _ in range(3):
        assert [fact.content for fact in (await store.load()).facts] == ["Likes tea"]
    assert read == []
    file = tmp_path / PATH
    before = os.stat(file)
    changed = file.read_text().replace("Likes tea", "Likes pie")
    with file.open("r+", encoding="utf-8") as opened:
        opened.write(changed)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (os.stat(file).st_size, os.stat(file).st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert [fact.content for fact in (await store.load()).facts] == ["Likes pie"]
    assert read == [PATH]


@pytest.mark.req("DF-HOT", "DF-C54")
async def test_what_another_store_saves_is_seen_at_the_next_load(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    one, other = _store(files), _store(files)
    await _saved(one, TEA)
    await _saved(other, TEA, COFFEE)
    assert [fact.id for fact in (await one.load()).facts] == ["f1", "f2"]
    (tmp_path / PATH).unlink()
    assert (await one.load()).is_empty


@pytest.mark.req("DF-UPD-atomic", "DF-C36")
@pytest.mark.parametrize("forget", [False, True])
@pytest.mark.parametrize("at", range(1, 26, 3))
async def test_a_save_that_fails_leaves_the_file_and_what_is_in_memory(tmp_path: Path, at: int, forget: bool) -> None:
    whole = _store(LocalFiles(tmp_path))
    base = await _saved(whole, TEA)
    data = (tmp_path / PATH).read_bytes()
    failing = _store(LocalFiles(tmp_path, disk=FailingDisk(at, errno.ENOSPC)))
    base = await failing.load()
    try:
        facts = (COFFEE,) if forget else (*base.facts, COFFEE)
        saved = await failing.save(replace(base, facts=facts), base=base, by="test", forget=forget)
    except StorageError:
        assert (tmp_path / PATH).read_bytes() == data
        assert await failing.load() == base
        assert await _store(LocalFiles(tmp_path)).load() == base
    else:
        assert await failing.load() == saved.profile


@pytest.mark.req("DF-UPD-atomic")
async def test_the_disk_that_fails_does_fail(tmp_path: Path) -> None:
    base = await _saved(_store(LocalFiles(tmp_path)), TEA)
    failing = _store(LocalFiles(tmp_path, disk=FailingDisk(4, errno.ENOSPC)))
    with pytest.raises(StorageError):
        await failing.save(replace(base, facts=()), base=base, by="test")


@pytest.mark.req("DF-C54", "DF-C57", "DF-C62", "DF-HOT")
async def test_revisions_decide_and_not_sizes_and_times() -> None:
    files = InMemoryFiles()
    one, other = _store(files), _store(files)
    base = await _saved(one, TEA, COFFEE)
    await other.load()
    tea, coffee = base.facts
    first = await one.save(replace(base, facts=(replace(tea, content="Likes pie"), coffee)), base=base, by="one")
    with pytest.raises(VersionConflict):
        await other.save(replace(base, facts=(replace(tea, content="Likes ice"), coffee)), base=base, by="two")
    assert await other.load() == first.profile
    apart = replace(base, facts=(tea, replace(coffee, content="Likes cake")))
    found = (await other.save(apart, base=base, by="two")).profile
    assert [fact.content for fact in found.facts] == ["Likes pie", "Likes cake"]
    same = [replace(found, facts=(*found.facts, Fact(id=name, content="Rides"))) for name in ("f3", "f4")]
    async with anyio.create_task_group() as group:
        for store, profile in zip((one, other), same, strict=True):
            group.start_soon(partial(store.save, profile, base=found, by="both"))
    assert [fact.content for fact in (await one.load()).facts] == ["Likes pie", "Likes cake", "Rides"]


@pytest.mark.req("DF-C54", "DF-HOT")
async def test_a_hand_that_edits_between_reading_and_writing_loses_nothing() -> None:
    files = InMemoryFiles()
    base = await _saved(_store(files), TEA)
    edits = iter([b'"Likes tea, green"'])

    async def edit(verb: str, path: str) -> None:
        if verb == "create" and path.startswith("history/objects") and (text := next(edits, b"")):
            stored = await files.read(PATH)
            await files.replace(PATH, stored.data.replace(b'"Likes tea"', text), expected=stored.version)

    saved = await _store(WatchedFiles(files, edit)).save(replace(base, facts=(*base.facts, COFFEE)), base=base, by="t")
    assert [fact.content for fact in saved.profile.facts] == ["Likes tea, green", "Likes coffee"]


@pytest.mark.req("DF-HOT", "DF-STORE")
async def test_a_hand_edit_is_picked_up_with_what_has_no_name_here(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    store = _store(files)
    await _saved(store, TEA)
    document = await _document(files)
    document["facts"].append({"content": "Rides a bike", "mood": "good"})
    document["user"]["workContext"]["summary"] = "Builds ships"
    document["theme"] = "dark"
    (tmp_path / PATH).write_text(json.dumps(document))
    loaded = await store.load()
    assert loaded.summaries["workContext"].summary == "Builds ships"
    assert [fact.content for fact in loaded.facts] == ["Likes tea", "Rides a bike"]
    await store.save(replace(loaded, facts=(*loaded.facts, COFFEE)), base=loaded, by="test")
    after = await _document(files)
    assert after["theme"] == "dark"
    assert after["facts"][1] == {"id": loaded.facts[1].id, "content": "Rides a bike", "category": "context",
                                 "confidence": 0.5, "createdAt": "", "source": "unknown", "mood": "good"}  # fmt: skip


@pytest.mark.req("DF-B14", "DF-C53", "DF-C55")
async def test_a_broken_record_is_kept_aside_and_the_rest_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = LocalFiles(tmp_path)
    store = _store(files)
    await _saved(store, TEA, COFFEE)
    document = await _document(files)
    document["facts"][0]["content"] = 5
    document["user"]["workContext"] = 7
    (tmp_path / PATH).write_text(json.dumps(document))
    loaded = await store.load()
    assert [fact.id for fact in loaded.facts] == ["f2"]
    assert [each.location for each in store.broken_records] == ["user.workContext", "facts[0]"]
    assert "facts[0]" in caplog.text
    assert await _document(files) == document
    saved = await store.save(
        replace(loaded, facts=(*loaded.facts, Fact(id="f3", content="Rides"))), base=loaded, by="t"
    )
    assert [fact.id for fact in (await store.load()).facts] == ["f2", "f3"]
    assert store.broken_records == ()
    aside = await _document(files, "workspace/profile.broken-1.json")
    assert [each["record"] for each in aside["records"]] == [7, document["facts"][0]]
    assert aside["from"] == PATH
    changes = _changes(files)
    item = resolve_history_item(await list_history(files, changes), saved.change)
    await undo_change(files, changes, item, who="user")
    assert await _document(files) == document
    # a document that can't be read at all is an error, and neither empty nor replaced
    for unreadable in ("", "\n", '{"facts": ['):
        (tmp_path / PATH).write_text(unreadable)
        for act in (store.load(), store.reload(), store.save(loaded, base=loaded, by="test")):
            with pytest.raises(DocumentInvalid, match="ricordo profile clear"):
                await act
        assert (tmp_path / PATH).read_text() == unreadable
    # a commit of several files that was cut off is taken back
    (tmp_path / PATH).write_text(json.dumps(document))
    loaded = await store.load()
    for at in range(6, 19, 4):
        cut = LocalFiles(tmp_path, disk=FailingDisk(at, errno.EIO, halves=True))
        with pytest.raises(StorageError):
            await _store(cut).save(replace(loaded, facts=()), base=loaded, by="test")
        await _changes(files).recover()
        assert await _document(files) == document
        assert not (tmp_path / "workspace/profile.broken-1.json").exists()


@pytest.mark.req("DF-B14")
async def test_a_document_that_cannot_be_read_is_kept_when_a_person_clears_it(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    store = _store(files)
    (tmp_path / "workspace").mkdir()
    (tmp_path / PATH).write_bytes(b"{broken")
    cleared = await store.clear(by="user")
    assert cleared.profile.is_empty
    assert (tmp_path / "workspace/profile.broken-1.json").read_bytes() == b"{broken"
    assert await store.load() == cleared.profile


@pytest.mark.req("FC-UNDO")
async def test_what_a_save_did_is_in_the_history_and_is_taken_back_by_facts() -> None:
    files = InMemoryFiles()
    store, changes = _store(files), _changes(files)
    base = await _saved(store, TEA)
    added = await store.save(replace(base, facts=(*base.facts, COFFEE)), base=base, by="flush", why="said so")
    after = await store.save(
        replace(added.profile, facts=(*added.profile.facts, Fact(id="f3", content="Rides"))), base=added.profile, by="t"
    )
    item = resolve_history_item(await list_history(files, changes), added.change)
    assert (item.action, item.actor, item.reason, item.paths) == ("profile", "flush", "said so", (PATH,))
    await undo_change(files, changes, item, who="user")
    loaded = await store.load()
    assert [fact.id for fact in loaded.facts] == ["f1", "f3"]
    assert loaded.revision > after.profile.revision


@pytest.mark.req("FC-SECRET")
async def test_secrets_do_not_reach_the_file() -> None:
    files = InMemoryFiles()
    store = _store(files)
    base = await store.load()
    fact = replace(TEA, content=f"The key is {SECRET}", source_error=f"not {SECRET}", extra={"note": [SECRET]})
    saved = await store.save(replace(base, facts=(fact,)), base=base, by="test", why=f"because {SECRET}")
    for info in await files.list():
        assert SECRET.encode() not in (await files.read(info.path)).data, info.path
    assert "[secret:" in saved.profile.facts[0].content
    assert saved.profile == await store.load()
    (change,) = await _changes(files).list_changes()
    assert SECRET not in change.reason
    # what a person wrote into the file is copied nowhere as it is
    document = await _document(files)
    stored = await files.read(PATH)
    document["facts"].append({"id": "f9", "content": [SECRET]})
    await files.replace(PATH, json.dumps(document).encode(), expected=stored.version)
    loaded = await store.load()
    await store.save(replace(loaded, facts=(*loaded.facts, COFFEE)), base=loaded, by="test")
    assert SECRET.encode() not in (await files.read("workspace/profile.broken-1.json")).data
    assert SECRET.encode() not in (await files.read(await store.back_up(f'{{"key": "{SECRET}"}}'.encode()))).data


@pytest.mark.req("DF-B8")
async def test_a_fact_that_a_person_removes_is_not_to_be_learned_again() -> None:
    files = InMemoryFiles()
    store = _store(files)
    base = await _saved(store, TEA, COFFEE)
    await store.save(replace(base, facts=base.facts[:1]), base=base, by="flush")
    assert (await read_tombstones(files)).digests == frozenset()
    base = await store.load()
    saved = await store.save(replace(base, facts=()), base=base, by="user", forget=True)
    stones = await read_tombstones(files)
    assert stones.digests == {content_digest("likes TEA.", KEY)}
    assert b"Likes tea" not in stones.data
    changes = _changes(files)
    await undo_change(
        files, changes, resolve_history_item(await list_history(files, changes), saved.change), who="user"
    )
    assert (await read_tombstones(files)).digests == frozenset()
    assert [fact.id for fact in (await store.load()).facts] == ["f1"]


NAMES = [
    "main", "ann", "Ann", "ANN", "ann/bob", "..", "ann%2Fbob", "CON", "a" * 200, "a" * 199 + "b", "\u00e4nn",
    "a\u0308nn", "profile.json",
]  # fmt: skip


@pytest.mark.req("DF-C52", "DF-B21", "DF-C61")
async def test_profiles_of_different_agents_never_meet(tmp_path: Path) -> None:
    paths = [profile_path(agent) for agent in NAMES]
    assert len({path.casefold() for path in paths}) == len(NAMES)
    assert all(map(is_profile, paths))
    files = LocalFiles(tmp_path)
    for number, path in enumerate(paths):
        await _saved(_store(files, path), Fact(id="f1", content=f"Is number {number}"))
    for number, path in enumerate(paths):
        assert [fact.content for fact in (await _store(files, path).load()).facts] == [f"Is number {number}"]
        assert (tmp_path / path).resolve().is_relative_to(tmp_path / "workspace")
    # what was locked is free, and no lock is made for each of them
    locks = {path.name for path in (tmp_path / "locks").iterdir() if not path.name.startswith("files-")}
    assert locks == {"changes.lock", "consolidate.lock", "profiles.lock"}
    for name in ("changes", "consolidate", "profiles"):
        with anyio.fail_after(20):
            async with LocalFiles(tmp_path, busy_seconds=0).lock(name):
                pass


@pytest.mark.req("DF-C52", "DF-C54")
async def test_a_save_that_is_refused_lets_the_next_one_in(tmp_path: Path) -> None:
    store = _store(LocalFiles(tmp_path, busy_seconds=1))
    base = await _saved(store, TEA)
    gone = await store.save(replace(base, facts=()), base=base, by="test")
    with pytest.raises(VersionConflict):
        await store.save(replace(base, facts=(replace(TEA, pinned=True),)), base=base, by="test")
    assert (await store.save(replace(gone.profile, facts=(COFFEE,)), base=gone.profile, by="t")).profile.revision == 3


@pytest.mark.req("DF-UPD-atomic")
async def test_a_profile_of_many_facts_is_whole_after_each_of_many_small_changes() -> None:
    files = InMemoryFiles()
    store = _store(files)
    profile = await _saved(store, *(Fact(id=f"f{number}", content=f"Knows {number}") for number in range(50)))
    for number in range(5):
        pinned = tuple(replace(fact, pinned=fact.id == f"f{number}") for fact in profile.facts)
        profile = (await store.save(replace(profile, facts=pinned), base=profile, by="test")).profile
    assert parse_profile((await files.read(PATH)).data).profile == profile
    assert [fact.id for fact in profile.facts if fact.pinned] == ["f4"]
    assert [fact.revision for fact in profile.facts[:6]] == [3, 3, 3, 3, 2, 1]


@pytest.mark.req("DF-UPD-atomic")
async def test_the_profile_is_put_back_when_what_was_forgotten_can_not_be_recorded(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    base = await _saved(_store(files), TEA, COFFEE)
    held = (tmp_path / PATH).read_bytes()

    async def full(verb: str, path: str) -> None:
        if verb in {"create", "replace"} and path == TOMBSTONES:
            raise StorageFull("There is no room.")

    failing = _store(WatchedFiles(files, full))
    with pytest.raises(StorageFull):
        await failing.save(replace(base, facts=base.facts[:1]), base=base, by="user", forget=True)
    assert (tmp_path / PATH).read_bytes() == held
    assert await failing.load() == base


@pytest.mark.req("DF-B14", "DF-UPD-atomic", "DF-C54")
async def test_a_save_that_was_cut_off_is_taken_out_of_what_others_saved_since(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    base = await _saved(_store(files), TEA)
    pending: list[bytes] = []

    async def keep(verb: str, path: str) -> None:
        if verb == "create" and path.startswith("history/changes"):
            record = path.replace("/changes/", "/pending/")
            pending.append((await files.read(record)).data)

    watched = WatchedFiles(files, keep)
    saved = await _store(watched).save(replace(base, facts=(*base.facts, COFFEE)), base=base, by="test")
    await _saved(_store(files), *saved.profile.facts, Fact(id="f3", content="Rides"))
    # as if the process had died before its change was on record
    await files.delete(f"history/changes/{saved.change}.json")
    await files.create(f"history/pending/{saved.change}.json", pending[0])
    assert await _changes(files).recover() == 1
    assert [fact.id for fact in (await _store(files).load()).facts] == ["f1", "f3"]
