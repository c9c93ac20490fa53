"""An import through the command while something goes wrong or goes on: a full disk, a growing file, a question."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import ricordo
from ricordo.storage import Disk

SESSIONS, EACH = 6, 10


def _row(session: int, number: int) -> str:
    return json.dumps({"session": f"s{session}", "role": "user", "content": f"Shelf {session}-{number} holds oak."})


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file of several sessions, each of which is a batch."""
    path = Path("chat.jsonl")
    rows = [_row(session, number) for session in range(SESSIONS) for number in range(EACH)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    monkeypatch.setattr("ricordo.importers.importing._BATCH_MESSAGES", EACH)
    return path


def _before_each_session(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], None]) -> None:
    """Do something before a session is written, with its number."""
    whole, waiting = Disk.write, list(range(SESSIONS))

    def write(self: Disk, descriptor: int, data: bytes) -> None:
        if waiting and f"Shelf {waiting[0]}-0 ".encode() in data:
            act(waiting.pop(0))
        whole(self, descriptor, data)

    monkeypatch.setattr(Disk, "write", write)


def _texts() -> list[str]:
    names = [each["id"] for each in ricordo("session", "list", "--json").document["sessions"]]
    shown = [ricordo("session", "show", name, "--json").document["conversation"] for name in sorted(names)]
    return [message["text"] for conversation in shown for message in conversation]


def _expected(count: int = EACH) -> list[str]:
    return [f"Shelf {session}-{number} holds oak." for session in range(SESSIONS) for number in range(count)]


@pytest.mark.parametrize("room", [12, 25, 40])
def test_a_disk_that_fills_is_said_and_the_same_command_goes_on_when_there_is_room(
    chat: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    writes = iter(range(10_000))

    def write(self: Disk, descriptor: int, data: bytes) -> None:
        if next(writes) < room:
            whole(self, descriptor, data)
        else:
            whole(self, descriptor, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    whole = Disk.write
    with monkeypatch.context() as full:
        full.setattr(Disk, "write", write)
        done = ricordo("import", chat)
    assert done.code not in {0, None}
    assert "space" in done.err.casefold()
    assert "Traceback" not in done.err
    again = ricordo("import", chat, "--json").document
    assert again["messages"]["read"] == SESSIONS * EACH
    assert _texts() == _expected()
    assert ricordo("import", chat, "--json").document["messages"]["new"] == 0
    contents = [each["content"] for each in ricordo("memory", "list", "--json").document["entries"]]
    assert len(contents) == len(set(contents))


def test_of_a_history_that_grows_while_it_is_read_nothing_is_lost_or_taken_twice(
    chat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def grow(number: int) -> None:
        with chat.open("a", encoding="utf-8") as file:
            if number == 0:
                file.write("".join(_row(session, EACH) + "\n" for session in range(SESSIONS)))
            elif number == 1:
                # a row of which only the beginning is written yet
                file.write(_row(0, EACH + 1)[:20])

    with monkeypatch.context() as growing:
        _before_each_session(growing, grow)
        ricordo("import", chat)
    assert set(_expected()) <= set(_texts()) <= set(_expected(EACH + 1))
    with chat.open("a", encoding="utf-8") as file:
        file.write(_row(0, EACH + 1)[20:] + "\n" + "".join(_row(each, EACH + 1) + "\n" for each in range(1, SESSIONS)))
    ricordo("import", chat)
    assert _texts() == _expected(EACH + 2)
    assert ricordo("import", chat, "--json").document["messages"]["new"] == 0


def test_what_was_taken_in_is_found_while_the_import_goes_on(chat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []

    def ask(number: int) -> None:
        if number == SESSIONS - 1:
            command = [sys.executable, "-m", "ricordo", "recall", "What does a shelf hold?", "--limit", "50"]
            found.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    with monkeypatch.context() as asking:
        _before_each_session(asking, ask)
        assert ricordo("import", chat).code == 0
    assert len(found) == 1
    assert "Shelf 0-3 holds oak." in found[0]
    assert f"Shelf {SESSIONS - 1}-" not in found[0]
