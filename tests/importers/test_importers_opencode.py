"""Sessions of opencode: from its database, and from the files of early versions."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from importing import Taken, take
from ricordo.errors import HistoryUnreadable
from ricordo.importers import find_histories, read_items
from ricordo.messages import JsonValue, get_mark

Session = dict[str, Any]
Writer = Callable[[Path, list[Session]], Path]


def write_database(home: Path, sessions: list[Session]) -> Path:
    """Write the tables as opencode 1.18 makes them, as far as they are read."""
    path = home / ".local" / "share" / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text, "
            "directory text NOT NULL, title text, revert text, time_created integer NOT NULL)"
        )
        columns = "session_id text NOT NULL, time_created integer NOT NULL, time_updated integer, data text NOT NULL)"
        database.execute(f"CREATE TABLE message (id text PRIMARY KEY, {columns}")
        database.execute(f"CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, {columns}")
        for number, each in enumerate(sessions):
            revert = json.dumps({"messageID": each["revert"]}) if "revert" in each else None
            row = (each["id"], "global", each.get("parent"), "x", each["directory"], "t", revert, number)
            database.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            for at, (name, info, parts) in enumerate(each["messages"]):
                data = info if isinstance(info, str) else json.dumps(info)
                database.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", (name, each["id"], at, at, data))
                for place, part in enumerate(parts):
                    own = (f"prt_{name}_{place}", name, each["id"], at, at, json.dumps(part))
                    database.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", own)
    return path


def write_folder(home: Path, sessions: list[Session]) -> Path:
    """Write the files as versions before the database did."""
    storage = home / ".local" / "share" / "opencode" / "storage"

    def put(path: Path, value: object) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value))

    for each in sessions:
        info = {"id": each["id"], "parentID": each.get("parent"), "directory": each["directory"]}
        revert = {"revert": {"messageID": each["revert"]}} if "revert" in each else {}
        put(storage / "session" / "global" / f"{each['id']}.json", info | revert)
        for name, message, parts in each["messages"]:
            data = message if isinstance(message, str) else {"id": name, "sessionID": each["id"], **message}
            put(storage / "message" / each["id"] / f"{name}.json", data)
            for place, part in enumerate(parts):
                put(storage / "part" / name / f"prt_{place}.json", {"id": f"prt_{place}", "messageID": name, **part})
    return storage


@pytest.fixture(params=[write_database, write_folder], ids=["database", "folder"])
def write(request: pytest.FixtureRequest) -> Writer:
    writer: Writer = request.param
    return writer


def info(role: str, **more: JsonValue) -> dict[str, JsonValue]:
    return {"role": role, "time": {"created": 1795550109555}, **more}


def text(words: str, **more: JsonValue) -> dict[str, JsonValue]:
    return {"type": "text", "text": words, **more}


def tool(name: str, **state: JsonValue) -> dict[str, JsonValue]:
    return {"type": "tool", "tool": name, "callID": f"call-{name}", "state": {"input": {"x": 1}, **state}}


def test_a_session_is_read_with_its_tools_and_files(tmp_path: Path, write: Writer) -> None:
    file = {"type": "file", "mime": "image/png", "filename": "boot.png", "url": "data:image/png;base64,AAAA"}
    done, failed = (
        tool("bash", status="completed", output="9 boots"),
        tool("read", status="error", error="no such file"),
    )
    session = {"id": "ses_1", "directory": "/shop", "messages": [
        ("msg_1", info("user"), [text("How many boots?"), text("<file>…</file>", synthetic=True), file]),
        ("msg_2", info("assistant"), [{"type": "step-start"}, done, failed, tool("task", status="running")]),
        ("msg_3", info("assistant"), [text("Nine."), {"type": "reasoning", "text": "I count."}]),
        ("msg_4", info("assistant", summary=True), [text("They counted boots.")]),
    ]}  # fmt: skip
    taken = take(write(tmp_path, [session]))
    assert [(each.message.id, each.message.role) for each in taken.imported] == [
        ("msg_1", "user"), ("msg_2", "assistant"), ("msg_2-call-bash", "tool"), ("msg_2-call-read", "tool"),
        ("msg_3", "assistant"), ("msg_4", "assistant"),
    ]  # fmt: skip
    assert [each.text for each in (one.message for one in taken.imported) if each.text] == [
        "How many boots?", "Nine.", "They counted boots.",
    ]  # fmt: skip
    assert [call.name for call in taken.imported[1].message.tool_calls] == ["bash", "read", "task"]
    assert taken.imported[2].message.tool_results[0].text == "9 boots"
    assert get_mark(taken.imported[5].message) == "summary"
    assert {each.message.time is not None for each in taken.imported} == {True}
    assert set(taken.sessions) == {"ses_1"}


def test_what_was_reverted_and_what_a_sub_agent_was_asked_was_not_said(tmp_path: Path, write: Writer) -> None:
    sessions: list[Session] = [
        {"id": "ses_1", "directory": "/shop", "revert": "msg_2", "messages": [
            ("msg_1", info("user"), [text("one")]), ("msg_2", info("user"), [text("two")]),
        ]},
        {"id": "ses_2", "parent": "ses_1", "directory": "/shop", "messages": [
            ("msg_3", info("user"), [text("find")]), ("msg_4", info("assistant"), [text("found")]),
        ]},
    ]  # fmt: skip
    taken = take(write(tmp_path, sessions))
    marks = {each.message.text: get_mark(each.message) for each in taken.imported}
    assert marks == {"one": None, "find": "notice", "found": None}


def test_the_sessions_of_each_directory_are_found_apart(tmp_path: Path, write: Writer) -> None:
    sessions: list[Session] = [
        {"id": f"ses_{name}", "directory": f"/{name}", "messages": [(f"msg_{name}", info("user"), [text(name)])]}
        for name in ("shop", "club")
    ]
    write(tmp_path, sessions)
    found = find_histories("opencode", tmp_path, {})
    assert sorted(str(each.folder) for each in found) == ["/club", "/shop"]
    for each in found:
        assert each.form is not None
        [item] = read_items(each.source, each.form)
        assert item == take_of(tmp_path, str(each.folder)[1:])
    assert find_histories("opencode", tmp_path / "nobody", {}) == []


def take_of(home: Path, name: str) -> object:
    source = home / ".local" / "share" / "opencode"
    taken: Taken = take(source / "opencode.db" if (source / "opencode.db").exists() else source / "storage")
    [own] = [each for each in taken.imported if each.message.text == name]
    return own.__class__(session=own.session, message=own.message, line=1)


def test_a_broken_message_hides_no_other(tmp_path: Path, write: Writer) -> None:
    session = {"id": "ses_1", "directory": "/shop", "messages": [
        ("msg_1", "{torn", []), ("msg_2", info("robot"), [text("beep")]), ("msg_3", info("user"), [text("three")]),
    ]}  # fmt: skip
    taken = take(write(tmp_path, [session]))
    assert taken.texts == ["three"]
    assert len(taken.problems) == 2


def test_a_database_of_a_version_that_is_not_known_says_so(tmp_path: Path) -> None:
    path = write_database(tmp_path, [])
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("ALTER TABLE session RENAME COLUMN directory TO place")
    with pytest.raises(HistoryUnreadable, match="directory"):
        take(path)
    assert [each.source.path for each in find_histories("opencode", tmp_path, {})] == [path]


def test_a_database_is_read_while_the_program_writes_and_nothing_of_it_is_changed(tmp_path: Path) -> None:
    session = {"id": "ses_1", "directory": "/shop", "messages": [("msg_1", info("user"), [text("one")])]}
    path = write_database(tmp_path, [session])
    before = path.read_bytes()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("UPDATE part SET time_updated = 7")
        assert take(path).texts == ["one"]
        database.rollback()
    write_only = tmp_path / "copy.db"
    write_only.write_bytes(before)
    assert take(write_only).texts == ["one"]
    assert sorted(each.name for each in tmp_path.glob("copy*")) == ["copy.db"]


def test_a_damaged_database_is_one_error(tmp_path: Path) -> None:
    session = {"id": "ses_1", "directory": "/shop", "messages": [
        (f"msg_{number}", info("user"), [text("words " * 200)]) for number in range(50)
    ]}  # fmt: skip
    path = write_database(tmp_path, [session])
    data = path.read_bytes()
    path.write_bytes(data[:8_000] + b"\xff" * 8_000 + data[16_000:])
    with pytest.raises(HistoryUnreadable):
        take(path)
