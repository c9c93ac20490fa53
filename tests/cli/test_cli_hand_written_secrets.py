"""A secret that a person wrote by hand into a file of the root is a mark in all that memory and its commands give."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from command_line import chat, ricordo
from places import place_of
from ricordo import Memory, Scope

TOKEN = "ghp_" + "R4nD0mZq7KpLxWv8TyBn3MsHd9FgJc2Ae5"
LINE = "We push the gondola {at} with {token} on Mondays."
OWN_ID, SHARED_ID = "01m83c516zejtj41rx0fs09nm1", "01m83c516zejtj41rx0fs09nm2"
FIELDS = "[kind:: decision] [at:: 2026-11-23T04:55:41.023Z] [by:: user]"


def token(at: int) -> str:
    return f"{TOKEN}{at:02}"


def line(at: int) -> str:
    return LINE.format(at=at, token=token(at))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root whose files of all kinds hold secrets that a person wrote, those that are shared and one user's."""
    root = tmp_path / "root"
    of_it = ("--root", root, "--user", "me")
    assert ricordo("import", chat(tmp_path / "talk.jsonl"), *of_it).code == 0
    assert ricordo("remember", "We push the gondola on Mondays.", *of_it).code == 0
    assert ricordo("profile", "add", "pushes the gondola", *of_it).code == 0
    for place, entry_id, first in ((place_of(root), OWN_ID, 0), (root, SHARED_ID, 20)):
        write(place / "workspace", entry_id, first)
    return root


def write(workspace: Path, entry_id: str, first: int) -> None:
    ledger = max((workspace / "memory").glob("2*.md"), default=workspace / "memory/2026-01-02.md")
    facts = [{"id": f"fact_{first}", "content": line(first), "category": "context", "confidence": 1.0}]
    files = {
        ledger: f"{ledger.read_text() if ledger.exists() else ''}- {line(first + 1)} [tag:: {token(first + 2)}] "
        f"[reason:: {line(first + 3)}] [origin:: {token(first + 4)}] [note:: {token(first + 5)}] "
        f"{FIELDS} ^{entry_id}\n",
        workspace / "MEMORY.md": f"# Memory\n\n{line(first + 6)}\n\n- {line(first + 7)}\n",
        workspace / "memory/topics/gondola.md": f"# {line(first + 8)}\n\n- {line(first + 9)}\n",
        workspace / "rules/house.md": line(first + 10),
        workspace
        / "sessions/2026-05-13-09h47.md": f"---\nsession: old\n---\n# Day\n\n## Summary\n\n{line(first + 11)}\n",
        workspace / "plans/next.md": line(first + 12),
        workspace / "profile.json": json.dumps({"version": "1.0", "facts": facts}),
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for log in workspace.glob("agents/*/sessions/*.log.jsonl"):
        log.write_text(log.read_text().replace("never from a branch", token(first + 13)))


def held_in(text: str) -> list[int]:
    return [at for at in range(50) if token(at) in text]


READS: dict[str, Callable[[Memory], Awaitable[Any]]] = {
    "recall": lambda memory: memory.recall("gondola", limit=50),
    "recall nothing": lambda memory: memory.recall("", limit=50),
    "search": lambda memory: memory.search("gondola", limit=50, around=True),
    "explain": lambda memory: memory.explain("gondola", limit=50),
    "answer": lambda memory: memory.answer("What do we push the gondola with?"),
    "preamble": lambda memory: memory.preamble(),
    "entries": lambda memory: memory.entries(),
    "entries of a day": lambda memory: memory.entries(as_of="2026-12-24"),
    "entry": lambda memory: memory.entry(OWN_ID),
    "used": lambda memory: memory.mark_used(SHARED_ID),
    "versions": lambda memory: memory.versions(OWN_ID),
    "history": lambda memory: memory.history(),
    "diff": lambda memory: memory.diff(OWN_ID),
    "sessions": lambda memory: memory.sessions(),
    "doctor": lambda memory: memory.doctor(),
    "profile": lambda memory: memory.profile().show(),
    "facts": lambda memory: memory.profile().facts(),
    "rendered profile": lambda memory: memory.profile().render(),
    "confirm": lambda memory: memory.confirm(OWN_ID),
    "pin": lambda memory: memory.pin(OWN_ID),
    "forget": lambda memory: memory.forget(OWN_ID),
    "undo": lambda memory: memory.undo(),
}


@pytest.mark.req("FC-SECRET")
def test_no_read_of_memory_gives_one(root: Path) -> None:
    found: dict[str, list[int]] = {}

    async def read() -> str:
        async with Memory.open(root, scope=Scope(user="me", project="root")) as memory:
            shown = {name: repr(await act(memory)) for name, act in READS.items()}
            (info,) = await memory.sessions()
            shown["session"] = repr(await memory.session(info.session))
            change = next(item for item in await memory.history() if item.action == "forget")
            shown["diff of a change"] = repr(await memory.diff(change.id))
            found.update({name: at for name, text in shown.items() if (at := held_in(text))})
            return "".join(shown.values())

    assert "[secret:github-token:" in anyio.run(read)
    assert found == {}


@pytest.mark.req("FC-SECRET")
def test_no_command_that_shows_memory_prints_one(root: Path) -> None:
    assert ricordo("consolidate", "--root", root, "--user", "me").code == 0
    (session,) = ricordo("session", "list", "--json", "--root", root, "--user", "me").document["sessions"]
    change = ricordo("history", "--json", "--root", root, "--user", "me").document["changes"][0]["id"]
    commands = [
        [], ["recall", "gondola"], ["ask", "gondola push"], ["why", "gondola"], ["context"], ["history"], ["doctor"],
        ["diff"], ["diff", OWN_ID], ["diff", change], ["memory", "list"], ["memory", "show", OWN_ID],
        ["memory", "show", SHARED_ID], ["memory", "search", "gondola"], ["memory", "list", "--as-of", "2026-12-24"],
        ["profile", "show"], ["profile", "export"], ["session", "list"], ["session", "show", session["id"]],
        ["session", "search", "gondola"], ["session", "search", "deploy", "--exact"], ["trust", "--show"],
        ["memory", "list", "--json"], ["memory", "show", OWN_ID, "--json"], ["history", "--json"],
        ["trust", "--show", "--json"],        ["maintain"], ["forget", OWN_ID, "--yes"], ["undo"], ["history"],
    ]  # fmt: skip
    found: dict[str, list[int]] = {}
    for command in commands:
        where = ["--root", str(root), *([] if command[:1] == ["trust"] else ["--user", "me"])]
        done = ricordo(*command, *where)
        if at := held_in(done.out + done.err):
            found[" ".join(command)] = at
        assert done.code == int(command == ["doctor"]), (command, done.err)
    assert found == {}


@pytest.mark.req("FC-DOCTOR")
def test_doctor_names_a_secret_that_history_keeps_and_erasing_takes_it_out_there(tmp_path: Path) -> None:
    of_it = ("--root", tmp_path / "root", "--user", "me")
    assert ricordo("remember", "We push the gondola on Mondays.", *of_it).code == 0
    file = place_of(tmp_path / "root") / "workspace/MEMORY.md"
    file.write_text(f"# Memory\n\n- {line(0)}\n", encoding="utf-8")
    assert ricordo("consolidate", *of_it).code == 0
    file.write_text(file.read_text(encoding="utf-8").replace(token(0), "nothing"), encoding="utf-8")
    (check,) = (each for each in ricordo("doctor", "--json", *of_it).document["checks"] if not each["ok"])
    assert (check["name"], held_in(json.dumps(check))) == ("secrets in history", [])
    assert "MEMORY.md" in check["detail"]
    assert ricordo("erase", "--text", token(0), "--yes", *of_it).code == 0
    assert ricordo("doctor", *of_it).code == 0
