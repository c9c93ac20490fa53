"""Session files are the truth: what people do to them is seen at once, and the index is never needed."""

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hand_clock import HandClock
from kept_session_files import SHOP, backend, forgets, keeps, lists, notes, opened
from ricordo import Entry
from ricordo.stores import Store
from ricordo.workspace import Source

pytestmark = pytest.mark.anyio


async def week(root: Path, count: int = 3) -> list[str]:
    """Make sessions, each with a fact, and return their paths, the oldest first."""
    clock = HandClock()
    paths = []
    async with opened(root, clock) as store:
        for number in range(count):
            clock.turn(hours=1)
            await store.save(Entry(content=f"Fact {number}.", source=Source(session=f"s{number}")))
            told = notes(f"s{number}", f"About topic{number}.", f"tag{number}", started=clock.now())
            paths.append(await keeps(store).close_session(told))
    return paths


async def found(store: Store, query: str) -> list[str]:
    return [hit.path for hit in await store.recall(query, 99)]


def set_aside(root: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(root.glob("index.json.broken*"))]


async def answers(root: Path) -> tuple[object, ...]:
    async with opened(root) as store:
        recalled = [await store.recall(query, 99) for query in ("", "topic", "tag1", "fact", "marmot")]
        return recalled, await store.preamble(), await lists(store).entries(), await keeps(store).pending_sessions()


@pytest.mark.req("GO-AT4", "GO-D4", "GO-D7", "GO-G16")
@pytest.mark.parametrize(("said", "stamped"), [("About marmots.", False), ("A marmot too.", False), ("Marmot.", True)])
async def test_an_edited_summary_is_what_the_next_session_finds(tmp_path: Path, said: str, stamped: bool) -> None:
    paths = await week(tmp_path)
    file = tmp_path / paths[0]
    before = file.stat().st_mtime_ns
    file.write_text(file.read_text().replace("About topic0.", said))
    if stamped:
        # an editor or a copy that keeps the time of the file
        os.utime(file, ns=(before, before))
    async with opened(tmp_path) as store:
        assert await found(store, "marmot") == [paths[0]]
        assert await found(store, "topic0") == []
        preamble = await store.preamble()
        assert said in preamble
        assert "topic0" not in preamble
    assert said in (tmp_path / "index.json").read_text()


@pytest.mark.req("GO-AT4", "GO-D7")
async def test_an_edit_of_the_same_length_is_seen_while_the_store_is_open(tmp_path: Path) -> None:
    paths = await week(tmp_path)
    async with opened(tmp_path) as store:
        assert await found(store, "topic1") == [paths[1]]
        file = tmp_path / paths[1]
        file.write_text(file.read_text().replace("topic1", "marmot").replace("Fact 1.", "Fiction"))
        assert await found(store, "marmot") == [paths[1]]
        assert await found(store, "topic1") == []
        assert [entry.content for entry in await lists(store).entries()] == ["Fact 2.", "Fiction", "Fact 0."]


@pytest.mark.req("GO-G18", "GO-AT6", "GO-D7", "GO-G16")
@pytest.mark.parametrize("running", [False, True])
async def test_a_deleted_file_is_found_no_more(tmp_path: Path, running: bool) -> None:
    paths = await week(tmp_path)
    if not running:
        (tmp_path / paths[1]).unlink()
    async with opened(tmp_path) as store:
        await store.recall("")
        if running:
            (tmp_path / paths[1]).unlink()
        assert await found(store, "topic") == [paths[2], paths[0]]
        assert "topic1" not in await store.preamble()
        assert [entry.content for entry in await lists(store).entries()] == ["Fact 2.", "Fact 0."]
    listed = json.loads((tmp_path / "index.json").read_text())["sessions"]
    assert [row["path"] for row in listed] == [paths[0], paths[2]]
    for path in (paths[0], paths[2]):
        (tmp_path / path).unlink()
    async with opened(tmp_path) as store:
        assert await store.recall("") == []
    assert json.loads((tmp_path / "index.json").read_text())["sessions"] == []


@pytest.mark.req("GO-D7", "GO-D8", "GO-I8", "GO-G13", "GO-G18", "FC-STALE")
@pytest.mark.parametrize(
    "broken",
    [b"", b"{", b"\xff\xfe", b"[]", b'{"sessions": 3}', b'{"sessions": [7]}', b'{"name": "shop"}', None, "sound"],
)
async def test_an_index_that_is_lost_broken_or_foreign_is_set_aside_and_made_again(
    tmp_path: Path, broken: bytes | str | None
) -> None:
    await week(tmp_path)
    if broken != "sound":
        (tmp_path / "index.json").unlink()
    if isinstance(broken, bytes):
        (tmp_path / "index.json").write_bytes(broken)
    (tmp_path / "sessions" / "2020-01-01-00h00.md").write_text(
        "# 2020-01-01 00:00\n\n## Summary\n\nUnlisted marmots.\n"
    )
    os.rename(next((tmp_path / "sessions").glob("2026*")), tmp_path / "sessions" / "renamed.md")
    async with opened(tmp_path) as store:
        assert await found(store, "unlisted") == ["sessions/2020-01-01-00h00.md"]
        assert len(await found(store, "topic")) == 3
        assert "sessions/renamed.md" in await found(store, "topic")
        assert "Unlisted marmots." in await store.preamble()
    assert set_aside(tmp_path) == ([broken] if isinstance(broken, bytes) else [])
    assert len(json.loads((tmp_path / "index.json").read_text())["sessions"]) == 4


@pytest.mark.req("GO-D7", "GO-D8")
async def test_a_broken_index_without_any_session_is_set_aside_too(tmp_path: Path) -> None:
    (tmp_path / "index.json").write_bytes(b"{")
    async with opened(tmp_path) as store:
        assert await store.recall("", 9) == []
    assert set_aside(tmp_path) == [b"{"]
    assert json.loads((tmp_path / "index.json").read_text())["sessions"] == []


@pytest.mark.req("GO-D7", "GO-AT4")
async def test_renamed_and_unlisted_files_are_picked_up_while_the_store_is_open(tmp_path: Path) -> None:
    paths = await week(tmp_path)
    async with opened(tmp_path) as store:
        assert await found(store, "topic0") == [paths[0]]
        os.rename(tmp_path / paths[0], tmp_path / "sessions" / "The marmots.md")
        shutil.copy(tmp_path / paths[1], tmp_path / "sessions" / "copy.md")
        assert await found(store, "topic0") == ["sessions/The marmots.md"]
        assert sorted(await found(store, "topic1")) == [paths[1], "sessions/copy.md"]


@pytest.mark.req("GO-D7")
async def test_files_that_are_no_session_files_are_left_alone(tmp_path: Path) -> None:
    await week(tmp_path, 1)
    for name, text in {
        "README.md": "# How\n\n- no memory\n",
        "notes.txt": "2026",
        ".hidden.md": "# 2026-01-01\n",
    }.items():
        (tmp_path / "sessions" / name).write_text(text)
    (tmp_path / "sessions" / "old").mkdir()
    (tmp_path / "sessions" / "old" / "2020-01-01-00h00.md").write_text("# 2020-01-01 00:00\n")
    (tmp_path / "sessions" / "2020-01-02-00h00.md").symlink_to("/etc/passwd")
    async with opened(tmp_path) as store:
        assert len(await store.recall("", 9)) == 1
        assert len(await lists(store).entries()) == 1


@pytest.mark.req("GO-I5", "GO-D7", "GO-G13")
async def test_the_index_of_others_is_read_and_its_fields_stay(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    path = "sessions/2026-05-13-09h47.md"
    (tmp_path / path).write_text("# 2026-05-13 09:47\n\ntags: old\n\n## Summary\nWe talked about marmots.\n")
    row = {"path": path, "date": "2026-05-13T09:47:00Z", "summary": "Stale.", "tags": ["stale"], "mood": {"good": 1}}
    (tmp_path / "index.json").write_text(json.dumps({"tool": "theirs", "sessions": [row]}))
    async with opened(tmp_path) as store:
        assert await found(store, "marmots") == [path]
        assert await found(store, "stale") == []
        # and what they write while the store is open stays as well
        index = json.loads((tmp_path / "index.json").read_text())
        index["sessions"][0]["stars"] = 5
        (tmp_path / "index.json").write_text(json.dumps(index | {"since": "spring"}))
        await keeps(store).close_session(notes("s", "New."))
    index = json.loads((tmp_path / "index.json").read_text())
    assert (index["tool"], index["since"]) == ("theirs", "spring")
    assert index["sessions"][0]["stars"] == 5
    assert [row.get("mood") for row in index["sessions"]] == [{"good": 1}, None]
    assert set_aside(tmp_path) == []


@pytest.mark.req("GO-I5", "GO-AT4", "GO-D7")
async def test_what_people_add_to_a_file_is_remembered_and_survives_closing_again(tmp_path: Path) -> None:
    path = (await week(tmp_path, 1))[0]
    file = tmp_path / path
    added = "\n## Preferences\n\n- Tabs, always.\n\n## My thoughts\n\nNot for machines.\n"
    file.write_text("---\nmood: good\n---\n" + file.read_text().replace("Fact 0.", "Fact zero.") + added)
    async with opened(tmp_path) as store:
        assert "Tabs, always." in await store.preamble()
        assert await found(store, "fact zero") == [path]
        await store.save(Entry(content="Later.", source=Source(session="s0")))
        assert await keeps(store).close_session(notes("s0", "Said again.")) == path
        contents = [entry.content for entry in await lists(store).entries()]
        assert sorted(contents) == ["Fact zero.", "Later.", "Tabs, always."]
        by_hand = next(entry for entry in await lists(store).entries() if entry.by == "hand")
        assert by_hand.kind == "preference"
        await forgets(store).forget(by_hand.id, who="user")
    text = file.read_text()
    assert text.startswith("---\nmood: good\n---\n# ")
    assert "## My thoughts\n\nNot for machines.\n" in text
    assert "Tabs" not in text


@pytest.mark.req("GO-D7", "GO-G18", "GO-I9")
async def test_a_file_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    paths = await week(tmp_path)
    (tmp_path / paths[0]).write_bytes(b"\xff\xfe\x00")
    (tmp_path / paths[1]).write_bytes(b"")
    async with opened(tmp_path) as store:
        assert await found(store, "topic") == [paths[2]]
        assert [entry.content for entry in await lists(store).entries()] == ["Fact 2."]


acts = st.lists(st.sampled_from(["save", "close", "edit", "delete", "rename", "forget", "reopen"]), max_size=14)


@pytest.mark.req("GO-D7", "GO-G13")
@settings(max_examples=20)
@given(acts)
async def test_an_index_that_is_made_again_gives_the_same_answers(
    tmp_path_factory: pytest.TempPathFactory, acts: list[str]
) -> None:
    root = tmp_path_factory.mktemp("session-files")
    clock = HandClock()
    store = backend(root, clock)
    bound = store.bind(SHOP)
    for number, act in enumerate(acts):
        clock.turn(minutes=7)
        session = f"s{number % 3}"
        files = sorted((root / "sessions").glob("*.md"))
        if act == "save":
            await bound.save(Entry(content=f"Fact {number} #topic.", source=Source(session=session)))
        elif act == "close":
            await keeps(bound).close_session(notes(session, f"About topic{number}.", "tag1", started=clock.now()))
        elif act == "edit" and files:
            files[0].write_text(files[0].read_text().replace("topic", "marmot") + "\n- By hand. [kind:: fact]\n")
        elif act == "delete" and files:
            files[-1].unlink()
        elif act == "rename" and files:
            os.rename(files[0], root / "sessions" / f"renamed-{number}.md")
        elif act == "forget" and (entries := await lists(bound).entries()):
            await forgets(bound).forget(entries[0].id, who="user")
        elif act == "reopen":
            await store.close()
            store = backend(root, clock)
            bound = store.bind(SHOP)
    await store.close()
    before = await answers(root)
    (root / "index.json").unlink(missing_ok=True)
    assert await answers(root) == before
