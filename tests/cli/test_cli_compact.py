"""The window from the command line and in a chat: what fills it, smaller, what went, and back again."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import Done, chat, ricordo
from reached_models import load_packages
from ricordo.agent import session_factory as agents
from ricordo.agent.compaction_journal import Compaction
from ricordo.cli import chat_window as picture
from ricordo.cli.chat_window import format_undo, unused_focus_note
from ricordo.context import CompactionConfig
from ricordo.context.usage import ContextReport
from ricordo.runtime import Settings
from ricordo.testing import LoopbackServer

FACTS = [
    ("user", f"Service {number} listens on port 80{number:02} of machine m{number}, and Nadia looks after it there.")
    for number in range(40)
]


@pytest.fixture
def session() -> str:
    """Take in a conversation that is long enough to be summed up; return its session."""
    talk = [each for said in FACTS for each in (said, ("assistant", "Noted. " + "It is written down, as asked. " * 6))]
    ricordo("import", chat(Path("talk.jsonl"), [(role, text) for role, text in talk][:40]))
    found: str = ricordo("session", "list", "--json").document["sessions"][0]["id"]
    return found


def _chat(*lines: str) -> Done:
    return ricordo("chat", "--resume", stdin="".join(f"{line}\n" for line in lines))


def adds_up(usage: dict[str, object]) -> bool:
    sections = usage["sections"]
    assert isinstance(sections, dict)
    return sum(sections.values()) == (usage["limit"] or usage["tokens"])


@pytest.mark.req("CC-MANUAL", "CC-UNDO")
def test_the_window_is_shown_made_smaller_opened_and_brought_back(session: str) -> None:
    before = ricordo("context", "--window", "--json").document["usage"]
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
    assert (done["action"], done["status"], done["reason"]) == ("compact", "done", "asked")

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


@pytest.mark.req("CC-MANUAL")
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
    assert ricordo("context", "--window").out.count("together") == 1
    assert "together" not in ricordo("context").out
    assert ricordo("context", "--json").document["usage"] is None


@pytest.mark.req("CC-PIN", "CC-UNDO")
@pytest.mark.usefixtures("session")
def test_a_chat_opens_undoes_and_pins() -> None:
    done = _chat(
        "Remember that port 8099 is free.", "/pin", "/compact --dry-run", "/compact the ports", "/compact --list"
    )
    assert '"Remember that port 8099 is free." stays in the window' in done.out
    (handle,) = re.findall(r"^(c[0-9a-f]{10})  ", done.out, re.MULTILINE)
    assert f"`/expand {handle}` opens what went, `/compact --undo` brings it back." in done.out
    assert "rules have no focus; name a model" in done.out
    before, left = re.findall(r"in (\d+) messages before, .* in (\d+) after", done.out)[-1]
    done = _chat(f"/expand {handle}", f"/compact --undo {handle}", "/context", "/unpin", "/expand", "/compact --fast")
    assert FACTS[0][1] in done.out
    assert f"Took back {handle}: {int(before) - int(left)} messages more are in the window again." in done.out
    assert f"in {before} messages" in done.out
    assert "goes with a compaction again" in done.out
    assert "needs a handle" in done.err
    assert "not --fast" in done.err


@pytest.mark.usefixtures("session")
def test_a_message_is_removed_and_worded_otherwise_in_a_chat_and_by_command(session: str) -> None:
    done = _chat(
        "/remove 1",
        "/edit 3 It listens nowhere.",
        "/remove",
        "/edit 4",
        "/remove 99",
        "/edit nothing x",
        "/compact --list",
    )
    assert f'"{FACTS[0][1][:60]}' in done.out
    assert 'says "It listens nowhere." now, as m:' in done.out
    handles = re.findall(r"^(c[0-9a-f]{10})  .*  (edit|remove): 1 message", done.out, re.MULTILINE)
    assert [act for _, act in handles] == ["edit", "remove"]
    assert f"`/compact --undo {handles[0][0]}` brings it back" in done.out
    assert all(
        told in done.err for told in ("/remove takes one", "/edit takes a message", "line 99", "has the id nothing")
    )
    for handle, _ in handles:
        ricordo("compact", "--undo", handle)
    asked = ("context", "--session", session[:8])
    sent = [each["parts"][0]["text"] for each in ricordo(*asked, "--wire").document["messages"][1:]]
    made = ricordo(*asked, "--edit", "2", "--text", "It is not.", "--json").document["changed"]
    assert f"`ricordo session show {session}`" in ricordo(*asked, "--remove", f"m:{made['first']}").err
    assert "brings it back" in ricordo(*asked, "--remove", "1").out
    left = [each["parts"][0]["text"] for each in ricordo(*asked, "--wire").document["messages"][1:]]
    assert left == ["It is not.", *sent[2:]]
    for wrong in (["--text", "x"], ["--edit", "1"], ["--remove", "1", "--wire"], ["--remove", "1", "--edit", "2"]):
        assert ricordo("context", *wrong).code == 2


def test_a_terminal_shows_letters_on_colours_and_another_one_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    report = ContextReport(session="s", model="m", messages=3, system=10, user=1, reserve=500, free=489, limit=1_000)
    plain = picture.format_bar(report)
    assert plain.isascii()
    assert len(plain) == 62
    assert (plain.count("s"), plain.count("u"), plain.count("-")) == (1, 1, 29)
    monkeypatch.setattr(picture, "is_colourful", lambda: True)
    coloured = picture.format_bar(report)
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain
    assert coloured.count("\x1b[0m") == 3, "one run of cells for each section but what is free"


@pytest.mark.parametrize(("columns", "cells"), [(20, 16), (80, 76), (300, 100)])
def test_the_picture_is_as_wide_as_the_terminal(columns: int, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    said = ("user", "assistant", "results", "summary", "injected")
    sections = ("system", "memory", "tools", *said, "reminder", "reserve")
    report = ContextReport(
        session="s", model="m", messages=3, limit=101_000, free=90_000, **dict.fromkeys(sections, 1_100)
    )
    monkeypatch.setattr(picture, "_columns", lambda: columns)
    _, shown, *rows = picture.format_usage(report)
    assert len(shown.strip()) - 2 == cells
    assert all(letter in shown for letter in "smtuarSiR-.")
    change = picture.format_usage_change(report, report)[1:-1]
    if columns == 20:
        assert max(map(len, [shown, *rows, *change])) <= columns
        assert "s system       1,100" in rows
    assert all("1,100" in line or "before" in line or "after" in line for line in change[3:-2])


@pytest.mark.req("CC-MANUAL")
@given(st.lists(st.integers(0, 10**6), min_size=11, max_size=11), st.integers(10, 100))
@settings(max_examples=50)
def test_the_cells_fill_the_bar_and_every_section_has_one(sizes: list[int], count: int) -> None:
    cells = picture._allocate_cells(sizes, count)
    assert [bool(cell) for cell in cells] == [bool(size) for size in sizes]
    assert sum(cells) == (max(count, sum(map(bool, sizes))) if any(sizes) else 0)


def _only_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "_is_writable", lambda root: False)


@pytest.mark.usefixtures("session")
def test_a_window_that_can_only_be_read_is_looked_at_in_silence_and_not_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (done,) = [each for each in ricordo("compact", "--json").document["reports"] if each["handle"]]
    _only_readable(monkeypatch)
    for changing in (["compact"], ["compact", "--undo"]):
        refused = ricordo(*changing)
        assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)
        assert refused.err.startswith("ricordo: The memory in ")
    assert ricordo("compact", "--json").document["error"] == "StorageReadOnly"
    for looking in (["compact", "--dry-run"], ["compact", "--list"], ["expand", done["handle"]], ["context"]):
        looked = ricordo(*looking)
        assert (looked.code, looked.err) == (0, "")
        assert looked.out


@pytest.mark.usefixtures("session")
def test_settings_that_cannot_be_used_are_told_once_and_nothing_is_made_smaller_by_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RICORDO_COMPACTION__TRIGGER_TOKENS", "abc")
    refused = ricordo("compact")
    assert (refused.code, refused.out) == (1, "")
    assert "RICORDO_COMPACTION__TRIGGER_TOKENS" in refused.err
    for looking in (["compact", "--dry-run"], ["compact", "--list"], ["context"], ["expand", "c0123456789"]):
        told = ricordo(*looking).err
        assert told.count("It goes on without.") == 1
        assert ". It goes on without.\n" in told
    assert ricordo("compact", "--list").out == "No compaction is on record.\n"


@pytest.mark.req("CC-MANUAL")
def test_a_compaction_that_does_nothing_says_why() -> None:
    ricordo("chat", "--session", "short", "Who owns staging?")
    done = ricordo("compact", "--focus", "ports")
    assert done.code == 0
    assert re.search(r"^  Nothing was made smaller: .*\w\.$", done.out, re.MULTILINE)
    assert "asked" not in done.out
    assert "rules have no focus; name a model" in done.out
    assert "name a model" in ricordo("compact", "--focus", "ports", "--json").document["note"]
    assert ricordo("compact", "--json").document["note"] is None
    assert "Nothing would be made smaller: " in ricordo("compact", "--dry-run").out


@pytest.mark.req("CC-MANUAL")
def test_a_model_is_asked_to_dwell_on_the_focus_and_rules_are_not() -> None:
    plain = Settings.load(None, {})
    by_rules, by_model = (
        replace(plain, reductions={"compaction": CompactionConfig(model=name)}) for name in ("offline", "openai:small")
    )
    assert unused_focus_note("ports", "anthropic:large", by_rules)
    assert unused_focus_note("ports", "offline", plain)
    assert not unused_focus_note("", "offline", plain)
    assert not unused_focus_note("ports", "offline", by_model)
    assert not unused_focus_note("ports", "anthropic:large", plain)


def test_the_shell_names_its_own_commands_after_a_compaction(session: str) -> None:
    out = ricordo("compact", "--session", session).out
    (handle,) = re.findall(r"expand (c[0-9a-f]{10})", out)
    back = f"`ricordo compact --undo --session {session}` brings it back."
    assert f"`ricordo expand {handle} --session {session}` opens what went, {back}" in out


def test_what_cannot_be_found_any_more_is_counted(session: str) -> None:
    (done,) = [each for each in ricordo("compact", "--json").document["reports"] if each["handle"]]
    handle = done["handle"]
    assert ricordo("expand", handle, "--json").document["missing"] == 0
    transcript = next(Path().glob(f".ricordo/users/me/workspace/agents/*/sessions/{session}.log.jsonl"))
    erased = transcript.read_bytes().splitlines(keepends=True)
    erased[3] = b"\n"
    transcript.write_bytes(b"".join(erased))
    assert ricordo("expand", handle).out.endswith("\n1 message of it can't be found any more.\n")
    back = ricordo("compact", "--undo", handle)
    assert "1 message of it can't be found any more." in back.out
    assert back.code == 0


def test_one_message_that_comes_back_is_told_as_one() -> None:
    made = Compaction(
        handle="c0123456789", action="compact", at=datetime.now(UTC), reason="", first_id="", last="", messages=9,
        tokens_before=9, tokens_after=1,
    )  # fmt: skip
    before, after = (ContextReport(session="s", model="m", messages=number) for number in (3, 4))
    assert format_undo(made, before, after)[0] == ("Took back c0123456789: 1 message more is in the window again.")
    assert format_undo(made, after, after)[0].endswith("the window is as it was before it.")


@pytest.mark.usefixtures("session")
def test_slash_commands_refuse_what_they_do_not_take() -> None:
    refused = (
        "/compact --list --undo", "/compact --undo --dry-run", "/compact --list ports", "/compact --undo c1 c2",
        "/clear x", "/context x", "/context --json", "/expand c1 c2", "/pin 1 2",
    )  # fmt: skip
    done = _chat("/context", *refused, "/expand foo", "/compact --undo foo")
    assert done.err.count("ricordo: /") == len(refused)
    assert done.err.count("has the handle foo: /compact --list shows them.") == 2
    assert "`ricordo compact" not in done.err
    assert done.out.count("together") == 1


@pytest.mark.req("CC-PIN")
def test_a_message_is_pinned_by_its_line_or_its_id(session: str) -> None:
    listed = ricordo("session", "show", session, "--json").document["conversation"]
    third = listed[2]
    done = _chat(f"/pin {third['line']}", f"/unpin m:{third['id']}", f"/pin {third['id']}", "/pin 9999", "/pin foo")
    told = third["text"][:40]
    assert done.out.count(f'"{told}') == 3
    assert "No message stands on line 9999." in done.err
    assert done.err.count(f"`/session show {session}` shows the line of each message") == 2


@pytest.mark.req("CC-MANUAL")
def test_a_context_without_a_session_names_none() -> None:
    ricordo("remember", "We deploy only from main.")
    assert "\na new session, model offline\n" in ricordo("context", "--window").out
    assert ricordo("context", "--window", "--json").document["usage"]["session"] is None


def test_what_an_agent_without_a_model_says_is_what_the_assistant_says() -> None:
    ricordo("remember", "We deploy only from main.")
    ricordo("chat", "--session", "monday", "Where do we deploy from?")
    sections = ricordo("context", "--window", "--json").document["usage"]["sections"]
    assert sections["assistant"] > 0
    assert sections["injected"] == 0


def test_what_is_gone_on_with_is_a_session_of_ones_own() -> None:
    ricordo("chat", "--session", "annas", "--user", "anna", "We deploy only from main.")
    ricordo("chat", "--session", "bens", "--user", "ben", "We deploy only on Fridays.")
    assert "session annas," in ricordo("chat", "--resume", "--user", "anna", stdin="/context\n").out
    assert "session bens," in ricordo("chat", "--resume", "--user", "ben", stdin="/context\n").out
    ricordo("chat", "--session", "annas", "--user", "ben", "Hello.")
    own, theirs = (
        ricordo("session", "show", "annas", "--user", user, "--json").document["conversation"]
        for user in ("ben", "anna")
    )
    assert [message["text"] for message in own][:1] == ["Hello."]
    assert [message["text"] for message in theirs][:1] == ["We deploy only from main."]


def test_the_next_request_is_shown_as_json_and_not_sent(session: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = ricordo("context", "--wire", "--session", session[:8]).document
    assert [message["role"] for message in shown["messages"][:2]] == ["system", "user"]
    assert FACTS[0][1] in str(shown["messages"])
    assert (shown["url"], shown["body"]) == (None, None), "no model is configured"
    load_packages()
    with LoopbackServer([], strict=True) as server:
        monkeypatch.setenv("RICORDO_MODEL", "openai-chat:local")
        monkeypatch.setenv("RICORDO_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        shown = ricordo("context", "--wire", "--session", session).document
        assert server.requests == ()
    assert shown["url"] == f"{server.url}/v1/chat/completions"
    assert len(shown["body"]["messages"]) == 41
