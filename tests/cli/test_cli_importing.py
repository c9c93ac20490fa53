"""Taking in conversations from the command line: all of it, once, whatever lies in the file."""

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import TALK, chat, ricordo
from counted_work import counted_work
from ricordo.importers import importing
from ricordo.workspace.transcript import Transcript


def _conversations() -> dict[str, list[tuple[str, str]]]:
    """Return what each session holds, as ids and texts."""
    sessions = [each["id"] for each in ricordo("session", "list", "--json").document["sessions"]]
    shown = {name: ricordo("session", "show", name, "--json").document["conversation"] for name in sessions}
    return {name: [(each["id"], each["text"]) for each in messages] for name, messages in shown.items()}


def test_a_conversation_is_kept_and_learned_from_and_the_new_root_is_named() -> None:
    done = ricordo("import", chat(Path("chat.jsonl"), session="monday"))
    assert done.code == 0
    assert f"Created a memory in {Path.cwd() / '.ricordo'}" in done.out
    assert "Read 3 messages in 1 session: 3 new, 0 known." in done.out
    assert [text for _, text in _conversations()["monday"]] == [text for _, text in TALK]
    answer = ricordo("ask", "Who owns the staging database?", "--json").document
    assert "Nadia" in answer["hit"]["entry"]["content"]
    line = Path(answer["hit"]["file"]).read_text(encoding="utf-8").splitlines()[answer["hit"]["line"] - 1]
    assert "Nadia" in line


def test_the_first_question_after_an_import_finds_everything_indexed() -> None:
    ricordo("import", chat(Path("chat.jsonl"), [("user", "How was the regatta?"), ("assistant", "Windy.")]))
    with counted_work() as work:
        assert "Windy" in ricordo("session", "search", "windy").out
    assert work.rows == 0


@pytest.mark.req("AS-TRANS-01")
def test_the_same_file_twice_adds_nothing_and_says_so() -> None:
    said = [*TALK, ("user", "Yes."), ("assistant", "Fine."), ("user", "Yes.")]
    file = chat(Path("chat.jsonl"), said)
    ricordo("import", file)
    before, entries = _conversations(), ricordo("memory", "list", "--json").document
    again = ricordo("import", file)
    assert again.code == 0
    assert "0 new, 6 known" in again.out
    assert "Nothing was added" in again.out
    assert _conversations() == before
    assert ricordo("memory", "list", "--json").document == entries


def test_a_file_that_has_grown_adds_what_is_new() -> None:
    ricordo("import", chat(Path("chat.jsonl"), TALK[:2]))
    done = ricordo("import", chat(Path("chat.jsonl"), TALK), "--json")
    assert done.document["messages"] == {"read": 3, "new": 1, "known": 2}


@pytest.mark.req("AS-TRANS-02")
def test_a_broken_line_is_reported_with_its_number_and_hides_no_other() -> None:
    file = chat(Path("chat.jsonl"), session="monday")
    lines = file.read_text(encoding="utf-8").splitlines()
    lines.insert(1, '{"role": "user", "content": "tor')
    file.write_text("\n".join(lines), encoding="utf-8")
    done = ricordo("import", file)
    assert done.code == 0
    assert done.err.startswith("chat.jsonl:2: skipped:")
    assert "Traceback" not in done.err
    assert len(_conversations()["monday"]) == 3
    told = ricordo("import", file, "--json").document
    assert [(each["file"], each["line"]) for each in told["problems"]] == [("chat.jsonl", 2)]


def test_of_many_broken_lines_the_first_are_shown_and_all_are_counted() -> None:
    file = chat(Path("chat.jsonl"))
    file.write_text(file.read_text(encoding="utf-8") + "{torn\n" * 100, encoding="utf-8")
    done = ricordo("import", file)
    assert done.err.count("skipped:") == 20
    assert "80 more records skipped" in done.err
    assert "Skipped 100 records." in done.out


@pytest.mark.parametrize("content", ["{torn\n", '{"settings": {"theme": "dark"}}\n'])
def test_a_file_without_a_conversation_fails_and_creates_no_root(content: str) -> None:
    Path("chat.jsonl").write_text(content, encoding="utf-8")
    done = ricordo("import", "chat.jsonl")
    assert done.code == 1
    assert "ricordo: chat.jsonl holds nothing to import." in done.err
    assert not Path(".ricordo").exists()


def test_an_empty_file_is_said_to_be_empty() -> None:
    Path("chat.jsonl").write_text("", encoding="utf-8")
    assert ricordo("import", "chat.jsonl").err == "ricordo: chat.jsonl is empty.\n"


def test_the_forms_that_are_understood_are_listed_once() -> None:
    for name in ("one.json", "two.json"):
        Path(name).write_text("{}", encoding="utf-8")
    done = ricordo("import", "one.json", "two.json")
    assert done.err.count("holds nothing to import.") == 2
    assert done.err.count("Understood are:") == 1
    assert "conversations" in done.err
    told = ricordo("import", "one.json", "two.json", "--json").document
    assert told["empty"] == ["one.json", "two.json"]
    assert "Claude Code" in told["understood"]


def test_a_file_that_is_not_utf8_is_noted_and_nothing_of_it_skipped() -> None:
    Path("chat.jsonl").write_bytes('{"role": "user", "content": "Die Größe ist M."}\n'.encode("latin-1"))
    done = ricordo("import", "chat.jsonl", "--session", "s")
    assert done.err == "chat.jsonl:1: read all the same: bytes that were no UTF-8 and are replaced by U+FFFD: 2\n"
    assert "kipped" not in done.out
    again = ricordo("import", "chat.jsonl", "--session", "s", "--json").document
    assert (again["problem_count"], len(again["notes"])) == (0, 1)


def test_a_missing_file_does_not_keep_the_others_out() -> None:
    done = ricordo("import", "missing.jsonl", chat(Path("chat.jsonl"), session="monday"))
    assert done.code == 1
    assert "missing.jsonl" in done.err
    assert len(_conversations()["monday"]) == 3


def test_a_folder_is_all_its_conversations() -> None:
    Path("chats").mkdir()
    chat(Path("chats/one.jsonl"), session="one")
    Path("chats/two.json").write_text(
        json.dumps({"id": "two", "messages": [{"role": "user", "content": "Hello there."}]}), encoding="utf-8"
    )
    Path("chats/notes.txt").write_text("no conversation", encoding="utf-8")
    assert ricordo("import", "chats").code == 0
    assert len(_conversations()) == 2


def test_standard_input_is_read_where_a_dash_stands() -> None:
    said = chat(Path("chat.jsonl"), session="piped").read_text(encoding="utf-8")
    assert ricordo("import", "-", stdin=said).code == 0
    assert len(_conversations()["piped"]) == 3


def test_all_messages_are_gathered_in_one_session_when_it_is_named() -> None:
    records = [
        {"session": session, "id": f"m{number}", "role": "user", "content": f"Said in {session}: {number}."}
        for session in ("one", "two")
        for number in range(3)
    ]
    Path("chat.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    ricordo("import", "chat.jsonl", "--session", "both")
    found = _conversations()
    assert list(found) == ["both"]
    assert sorted(text for _, text in found["both"]) == sorted(each["content"] for each in records)
    assert ricordo("import", "chat.jsonl", "--session", "both", "--json").document["messages"]["new"] == 0


def test_a_long_history_in_small_batches_is_kept_as_it_is_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        {"session": f"s{number // 7 % 4}", "role": "user", "content": f"Thought {number % 5}."} for number in range(120)
    ]
    Path("chat.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    ricordo("import", "chat.jsonl")
    whole = _conversations()
    assert sum(map(len, whole.values())) == 120
    monkeypatch.setattr(importing, "_BATCH_MESSAGES", 10)
    ricordo("import", "chat.jsonl", "--root", "batched")
    monkeypatch.setenv("RICORDO_ROOT", "batched")
    assert _conversations() == whole


def test_after_an_interruption_the_same_command_goes_on_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [{"session": f"s{number // 10}", "role": "user", "content": f"Thought {number}."} for number in range(50)]
    Path("chat.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    monkeypatch.setattr(importing, "_BATCH_MESSAGES", 10)
    whole = Transcript.append
    calls = iter(range(1_000))

    async def interrupted(self: Transcript, *given: Any, **named: Any) -> Any:
        if next(calls) == 2:
            raise KeyboardInterrupt
        return await whole(self, *given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(Transcript, "append", interrupted)
        done = ricordo("import", "chat.jsonl")
    assert done.code == 130
    assert done.err.splitlines() == [
        "Until then 20 messages were imported. The same command goes on from there.",
        "ricordo: interrupted; what was saved before is kept",
    ]
    again = ricordo("import", "chat.jsonl", "--json").document
    assert again["messages"] == {"read": 50, "new": 30, "known": 20}
    assert sum(map(len, _conversations().values())) == 50


def test_the_transcripts_of_claude_code_are_found_for_the_project(home: Path) -> None:
    project = Path.cwd()
    folder = home / ".claude" / "projects" / "".join(c if c.isalnum() and c.isascii() else "-" for c in str(project))
    folder.mkdir(parents=True)
    row = {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "sessionId": "coding",
        "cwd": str(project),
        "timestamp": "2026-11-02T09:00:00.000Z",
        "message": {"role": "user", "content": "The staging database runs on port 5433."},
    }
    (folder / "coding.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    assert ricordo("import", "claude-code").code == 0
    assert [text for _, text in _conversations()["coding"]] == ["The staging database runs on port 5433."]


def test_a_project_without_a_history_of_claude_code_fails_in_one_line() -> None:
    done = ricordo("import", "claude-code")
    assert done.code == 1
    assert done.err.count("\n") == 1


@pytest.mark.req("FC-SECRET")
def test_a_secret_reaches_neither_a_file_nor_the_screen() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    said = [("user", f"The token for the releases is {secret}, keep it."), ("assistant", "Noted.")]
    file = chat(Path("chat.jsonl"), said, session="monday")
    shown = [
        ricordo("import", file),
        ricordo("session", "show", "monday"),
        ricordo("memory", "list"),
        ricordo("doctor"),
    ]
    assert all(secret not in done.out + done.err for done in shown)
    assert "[secret:" in shown[1].out
    assert [p for p in Path(".ricordo").rglob("*") if p.is_file() and secret.encode() in p.read_bytes()] == []


@pytest.mark.parametrize("session", ["_draft", "..", "Été 2026 / Lyon", "a" * 300, "con:1"])
def test_a_session_of_any_name_is_kept(session: str) -> None:
    assert ricordo("import", chat(Path("chat.jsonl"), session=session)).code == 0
    assert [len(messages) for messages in _conversations().values()] == [3]
