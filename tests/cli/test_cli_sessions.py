"""The conversations of a root as the person at the machine sees them: all of them, and every word."""

import json
from pathlib import Path

import pytest

from command_line import chat, ricordo
from places import place_of


def _state(session: str, user: str) -> None:
    folder = place_of(Path(".ricordo")) / "workspace/agents/main/state"
    document = {"v": 1, "agent": "main", "session": session, "user": user, "window": []}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{session}.json").write_text(json.dumps(document), encoding="utf-8")


def _calls(path: Path) -> Path:
    call = {"id": "c", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "Caf\\u00e9.py"}'}}
    records = [
        {"role": "user", "content": "Look at the file.", "session": "tools"},
        {"role": "assistant", "content": None, "tool_calls": [call], "session": "tools"},
        {"role": "tool", "tool_call_id": "c", "content": "def Brew():\n    pour()", "session": "tools"},
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.mark.req("AS-BUG-28")
def test_nobody_sees_the_sessions_of_another_user() -> None:
    ricordo("import", chat(Path("monday.jsonl"), session="monday"), "--user", "ana")
    ricordo("import", chat(Path("tuesday.jsonl"), session="tuesday"), "--user", "ben")
    for user, own, other in (("ana", "monday", "tuesday"), ("ben", "tuesday", "monday")):
        assert [each["id"] for each in ricordo("session", "list", "--user", user, "--json").document["sessions"]] == [
            own
        ]
        assert ricordo("session", "show", own, "--user", user).code == 0
        hidden = ricordo("session", "show", other, "--user", user)
        assert (hidden.code, hidden.out) == (1, "")


@pytest.mark.parametrize("last", [1, 2, 3, 99])
def test_the_newest_messages_are_shown_where_asked(last: int) -> None:
    ricordo("import", chat(Path("chat.jsonl"), session="monday"))
    shown = ricordo("session", "show", "monday", "--last", str(last), "--json").document["conversation"]
    assert [each["line"] for each in shown] == [1, 2, 3][-last:]
    assert ricordo("session", "show", "monday", "--last", str(last)).out.count(" 2026-11-02 ") == min(last, 3)


@pytest.mark.req("AS-SESS-04")
@pytest.mark.parametrize(
    ("query", "sort", "line"), [("LOOK at", "text", 1), ("café.PY", "call", 2), ("brew(): POUR", "result", 3)]
)
def test_words_are_found_as_they_stand_in_arguments_and_results_too(query: str, sort: str, line: int) -> None:
    ricordo("import", _calls(Path("calls.jsonl")))
    document = ricordo("session", "search", query, "--exact", "--json").document
    assert (document["total"], document["whole"]) == (1, True)
    (found,) = document["findings"]
    assert (found["session"], found["sort"], found["line"]) == ("tools", sort, line)
    text = Path(found["file"]).read_text(encoding="utf-8").splitlines()[line - 1]
    assert json.loads(text)["id"] == found["message"]
    assert f"{found['file']}:{line}" in ricordo("session", "search", query, "-x").out
    assert ricordo("session", "search", f"{query} and more", "--exact").out == "Nothing found.\n"


def test_words_that_were_forgotten_are_not_found_as_they_stand_either() -> None:
    said = "Remember that the walrus Bartholomew lives in the garage."
    ricordo(
        "import",
        chat(
            Path("chat.jsonl"),
            [("user", said), ("assistant", "Noted: the walrus Bartholomew lives in the garage.")],
            session="one",
        ),
    )
    saved = ricordo("remember", "The walrus Bartholomew lives in the garage.", "--json").document
    assert ricordo("session", "search", "Bartholomew", "--exact", "--json").document["total"] == 2
    ricordo("forget", saved["entry"]["id"], "--yes")
    assert ricordo("session", "search", "Bartholomew", "--exact").out == "Nothing found.\n"


def test_what_does_not_fit_is_counted() -> None:
    ricordo("import", chat(Path("chat.jsonl"), [("user", f"Pear {number}.") for number in range(5)]))
    shown = ricordo("session", "search", "PEAR", "--exact", "--limit", "2").out
    assert [line[:10] for line in shown.splitlines() if line[0] in "12…"] == ["1. Pear 4.", "2. Pear 3.", "… and 3 mo"]
    done = ricordo("session", "search", " ", "--exact")
    assert (done.code, done.err.count("\n")) == (1, 1)


@pytest.mark.req("AS-SESS-04")
def test_a_search_word_for_word_is_narrowed_paged_and_shown_with_what_was_said_beside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ricordo("import", chat(Path("talk.jsonl"), session="talk"))
    search = ("session", "search", "main", "--exact")
    document = ricordo(*search, "--json").document
    newest, oldest = document["findings"]
    assert (newest["role"], oldest["role"]) == ("assistant", "user")
    assert (newest["before"]["speaker"], oldest["before"]) == ("user", None)
    assert newest["after"]["text"].startswith("The staging database")
    for options, found in (
        (("--speaker", "user"), [oldest]), (("--page", "2", "--limit", "1"), [oldest]), (("--page", "3"), []),
        (("--until", "2026-11-02T09:01:00Z"), [oldest]), (("--session", "other"), []),
    ):  # fmt: skip
        assert ricordo(*search, *options, "--json").document["findings"] == found
    ranked = ricordo("session", "search", "deploy main", "--speaker", "assistant", "--json").document["hits"]
    assert {hit["speaker"] for hit in ranked} == {"assistant"}
    monkeypatch.setattr("ricordo.cli.render.is_colourful", lambda: True)
    monkeypatch.setattr("ricordo.cli.render.bold", lambda text: f"<{text}>")
    assert "deploy only from <main>" in ricordo(*search).out


def test_the_words_of_a_query_are_bold_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    ricordo("remember", "Deployments go out on Mondays.")
    plain = ricordo("recall", "deployment").out
    monkeypatch.setattr("ricordo.cli.render.is_colourful", lambda: True)
    monkeypatch.setattr("ricordo.cli.render.bold", lambda text: f"<{text}>")
    monkeypatch.setattr("ricordo.cli.memory_output.bold", lambda text: f"<{text}>")
    assert "Deployments go out" in plain
    assert "<Deployments> go out" in ricordo("recall", "deployment").out
    assert "<" not in ricordo("recall", "deployment", "--json").out
