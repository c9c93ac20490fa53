"""Session files: saved into a draft, closed into a file, found by what they were about and what was saved in them."""

import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from hand_clock import HandClock
from kept_session_files import SHOP, backend, closes, forgets, keeps, lists, notes, opened
from ricordo import Entry
from ricordo.errors import EntryNotFound, InvalidSetting
from ricordo.messages import Usage
from ricordo.runtime import open_store
from ricordo.scope import Scope
from ricordo.search import Query
from ricordo.stores import SessionNotes
from ricordo.workspace import Source

pytestmark = pytest.mark.anyio

LONG_AGO = datetime(2026, 5, 13, 9, 47, 30, tzinfo=UTC)
NAME = f"{LONG_AGO.astimezone():%Y-%m-%d-%Hh%M}"


def found_in(root: Path) -> list[str]:
    return sorted(
        str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and "locks" not in path.parts
    )


def rows(root: Path) -> list[dict[str, object]]:
    listed: list[dict[str, object]] = json.loads((root / "index.json").read_text())["sessions"]
    return listed


@pytest.mark.req("GO-G14", "GO-G15", "GO-G22-close", "GO-G10")
async def test_saving_adds_to_the_draft_and_closing_writes_one_file_and_one_row(tmp_path: Path) -> None:
    store = backend(tmp_path, HandClock(LONG_AGO)).bind(replace(SHOP, session="s"))
    await store.save(Entry(content="Fixtures live in testdata/golden/."))
    assert found_in(tmp_path) == ["sessions/.draft-s.jsonl"]
    for _ in range(2):
        await closes(store).close()
        assert found_in(tmp_path) == ["index.json", f"sessions/{NAME}.md"]
        assert [row["path"] for row in rows(tmp_path)] == [f"sessions/{NAME}.md"]
    for _ in range(2):
        assert await keeps(store).close_session(notes("s", "We moved the fixtures.")) == f"sessions/{NAME}.md"
        assert found_in(tmp_path) == ["index.json", f"sessions/{NAME}.md"]
        assert [row["summary"] for row in rows(tmp_path)] == ["We moved the fixtures."]
    text = (tmp_path / "sessions" / f"{NAME}.md").read_text()
    assert text.count("Fixtures live in") == 1


@pytest.mark.req("GO-G14", "GO-G15", "GO-G17", "GO-G3")
async def test_an_empty_session_writes_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path, session="s") as store:
        assert await store.recall("anything") == []
        assert await store.preamble() == ""
        assert await keeps(store).close_session(notes("s", "  ")) == ""
        await closes(store).close()
    assert found_in(tmp_path) == []


@pytest.mark.req("GO-G11", "GO-D6", "GO-G13", "GO-G17", "GO-G21")
async def test_sessions_of_the_same_minute_have_files_and_rows_of_their_own(tmp_path: Path) -> None:
    clock = HandClock(LONG_AGO)
    store = backend(tmp_path, clock).bind(SHOP)
    for number in range(3):
        clock.turn(1)
        await store.save(Entry(content=f"Fact {number}.", source=Source(session=f"s{number}")))
    # it is the start that names them, not the end
    clock.turn(hours=3)
    paths = [
        await keeps(store).close_session(SessionNotes(session=f"s{number}", summary=f"Sum {number}."))
        for number in range(3)
    ]
    assert paths == [f"sessions/{NAME}.md", f"sessions/{NAME}-2.md", f"sessions/{NAME}-3.md"]
    assert [row["summary"] for row in rows(tmp_path)] == ["Sum 0.", "Sum 1.", "Sum 2."]
    for query in ("", "sum"):
        assert [hit.path for hit in await store.recall(query, 9)] == paths[::-1]
    for number, path in enumerate(paths):
        assert f"Fact {number}." in (tmp_path / path).read_text()


@pytest.mark.req("GO-G16")
async def test_the_path_that_recall_names_is_that_of_the_file_whoever_owns_it(tmp_path: Path) -> None:
    store = backend(tmp_path, HandClock(LONG_AGO))
    for project in ("shop", "pier"):
        bound = store.bind(replace(SHOP, project=project))
        path = await keeps(bound).close_session(notes("s", f"About the marmots of {project}.", started=LONG_AGO))
        for query in ("MARMOTS", ""):
            assert [hit.path for hit in await bound.recall(query)] == [path]
        assert f"the marmots of {project}" in (tmp_path / path).read_text()


@pytest.mark.req("GO-G12", "GO-G24-cost", "GO-FRIC", "GO-G11")
async def test_the_file_of_a_session_is_readable_markdown(tmp_path: Path) -> None:
    store = backend(tmp_path, HandClock(LONG_AGO)).bind(SHOP)
    told = replace(
        notes("s", "We moved the fixtures.", "Fixtures", "tests", started=LONG_AGO),
        cost=Decimal("0.0123"),
        usage=Usage(input=900, output=80),
        closing_usage=Usage(input=500, output=40),
        closing_cost=Decimal("0.0004"),
        decisions=("Keep golden files.",),
        open_threads=("Delete the old folder.",),
    )
    path = await keeps(store).close_session(told)
    local = LONG_AGO.astimezone()
    lines = (tmp_path / path).read_text().splitlines()
    assert lines[:13] == [
        f"# {local:%Y-%m-%d %H:%M}",
        "",
        "tags: Fixtures, tests",
        "duration: 12 minutes, 3 turns, 900 tokens in, 80 tokens out, $0.0123",
        "session: s",
        "started: 2026-05-13T09:47:30.000Z",
        "closing: 500 tokens in, 40 tokens out, $0.0004",
        "",
        "## Summary",
        "",
        "We moved the fixtures.",
        "",
        "## Decisions",
    ]
    assert lines[14].startswith("- Keep golden files. [kind:: decision]")
    assert lines[15:] == ["", "## Open threads", "", "- Delete the old folder."]
    short = replace(notes("t", "Nothing else.", started=LONG_AGO), ended=LONG_AGO + timedelta(minutes=75), turns=11)
    await keeps(store).close_session(short)
    other = (tmp_path / "sessions" / f"{NAME}-2.md").read_text()
    assert [line for line in other.splitlines() if line.startswith(("## ", "tags", "closing"))] == ["## Summary"]
    assert "\nduration: 75 minutes, 11 turns, cost unknown\n" in other
    await keeps(store).close_session(replace(told, open_threads=()))
    (decision,) = await lists(store).entries()
    await forgets(store).forget(decision.id, who="user")
    assert [line for line in (tmp_path / path).read_text().splitlines() if line.startswith("## ")] == ["## Summary"]


@pytest.mark.req("GO-G13", "GO-G11", "GO-D7")
async def test_the_index_is_an_object_with_a_row_for_each_session(tmp_path: Path) -> None:
    store = backend(tmp_path, HandClock(LONG_AGO)).bind(SHOP)
    await keeps(store).close_session(notes("s", "Two.", "b", started=LONG_AGO))
    await keeps(store).close_session(notes("t", "One: à 中.", *"acdefg", started=LONG_AGO.replace(year=2025)))
    early = f"{LONG_AGO.replace(year=2025).astimezone():%Y-%m-%d-%Hh%M}"
    shown = [{name: row[name] for name in ("path", "date", "summary", "tags")} for row in rows(tmp_path)]
    assert shown == [
        {
            "path": f"sessions/{early}.md",
            "date": "2025-05-13T09:47:30.000Z",
            "summary": "One: à 中.",
            "tags": [*"acdefg"],
        },
        {"path": f"sessions/{NAME}.md", "date": "2026-05-13T09:47:30.000Z", "summary": "Two.", "tags": ["b"]},
    ]
    assert "One: à 中." in (tmp_path / "index.json").read_text()
    await keeps(store).close_session(notes("u", "Three.", started=LONG_AGO.replace(year=2027)))
    assert rows(tmp_path)[-1]["tags"] == [], "each row has them all"


@pytest.mark.req("GO-G16", "GO-AT3", "GO-I2")
async def test_recall_finds_sessions_by_summary_and_tags_and_returns_no_bodies(tmp_path: Path) -> None:
    clock = HandClock(LONG_AGO)
    store = backend(tmp_path, clock).bind(SHOP)
    about = {2: "How COMPACTION works.", 4: "Deployed.", 5: "Straße und Maß."}
    for number in range(7):
        clock.turn(hours=1)
        tags = ("Compaction", "window") if number == 4 else ("misc",)
        summary = about.get(number, f"Talk {number}.")
        told = replace(notes(f"s{number}", summary, *tags, started=clock.now()), decisions=(f"Body {number}.",))
        await keeps(store).close_session(told)
    hits = await store.recall("compaction", 9)
    assert [(hit.entry.kind, hit.entry.tags, hit.entry.content) for hit in hits] == [
        ("session-summary", ("Compaction", "window"), f"[{hits[0].path}] Deployed."),
        ("session-summary", ("misc",), f"[{hits[1].path}] How COMPACTION works."),
    ]
    assert [hit.entry.time for hit in hits] == [LONG_AGO.replace(hour=14), LONG_AGO.replace(hour=12)]
    for hit in hits:
        assert (tmp_path / hit.path).read_text().count("Body") == 1
    assert [hit.entry.content.partition("] ")[2] for hit in await store.recall("STRASSE")] == ["Straße und Maß."]
    assert [len(await store.recall("talk", limit)) for limit in (1, 2, 9)] == [1, 2, 4]
    assert len(await store.recall("")) == 5
    assert "Body" not in str(await store.recall("", 9))
    assert await store.recall("nothing of it") == []
    assert await store.recall(Query(text="compaction", since=LONG_AGO.replace(hour=13))) == hits[:1]


@pytest.mark.req("GO-I2", "GO-I12")
async def test_of_two_running_sessions_the_newest_entries_are_listed_whichever_saved_them(tmp_path: Path) -> None:
    clock = HandClock(LONG_AGO)
    store = backend(tmp_path, clock)
    one, two = (store.bind(replace(SHOP, session=name)) for name in ("one", "two"))
    for number, at in enumerate((one, two, two, one, two, one)):
        clock.turn(1)
        await at.save(Entry(content=f"Fact {number}."))
    newest = [f"Fact {number}." for number in (5, 4, 3, 2, 1, 0)]
    for at in (one, two):
        for limit in (1, 2, 6):
            assert [hit.entry.content for hit in await at.recall("", limit)] == newest[:limit]
        assert [hit.entry.content for hit in await at.recall("fact", 3)] == newest[:3]
        assert [entry.content for entry in await lists(at).entries()] == newest
    assert {hit.path for hit in await one.recall("", 6)} == {f"sessions/.draft-{name}.jsonl" for name in ("one", "two")}
    first = (await one.recall("0."))[0].entry
    later = await one.save(Entry(content="Fact 6.", supersedes=first.id))
    assert [hit.superseded_by for hit in await two.recall("", 9)] == [""] * 6 + [later.id]
    await store.close()


@pytest.mark.req("GO-G14")
async def test_a_session_whose_only_entry_was_forgotten_writes_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path, session="s") as store:
        gone = await store.save(Entry(content="The door code is teapot."))
        await forgets(store).forget(gone.id, who="user")
    assert not [path for path in found_in(tmp_path) if path.startswith("sessions/")]


@pytest.mark.req("GO-I12", "GO-G14", "GO-D5", "GO-G22-close")
async def test_what_is_saved_in_one_moment_is_kept_before_and_after_the_session_is_closed(tmp_path: Path) -> None:
    async with opened(tmp_path, session="s") as store:
        for number in range(3):
            for saved in range(2):
                await store.save(Entry(content=f"Fact {number}{saved}."))
            await keeps(store).close_session(notes("s", "We talked."))
            await store.save(Entry(content=f"Late {number}."))
            shown = [entry.content for entry in await lists(store).entries()]
            assert shown[:3] == [f"Late {number}.", f"Fact {number}1.", f"Fact {number}0."]
            assert len(shown) == 3 * (number + 1)
    async with opened(tmp_path) as store:
        assert len(await lists(store).entries()) == 9
    assert len(found_in(tmp_path)) == 2


@pytest.mark.req("GO-G22-close", "GO-G14")
async def test_leaving_by_an_error_writes_every_session_that_runs(tmp_path: Path) -> None:
    with suppress(KeyError):
        async with opened(tmp_path, session="s") as store:
            await store.save(Entry(content="Said in one."))
            await store.save(Entry(content="Said in another.", source=Source(session="t")))
            raise KeyError
    assert len(found_in(tmp_path)) == 3, "the index and two files"
    assert not [path for path in found_in(tmp_path) if ".draft" in path]


@pytest.mark.req("GO-D5", "GO-AT1", "GO-G16", "GO-AT2")
async def test_what_was_saved_is_found_whatever_the_summary_says(tmp_path: Path) -> None:
    async with opened(tmp_path, session="s") as store:
        await store.save(Entry(content="Fixtures live in testdata/golden/.", tags=("Cassette",)))
        await store.save(Entry(content="Use tabs in Makefiles.", kind="preference"))
        assert [hit.entry.content for hit in await store.recall("TESTDATA/golden")] == [
            "Fixtures live in testdata/golden/."
        ]
        await keeps(store).close_session(notes("s", "We talked."))
    async with opened(tmp_path) as store:
        for query in ("testdata/golden", "cassette", "tabs"):
            assert [hit.entry.content.partition("] ")[2] for hit in await store.recall(query)] == ["We talked."]
        preamble = await store.preamble()
    assert "Fixtures live in testdata/golden/." in preamble
    assert "Use tabs in Makefiles." in preamble
    assert "We talked." in preamble


@pytest.mark.req("GO-FRIC", "GO-G12")
async def test_files_read_and_open_threads_serve_the_next_session(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        told = replace(
            notes("s", "Looked around."),
            files_read=("src/app.py", "README.md"),
            open_threads=("Fix the parser", "Tell Nadia"),
        )
        path = await keeps(store).close_session(told)
    text = (tmp_path / path).read_text()
    assert "\n## Files read\n\n- src/app.py\n- README.md\n" in text
    assert "\n## Open threads\n\n- Fix the parser\n- Tell Nadia\n" in text
    async with opened(tmp_path) as store:
        assert [hit.path for hit in await store.recall("src/APP.py")] == [path]
        assert await store.recall("src/other.py") == []
        assert "Left open in the last session:\n- Fix the parser\n- Tell Nadia" in await store.preamble()
        later = HandClock().now().replace(hour=11)
        await keeps(store).close_session(notes("t", "Fixed it.", started=later))
        assert "Fix the parser" not in await store.preamble()
        await keeps(store).close_session(replace(told, files_read=("setup.cfg", "README.md")))
        assert [hit.path for hit in await store.recall("src/APP.py")] == [path], "what it read before stays"
        assert [hit.path for hit in await store.recall("setup.cfg")] == [path]


@pytest.mark.req("GO-G12", "GO-G14", "GO-D5")
async def test_saved_decisions_are_not_told_twice_and_conclusions_give_way_to_newer_ones(tmp_path: Path) -> None:
    async with opened(tmp_path, session="s") as store:
        saved = await store.save(Entry(content="Deploy only from main.", kind="decision"))
        told = replace(notes("s", "One."), decisions=("deploy only from main.", "Keep logs."))
        path = await keeps(store).close_session(told)
        await keeps(store).close_session(told)
        assert [entry.content for entry in await lists(store).entries()] == ["Keep logs.", "Deploy only from main."]
        await keeps(store).close_session(replace(told, decisions=("Keep no logs.",)))
        entries = await lists(store).entries()
        assert [(entry.content, entry.by) for entry in entries] == [
            ("Keep no logs.", "flush"), ("Deploy only from main.", "user"),
        ]  # fmt: skip
        assert entries[1] == saved
        assert "Keep no logs" not in await store.preamble()
    assert (tmp_path / path).read_text().count("## Decisions") == 1


@pytest.mark.req("GO-G14", "GO-G11", "GO-G12", "GO-G16", "GO-G24", "GO-D5", "GO-D10")
async def test_a_session_goes_on_in_its_file(tmp_path: Path) -> None:
    clock = HandClock(LONG_AGO)
    async with opened(tmp_path, clock, session="s") as store:
        await store.save(Entry(content="First."))
        first = await keeps(store).close_session(notes("s", "One.", "walnut", started=LONG_AGO))
        title = (tmp_path / first).read_text().partition("\n")[0]
        clock.turn(days=1)
        await store.save(Entry(content="Second."))
        assert [hit.entry.content for hit in await store.recall("second")] == ["Second."]
    async with opened(tmp_path, clock, session="s") as store:
        assert [entry.content for entry in await lists(store).entries()] == ["Second.", "First."]
        assert await keeps(store).pending_sessions() == ("s",)
        assert "One." in await store.preamble()
        assert [row["tags"] for row in rows(tmp_path)] == [["walnut"]]
        assert await keeps(store).close_session(notes("s", "Both.")) == first
        assert await keeps(store).pending_sessions() == ()
        assert [(row["summary"], row["tags"]) for row in rows(tmp_path)] == [("Both.", ["walnut"])]
        assert (tmp_path / first).read_text().partition("\n")[0] == title, "when it began"
    assert found_in(tmp_path) == ["index.json", first]


@pytest.mark.req("HE-O-audit-forget", "GO-G18")
@pytest.mark.parametrize("closed", [False, True])
async def test_forgetting_takes_an_entry_out_of_everything(tmp_path: Path, closed: bool) -> None:
    async with opened(tmp_path, session="s") as store:
        gone = await store.save(Entry(content="The door code is teapot.", tags=("kettle",)))
        kept = await store.save(Entry(content="We use pnpm."))
        if closed:
            told = replace(notes("s", "The user said: the door code is  teapot!"), open_threads=("Ask why",))
            await keeps(store).close_session(told)
        assert await forgets(store).forget(gone.id, who="user") == gone
        with pytest.raises(EntryNotFound):
            await forgets(store).forget(gone.id, who="user")
        for query in ("teapot", "kettle"):
            assert await store.recall(query) == []
        assert "teapot" not in await store.preamble()
        assert await lists(store).entries() == [kept]
        if closed:
            assert "The user said: (forgotten)!" in await store.preamble()
    texts = [(tmp_path / path).read_text() for path in found_in(tmp_path)]
    assert all("teapot" not in text and "kettle" not in text for text in texts)
    assert sum("We use pnpm." in text for text in texts) == 2


@pytest.mark.req("HE-O-audit-forget", "GO-D10")
async def test_a_forgotten_entry_stands_in_no_digest(tmp_path: Path) -> None:
    async with opened(tmp_path, session="s") as store:
        gone = await store.save(Entry(content="The door code is teapot."))
        await store.save(Entry(content="We use pnpm."))
        await keeps(store).close_session(replace(notes("s", "Asked for the teapot."), pending=True))
        await forgets(store).forget(gone.id, who="user")
        assert [hit.entry.content.partition("] ")[2] for hit in await store.recall("")] == ["Saved: We use pnpm."]


@pytest.mark.req("GO-AT1", "GO-G24-manual", "GO-G14")
async def test_a_saved_summary_is_the_summary(tmp_path: Path) -> None:
    async with opened(tmp_path, session="s") as store:
        await store.save(Entry(content="First words.", kind="session-summary"))
        await store.save(Entry(content="Last words.", kind="session-summary"))
    async with opened(tmp_path) as store:
        assert [hit.entry.content.partition("] ")[2] for hit in await store.recall("")] == ["Last words."]
        assert await keeps(store).pending_sessions() == ()


@pytest.mark.req("GO-I12")
async def test_a_clock_that_stands_or_runs_backwards_reorders_nothing(tmp_path: Path) -> None:
    clock = HandClock()
    said = [f"Fact {number}." for number in (3, 1, 4, 2)]
    async with opened(tmp_path, clock, session="s") as store:
        for number, content in enumerate(said):
            clock.turn(-60 * (number % 2))
            await store.save(Entry(content=content, id=f"given-{9 - number}"))
        running = await lists(store).entries()
    async with opened(tmp_path) as store:
        assert await lists(store).entries() == running
    assert [entry.content for entry in running] == said[::-1]


@pytest.mark.req("FC-SECRET")
async def test_secrets_of_the_closing_notes_are_written_nowhere(tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "a1B2" * 20 + "AA"
    async with opened(tmp_path) as store:
        told = replace(
            notes("s", f"The key is {key}."),
            decisions=(f"Use {key}.",),
            open_threads=(f"Try {key}",),
            files_read=(key,),
        )
        await keeps(store).close_session(told)
    assert all(key not in (tmp_path / path).read_text() for path in found_in(tmp_path))


@pytest.mark.req("GO-I11", "GO-G10")
async def test_everybody_has_a_folder_of_their_own(tmp_path: Path) -> None:
    store = backend(tmp_path)
    mine, other = store.bind(SHOP), store.bind(Scope(user="me", project="farm"))
    await other.save(Entry(content="Cows.", source=Source(session="s")))
    await closes(other).close()
    assert await mine.recall("") == []
    assert await mine.preamble() == ""
    assert found_in(tmp_path)[0].endswith("projects/farm/index.json")


@pytest.mark.req("GO-D13", "GO-G10")
async def test_only_the_owner_can_read_what_was_written(tmp_path: Path) -> None:
    root = tmp_path / "root"
    async with opened(root, session="s") as store:
        await store.save(Entry(content="One."))
        assert (root / "sessions" / ".draft-s.jsonl").stat().st_mode & 0o777 == 0o600
        await keeps(store).close_session(notes("s", "Two."))
    for path in root.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.req("GO-G10", "GO-G17", "GO-PRIV", "GO-D13")
async def test_a_path_without_a_scheme_opens_session_files(tmp_path: Path) -> None:
    harness = tmp_path / ".harness"
    for number in range(2):
        async with open_store(str(harness), scope=SHOP) as store:
            await store.save(Entry(content=f"Fact {number}."))
    assert {path.name for path in harness.iterdir()} >= {"sessions", "index.json", ".gitignore"}
    assert len(list((harness / "sessions").iterdir())) == len(list((harness / "sessions").glob("2*.md"))) == 2
    async with open_store(f"sessions:{harness}?last=1", scope=SHOP) as store:
        assert [entry.content for entry in await lists(store).entries()] == ["Fact 1.", "Fact 0."]
        assert (await store.preamble()).count("Saved:") == 1


@pytest.mark.req("GO-G17")
@pytest.mark.parametrize("options", ["last=two", "first=2"])
async def test_an_option_that_says_nothing_is_refused(tmp_path: Path, options: str) -> None:
    with pytest.raises(InvalidSetting):
        async with open_store(f"sessions:{tmp_path / 'notes'}?{options}", scope=SHOP):
            pass


@pytest.mark.req("GO-G10", "GO-G14")
async def test_session_files_are_the_default_and_their_folder_is_called_harness(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for address, folder in (("./kept", "kept"), ("sessions:", ".harness"), ("sessions", ".harness")):
        async with open_store(address, scope=SHOP) as store:
            await store.save(Entry(content=f"Saved by {address}."))
        written = [path.read_text() for path in (tmp_path / folder / "sessions").glob("*.md")]
        assert any(f"Saved by {address}." in text for text in written)
        assert len(rows(tmp_path / folder)) == len(written)
    assert not (tmp_path / "sessions").exists()
