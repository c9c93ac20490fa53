"""The window from the command line and in a chat: what fills it, smaller, what went, and back again."""

import json
import re
from pathlib import Path

import pytest

from command_line import Done, chat, ricordo
from ricordo.cli import picture
from ricordo.runtime.usage import ContextReport

FACTS = [
    ("user", f"Service {number} listens on port 80{number:02} of machine m{number}, and Nadia looks after it there.")
    for number in range(40)
]


@pytest.fixture
def session() -> str:
    """Take in a conversation that is long enough to be summed up; return its session."""
    talk = [each for said in FACTS for each in (said, ("assistant", "Noted. " + "It is written down, as asked. " * 6))]
    ricordo("ingest", chat(Path("talk.jsonl"), [(role, text) for role, text in talk][:40]))
    found: str = ricordo("session", "list", "--json").document["sessions"][0]["id"]
    return found


def _chat(*lines: str) -> Done:
    return ricordo("chat", "--resume", stdin="".join(f"{line}\n" for line in lines))


def adds_up(usage: dict[str, object]) -> bool:
    sections = usage["sections"]
    assert isinstance(sections, dict)
    return sum(sections.values()) == (usage["limit"] or usage["tokens"])


def test_the_window_is_shown_made_smaller_opened_and_brought_back(session: str) -> None:
    before = ricordo("context", "--json").document["usage"]
    assert (before["session"], before["messages"], before["limit"]) == (session, 40, None)
    assert adds_up(before)
    assert min(before["sections"][name] for name in ("system", "memory", "tools", "user", "assistant")) > 0

    dry = ricordo("compact", "--dry-run", "--json").document
    assert dry["dry_run"]
    assert dry["before"] == before
    assert ricordo("compact", "--list").out == "No compaction is on record.\n"

    real = ricordo("compact", "--json").document
    assert (real["before"], real["after"]) == (before, dry["after"]), "the dry run told the truth"
    assert real["after"]["tokens"] < before["tokens"]
    (done,) = [each for each in real["reports"] if each["handle"]]
    assert (done["act"], done["status"], done["reason"]) == ("compact", "done", "asked")

    (listed,) = ricordo("compact", "--list", "--json").document["compactions"]
    assert (listed["handle"], listed["undone"]) == (done["handle"], False)
    opened = ricordo("expand", done["handle"], "--json").document["messages"]
    assert (opened[0]["id"], opened[-1]["id"], len(opened)) == (listed["first"], listed["last"], listed["messages"])
    assert FACTS[0][1] in ricordo("expand", done["handle"]).out
    assert FACTS[0][1] in ricordo("expand", f"m:{listed['first']}", "--session", session[:8]).out

    back = ricordo("compact", "--undo", done["handle"], "--json").document
    assert back["undone"]["undone"]
    assert (back["before"]["tokens"], back["after"]) == (real["after"]["tokens"], before)
    again = ricordo("compact", "--undo")
    assert (again.code, again.out) == (1, "")
    assert "no compaction" in again.err


@pytest.mark.usefixtures("session")
def test_a_person_sees_one_window_before_and_after() -> None:
    out = ricordo("compact", "--dry-run").out
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["before", "after"]
    bars = [re.findall(r"\[(.*)\]", line)[0] for line in lines[1:3]]
    assert len(bars[0]) == len(bars[1]) == 60
    assert bars[0].count("u") > bars[1].count("u") > 0
    assert "S" in bars[1]
    rows = {line[4:18].strip(): line[18:].split() for line in lines if re.search(r"\d +[\d,]+$", line)}
    assert set(rows) >= {"system", "memory", "tools", "user", "assistant", "tool results", "summary", "together"}
    numbers = {name: [int(each.replace(",", "")) for each in row] for name, row in rows.items()}
    for column in (0, 1):
        assert sum(row[column] for name, row in numbers.items() if name != "together") == numbers["together"][column]
    assert "dry run" in out


def test_options_that_contradict_each_other_are_refused(session: str) -> None:
    for arguments in (["--list", "--undo"], ["--undo", "--dry-run"], ["c0123456789"], ["--focus", "x", "--list"]):
        assert ricordo("compact", *arguments).code == 2
    for arguments in (["compact", "--session", "nothing"], ["expand", "c0123456789"], ["expand", "m:nothing"]):
        done = ricordo(*arguments, "--json")
        assert done.code == 1
        assert "error" in json.loads(done.out)
    assert ricordo("context", "--session", session).out.count("together") == 1
    assert "together" not in ricordo("context", "--budget", "300").out


@pytest.mark.usefixtures("session")
def test_a_chat_opens_undoes_and_pins() -> None:
    done = _chat(
        "Remember that port 8099 is free.", "/pin", "/compact --dry-run", "/compact the ports", "/compact --list"
    )
    assert '"Remember that port 8099 is free." stays in the window' in done.out
    (handle,) = re.findall(r"^(c[0-9a-f]{10})  ", done.out, re.MULTILINE)
    assert f"`expand {handle}` opens what went" in done.out
    before = re.findall(r"in (\d+) messages before", done.out)[-1]
    done = _chat(f"/expand {handle}", f"/compact --undo {handle}", "/context", "/unpin", "/expand", "/compact --fast")
    assert FACTS[0][1] in done.out
    assert f"Took back {handle}" in done.out
    assert f"in {before} messages" in done.out
    assert "goes with a compaction again" in done.out
    assert "needs a handle" in done.err
    assert "not --fast" in done.err


def test_a_terminal_shows_coloured_cells_and_another_one_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    report = ContextReport(session="s", model="m", messages=3, system=10, user=1, reserve=500, free=489, limit=1_000)
    plain = picture.bar(report)
    assert plain.isascii()
    assert len(plain) == 62
    assert (plain.count("s"), plain.count("u"), plain.count("-")) == (1, 1, 29)
    monkeypatch.setattr(picture, "is_colourful", lambda: True)
    monkeypatch.setattr(picture, "_is_encodable", lambda: True)
    coloured = picture.bar(report)
    assert "\x1b[" in coloured
    assert coloured.count("\u2588") == 31
    monkeypatch.setattr(picture, "_is_encodable", lambda: False)
    assert picture.bar(report) == plain
