"""Remembering, finding, looking, forgetting and taking back, as a person does it."""

import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from command_line import chat, ricordo
from places import place_of
from ricordo.cli.options import parse_time
from ricordo.cli.render import pluralize
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.jobs import Inbox, Job, JobOutcome


def _remember(text: str, *options: str) -> dict[str, Any]:
    document: dict[str, Any] = ricordo("remember", text, *options, "--json").document
    return document


def _contents(*arguments: str) -> list[str]:
    return [each["content"] for each in ricordo("memory", "list", *arguments, "--json").document["entries"]]


def _line(document: dict[str, Any]) -> str:
    line: int = document["line"]
    return Path(document["file"]).read_text(encoding="utf-8").splitlines()[line - 1]


def test_what_is_remembered_is_found_with_the_file_and_line_it_stands_in() -> None:
    saved = _remember("We use uv for environments, not conda.", "--kind", "decision", "--tag", "tooling")
    assert "We use uv for environments" in _line(saved)
    hit = ricordo("recall", "which tool for environments", "--json").document["hits"][0]
    assert hit["entry"]["id"] == saved["entry"]["id"]
    assert (hit["file"], hit["line"]) == (saved["file"], saved["line"])
    assert 0 < hit["score"] <= 1
    shown = ricordo("recall", "which tool for environments").out
    assert "1. We use uv for environments, not conda." in shown
    assert f"{saved['file']}:{saved['line']}" in shown
    assert hit["explanation"] in shown


def test_a_text_is_read_from_standard_input_where_a_dash_stands() -> None:
    ricordo("remember", "-", stdin="Two lines.\nThe second one.\n")
    assert [content.strip() for content in _contents()] == ["Two lines.\nThe second one."]


@pytest.mark.parametrize(
    "text", ["One line.", "First.\n\n- second\n\nlast", "word " * 2_000], ids=["line", "lines", "long"]
)
def test_the_place_of_a_new_memory_is_the_one_that_is_found_for_it_later(text: str) -> None:
    for number in range(3):
        saved = _remember(f"{text} {number}")
        found = ricordo("memory", "show", saved["entry"]["id"], "--json").document
        assert (saved["file"], saved["line"]) == (found["file"], found["line"])


def test_without_a_query_there_is_no_score() -> None:
    _remember("Pears are ordered on Mondays.")
    assert "score" in ricordo("recall", "pears").out
    for command in (["recall", ""], ["memory", "search", " "]):
        done = ricordo(*command)
        assert "Pears" in done.out
        assert "score" not in done.out


@pytest.mark.parametrize("kind", ["bad kind]", "", " ", "a:b", "-a", "a--b", "two words"])
def test_a_kind_is_a_word(kind: str) -> None:
    done = ricordo("remember", "Pears.", "--kind", kind)
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "is no kind" in done.err
    assert ricordo("remember", "Pears.", "--kind", kind, "--json").document["error"] == "InvalidEntry"
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.req("HE-MEM-01")
@pytest.mark.parametrize("kind", ["code-style", "Gewohnheit", "決定", "v2"])
def test_a_kind_may_be_any_word(kind: str) -> None:
    assert _remember("Pears.", "--kind", kind)["entry"]["kind"] == kind


@pytest.mark.req("HE-MEM-01")
def test_recall_passes_its_filters_on() -> None:
    _remember("Pears are ordered on Mondays.", "--kind", "decision", "--tag", "fruit")
    _remember("Pears are sold by weight.")
    for filters in (["--kind", "decision"], ["--tag", "fruit"], ["--kind", "decision", "--until", "2999-01-01"]):
        found = ricordo("recall", "pears", *filters, "--json").document["hits"]
        assert [hit["entry"]["content"] for hit in found] == ["Pears are ordered on Mondays."]
    assert len(ricordo("recall", "pears", "--since", "1d", "--json").document["hits"]) == 2
    assert ricordo("recall", "pears", "--until", "1d", "--json").document["hits"] == []
    assert len(ricordo("recall", "pears", "--limit", "1", "--json").document["hits"]) == 1


def test_an_answer_is_quoted_and_what_was_never_said_is_not_in_memory() -> None:
    ricordo("import", chat(Path("chat.jsonl")))
    found = ricordo("ask", "On which port does the staging database run?")
    assert (found.code, "5433" in found.out) == (0, True)
    unknown = ricordo("ask", "Who won the chess tournament in Zagreb?")
    assert (unknown.code, unknown.out) == (0, "not in memory\n")


@pytest.mark.req("HE-O-audit-list")
def test_the_list_can_be_filtered_by_id_kind_age_scope_source_and_tag() -> None:
    ricordo("import", chat(Path("chat.jsonl"), session="monday"))
    decision = _remember("We use uv.", "--kind", "decision", "--tag", "tooling")
    _remember("I like tea.", "--everywhere", "--reason", "so it is")
    everything = _contents()
    assert len(everything) >= 3
    for part in (decision["entry"]["id"], decision["entry"]["id"][:20], decision["entry"]["id"][-12:]):
        assert _contents("--id", part) == ["We use uv."]
    both = _contents("--kind", "decision", "--kind", "fact")
    assert {"We use uv.", "I like tea."} <= {*both}
    assert _contents("--kind", "decision", "--tag", "tooling", "--by", "agent") == []
    assert "I like tea." not in _contents("--kind", "decision")
    assert "We use uv." in _contents("--kind", "decision")
    assert _contents("--tag", "tooling") == ["We use uv."]
    assert _contents("--scope", "everywhere") == ["I like tea."]
    assert set(_contents("--scope", "project")) == set(everything) - {"I like tea."}
    assert set(_contents("--by", "user")) == {"We use uv.", "I like tea."}
    assert set(_contents("--source", "monday")) == set(everything) - {"We use uv.", "I like tea."}
    assert _contents("--newer-than", "1h") == everything
    assert _contents("--older-than", "1h") == []
    assert _contents("--limit", "1") == everything[:1]


@pytest.mark.req("HE-O-audit-list")
def test_a_row_of_the_list_has_id_kind_source_and_scope() -> None:
    saved = _remember("We use uv.", "--kind", "decision", "--project", "shop", "--user", "me")
    row = ricordo("memory", "list").out.splitlines()[0].split()
    assert row[:2] == [saved["entry"]["id"], "decision"]
    assert row[-3:] == ["user", "user=me", "project=shop"]


@pytest.mark.req("HE-C1-transcript")
def test_a_learned_memory_shows_the_line_of_the_conversation_that_it_rests_on() -> None:
    ricordo("import", chat(Path("chat.jsonl"), session="monday"))
    learned = next(
        each for each in ricordo("memory", "list", "--json").document["entries"] if "5433" in each["content"]
    )
    document = ricordo("memory", "show", learned["id"], "--json").document
    assert "5433" in _line(document)
    assert len(document["rests_on"]) == 1
    assert "5433" in _line(document["rests_on"][0])
    shown = ricordo("memory", "show", learned["id"]).out
    assert f"{document['rests_on'][0]['file']}:3" in shown
    assert (learned["source"]["quote"] or learned["content"]) in shown


@pytest.mark.req("HE-O-audit-forget", "GO-I10", "FC-UNDO")
def test_what_is_forgotten_is_gone_and_an_undo_brings_it_back() -> None:
    saved, kept = _remember("We use uv."), "Tests live in tests."
    _remember(kept)
    assert ricordo("forget", saved["entry"]["id"], "--reason", "changed").code == 0
    assert _contents() == [kept]
    assert "was forgotten at" in ricordo("memory", "show", saved["entry"]["id"]).err
    assert ricordo("recall", "uv").out == "Nothing found.\n"
    assert ricordo("history", "--json").document["changes"][0]["reason"] == "changed"
    assert ricordo("undo").code == 0
    assert sorted(_contents()) == [kept, "We use uv."]


@pytest.mark.req("HE-O-audit-forget")
def test_forgetting_shows_what_still_says_it_with_the_command_that_takes_each_out() -> None:
    gone = _remember("The blue whale plan starts on Monday.")["entry"]["id"]
    longer = _remember("The blue whale plan starts on Monday in Lisbon, with everybody from the harbour.")["entry"][
        "id"
    ]
    plan = place_of(Path(".ricordo")) / "workspace/plans/whale.md"
    plan.parent.mkdir()
    plan.write_text("- Monday: the blue whale plan isn't late.\n")
    done = ricordo("forget", gone, "--root", ".ricordo")
    lines = done.out.splitlines()
    assert "2 places still say it, or nearly:" in lines
    commands = [line.strip() for line in lines if line.strip().startswith("ricordo ")]
    assert commands[0] == f"ricordo forget {longer} --root .ricordo"
    for command in commands:
        document = ricordo(*shlex.split(command)[1:], "--yes", "--json").document
        assert not document.get("remaining") or len(document["remaining"]) == 1
    assert "whale" not in plan.read_text()
    assert not [text for text in (ricordo("ask", "blue whale plan").out, ricordo("context").out) if "Monday" in text]


@pytest.mark.req("FC-UNDO")
def test_the_newest_write_is_undone_and_the_history_tells() -> None:
    _remember("First.")
    second = _remember("Second.")
    assert ricordo("undo", "--json").document["undone"]["entries"] == [second["entry"]["id"]]
    assert _contents() == ["First."]
    acts = [(each["action"], each["actor"]) for each in ricordo("history", "--json").document["changes"]]
    assert acts == [("undo", "user"), ("save", "user")]
    assert ricordo("history", "--limit", "1").out.count("undo by user") == 1


def test_everything_is_searched_and_sessions_only_where_asked() -> None:
    ricordo("import", chat(Path("chat.jsonl"), session="monday"))
    _remember("The staging database is backed up at night.")
    everything = ricordo("memory", "search", "deployments come from main; staging database", "--json").document["hits"]
    assert {"message"} < {hit["entry"]["kind"] for hit in everything}
    talk = ricordo("session", "search", "staging database", "--json").document["hits"]
    assert {hit["entry"]["kind"] for hit in talk} == {"message"}
    assert ricordo("session", "search", "staging database").out.startswith("1. The staging database runs on port 5433")


@pytest.mark.req("HE-C1-transcript")
def test_a_session_is_shown_with_the_line_of_each_message() -> None:
    ricordo("import", chat(Path("chat.jsonl"), session="monday"))
    shown = ricordo("session", "show", "mon").out
    assert [line.split()[:2] for line in shown.splitlines() if " 2026-11-02" in line] == [
        ["1", "user"],
        ["2", "assistant"],
        ["3", "user"],
    ]
    assert "monday  2026-11-02" in ricordo("session", "list").out


def test_without_a_command_it_counts_what_there_is() -> None:
    ricordo("import", chat(Path("chat.jsonl")))
    _remember("We use uv.", "--kind", "decision")
    figures = ricordo("--json").document
    assert figures["exists"] is True
    assert figures["messages"] == 3
    assert figures["sessions"] == 1
    assert figures["entries"]["decision"] >= 1
    assert figures["bytes"] > 0
    assert len(figures["next"]) == 3
    assert any(line.startswith("ricordo chat") for line in figures["next"])
    shown = ricordo().out
    assert "1 session, 3 messages" in shown
    assert figures["index"] == "fresh"


def test_without_a_command_it_tells_what_is_curated_and_what_waits() -> None:
    ricordo("import", chat(Path("chat.jsonl")))
    topics = place_of(Path(".ricordo")) / "workspace/memory/topics"
    topics.mkdir()
    (topics / "tea.md").write_text("- Tea is in the kitchen.\n", encoding="utf-8")
    curated = (place_of(Path(".ricordo")) / "workspace/MEMORY.md").read_text(encoding="utf-8")
    figures = ricordo("--json").document
    assert (figures["curated"], figures["topics"]) == (1 + curated.count("\n- "), 1)
    assert curated.count("\n- ") >= 1
    assert figures["waiting"] == 0
    assert f"{figures['curated']} entries in MEMORY.md and 1 topic" in ricordo().out
    assert "nothing waits" in ricordo().out


def test_without_a_command_a_job_that_failed_for_good_is_told_with_the_way_to_look_at_it() -> None:
    ricordo("remember", "We use uv.")
    inbox = Inbox(Path(".ricordo/users/me/queue.db").absolute(), clock=SystemClock(), ids=MonotonicIds(SystemClock()))

    async def fail() -> None:
        await inbox.put(Job(kind="flush", agent="main", session="later", not_before=datetime(2099, 1, 1, tzinfo=UTC)))
        lease = await inbox.begin(Job(kind="flush", agent="main", session="s1"), seconds=60)
        assert lease is not None
        await inbox.complete(lease, JobOutcome(state="failed", error="StorageFull"))
        await inbox.close()

    anyio.run(fail)
    figures = ricordo("--json").document
    assert figures["waiting"] == 1
    assert figures["next"][0].startswith("ricordo doctor")
    assert "flush s1: StorageFull" in ricordo().out


@pytest.mark.req("HE-O-audit-list")
def test_control_sequences_in_memory_do_not_reach_the_terminal() -> None:
    _remember("Beware of \x1b[31mred\x1b[0m and \x07 bells \u202e.")
    shown = [ricordo("recall", "beware"), ricordo("memory", "list"), ricordo("ask", "What is to beware of?")]
    assert all("red" in done.out and not set("\x1b\x07\u202e") & set(done.out) for done in shown)


@pytest.mark.req("HE-O-audit-list")
@pytest.mark.parametrize("moment", ["never", "2026-13-01", "yesterday or so", "7", "99999999999999d"])
def test_a_time_that_can_not_be_read_is_a_wrong_use(moment: str) -> None:
    _remember("We use uv.")
    done = ricordo("recall", "uv", "--since", moment)
    assert done.code == 2
    assert "is no time" in done.err


@pytest.mark.req("HE-O-audit-list")
@pytest.mark.parametrize("day", ["yesterday", "2 weeks ago", "last monday", "2020-01-01"])
def test_a_day_may_be_given_in_words(day: str) -> None:
    _remember("We use uv.")
    assert len(ricordo("recall", "uv", "--since", day, "--json").document["hits"]) == 1
    assert ricordo("recall", "uv", "--until", day, "--json").document["hits"] == []


@pytest.mark.req("HE-O-audit-list")
def test_a_day_in_words_begins_at_midnight() -> None:
    begins = parse_time("yesterday")
    assert (begins.hour, begins.minute, begins.tzinfo is not None) == (0, 0, True)
    assert begins.date() == datetime.now().astimezone().date() - timedelta(days=1)


@pytest.mark.req("FC-UNDO")
def test_the_history_tells_what_each_write_was_about_and_what_an_undo_undid() -> None:
    saved = _remember("We use uv for environments.")
    ricordo("forget", saved["entry"]["id"])
    assert 'Took back forget "We use uv for environments."' in ricordo("undo").out
    assert 'Took back save "We use uv for environments."' in ricordo("undo", saved["entry"]["id"]).out
    lines = [line.strip() for line in ricordo("history").out.splitlines() if "We use uv" in line]
    assert lines == [
        'undid save "We use uv for environments."',
        'undid forget "We use uv for environments."',
        '"We use uv for environments."',
    ]
    assert ricordo("history", "--json").document["changes"][0]["about"] == "We use uv for environments."


def test_the_history_says_which_files_are_in_the_users_own_root() -> None:
    _remember("We use uv.")
    _remember("I like tea.", "--everywhere", "--reason", "so it is")
    own = [line for line in ricordo("history").out.splitlines() if "your own root" in line]
    assert len(own) == 1
    assert "so it is" in own[0]


@pytest.mark.req("HE-O-audit-list")
def test_a_scope_that_is_none_is_a_wrong_use() -> None:
    _remember("We use uv.")
    done = ricordo("memory", "list", "--scope", "bla")
    assert (done.code, "is no scope" in done.err) == (2, True)
    assert ricordo("memory", "list", "--scope", "user=nobody").out == "No memory matches.\n"


@pytest.mark.req("HE-O-audit-list")
def test_the_list_ends_with_an_ending_that_names_its_first_memory() -> None:
    for number in range(3):
        _remember(f"Thought {number}.")
    shown = ricordo("memory", "list").out.splitlines()
    assert shown[0].split()[0].endswith(shown[-1].split()[-1])
    assert _contents("--id", shown[-1].split()[-1]) == ["Thought 2."]
    assert "… and 2 more: --limit shows them" in ricordo("memory", "list", "--limit", "1").out


def test_a_long_message_is_cut_with_a_note_and_shown_whole_where_asked() -> None:
    ricordo("import", chat(Path("chat.jsonl"), [("user", "word " * 200_000)], session="monday"))
    shown = ricordo("session", "show", "monday").out
    assert len(shown) < 10_000
    assert "more characters: --full shows all" in shown
    assert len(ricordo("session", "show", "monday", "--full").out) > 900_000


@pytest.mark.parametrize(
    ("count", "noun", "phrase"),
    [
        (1, "transcript", "1 transcript"),
        (0, "transcript", "0 transcripts"),
        (2, "entry", "2 entries"),
        (2, "day", "2 days"),
        (2, "session-summary", "2 session-summaries"),
        (1_200, "wish", "1,200 wishes"),
    ],
)
def test_a_count_has_its_noun_in_the_right_number(count: int, noun: str, phrase: str) -> None:
    assert pluralize(count, noun) == phrase


@pytest.mark.req("HE-O-audit-list")
def test_a_memory_is_changed_listed_by_its_metadata_and_brought_back() -> None:
    saved = _remember("We deploy on Mondays.", "--metadata", "area=web", "-m", "ticket=17")["entry"]
    _remember("We use uv.", "-m", "area=tools")
    assert _contents("--metadata", "area=web", "--metadata", "area=ops") == ["We deploy on Mondays."]
    changed = ricordo("memory", "update", saved["id"], "--text", "We deploy on Fridays.", "-m", "area=ops", "--json")
    entry = changed.document["updated"]
    assert (entry["id"], entry["content"]) == (saved["id"], "We deploy on Fridays.")
    assert entry["metadata"] == {"area": "ops", "ticket": "17"}
    assert _contents("--metadata", "area=ops") == ["We deploy on Fridays."]
    ricordo("undo")
    assert _contents("--metadata", "area=web") == ["We deploy on Mondays."]
    assert ricordo("memory", "update", saved["id"]).code != 0
    assert ricordo("memory", "list", "--metadata", "office").code != 0
