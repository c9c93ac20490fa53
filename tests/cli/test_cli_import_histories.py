"""Importing from the command line: whose memory it becomes, what is shown before and after, and one undo for all."""

import json
from pathlib import Path

import pytest

from command_line import chat, ricordo

Rows = list[tuple[str, str]]
DECISION = "We decided to deploy only from main, never from a branch."


def _transcript(home: Path, project: Path, said: Rows, *, session: str = "coding") -> Path:
    """Write a transcript of Claude Code."""
    path = home / ".claude" / "projects" / str(project).replace("/", "-") / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "type": role, "uuid": f"{session}-{number}", "parentUuid": f"{session}-{number - 1}" if number else None,
            "sessionId": session, "cwd": str(project), "timestamp": f"2026-11-02T09:{number:02}:00.000Z",
            "message": {"role": role, "content": text},
        }
        for number, (role, text) in enumerate(said)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return path


def _project(path: Path) -> Path:
    (path / ".git").mkdir(parents=True)
    return path


def _files(root: Path) -> dict[str, bytes]:
    """Return the files of a memory that hold words, without the log of its changes and caches."""
    skipped = {"history", "locks", "trash"}
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.suffix not in {".db", ".db-wal", ".db-shm"} and not skipped & set(path.parts)
    }


def _texts(*options: str) -> set[str]:
    return {each["content"] for each in ricordo("memory", "list", "--json", *options).document["entries"]}


@pytest.fixture
def notes() -> Path:
    """Return a file of notes with a convention."""
    path = Path("CLAUDE.md")
    path.write_text("# Rules\n\n- Invoices are numbered by year.\n", encoding="utf-8")
    return path


def test_the_sessions_of_this_project_are_imported_and_no_others(home: Path, tmp_path: Path) -> None:
    other = _project(tmp_path / "other")
    below = Path.cwd() / "backend"
    below.mkdir()
    _transcript(home, below, [("user", DECISION)])
    _transcript(home, other, [("user", "The vault code of the client is on the blue card.")], session="secret")
    done = ricordo("import", "claude-code")
    assert done.code == 0
    assert [each["id"] for each in ricordo("session", "list", "--json").document["sessions"]] == ["coding"]
    assert "Left out: 1 file of 1 other project" in done.out
    assert not (other / ".ricordo").exists()


def test_with_all_projects_each_session_goes_into_the_memory_of_its_project(home: Path, tmp_path: Path) -> None:
    other, gone = _project(tmp_path / "other"), tmp_path / "gone"
    _transcript(home, Path.cwd(), [("user", DECISION)])
    _transcript(home, other, [("user", "The bakery opens at seven.")], session="bakery")
    _transcript(home, gone, [("user", "Nobody asks for this.")], session="lost")
    _transcript(home, home, [("user", "Nor for this.")], session="home")
    done = ricordo("import", "claude-code", "--all-projects")
    assert done.code == 0
    assert "Left out: 2 files of folders that are gone or no project" in done.out
    assert [each["id"] for each in ricordo("session", "list", "--json").document["sessions"]] == ["coding"]
    there = ("--root", str(other / ".ricordo"))
    assert [each["id"] for each in ricordo("session", "list", "--json", *there).document["sessions"]] == ["bakery"]
    assert not gone.exists()
    assert not (home / ".ricordo").exists()


def test_all_projects_into_a_named_root_are_all_in_that_one(home: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        _transcript(home, tmp_path / name, [("user", f"The name of it is {name}.")], session=name)
    assert ricordo("import", "claude-code", "--all-projects", "--root", "all").code == 0
    sessions = ricordo("session", "list", "--json", "--root", "all").document["sessions"]
    assert {each["id"] for each in sessions} == {"one", "two"}


def test_a_root_that_is_not_trusted_gets_nothing_and_the_others_are_imported(home: Path, tmp_path: Path) -> None:
    other = _project(tmp_path / "other")
    (other / ".ricordo" / "workspace").mkdir(parents=True)
    (other / ".ricordo" / "project.json").write_text('{"scope": {"project": "other"}}')
    before = _files(other)
    _transcript(home, Path.cwd(), [("user", DECISION)])
    _transcript(home, other, [("user", "The bakery opens at seven.")], session="bakery")
    done = ricordo("import", "claude-code", "--all-projects")
    assert done.code == 1
    assert "trust" in done.err
    assert _files(other) == before
    assert [each["id"] for each in ricordo("session", "list", "--json").document["sessions"]] == ["coding"]


def test_a_dry_run_shows_what_would_be_imported_and_writes_nothing(home: Path, notes: Path) -> None:
    path = _transcript(home, Path.cwd(), [("user", DECISION), ("assistant", "Understood.")])
    before = sorted(Path.cwd().rglob("*"))
    plan = ricordo("import", "claude-code", "--dry-run", "--json").document["plans"][0]
    counted = ("name", "files", "sessions", "messages", "memories")
    assert [tuple(each[key] for key in counted) for each in plan["formats"]] == [
        ("claude-code", 1, 1, 2, 0),
        ("notes", 1, 0, 0, 1),
    ]
    assert plan["formats"][0]["bytes"] == path.stat().st_size
    assert plan["formats"][0]["first"].startswith("2026-11-02T09:00")
    shown = ricordo("import", "claude-code", "--dry-run").out
    assert "1 session, 2 messages, 2026-11-02 to 2026-11-02" in shown
    assert "Nothing was written." in shown
    assert sorted(Path.cwd().rglob("*")) == before


def test_without_a_name_it_shows_whose_histories_are_there(home: Path) -> None:
    _transcript(home, Path.cwd(), [("user", DECISION)])
    rows = ricordo("import", "--json").document["histories"]
    assert {each["name"] for each in rows} >= {"claude-code", "codex", "gemini", "opencode"}
    assert [(each["files"], each["here"]) for each in rows if each["name"] == "claude-code"] == [(1, 1)]
    assert not Path(".ricordo").exists()


def test_every_entry_names_its_origin(notes: Path) -> None:
    ricordo("import", chat(Path("chat.jsonl")), notes)
    entries = ricordo("memory", "list", "--json").document["entries"]
    assert len(entries) > 2
    assert {each["source"]["origin"] for each in entries} == {"chat:chat.jsonl", "notes:CLAUDE.md:3"}
    session = ricordo("session", "list", "--json").document["sessions"][0]["id"]
    assert {each["source"]["session"] for each in entries} == {session, None}


def test_a_second_time_adds_neither_messages_nor_memories(notes: Path) -> None:
    ricordo("import", chat(Path("chat.jsonl")), notes)
    before = _files(Path(".ricordo"))
    history = ricordo("history", "--json").document
    done = ricordo("import", "chat.jsonl", notes)
    assert done.code == 0
    assert "Nothing was added: all of it was there already." in done.out
    assert _files(Path(".ricordo")) == before
    assert ricordo("history", "--json").document == history


@pytest.mark.req("AS-LEDGER-01")
def test_every_message_keeps_its_own_time() -> None:
    ricordo("import", chat(Path("chat.jsonl"), session="s"))
    shown = ricordo("session", "show", "s", "--json").document["conversation"]
    assert [each["time"][:16] for each in shown] == ["2026-11-02T09:00", "2026-11-02T09:01", "2026-11-02T09:02"]


@pytest.mark.req("FC-UNDO")
def test_one_undo_takes_all_of_it_back_and_it_can_be_imported_again(notes: Path) -> None:
    ricordo("remember", "We use uv for environments.")
    known = _texts()
    first = ricordo("import", chat(Path("chat.jsonl"), session="monday"), notes, "--json").document
    [change] = first["changes"]
    found = ricordo("recall", "staging database port", "--json").document["hits"]
    assert found
    assert ricordo("undo", change["id"]).code == 0
    assert _texts() == known
    assert ricordo("session", "list", "--json").document["sessions"] == []
    assert ricordo("recall", "staging database port", "--json").document["hits"] == []
    said = (b"Nadia", b"5433", b"deploy", b"Invoices")
    assert [name for name, data in _files(Path(".ricordo")).items() if any(word in data for word in said)] == []
    again = ricordo("import", "chat.jsonl", notes, "--json").document
    assert (again["messages"], again["entries"]) == (first["messages"], first["entries"])
    assert again["memories"] == first["memories"]


@pytest.mark.req("FC-UNDO")
def test_an_undo_of_the_undo_brings_all_of_it_back(notes: Path) -> None:
    first = ricordo("import", chat(Path("chat.jsonl"), session="monday"), notes, "--json").document
    texts = _texts()
    shown = ricordo("session", "show", "monday", "--json").document["conversation"]
    ricordo("undo", first["changes"][0]["id"])
    undo = ricordo("history", "--json").document["changes"][0]
    assert undo["action"] == "undo"
    assert ricordo("undo", undo["id"]).code == 0
    assert _texts() == texts
    assert ricordo("session", "show", "monday", "--json").document["conversation"] == shown


def test_what_a_person_pinned_since_stays_and_the_rest_is_taken_back() -> None:
    first = ricordo("import", chat(Path("chat.jsonl"), session="monday"), "--json").document
    kept = first["telling"][0]
    ricordo("consolidate")
    ricordo("pin", kept["id"])
    assert ricordo("undo", first["changes"][0]["id"]).code == 0
    assert _texts() == {kept["content"]}
    assert ricordo("session", "list", "--json").document["sessions"] == []


def test_messages_that_were_there_before_stay_when_the_import_is_undone() -> None:
    chat(Path("chat.jsonl"), [("user", DECISION)], session="s")
    ricordo("import", "chat.jsonl")
    chat(Path("chat.jsonl"), [("user", DECISION), ("assistant", "Noted."), ("user", "Paul owns billing.")], session="s")
    second = ricordo("import", "chat.jsonl", "--json").document
    assert second["messages"]["new"] == 2
    ricordo("undo", second["changes"][0]["id"])
    shown = ricordo("session", "show", "s", "--json").document["conversation"]
    assert [each["text"] for each in shown] == [DECISION]
    assert not any("billing" in text for text in _texts())


def test_memories_of_other_systems_are_found_but_in_no_prompt_until_they_are_trusted(notes: Path) -> None:
    ricordo("import", notes)
    assert "Invoices" in ricordo("recall", "how are invoices numbered").out
    assert "Invoices" not in ricordo("context").out
    [doubt] = ricordo("review", "--json").document["doubts"]
    ricordo("review", "accept", doubt["entry"]["id"])
    ricordo("consolidate")
    assert "Invoices" in ricordo("context").out


def test_notes_of_the_person_hold_for_all_projects_and_are_taken_back_too(home: Path, tmp_path: Path) -> None:
    _transcript(home, Path.cwd(), [("user", DECISION)])
    (home / ".claude" / "CLAUDE.md").write_text("- Answers are wanted in metric units.\n", encoding="utf-8")
    [change] = ricordo("import", "claude-code", "--json").document["changes"]
    again = ricordo("import", "claude-code", "--json").document["memories"]
    assert (again["read"], again["new"], again["known"]) == (1, 0, 1)
    there = ("--root", str(tmp_path / "other"))
    ricordo("remember", "The other project is a bakery.", *there)
    assert "metric units" in ricordo("recall", "units of answers", *there).out
    assert ricordo("undo", change["id"]).code == 0
    assert "metric units" not in ricordo("recall", "units of answers", *there).out
    assert _texts() == set()


def test_trusted_memories_count_as_confirmed_at_once(notes: Path) -> None:
    ricordo("import", notes, "--trust")
    ricordo("consolidate")
    assert "Invoices" in ricordo("context").out
    assert ricordo("review", "--json").document["doubts"] == []


def test_memories_that_were_there_count_as_confirmed_once_their_source_is_trusted(notes: Path) -> None:
    ricordo("import", notes)
    done = ricordo("import", notes, "--trust", "--json").document
    assert (done["memories"]["confirmed"], done["changes"]) == (1, [])
    assert ricordo("review", "--json").document["doubts"] == []
    ricordo("undo", *done["confirmations"])
    assert len(ricordo("review", "--json").document["doubts"]) == 1
    assert "Confirmed: 1 known memory." in ricordo("import", notes, "--trust").out
    assert ricordo("import", notes, "--trust", "--json").document["memories"]["confirmed"] == 0


def test_only_what_an_import_brought_is_told_to_be_doubtful(notes: Path) -> None:
    ricordo("import", notes)
    Path("AGENTS.md").write_text("- Prices are given without tax.\n", encoding="utf-8")
    assert ricordo("import", "AGENTS.md", "--json").document["doubtful"] == 1


@pytest.mark.req("HE-O-audit-forget")
def test_what_was_forgotten_is_not_imported_again(notes: Path) -> None:
    ricordo("import", notes)
    [entry] = ricordo("memory", "list", "--json").document["entries"]
    ricordo("forget", entry["id"])
    assert "0 new, 0 known, 1 forgotten here and left out." in ricordo("import", notes).out
    assert _texts() == set()


def test_after_an_import_a_person_sees_what_they_got_and_how_to_take_it_back(notes: Path) -> None:
    owned = ("user", "The staging database is owned by Nadia.")
    rules = ["Always ask Nadia before a migration.", "Always deploy the project Lanterna on Kestrel hosts."]
    rules += ["Never restart Kestrel by hand.", "My sister Ana is allergic to nuts."]
    said = [("user", DECISION), ("assistant", "Noted."), owned, *(("user", rule) for rule in rules)]
    done = ricordo("import", chat(Path("chat.jsonl"), said), notes)
    assert "What tells most:" in done.out
    assert f"- decision {DECISION}"[:30] in done.out
    assert "People: Nadia (2), Ana (1)" in done.out
    assert "Projects: Lanterna (1)" in done.out
    assert "Other names: Kestrel (2)" in done.out
    assert "1 memory is doubtful: `ricordo review`." in done.out
    changes = ricordo("history", "--json").document["changes"]
    [change] = [each for each in changes if each["reason"].startswith("chat, notes: chat.jsonl and 1 more")]
    assert f"`ricordo undo {change['id']}` takes all of it back." in done.out
