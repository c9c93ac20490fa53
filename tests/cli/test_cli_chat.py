"""A chat through pipes: what is said and answered, its commands, and how it fails."""

import json
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import Done, loopback_model, ricordo
from command_line import chat as conversation
from piped_processes import PipedProcess
from ricordo.agent import TurnResult
from ricordo.agent import session_factory as agents
from ricordo.cli.chat_input import SlashCommand, cli_arguments, parse_line
from ricordo.cli.chat_terminal import TurnPrinter
from ricordo.cli.render import escape
from ricordo.errors import StorageFull
from ricordo.messages import Message, Text
from ricordo.models import Delta, TextDelta, ThinkingDelta
from ricordo.testing import Call, Fail, Hold, RecordedRequest, Say, ScriptItem

pytestmark = pytest.mark.usefixtures("time_to_close")


def _chat(*lines: str, options: Sequence[str] = ()) -> Done:
    """Say lines through a pipe."""
    return ricordo("chat", *options, stdin="".join(f"{line}\n" for line in lines))


def _remembered() -> list[str]:
    return [each["content"] for each in ricordo("memory", "list", "--json").document["entries"]]


def _said() -> list[tuple[str, str]]:
    session = ricordo("session", "list", "--json").document["sessions"][0]["id"]
    messages = ricordo("session", "show", session, "--json").document["conversation"]
    return [(message["role"], message["text"]) for message in messages]


@pytest.mark.req("FC-NOKEY")
def test_without_a_model_it_says_so_once_and_quotes_memory_with_the_source() -> None:
    ricordo("remember", "We deploy only from main.")
    done = _chat("From which branch do we deploy?", "Who won the chess tournament in Zagreb?")
    quote, source, unknown = done.out.splitlines()
    assert quote == "We deploy only from main."
    path, line = source.split(", ")[-1].split(":")
    assert "We deploy only from main." in Path(path).read_text(encoding="utf-8").splitlines()[int(line) - 1]
    assert unknown == "Not in memory."
    assert done.err.count("Offline") == 1
    assert done.code == 0


@pytest.mark.parametrize(
    ("store", "place"),
    [("jsonl:./notes", r"notes/memory\.jsonl:1"), ("folder:~/kept", r"/.*/kept/project\.md:\d+"), ("ring", "")],
)
def test_what_is_quoted_of_another_store_has_the_place_of_its_file(
    store: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RICORDO_STORE", store)
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere"))
    done = ricordo("chat", stdin="Remember that Nadia owns staging.\nWho owns staging?\n")
    assert re.search(rf"^— [\d-]+{', ' if place else ''}{place}$", done.out, re.MULTILINE)


def test_a_pipe_sees_replies_and_nothing_else() -> None:
    done = _chat("Nadia owns the staging database.", "")
    assert done.out == "Noted.\n"
    assert [line.split()[0] for line in done.err.splitlines()] == ["Offline:", "Learned"]


def test_one_message_is_answered_and_the_end_says_nothing() -> None:
    ricordo("remember", "We deploy only from main.")
    done = ricordo("chat", "From which branch do we deploy?", "--session", "script")
    assert done.out.startswith("We deploy only from main.\n")
    assert "Learned" not in done.out + done.err
    document = ricordo("chat", "From which branch do we deploy?", "--session", "script", "--json").document
    assert document["reply"].startswith("We deploy only from main.")
    assert document["session"] == "script"
    assert len(_said()) == 4


def test_a_root_is_made_by_the_first_thing_that_is_said_and_not_before() -> None:
    done = _chat("/help", "/context", "/memory list", "/quit")
    assert "Nothing was said yet." in done.out
    assert not Path(".ricordo").exists()
    _chat("We deploy only from main.")
    assert _said()[0] == ("user", "We deploy only from main.")


def test_a_chat_in_which_nothing_was_said_leaves_no_session_and_names_none() -> None:
    ricordo("remember", "We deploy only from main.")
    assert "--session" not in _chat("/context").err
    assert ricordo("session", "list", "--json").document["total"] == 0


@pytest.mark.req("HE-C8")
def test_what_a_chat_taught_is_found_by_the_next_one() -> None:
    first = _chat("We decided to deploy only from main, never from a branch.")
    assert "Learned 1 " in first.err
    assert "deploy only from main" in _chat("From which branch do we deploy?").out


def test_the_model_sees_what_was_said_before_in_a_session_that_is_gone_on_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with loopback_model([Say("Hello Nadia."), Say("Nadia."), Say("No.")], monkeypatch) as server:
        _chat("I am Nadia.", options=["--session", "monday"])
        assert _chat("Who am I?", options=["--resume"]).out == "Nadia.\n"
        _chat("Do you know me?", options=["--session", "tuesday"])
        said = [[each.text for each in request.messages if each.role != "system"] for request in server.requests]
    assert said[1] == ["I am Nadia.", "Hello Nadia.", "Who am I?"]
    assert said[2] == ["Do you know me?"]


def test_there_must_be_a_session_to_resume() -> None:
    done = _chat("Hello.", options=["--resume"])
    assert (done.code, done.out) == (1, "")
    assert "no session to go on with" in done.err
    assert not Path(".ricordo").exists()


def test_the_model_of_the_roots_own_settings_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    ricordo("remember", "We deploy only from main.")
    with loopback_model([Say("From main.")], monkeypatch) as server:
        monkeypatch.delenv("RICORDO_MODEL")
        Path(".ricordo/config.toml").write_text('model = "openai-chat:gpt-4o"\n', encoding="utf-8")
        done = _chat("From which branch do we deploy?")
        assert done.out == "From main.\n"
        assert "Offline" not in done.err
        assert "We deploy only from main." in server.requests[0].messages[0].text


def test_a_missing_key_is_told_at_the_start_and_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RICORDO_MODEL", "openai-chat:gpt-4o")
    for done in (_chat("Hello."), ricordo("chat", "Hello.")):
        assert (done.code, done.out) == (1, "")
        assert done.err.count("\n") == 1
        assert "OPENAI_API_KEY" in done.err
    assert ricordo("chat", "Hello.", "--json").document["error"] == "ModelKeyMissing"
    assert not Path(".ricordo").exists()


def test_a_missing_package_is_told_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ricordo.models.connect", None)
    done = _chat("Hello.", options=["--model", "openai-chat:gpt-4o"])
    assert done.code == 1
    assert "pip install" in done.err
    assert not Path(".ricordo").exists()


@pytest.mark.parametrize(
    ("model", "options", "told"),
    [
        ("openai-chat:local", ("--temperature", "0.25"), {"temperature": 0.25}),
        ("openai-chat:local", (), {"temperature": None, "reasoning_effort": None}),
        ("openai-chat:gpt-5", ("--thinking", "low"), {"reasoning_effort": "low"}),
        ("openai-chat:gpt-5", ("--thinking", "on"), {"reasoning_effort": "medium"}),
    ],
)
def test_the_model_is_told_what_the_options_of_chat_say(
    model: str, options: tuple[str, ...], told: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    with loopback_model([Say("Hello.")], monkeypatch) as server:
        assert ricordo("chat", "Hello?", "--no-memory", "--model", model, *options).code == 0
    assert {name: server.requests[0].body.get(name) for name in told} == told


@pytest.mark.parametrize("options", [("--temperature", "-1"), ("--temperature", "hot"), ("--thinking", "hard")])
def test_an_option_of_chat_that_no_model_can_be_told_is_refused_before_anything_is_sent(
    options: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with loopback_model([], monkeypatch) as server:
        refused = ricordo("chat", "Hello?", *options)
    assert refused.code in {1, 2}
    assert options[0].strip("-") in refused.err
    assert server.requests == ()


@pytest.mark.req("AS-BUG-12")
def test_a_reply_that_fails_is_one_line_and_what_was_said_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback_model([Fail(401, "bad key"), Say("Here I am.")], monkeypatch):
        done = _chat("Hello?", "Again?")
    assert done.out == "Here I am.\n"
    assert done.err.count("ricordo: ") == 1
    assert done.code == 1
    assert _said() == [("user", "Hello?"), ("user", "Again?"), ("assistant", "Here I am.")]


def test_without_memory_nothing_is_shown_or_learned_and_what_is_said_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    ricordo("remember", "We deploy only from main.")
    with loopback_model([Say("All right.")], monkeypatch) as server:
        _chat("We decided that Nadia owns staging.", options=["--no-memory"])
        request = server.requests[0]
    own = {"grep_files", "read_file", "expand", "todo_write", "plan_enter", "plan_read", "plan_write", "plan_exit"}
    own |= {"spawn", "task_list", "task_output", "task_cancel"}
    assert {tool.name for tool in request.tools} == own, "what reads the evicted and what stands beside, and no more"
    assert "We deploy only from main." not in request.messages[0].text
    assert _remembered() == ["We deploy only from main."]
    assert _said()[0] == ("user", "We decided that Nadia owns staging.")


@pytest.mark.parametrize(
    "options",
    [["--session", "a", "--resume"], ["--json"], ["--files"], ["--no-memory"]],
    ids=["two sessions", "json of a loop", "files without a terminal", "neither model nor memory"],
)
def test_what_can_not_be_done_is_a_wrong_use(options: list[str]) -> None:
    done = _chat("Hello.", options=options)
    assert done.code == 2
    assert not Path(".ricordo").exists()


@pytest.mark.req("HE-O-audit-list")
def test_the_list_shows_and_filters_everything_in_a_chat_as_it_does_on_the_command_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ricordo("import", conversation(Path("chat.jsonl"), session="monday"))
    keeps = Call("remember", {"content": "Vesna waters the plants.", "kind": "errand"})
    with loopback_model(lambda request: keeps if request.number == 1 else Say("Noted."), monkeypatch):
        _chat("Hello there.", options=["--session", "tuesday", "--model", "openai-chat:gpt-4o"])
    monkeypatch.delenv("RICORDO_MODEL")
    saved = ricordo("remember", "We use uv.", "--kind", "decision", "--json").document
    ricordo("remember", "I like tea.", "--everywhere", "--reason", "so it is")
    old = ricordo("remember", "The office is in Turin.", "--json").document
    ledger = Path(old["file"])
    text = ledger.read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if "Turin" in line)
    aged = line.replace(f"[at:: {line.split('[at:: ')[1].split(']')[0]}]", "[at:: 2020-01-01T00:00:00.000Z]")
    ledger.write_text(f"{text.replace(line, aged)}- The bins go out on Mondays.\n", encoding="utf-8")

    number, scope = saved["entry"]["id"], saved["entry"]["scope"]
    (user,) = re.findall(r"user=\w+", scope)
    filters = ["", f"--id {number[-14:]}", "--kind decision", "--older-than 30d", "--newer-than 30d"]
    filters += [f"--scope {each}" for each in ("everywhere", "project", user, "user=somebody")]
    filters += [f"--source {each}" for each in ("user", "agent", "hand", "flush", "monday", "tuesday")]
    found = _listed(*filters)
    everything = found[""]
    saved_by = dict.fromkeys(("We use uv.", "I like tea.", "The office is in Turin."), "user")
    saved_by |= {"Vesna waters the plants.": "agent", "The bins go out on Mondays.": "hand"}
    learned = set(everything) - set(saved_by)
    assert any("5433" in content for content in learned)
    for content, entry in everything.items():
        assert entry["id"]
        assert entry["kind"]
        assert entry["by"] == saved_by.get(content, "flush")
        assert entry["time"] or entry["by"] == "hand", "nobody knows when a line was written by hand"
        assert "user=" in entry["scope"]

    def those(test: Callable[[Any], object]) -> set[str]:
        return {content for content, entry in everything.items() if test(entry)}

    recent = those(lambda entry: entry["time"] and entry["content"] != "The office is in Turin.")
    expected = {
        "": {*everything},
        f"--id {number[-14:]}": {"We use uv."},
        "--kind decision": those(lambda entry: entry["kind"] == "decision"),
        "--older-than 30d": {"The office is in Turin."},
        "--newer-than 30d": recent,
        "--scope everywhere": {"I like tea."},
        "--scope project": {*everything} - {"I like tea."},
        f"--scope {user}": {*everything},
        "--scope user=somebody": set[str](),
        "--source monday": learned,
        "--source tuesday": {"Vesna waters the plants."},
    }
    for by in ("user", "agent", "hand", "flush"):
        expected[f"--source {by}"] = {content for content, entry in everything.items() if entry["by"] == by}
    assert {each: {*found[each]} for each in expected} == expected
    assert "We use uv." in expected["--kind decision"] != {*everything}
    for out in (_chat("/memory list").out, ricordo("memory", "list").out):
        row = next(line for line in out.splitlines() if line.startswith(number))
        assert row.split()[1] == "decision"
        assert row.split()[3] in {"s", "min"}
        assert row.split()[4] == "user"
        assert "project=" in row
        assert "agent tuesday" in out


@pytest.mark.req("HE-O-audit-list")
def test_the_list_of_another_store_has_the_same_rows_and_filters() -> None:
    over = ["--store", "jsonl:./notes", "--session", "tuesday"]
    first = _chat("Remember that Nadia owns staging.", "/memory list --json", "/memory", options=over).out
    document, end = json.JSONDecoder().raw_decode(first, first.index("{"))
    (saved,) = document["entries"]
    number, kind, by, scope = saved["id"], saved["kind"], saved["by"], saved["scope"]
    row = first[end:].split("\n")[1].split("  ")
    assert (row[0], row[1], row[3], row[4]) == (number, kind, f"{by} tuesday", scope)
    (user,) = re.findall(r"user=\w+", scope)
    passing = [f"--id {number[-14:]}", f"--kind {kind}", "--newer-than 30d", f"--scope {user}", "--source tuesday"]
    others = ["--id 0000000", "--kind errand", "--older-than 30d", f"--scope {user[:-1]}", "--source hand"]
    found = _documents(_chat(*(f"/memory list {each} --json" for each in (*passing, *others)), options=over).out)
    assert [each["total"] for each in found] == [1] * len(passing) + [0] * len(others)
    done = _chat("/memory list --as-of 7d", "/memory list --root=/x", f"/memory show {number}", options=over)
    assert "takes no --as-of" in done.err
    assert "takes no --root" in done.err
    assert scope in done.out


def _documents(out: str) -> list[dict[str, Any]]:
    """Return the JSON documents that were printed one after the other."""
    found = []
    while out.strip():
        document, end = json.JSONDecoder().raw_decode(out.lstrip())
        found.append(document)
        out = out.lstrip()[end:]
    return found


def _listed(*filters: str) -> dict[str, dict[str, Any]]:
    """Return what each of these lists, by content, the same on the command line and in a chat."""
    inside = _documents(_chat(*(f"/memory list {each} --json" for each in filters)).out)
    outside = [ricordo("memory", "list", *each.split(), "--json").document for each in filters]
    assert inside == outside
    assert all(len(each["entries"]) == each["total"] for each in outside)
    return {
        name: {entry["content"]: entry for entry in each["entries"]}
        for name, each in zip(filters, outside, strict=True)
    }


@pytest.mark.req("HE-O-audit-list", "HE-O-audit-forget")
def test_a_chat_shows_searches_forgets_and_takes_back_as_the_command_line_does() -> None:
    saved = ricordo("remember", "We deploy only from main.", "--json").document["entry"]["id"]
    done = _chat(f"/memory show {saved}", "/memory search which branch do we deploy from?", "/session list")
    assert done.out.count("We deploy only from main.") == 2
    assert "No conversation was kept yet" in done.out
    assert f"Forgot {saved}." in _chat(f"/memory forget {saved}").out
    assert _remembered() == []
    assert "Took back forget" in _chat("/undo").out
    assert _remembered() == ["We deploy only from main."]


@pytest.mark.req("GO-SWAP")
def test_the_store_of_a_chat_is_named_by_an_option_before_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    ricordo("remember", "We deploy only from main.")
    monkeypatch.setenv("RICORDO_STORE", "json:./by-variable")
    assert "remembered" in _chat("Remember that Nadia owns staging.", options=["--store", "jsonl:./notes"]).out
    assert "Nadia owns staging" in Path("notes/memory.jsonl").read_text(encoding="utf-8")
    assert not Path("by-variable").exists()
    assert _chat("/memory", options=["--store", "layered"]).out.count("We deploy only from main.") == 1
    wrong = _chat("Hello.", options=["--store", "jsnol:./notes"])
    assert (wrong.code, "did you mean jsonl?" in wrong.err) == (1, True)


def test_undo_in_a_chat_with_another_store_leaves_the_memory_of_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    ricordo("remember", "We deploy only from main.")
    monkeypatch.setenv("RICORDO_STORE", "jsonl:./notes")
    done = _chat("Remember that Nadia owns staging.", "/undo", "/memory show nobody", "/memory")
    assert "another store, which takes nothing back" in done.err
    assert "No memory has the id nobody: `/memory list` shows the ids." in done.err
    assert "Nadia owns staging." in done.out
    monkeypatch.delenv("RICORDO_STORE")
    assert _remembered() == ["We deploy only from main."]


def test_a_command_that_fails_is_told_and_the_chat_goes_on() -> None:
    ricordo("remember", "We deploy only from main.")
    done = _chat("/memory show nosuchid", "/memory list --scope nonsense", "From which branch do we deploy?")
    assert "No memory has the id" in done.err or "no memory" in done.err.lower()
    assert "is no scope" in done.err
    assert done.out.startswith("We deploy only from main.")
    assert done.code == 1


def test_an_unknown_command_names_the_nearest_and_two_slashes_say_it() -> None:
    done = _chat("/memroy list", "/memory lst", "//memroy list")
    assert "Did you mean /memory?" in done.err
    assert "/memory list" in done.err
    assert _said()[0] == ("user", "/memroy list")
    assert done.code == 2


def test_the_help_names_every_command() -> None:
    out = _chat("/help").out
    for name in (
        "/memory list",
        "/memory forget",
        "/context",
        "/compact",
        "/expand",
        "/pin",
        "/tasks",
        "/plan on",
        "/todos",
        "/permissions",
        "/clear",
        "/undo",
        "/quit",
    ):
        assert name in out


@pytest.mark.req("CC-MANUAL")
def test_the_window_is_measured_made_smaller_and_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: RecordedRequest) -> ScriptItem:
        return Say("Reply. " + "Long words follow. " * 150 if request.tools else "It was of no great weight.")

    with loopback_model(answer, monkeypatch):
        done = _chat(*[f"Question {number}?" for number in range(8)], "/context", "/compact", "/context", "/clear")
    told = [line for line in done.out.splitlines() if not line.startswith("Reply")]
    messages = [int(line.split(" in ")[1].split()[0]) for line in told if line.split()[0] == "messages"]
    assert messages[0] == 16
    assert messages[1] < 16
    assert f"in {messages[0]} messages before" in done.out
    assert f"in {messages[1]} after" in done.out
    assert [line.split()[1] for line in told[2:5]] == ["system", "memory", "tools"]
    assert [line.split()[0] for line in told if line.startswith("    ")][1:3] == ["together", "inbox"]
    assert "of 128,000" in done.out
    assert told[-1].startswith("The window is empty.")
    assert len(_said()) >= 16


def test_what_a_model_says_reaches_the_terminal_without_control_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback_model([Call("\x1b[2Jboo"), Say("\x1b[31mred\x07 and \u202edone")], monkeypatch):
        done = _chat("Hello.", options=["--verbose"])
    assert "\x1b" not in done.out
    assert done.out.endswith("\\x1b[31mred\\x07 and \\u202edone\n")


@given(text=st.text(max_size=30), cuts=st.lists(st.integers(0, 40), max_size=5))
def test_a_reply_is_shown_alike_however_it_was_cut_into_pieces(text: str, cuts: list[int]) -> None:
    halves = [
        text.encode("utf-16-le", "surrogatepass")[at : at + 2].decode("utf-16-le", "surrogatepass")
        for at in range(0, 2 * sum(1 + (ord(each) > 0xFFFF) for each in text), 2)
    ]
    places = sorted({0, len(halves), *(cut for cut in cuts if cut < len(halves))})
    pieces = ["".join(halves[start:end]) for start, end in pairwise(places)]
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass") if _pairs(text) else text
    assert _screened([TextDelta(text=piece) for piece in pieces]).rstrip("\n") == escape(whole).rstrip("\n")


def _pairs(text: str) -> bool:
    return not any("\ud800" <= each <= "\udfff" for each in text)


def test_thinking_is_shown_where_asked_and_apart_from_the_reply() -> None:
    events: list[Delta] = [ThinkingDelta(text="Hm. "), ThinkingDelta(text="Well."), TextDelta(text="Yes.")]
    assert _screened(events, thinking=True) == "Hm. Well.\nYes.\n"
    assert _screened(events, thinking=False) == "Yes.\n"


def test_a_turn_that_reached_its_limit_ends_with_the_notice_of_it() -> None:
    notice = TurnResult(message=Message(role="assistant", parts=(Text(text="[Stopped.]"),)), ending="max_iters")
    assert _screened([TextDelta(text="Let me see.")], result=notice) == "Let me see.\n[Stopped.]\n"


def _screened(events: Sequence[Delta], *, thinking: bool = False, result: TurnResult | None = None) -> str:
    screen, written = TurnPrinter(tools=True, thinking=thinking), StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", written)
        for event in events:
            screen.print_event(event)
        screen.finish(result)
    return written.getvalue()


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("  hello ", "hello"),
        ("//hello", "/hello"),
        ("/Memory  list --kind fact", SlashCommand(name="memory", arguments="list --kind fact")),
        ("", ""),
        ("/", SlashCommand(name="")),
    ],
)
def test_a_line_is_a_command_only_with_one_slash(line: str, meant: object) -> None:
    assert parse_line(line) == meant


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("/memory", ["memory", "list"]),
        ("/memory --kind fact", ["memory", "list", "--kind", "fact"]),
        ("/memory forget abc", ["forget", "abc"]),
        ("/memory search what's our port --limit 2", ["memory", "search", "what's our port", "--limit", "2"]),
        ("/session search 'a b' c", ["session", "search", "a b c"]),
        ("/undo abc", ["undo", "abc"]),
        ("/memory track", None),
        ("/doctor", None),
    ],
)
def test_a_command_of_the_chat_is_one_of_the_command_line(line: str, arguments: list[str] | None) -> None:
    slash = parse_line(line)
    assert isinstance(slash, SlashCommand)
    assert cli_arguments(slash) == arguments


def test_ctrl_c_ends_a_script_with_what_came_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        loopback_model([Hold(Say("First second third."))], monkeypatch) as server,
        PipedProcess(["ricordo", "chat", "Count."]) as process,
    ):
        server.wait_for_held(timeout=40)
        assert process.stdout.read(5) == "First"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=40)
    assert process.returncode == 130
    assert "third" not in out
    assert "Traceback" not in err
    assert _said() == [("user", "Count."), ("assistant", "First ")]


def test_a_signal_ends_a_chat_that_reads_from_a_pipe_and_what_was_said_is_learned() -> None:
    with PipedProcess(["ricordo", "chat"]) as process:
        process.stdin.write("We decided to deploy only from main.\n")
        process.stdin.flush()
        assert process.stdout.readline().startswith("Noted.")
        process.send_signal(signal.SIGTERM)
        assert process.wait(40) == 128 + signal.SIGTERM
        assert "Learned 1 " in process.told()
    assert len(_remembered()) == 1


def test_a_reader_that_leaves_early_ends_a_chat_in_silence() -> None:
    command = [sys.executable, "-m", "ricordo", "chat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, err = process.communicate(b"We decided to deploy only from main.\nAnd Nadia owns staging.\n", timeout=40)
    assert process.returncode == 1
    assert b"Traceback" not in err
    assert _said()[0] == ("user", "We decided to deploy only from main.")


@pytest.mark.parametrize("arguments", [(), ("The treasure is under the oak.",)], ids=["lines", "one message"])
def test_there_is_no_chat_where_the_memory_can_not_be_opened(arguments: Sequence[str]) -> None:
    Path(".ricordo").mkdir()
    Path(".ricordo/guard.key").write_text("x\n", encoding="utf-8")
    done = ricordo("chat", *arguments, stdin="The treasure is under the oak.\nAnd I have the map.\n")
    assert (done.code, done.out) == (1, "")
    failures = [line for line in done.err.splitlines() if not line.startswith("Offline")]
    assert len(failures) == 1
    assert "restore it from a backup" in failures[0]
    document = ricordo("chat", "The treasure is under the oak.", "--json").document
    assert document["error"] == "DocumentInvalid"


def test_a_root_that_is_damaged_later_is_not_chatted_with(monkeypatch: pytest.MonkeyPatch) -> None:
    ricordo("remember", "We deploy only from main.")
    Path(".ricordo/guard.key").write_text("x\n", encoding="utf-8")
    with loopback_model([], monkeypatch) as server:
        done = _chat("Hello.")
    assert (done.code, done.out) == (1, "")
    assert server.requests == ()


def _only_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the root be one that can't be written to, whoever runs the test."""
    monkeypatch.setattr(agents, "_is_writable", lambda root: False)


def test_a_root_that_can_only_be_read_answers_and_says_once_that_nothing_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ricordo("remember", "We deploy only from main.")
    _only_readable(monkeypatch)
    done = _chat("From which branch do we deploy?", "From which branch, again?")
    assert done.code == 0
    assert done.out.startswith("We deploy only from main.\n")
    assert done.err.count("nothing that is said now is kept") == 1
    assert "Nothing of this chat is kept" in done.err.splitlines()[-1]
    assert "--session" not in done.err
    assert "Learned" not in done.err
    assert ricordo("session", "list", "--json").document["total"] == 0
    document = ricordo("chat", "From which branch do we deploy?", "--json").document
    assert document["reply"].startswith("We deploy only from main.")
    assert document["kept"] is False


def test_what_is_told_to_a_root_that_can_only_be_read_is_not_said_to_be_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    ricordo("remember", "We deploy only from main.")
    _only_readable(monkeypatch)
    for done in (_chat("Nadia owns staging."), ricordo("chat", "Nadia owns staging.")):
        assert done.out == "Nothing of this is kept.\n"
        assert done.code == 1
    assert _remembered() == ["We deploy only from main."]


def test_a_session_that_was_never_written_is_not_one_to_go_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*args: object) -> None:
        raise StorageFull

    ricordo("remember", "We deploy only from main.")
    monkeypatch.setattr("ricordo.workspace.transcript.Transcript.append", full)
    done = _chat("Nadia owns staging.")
    assert done.code == 1
    assert "Noted" not in done.out
    assert "go on with" not in done.err


def test_an_empty_id_of_a_session_begins_none() -> None:
    done = ricordo("chat", "--session", "", "Nadia owns staging.")
    assert (done.code, done.out) == (1, "")
    assert "No session has the id ''" in done.err
    assert not Path(".ricordo").exists()


@pytest.mark.parametrize("blank", ["", "  ", "\n\t"])
def test_a_blank_message_is_refused_in_one_line_and_nothing_is_made(blank: str) -> None:
    done = ricordo("chat", blank)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert ricordo("chat", blank, "--json").document["error"] == "UsageError"
    assert not Path(".ricordo").exists()


def test_what_asks_for_nothing_is_only_shown_what_is_about_the_same() -> None:
    ricordo("remember", "In chat B, server B5 runs on port 2005.")
    ricordo("remember", "The staging database runs on port 5433.")
    lines = _chat(
        "In chat A, server A3 runs on port 1003.",
        "Tell me the wifi name",
        "The staging database runs on port 5434.",
        "In chat B, server B5 runs on port 2005.",
    ).out.splitlines()
    assert lines[:2] == ["Noted.", "Not in memory."]
    assert lines[2] == "The staging database runs on port 5433."
    assert lines[4] == "In chat B, server B5 runs on port 2005."


def test_what_another_chat_of_the_same_session_taught_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    others: list[Done] = []

    def answer(request: RecordedRequest) -> ScriptItem:
        if request.messages[-1].text.startswith("We decided"):
            source = chat_file([("user", "The staging database runs on port 5433, and Nadia owns it.")])
            with pytest.MonkeyPatch.context() as patch:
                # the chat holds its session until its turn ends
                patch.setenv("RICORDO_FLUSH__CLOSING_SECONDS", "0")
                others.append(ricordo("import", source))
        return Say("All right.")

    def chat_file(said: Sequence[tuple[str, str]]) -> Path:
        return conversation(Path("other.jsonl"), said, session="shared")

    with loopback_model(answer, monkeypatch):
        done = _chat("We decided to deploy only from main, never from a branch.", options=["--session", "shared"])
    assert [other.code for other in others] == [0]
    assert len(_remembered()) >= 2
    assert "Learned 1 decision. " in done.err


def test_who_waits_for_another_try_is_told_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback_model([Fail(429, "too many", headers={"retry-after-ms": "20"}), Say("Here.")], monkeypatch):
        done = _chat("Hello.")
    assert done.out == "Here.\n"
    assert re.search(r"waiting (?:0\.[5-9]\d*|1) s to ask again", done.err)
    with loopback_model([Fail(429, "too many", headers={"retry-after": "500"})], monkeypatch):
        done = ricordo("chat", "Hello.")
    assert done.code == 1
    assert "asks to wait 500 s" in done.err


def test_a_warning_is_one_line_without_a_place_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: RecordedRequest) -> ScriptItem:
        warnings.warn("reserved is too large.", stacklevel=1)
        return Say("All right.")

    with loopback_model(answer, monkeypatch):
        done = _chat("Hello.", "Again.")
    told = [line for line in done.err.splitlines() if "reserved" in line]
    assert told == ["ricordo: reserved is too large."]
    assert ".py" not in done.err
